//! The values of measures, run by run.

use swell_stats::{Observation, PairedRatio, cov};

use super::judge::{Judgement, Statistic, enough};
use super::{Condition, DECISIVE, bounded, request_times};
use crate::measure::{COMPLETION_TIME, DELAY, GOODPUT, LOSS, Measure, REQUEST_RATE};
use crate::observe::Outcome;
use crate::store::RunResult;

/// Durations whose coefficient of variation is below this are set by the program, not by the network.
const CONSTANT: f64 = 0.01;

/// The runs of both conditions that may decide, in pairs.
pub(super) fn pairs<'r>(
    with: &Condition<'r>,
    without: &Condition<'r>,
) -> Vec<(&'r RunResult, &'r RunResult)> {
    let both = with.runs.iter().zip(&without.runs);
    both.filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect()
}

/// Request times of both conditions, in pairs; bounds are at most `end` seconds.
pub(super) fn times(
    with: &Condition<'_>,
    without: &Condition<'_>,
    end: f64,
) -> (Vec<Vec<Observation>>, Vec<Vec<Observation>>) {
    pairs(with, without)
        .into_iter()
        .map(|(a, b)| [a, b].map(|run| bounded(&request_times(run), end)))
        .map(|[a, b]| (a, b))
        .unzip()
}

/// What can be judged of `measures`, with one condition over another.
pub(super) fn judgements(
    measures: &[Measure],
    with: &Condition<'_>,
    without: &Condition<'_>,
    end: f64,
) -> Vec<Judgement> {
    let pairs = pairs(with, without);
    let mut found = Vec::new();
    for measure in measures {
        if measure.name == COMPLETION_TIME.name {
            let (over, under) = times(with, without, end);
            if durations_are_constant(&over, &under) {
                // The program runs for so long: what it got done in that time is what may differ.
                for rate in [GOODPUT, REQUEST_RATE] {
                    found.extend(mean(&rate, &pairs, value));
                }
                continue;
            }
            if most_bytes_are_in_no_request(&pairs) {
                // As of a program that asks once and then streams: its requests are not what it does.
                found.extend(mean(&GOODPUT, &pairs, |_, run| link_rate(run)));
            }
            for p in DECISIVE {
                if !enough(&over, p) || !enough(&under, p) {
                    continue;
                }
                if let Some(ratio) = PairedRatio::of(&over, &under, p) {
                    let statistic = Statistic::Percentile(p);
                    found.push(Judgement::new(measure, statistic, ratio, pairs.len()));
                }
            }
        } else {
            found.extend(mean(measure, &pairs, value));
        }
    }
    found
}

/// Whether all requests are done and took the same time, as those of a program that runs for a fixed time do, while what
/// they got done differs.
fn durations_are_constant(over: &[Vec<Observation>], under: &[Vec<Observation>]) -> bool {
    let all = || over.iter().chain(under).flatten();
    let values: Vec<f64> = all().map(|o| o.value).collect();
    values.len() > 1 && all().all(|o| o.complete) && cov(&values).is_some_and(|c| c < CONSTANT)
}

/// A foreground whose network-layer bytes are this many times those of its responses does something else than requests:
/// headers, handshakes and requests themselves are less.
const ELSEWHERE: u64 = 4;

/// Whether most of what the foreground carried belongs to no response.
fn most_bytes_are_in_no_request(pairs: &[(&RunResult, &RunResult)]) -> bool {
    let runs = || pairs.iter().flat_map(|p| [p.0, p.1]);
    let requests = runs().flat_map(|r| &r.observed.requests);
    let links = runs().flat_map(|r| &r.observed.links);
    let carried: u64 = links.map(|l| l.departed[0]).sum();
    carried > ELSEWHERE * requests.map(|r| r.bytes).sum::<u64>()
}

/// The foreground's network-layer bytes per second over the link, in the direction in which it sends most, bit/s.
fn link_rate(run: &RunResult) -> Option<f64> {
    let links = run.observed.links.iter();
    let main = links.max_by_key(|l| l.arrived[0])?;
    (main.duration > 0.0).then(|| main.departed[0] as f64 * 8.0 / main.duration)
}

/// Judges the mean of a measure in every run.
fn mean(
    measure: &Measure,
    pairs: &[(&RunResult, &RunResult)],
    value: impl Fn(&Measure, &RunResult) -> Option<f64>,
) -> Option<Judgement> {
    let of = |run: &RunResult| value(measure, run).map(|x| x + measure.floor);
    let with: Option<Vec<f64>> = pairs.iter().map(|p| of(p.0)).collect();
    let without: Option<Vec<f64>> = pairs.iter().map(|p| of(p.1)).collect();
    let ratio = PairedRatio::of_values(&with?, &without?)?;
    Some(Judgement::new(measure, Statistic::Mean, ratio, pairs.len()))
}

/// The value of `measure` in one run; `None` where the run does not tell.
fn value(measure: &Measure, run: &RunResult) -> Option<f64> {
    let observed = &run.observed;
    // The direction in which the foreground sends most.
    let main = observed.links.iter().max_by_key(|l| l.arrived[0]);
    let requests = &observed.requests;
    if measure.name == GOODPUT.name {
        if !requests.is_empty() {
            let seconds: f64 = requests.iter().map(|r| r.observed_until - r.start).sum();
            let bytes: u64 = requests.iter().map(|r| r.bytes).sum();
            return (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        }
        return link_rate(run);
    }
    if measure.name == REQUEST_RATE.name {
        let done = requests.iter().filter(|r| r.outcome == Outcome::Done);
        let first = requests.iter().map(|r| r.start).reduce(f64::min)?;
        let last = requests.iter().map(|r| r.observed_until).reduce(f64::max)?;
        return (last > first).then(|| done.count() as f64 / (last - first));
    }
    if measure.name == LOSS.name {
        return main.map(|l| match l.arrived_packets[0] {
            0 => 0.0,
            n => l.dropped[0] as f64 / n as f64,
        });
    }
    if measure.name == DELAY.name {
        let direction = main?.direction;
        let own = observed
            .waits
            .iter()
            .filter(|w| w.direction == direction && w.traffic == "foreground");
        let (waited, packets) = own.fold((0.0, 0u64), |(s, n), w| (s + w.waited, n + w.packets));
        return (packets > 0).then(|| waited / packets as f64);
    }
    let own: Vec<f64> = observed
        .measures
        .iter()
        .filter(|s| s.measure == measure.name)
        .map(|s| s.value)
        .collect();
    swell_stats::mean(&own)
}
