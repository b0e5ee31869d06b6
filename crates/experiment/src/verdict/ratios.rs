//! Ratios of percentiles as tables and pictures have them, and request times whose bounds are finite.

use swell_stats::{Estimate, Observation};

/// Observations whose lower bounds are finite: a failed request has no bound of its own, and no run is longer than
/// `end` seconds.
pub(super) fn bounded(group: &[Observation], end: f64) -> Vec<Observation> {
    group
        .iter()
        .map(|o| Observation {
            value: o.value.min(end),
            ..*o
        })
        .collect()
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
