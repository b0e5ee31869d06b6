//! The bytes of one direction of a connection, and the messages to which they belong.

use std::collections::{BTreeMap, VecDeque};

/// The number of the handshake among the messages of a lane.
pub(super) const HELLO: u32 = u32::MAX;

/// Bytes of one message that are sent before those of the next, if messages take turns: the largest frame that HTTP/2
/// allows by default (RFC 9113 section 4.2).
const TURN: u64 = 16 << 10;

/// One direction of a connection: messages that the sender wrote, and what has arrived of them. Bytes are numbered in
/// the order in which they are first sent.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Messages with bytes that have no number yet, and how many: in the order in which they are sent.
    waiting: VecDeque<(u32, u64)>,
    /// Messages of numbered bytes, from the oldest that has not arrived.
    runs: VecDeque<Run>,
    /// Bytes that have a number.
    numbered: u64,
    /// What has arrived: disjoint ranges in order, which do not touch.
    arrived: Vec<(u64, u64)>,
    /// Bytes in order reported as arrived.
    in_order: u64,
    /// Bytes that have not arrived, by message.
    missing: BTreeMap<u32, u64>,
}

/// Consecutive bytes of one message.
#[derive(Debug)]
struct Run {
    start: u64,
    end: u64,
    message: u32,
}

/// What came of an arrival.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// New bytes, without those of the handshake.
    pub bytes: u64,
    /// Messages that are complete now, in the order of their last bytes.
    pub whole: Vec<u32>,
}

impl Lane {
    /// The sender writes a message of so many bytes, behind those that wait.
    pub fn write(&mut self, message: u32, bytes: u64) {
        self.waiting.push_back((message, bytes));
        self.missing.insert(message, bytes);
    }

    /// The sender has sent the first `sent` bytes, of messages that took turns. What is written later shares the rest.
    pub fn has_sent(&mut self, sent: u64) {
        self.number(sent, true);
    }

    /// So many more bytes arrived in order. `turns`: whether messages take turns.
    pub fn next(&mut self, bytes: u64, turns: bool) -> Arrival {
        let from = self.in_order;
        self.in_order = from.saturating_add(bytes);
        self.range(from, self.in_order, turns)
    }

    /// These bytes arrived. Those that had arrived before do not count again.
    pub fn range(&mut self, from: u64, to: u64, turns: bool) -> Arrival {
        let first = self.arrived.partition_point(|r| r.1 < from);
        let last = self.arrived.partition_point(|r| r.0 <= to);
        let (mut new, mut at) = (Vec::new(), from);
        let mut all = (from, to);
        for &(start, end) in self.arrived.get(first..last).unwrap_or_default() {
            if at < start {
                new.push((at, start));
            }
            at = at.max(end);
            all = (all.0.min(start), all.1.max(end));
        }
        if at < to {
            new.push((at, to));
        }
        self.arrived.splice(first..last.max(first), [all]);
        let mut arrival = Arrival::default();
        for (start, end) in new {
            self.assign(start, end, turns, &mut arrival);
        }
        let there = self.arrived.first().filter(|r| r.0 == 0);
        let there = there.map_or(0, |r| r.1);
        while self.runs.front().is_some_and(|run| run.end <= there) {
            self.runs.pop_front();
        }
        arrival
    }

    /// Counts new bytes for their messages.
    fn assign(&mut self, from: u64, to: u64, turns: bool, arrival: &mut Arrival) {
        self.number(to, turns);
        let first = self.runs.partition_point(|run| run.end <= from);
        for run in self.runs.range(first..) {
            if run.start >= to {
                break;
            }
            let bytes = run.end.min(to) - run.start.max(from);
            let Some(missing) = self.missing.get_mut(&run.message) else {
                continue;
            };
            *missing -= bytes;
            if run.message != HELLO {
                arrival.bytes += bytes;
            }
            if *missing == 0 {
                self.missing.remove(&run.message);
                arrival.whole.push(run.message);
            }
        }
    }

    /// Numbers the bytes below `to`, and the rest of the last turn.
    fn number(&mut self, to: u64, turns: bool) {
        while self.numbered < to
            && let Some((message, left)) = self.waiting.pop_front()
        {
            let n = if turns { left.min(TURN) } else { left };
            let start = self.numbered;
            self.numbered = start.saturating_add(n);
            self.runs.push_back(Run {
                start,
                end: self.numbered,
                message,
            });
            if left > n {
                self.waiting.push_back((message, left - n));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(messages: &[(u32, u64)]) -> Lane {
        let mut lane = Lane::default();
        for &(message, bytes) in messages {
            lane.write(message, bytes);
        }
        lane
    }

    fn whole(bytes: u64, whole: &[u32]) -> Arrival {
        Arrival {
            bytes,
            whole: whole.to_vec(),
        }
    }

    #[test]
    fn messages_in_order_end_where_their_bytes_end() {
        let mut one = lane(&[(7, 100), (3, 50), (9, 1)]);
        assert_eq!(one.next(99, false), whole(99, &[]));
        assert_eq!(one.next(51, false), whole(51, &[7, 3]));
        assert_eq!(one.next(1, false), whole(1, &[9]));
        assert!(one.runs.is_empty() && one.missing.is_empty());
    }

    #[test]
    fn bytes_beyond_a_hole_complete_their_own_message_and_count_once() {
        let mut one = lane(&[(HELLO, 10), (0, 100), (1, 100)]);
        assert_eq!(one.next(10, false), whole(0, &[HELLO]));
        // 10..60 is lost.
        assert_eq!(one.range(60, 150, false), whole(90, &[]));
        assert_eq!(one.range(140, 210, false), whole(60, &[1]));
        assert_eq!(one.range(100, 200, false), whole(0, &[]));
        // The repair fills the hole, and the rest is in order as well.
        assert_eq!(one.next(200, false), whole(50, &[0]));
        assert_eq!(one.arrived, [(0, 210)]);
        assert!(one.runs.is_empty());
    }

    #[test]
    fn messages_that_take_turns_share_what_is_not_sent() {
        let mut one = lane(&[(0, 5 * TURN)]);
        // The second is written when one turn and a byte of the next have been sent.
        one.has_sent(TURN + 1);
        one.write(1, TURN + 10);
        // Turns: 0 0 | 0 1 0 1(10 bytes) 0.
        assert_eq!(one.next(3 * TURN, true), whole(3 * TURN, &[]));
        assert_eq!(one.next(2 * TURN, true), whole(2 * TURN, &[]));
        assert_eq!(one.next(10, true), whole(10, &[1]));
        assert_eq!(one.next(TURN, true), whole(TURN, &[0]));
        // In the order of writing, the first would have been complete first.
        let mut other = lane(&[(0, 5 * TURN), (1, TURN + 10)]);
        assert_eq!(other.next(5 * TURN, false), whole(5 * TURN, &[0]));
    }

    #[test]
    fn every_byte_is_counted_once_whatever_the_order() {
        let sizes = [40_000u64, 1, 33_000, 16_384, 70_001];
        let total: u64 = sizes.iter().sum();
        for turns in [false, true] {
            let messages: Vec<(u32, u64)> = (0..).zip(sizes).collect();
            let mut one = lane(&messages);
            let (mut bytes, mut found) = (0, Vec::new());
            // Pieces of 997 bytes in the order of multiples of 61, which visits each once; pieces overlap by a few.
            let pieces = total.div_ceil(997);
            assert_ne!(pieces % 61, 0);
            for i in 0..pieces {
                let start = i * 61 % pieces * 997;
                let got = one.range(start, (start + 1_010).min(total), turns);
                bytes += got.bytes;
                found.extend(got.whole);
            }
            found.sort_unstable();
            assert_eq!((bytes, found), (total, vec![0, 1, 2, 3, 4]));
            assert_eq!(one.next(total, turns), whole(0, &[]));
        }
    }

    #[test]
    fn an_enormous_message_takes_no_memory() {
        let mut one = lane(&[(0, u64::MAX / 2), (1, u64::MAX / 2)]);
        assert_eq!(one.next(10 * TURN, true), whole(10 * TURN, &[]));
        assert!(one.runs.len() <= 1, "{}", one.runs.len());
        let mut other = lane(&[(0, u64::MAX / 2), (1, u64::MAX / 2)]);
        assert_eq!(other.range(u64::MAX - 3, u64::MAX - 1, false).bytes, 2);
    }
}
