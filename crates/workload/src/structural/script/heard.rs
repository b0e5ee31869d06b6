//! What one end of a connection has received, in units of the other end.

use std::collections::VecDeque;

use swell_base::Time;
use swell_traffic::Chain;

/// The complete units that arrived.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Their number and their bytes.
    pub units: u32,
    bytes: u64,
    /// When the latest of them arrived, oldest first.
    times: VecDeque<Time>,
}

impl Heard {
    /// Counts the units of `other` within the first `received` bytes. Those not counted before have arrived by `now`.
    /// Forgets the times of the first `known` units.
    pub fn count(&mut self, other: &Chain<'_>, received: u64, now: Time, known: u32) {
        while let Some(unit) = other.get(self.units as usize)
            && self.bytes.saturating_add(unit.bytes) <= received
        {
            self.units += 1;
            self.bytes += unit.bytes;
            self.times.push_back(now);
        }
        let needed = self.units.saturating_sub(known) as usize;
        while self.times.len() > needed {
            self.times.pop_front();
        }
    }

    /// When the unit of this number, from 1, had arrived; `now` if its time is not known.
    pub fn when(&self, unit: u32, now: Time) -> Time {
        let later = self.units.saturating_sub(unit) as usize;
        let place = self.times.len().checked_sub(later + 1);
        place
            .and_then(|i| self.times.get(i).copied())
            .unwrap_or(now)
    }
}
