//! Connections of a pair of hosts, in order of their starts: gaps, sessions, popularity.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Histogram;
use super::super::model::FlowTotals;
use super::super::record::{micros_between, nanos};
use super::popularity::Counter;
use super::{Options, Start, Timeline};

#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) gaps: Histogram,
    pub(super) clients: Counter,
    pub(super) servers: Counter,
    capacity: usize,
    /// Starts that an earlier one may still overtake.
    waiting: BTreeMap<(i64, u64), Start>,
    serial: u64,
    pairs: BTreeMap<(u128, u128), Pair>,
    /// Pairs by their last start, for forgetting.
    oldest: BTreeSet<(i64, u128, u128)>,
}

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
        self.waiting.insert((start.at, self.serial), start);
        self.serial += 1;
        if self.waiting.len() > self.capacity {
            totals.evicted += 1;
            if let Some((_, first)) = self.waiting.pop_first() {
                self.settle(first, options, totals, timeline);
            }
        }
    }

    /// Settles all starts before `until`.
    pub(super) fn release(
        &mut self,
        until: i64,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 >= until {
                break;
            }
            let start = entry.remove();
            self.settle(start, options, totals, timeline);
        }
        let forget = until.saturating_sub(nanos(options.session_gap));
        while let Some(&(last, client, server)) = self.oldest.first() {
            if last >= forget && self.oldest.len() <= self.capacity {
                break;
            }
            totals.evicted += u64::from(last >= forget);
            self.oldest.pop_first();
            self.pairs.remove(&(client, server));
        }
    }

    fn settle(
        &mut self,
        start: Start,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let key = (start.client, start.server);
        let index = timeline.index(start.at);
        let before = self.pairs.get(&key).copied();
        let pair = match before {
            Some(pair) if start.at < pair.last => {
                totals.late += 1;
                return;
            }
            Some(pair) if start.at - pair.last <= nanos(options.session_gap) => {
                self.gaps.add(micros_between(pair.last, start.at));
                for passed in pair.counted + 1..=index {
                    timeline.intervals.entry(passed).or_default().seen += 1;
                }
                pair
            }
            _ => {
                let full = [
                    self.clients.add(start.client, self.capacity),
                    self.servers.add(start.server, self.capacity),
                ];
                totals.evicted += full.into_iter().map(u64::from).sum::<u64>();
                timeline.intervals.entry(index).or_default().seen += 1;
                Pair {
                    last: start.at,
                    counted: index,
                }
            }
        };
        if let Some(old) = before {
            self.oldest.remove(&(old.last, key.0, key.1));
        }
        self.oldest.insert((start.at, key.0, key.1));
        let counted = pair.counted.max(index);
        self.pairs.insert(
            key,
            Pair {
                last: start.at,
                counted,
            },
        );
    }
}
