//! Whole runs, where short pieces do not show what a background carries alone.
//!
//! If queues or losses delay transfers, some outlast a short piece, and the piece carries too small a share. The next
//! pieces of a run carry the rest. So pieces are measured only where the network hardly shapes the traffic.

use super::{Failure, Job, LITTLE, Piece, Search, Site, Try};
use crate::backend::{Offered, RunSpec};

/// Above this mean utilization of a link, bursts often fill it, and whole runs are measured.
const BUSY: f64 = 0.05;
/// If a piece loses more than this share of its packets, losses shape the traffic.
const LOSSES: f64 = 0.001;
/// If pieces carry more or less than their draws offer by more than this share, the network shapes the traffic.
const APART: f64 = 0.05;
/// A rate of whole runs within this share of its target needs no further round: it costs as much as the runs do.
const NEAR: f64 = 0.02;

impl Site<'_> {
    /// Whether whole runs of all replications are measured: short pieces are not representative if the network shapes
    /// the traffic or changes during a run, or if the offered rate of a draw is unknown. Nor have they energy at
    /// timescales longer than they are.
    pub(super) fn whole(&self, job: &Job<'_>) -> bool {
        let changes = self.plan.file.changes() || !self.plan.deliveries.is_empty();
        let energy = job.background.energy();
        changes
            || job.shaped
            || !job.background.as_keys().foretells()
            || energy.is_some_and(|energy| energy.shortest() > self.pieces.2)
    }

    /// Looks for backgrounds that would load a link so much that pieces need not be tried.
    pub(super) fn look_for_busy(&self, jobs: &mut [Job<'_>]) -> Result<(), Failure> {
        for job in jobs.iter_mut().filter(|job| !job.search.done) {
            if self.whole(job) {
                continue;
            }
            let spec = self.alone(job.background, 0, job.search.pace);
            let offered = self.backend.offered(&spec).map_err(|reason| Failure::Run {
                cell: spec.cell.clone(),
                reason,
            })?;
            if offered.is_some_and(|offered| utilization(&spec, &offered) > BUSY) {
                job.measure_runs();
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    /// Measures whole runs from now on. What pieces have shown is forgotten.
    pub(super) fn measure_runs(&mut self) {
        self.shaped = true;
        self.search.tried.clear();
    }
}

/// Mean utilization that a background offers to the slowest links of its paths, the larger of both directions.
fn utilization(spec: &RunSpec, offered: &Offered) -> f64 {
    let share = |d: usize| {
        let parts = spec.background.iter();
        let rates = parts.map(|part| spec.link(spec.narrowest(&part.path)[d]).rate.bps());
        offered.mean[d] / rates.min().unwrap_or(u64::MAX).max(1) as f64
    };
    share(0).max(share(1))
}

/// Whether pieces show that the network shapes the traffic.
pub(super) fn shaped(pieces: &[Piece]) -> bool {
    let (mut carried, mut drawn, mut mean) = (0.0, 0.0, 0.0);
    for piece in pieces {
        let Some(offered) = piece.offered else {
            return true;
        };
        carried += piece.carried.up_bps + piece.carried.down_bps;
        drawn += offered.drawn.iter().sum::<f64>();
        mean += offered.mean.iter().sum::<f64>();
    }
    let lossy = pieces.iter().any(|p| p.carried.lost > LOSSES);
    // Draws that offer little show too little of the network.
    lossy || (drawn > LITTLE * mean && (carried / drawn - 1.0).abs() > APART)
}

impl Search {
    /// Evaluates whole runs of one round, and decides what to try next.
    pub(super) fn learn_runs(&mut self, runs: &[Piece]) {
        let lost = runs.iter().map(|p| p.carried.lost).sum::<f64>();
        let each = runs
            .iter()
            .map(|p| [p.carried.up_bps, p.carried.down_bps])
            .collect();
        let now = Try {
            pace: self.pace,
            each,
            rate: [0, 1].map(|d| expected(runs, d)),
            share: [1.0; 2],
            lost: lost / runs.len().max(1) as f64,
        };
        self.proceed(now, NEAR);
    }

    /// The pace where a line through the nearest tries below and above the target meets it. `None` if there are no such
    /// tries. With few sessions the rate grows in steps, so scaling the last try could jump to and fro.
    pub(super) fn between(&self, target: f64) -> Option<f64> {
        let by_rate = |a: &&Try, b: &&Try| a.rate[1].total_cmp(&b.rate[1]);
        let tried = || self.tried.iter();
        let low = tried().filter(|t| t.rate[1] < target).max_by(by_rate)?;
        let high = tried().filter(|t| t.rate[1] > target).min_by(by_rate)?;
        let (from, to) = (low.pace?, high.pace?);
        let part = (target - low.rate[1]) / (high.rate[1] - low.rate[1]);
        Some(from + part * (to - from))
    }
}

/// The rate that runs carry in the mean over all draws: the regression estimator (Cochran, Sampling Techniques, 3rd ed.,
/// section 7.1), with the offered rates, whose mean over all draws is known. On a full link the carried rate does not
/// grow with the offered one, so the slope is small; without queueing it is about one.
fn expected(runs: &[Piece], d: usize) -> f64 {
    let n = runs.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Piece) -> f64| runs.iter().map(of).sum::<f64>() / n;
    let carried = |p: &Piece| [p.carried.up_bps, p.carried.down_bps][d];
    let came = mean(&carried);
    if runs.iter().any(|p| p.offered.is_none()) {
        return came;
    }
    let drawn = |p: &Piece| p.offered.map_or(0.0, |o| o.drawn[d]);
    let all = mean(&|p| p.offered.map_or(0.0, |o| o.mean[d]));
    let offered = mean(&drawn);
    if came <= 0.0 && offered > 0.0 {
        return 0.0;
    }
    let share = if offered > 0.0 { came / offered } else { 1.0 };
    let spread = mean(&|p| (drawn(p) - offered).powi(2));
    let slope = match spread > 0.0 {
        true => mean(&|p| (drawn(p) - offered) * (carried(p) - came)) / spread,
        false => share,
    };
    // More offered load never carries less, and additional load does not carry more than the load that was there.
    came + slope.clamp(0.0, share) * (all - offered)
}

#[cfg(test)]
mod tests;
