//! Connections of a pair of hosts in order of their starts: gaps, sessions, popularity.

use std::collections::BTreeMap;

use super::super::histogram::Tallied;
use super::super::model::FlowTotals;
use super::super::record::{micros_between, nanos};
use super::options::Options;
use super::popularity::Counter;
use super::table::Table;
use super::timeline::{Start, Timeline};

/// Starts are buffered in a list per second.
const SECOND: i64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) gaps: Tallied,
    pub(super) clients: Counter,
    pub(super) servers: Counter,
    capacity: usize,
    /// Starts that may still be preceded by an earlier one, by second, in order of arrival.
    waiting: BTreeMap<i64, Vec<Start>>,
    count: usize,
    pairs: Table<Hosts, Option<Pair>>,
}

/// Client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Hosts(u128, u128);

#[derive(Clone, Copy, Debug)]
struct Pair {
    last: i64,
    /// The last interval in which the session was counted.
    counted: i64,
}

impl Sessions {
    pub(super) fn new(capacity: usize) -> Sessions {
        Sessions {
            capacity,
            ..Sessions::default()
        }
    }

    pub(super) fn push(
        &mut self,
        start: Start,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let second = start.at.div_euclid(SECOND);
        self.waiting.entry(second).or_default().push(start);
        self.count += 1;
        if self.count > self.capacity
            && let Some((_, starts)) = self.waiting.pop_first()
        {
            totals.evicted += starts.len() as u64;
            self.settle_all(starts, options, totals, timeline);
        }
    }

    /// Processes all starts before the second of `until`, or all for `i64::MAX`.
    pub(super) fn release(
        &mut self,
        until: i64,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let border = match until {
            i64::MAX => i64::MAX,
            _ => until.div_euclid(SECOND),
        };
        while let Some(entry) = self.waiting.first_entry().filter(|e| *e.key() < border) {
            let starts = entry.remove();
            self.settle_all(starts, options, totals, timeline);
        }
        if until == i64::MAX {
            self.pairs = Table::default();
            return;
        }
        // A pair that has been silent for longer begins a new session anyway.
        let forget = until.saturating_sub(nanos(options.session_gap));
        self.pairs.expire(forget, |_, _| ());
        while self.pairs.len() > self.capacity && self.pairs.pop_oldest().is_some() {
            totals.evicted += 1;
        }
    }

    fn settle_all(
        &mut self,
        mut starts: Vec<Start>,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        self.count -= starts.len();
        // The sort is stable: equal times keep the order of arrival.
        starts.sort_by_key(|s| s.at);
        let mut begun = Vec::new();
        for start in starts {
            if self.settle(start, options, totals, timeline) {
                begun.push(start);
            }
        }
        for (counter, host) in [
            (&mut self.clients, (|s| s.client) as fn(&Start) -> u128),
            (&mut self.servers, |s| s.server),
        ] {
            totals.evicted += counter.add_all(begun.iter().map(host), self.capacity);
        }
    }

    /// Processes a start. Returns whether a session begins with it.
    fn settle(
        &mut self,
        start: Start,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) -> bool {
        let index = timeline.index(start.at);
        let gaps = &mut self.gaps;
        self.pairs
            .update(Hosts(start.client, start.server), |known| {
                let mut begins = false;
                let mut pair = match known {
                    Some(pair) if start.at < pair.last => {
                        totals.late += 1;
                        return (pair.last, false);
                    }
                    Some(pair) if start.at - pair.last <= nanos(options.session_gap) => {
                        gaps.add(micros_between(pair.last, start.at));
                        for passed in pair.counted + 1..=index {
                            timeline.session_at(passed);
                        }
                        *pair
                    }
                    _ => {
                        begins = true;
                        timeline.session_at(index);
                        Pair {
                            last: start.at,
                            counted: index,
                        }
                    }
                };
                pair.last = start.at;
                pair.counted = pair.counted.max(index);
                *known = Some(pair);
                (start.at, begins)
            })
    }
}
