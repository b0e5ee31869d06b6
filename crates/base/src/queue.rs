//! The event queue: sorted buckets for what is near, a radix wheel for what is far.

mod far;

use crate::Time;

use self::far::Far;

/// A bucket spans 2^15 ns, 33 us: a few transmissions on a busy link.
const BUCKET_BITS: u32 = 15;
/// Buckets ahead of the present one: 67 ms, most round trips. A power of two, at most 64 words.
const BUCKETS: usize = 2048;
const WORDS: usize = BUCKETS / 64;

/// Events ordered by time; events at one instant come out in the order they went in.
///
/// A calendar: an event that is due within the next [`BUCKETS`] buckets is appended to its bucket;
/// a bucket is sorted (stably) when its turn comes. What is due later waits in a radix wheel and
/// moves into its bucket the moment that bucket comes within reach, before anything else can be
/// put there, so that equal times keep their order. An event is thus touched about twice, however
/// many are pending.
///
/// Times must never lie before the last one popped: a simulator's do not.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// The present bucket, sorted; taken from `cursor` on.
    active: Vec<(Time, T)>,
    cursor: usize,
    /// Number of the present bucket: time >> BUCKET_BITS.
    bucket: u64,
    /// Buckets after the present one, by number modulo BUCKETS.
    near: Vec<Vec<(Time, T)>>,
    /// A bit per bucket that is not empty, and a bit per word that is not zero.
    occupied: [u64; WORDS],
    words: u64,
    far: Far<T>,
    now: Time,
    len: usize,
}

impl<T: Copy> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<T: Copy> EventQueue<T> {
    /// An empty queue at the beginning of time.
    pub fn new() -> Self {
        EventQueue {
            active: Vec::new(),
            cursor: 0,
            bucket: 0,
            near: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            words: 0,
            far: Far::new(),
            now: Time::ZERO,
            len: 0,
        }
    }

    /// Events pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event at `at`, which must not lie before the last event popped.
    #[inline]
    pub fn push(&mut self, at: Time, event: T) {
        debug_assert!(at >= self.now, "an event in the past");
        self.len += 1;
        let bucket = at.as_nanos() >> BUCKET_BITS;
        if bucket <= self.bucket {
            // After everything that is due no later.
            let after = self.active[self.cursor..].partition_point(|e| e.0 <= at);
            self.active.insert(self.cursor + after, (at, event));
        } else if bucket - self.bucket < BUCKETS as u64 {
            self.append(bucket, at, event);
        } else {
            self.far.push(at, event);
        }
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, T)> {
        if self.cursor == self.active.len() && !self.turn() {
            return None;
        }
        let (at, event) = self.active[self.cursor];
        if at > until {
            return None;
        }
        self.cursor += 1;
        self.now = at;
        self.len -= 1;
        Some((at, event))
    }

    /// When the earliest event is due.
    pub fn next_at(&self) -> Option<Time> {
        if let Some(first) = self.active.get(self.cursor) {
            return Some(first.0);
        }
        match self.next_bucket() {
            Some(bucket) => self.near[bucket as usize % BUCKETS]
                .iter()
                .map(|e| e.0)
                .min(),
            None => self.far.next_at(),
        }
    }

    #[inline]
    fn append(&mut self, bucket: u64, at: Time, event: T) {
        let i = bucket as usize % BUCKETS;
        self.near[i].push((at, event));
        self.occupied[i / 64] |= 1 << (i % 64);
        self.words |= 1 << (i / 64);
    }

    /// Goes on to the next bucket that holds something; false if there is none.
    #[inline]
    fn turn(&mut self) -> bool {
        self.active.clear();
        self.cursor = 0;
        match self.next_bucket() {
            Some(bucket) => self.bucket = bucket,
            None => match self.far.next_at() {
                Some(at) => self.bucket = at.as_nanos() >> BUCKET_BITS,
                None => return false,
            },
        }
        // What comes within reach of the new present moves up before anything is added there.
        let last = self.bucket + (BUCKETS as u64 - 1);
        if self.far.earliest() <= last {
            self.reach(last);
        }
        let i = self.bucket as usize % BUCKETS;
        std::mem::swap(&mut self.active, &mut self.near[i]);
        self.occupied[i / 64] &= !(1 << (i % 64));
        if self.occupied[i / 64] == 0 {
            self.words &= !(1 << (i / 64));
        }
        if self.active.len() > 1 {
            self.active.sort_by_key(|e| e.0);
        }
        true
    }

    #[inline(never)]
    fn reach(&mut self, last: u64) {
        let (near, occupied, words) = (&mut self.near, &mut self.occupied, &mut self.words);
        self.far.reach(last, |bucket, at, event| {
            let i = bucket as usize % BUCKETS;
            near[i].push((at, event));
            occupied[i / 64] |= 1 << (i % 64);
            *words |= 1 << (i / 64);
        });
    }

    /// The next bucket after the present one that holds something, going round.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        if self.words == 0 {
            return None;
        }
        let here = self.bucket as usize % BUCKETS;
        let from = (here + 1) % BUCKETS;
        let (word, bit) = (from / 64, from % 64);
        let rest = self.occupied[word] >> bit;
        let found = if rest != 0 {
            from + rest.trailing_zeros() as usize
        } else {
            // Words after this one first, then from the beginning up to this one.
            let later = self.words & (!0u64).checked_shl(word as u32 + 1).unwrap_or(0);
            let words = if later != 0 { later } else { self.words };
            let w = words.trailing_zeros() as usize;
            w * 64 + self.occupied[w].trailing_zeros() as usize
        };
        let ahead = (found + BUCKETS - here) % BUCKETS;
        Some(self.bucket + ahead as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use std::collections::BTreeMap;

    /// The oracle: a map from (time, sequence number) to event.
    #[test]
    fn pops_in_the_order_of_a_time_and_sequence_map() {
        for seed in 0..20 {
            let mut rng = Stream::new(seed, "queue");
            let mut wheel = EventQueue::new();
            let mut map = BTreeMap::new();
            let (mut now, mut seq) = (0u64, 0u32);
            for _ in 0..20_000 {
                if rng.chance(0.52) || map.is_empty() {
                    let gap = match rng.below(5) {
                        0 => 0,
                        1 => 12_000,
                        2 => rng.below(1 << 12),
                        3 => rng.below(1 << 28),
                        _ => rng.below(1 << 45),
                    };
                    wheel.push(Time::from_nanos(now + gap), seq);
                    map.insert((now + gap, seq), ());
                    seq += 1;
                } else {
                    let until = now + rng.below(1 << 30);
                    let want = map
                        .first_key_value()
                        .map(|(k, ())| *k)
                        .filter(|k| k.0 <= until);
                    assert_eq!(
                        wheel.next_at().map(Time::as_nanos),
                        map.first_key_value().map(|(k, ())| k.0)
                    );
                    let got = wheel
                        .pop_until(Time::from_nanos(until))
                        .map(|(t, e)| (t.as_nanos(), e));
                    assert_eq!(got, want);
                    if let Some(k) = want {
                        map.remove(&k);
                        now = k.0;
                    }
                }
                assert_eq!(wheel.len(), map.len());
            }
        }
    }
}
