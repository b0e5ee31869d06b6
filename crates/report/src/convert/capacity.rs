//! The rate of a link over time.

use swell_experiment::file::{Bottleneck, File};

/// More changes than this in a run are not followed.
const MOST: u64 = 100_000;

/// The rates of a direction of a link in a run: since when, seconds, and bits per second. `None` where they are not known:
/// a delivery trace has no rate, and its phase may be drawn by the seed. An outage is not a change of the rate.
pub(super) fn rates(file: &File, queue: &Bottleneck) -> Option<Vec<(f64, f64)>> {
    let links = file.links();
    let keys = &links.get(queue.queue.link)?.keys;
    let direction = queue.queue.direction;
    if keys.directions()[direction].deliveries.is_some() {
        return None;
    }
    let end = file.run.duration.as_nanos();
    let mut all = vec![(0, queue.rate)];
    for change in keys.change.iter().filter(|c| c.direction.has(direction)) {
        if change.deliveries.is_some() {
            return None;
        }
        let Some(rate) = change.rate else { continue };
        let first = change.at.as_nanos();
        let every = change.every.map_or(0, |d| d.as_nanos());
        let more = end.saturating_sub(first).checked_div(every).unwrap_or(0);
        if more > MOST {
            return None;
        }
        all.extend((0..=more).map(|k| (first + k * every, rate)));
    }
    // Of changes at one instant, the last in the file applies.
    all.sort_by_key(|(at, _)| *at);
    let seconds = all
        .into_iter()
        .map(|(at, rate)| (at as f64 / 1e9, rate.bps() as f64));
    Some(seconds.collect())
}

/// The mean of `rates`, from [`rates`], between two instants in seconds.
pub(super) fn mean(rates: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let before = rates
        .partition_point(|(at, _)| *at <= from)
        .saturating_sub(1);
    let own = rates[before..].iter().take_while(|(at, _)| *at < to);
    let next = rates[before..].iter().skip(1).map(|(at, _)| *at);
    let parts = own.zip(next.chain([f64::INFINITY]));
    let bits: f64 = parts
        .map(|(&(at, rate), end)| rate * (end.min(to) - at.max(from)))
        .sum();
    bits / (to - from)
}
