//! Runs a plan: calibrates the backgrounds that need it, runs every cell on all cores, and writes the run
//! directory. Finished runs survive an interruption; a second call resumes where the first stopped.
//!
//! Several processes may share the work of one directory, each with a [`Shard`] of the runs. A call without a shard
//! then joins their results.

mod blocks;
mod calibrate;
mod directory;
mod energy;
mod lock;
mod options;
mod own;
mod pool;
mod progress;
mod resume;
mod sets;
mod shard;
mod shards;

pub mod grid;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Instant, SystemTime};

use swell_base::{Code, Warning};

use crate::backend::{Backend, RunError, RunSpec};
use crate::exporter;
use crate::kinds::Role;
use crate::made_up::MadeUp;
use crate::observe::Cell;
use crate::packets::beside;
use crate::plan::Plan;
use crate::store::{Host, Manifest, Results, at, text_hash};

pub use directory::name;
pub use lock::{LOCK, Lock, LockError, is_own as is_own_lock};
pub use options::{Difference, Event, Failure, Options};
pub use own::{OUTPUT, is_unused};
pub use progress::Progress;
pub use shard::Shard;

use directory::{Directory, Kept};
use own::RECORDS;

/// Runs that are joined at once: a directory has the files of fewer than this many single runs for each shard.
const TOGETHER: usize = 100;

/// How a call of [`run`] ended.
#[derive(Debug)]
pub enum RunOutcome {
    /// All runs are finished and joined.
    Complete(Box<Results>),
    /// Cancelled. Finished runs are kept, and the next call resumes from there.
    Interrupted {
        /// Runs kept.
        finished: usize,
        /// Runs of the experiment.
        runs: usize,
        /// Measurements of backgrounds alone that are kept.
        measured: usize,
    },
    /// The shard is finished. A call without a shard joins the results.
    Shard {
        /// Runs kept, from all processes.
        finished: usize,
        /// Runs of the experiment.
        runs: usize,
    },
}

/// Runs `plan` on `backend` into `options.dir`.
///
/// # Errors
/// If the directory holds another experiment, is in use or cannot be written, or if a run failed. Finished
/// runs are kept in any case.
pub fn run(
    plan: &Plan,
    backend: &dyn Backend,
    options: &Options,
    events: &(dyn Fn(Event<'_>) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<RunOutcome, Failure> {
    let clock = Instant::now();
    let mut manifest = fresh_manifest(plan, backend, options.threads);
    // Before the lock, which would leave its file in a directory that is not the program's.
    if !options.dir.join(Manifest::FILE).exists() {
        resume::free(&options.dir, options.fresh)?;
    }
    let lock = Lock::take(&options.dir, options.shard)?;
    // If several shards start together, one creates the directory and calibrates; the others wait and read its results.
    let Some(setup) = lock.setup(cancelled)? else {
        // Another shard is at work there. Runs may be there already.
        let there = Progress::of(&options.dir);
        let there = there.ok().filter(|p| p.manifest.hash == manifest.hash);
        let finished = |p: &Progress| p.finished.iter().filter(|&&done| done).count();
        return Ok(RunOutcome::Interrupted {
            finished: there.as_ref().map_or(0, finished),
            runs: plan.cells.len(),
            measured: there.map_or(0, |p| p.measured),
        });
    };
    let dir = Directory::open(plan, &mut manifest, options)?;
    if manifest.complete {
        return Ok(RunOutcome::Complete(Box::new(Results::load(&options.dir)?)));
    }
    let before = manifest.wall_s;
    let interrupted = |so_far: &mut Manifest| {
        so_far.wall_s = before + clock.elapsed().as_secs_f64();
        if options.shard.is_none() {
            so_far.save(&options.dir)?;
        }
        Ok(RunOutcome::Interrupted {
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
    drop(setup);

    let own: Vec<usize> = blocks::order(&plan.cells, plan.file.run.seed)
        .into_iter()
        .filter(|&i| options.shard.is_none_or(|shard| shard.takes(i)))
        .collect();
    let missing = own.iter().filter(|&&i| !dir.has(i));
    let todo: Vec<(usize, &Cell)> = missing.map(|&i| (i, &plan.cells[i])).collect();
    events(Event::Stage {
        name: "running",
        runs: own.len(),
        finished: own.len() - todo.len(),
    });
    let progress = pool::Progress::new(own.len() - todo.len(), todo.len(), events);
    let threads = options.threads.min(backend.at_once());
    // True if the run is spoilt.
    let attempt =
        |shares: &pool::Progress<'_>, slot: usize, index: usize, cell: &Cell, last: bool| {
            let failed = |reason| Failure::Run {
                cell: cell.clone(),
                reason,
            };
            let Some(spec) = plan.spec(cell, &manifest.measured) else {
                return Err(failed(RunError::Failed("no such run in the plan".into())));
            };
            let packets = dir.packets(plan, index, cell)?;
            let partial = packets.as_ref().map(|p| p.with_extension(&dir.partial));
            let spec = RunSpec {
                packets: partial.clone(),
                output: dir.output(backend.writes(&spec), index, cell)?,
                ..spec
            };
            let started = Instant::now();
            let observed = backend
                .run(&spec, &|share| shares.share(slot, share), cancelled)
                .map_err(failed)?;
            if let (Some(from), Some(to)) = (partial, packets) {
                // The emulator writes one packet file, of the programs; the simulator writes one for each link.
                let each = spec.links.iter().map(|link| &*link.name);
                let each = each.map(|link| [&from, &to].map(|path| beside(path, link)));
                for [written, kept] in std::iter::once([from.clone(), to.clone()]).chain(each) {
                    if written.exists() {
                        fs::rename(&written, &kept).map_err(at(&kept))?;
                    }
                }
            }
            let records = dir.root.join(RECORDS).join(name(index, cell));
            exporter::keep(&observed.exported, &records.with_extension("ipfix"))
                .map_err(at(&records))?;
            let spoilt = backend.is_spoilt(&observed);
            let wall_s = started.elapsed().as_secs_f64();
            let after = match (last, spoilt) {
                (true, _) => Kept::Repeated,
                (false, true) => Kept::ToRepeat,
                (false, false) => Kept::AsItIs,
            };
            dir.keep(index, cell, observed, wall_s, after)?;
            shares.share(slot, 1.0);
            Ok(spoilt)
        };
    let first = |slot: usize, &(index, cell): &(usize, &Cell)| {
        let spoilt = attempt(&progress, slot, index, cell, false)?;
        events(Event::Finished(cell));
        Ok::<bool, Failure>(spoilt)
    };
    let repeat = |spoilt: Vec<(usize, &Cell)>| {
        if spoilt.is_empty() {
            return Ok(Vec::new());
        }
        events(Event::Stage {
            name: "repeating",
            runs: spoilt.len(),
            finished: 0,
        });
        let repeats = pool::Progress::new(0, spoilt.len(), events);
        let again = |slot: usize, &(index, cell): &(usize, &Cell)| {
            attempt(&repeats, slot, index, cell, true)
        };
        pool::over_cores(threads, &spoilt, &again, cancelled)
    };
    // After each part its runs become a set of tables: a run by itself has as many files.
    let part = options.shard.unwrap_or(Shard::ONLY);
    let together = || {
        let mut results = Vec::with_capacity(todo.len());
        for (n, some) in todo.chunks(TOGETHER).enumerate() {
            let each = |slot: usize, run: &(usize, &Cell)| first(n * TOGETHER + slot, run);
            let ran = pool::over_cores(threads, some, &each, cancelled)?;
            let all = ran.iter().all(Option::is_some);
            results.extend(ran);
            if !all {
                break;
            }
            if results.len() < todo.len() {
                dir.join_finished(part, &plan.cells, &manifest.hash, 0.0)?;
            }
        }
        Ok(results)
    };
    let ran = together().and_then(|results| {
        // Those of an interrupted call, too.
        let spoilt = own.iter().filter(|&&i| dir.is_to_repeat(i));
        match results.iter().all(Option::is_some) {
            true => repeat(spoilt.map(|&i| (i, &plan.cells[i])).collect()),
            false => Ok(results),
        }
    });
    match ran {
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
            if options.shard.is_none() {
                manifest.save(&options.dir)?;
            }
            return Err(failure);
        }
    }
    if let Some(shard) = options.shard {
        let finished = dir.finished(&plan.cells);
        let took = clock.elapsed().as_secs_f64();
        dir.join_finished(shard, &plan.cells, &manifest.hash, took)?;
        return Ok(RunOutcome::Shard {
            finished,
            runs: plan.cells.len(),
        });
    }
    // Once, by the call that joins the results: nothing of it is kept. What is made up has no energy to look at.
    if backend.name() != MadeUp::NAME && !plan.energy_known {
        let rates = &manifest.measured;
        let Some(doubts) = energy::doubts(plan, rates, options.threads, events, cancelled)? else {
            return interrupted(&mut manifest);
        };
        manifest.warnings.extend(doubts);
    }
    dir.merge(plan, &mut manifest, before, clock)?;
    Ok(RunOutcome::Complete(Box::new(Results::load(&options.dir)?)))
}

fn fresh_manifest(plan: &Plan, backend: &dyn Backend, threads: usize) -> Manifest {
    let mut warnings = Vec::new();
    for (role, inputs) in [
        (Role::Foreground, &plan.foreground_inputs),
        (Role::Background, &plan.inputs),
    ] {
        let role = role.word();
        for (name, input) in inputs {
            let what = input.data.word();
            for doubt in &input.facts.warnings {
                warnings.push(Warning {
                    message: format!("{what} of {role} {name}: {}", doubt.message),
                    ..doubt.clone()
                });
            }
        }
    }
    if !plan.file.background.iter().any(|b| b.is_none()) {
        warnings.push(Warning::warning(
            Code::NoReference,
            "no background of kind `none`: slowdowns cannot be given",
        ));
    }
    Manifest {
        format: Manifest::FORMAT,
        version: crate::VERSION.into(),
        name: plan.file.name.clone(),
        hash: plan.hash(backend.name()),
        experiment: Some(text_hash(&plan.toml)),
        backend: backend.name().into(),
        settings: backend.settings(),
        source: plan.source.clone(),
        complete: false,
        cells: plan.cells.clone(),
        models: plan
            .facts()
            .map(|(name, facts)| (name, facts.clone()))
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

#[cfg(test)]
mod tests;
