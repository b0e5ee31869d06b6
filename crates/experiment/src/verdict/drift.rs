//! Runs that are not stationary: a mean over them is a mean of different things.
//!
//! Halves of a run are compared, run by run. Where nothing drifts the two halves change places freely, so that the
//! logarithm of their ratio is symmetric about zero, whatever its tails, and Student's t errs on the safe side.

use std::cmp::Reverse;

use swell_stats::{KaplanMeier, MIN_REPLICATIONS, Observation, PairedRatio};

use super::{Condition, MARGIN, request_time, values};
use crate::file::Bottleneck;
use crate::store::{Results, RunResult};

/// A drift is one where chance would show it in less than this share of stationary experiments, one test each way.
const CHANCE: f64 = 0.005;

/// A load whose halves differ by more than this is two loads.
const LOAD: f64 = 0.25;

/// Requests that half a run must have, for its median to mean something.
const REQUESTS: usize = 5;

/// Less than this share of the capacity is no load.
const NOTHING: f64 = 0.01;

/// What drifts with `with` beside `alone`. Networks that change change everything, and traffic in
/// windows is not meant to be steady: both are left alone.
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

/// The second value over the first, where the ratio is beyond `margin` and not by chance.
fn drifted(halves: &[[f64; 2]], margin: f64) -> Option<f64> {
    let of = |i: usize| -> Vec<f64> { halves.iter().map(|h| h[i]).collect() };
    let ratio = PairedRatio::of_values(&of(1), &of(0))?;
    let (above, below) = (
        ratio.p_above(1.0 + margin),
        ratio.p_below(1.0 / (1.0 + margin)),
    );
    (above.min(below) <= CHANCE).then(|| ratio.value())
}

/// Bytes of the background that left its slowest link in the first and the second half of a run after the warm-up.
fn load(results: &Results, run: &RunResult, bottleneck: &Bottleneck) -> Option<[f64; 2]> {
    let file = &results.experiment;
    let (warm, bin) = (file.run.warmup.as_secs_f64(), file.run.bins.as_secs_f64());
    let bins: Vec<f64> = run
        .observed
        .bins
        .iter()
        // A bin that begins with the warm-up's end may do so by a rounding error less.
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

/// Median request times of the first and the second half of a run, by when requests began.
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
