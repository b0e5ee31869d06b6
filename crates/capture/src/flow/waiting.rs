//! Data sets that wait for their template.

use std::collections::{BTreeMap, VecDeque};

use super::draft::Clock;

/// Data sets that wait for their template. Their number is bounded by [`Limits`](super::Limits): the oldest has waited in
/// vain, and makes room.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    sets: BTreeMap<(u32, u16), VecDeque<WaitingSet>>,
    /// Their templates, in the order of arrival.
    order: BTreeMap<u64, (u32, u16)>,
    number: u64,
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct WaitingSet {
    number: u64,
    pub(super) clock: Clock,
    /// Where the set began, in the form that the counts use for offsets.
    pub(super) at: u64,
    pub(super) data: Box<[u8]>,
}

impl Waiting {
    /// Removes all sets and returns where each of them began.
    pub(crate) fn clear(&mut self) -> Vec<u64> {
        self.order.clear();
        self.bytes = 0;
        let sets = std::mem::take(&mut self.sets);
        sets.into_values().flatten().map(|s| s.at).collect()
    }

    /// Number of sets that wait.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn keep(&mut self, key: (u32, u16), clock: Clock, at: u64, data: &[u8]) {
        let number = self.number;
        self.number += 1;
        self.order.insert(number, key);
        self.bytes += data.len();
        let data = data.into();
        self.sets.entry(key).or_default().push_back(WaitingSet {
            number,
            clock,
            at,
            data,
        });
    }

    /// Removes the oldest set and returns where it began.
    pub(super) fn drop_oldest(&mut self) -> Option<u64> {
        let (_, key) = self.order.pop_first()?;
        let sets = self.sets.get_mut(&key)?;
        let oldest = sets.pop_front()?;
        if sets.is_empty() {
            self.sets.remove(&key);
        }
        self.bytes -= oldest.data.len();
        Some(oldest.at)
    }

    pub(super) fn take(&mut self, key: (u32, u16)) -> VecDeque<WaitingSet> {
        let sets = self.sets.remove(&key).unwrap_or_default();
        for set in &sets {
            self.order.remove(&set.number);
            self.bytes -= set.data.len();
        }
        sets
    }
}
