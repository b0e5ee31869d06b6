//! The files of a run directory in use: finished runs, measurements, and their joining.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use super::lock::SHARDS;
use super::options::{Failure, Options};
use super::own::{self, CELL_FACTS, CELLS, MEASURED, MODELS, OUTPUT, PACKETS};
use super::pool::lock;
use super::sets::{self, CellFacts, Set};
use crate::observe::{Cell, Observations};
use crate::plan::Plan;
use crate::store::{
    Manifest, RunResult, RunWarning, StoreError, at, write_atomically, write_cell, write_tables,
};

/// Marks a finished run that is to be repeated.
const TO_REPEAT: &str = "to-repeat";

/// Most bytes of the name of a foreground or a background in the name of a file, which may have 255.
const MOST_BYTES: usize = 60;

/// The name of a run's files. Its index in the plan comes first, because the sanitized names need not be unique.
pub fn name(index: usize, cell: &Cell) -> String {
    let safe = |name: &str| -> String {
        let allowed = |c: char| c.is_alphanumeric() || "-_".contains(c);
        let mut sanitized = String::new();
        for c in name.chars().map(|c| if allowed(c) { c } else { '_' }) {
            if sanitized.len() + c.len_utf8() > MOST_BYTES {
                break;
            }
            sanitized.push(c);
        }
        sanitized
    };
    format!(
        "{index:05}-{}-{}-{}",
        safe(&cell.foreground),
        safe(&cell.background),
        cell.replication
    )
}

/// What becomes of a finished run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It stays.
    AsItIs,
    /// It was spoilt and is to be repeated.
    ToRepeat,
    /// It takes the place of one that was spoilt.
    Repeated,
}

/// A run directory in use.
pub(super) struct Directory<'d> {
    pub root: &'d Path,
    /// Indices in the plan of the runs that are in sets of tables.
    pub joined: Mutex<BTreeSet<usize>>,
    /// Suffix of unfinished files, unique to each writer.
    pub partial: String,
}

impl<'d> Directory<'d> {
    /// Opens the directory to resume it, or creates it. Updates `manifest` from the stored one when resuming.
    pub(super) fn open(
        plan: &Plan,
        manifest: &mut Manifest,
        options: &'d Options,
    ) -> Result<Directory<'d>, Failure> {
        let dir = Directory {
            root: options.dir.as_path(),
            joined: Mutex::default(),
            partial: match options.shard {
                Some(shard) => format!("{}.partial", shard.label()),
                None => "partial".to_owned(),
            },
        };
        dir.begin(plan, manifest, options)?;
        let sets = sets::sets(dir.root, &manifest.hash)?;
        lock(&dir.joined).extend(sets.iter().flat_map(Set::places));
        Ok(dir)
    }

    pub(super) fn cell(&self, index: usize) -> PathBuf {
        self.root.join(CELLS).join(format!("{index:05}"))
    }

    /// Whether a run is finished.
    pub(super) fn has(&self, index: usize) -> bool {
        lock(&self.joined).contains(&index) || self.cell(index).exists()
    }

    pub(super) fn finished(&self, cells: &[Cell]) -> usize {
        (0..cells.len()).filter(|&i| self.has(i)).count()
    }

    /// The packet file of a run, if packets are kept. Creates its directory.
    pub(super) fn packets(
        &self,
        plan: &Plan,
        index: usize,
        cell: &Cell,
    ) -> Result<Option<PathBuf>, StoreError> {
        if !plan.file.run.keep.packets {
            return Ok(None);
        }
        let dir = self.root.join(PACKETS);
        fs::create_dir_all(&dir).map_err(at(&dir))?;
        Ok(Some(dir.join(format!("{}.pcapng", name(index, cell)))))
    }

    /// The output directory of a run, created empty, if the run `writes` output.
    pub(super) fn output(
        &self,
        writes: bool,
        index: usize,
        cell: &Cell,
    ) -> Result<Option<PathBuf>, StoreError> {
        if !writes {
            return Ok(None);
        }
        let dir = self.root.join(OUTPUT).join(name(index, cell));
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(at(&dir))?;
        }
        fs::create_dir_all(&dir).map_err(at(&dir))?;
        Ok(Some(dir))
    }

    /// Stores a finished run atomically. It takes the place of an earlier result only if it was repeated.
    pub(super) fn keep(
        &self,
        index: usize,
        cell: &Cell,
        observed: Observations,
        wall_s: f64,
        after: Kept,
    ) -> Result<(), StoreError> {
        let partial = format!("{index:05}.{}", self.partial);
        let partial = self.root.join(CELLS).join(partial);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(at(&partial))?;
        }
        fs::create_dir_all(&partial).map_err(at(&partial))?;
        let run = RunResult {
            cell: cell.clone(),
            observed,
        };
        write_cell(&partial, &run)?;
        let facts = CellFacts {
            cell: run.cell,
            wall_s,
            warnings: run.observed.warnings,
        };
        let path = partial.join(CELL_FACTS);
        let text = serde_json::to_vec(&facts).map_err(|source| StoreError::Manifest {
            path: path.clone(),
            source,
        })?;
        write_atomically(&path, &text)?;
        if after == Kept::ToRepeat {
            let mark = partial.join(TO_REPEAT);
            fs::write(&mark, []).map_err(at(&mark))?;
        }
        // Only now: if the repetition had failed, the first result would still be there.
        if after == Kept::Repeated {
            self.forget(index)?;
        }
        match fs::rename(&partial, self.cell(index)) {
            // With another number of shards, two of them may own the same run. Keep the first result.
            Err(_) if self.cell(index).exists() => {
                fs::remove_dir_all(&partial).map_err(at(&partial))
            }
            done => done.map_err(at(&partial)),
        }
    }

    /// Whether a finished run was spoilt and has not been repeated.
    pub(super) fn is_to_repeat(&self, index: usize) -> bool {
        self.cell(index).join(TO_REPEAT).exists()
    }

    /// Removes a finished run.
    fn forget(&self, index: usize) -> Result<(), StoreError> {
        // Under another name first: a run of which a part is removed must not look finished.
        let path = self.cell(index);
        let partial = format!("{index:05}.forgotten.{}", self.partial);
        let partial = self.root.join(CELLS).join(partial);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(at(&partial))?;
        }
        match fs::rename(&path, &partial) {
            // Another process has joined it, or does it again.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(at(&path)(e)),
            Ok(()) => fs::remove_dir_all(&partial).map_err(at(&partial)),
        }
    }

    /// Joins the finished runs into the tables and completes the manifest.
    pub(super) fn merge(
        self,
        plan: &Plan,
        manifest: &mut Manifest,
        before: f64,
        clock: Instant,
    ) -> Result<(), Failure> {
        let sets = sets::sets(self.root, &manifest.hash)?;
        let of_shards: f64 = sets.iter().map(Set::wall_s).sum();
        let mut joined = BTreeMap::new();
        for set in sets {
            joined.append(&mut set.read()?);
        }
        let mut runs = Vec::with_capacity(plan.cells.len());
        for (index, cell) in plan.cells.iter().enumerate() {
            let (run, facts) = match joined.remove(&index) {
                Some(found) => found,
                None => self.single(index, cell)?,
            };
            runs.push(run);
            *manifest.run_s.entry(cell.background.clone()).or_default() += facts.wall_s;
            manifest
                .run_warnings
                .extend(facts.warnings.into_iter().map(|warning| RunWarning {
                    cell: cell.clone(),
                    warning,
                }));
        }
        write_tables(self.root, &runs)?;
        manifest.complete = true;
        manifest.wall_s = before + of_shards + clock.elapsed().as_secs_f64();
        manifest.save(self.root)?;
        for sub in [CELLS, MEASURED, SHARDS] {
            own::remove_in(self.root, sub)?;
        }
        // Fails if it is not empty, which is intended: it then holds copies of models that are not bundled.
        let _ = fs::remove_dir(self.root.join(MODELS));
        Ok(())
    }

    /// The number of stored measurements.
    pub(super) fn measurements(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.root.join(MEASURED)) else {
            return 0;
        };
        let kept = |e: &fs::DirEntry| e.path().extension().is_some_and(|x| x == "json");
        entries.flatten().filter(kept).count()
    }

    /// The file of a measurement, of a `whole` run or of a piece of one.
    pub(super) fn measurement(
        &self,
        background: usize,
        replication: u32,
        pace: Option<f64>,
        whole: bool,
    ) -> PathBuf {
        let bits = pace.map_or(0, f64::to_bits);
        let length = if whole { "run" } else { "piece" };
        let name = format!("{background}-{replication}-{bits:016x}-{length}.json");
        self.root.join(MEASURED).join(name)
    }
}
