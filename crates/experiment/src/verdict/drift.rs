//! Detects runs that are not stationary. An average over such a run mixes different conditions.
//!
//! The test compares the two halves of each run. Without drift the halves are exchangeable, so the logarithm of their
//! ratio is symmetric about zero, however heavy its tails. Student's t is conservative for such data.

use std::cmp::Reverse;

use swell_stats::{KaplanMeier, MIN_REPLICATIONS, Observation, PairedRatio};

use super::{Condition, MARGIN, request_time, values};
use crate::file::Bottleneck;
use crate::store::{Results, RunResult};

/// Significance level of a drift: the share of stationary experiments in which chance shows one, per one-sided test.
const CHANCE: f64 = 0.005;

/// A load is unsteady if its halves differ by more than this share.
const LOAD: f64 = 0.25;

/// Requests that each half of a run needs for a meaningful median.
const REQUESTS: usize = 5;

/// Added to both halves of a load as a share of the capacity, so that ratios of negligible loads stay near one.
const NOTHING: f64 = 0.01;

/// Drifts of the load of `with`, and of its effect on request times compared with `alone`. Experiments with network
/// changes or with traffic in time windows are not meant to be stationary, so they are not tested.
pub(super) fn of(results: &Results, with: &Condition<'_>, alone: &Condition<'_>) -> Vec<String> {
    let pairs = values::pairs(with, alone);
    let file = &results.experiment;
    let parts = file.leaves(with.background);
    let windows = parts.iter().any(|part| part.active().is_some());
    if pairs.len() < MIN_REPLICATIONS || file.changes() || windows {
        return Vec::new();
    }
    let name = with.background.name();
    let mut found = Vec::new();
    let mut narrowest: Vec<Bottleneck> = parts
        .iter()
        .filter_map(|part| file.narrowest(part))
        .flatten()
        .collect();
    narrowest.sort_by_key(|bottleneck| Reverse(bottleneck.queue));
    narrowest.dedup();
    for bottleneck in &narrowest {
        let way = ["up", "down"][usize::from(bottleneck.queue.direction)];
        let halves: Option<Vec<[f64; 2]>> = pairs
            .each()
            .map(|p| load(results, p.0, bottleneck))
            .collect();
        if let Some(factor) = halves.and_then(|h| drifted(&h, LOAD)) {
            found.push(format!(
                "the load of {name} {way} is not steady: {factor:.2} times in the second half of a run what it is in the first"
            ));
        }
    }
    let halves: Option<Vec<[f64; 2]>> = pairs
        .each()
        .map(|p| {
            let ([a, b], [c, d]) = (medians(p.0)?, medians(p.1)?);
            Some([a / c, b / d])
        })
        .collect();
    if let Some(factor) = halves.and_then(|h| drifted(&h, MARGIN)) {
        found.push(format!(
            "what {name} does to request times is not steady: {factor:.2} times in the second half of a run what it is in the first"
        ));
    }
    found
}

/// The ratio of the second half to the first, where it is significantly beyond `margin`.
fn drifted(halves: &[[f64; 2]], margin: f64) -> Option<f64> {
    let of = |i: usize| -> Vec<f64> { halves.iter().map(|h| h[i]).collect() };
    let ratio = PairedRatio::of_values(&of(1), &of(0))?;
    let (above, below) = (
        ratio.p_above(1.0 + margin),
        ratio.p_below(1.0 / (1.0 + margin)),
    );
    (above.min(below) <= CHANCE).then(|| ratio.value())
}

/// Background bytes that left its bottleneck in the first and the second half of a run after the warm-up.
fn load(results: &Results, run: &RunResult, bottleneck: &Bottleneck) -> Option<[f64; 2]> {
    let file = &results.experiment;
    let (warm, bin) = (file.run.warmup.as_secs_f64(), file.run.bins.as_secs_f64());
    let bins: Vec<f64> = run
        .observed
        .bins
        .iter()
        // Half a bin of tolerance: rounding may place the first bin slightly before the end of the warm-up.
        .filter(|b| bottleneck.is(&b.link, b.direction) && b.time > warm - bin / 2.0)
        .map(|b| b.departed[1] as f64)
        .collect();
    let half = bins.len() / 2;
    let rate = bottleneck.rate.bps() as f64;
    let floor = NOTHING * rate / 8.0 * bin * half as f64;
    (half > 0).then(|| {
        [&bins[..half], &bins[bins.len() - half..]].map(|part| part.iter().sum::<f64>() + floor)
    })
}

/// Median request times of the first and the second half of a run, split by the start times of requests.
fn medians(run: &RunResult) -> Option<[f64; 2]> {
    let requests = &run.observed.requests;
    let first = requests.iter().map(|r| r.start).reduce(f64::min)?;
    let last = requests.iter().map(|r| r.start).reduce(f64::max)?;
    let middle = f64::midpoint(first, last);
    let median = |late: bool| {
        let own: Vec<Observation> = requests
            .iter()
            .filter(|r| (r.start > middle) == late)
            .map(request_time)
            .collect();
        let enough = own.len() >= REQUESTS;
        KaplanMeier::new(own).quantile(0.5).filter(|_| enough)
    };
    Some([median(false)?, median(true)?])
}
