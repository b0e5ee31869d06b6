//! Counts per interval.

use std::cell::Cell;
use std::collections::VecDeque;

use super::super::model::{Interval, MAX_INTERVALS};
use super::super::record::nanos;
use super::options::Options;

/// Number of intervals allowed before the middle. A record with a wrong time cannot take more of all those that a model
/// may have.
const REACH: i64 = MAX_INTERVALS as i64 / 2;

/// A connection that was found to carry a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub at: i64,
    pub client: u128,
    pub server: u128,
    /// Whether it was sampled, so that there were others of which no packet was sampled.
    pub sampled: bool,
}

/// Counts per interval.
#[derive(Debug)]
pub(super) struct Timeline {
    origin: i64,
    width: i64,
    /// The interval that others must be near; `None` until it is known.
    middle: Option<i64>,
    /// The first and the last interval of what was taken.
    taken: [i64; 2],
    /// Number of the first interval, and the counts from it on.
    first: i64,
    intervals: VecDeque<Counts>,
    /// Begin, end and number of the last interval looked up, as most times are in the same one.
    latest: Cell<[i64; 3]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    connections: u64,
    /// May be temporarily negative: corrections are subtracted where a connection ends.
    bytes: i64,
    seen: u64,
    /// Connections of sampled records that began here.
    sampled: u64,
}

impl Timeline {
    pub(super) fn new(options: &Options) -> Timeline {
        Timeline {
            // Files hold whole microseconds.
            origin: options.origin.div_euclid(1_000) * 1_000,
            width: nanos(options.interval).max(1),
            middle: None,
            taken: [0; 2],
            first: 0,
            intervals: VecDeque::new(),
            latest: Cell::new([0; 3]),
        }
    }

    pub(super) fn index(&self, time: i64) -> i64 {
        let [begin, end, index] = self.latest.get();
        if (begin..end).contains(&time) {
            return index;
        }
        let new = time.saturating_sub(self.origin).div_euclid(self.width);
        self.latest
            .set([self.time_of(new), self.time_of(new + 1), new]);
        new
    }

    pub(super) fn time_of(&self, index: i64) -> i64 {
        self.origin.saturating_add(index.saturating_mul(self.width))
    }

    /// Whether it is known which times are in the model.
    pub(super) fn placed(&self) -> bool {
        self.middle.is_some()
    }

    /// Places the model around a time.
    pub(super) fn place(&mut self, time: i64) {
        let middle = self.index(time);
        self.middle = Some(middle);
        self.taken = [middle; 2];
    }

    /// Takes a record's times, unless they are too far from the others to be in the model.
    pub(super) fn take(&mut self, times: impl Iterator<Item = i64>) -> bool {
        let Some(middle) = self.middle else {
            return false;
        };
        let [mut first, mut last] = self.taken;
        for time in times {
            let index = self.index(time);
            if time.unsigned_abs() >= i64::MAX as u64 / 2 || middle.saturating_sub(index) >= REACH {
                return false;
            }
            (first, last) = (first.min(index), last.max(index));
        }
        let near = last.saturating_sub(first) < MAX_INTERVALS as i64;
        if near {
            self.taken = [first, last];
        }
        near
    }

    /// The counts of an interval, which is created if missing. `index` must be within reach.
    fn at(&mut self, index: i64) -> &mut Counts {
        if self.intervals.is_empty() {
            self.first = index;
        }
        while index < self.first {
            self.intervals.push_front(Counts::default());
            self.first -= 1;
        }
        let place = (index - self.first) as usize;
        if place >= self.intervals.len() {
            self.intervals.resize(place + 1, Counts::default());
        }
        &mut self.intervals[place]
    }

    /// Makes the timeline cover a time at which only a UDP source was alive.
    pub(super) fn stand_at(&mut self, time: i64) {
        let index = self.index(time);
        self.at(index);
    }

    /// Counts a connection that begins.
    pub(super) fn begin(&mut self, start: &Start) {
        let index = self.index(start.at);
        let interval = self.at(index);
        if start.sampled {
            interval.sampled += 1;
        } else {
            interval.connections += 1;
        }
    }

    /// Counts a session in an interval.
    pub(super) fn session_at(&mut self, index: i64) {
        self.at(index).seen += 1;
    }

    /// Distributes `all` connections estimated from samples over the intervals in proportion to the
    /// sampled ones.
    pub(super) fn multiply(&self, intervals: &mut [Interval], all: u64) {
        let seen: u64 = self.intervals.iter().map(|i| i.sampled).sum();
        let (mut before, mut done) = (0, 0);
        for (from, to) in self.intervals.iter().zip(intervals) {
            before += from.sampled;
            let upto = (u128::from(all) * u128::from(before) / u128::from(seen.max(1))) as u64;
            to.connections = to.connections.saturating_add(upto - done);
            done = upto;
        }
    }

    /// Spreads bytes evenly from `first` to `last`.
    pub(super) fn spread(&mut self, bytes: u64, first: i64, last: i64) {
        let (from, to) = (self.index(first), self.index(last));
        let span = i128::from(last) - i128::from(first) + 1;
        let mut done = 0;
        for index in from..=to {
            let upto = if index == to {
                bytes
            } else {
                let part = i128::from(self.time_of(index + 1)) - i128::from(first);
                // At most `bytes`, because the part is at most the span.
                (i128::from(bytes) * part / span) as u64
            };
            let interval = self.at(index);
            interval.bytes = interval.bytes.saturating_add_unsigned(upto - done);
            done = upto;
        }
    }

    /// Corrects the bytes that were spread up to `last`.
    pub(super) fn correct(&mut self, by: i64, last: i64) {
        if by != 0 {
            let index = self.index(last);
            let interval = self.at(index);
            interval.bytes = interval.bytes.saturating_add(by);
        }
    }

    /// The number of the first interval, and all intervals without holes. Negative bytes of an interval
    /// are subtracted from the next ones, or from those before it.
    pub(super) fn dense(&self) -> (i64, Vec<Interval>) {
        let mut all: Vec<Interval> = Vec::with_capacity(self.intervals.len());
        let mut owed: i64 = 0;
        for counts in &self.intervals {
            let bytes = counts.bytes.saturating_sub(owed);
            owed = bytes.saturating_neg().max(0);
            all.push(Interval {
                connections: counts.connections,
                bytes: u64::try_from(bytes).unwrap_or(0),
                seen: counts.seen,
                sessions: 0,
            });
        }
        let mut owed = owed.unsigned_abs();
        for interval in all.iter_mut().rev() {
            let taken = interval.bytes.min(owed);
            interval.bytes -= taken;
            owed -= taken;
        }
        (self.first, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_keep_the_sum() {
        let mut timeline = Timeline::new(&Options::default());
        let second = 1_000_000_000;
        timeline.spread(1_000, 0, 899 * second);
        timeline.correct(-800, 700 * second);
        timeline.correct(50, -20 * second);
        let (first, all) = timeline.dense();
        let bytes: Vec<u64> = all.iter().map(|i| i.bytes).collect();
        assert_eq!((first, bytes), (-1, vec![50, 200, 0, 0]));
    }
}
