//! Results of finished shards: a set of tables each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use swell_base::Warning;

use super::lock::SHARDS;
use super::options::{Difference, Failure};
use super::own::RUNS;
use crate::observe::Cell;
use crate::store::{RunResult, StoreError, at, read_runs};

/// Facts about a finished run that are stored beside its tables.
#[derive(Serialize, Deserialize)]
pub(super) struct CellFacts {
    pub cell: Cell,
    pub wall_s: f64,
    pub warnings: Vec<Warning>,
}

/// Runs that a shard finished: their tables, and the facts that are not in the tables.
pub(super) struct Set {
    dir: PathBuf,
    listed: Listed,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    /// Hash of the experiment.
    pub(super) hash: String,
    /// How long the shard took on the wall clock, seconds.
    #[serde(default)]
    pub(super) wall_s: f64,
    /// The runs, with their indices in the plan.
    pub(super) runs: Vec<(usize, CellFacts)>,
}

impl Set {
    /// The indices of its runs in the plan.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.listed.runs.iter().map(|r| r.0)
    }

    /// How long it took on the wall clock, seconds; zero in sets of earlier versions.
    pub(super) fn wall_s(&self) -> f64 {
        self.listed.wall_s
    }

    /// Its runs with their facts, by their indices in the plan.
    pub(super) fn read(self) -> Result<BTreeMap<usize, (RunResult, CellFacts)>, StoreError> {
        let cells: Vec<Cell> = self.listed.runs.iter().map(|r| r.1.cell.clone()).collect();
        let runs = read_runs(&self.dir, &cells).map_err(damaged(&self.dir))?;
        let each = self.listed.runs.into_iter().zip(runs);
        Ok(each.map(|((i, facts), run)| (i, (run, facts))).collect())
    }
}

/// Adds the directory of a shard, which has to go, to an error.
fn damaged(dir: &Path) -> impl FnOnce(StoreError) -> StoreError + '_ {
    move |source| StoreError::Shard {
        dir: dir.to_owned(),
        source: Box::new(source),
    }
}

/// The sets in a directory. It is an error if one belongs to an experiment with another hash.
pub(super) fn sets(root: &Path, hash: &str) -> Result<Vec<Set>, Failure> {
    let parts = root.join(SHARDS);
    let Ok(entries) = fs::read_dir(&parts) else {
        return Ok(Vec::new());
    };
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    dirs.sort();
    let mut sets = Vec::new();
    for dir in dirs {
        let path = dir.join(RUNS);
        // An entry without a list of runs is a lock file or an unfinished set.
        if dir.extension().is_some_and(|x| x == "partial") || !path.exists() {
            continue;
        }
        let text = fs::read(&path).map_err(at(&path))?;
        let listed: Listed = serde_json::from_slice(&text).map_err(|source| {
            damaged(&dir)(StoreError::Manifest {
                path: path.clone(),
                source,
            })
        })?;
        if listed.hash != hash {
            return Err(Failure::Other {
                dir,
                differences: vec![Difference {
                    what: "experiment, models or version of a shard".into(),
                    there: listed.hash,
                    here: hash.to_owned(),
                }],
            });
        }
        sets.push(Set { dir, listed });
    }
    Ok(sets)
}
