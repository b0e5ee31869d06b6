//! The intervals of a plan, one after the other, and round after round in a cycle.

use swell_base::{Dur, Time};

/// When each interval of a plan is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Number of intervals in a round, not zero.
    pub(super) intervals: u64,
    /// Length of an interval after compression.
    pub(super) interval: Dur,
    /// Skipped parts of the first and of the last interval, which the records did not cover.
    pub(super) edges: [Dur; 2],
    /// Whether another round follows.
    pub(super) cycle: bool,
}

impl Rounds {
    /// Length of interval `index`.
    pub(super) fn lasts(&self, index: u64) -> Dur {
        self.starts_at(index + 1).since(self.starts_at(index))
    }

    /// The interval at time `at`. In a cycle, numbers continue from round to round.
    pub(super) fn index(&self, at: Time) -> u64 {
        let n = self.intervals;
        let round = self.length().as_nanos();
        let (rounds, within) = (at.as_nanos() / round, at.as_nanos() % round);
        let index = (within + self.edges[0].as_nanos()) / self.interval.as_nanos();
        rounds * n + index.min(n - 1)
    }

    pub(super) fn starts_at(&self, index: u64) -> Time {
        let n = self.intervals;
        let within = (self.interval * (index % n)).saturating_sub(self.edges[0]);
        Time::ZERO + self.length() * (index / n) + within
    }

    /// Time to play all intervals once; not zero.
    pub(super) fn length(&self) -> Dur {
        let [lead, tail] = self.edges;
        let all = self.interval * self.intervals;
        all.saturating_sub(lead)
            .saturating_sub(tail)
            .max(Dur::from_nanos(1))
    }

    /// The entry of interval `index` in a table of the intervals; 0 after the end.
    pub(super) fn of(&self, table: &[u64], index: u64) -> u64 {
        let len = self.intervals;
        let index = if self.cycle { index % len } else { index };
        usize::try_from(index)
            .ok()
            .and_then(|i| table.get(i))
            .map_or(0, |&n| n)
    }

    /// Whether interval `index` is after the end.
    pub(super) fn is_over(&self, index: u64) -> bool {
        !self.cycle && index >= self.intervals
    }
}

/// Rounds so that running sums stay within a half of those of `wanted`. Zeros stay zero.
pub(super) fn whole(wanted: impl Iterator<Item = f64>) -> Vec<u64> {
    let mut left = 0.0;
    wanted
        .map(|want| {
            if want <= 0.0 {
                return 0;
            }
            let whole = (want + left + 0.5).max(0.0) as u64;
            left = (want + left - whole as f64).clamp(-1.0, 1.0);
            whole
        })
        .collect()
}
