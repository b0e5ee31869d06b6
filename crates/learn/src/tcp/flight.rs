//! Tells when a sender could have sent more than it did, so that the pause was the application's.
//!
//! A sender keeps at most a window of data in flight, and learns by ACKs what has left. ACKs that pass the tap
//! reach the sender, and the data that they release reach the tap, one RTT between tap and sender later.
//! So the data in flight as the sender sees them are known at the tap. The most that were in flight at
//! once are a lower bound of the congestion window, until a loss: then it shrinks (RFC 5681 section 3.1).
//! The receiver's window is in its ACKs.

use std::collections::VecDeque;

/// ACKs are remembered in groups of this part of the RTT to the sender …
const PARTS: u64 = 32;
/// … and as many groups as two RTTs have.
const MAX_GROUPS: usize = 64;
/// After a longer pause the window is unknown: a sender may restart from the initial one after a
/// retransmission time-out (RFC 5681 section 4.1), which is 200 ms at least in Linux (`TCP_RTO_MIN`).
const RESTART: u64 = 200_000_000;

/// Pauses up to this may be jitter of the network: batches of interrupts, and turns of wireless stations.
pub(super) const BATCH: u64 = 10_000_000;

/// Since when a sender could have sent more than it did, nanoseconds; `None` if it could not, or nobody
/// knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Room {
    /// A full segment.
    pub(super) segment: Option<u64>,
    /// As much as it sent at once before. Senders wait for room for several segments (Linux
    /// `tcp_tso_should_defer`), but not for as much.
    pub(super) burst: Option<u64>,
    /// How much it sent at once before, bytes.
    pub(super) before: u64,
    /// Whether an ACK reached the sender since it last sent.
    pub(super) acked: bool,
}

/// ACKs that passed the tap at nearly the same time.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Times of its first and last ACK, nanoseconds.
    first: u64,
    last: u64,
    /// Offset that the last acknowledges, and the end of the receive window.
    offset: u64,
    edge: u64,
}

/// The data of one direction in flight, as their sender sees it.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// The most bytes in flight at once since the last loss or long pause.
    most: u64,
    /// Nothing counts before this offset is acknowledged: what a loss left in flight exceeds the window.
    recover: u64,
    groups: VecDeque<Group>,
    /// Offset acknowledged by groups that were dropped, and the end of the receive window in them.
    acked: u64,
    edge: u64,
    /// Time of the last data, and the bytes sent since the last pause.
    last: u64,
    burst: u64,
}

impl Flight {
    /// Records an ACK up to `offset`, with a receive window up to `edge`. `back` is the RTT between tap and
    /// sender, nanoseconds. `settled`: nothing is in flight.
    pub(super) fn acked(&mut self, at: u64, [offset, edge]: [u64; 2], back: u64, settled: bool) {
        // Before any data, as most ends of most connections are: no memory is needed.
        if self.burst == 0 {
            (self.acked, self.edge) = (offset, edge);
            return;
        }
        let known = self.groups.back().map(|g| (g.offset, g.edge));
        // Otherwise one that says the same tells of a segment that has arrived, and may release another.
        if settled && known.unwrap_or((self.acked, self.edge)) == (offset, edge) {
            return;
        }
        if let Some(group) = self.groups.back_mut()
            && at.saturating_sub(group.first) <= back / PARTS
        {
            (group.last, group.offset, group.edge) = (at, offset, edge);
            return;
        }
        if self.groups.len() == MAX_GROUPS
            && let Some(oldest) = self.groups.pop_front()
        {
            (self.acked, self.edge) = (oldest.offset, oldest.edge);
        }
        self.groups.push_back(Group {
            first: at,
            last: at,
            offset,
            edge,
        });
    }

    /// Records data from offset `start` to `end`, in order. Returns since when its sender could have sent
    /// more than it had before. A full segment has `full` bytes.
    pub(super) fn sent(&mut self, at: u64, [start, end]: [u64; 2], full: u32, back: u64) -> Room {
        let pause = at.saturating_sub(std::mem::replace(&mut self.last, at));
        let room = Room {
            segment: self.room(start, u64::from(full), at, back),
            burst: self.room(start, self.burst.max(u64::from(full)), at, back),
            before: self.burst,
            // A group that has begun to arrive is of ACKs close to each other.
            acked: self.groups.front().is_some_and(|g| g.first + back <= at),
        };
        if pause > BATCH {
            self.burst = 0;
        }
        self.burst += end.saturating_sub(start);
        while let Some(group) = self.groups.front()
            && group.last + back <= at
        {
            (self.acked, self.edge) = (group.offset, group.edge);
            self.groups.pop_front();
        }
        if pause > RESTART {
            self.most = 0;
        }
        if self.acked >= self.recover {
            self.most = self.most.max(end.saturating_sub(self.acked.max(1)));
        }
        room
    }

    /// Since when `bytes` after offset `start` have fitted into the windows.
    fn room(&self, start: u64, bytes: u64, at: u64, back: u64) -> Option<u64> {
        let end = start + bytes;
        // Data up to here must be acknowledged.
        let need = end.saturating_sub(self.most);
        let fits = |offset: u64, edge: u64| offset >= need && edge >= end;
        if self.most == 0 {
            return None;
        }
        if fits(self.acked, self.edge) {
            return Some(0);
        }
        let group = self.groups.iter().find(|g| fits(g.offset, g.edge));
        group.map(|g| g.last + back).filter(|&since| since <= at)
    }

    /// Notes a loss, or what may be one, when data up to `next` had been sent.
    pub(super) fn lost(&mut self, next: u64) {
        (self.most, self.recover) = (0, next);
    }

    /// The most bytes in flight at once since the last loss or long pause.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FULL: u32 = 1_000;
    const BACK: u64 = 100 * MS;

    /// Sends bursts of so many segments at these times, each acknowledged 2 ms after it passed. Returns for
    /// how many milliseconds before each burst its sender could have sent.
    fn idle(bursts: &[(u64, u64)]) -> Vec<u64> {
        let mut flight = Flight::default();
        let (mut next, mut last) = (1, 0);
        let mut acks: VecDeque<(u64, u64)> = VecDeque::new();
        let mut found = Vec::new();
        for &(ms, segments) in bursts {
            let at = ms * MS;
            while let Some(&(time, offset)) = acks.front()
                && time <= at
            {
                flight.acked(time, [offset, u64::MAX], BACK, false);
                acks.pop_front();
            }
            for i in 0..segments {
                let end = next + u64::from(FULL);
                let room = flight.sent(at, [next, end], FULL, BACK);
                if i == 0 {
                    found.push(room.burst.map_or(0, |since| (at - since.max(last)) / MS));
                }
                next = end;
                acks.push_back((at + 2 * MS, end));
            }
            last = at;
        }
        found
    }

    #[test]
    fn a_sender_that_waits_for_acknowledgements_is_never_idle() {
        // Slow start: each burst is released by the ACKs of the one before.
        let slow_start: Vec<(u64, u64)> = (0..6).map(|i| (102 * i, 10 << i)).collect();
        assert_eq!(idle(&slow_start), [0; 6]);
        // A window of 24 segments in four bursts, which the ACKs keep apart.
        let bursts: Vec<(u64, u64)> = (0..40).map(|i| (102 * (i / 4) + 20 * (i % 4), 6)).collect();
        assert_eq!(idle(&bursts), [0; 40]);
    }

    #[test]
    fn a_sender_that_had_more_in_flight_before_is_idle() {
        let bursts: Vec<(u64, u64)> = (0..20).map(|i| (33 * i, 6)).collect();
        let idle = idle(&bursts);
        // Not known before the first round trip is over.
        assert_eq!(idle[..4], [0; 4]);
        assert!(
            idle[5..].iter().all(|&ms| (28..=33).contains(&ms)),
            "{idle:?}"
        );
    }

    #[test]
    fn a_sender_that_fills_the_receivers_window_is_not_idle() {
        let mut flight = Flight::default();
        let mut room = |at: u64, start: u64, acked: u64, window: u64| {
            flight.acked(at * MS, [acked, acked + window], 0, false);
            flight
                .sent((at + 30) * MS, [start, start + 1_000], FULL, 0)
                .segment
        };
        assert_eq!(room(0, 1, 1, 9_000), None);
        assert_eq!(room(100, 1_001, 1_001, 9_000), Some(100 * MS));
        assert_eq!(room(200, 2_001, 2_001, 500), None);
        assert_eq!(room(300, 3_001, 2_001, 9_000), None);
        assert_eq!(room(400, 4_001, 4_001, 9_000), Some(400 * MS));
    }

    #[test]
    fn a_loss_makes_the_window_unknown() {
        let mut flight = Flight::default();
        flight.sent(0, [1, 20_001], FULL, 0);
        flight.acked(10 * MS, [10_001, u64::MAX], 0, false);
        let room = flight.sent(30 * MS, [20_001, 21_001], FULL, 0);
        assert_eq!((room.segment, room.burst), (Some(10 * MS), None));
        flight.lost(21_001);
        flight.acked(40 * MS, [20_001, u64::MAX], 0, false);
        let after = flight.sent(70 * MS, [21_001, 23_001], FULL, 0);
        assert_eq!((after.segment, after.burst), (None, None));
        // What the loss left in flight counted no more; what was sent since does.
        assert_eq!(flight.most(), 0);
        flight.acked(80 * MS, [23_001, u64::MAX], 0, false);
        let later = flight.sent(90 * MS, [23_001, 25_001], FULL, 0);
        assert_eq!((later.segment, later.burst), (None, None));
        assert_eq!(flight.most(), 2_000);
    }
}
