//! What happened in each interval.

use std::collections::BTreeMap;

use super::super::model::Interval;
use super::super::record::nanos;
use super::{Options, Start};

/// Intervals to both sides of the first record.
const REACH: i64 = super::super::merge::MAX_INTERVALS as i64 / 2;

/// What happened in each interval.
#[derive(Debug)]
pub(super) struct Timeline {
    origin: i64,
    width: i64,
    /// Interval of the first time ever asked for.
    middle: Option<i64>,
    pub(super) intervals: BTreeMap<i64, Interval>,
    /// Connections of sampled records that began in an interval.
    sampled: BTreeMap<i64, u64>,
}

impl Timeline {
    pub(super) fn new(options: &Options) -> Timeline {
        Timeline {
            // Files hold whole microseconds.
            origin: options.origin.div_euclid(1_000) * 1_000,
            width: nanos(options.interval).max(1),
            middle: None,
            intervals: BTreeMap::new(),
            sampled: BTreeMap::new(),
        }
    }

    pub(super) fn index(&self, time: i64) -> i64 {
        time.saturating_sub(self.origin).div_euclid(self.width)
    }

    pub(super) fn time_of(&self, index: i64) -> i64 {
        self.origin.saturating_add(index.saturating_mul(self.width))
    }

    /// Whether a time is close enough to the first one to be in the model.
    pub(super) fn reaches(&mut self, time: i64) -> bool {
        let index = self.index(time);
        let middle = *self.middle.get_or_insert(index);
        index.saturating_sub(middle).saturating_abs() < REACH
            && time.unsigned_abs() < i64::MAX as u64 / 2
    }

    pub(super) fn at(&mut self, time: i64) -> &mut Interval {
        let index = self.index(time);
        self.intervals.entry(index).or_default()
    }

    /// A connection begins.
    pub(super) fn begin(&mut self, start: &Start) {
        let index = self.index(start.at);
        let interval = self.intervals.entry(index).or_default();
        if start.sampled {
            *self.sampled.entry(index).or_default() += 1;
        } else {
            interval.connections += 1;
        }
    }

    /// Spreads the connections that sampling stands for over the intervals as those that were seen.
    pub(super) fn multiply(&self, intervals: &mut [Interval], first: i64, all: u64) {
        let seen: u64 = self.sampled.values().sum();
        let (mut before, mut done) = (0, 0);
        for (index, &n) in &self.sampled {
            before += n;
            let upto = (u128::from(all) * u128::from(before) / u128::from(seen.max(1))) as u64;
            // The timeline has every interval in which one began.
            if let Some(interval) = usize::try_from(index - first)
                .ok()
                .and_then(|i| intervals.get_mut(i))
            {
                interval.connections = interval.connections.saturating_add(upto - done);
            }
            done = upto;
        }
    }

    /// Bytes moved evenly from `first` to `last`.
    pub(super) fn spread(&mut self, bytes: u64, first: i64, last: i64) {
        let (from, to) = (self.index(first), self.index(last));
        let span = i128::from(last) - i128::from(first) + 1;
        let mut done = 0;
        for index in from..=to {
            let upto = if index == to {
                bytes
            } else {
                let part = i128::from(self.time_of(index + 1)) - i128::from(first);
                // At most `bytes`, for the part is at most the span.
                (i128::from(bytes) * part / span) as u64
            };
            let interval = self.intervals.entry(index).or_default();
            interval.bytes = interval.bytes.saturating_add(upto - done);
            done = upto;
        }
    }

    /// The first interval and all from it to the last.
    pub(super) fn dense(&self) -> (i64, Vec<Interval>) {
        let (Some((&first, _)), Some((&last, _))) = (
            self.intervals.first_key_value(),
            self.intervals.last_key_value(),
        ) else {
            return (0, Vec::new());
        };
        let all = (first..=last)
            .map(|i| self.intervals.get(&i).copied().unwrap_or_default())
            .collect();
        (first, all)
    }
}
