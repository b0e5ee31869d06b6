//! Progress of a run directory, for an observer while other processes run it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use super::directory::Directory;
use super::options::Failure;
use super::sets::{self, Set};
use crate::store::Manifest;

/// Progress of a run directory as its files show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its manifest, as far as it is complete.
    pub manifest: Manifest,
    /// Whether each of the manifest's runs is finished.
    pub finished: Vec<bool>,
    /// Number of stored calibration measurements. They come before the runs, and are deleted after them.
    pub measured: usize,
}

impl Progress {
    /// Reads the progress of the directory. It may be running, in one process or in shards.
    ///
    /// # Errors
    /// If it has no manifest yet, or one of its files cannot be read.
    pub fn of(dir: &Path) -> Result<Progress, Failure> {
        let manifest = Manifest::load(dir)?;
        let sets = sets::sets(dir, &manifest.hash)?;
        let joined: BTreeSet<usize> = sets.iter().flat_map(Set::places).collect();
        let directory = Directory {
            root: dir,
            joined: Mutex::new(joined),
            partial: String::new(),
        };
        let runs = 0..manifest.cells.len();
        Ok(Progress {
            finished: runs
                .map(|i| manifest.complete || directory.has(i))
                .collect(),
            manifest,
            measured: directory.measurements(),
        })
    }
}
