//! Ratios of percentiles, and their bounds where a percentile lies beyond what was watched.
//!
//! Where so many requests did not finish that a percentile cannot be told, a bound still can: no
//! request took less than it was watched for, so the percentile of the watched times is no more than
//! that of the times. A background that starves an application is thus known to slow it down at
//! least so many times.

use swell_stats::{Bootstrap, Estimate, Observation, Pairing, Replications};

use super::PERCENTILES;

/// The request times behind one background.
pub(super) struct Times {
    /// As they are: unfinished ones are lower bounds.
    pub censored: Replications,
    /// As if every request had finished when it was seen last.
    watched: Replications,
}

impl Times {
    /// The times of `groups`, one per replication, in runs of `end` seconds.
    pub(super) fn new(groups: &[Vec<Observation>], end: f64) -> Times {
        let watched: Vec<Vec<f64>> = groups
            .iter()
            // A failed request has no finite bound of its own; no run is longer than this.
            .map(|g| g.iter().map(|o| o.value.min(end)).collect())
            .collect();
        Times {
            censored: Replications::censored(groups),
            watched: Replications::new(&watched),
        }
    }
}

/// How much of an [`Estimate`] is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// A value with its interval; the upper end may be infinite.
    Interval,
    /// Only that it is no less than this, with the confidence of the interval.
    AtLeast(f64),
    /// Only that it is no more than this, likewise.
    AtMost(f64),
    /// A value of a single replication: no interval.
    Value,
}

impl Known {
    /// How much of `e` is known.
    pub fn of(e: &Estimate) -> Known {
        match (e.low, e.high) {
            (0.0, high) if high.is_infinite() => Known::Value,
            (low, high) if high.is_infinite() && low == e.value => Known::AtLeast(low),
            (0.0, high) if high == e.value => Known::AtMost(high),
            _ => Known::Interval,
        }
    }
}

/// Percentiles `over` divided by those `under`, one per entry of [`PERCENTILES`], paired by seed.
/// `None` where not even a bound can be told.
pub(super) fn of(bootstrap: &Bootstrap, over: &Times, under: &Times) -> Vec<Option<Estimate>> {
    // Seeds are equal in all backgrounds; where counts differ all the same there is no ratio.
    let ratio = |a: &Replications, b: &Replications| {
        bootstrap
            .slowdown(a, b, &PERCENTILES, Pairing::Paired)
            .unwrap_or_else(|_| vec![None; PERCENTILES.len()])
    };
    let mut ratios = ratio(&over.censored, &under.censored);
    let open = |times: &Times, p: f64| times.censored.quantile(p).is_none();
    let bounded = |i: usize| [over, under].map(|t| open(t, PERCENTILES[i]));
    if (0..PERCENTILES.len()).any(|i| bounded(i) != [false; 2]) {
        let least = ratio(&over.watched, &under.censored);
        let most = ratio(&over.censored, &under.watched);
        for (i, found) in ratios.iter_mut().enumerate() {
            *found = match bounded(i) {
                [false, false] => *found,
                // The bound of one replication has no interval to take its end from.
                _ if over.censored.count() < 2 => None,
                [true, false] => least[i].map(|e| Estimate {
                    value: e.low,
                    high: f64::INFINITY,
                    ..e
                }),
                [false, true] => most[i].map(|e| Estimate {
                    value: e.high,
                    low: 0.0,
                    ..e
                }),
                [true, true] => None,
            };
        }
    }
    ratios
        .into_iter()
        .map(|e| e.map(without_interval))
        .collect()
}

/// One replication says nothing about another: its value stays, its interval is everything.
pub(super) fn without_interval(e: Estimate) -> Estimate {
    match e.replications {
        0 | 1 => Estimate {
            low: 0.0,
            high: f64::INFINITY,
            ..e
        },
        _ => e,
    }
}
