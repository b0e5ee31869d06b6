//! Runs a plan: measures what has to be measured, runs every cell over all cores, writes the run
//! directory. Finished runs survive an interruption; running again goes on where it stopped.

mod blocks;
mod calibrate;
mod pool;
mod resume;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use swell_base::Warning;

use crate::backend::{Backend, RunError, RunSpec};
use crate::observe::Cell;
use crate::plan::Plan;
use crate::store::{
    Host, Manifest, Measured, Results, RunResult, RunWarning, StoreError, at, read_cell,
    write_atomically, write_cell, write_tables,
};

pub use resume::Difference;

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run directory; made if it is not there.
    pub dir: PathBuf,
    /// Threads, each with one run at a time.
    pub threads: usize,
    /// Throw away what the directory holds of another experiment, or of this one.
    pub fresh: bool,
}

/// What happens while a plan runs. Called from several threads.
pub enum Event<'e> {
    /// A stage begins: `measuring` or `running`; so many runs, of which so many are there already.
    Stage {
        /// Its name.
        name: &'static str,
        /// Runs in it.
        runs: usize,
        /// Runs that an earlier session finished.
        finished: usize,
    },
    /// So many runs of the stage are done, with the share of those under way.
    Progress(f64),
    /// A run is done.
    Finished(&'e Cell),
}

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    /// Everything is there.
    Complete(Box<Results>),
    /// Cancelled: so many runs of so many are kept, and the next session goes on from there.
    Interrupted {
        /// Runs kept.
        finished: usize,
        /// Runs of the experiment.
        runs: usize,
        /// Measurements of backgrounds alone that are kept.
        measured: usize,
    },
}

/// Why a plan could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run directory holds another experiment.
    #[error("{} holds runs of another experiment:{}", dir.display(), resume::listed(differences))]
    Other {
        /// The directory.
        dir: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// A run failed.
    #[error("{}: {reason}", named(cell))]
    Run {
        /// Which run.
        cell: Cell,
        /// Why.
        reason: RunError,
    },
}

fn named(cell: &Cell) -> String {
    match cell.foreground.as_str() {
        "" => format!(
            "measuring {}, replication {}",
            cell.background, cell.replication
        ),
        foreground => format!(
            "{foreground} against {}, replication {}",
            cell.background, cell.replication
        ),
    }
}

/// Runs `plan` on `backend` into `options.dir`.
///
/// # Errors
/// Where the directory holds another experiment, cannot be written, or a run failed. Finished
/// runs are kept in any case.
pub fn run(
    plan: &Plan,
    backend: &dyn Backend,
    options: &Options,
    events: &(dyn Fn(Event<'_>) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Ended, Failure> {
    let clock = Instant::now();
    let mut manifest = fresh_manifest(plan, backend, options.threads);
    let dir = Directory::open(plan, &mut manifest, options)?;
    if manifest.complete {
        return Ok(Ended::Complete(Box::new(Results::load(&options.dir)?)));
    }
    let before = manifest.wall_s;
    let interrupted = |so_far: &mut Manifest| {
        so_far.wall_s = before + clock.elapsed().as_secs_f64();
        so_far.save(&options.dir)?;
        Ok(Ended::Interrupted {
            finished: dir.finished(&plan.cells),
            runs: plan.cells.len(),
            measured: dir.measurements(),
        })
    };

    let Some(calibration) =
        calibrate::calibrate(plan, backend, &dir, options.threads, events, cancelled)?
    else {
        return interrupted(&mut manifest);
    };
    manifest.measured = calibration.measured;
    manifest.warnings.extend(calibration.warnings);

    let todo: Vec<(usize, &Cell)> = blocks::order(&plan.cells, plan.file.run.seed)
        .into_iter()
        .filter(|&i| !dir.cell(i).exists())
        .map(|i| (i, &plan.cells[i]))
        .collect();
    events(Event::Stage {
        name: "running",
        runs: plan.cells.len(),
        finished: plan.cells.len() - todo.len(),
    });
    let progress = pool::Progress::new(plan.cells.len() - todo.len(), todo.len(), events);
    let work = |slot: usize, &(index, cell): &(usize, &Cell)| -> Result<(), Failure> {
        let failed = |reason| Failure::Run {
            cell: cell.clone(),
            reason,
        };
        let Some(spec) = plan.spec(cell, &manifest.measured) else {
            return Err(failed(RunError::Failed("no such run in the plan".into())));
        };
        let packets = dir.packets(plan, index, cell)?;
        let partial = packets.as_ref().map(|p| p.with_extension("partial"));
        let spec = RunSpec {
            packets: partial.clone(),
            output: dir.output(backend.writes(&spec), index, cell)?,
            ..spec
        };
        let started = Instant::now();
        let observed = backend
            .run(&spec, &|share| progress.share(slot, share), cancelled)
            .map_err(failed)?;
        if let (Some(from), Some(to)) = (partial, packets)
            && from.exists()
        {
            fs::rename(&from, &to).map_err(at(&to))?;
        }
        dir.keep(index, cell, observed, started.elapsed().as_secs_f64())?;
        progress.share(slot, 1.0);
        events(Event::Finished(cell));
        Ok(())
    };
    let threads = options.threads.min(backend.at_once());
    match pool::over_cores(threads, &todo, &work, cancelled) {
        Ok(results) if results.iter().all(Option::is_some) => {}
        Ok(_)
        | Err(Failure::Run {
            reason: RunError::Cancelled,
            ..
        }) => {
            return interrupted(&mut manifest);
        }
        Err(failure) => {
            manifest.wall_s = before + clock.elapsed().as_secs_f64();
            manifest.save(&options.dir)?;
            return Err(failure);
        }
    }
    dir.merge(plan, &mut manifest, before, clock)?;
    Ok(Ended::Complete(Box::new(Results::load(&options.dir)?)))
}

fn fresh_manifest(plan: &Plan, backend: &dyn Backend, threads: usize) -> Manifest {
    let mut warnings = Vec::new();
    for (background, facts) in plan.facts() {
        let what = if plan.traces.contains_key(background) {
            "trace"
        } else {
            "model"
        };
        for doubt in &facts.warnings {
            warnings.push(Warning {
                message: format!("{what} of background {background}: {}", doubt.message),
                ..doubt.clone()
            });
        }
    }
    if !plan.file.background.iter().any(|b| b.kind() == "none") {
        warnings.push(Warning::warning(
            "no-reference",
            "no background of kind `none`: slowdowns cannot be given",
        ));
    }
    Manifest {
        format: 1,
        version: crate::VERSION.into(),
        name: plan.file.name.clone(),
        hash: plan.hash(backend.name()),
        backend: backend.name().into(),
        source: plan.source.clone(),
        complete: false,
        cells: plan.cells.clone(),
        models: plan
            .facts()
            .map(|(background, facts)| (background.to_owned(), facts.clone()))
            .collect(),
        measured: BTreeMap::new(),
        warnings,
        run_warnings: Vec::new(),
        host: Host::here(threads),
        started: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |d| d.as_secs()),
        wall_s: 0.0,
        run_s: BTreeMap::new(),
    }
}

/// What a finished run leaves beside its tables.
#[derive(Serialize, Deserialize)]
struct CellFacts {
    cell: Cell,
    wall_s: f64,
    warnings: Vec<Warning>,
}

const CELL_FACTS: &str = "run.json";
/// Directory of packet traces.
const PACKETS: &str = "packets";
/// Directory of what programs write.
pub const OUTPUT: &str = "output";

/// The name of a run's files, by its place in the plan. The number tells runs apart whose names do not.
pub fn name(index: usize, cell: &Cell) -> String {
    let safe = |name: &str| -> String {
        let allowed = |c: char| c.is_alphanumeric() || "-_".contains(c);
        name.chars()
            .map(|c| if allowed(c) { c } else { '_' })
            .take(60)
            .collect()
    };
    format!(
        "{index:05}-{}-{}-{}",
        safe(&cell.foreground),
        safe(&cell.background),
        cell.replication
    )
}

/// A run directory under way.
struct Directory<'d> {
    root: &'d Path,
}

impl<'d> Directory<'d> {
    /// Opens the directory: resumes it, or begins anew. `manifest` is then the one to go on with.
    fn open(
        plan: &Plan,
        manifest: &mut Manifest,
        options: &'d Options,
    ) -> Result<Directory<'d>, Failure> {
        let root = options.dir.as_path();
        let dir = Directory { root };
        if root.join(Manifest::FILE).exists() {
            if options.fresh {
                dir.clear()?;
            } else {
                let old = Manifest::load(root);
                match old {
                    Ok(old) if old.hash == manifest.hash => {
                        if old.complete {
                            *manifest = old;
                        } else {
                            manifest.started = old.started;
                            manifest.wall_s = old.wall_s;
                        }
                        return Ok(dir);
                    }
                    old => {
                        return Err(Failure::Other {
                            dir: root.to_owned(),
                            differences: resume::differences(plan, manifest, old, root),
                        });
                    }
                }
            }
        }
        for sub in ["", "cells", "measured", "models"] {
            let path = root.join(sub);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        for loaded in plan.models.values() {
            if let Some((name, bytes)) = &loaded.copy {
                write_atomically(&root.join(name), bytes)?;
            }
        }
        for loaded in plan.flow_models.values() {
            let (name, bytes) = &loaded.copy;
            write_atomically(&root.join(name), bytes)?;
        }
        write_atomically(&root.join("experiment.toml"), plan.toml.as_bytes())?;
        manifest.save(root)?;
        Ok(dir)
    }

    /// Removes what runs leave, and nothing else.
    fn clear(&self) -> Result<(), StoreError> {
        let gone = |path: PathBuf, result: std::io::Result<()>| match result {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(at(&path)(e)),
            _ => Ok(()),
        };
        // The manifest goes first: without it the rest is no run.
        let tables = crate::store::TABLES.into_iter().chain(crate::store::KEPT);
        let tables: Vec<String> = tables.map(|t| format!("{t}.parquet")).collect();
        let files = [Manifest::FILE, "experiment.toml", "report.html"];
        for name in files.into_iter().chain(tables.iter().map(String::as_str)) {
            let path = self.root.join(name);
            gone(path.clone(), fs::remove_file(&path))?;
        }
        for sub in ["cells", "measured", "models", PACKETS, OUTPUT] {
            let path = self.root.join(sub);
            gone(path.clone(), fs::remove_dir_all(&path))?;
        }
        Ok(())
    }

    fn cell(&self, index: usize) -> PathBuf {
        self.root.join("cells").join(format!("{index:05}"))
    }

    fn finished(&self, cells: &[Cell]) -> usize {
        (0..cells.len()).filter(|&i| self.cell(i).exists()).count()
    }

    /// Where the packets of a run are to be kept, if they are; the directory is made.
    fn packets(
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

    /// Where a run may write, if it does; the directory is made, and empty.
    fn output(
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

    /// Keeps a finished run: all of it or nothing.
    fn keep(
        &self,
        index: usize,
        cell: &Cell,
        observed: crate::observe::Observations,
        wall_s: f64,
    ) -> Result<(), StoreError> {
        let partial = self.root.join("cells").join(format!("{index:05}.partial"));
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
        fs::rename(&partial, self.cell(index)).map_err(at(&partial))
    }

    /// Joins the finished runs into the tables, and ends the run.
    fn merge(
        &self,
        plan: &Plan,
        manifest: &mut Manifest,
        before: f64,
        clock: Instant,
    ) -> Result<(), StoreError> {
        let mut runs = Vec::with_capacity(plan.cells.len());
        for (index, cell) in plan.cells.iter().enumerate() {
            let dir = self.cell(index);
            runs.push(read_cell(&dir, cell)?);
            let path = dir.join(CELL_FACTS);
            let text = fs::read(&path).map_err(at(&path))?;
            let facts: CellFacts = serde_json::from_slice(&text)
                .map_err(|source| StoreError::Manifest { path, source })?;
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
        manifest.wall_s = before + clock.elapsed().as_secs_f64();
        manifest.save(self.root)?;
        for sub in ["cells", "measured"] {
            let path = self.root.join(sub);
            fs::remove_dir_all(&path).map_err(at(&path))?;
        }
        // Holds files only where a model is not bundled.
        let _ = fs::remove_dir(self.root.join("models"));
        Ok(())
    }

    /// How many measurements are kept.
    fn measurements(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.root.join("measured")) else {
            return 0;
        };
        let kept = |e: &fs::DirEntry| e.path().extension().is_some_and(|x| x == "json");
        entries.flatten().filter(kept).count()
    }

    fn measurement(&self, background: usize, replication: u32, pace: Option<f64>) -> PathBuf {
        let bits = pace.map_or(0, f64::to_bits);
        self.root
            .join("measured")
            .join(format!("{background}-{replication}-{bits:016x}.json"))
    }
}

/// Backgrounds alone, measured, by name.
type Rates = BTreeMap<String, Measured>;

#[cfg(test)]
mod tests;
