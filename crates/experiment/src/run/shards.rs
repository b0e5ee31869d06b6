//! Results of shards: sets of tables, until all runs are joined.

use std::fs;
use std::path::Path;

use super::directory::Directory;
use super::lock::SHARDS;
use super::own::{CELL_FACTS, RUNS};
use super::pool::lock;
use super::sets::{CellFacts, Listed};
use super::shard::Shard;
use crate::observe::Cell;
use crate::store::{RunResult, StoreError, at, read_cell, write_atomically, write_tables};

impl Directory<'_> {
    /// Joins the finished runs of a shard, which are stored one by one, into a set of tables. Those that are to be repeated
    /// stay. `wall_s` is how long the shard took that no other set of it has, seconds.
    pub(super) fn join_finished(
        &self,
        shard: Shard,
        cells: &[Cell],
        hash: &str,
        wall_s: f64,
    ) -> Result<(), StoreError> {
        let known = lock(&self.joined).clone();
        let single = |i: &usize| {
            let there = shard.takes(*i) && !known.contains(i) && self.cell(*i).exists();
            there && !self.is_to_repeat(*i)
        };
        let places: Vec<usize> = (0..cells.len()).filter(single).collect();
        if places.is_empty() {
            return Ok(());
        }
        let mut runs = Vec::with_capacity(places.len());
        let mut listed = Listed {
            hash: hash.to_owned(),
            wall_s,
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
        lock(&self.joined).extend(&places);
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
