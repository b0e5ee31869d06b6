//! Results of shards: one set of tables each, until all runs are joined.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::directory::{CELL_FACTS, CellFacts, Directory};
use super::lock::SHARDS;
use super::shard::Shard;
use super::{Difference, Failure};
use crate::observe::Cell;
use crate::store::{
    RunResult, StoreError, at, read_cell, read_runs, write_atomically, write_tables,
};

/// File name of the list of runs in a set.
pub(super) const RUNS: &str = "runs.json";

/// Runs that a shard finished: their tables, and the facts that are not in the tables.
pub(super) struct Set {
    dir: PathBuf,
    listed: Listed,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    /// Hash of the experiment.
    hash: String,
    /// How long the shard took on the wall clock, seconds.
    #[serde(default)]
    wall_s: f64,
    /// The runs, with their indices in the plan.
    runs: Vec<(usize, CellFacts)>,
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

impl Directory<'_> {
    /// Joins the finished runs of a shard, which are stored one by one, into a set of tables.
    pub(super) fn join_shard(
        &self,
        shard: Shard,
        cells: &[Cell],
        hash: &str,
        clock: Instant,
    ) -> Result<(), StoreError> {
        let single = |i: &usize| shard.takes(*i) && self.cell(*i).exists();
        let places: Vec<usize> = (0..cells.len()).filter(single).collect();
        if places.is_empty() {
            return Ok(());
        }
        let mut runs = Vec::with_capacity(places.len());
        let mut listed = Listed {
            hash: hash.to_owned(),
            wall_s: clock.elapsed().as_secs_f64(),
            runs: Vec::with_capacity(places.len()),
        };
        for &i in &places {
            let (run, facts) = self.single(i, &cells[i])?;
            runs.push(run);
            listed.runs.push((i, facts));
        }
        let parts = self.root.join(SHARDS);
        let name = |n: u32| match n {
            0 => parts.join(shard.label()),
            n => parts.join(format!("{}.{n}", shard.label())),
        };
        // The name is taken if this shard already joined a set and ran again after other results were removed.
        let free = (0..).map(name).find(|p| !p.exists());
        let set = free.unwrap_or_else(|| parts.join(shard.label()));
        let partial = parts.join(format!("{}.partial", shard.label()));
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(at(&partial))?;
        }
        fs::create_dir_all(&partial).map_err(at(&partial))?;
        write_tables(&partial, &runs)?;
        let path = partial.join(RUNS);
        let text = serde_json::to_vec(&listed).map_err(|source| StoreError::Manifest {
            path: path.clone(),
            source,
        })?;
        write_atomically(&path, &text)?;
        fs::rename(&partial, &set).map_err(at(&set))?;
        for &i in &places {
            let joined = self.cell(i);
            fs::remove_dir_all(&joined).map_err(at(&joined))?;
        }
        Ok(())
    }

    /// Reads a finished run that is stored by itself.
    pub(super) fn single(
        &self,
        index: usize,
        cell: &Cell,
    ) -> Result<(RunResult, CellFacts), StoreError> {
        let dir = self.cell(index);
        single(&dir, cell).map_err(|source| StoreError::Run {
            dir,
            source: Box::new(source),
        })
    }
}

fn single(dir: &Path, cell: &Cell) -> Result<(RunResult, CellFacts), StoreError> {
    let path = dir.join(CELL_FACTS);
    let text = fs::read(&path).map_err(at(&path))?;
    let facts: CellFacts = match serde_json::from_slice(&text) {
        Ok(facts) => facts,
        Err(source) => return Err(StoreError::Manifest { path, source }),
    };
    if facts.cell != *cell {
        return Err(StoreError::Content {
            path,
            reason: format!("a result of another run: {:?}, not {cell:?}", facts.cell),
        });
    }
    Ok((read_cell(dir, cell)?, facts))
}
