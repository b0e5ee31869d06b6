//! Before the runs: how much each background carries alone, and how many sessions a rate takes.
//!
//! A model says what its sessions offer ([`Backend::offered`]): the mean of all draws and that of one draw.
//! Short pieces of runs say which share of their own draw is carried. That share hardly varies, however much
//! the draws do, and it depends neither on the length of a run nor on what heavy tails bring to a seed.

use std::collections::BTreeMap;
use std::fs;

use swell_base::{Dur, Warning};

use super::{Directory, Event, Failure, Rates, pool};
use crate::backend::{Backend, MeasuredRates, Offered, RunError, RunSpec};
use crate::file::LoadBasis;
use crate::kinds::Part;
use crate::plan::Plan;
use crate::store::{Measured, StoreError, write_atomically};

/// Times that sessions are scaled anew.
const ROUNDS: usize = 3;
/// All pieces together take no more than this share of the runs' simulated time.
const SHARE: f64 = 0.25;
/// Length of a piece, and what of it lets queues and windows settle first.
const PIECE: Dur = Dur::from_secs(10);
const SETTLE: Dur = Dur::from_secs(2);
/// A shorter piece says nothing.
const SHORTEST: Dur = Dur::from_secs(2);
/// A rate this near its target needs no further round.
const NEAR_ENOUGH: f64 = 0.01;
/// A rate further off than this is doubtful.
const DOUBTFUL: f64 = 0.05;
/// More copies of the model's sessions than this are doubtful: many copies of few sessions are
/// smoother than many sessions.
const MANY: f64 = 10.0;
/// Rates of single seeds further apart than this share of the lowest are told.
const UNEVEN: f64 = 0.25;
/// One round changes sessions by no more than this factor.
const LEAP: f64 = 2.0;
/// Where more sessions bring less than this share of what they offer, the network is full.
const FULL: f64 = 0.25;
/// An open-loop background that loses more than this share alone is doubtful: it does not slow down, and
/// real traffic would.
const LOSSY: f64 = 0.01;

/// Pieces in which less than this part of the mean load comes do not tell which share is carried.
const LITTLE: f64 = 0.2;
/// What sessions offer is carried in the end, unless the network is full: what pieces miss of it by no more
/// than this share comes later.
const LATER: f64 = 0.1;

/// What was found.
pub(super) struct Calibration {
    pub measured: Rates,
    pub warnings: Vec<Warning>,
}

/// What one piece of a run told.
#[derive(Clone, Copy, Debug)]
struct Piece {
    carried: MeasuredRates,
    offered: Option<Offered>,
}

/// What a factor on sessions leads to, up and down, bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Try {
    pace: Option<f64>,
    /// What is expected to be carried in the mean over all draws.
    rate: [f64; 2],
    /// Carried per offered.
    share: [f64; 2],
    /// Lost at the bottleneck, of what arrived there.
    lost: f64,
}

/// A background being measured.
struct Search {
    target: Option<f64>,
    /// The target is what is offered: nothing has to be searched.
    offered: bool,
    /// It waits for the network, and so sends in the end what it has.
    closed: bool,
    /// Sessions, or the speed of a replay, to try next; `None` for what has no such knob.
    pace: Option<f64>,
    tried: Vec<Try>,
    done: bool,
}

/// A background of the file with its search.
struct Job<'p> {
    /// Its place in the file.
    index: usize,
    background: &'p Part,
    search: Search,
}

/// Measures what the plan says must be measured: first what does not depend on others' rates, then what
/// matches them. `None` where it was cancelled.
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
    let pieces = pieces(plan, stages.iter().map(Vec::len).sum());
    for stage in stages {
        let mut jobs: Vec<Job<'_>> = Vec::with_capacity(stage.len());
        for background in stage {
            jobs.push(begin(plan, background, &calibration.measured));
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
        for _ in 0..ROUNDS {
            if site.round(&mut jobs)?.is_none() {
                return Ok(None);
            }
        }
        let mut found = Vec::with_capacity(jobs.len());
        for job in jobs {
            found.extend(site.end(job)?);
        }
        for (name, measured, warnings) in found {
            calibration.measured.insert(name, measured);
            calibration.warnings.extend(warnings);
        }
    }
    Ok(Some(calibration))
}

/// Pieces that each search may take in a round: how many replications, and how long each is.
fn pieces(plan: &Plan, searches: usize) -> (u32, Dur, Dur) {
    let run = &plan.file.run;
    let all = plan.cells.len() as f64 * run.duration.as_secs_f64();
    let each = SHARE * all / (searches.max(1) * ROUNDS) as f64;
    let settle = SETTLE.min(run.warmup);
    let whole = (PIECE + settle).min(run.duration);
    let n = (each / whole.as_secs_f64()) as u32;
    if n == 0 {
        let length = Dur::from_secs_f64(each).max(SHORTEST).min(run.duration);
        return (1, settle.min(length / 4), length);
    }
    (n.min(run.replications), settle.min(whole / 4), whole)
}

fn begin<'p>(plan: &'p Plan, background: &'p Part, measured: &Rates) -> Job<'p> {
    let target = plan.target_bps(background, measured);
    let given = background.as_keys().pace().given();
    let native = plan.native_bps(background, measured);
    let pace = match target {
        Some(t) if native > 0.0 => Some(t / native),
        _ => given,
    };
    Job {
        index: plan
            .file
            .background
            .iter()
            .position(|b| b.name() == background.name())
            .unwrap_or(0),
        background,
        search: Search {
            target,
            offered: background.load() == LoadBasis::Offered,
            closed: !background.is_open_loop(),
            pace,
            tried: Vec::new(),
            done: false,
        },
    }
}

/// Where pieces are run.
struct Site<'s> {
    plan: &'s Plan,
    backend: &'s dyn Backend,
    dir: &'s Directory<'s>,
    threads: usize,
    events: &'s (dyn Fn(Event<'_>) + Sync),
    cancelled: &'s (dyn Fn() -> bool + Sync),
    /// Pieces of a search in a round, the part of each that settles, and its length.
    pieces: (u32, Dur, Dur),
    /// Rates that backgrounds of this stage may match.
    known: &'s Rates,
}

impl Site<'_> {
    /// One round of all searches that are not done. `None` where it was cancelled.
    fn round(&self, jobs: &mut [Job<'_>]) -> Result<Option<()>, Failure> {
        let (n, settle, length) = self.pieces;
        let run = &self.plan.file.run;
        // Where nobody knows what a draw offers, nothing less than the runs themselves says what they carry.
        // So it is where the network changes while they run.
        let changes = self.plan.file.changes() || !self.plan.deliveries.is_empty();
        let whole = |job: &Job<'_>| changes || !job.background.as_keys().foretells();
        let runs: Vec<(usize, u32)> = (jobs.iter().enumerate())
            .filter(|(_, job)| !job.search.done)
            .flat_map(|(i, job)| {
                let n = if whole(job) { run.replications } else { n };
                (0..n).map(move |r| (i, r))
            })
            .collect();
        if runs.is_empty() {
            return Ok(Some(()));
        }
        let path = |&(i, replication): &(usize, u32)| {
            let job = &jobs[i];
            (self.dir).measurement(job.index, replication, job.search.pace)
        };
        let finished = runs.iter().filter(|j| path(j).exists()).count();
        (self.events)(Event::Stage {
            name: "measuring",
            runs: runs.len(),
            finished,
        });
        let progress = pool::Progress::new(0, runs.len(), self.events);
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
            let offered = self.backend.offered(&spec).map_err(failed)?;
            let place = path(which);
            if let Ok(text) = fs::read(&place)
                && let Ok(carried) = serde_json::from_slice(&text)
            {
                progress.share(slot, 1.0);
                return Ok(Piece { carried, offered });
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
            Ok(Piece { carried, offered })
        };
        let pieces = match pool::over_cores(self.threads, &runs, &work, self.cancelled) {
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
        for (i, job) in jobs.iter_mut().enumerate() {
            let mine = runs.iter().zip(&pieces).filter(|(which, _)| which.0 == i);
            let mine: Vec<Piece> = mine.map(|(_, p)| *p).collect();
            if !mine.is_empty() {
                job.search.learn(&mine);
            }
        }
        Ok(Some(()))
    }

    fn alone(&self, background: &Part, replication: u32, pace: Option<f64>) -> RunSpec {
        (self.plan).alone(background, replication, pace, self.known)
    }

    /// What is known of a background when its search is over: its name, the rates that its runs will
    /// carry, and doubts about them.
    fn end(&self, job: Job<'_>) -> Result<Option<(String, Measured, Vec<Warning>)>, Failure> {
        let Some(best) = job.search.best() else {
            return Ok(None);
        };
        let mut each = [Vec::new(), Vec::new()];
        for replication in 0..self.plan.file.run.replications {
            let spec = self.alone(job.background, replication, best.pace);
            let offered = self.backend.offered(&spec).map_err(|reason| Failure::Run {
                cell: spec.cell.clone(),
                reason,
            })?;
            for (d, rates) in each.iter_mut().enumerate() {
                rates.push(offered.map_or(best.rate[d], |o| o.drawn[d] * best.share[d]));
            }
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
            ..Measured::default()
        };
        *job.background.as_keys().pace().place(&mut measured) = best.pace;
        let name = job.background.name();
        let mut warnings: Vec<Warning> = missed(name, &job.search, &best).into_iter().collect();
        if job.background.is_open_loop() && best.lost > LOSSY {
            warnings.push(Warning::warning(
                "open-loop-loss",
                format!(
                    "background {name} loses {:.1} % of its packets with the network to itself: it does not slow down, as the traffic that it stands for would",
                    best.lost * 100.0
                ),
            ));
        }
        warnings.extend(best_doubts(name, &measured));
        Ok(Some((name.into(), measured, warnings)))
    }
}

impl Search {
    /// Takes the pieces of one round, and decides what to try next.
    fn learn(&mut self, pieces: &[Piece]) {
        let n = pieces.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Piece) -> f64| pieces.iter().map(of).sum::<f64>() / n;
        let carried = [mean(&|p| p.carried.up_bps), mean(&|p| p.carried.down_bps)];
        let known = pieces.iter().all(|p| p.offered.is_some());
        let (mut rate, mut share) = (carried, [1.0; 2]);
        let mut silent = carried[1] <= 0.0;
        if known {
            let offered = |of: fn(&Offered) -> [f64; 2], d: usize| {
                mean(&|p| p.offered.as_ref().map_or(0.0, |o| of(o)[d]))
            };
            silent &= offered(|o| o.drawn, 1) > 0.0;
            for d in 0..2 {
                let (drawn, average) = (offered(|o| o.drawn, d), offered(|o| o.mean, d));
                if average > 0.0 {
                    if drawn > LITTLE * average {
                        share[d] = carried[d] / drawn;
                    }
                    if self.closed && (1.0 - LATER..1.0).contains(&share[d]) {
                        share[d] = 1.0;
                    }
                    rate[d] = share[d] * average;
                }
            }
            if silent {
                rate[1] = 0.0;
            }
        }
        let lost = mean(&|p| p.carried.lost);
        let pace = self.pace;
        self.tried.push(Try {
            pace,
            rate,
            share,
            lost,
        });
        let (Some(target), Some(k), false) = (self.target, pace, self.offered) else {
            self.done = true;
            return;
        };
        let near = (rate[1] / target - 1.0).abs() <= NEAR_ENOUGH;
        // Or what came on top of the try before did not get through.
        let full = match self.tried[..] {
            [.., before, now] => {
                let more = now.pace.unwrap_or(1.0) / before.pace.unwrap_or(1.0) - 1.0;
                more > 0.0 && now.rate[1] / before.rate[1] - 1.0 < FULL * more
            }
            _ => false,
        };
        if near || silent || full {
            self.done = true;
            return;
        }
        let next = k * target / rate[1];
        self.pace = Some(next.clamp(k / LEAP, k * LEAP));
    }

    fn off(&self, t: &Try) -> f64 {
        self.target
            .map_or(0.0, |target| (t.rate[1] / target - 1.0).abs())
    }

    /// The try nearest to the target. Where more sessions did not bring the network to carry it, that of fewest:
    /// it offers what was asked for.
    fn best(&self) -> Option<Try> {
        let tried = || self.tried.iter().copied();
        let fewest = |a: &Try, b: &Try| {
            let pace = |t: &Try| t.pace.unwrap_or(0.0);
            pace(a).total_cmp(&pace(b))
        };
        let nearest = tried().min_by(|a, b| self.off(a).total_cmp(&self.off(b)))?;
        let short = |t: Try| self.target.is_some_and(|target| t.rate[1] < target);
        if self.off(&nearest) > DOUBTFUL && tried().all(short) {
            return tried().min_by(fewest);
        }
        Some(nearest)
    }
}

/// A doubt where the target is not near.
fn missed(name: &str, search: &Search, best: &Try) -> Option<Warning> {
    let target = search.target?;
    if search.off(best) <= DOUBTFUL {
        return None;
    }
    let (mega, came) = (target / 1e6, best.rate[1] / 1e6);
    let pace = best.pace.unwrap_or(1.0);
    let why = match best.rate[1] > 0.0 {
        true => "the network carries no more",
        false => "nothing came through",
    };
    Some(Warning::warning(
        "rate-missed",
        format!(
            "background {name}: {mega:.2} Mbit/s were asked for, {came:.2} Mbit/s came of {pace:.3} times its own load: {why}",
        ),
    ))
}
/// Doubts that the measured rates of background `name` raise.
fn best_doubts(name: &str, m: &Measured) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let mega = |bps: f64| bps / 1e6;
    if m.target_bps.is_some() && m.up_bps > m.down_bps {
        doubts.push(Warning::warning(
            "up-exceeds-down",
            format!(
                "background {name}: it was scaled until {:.2} Mbit/s flow down, and {:.2} Mbit/s flow up: the up link may be the bottleneck",
                mega(m.down_bps),
                mega(m.up_bps),
            ),
        ));
    }
    if let Some(k) = m.sessions
        && k > MANY
    {
        doubts.push(Warning::warning(
            "many-copies",
            format!(
                "background {name}: {k:.1} x the model's sessions: many copies of few sessions are smoother than real traffic of this rate; learn from a busier link",
            ),
        ));
    }
    let each = || m.down_bps_each.iter().copied();
    let (low, high) = each().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
    if high > (1.0 + UNEVEN) * low {
        doubts.push(Warning::note(
            "uneven-seeds",
            format!(
                "background {name}: {:.2} to {:.2} Mbit/s down by seed; what is scaled to it or matches it equals its mean over the seeds only",
                mega(low),
                mega(high),
            ),
        ));
    }
    doubts
}

#[cfg(test)]
mod tests;
