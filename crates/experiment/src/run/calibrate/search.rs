//! The search for the pace at which a background carries a rate: what pieces and whole runs have shown, and what is tried
//! next.

use std::collections::BTreeMap;

use swell_base::Direction;

use crate::backend::{MeasuredRates, Offered};

/// Most rounds of scaling the sessions. Near saturation, three are not always enough.
pub(super) const ROUNDS: usize = 4;
/// A rate within this share of its target needs no further round.
const NEAR_ENOUGH: f64 = 0.01;
/// A rate that misses its target by more than this share raises a doubt.
pub(super) const DOUBTFUL: f64 = 0.05;
/// Maximum factor by which one round changes the number of sessions, unless the rate grows in proportion.
pub(super) const LEAP: f64 = 2.0;
/// If a step changes the rate by no more and no less than itself within this share, the rate grows in proportion.
pub(super) const PROPORTIONAL: f64 = 0.1;
/// If additional sessions add less than this share of the rate that they offer, the network is full.
const FULL: f64 = 0.25;
/// Fewer additional sessions, as a share, do not show it: draws differ by as much.
const STEP: f64 = 0.1;
/// Pieces whose draw offers less than this part of the mean load do not show which share is carried.
pub(super) const LITTLE: f64 = 0.2;
/// Closed-loop sessions deliver in the end all that they offer, unless the network is full. If pieces carry less or more
/// by no more than this share, the rest is assumed to come later, or to be of an earlier piece.
const LATER: f64 = 0.1;
/// A rate of whole runs within this share of its target needs no further round: it costs as much as the runs do.
const NEAR: f64 = 0.02;

/// Rates in a run of the background alone, or in one piece of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub replication: u32,
    pub carried: MeasuredRates,
    pub offered: Option<Offered>,
}

impl Piece {
    /// Carried rates up and down, bits per second.
    pub fn rates(&self) -> [f64; 2] {
        [self.carried.up_bps, self.carried.down_bps]
    }

    /// The rate that its draw offers in a direction; 0 where it is unknown.
    pub fn drawn(&self, d: Direction) -> f64 {
        self.offered.map_or(0.0, |o| o.drawn[d])
    }

    /// The rate that all draws offer on average, likewise.
    pub fn mean(&self, d: Direction) -> f64 {
        self.offered.map_or(0.0, |o| o.mean[d])
    }
}

/// The result of one factor on the sessions. Rates are up and down, bits per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Try {
    pub pace: Option<f64>,
    /// Carried rate of each whole run.
    pub each: BTreeMap<u32, [f64; 2]>,
    /// Expected carried rate, as a mean over all draws.
    pub rate: [f64; 2],
    /// Carried rate of a run by the rate that its draw offers.
    pub lines: [Line; 2],
    /// Loss ratio at the bottleneck.
    pub lost: f64,
}

/// A background being measured.
pub(super) struct Search {
    pub target: Option<f64>,
    /// Whether the target is an offered load. Then no search is needed.
    pub offered: bool,
    /// Whether it is closed-loop: it adapts to the network and in the end delivers everything.
    pub closed: bool,
    /// The number of sessions, or the speed of a replay, to try next; `None` if the background has neither parameter.
    pub pace: Option<f64>,
    /// The largest of these that is tried.
    pub most: f64,
    pub tried: Vec<Try>,
    pub done: bool,
    /// Whether most of the rate added by the last try was not carried.
    pub full: bool,
}

impl Search {
    /// The search for a rate with closed-loop traffic.
    pub fn new(target: Option<f64>, pace: Option<f64>) -> Search {
        Search {
            target,
            offered: false,
            closed: true,
            pace,
            most: f64::INFINITY,
            tried: Vec::new(),
            done: false,
            full: false,
        }
    }

    /// Evaluates the pieces of one round, and decides what to try next.
    pub fn learn(&mut self, pieces: &[Piece]) {
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
            silent &= offered(|o| o.drawn, 1) > LITTLE * offered(|o| o.mean, 1);
            for d in 0..2 {
                let (drawn, average) = (offered(|o| o.drawn, d), offered(|o| o.mean, d));
                if average > 0.0 {
                    if drawn > LITTLE * average {
                        share[d] = carried[d] / drawn;
                    }
                    if self.closed && (share[d] - 1.0).abs() <= LATER {
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
        let now = Try {
            pace: self.pace,
            each: BTreeMap::new(),
            rate,
            lines: share.map(Line::through_zero),
            lost,
        };
        self.proceed(now, NEAR_ENOUGH);
    }

    /// Adds a try, and decides what to try next. A rate within `enough` of the target, as a share, needs no more.
    pub fn proceed(&mut self, latest: Try, enough: f64) {
        let (pace, rate) = (latest.pace, latest.rate);
        self.tried.push(latest);
        let (Some(target), Some(k), false) = (self.target, pace, self.offered) else {
            self.done = true;
            return;
        };
        let silent = rate[1] <= 0.0;
        let near = (rate[1] / target - 1.0).abs() <= enough;
        self.full = match &self.tried[..] {
            [.., before, now] => {
                let more = now.pace.unwrap_or(1.0) / before.pace.unwrap_or(1.0) - 1.0;
                more > STEP && now.rate[1] / before.rate[1] - 1.0 < FULL * more
            }
            _ => false,
        };
        if near || silent || self.full || self.tried.len() == ROUNDS {
            self.done = true;
            return;
        }
        let leap = match self.is_proportional() {
            true => f64::INFINITY,
            false => LEAP,
        };
        let next = self.between(target).unwrap_or(k * target / rate[1]);
        let next = next.clamp(k / leap, k * leap).min(self.most);
        self.done = next == k;
        self.pace = Some(next);
    }

    /// Whether the last step changed the rate as much as the pace: then the next one may be as long as it must be.
    pub fn is_proportional(&self) -> bool {
        let [.., before, now] = &self.tried[..] else {
            return false;
        };
        let (Some(from), Some(to)) = (before.pace, now.pace) else {
            return false;
        };
        let step = to / from - 1.0;
        let grown = now.rate[1] / before.rate[1] - 1.0;
        step.abs() > STEP && (grown / step - 1.0).abs() <= PROPORTIONAL
    }

    pub fn off(&self, t: &Try) -> f64 {
        self.target
            .map_or(0.0, |target| (t.rate[1] / target - 1.0).abs())
    }

    /// The try nearest to the target. If the network is full below the target, the result is the try with the fewest
    /// sessions, because it offers the requested rate.
    pub fn best(&self) -> Option<Try> {
        let tried = || self.tried.iter();
        let fewest = |a: &&Try, b: &&Try| {
            let pace = |t: &Try| t.pace.unwrap_or(0.0);
            pace(a).total_cmp(&pace(b))
        };
        let nearest = tried().min_by(|a, b| self.off(a).total_cmp(&self.off(b)))?;
        let short = |t: &Try| self.target.is_some_and(|target| t.rate[1] < target);
        if self.full && self.off(nearest) > DOUBTFUL && tried().all(short) {
            return tried().min_by(fewest).cloned();
        }
        Some(nearest.clone())
    }

    /// Evaluates whole runs of one round, and decides what to try next.
    pub fn learn_runs(&mut self, runs: &[Piece]) {
        let lost = runs.iter().map(|p| p.carried.lost).sum::<f64>();
        let each = runs.iter().map(|p| (p.replication, p.rates()));
        let lines = Direction::BOTH.map(|d| Line::of(runs, d));
        let n = runs.len().max(1) as f64;
        let expected = |d: Direction| match known(runs) {
            true => lines[d].at(runs.iter().map(|p| p.mean(d)).sum::<f64>() / n),
            false => lines[d].carried,
        };
        let now = Try {
            pace: self.pace,
            each: each.collect(),
            rate: Direction::BOTH.map(expected),
            lines,
            lost: lost / runs.len().max(1) as f64,
        };
        self.proceed(now, NEAR);
    }

    /// The pace where a line through the nearest tries below and above the target meets it. `None` if there are no such
    /// tries. With few sessions the rate grows in steps, so scaling the last try could jump to and fro.
    pub fn between(&self, target: f64) -> Option<f64> {
        let by_rate = |a: &&Try, b: &&Try| a.rate[1].total_cmp(&b.rate[1]);
        let tried = || self.tried.iter();
        let low = tried().filter(|t| t.rate[1] < target).max_by(by_rate)?;
        let high = tried().filter(|t| t.rate[1] > target).min_by(by_rate)?;
        let (from, to) = (low.pace?, high.pace?);
        let part = (target - low.rate[1]) / (high.rate[1] - low.rate[1]);
        Some(from + part * (to - from))
    }
}

/// Whether the rates that all draws offer are known.
pub(super) fn known(runs: &[Piece]) -> bool {
    runs.iter().all(|p| p.offered.is_some())
}

/// The rate that runs carry by the rate that their draws offer: the regression estimator (Cochran, Sampling Techniques,
/// 3rd ed., section 7.1), since the offered rates of all draws and their mean are known. On a full link the carried rate
/// does not grow with the offered one, so the slope is small; without queueing it is about one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// Mean offered rate, bits per second.
    offered: f64,
    /// Carried rate there.
    pub carried: f64,
    slope: f64,
}

impl Line {
    /// Every draw carries this share of what it offers.
    pub fn through_zero(share: f64) -> Line {
        Line {
            offered: 0.0,
            carried: 0.0,
            slope: share,
        }
    }

    /// A direction of `runs`.
    pub fn of(runs: &[Piece], d: Direction) -> Line {
        let n = runs.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Piece) -> f64| runs.iter().map(of).sum::<f64>() / n;
        let (offered, carried) = (mean(&|p| p.drawn(d)), mean(&|p| p.rates()[d]));
        let share = match offered > 0.0 {
            true => carried / offered,
            false => 1.0,
        };
        let spread = mean(&|p| (p.drawn(d) - offered).powi(2));
        let slope = match spread > 0.0 {
            true => mean(&|p| (p.drawn(d) - offered) * (p.rates()[d] - carried)) / spread,
            false => share,
        };
        Line {
            offered,
            carried,
            // More offered load never carries less, and additional load carries no larger share than the load that was
            // there.
            slope: slope.clamp(0.0, share),
        }
    }

    /// The carried rate of a draw that offers `drawn`.
    pub fn at(&self, drawn: f64) -> f64 {
        self.carried + self.slope * (drawn - self.offered)
    }
}
