//! The timestamps option of a connection (RFC 7323), reconstructed by an observer at the queue.

use std::collections::{BTreeMap, VecDeque};

use swell_base::{Flags, Segment, Time};

/// A segment that is crossing the bottleneck.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    ack: u64,
    len: u32,
    value: u32,
}

/// The clocks of both ends, and the timestamps that each has received from the other.
///
/// An end's clock counts milliseconds, as in Linux. A timestamp is the time at which the packet arrived at the queue,
/// because packets carry no time of their own and the access path before the queue is unknown.
/// Echoes follow RFC 7323 section 4.3, based on the segments that have crossed the bottleneck: an
/// ACK echoes the segment at the left edge of what it acknowledges, never one that is still in transit. If an identical
/// segment is sent again right after the first was dropped, the time of the first is echoed, because an observer cannot
/// tell which of the two crossed.
#[derive(Debug)]
pub(super) struct Clock {
    offset: [u32; 2],
    /// The timestamp that each end echoes: TS.Recent.
    recent: [u32; 2],
    /// By direction: segments that arrived at the queue and have not crossed yet, or were dropped.
    queued: [VecDeque<Sent>; 2],
    /// By direction: segments that crossed and are not acknowledged yet; end and time by first sequence number.
    crossed: [BTreeMap<u64, (u64, u32)>; 2],
    /// By direction: the highest cumulative ACK.
    acked: [u64; 2],
}

impl Clock {
    /// Clocks that showed `offset` when the run began.
    pub fn new(offset: [u32; 2]) -> Clock {
        Clock {
            offset,
            recent: [0; 2],
            queued: Default::default(),
            crossed: Default::default(),
            acked: [0; 2],
        }
    }

    /// Value and echo of a segment that arrives at the queue in direction `way`.
    pub fn stamp(&mut self, at: Time, way: usize, seg: &Segment) -> (u32, u32) {
        let milliseconds = (at.as_nanos() / 1_000_000) as u32;
        let value = self.offset[way].wrapping_add(milliseconds);
        let mut echo = 0;
        if seg.flags.has(Flags::ACK) {
            self.acknowledged(way ^ 1, seg.ack);
            echo = self.recent[way];
        }
        self.queued[way].push_back(Sent {
            seq: seg.seq,
            ack: seg.ack,
            len: seg.len,
            value,
        });
        (value, echo)
    }

    /// A segment has crossed the bottleneck in direction `way`.
    pub fn crossed(&mut self, way: usize, seg: &Segment) {
        let same = |s: &Sent| (s.seq, s.ack, s.len) == (seg.seq, seg.ack, seg.len);
        // A flow's packets cross in order, so earlier ones in the list were dropped.
        let Some(sent) = std::iter::from_fn(|| self.queued[way].pop_front()).find(same) else {
            return;
        };
        let end = seg.seq + seg.seq_len();
        if end > self.acked[way] && seg.seq_len() > 0 {
            self.crossed[way].insert(seg.seq, (end, sent.value));
        } else if end <= self.acked[way] {
            self.recent[way ^ 1] = sent.value;
        }
    }

    /// Data in direction `way` is acknowledged up to `ack`, so the other end has received it.
    fn acknowledged(&mut self, way: usize, ack: u64) {
        let before = self.acked[way];
        if ack <= before {
            return;
        }
        let crossed = &mut self.crossed[way];
        if let Some((_, &(end, value))) = crossed.range(..=before).next_back()
            && end > before
        {
            self.recent[way ^ 1] = value;
        }
        while let Some(first) = crossed.first_entry()
            && first.get().0 <= ack
        {
            first.remove();
        }
        self.acked[way] = ack;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seg(seq: u64, len: u32, ack: u64) -> Segment {
        Segment {
            seq,
            len,
            ack,
            flags: Flags::ACK,
            ..Segment::default()
        }
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn an_acknowledgement_echoes_the_first_segment_it_acknowledges() {
        let mut clock = Clock::new([1000, 5000]);
        let (one, two) = (seg(0, 100, 0), seg(100, 100, 0));
        assert_eq!(clock.stamp(ms(1), 0, &one), (1001, 0));
        assert_eq!(clock.stamp(ms(2), 0, &two), (1002, 0));
        clock.crossed(0, &one);
        clock.crossed(0, &two);
        assert_eq!(clock.stamp(ms(9), 1, &seg(0, 0, 200)), (5009, 1001));
        // A third segment is still in transit, so it is not echoed.
        clock.stamp(ms(10), 0, &seg(200, 100, 0));
        assert_eq!(clock.stamp(ms(11), 1, &seg(0, 0, 200)), (5011, 1001));
    }

    #[test]
    fn after_a_loss_the_echo_stays_until_the_hole_is_filled() {
        let mut clock = Clock::new([0, 0]);
        for (t, seq) in [(1, 0), (2, 100), (3, 200)] {
            clock.stamp(ms(t), 0, &seg(seq, 100, 0));
        }
        clock.crossed(0, &seg(0, 100, 0));
        clock.crossed(0, &seg(200, 100, 0));
        assert_eq!(clock.stamp(ms(5), 1, &seg(0, 0, 100)).1, 1);
        assert_eq!(clock.stamp(ms(6), 1, &seg(0, 0, 100)).1, 1, "a duplicate");
        clock.stamp(ms(8), 0, &seg(100, 100, 0));
        clock.crossed(0, &seg(100, 100, 0));
        assert_eq!(clock.stamp(ms(9), 1, &seg(0, 0, 300)).1, 8);
        assert!(clock.crossed[0].is_empty() && clock.queued[0].is_empty());
    }
}
