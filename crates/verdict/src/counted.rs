//! Byte counts of runs at a direction of a link, and whether it had spare capacity.

use swell_experiment::file::Bottleneck;
use swell_experiment::observe::{LinkTotals, Observations, PartTotals};
use swell_experiment::store::RunResult;

/// A link with a utilization below this has spare capacity.
const FULL: f64 = 0.90;

/// A byte count at a bottleneck.
#[derive(Clone, Copy)]
pub(super) enum Count {
    /// Bytes of the background, or of a part of it, that arrived.
    Arrived,
    /// Bytes of the background, or of a part of it, that departed.
    Departed,
    /// All bytes that departed, foreground and background.
    Used,
}

impl Count {
    fn of_link(self, link: &LinkTotals) -> u64 {
        match self {
            Count::Arrived => link.arrived[1],
            Count::Departed => link.departed[1],
            Count::Used => link.departed[0] + link.departed[1],
        }
    }
}

/// What a direction of a link could carry in these runs, on average over the seconds that count. A link that changes
/// carries another rate than its first one.
pub(super) fn capacity<'r>(
    runs: impl Iterator<Item = &'r RunResult>,
    here: impl Fn(&LinkTotals) -> bool,
) -> Option<f64> {
    let rows = runs.flat_map(|run| &run.observed.links);
    let rates: Vec<f64> = rows
        .filter(|l| here(l) && l.rate > 0.0)
        .map(|l| l.rate)
        .collect();
    swell_stats::mean(&rates)
}

/// The rate that such bytes had at a direction of a link, over all runs. 0 where nothing was counted.
pub(super) fn rate<'r>(
    runs: impl Iterator<Item = &'r RunResult>,
    at: &Bottleneck,
    part: Option<&str>,
    what: Count,
) -> f64 {
    let seen = runs.map(|r| counted(&r.observed, at, part, what));
    let (bytes, seconds) = seen.fold((0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    }
}

/// Whether a link that carried `used` in all had spare capacity while a background was to send. What that one carried,
/// it carried in its windows, the share `active` of the time; other traffic is spread over the runs.
pub(super) fn has_room(used: f64, carried: f64, active: f64, capacity: f64) -> bool {
    let others = (used - carried).max(0.0);
    others + carried / active < FULL * capacity
}

/// Whether a direction of a link had no spare capacity while a background was to send.
pub(super) fn is_full<'r, Runs: Iterator<Item = &'r RunResult>>(
    runs: impl Fn() -> Runs,
    at: &Bottleneck,
    part: Option<&str>,
    active: f64,
) -> bool {
    let found = capacity(runs(), |l| at.is(&l.link, l.direction));
    let limit = found.unwrap_or(at.rate.bps() as f64);
    let [used, carried] = [Count::Used, Count::Departed].map(|what| rate(runs(), at, part, what));
    !has_room(used, carried, active, limit)
}

/// Bytes that a run counted at a bottleneck, and the seconds of counting: for one `part`, or for the whole background.
fn counted(seen: &Observations, at: &Bottleneck, part: Option<&str>, what: Count) -> (u64, f64) {
    let part = part.filter(|_| !matches!(what, Count::Used));
    let rows: Vec<(u64, f64)> = match part {
        Some(name) => {
            let own = |p: &&PartTotals| {
                p.part == name && p.role == "background" && at.is(&p.link, p.direction)
            };
            let bytes = |p: &PartTotals| match what {
                Count::Arrived => p.arrived,
                _ => p.departed,
            };
            let rows = seen.parts.iter().filter(own);
            rows.map(|p| (bytes(p), p.duration)).collect()
        }
        None => {
            let rows = seen.links.iter().filter(|l| at.is(&l.link, l.direction));
            rows.map(|l| (what.of_link(l), l.duration)).collect()
        }
    };
    rows.into_iter()
        .fold((0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}
