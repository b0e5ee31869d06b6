//! Ratios of percentiles as tables and figures show them, and request times with finite bounds.

use swell_stats::{Bootstrap, Estimate, Observation, Replications};

/// Caps observations at `end` seconds, the length of a run. The lower bound of a failed request is infinite, but ratios
/// need finite bounds.
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
    /// Only a lower bound, with the confidence of the interval.
    AtLeast(f64),
    /// Only an upper bound, with the confidence of the interval.
    AtMost(f64),
    /// A value of a single replication, without interval.
    Value,
}

impl Known {
    /// How much of `e` is known.
    pub fn of(e: &Estimate) -> Known {
        Known::of_ends(e.value, [e.low, e.high])
    }

    /// How much is known of an estimate with this value and these ends of its interval.
    pub fn of_ends(value: f64, ends: [f64; 2]) -> Known {
        match ends {
            [0.0, high] if high.is_infinite() => Known::Value,
            [low, high] if high.is_infinite() && low == value => Known::AtLeast(low),
            [0.0, high] if high == value => Known::AtMost(high),
            _ => Known::Interval,
        }
    }
}

/// Replaces the interval by zero to infinity if there are fewer than two replications: a single one does not show how
/// much replications vary.
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

/// Percentiles of observations pooled over all replications, with bootstrap intervals over replications; `None` where a
/// percentile cannot be estimated.
pub(super) fn pooled(
    bootstrap: &Bootstrap,
    groups: &[Vec<Observation>],
    percentiles: &[f64],
) -> Vec<Option<Estimate>> {
    if groups.is_empty() {
        return vec![None; percentiles.len()];
    }
    let all = Replications::censored(groups);
    let found = bootstrap.quantiles(&all, percentiles);
    found.into_iter().map(|e| e.map(without_interval)).collect()
}
