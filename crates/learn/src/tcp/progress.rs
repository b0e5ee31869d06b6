//! How far the data of a direction had come at times of the last round trip.

use std::collections::VecDeque;

/// Times are remembered in groups of this part of the round trip …
const PARTS: u64 = 64;
/// … and as many groups as one round trip has, and one that is over.
const MAX_GROUPS: usize = 72;

/// Data that passed the tap at nearly the same time.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Times of its first and last packet, nanoseconds.
    first: u64,
    last: u64,
    /// Offset after its last byte.
    end: u64,
}

/// The offsets that data of one direction had reached, for the last round trip to their receiver.
#[derive(Debug, Default)]
pub(super) struct Progress {
    groups: VecDeque<Group>,
}

impl Progress {
    /// Records data up to offset `end` at time `at`. `round_trip`: RTT to the receiver, nanoseconds.
    pub(super) fn push(&mut self, end: u64, at: u64, round_trip: u64) {
        if let Some(group) = self.groups.back_mut()
            && at.saturating_sub(group.first) <= round_trip / PARTS
        {
            (group.last, group.end) = (at, end);
            return;
        }
        // Of those that are a round trip old, the latest says all.
        while let Some(second) = self.groups.get(1)
            && (second.last + round_trip <= at || self.groups.len() >= MAX_GROUPS)
        {
            self.groups.pop_front();
        }
        self.groups.push_back(Group {
            first: at,
            last: at,
            end,
        });
    }

    /// An offset that the data had reached at time `at`; 0 if nothing is known.
    pub(super) fn reached(&self, at: u64) -> u64 {
        let known = self.groups.partition_point(|g| g.last <= at);
        let group = known.checked_sub(1).and_then(|i| self.groups.get(i));
        group.map_or(0, |g| g.end)
    }

    pub(super) fn clear(&mut self) {
        self.groups.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_round_trip_is_known() {
        let mut progress = Progress::default();
        assert_eq!(progress.reached(5), 0);
        for i in 1..=10_000u64 {
            let at = 700 * i;
            progress.push(i, at, 64_000);
            for back in [0, 1_000, 30_000, 63_000] {
                let found = progress.reached(at.saturating_sub(back));
                let exact = at.saturating_sub(back) / 700;
                // Groups are 1000 ns long: what came in one of them is known when it is over.
                let late = exact.saturating_sub(2);
                assert!((late..=exact).contains(&found), "{found} {exact} {back}");
            }
            assert!(progress.groups.len() <= MAX_GROUPS);
        }
    }
}
