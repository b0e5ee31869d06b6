//! Whole runs, where short pieces do not show what a background carries alone.
//!
//! If queues or losses delay transfers, some outlast a short piece, and the piece carries too small a share. The next
//! pieces of a run carry the rest. So pieces are measured only where the network hardly shapes the traffic.
//!
//! Whole runs cost as much as those of the experiment. What a run carries mostly follows from what its draw offers, so
//! a sample of the replications is enough where the others can be told from it.

use super::job::{Job, Site};
use super::search::{LITTLE, Line, Piece, known};
use crate::backend::RunSpec;
use swell_base::Direction;

/// Above this mean utilization of a link, bursts often fill it, and whole runs are measured.
const BUSY: f64 = 0.05;
/// If a piece loses more than this share of its packets, losses shape the traffic.
const LOSSES: f64 = 0.001;
/// If pieces carry more or less than their draws offer by more than this share, the network shapes the traffic.
const APART: f64 = 0.05;
/// A direction with no more than this share of the bytes may have acknowledgements only.
const MINOR: f64 = 0.1;
/// A sample is enough if it tells what another run carries within this share, at 95 %.
const TOLD: f64 = 0.05;
/// If one draw offers more than so many times as much as another, a few sessions decide what a run carries, and when they
/// happen to begin. Then no sample tells it.
const ALIKE: f64 = 2.0;
/// The first sample is this share of the replications, and at least so many.
const SAMPLE: (f64, usize) = (0.25, 4);

impl Site<'_> {
    /// Whether whole runs of all replications are measured: short pieces are not representative if the network shapes
    /// the traffic or changes during a run, or if the offered rate of a draw is unknown. Nor have they energy at
    /// timescales longer than they are.
    pub(super) fn whole(&self, job: &Job<'_>) -> bool {
        let changes = self.plan.file.changes() || !self.plan.deliveries.is_empty();
        let energy = job.background.energy();
        changes
            || job.shaped
            || !job.background.keys().foretells()
            || energy.is_some_and(|energy| energy.shortest() > self.pieces.2)
    }

    /// Looks for backgrounds that would load a link so much that pieces need not be tried.
    pub(super) fn look_for_busy(&self, jobs: &mut [Job<'_>]) {
        for job in jobs.iter_mut().filter(|job| !job.search.done) {
            if self.whole(job) {
                continue;
            }
            let spec = self.alone(job.background, 0, job.search.pace);
            if job
                .mean()
                .is_some_and(|mean| utilization(&spec, mean) > BUSY)
            {
                job.measure_runs();
            }
        }
    }

    /// The replications of a job to measure. The phase of a delivery trace differs by seed, whatever the draw.
    pub(super) fn sample(&self, job: &Job<'_>) -> Vec<u32> {
        let offered = job.offered(job.search.pace);
        let drawn: Vec<Option<[f64; 2]>> = offered.iter().map(|o| o.map(|o| o.drawn)).collect();
        match self.plan.deliveries.is_empty() {
            true => sample(&drawn, job.runs),
            false => (0..self.plan.file.run.replications).collect(),
        }
    }
}

impl Job<'_> {
    /// Measures whole runs from now on. What pieces have shown is forgotten.
    pub(super) fn measure_runs(&mut self) {
        self.shaped = true;
        self.search.tried.clear();
    }

    /// Evaluates a sample of the whole runs. If it is too small to tell what the others carry, the next one is larger.
    pub(super) fn learn_runs(&mut self, runs: &[Piece], replications: u32) {
        let all = runs.len() >= replications as usize;
        if all || is_enough(runs) {
            self.search.learn_runs(runs);
        } else {
            self.runs = 2 * runs.len();
        }
    }
}

/// How many of the replications are measured at first.
pub(super) fn first(replications: u32) -> usize {
    let (share, least) = SAMPLE;
    least.max((share * f64::from(replications)).ceil() as usize)
}

/// The replications to measure, `n` at least: evenly spaced by what their draws offer, with the smallest and the largest
/// draw, so that the others are not outside of what was measured. All where the draws are not known or not alike.
fn sample(drawn: &[Option<[f64; 2]>], n: usize) -> Vec<u32> {
    let all = 0..drawn.len() as u32;
    let Some(mut ranked) = (all.clone().zip(drawn))
        .map(|(r, rates)| rates.map(|[up, down]| (up + down, r)))
        .collect::<Option<Vec<(f64, u32)>>>()
        .filter(|ranked| {
            (2..ranked.len()).contains(&n) && Direction::BOTH.into_iter().all(|d| alike(drawn, d))
        })
    else {
        return all.collect();
    };
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = ranked.len() - 1;
    let mut chosen: Vec<u32> = (0..n)
        .map(|i| ranked[(i * last + (n - 1) / 2) / (n - 1)].1)
        .collect();
    chosen.sort_unstable();
    chosen
}

/// Mean utilization of the slowest links of a background's paths by these rates, the larger of both directions.
fn utilization(spec: &RunSpec, mean: [f64; 2]) -> f64 {
    let share = |d: Direction| {
        let parts = spec.background.iter();
        let rates = parts.map(|part| spec.link(spec.narrowest(&part.path)[d]).rate.bps());
        mean[d] / rates.min().unwrap_or(u64::MAX).max(1) as f64
    };
    share(Direction::Up).max(share(Direction::Down))
}

/// Whether pieces show that the network shapes the traffic, in one direction or the other.
pub(super) fn shaped(pieces: &[Piece]) -> bool {
    if !known(pieces) || pieces.iter().any(|p| p.carried.lost > LOSSES) {
        return true;
    }
    let sum = |of: &dyn Fn(&Piece) -> f64| pieces.iter().map(of).sum::<f64>();
    let drawn = Direction::BOTH.map(|d| sum(&|p| p.drawn(d)));
    Direction::BOTH.into_iter().any(|d| {
        let (carried, mean) = (sum(&|p| p.rates()[d]), sum(&|p| p.mean(d)));
        // Draws that offer little show too little of the network, and how acknowledgements are grouped shapes no data.
        let shows = drawn[d] > LITTLE * mean && drawn[d] > MINOR * (drawn[0] + drawn[1]);
        shows && (carried / drawn[d] - 1.0).abs() > APART
    })
}

/// Whether all draws offer about the same in a direction.
fn alike(drawn: &[Option<[f64; 2]>], d: Direction) -> bool {
    let rates = || drawn.iter().flatten().map(|rates| rates[d]);
    rates().fold(0.0, f64::max) <= ALIKE * rates().fold(f64::INFINITY, f64::min)
}

/// Whether a sample of the runs tells what the others carry: the 95 % prediction interval of the regression is narrow.
fn is_enough(runs: &[Piece]) -> bool {
    let n = runs.len() as f64;
    let freedom = n - 2.0;
    let narrow = |d: Direction| {
        let line = Line::of(runs, d);
        let residual = |p: &Piece| p.rates()[d] - line.at(p.drawn(d));
        let squares: f64 = runs.iter().map(|p| residual(p).powi(2)).sum();
        let error = (squares / freedom * (1.0 + 1.0 / n)).sqrt();
        swell_stats::t_quantile(0.975, freedom) * error <= TOLD * line.carried
    };
    let sends = runs.iter().any(|p| p.rates() != [0.0; 2]);
    freedom >= 1.0 && known(runs) && sends && Direction::BOTH.into_iter().all(narrow)
}

#[cfg(test)]
mod tests;
