//! One-way delays of datagrams, from the host that sends them to the host that receives them.

use std::collections::BTreeMap;

use swell_base::{Direction, Dur, Head, Time};

/// Buckets per octave, as a power of two: the upper edge of a bucket is at most 1.6 % above the lower one.
const FINE: u32 = 6;

/// Datagrams with similar delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayBucket {
    /// Shortest delay of the bucket.
    pub from: Dur,
    /// Upper edge: every delay is below it.
    pub to: Dur,
    /// Datagrams.
    pub packets: u64,
    /// Their network-layer bytes.
    pub bytes: u64,
    /// Sum of their delays, nanoseconds.
    pub sum: u128,
}

/// The datagrams of a workload that arrived, by direction and one-way delay, of those sent from a certain time on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Delays {
    from: Time,
    ways: [BTreeMap<u32, (u64, u64, u128)>; 2],
}

impl Delays {
    /// Counts nothing yet. Datagrams sent before `from` will not be counted.
    pub fn new(from: Time) -> Delays {
        Delays {
            from,
            ..Delays::default()
        }
    }

    /// A datagram arrives at `now`.
    pub fn arrived(&mut self, now: Time, direction: Direction, packet: &Head) {
        self.arrives(now, direction, packet.seg.stamps.age(now), packet.size);
    }

    /// A datagram of `size` bytes arrives at `now`, `delay` after it was sent.
    fn arrives(&mut self, now: Time, direction: Direction, delay: Dur, size: u16) {
        if now.as_nanos() < self.from.as_nanos() + delay.as_nanos() {
            return;
        }
        let ns = delay.as_nanos();
        let bucket = self.ways[direction].entry(index(ns)).or_default();
        bucket.0 += 1;
        bucket.1 += u64::from(size);
        bucket.2 += u128::from(ns);
    }

    /// The buckets of a direction that hold anything, the shortest delays first.
    pub fn buckets(&self, direction: Direction) -> impl Iterator<Item = DelayBucket> + '_ {
        let ways = self.ways[direction].iter();
        ways.map(|(&i, &(packets, bytes, sum))| {
            let (from, to) = edges(i);
            DelayBucket {
                from: Dur::from_nanos(from),
                to: Dur::from_nanos(to),
                packets,
                bytes,
                sum,
            }
        })
    }
}

/// The bucket of a delay: one for each nanosecond below `2^FINE`, then `2^FINE` for each octave.
fn index(ns: u64) -> u32 {
    match ns.checked_ilog2() {
        Some(octave) if octave >= FINE => {
            let within = (ns >> (octave - FINE)) as u32 & ((1 << FINE) - 1);
            ((octave - FINE + 1) << FINE) + within
        }
        _ => ns as u32,
    }
}

/// Lower and upper edge of a bucket, nanoseconds.
fn edges(index: u32) -> (u64, u64) {
    let (octave, within) = (index >> FINE, u64::from(index & ((1 << FINE) - 1)));
    match octave {
        0 => (within, within + 1),
        _ => {
            let from = (within + (1 << FINE)) << (octave - 1);
            (from, from.saturating_add(1 << (octave - 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_lies_between_its_edges() {
        let each = (0..40).flat_map(|octave| {
            let whole = 1u64 << octave;
            [whole - 1, whole, whole + 1, whole + whole / 3]
        });
        for ns in each {
            let (from, to) = edges(index(ns));
            assert!(from <= ns && ns < to, "{ns} in {from}..{to}");
            assert!(to - from <= 1 + from / 64, "{from}..{to}");
        }
    }

    #[test]
    fn what_was_sent_before_does_not_count() {
        let ms = |n| Dur::from_millis(n);
        let mut delays = Delays::new(Time::ZERO + ms(100));
        for (now, delay) in [(109, 10), (110, 10), (150, 20)] {
            delays.arrives(Time::ZERO + ms(now), Direction::Down, ms(delay), 500);
        }
        let seen: Vec<DelayBucket> = delays.buckets(Direction::Down).collect();
        assert_eq!(seen.len(), 2);
        assert_eq!(
            (seen[0].packets, seen[0].bytes, seen[0].sum),
            (1, 500, 10_000_000)
        );
        assert_eq!(delays.buckets(Direction::Up).count(), 0);
    }
}
