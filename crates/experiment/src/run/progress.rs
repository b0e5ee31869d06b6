//! How far a run directory is, for somebody who looks at it while others run it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::shards::{self, Set};
use super::{Directory, Failure};
use crate::store::Manifest;

/// How far a run directory is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its manifest, as far as it is known.
    pub manifest: Manifest,
    /// Whether each of the manifest's runs is finished.
    pub finished: Vec<bool>,
    /// How many measurements of backgrounds alone are there; they come before the runs, and go away after them.
    pub measured: usize,
}

impl Progress {
    /// Looks at the directory; it may be under way, in one process or in shards.
    ///
    /// # Errors
    /// Where it has no manifest yet, or a file of it does not read.
    pub fn of(dir: &Path) -> Result<Progress, Failure> {
        let manifest = Manifest::load(dir)?;
        let sets = shards::sets(dir, &manifest.hash)?;
        let joined: BTreeSet<usize> = sets.iter().flat_map(Set::places).collect();
        let directory = Directory {
            root: dir,
            sets,
            joined,
            partial: String::new(),
        };
        let runs = 0..manifest.cells.len();
        let measured = fs::read_dir(dir.join("measured")).map_or(0, Iterator::count);
        Ok(Progress {
            finished: runs
                .map(|i| manifest.complete || directory.has(i))
                .collect(),
            manifest,
            measured,
        })
    }
}
