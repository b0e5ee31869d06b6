//! Before the runs: measuring backgrounds alone, and scaling sessions until a rate is reached.

use std::collections::BTreeMap;
use std::fs;

use swell_base::Warning;

use super::{Directory, Event, Failure, Rates, pool};
use crate::backend::{Backend, MeasuredRates, RunError, RunSpec};
use crate::file::Background;
use crate::plan::Plan;
use crate::store::{Measured, StoreError, write_atomically};

/// Times that sessions are scaled anew.
const ROUNDS: usize = 3;
/// A rate this near its target needs no further round.
const NEAR_ENOUGH: f64 = 0.01;
/// A rate further off than this is doubtful.
const DOUBTFUL: f64 = 0.05;
/// More copies of the model's sessions than this are doubtful: many copies of few sessions are
/// smoother than many sessions.
const MANY: f64 = 10.0;
/// Rates of single seeds further apart than this share of the lowest are told.
const UNEVEN: f64 = 0.25;
/// One round changes sessions by no more than this factor: a measurement near saturation says
/// little about what lies far beyond it.
const LEAP: f64 = 4.0;

/// What was found.
pub(super) struct Calibration {
    pub measured: Rates,
    pub warnings: Vec<Warning>,
}

/// A background being measured.
struct Search<'s> {
    /// Its place in the file.
    index: usize,
    background: &'s Background,
    target: Option<f64>,
    /// Sessions, or the speed of a replay, to try next; `None` for what has no such knob.
    pace: Option<f64>,
    tried: Vec<(Option<f64>, Measured)>,
    done: bool,
}

/// Measures what the plan says must be measured. `None` where it was cancelled.
pub(super) fn calibrate(
    plan: &Plan,
    backend: &dyn Backend,
    dir: &Directory<'_>,
    threads: usize,
    events: &(dyn Fn(Event<'_>) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Calibration>, Failure> {
    let mut searches: Vec<Search<'_>> = plan
        .to_measure()
        .into_iter()
        .map(|b| begin(plan, b))
        .collect();
    for _ in 0..ROUNDS {
        let jobs: Vec<(usize, u32)> = searches
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.done)
            .flat_map(|(i, _)| (0..plan.file.run.replications).map(move |r| (i, r)))
            .collect();
        if jobs.is_empty() {
            break;
        }
        let path = |&(i, replication): &(usize, u32)| {
            let s = &searches[i];
            dir.measurement(s.index, replication, s.pace)
        };
        let finished = jobs.iter().filter(|j| path(j).exists()).count();
        events(Event::Stage {
            name: "measuring",
            runs: jobs.len(),
            finished,
        });
        let progress = pool::Progress::new(0, jobs.len(), events);
        let work = |slot: usize, job: &(usize, u32)| -> Result<MeasuredRates, Failure> {
            let place = path(job);
            if let Ok(text) = fs::read(&place)
                && let Ok(rates) = serde_json::from_slice(&text)
            {
                progress.share(slot, 1.0);
                return Ok(rates);
            }
            let search = &searches[job.0];
            let spec: RunSpec = plan.alone(search.background, job.1, search.pace);
            let rates = backend
                .measure(&spec, &|share| progress.share(slot, share), cancelled)
                .map_err(|reason| Failure::Run {
                    cell: spec.cell.clone(),
                    reason,
                })?;
            let text = serde_json::to_vec(&rates).map_err(|source| StoreError::Manifest {
                path: place.clone(),
                source,
            })?;
            write_atomically(&place, &text)?;
            progress.share(slot, 1.0);
            Ok(rates)
        };
        let rates = match pool::over_cores(threads, &jobs, &work, cancelled) {
            Ok(rates) => rates,
            Err(Failure::Run {
                reason: RunError::Cancelled,
                ..
            }) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let Some(rates) = rates.into_iter().collect::<Option<Vec<MeasuredRates>>>() else {
            return Ok(None);
        };
        for (i, search) in searches.iter_mut().enumerate() {
            let mine: Vec<MeasuredRates> = jobs
                .iter()
                .zip(&rates)
                .filter(|(job, _)| job.0 == i)
                .map(|(_, r)| *r)
                .collect();
            if !mine.is_empty() {
                search.learn(&mine);
            }
        }
    }
    let mut calibration = Calibration {
        measured: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for search in searches {
        search.end(&mut calibration);
    }
    Ok(Some(calibration))
}

fn begin<'p>(plan: &'p Plan, background: &'p Background) -> Search<'p> {
    let target = background.target().map(|r| r.bps() as f64);
    let given = match background {
        Background::Learnt(b) => Some(b.sessions.unwrap_or(1.0)),
        Background::Sessions(b) => Some(b.load.unwrap_or(1.0)),
        Background::Replay(b) => Some(1.0 / b.stretch.unwrap_or(1.0)),
        _ => None,
    };
    let native = plan.native_bps(background.name());
    let pace = match target {
        Some(t) if native > 0.0 => Some(t / native),
        _ => given,
    };
    Search {
        index: plan
            .file
            .background
            .iter()
            .position(|b| b.name() == background.name())
            .unwrap_or(0),
        background,
        target,
        pace,
        tried: Vec::new(),
        done: false,
    }
}

impl Search<'_> {
    /// Takes the rates of all replications of one round, and decides what to try next.
    fn learn(&mut self, rates: &[MeasuredRates]) {
        let n = rates.len() as f64;
        let down_bps = rates.iter().map(|r| r.down_bps).sum::<f64>() / n;
        let replay = matches!(self.background, Background::Replay(_));
        let measured = Measured {
            up_bps: rates.iter().map(|r| r.up_bps).sum::<f64>() / n,
            down_bps,
            down_bps_each: rates.iter().map(|r| r.down_bps).collect(),
            target_bps: self.target,
            speed: self.pace.filter(|_| replay),
            sessions: self.pace.filter(|_| !replay),
        };
        self.tried.push((self.pace, measured));
        let (Some(target), Some(k)) = (self.target, self.pace) else {
            self.done = true;
            return;
        };
        if (down_bps / target - 1.0).abs() <= NEAR_ENOUGH {
            self.done = true;
            return;
        }
        let proportional = if down_bps > 0.0 {
            k * target / down_bps
        } else {
            k * LEAP
        };
        let next = match self.tried[..] {
            [.., (before_pace, ref before), (now_pace, ref now)] => {
                let rise = (now.down_bps - before.down_bps)
                    / (now_pace.unwrap_or(k) - before_pace.unwrap_or(k));
                // More sessions never mean less traffic; where noise says so, do not believe it.
                if rise.is_finite() && rise > 0.0 {
                    k + (target - down_bps) / rise
                } else {
                    proportional
                }
            }
            _ => proportional,
        };
        self.pace = Some(next.clamp(k / LEAP, k * LEAP));
    }

    /// Adds the try nearest to the target, and a doubt where it is not near.
    fn end(self, calibration: &mut Calibration) {
        let name = self.background.name();
        let off = |m: &Measured| self.target.map_or(0.0, |t| (m.down_bps / t - 1.0).abs());
        let Some(best) = self
            .tried
            .into_iter()
            .map(|(_, measured)| measured)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
        else {
            return;
        };
        if let Some(target) = self.target
            && off(&best) > DOUBTFUL
        {
            let (mega, came) = (target / 1e6, best.down_bps / 1e6);
            let how = match best.speed {
                Some(speed) => format!(
                    "a replay at {speed:.3} times its speed; longer runs or more replications"
                ),
                None => format!(
                    "{:.3} x the model's sessions; longer runs or more replications",
                    best.sessions.unwrap_or(1.0)
                ),
            };
            calibration.warnings.push(Warning::warning(
                "rate-missed",
                format!(
                    "background {name}: {mega:.2} Mbit/s were asked for, {came:.2} Mbit/s came of {how} steady the rate, and nothing exceeds the link",
                ),
            ));
        }
        calibration.warnings.extend(best_doubts(name, &best));
        calibration.measured.insert(name.into(), best);
    }
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
mod tests {
    use super::*;

    fn codes(m: &Measured) -> Vec<String> {
        best_doubts("x", m).into_iter().map(|d| d.code).collect()
    }

    #[test]
    fn measured_rates_are_doubted_where_they_should_be() {
        let fine = Measured {
            up_bps: 1e6,
            down_bps: 8e6,
            down_bps_each: vec![7e6, 8.7e6],
            target_bps: Some(8e6),
            speed: None,
            sessions: Some(9.9),
        };
        assert_eq!(codes(&fine), Vec::<String>::new());
        let up = Measured {
            up_bps: 8.1e6,
            ..fine.clone()
        };
        assert_eq!(codes(&up), ["up-exceeds-down"]);
        // What nobody scaled has the direction it has.
        let native = Measured {
            target_bps: None,
            ..up
        };
        assert_eq!(codes(&native), Vec::<String>::new());
        let many = Measured {
            sessions: Some(10.1),
            ..fine.clone()
        };
        assert_eq!(codes(&many), ["many-copies"]);
        let uneven = Measured {
            down_bps_each: vec![7e6, 8.8e6],
            ..fine
        };
        assert_eq!(codes(&uneven), ["uneven-seeds"]);
    }
}
