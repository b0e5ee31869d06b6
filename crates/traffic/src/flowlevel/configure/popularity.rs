//! Counting the most popular of any number of hosts.
//!
//! A. Metwally, D. Agrawal & A. El Abbadi, "Efficient computation of frequent and top-k elements in data
//! streams", ICDT 2005 (Space-Saving): exact until the table is full; then a new host takes over the
//! count of the least popular, so that the total stays exact and every count is at most too large.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Popularity;

#[derive(Debug, Default)]
pub(super) struct Counter {
    counts: BTreeMap<u128, u64>,
    order: BTreeSet<(u64, u128)>,
}

impl Counter {
    /// Counts a host; true if another was given up for it.
    pub(super) fn add(&mut self, host: u128, capacity: usize) -> bool {
        let known = self.counts.get(&host).copied();
        let mut evicted = false;
        let before = if let Some(count) = known {
            self.order.remove(&(count, host));
            count
        } else if self.counts.len() >= capacity {
            evicted = true;
            self.order.pop_first().map_or(0, |(count, least)| {
                self.counts.remove(&least);
                count
            })
        } else {
            0
        };
        self.counts.insert(host, before + 1);
        self.order.insert((before + 1, host));
        evicted
    }

    pub(super) fn popularity(&self) -> Popularity {
        Popularity::new(self.counts.values().copied())
    }
}
