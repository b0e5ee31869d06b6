//! Counts the most popular of any number of hosts.
//!
//! A. Metwally, D. Agrawal & A. El Abbadi, "Efficient computation of frequent and top-k elements in data
//! streams", ICDT 2005 (Space-Saving). Counts are exact until the table is full. Then a new host takes
//! over the count of the least popular one. So the total stays exact, and a count may only be too large.

use super::super::Popularity;
use super::table::{Index, hash_of};

#[derive(Debug, Default)]
pub(super) struct Counter {
    index: Index,
    hosts: Vec<(u128, u64)>,
    /// Candidates for the least count; searched again when none is left.
    least: Vec<u32>,
    least_count: u64,
}

impl Counter {
    /// Counts a host. Returns true if another one was evicted for it.
    pub(super) fn add(&mut self, host: u128, capacity: usize) -> bool {
        let hash = hash_of(&host);
        let is_it = |i: u32| self.hosts[i as usize].0 == host;
        if let Some(place) = self.index.find(hash, is_it) {
            self.hosts[place as usize].1 += 1;
            return false;
        }
        let evicted = self.hosts.len() >= capacity.max(1);
        let place = if evicted {
            let place = self.least_popular();
            let known = hash_of(&self.hosts[place as usize].0);
            self.index.remove(known, place);
            self.hosts[place as usize].0 = host;
            self.hosts[place as usize].1 += 1;
            place
        } else {
            self.hosts.push((host, 1));
            // Capacities are far below 2^32.
            (self.hosts.len() - 1) as u32
        };
        self.index.insert(hash, place);
        evicted
    }

    /// Counts hosts. Returns how many others were evicted for them.
    pub(super) fn add_all(
        &mut self,
        hosts: impl Iterator<Item = u128> + Clone,
        capacity: usize,
    ) -> u64 {
        // All look-ups come first, so that their cache misses overlap.
        let find = |host| {
            self.index
                .find(hash_of(&host), |i| self.hosts[i as usize].0 == host)
        };
        let places: Vec<Option<u32>> = hosts.clone().map(find).collect();
        let mut evicted = 0;
        for (host, place) in hosts.zip(places) {
            let known = place.and_then(|i| self.hosts.get_mut(i as usize));
            match known.filter(|known| known.0 == host) {
                Some(known) => known.1 += 1,
                // New, or evicted since the look-up.
                None => evicted += u64::from(self.add(host, capacity)),
            }
        }
        evicted
    }

    /// Index of a host with the least count. Counts only grow, so one scan serves all hosts that have the
    /// least.
    fn least_popular(&mut self) -> u32 {
        loop {
            if let Some(place) = self.least.pop() {
                if self.hosts[place as usize].1 == self.least_count {
                    return place;
                }
                continue;
            }
            self.least_count = self.hosts.iter().map(|h| h.1).min().unwrap_or(0);
            let of_least = |(i, h): (u32, &(u128, u64))| (h.1 == self.least_count).then_some(i);
            self.least = (0u32..).zip(&self.hosts).filter_map(of_least).collect();
        }
    }

    pub(super) fn popularity(&self) -> Popularity {
        Popularity::new(self.hosts.iter().map(|h| h.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Totals are exact. No count is too small, and none exceeds the true one by more than the least
        /// count.
        #[test]
        fn counts_are_bounded_as_the_paper_says(hosts in prop::collection::vec(0u128..30, 1..300), capacity in 1usize..40) {
            let mut counter = Counter::default();
            let mut exact: BTreeMap<u128, u64> = BTreeMap::new();
            let mut evictions = 0;
            for some in hosts.chunks(7) {
                evictions += counter.add_all(some.iter().copied(), capacity);
                some.iter().for_each(|host| *exact.entry(*host).or_default() += 1);
            }
            prop_assert_eq!(counter.popularity().total(), hosts.len() as u64);
            let least = counter.hosts.iter().map(|h| h.1).min().unwrap();
            for (host, count) in &counter.hosts {
                prop_assert!((exact[host]..=exact[host] + least).contains(count));
            }
            if exact.len() <= capacity {
                prop_assert_eq!((evictions, counter.popularity()), (0, Popularity::new(exact.values().copied())));
            }
        }
    }
}
