//! Detects runs that are not stationary. An average over such a run mixes different conditions.
//!
//! The test compares the two halves of each run. Without drift the halves are exchangeable, so the logarithm of their
//! ratio is symmetric about zero, however heavy its tails. Student's t is conservative for such data.

use std::cmp::Reverse;

use swell_stats::{KaplanMeier, MIN_REPLICATIONS, Observation, PairedRatio};

use super::answer::MARGIN;
use super::condition::{Condition, Pairs, pairs, request_time};
use swell_experiment::file::Bottleneck;
use swell_experiment::store::{Results, RunResult};

/// Significance level of a drift: the share of stationary experiments in which chance shows one, per one-sided test.
const CHANCE: f64 = 0.005;

/// A load is unsteady if its halves differ by more than this share.
const LOAD: f64 = 0.25;

/// Requests that each half needs for a meaningful median.
const REQUESTS: usize = 5;

/// Added to both halves of a load as a share of the capacity, so that ratios of negligible loads stay near one.
const NOTHING: f64 = 0.01;

/// Drifts of the loads of both conditions, and of the ratio of the first's request times to the second's. `results` are
/// those of the first and of the second. Experiments with network changes or with traffic in time windows are not meant
/// to be stationary, so they are not tested.
pub(super) fn of(results: [&Results; 2], [over, under]: [&Condition<'_>; 2]) -> Vec<String> {
    let pairs = pairs(over, under);
    let both = [(results[0], over), (results[1], under)];
    let changes = |(own, side): &(&Results, &Condition<'_>)| {
        let parts = own.experiment.leaves(side.background);
        own.experiment.changes() || parts.iter().any(|part| part.active().is_some())
    };
    if pairs.len() < MIN_REPLICATIONS || both.iter().any(changes) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, (own, side)) in both.into_iter().enumerate() {
        let runs: Vec<&RunResult> = pairs
            .each()
            .map(|pair| if i == 0 { pair.0 } else { pair.1 })
            .collect();
        found.extend(loads(own, side, &runs));
    }
    // A background that is compared with itself says it once.
    found.dedup();
    if let Some(factor) = drifted(&effects(&pairs), MARGIN) {
        let name = over.background.name();
        found.push(format!(
            "what {name} does to request times is not steady: {factor:.2} times in the second half of a run what it is in the first"
        ));
    }
    found
}

/// Drifts of the load of `side` at its bottlenecks.
fn loads(results: &Results, side: &Condition<'_>, runs: &[&RunResult]) -> Vec<String> {
    let file = &results.experiment;
    let name = side.background.name();
    let parts = file.leaves(side.background);
    let parts = parts.iter().filter(|part| !part.is_none());
    let mut narrowest: Vec<Bottleneck> = parts
        .filter_map(|part| file.narrowest(part))
        .flatten()
        .collect();
    narrowest.sort_by_key(|bottleneck| Reverse(bottleneck.queue));
    narrowest.dedup();
    let mut found = Vec::new();
    for bottleneck in &narrowest {
        let way = bottleneck.queue.direction.name();
        let halves: Option<Vec<[f64; 2]>> = runs
            .iter()
            .map(|run| load(results, run, bottleneck))
            .collect();
        if let Some(factor) = halves.and_then(|h| drifted(&h, LOAD)) {
            found.push(format!(
                "the load of {name} {way} is not steady: {factor:.2} times in the second half of a run what it is in the first"
            ));
        }
    }
    found
}

/// Ratios of median request times, over to under, in the first and the second halves of runs. Where a half has too few
/// requests for a median, runs are joined with the next ones until there are enough.
fn effects(pairs: &Pairs<'_>) -> Vec<[f64; 2]> {
    let mut found = Vec::new();
    let mut joined: [[Vec<Observation>; 2]; 2] = Default::default();
    for (over, under) in pairs.each() {
        for (halves, run) in joined.iter_mut().zip([over, under]) {
            for (half, times) in halves.iter_mut().zip(request_times_by_half(run)) {
                half.extend(times);
            }
        }
        if joined.iter().flatten().any(|half| half.len() < REQUESTS) {
            continue;
        }
        let [[a, b], [c, d]] = joined
            .each_ref()
            .map(|halves| halves.each_ref().map(|half| median(half)));
        if let (Some(a), Some(b), Some(c), Some(d)) = (a, b, c, d) {
            found.push([a / c, b / d]);
            joined = Default::default();
        }
    }
    found
}

/// The ratio of the second half to the first, where it is significantly beyond `margin`; `None` also where there are too
/// few to tell.
fn drifted(halves: &[[f64; 2]], margin: f64) -> Option<f64> {
    if halves.len() < MIN_REPLICATIONS {
        return None;
    }
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
    let mut links = run.observed.links.iter();
    let link = links.find(|l| bottleneck.is(&l.link, l.direction));
    // A run may end within a bin, and a bin of which a part was watched holds too little.
    let end = link.map_or(f64::INFINITY, |l| warm + l.duration);
    let bins: Vec<f64> = run
        .observed
        .bins
        .iter()
        // Half a bin of tolerance: rounding may place the first bin slightly before the end of the warm-up.
        .filter(|b| bottleneck.is(&b.link, b.direction) && b.time > warm - bin / 2.0)
        .filter(|b| b.time + bin < end + bin / 100.0)
        .map(|b| b.departed[1] as f64)
        .collect();
    let half = bins.len() / 2;
    let rate = bottleneck.rate.bps() as f64;
    let floor = NOTHING * rate / 8.0 * bin * half as f64;
    (half > 0).then(|| {
        [&bins[..half], &bins[bins.len() - half..]].map(|part| part.iter().sum::<f64>() + floor)
    })
}

/// The request times of the first and the second half of a run, split by the start times of requests.
fn request_times_by_half(run: &RunResult) -> [Vec<Observation>; 2] {
    let requests = &run.observed.requests;
    let starts = || requests.iter().map(|r| r.start);
    let (Some(first), Some(last)) = (starts().reduce(f64::min), starts().reduce(f64::max)) else {
        return Default::default();
    };
    let middle = f64::midpoint(first, last);
    [false, true].map(|late| {
        let own = requests.iter().filter(|r| (r.start > middle) == late);
        own.map(request_time).collect()
    })
}

/// The median; `None` where it is beyond what was watched.
fn median(times: &[Observation]) -> Option<f64> {
    KaplanMeier::new(times.to_vec()).quantile(0.5)
}
