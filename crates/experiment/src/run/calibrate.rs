//! Calibration before the runs: the rate that each background carries alone, and the number of sessions that a
//! requested rate needs.
//!
//! A model gives the rate that its sessions offer ([`Backend::offered`]): the mean over all draws, and that of a draw.
//! Short pieces of runs measure which share of the rate offered by their own draw is carried. Where the network hardly
//! shapes the traffic, this share hardly varies, even if the draws vary much. It depends neither on the length of a run
//! nor on heavy-tailed variation between seeds. Elsewhere whole runs are measured ([`whole`]).

mod doubts;
mod job;
mod search;
mod whole;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

use swell_base::{Dur, Warning};

use super::directory::Directory;
use super::options::{Event, Failure, Rates};
use super::pool;
use crate::backend::{Backend, RunError};
use crate::file::LoadBasis;
use crate::kinds::{MOST_COPIES, Pace, Part};
use crate::plan::Plan;
use crate::store::{Measured, StoreError, write_atomically};

use job::{Job, Site};
use search::{Piece, Search};

/// Rounds that nearly all searches end with.
const USUAL: usize = 3;
/// All pieces of so many rounds together take no more than this share of the runs' simulated time.
const SHARE: f64 = 0.25;
/// Length of a piece without its warm-up.
const PIECE: Dur = Dur::from_secs(10);
/// Warm-up of a piece, in which queues and windows settle.
const SETTLE: Dur = Dur::from_secs(2);
/// Minimum length of a piece.
const SHORTEST: Dur = Dur::from_secs(2);

/// The result of the calibration.
pub(super) struct Calibration {
    pub measured: Rates,
    pub warnings: Vec<Warning>,
}

/// The pieces of a stage, by the files that keep them.
type Seen = HashMap<PathBuf, Piece>;

/// Measures the backgrounds that the plan names: first those that do not depend on the rates of others, then those that
/// match them. `None` if it was cancelled.
pub(super) fn calibrate(
    plan: &Plan,
    backend: &dyn Backend,
    dir: &Directory<'_>,
    threads: usize,
    events: &(dyn Fn(Event<'_>) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Calibration>, Failure> {
    let mut calibration = Calibration {
        measured: BTreeMap::new(),
        warnings: Vec::new(),
    };
    let stages = plan.measuring_stages();
    let pieces = pieces(plan, plan.to_measure().len());
    for stage in stages {
        let mut jobs: Vec<Job<'_>> = Vec::with_capacity(stage.len());
        for background in stage {
            if !plan.is_to_measure(background, &calibration.measured) {
                continue;
            }
            jobs.push(begin(plan, background, &calibration.measured)?);
        }
        let site = Site {
            plan,
            backend,
            dir,
            threads,
            events,
            cancelled,
            pieces,
            known: &calibration.measured,
        };
        let mut seen = Seen::new();
        while jobs.iter().any(|job| !job.search.done) {
            if site.round(&mut jobs, &mut seen)?.is_none() {
                return Ok(None);
            }
        }
        let mut found = Vec::with_capacity(jobs.len());
        for job in jobs {
            found.extend(site.end(&job));
        }
        for (name, measured, warnings) in found {
            calibration.measured.insert(name, measured);
            calibration.warnings.extend(warnings);
        }
    }
    let copied = doubts::of_copies(plan, &calibration.measured);
    let counted = doubts::of_links(plan);
    (calibration.warnings).extend(copied.into_iter().chain(counted));
    Ok(Some(calibration))
}

/// The pieces that each search may run in a round: how many, the warm-up of each, and the length of each.
fn pieces(plan: &Plan, searches: usize) -> (u32, Dur, Dur) {
    let run = &plan.file.run;
    let all = plan.cells.len() as f64 * run.duration.as_secs_f64();
    let each = SHARE * all / (searches.max(1) * USUAL) as f64;
    let settle = SETTLE.min(run.warmup);
    let whole = (PIECE + settle).min(run.duration);
    let n = (each / whole.as_secs_f64()) as u32;
    if n == 0 {
        let length = Dur::from_secs_f64(each).max(SHORTEST).min(run.duration);
        return (1, settle.min(length / 4), length);
    }
    (n.min(run.replications), settle.min(whole / 4), whole)
}

fn begin<'p>(plan: &'p Plan, background: &'p Part, measured: &Rates) -> Result<Job<'p>, Failure> {
    plan.scalable(background, measured)
        .map_err(|reason| Failure::Run {
            cell: plan.alone(background, 0, None, measured).cell,
            reason: RunError::Failed(reason.into()),
        })?;
    let target = plan.target_bps(background, measured);
    let pace = plan.first_pace(background, measured);
    Ok(Job {
        index: plan
            .file
            .background
            .iter()
            .position(|b| b.name() == background.name())
            .unwrap_or(0),
        background,
        unyielding: plan.is_unyielding(background, measured),
        shaped: false,
        runs: whole::first(plan.file.run.replications),
        offers: Vec::new(),
        search: Search {
            offered: background.load() == LoadBasis::Offered,
            closed: !background.is_open_loop(),
            most: match background.keys().pace() {
                Pace::Sessions(_) => MOST_COPIES,
                Pace::Speed(_) | Pace::Factor => f64::INFINITY,
            },
            ..Search::new(target, pace)
        },
    })
}

impl Site<'_> {
    /// One round of all unfinished searches. `seen` has the pieces of earlier rounds. `None` if it was cancelled.
    fn round(&self, jobs: &mut [Job<'_>], seen: &mut Seen) -> Result<Option<()>, Failure> {
        let (n, settle, length) = self.pieces;
        if self.draw(jobs)?.is_none() {
            return Ok(None);
        }
        self.look_for_busy(jobs);
        let whole = |job: &Job<'_>| self.whole(job);
        let path = |&(i, replication): &(usize, u32)| {
            let job = &jobs[i];
            (self.dir).measurement(job.index, replication, job.search.pace, whole(job))
        };
        let mut runs: Vec<(usize, u32)> = Vec::new();
        for (i, job) in jobs.iter().enumerate().filter(|(_, job)| !job.search.done) {
            let mut replications: Vec<u32> = match whole(job) {
                true => self.sample(job),
                false => (0..n).collect(),
            };
            // A smaller sample may have had others.
            let known =
                (0..self.plan.file.run.replications).filter(|&r| seen.contains_key(&path(&(i, r))));
            replications.extend(known);
            replications.sort_unstable();
            replications.dedup();
            runs.extend(replications.into_iter().map(|r| (i, r)));
        }
        let missing = runs.iter().filter(|j| !seen.contains_key(&path(j)));
        let missing: Vec<(usize, u32)> = missing.copied().collect();
        (self.events)(Event::Stage {
            name: "measuring",
            runs: missing.len(),
            finished: missing.iter().filter(|j| path(j).exists()).count(),
        });
        let progress = pool::Progress::new(0, missing.len(), self.events);
        let work = |slot: usize, which: &(usize, u32)| -> Result<Piece, Failure> {
            let job = &jobs[which.0];
            let mut spec = self.alone(job.background, which.1, job.search.pace);
            if !whole(job) {
                (spec.warmup, spec.duration) = (settle, length);
            }
            let failed = |reason| Failure::Run {
                cell: spec.cell.clone(),
                reason,
            };
            let offered = match whole(job) {
                true => job.offered(job.search.pace)[which.1 as usize],
                false => self.backend.offered(&spec).map_err(failed)?,
            };
            let place = path(which);
            let replication = which.1;
            if let Ok(text) = fs::read(&place)
                && let Ok(carried) = serde_json::from_slice(&text)
            {
                progress.share(slot, 1.0);
                return Ok(Piece {
                    replication,
                    carried,
                    offered,
                });
            }
            let carried = (self.backend)
                .measure(&spec, &|share| progress.share(slot, share), self.cancelled)
                .map_err(failed)?;
            let text = serde_json::to_vec(&carried).map_err(|source| StoreError::Manifest {
                path: place.clone(),
                source,
            })?;
            write_atomically(&place, &text)?;
            progress.share(slot, 1.0);
            Ok(Piece {
                replication,
                carried,
                offered,
            })
        };
        let pieces = match pool::over_cores(self.threads, &missing, &work, self.cancelled) {
            Ok(pieces) => pieces,
            Err(Failure::Run {
                reason: RunError::Cancelled,
                ..
            }) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let Some(pieces) = pieces.into_iter().collect::<Option<Vec<Piece>>>() else {
            return Ok(None);
        };
        seen.extend(missing.iter().map(path).zip(pieces));
        let all: Vec<Piece> = runs.iter().map(|which| seen[&path(which)]).collect();
        for (i, job) in jobs.iter_mut().enumerate() {
            let mine = runs.iter().zip(&all).filter(|(which, _)| which.0 == i);
            let mut mine: Vec<Piece> = mine.map(|(_, p)| *p).collect();
            if mine.is_empty() {
                continue;
            }
            if let Some(mean) = job.mean() {
                let offered = mine.iter_mut().filter_map(|p| p.offered.as_mut());
                offered.for_each(|o| o.mean = mean);
            }
            match self.whole(job) {
                true => job.learn_runs(&mine, self.plan.file.run.replications),
                false if whole::shaped(&mine) => job.measure_runs(),
                false => job.search.learn(&mine),
            }
        }
        Ok(Some(()))
    }

    /// Draws the whole runs of all unfinished searches at their present pace. `None` if it was cancelled.
    fn draw(&self, jobs: &mut [Job<'_>]) -> Result<Option<()>, Failure> {
        for job in jobs.iter_mut().filter(|job| !job.search.done) {
            let pace = job.search.pace;
            if !job.offered(pace).is_empty() {
                continue;
            }
            let replications: Vec<u32> = (0..self.plan.file.run.replications).collect();
            let draw = |_: usize, &replication: &u32| {
                let spec = self.alone(job.background, replication, pace);
                self.backend.offered(&spec).map_err(|reason| Failure::Run {
                    cell: spec.cell.clone(),
                    reason,
                })
            };
            let all = pool::over_cores(self.threads, &replications, &draw, self.cancelled)?;
            let Some(all) = all.into_iter().collect() else {
                return Ok(None);
            };
            job.offers.push((pace, all));
        }
        Ok(Some(()))
    }

    /// The result of a finished search: the background's name, the rates that its runs will carry, and doubts about
    /// them.
    fn end(&self, job: &Job<'_>) -> Option<(String, Measured, Vec<Warning>)> {
        let best = job.search.best()?;
        let mut each = [Vec::new(), Vec::new()];
        for (replication, offered) in (0..).zip(job.offered(best.pace)) {
            let seen = best.each.get(&replication);
            let carried = offered.map(|o| [0, 1].map(|d| best.lines[d].at(o.drawn[d])));
            let rates = seen.copied().or(carried).unwrap_or(best.rate);
            (0..2).for_each(|d| each[d].push(rates[d]));
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let [up_bps_each, down_bps_each] = each;
        let mut measured = Measured {
            up_bps: mean(&up_bps_each),
            down_bps: mean(&down_bps_each),
            up_bps_each,
            down_bps_each,
            expected_bps: Some(best.rate[1]),
            target_bps: job.search.target,
            unyielding: job.unyielding,
            ..Measured::default()
        };
        *job.background.keys().pace().place(&mut measured) = best.pace;
        let warnings = doubts::of(self, job, &best, &measured);
        Some((job.background.name().into(), measured, warnings))
    }
}

#[cfg(test)]
mod tests;
