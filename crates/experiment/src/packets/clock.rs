//! The timestamps option of a connection (RFC 7323), as an observer at the queue makes it up.

use std::collections::{BTreeMap, VecDeque};

use swell_base::{Flags, Segment, Time};

/// A segment on its way through the bottleneck.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    ack: u64,
    len: u32,
    value: u32,
}

/// The two ends' clocks, and what each has seen of the other's.
///
/// An end's clock counts milliseconds, as Linux's does, and shows when its packet arrived at the
/// queue: packets carry no time of their own, and the access path before the queue is not known.
/// What an end echoes follows RFC 7323 section 4.3 from what has crossed the bottleneck: an
/// acknowledgement echoes the segment that it begins with, not one that is still under way. Of a
/// segment sent again, byte for byte, right after it was dropped, the first time is echoed: an observer cannot tell
/// which of the two crossed.
#[derive(Debug)]
pub(super) struct Clock {
    offset: [u32; 2],
    /// What each end echoes: TS.Recent.
    recent: [u32; 2],
    /// By way: what arrived at the queue and has not crossed yet, or was dropped.
    queued: [VecDeque<Sent>; 2],
    /// By way: what crossed and was not acknowledged yet; end and time by first sequence number.
    crossed: [BTreeMap<u64, (u64, u32)>; 2],
    /// By way: how far it is acknowledged.
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

    /// Value and echo of a segment that arrives at the queue on its `way`.
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

    /// A segment has crossed the bottleneck on its `way`.
    pub fn crossed(&mut self, way: usize, seg: &Segment) {
        let same = |s: &Sent| (s.seq, s.ack, s.len) == (seg.seq, seg.ack, seg.len);
        // A flow's packets cross in order: what is before it was dropped.
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

    /// What went `way` is acknowledged up to `ack`: the other end has got it.
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
        // A third is under way while its acknowledgement is not: nothing of it is echoed.
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
