//! Events beyond the reach of the calendar: an array-bucket radix wheel over bucket numbers.

use crate::Time;

use super::near::BUCKET_BITS;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = (u64::BITS - BUCKET_BITS).div_ceil(BITS) as usize;

/// A radix wheel (a monotone radix heap with array buckets). The level of an event is the highest digit in which its
/// bucket number differs from the wheel's, and its slot is that digit. The lowest non-empty slot holds the earliest
/// event. A slot is redistributed, in order, when its beginning comes within reach. Equal times always share a slot,
/// so they keep their order.
#[derive(Debug)]
pub(super) struct Far<T> {
    /// `slots[level * SLOTS + digit]`.
    slots: Vec<Vec<(Time, T)>>,
    /// A bit per non-empty slot.
    occupied: [u64; LEVELS],
    /// A bit per non-empty level.
    levels: u32,
    /// The wheel's bucket number, from which levels are computed. No event is in an earlier bucket.
    now: u64,
    /// No event is in an earlier bucket than this.
    earliest: u64,
}

impl<T: Copy> Far<T> {
    pub fn new() -> Self {
        Far {
            slots: (0..SLOTS * LEVELS).map(|_| Vec::new()).collect(),
            occupied: [0; LEVELS],
            levels: 0,
            now: 0,
            earliest: u64::MAX,
        }
    }

    /// A lower bound on the bucket of the earliest event; the maximum if there is no event.
    #[inline]
    pub fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Adds an event. Its bucket must be beyond all buckets passed to [`Far::reach`] so far.
    #[inline]
    pub fn push(&mut self, at: Time, event: T) {
        let bucket = at.as_nanos() >> BUCKET_BITS;
        self.earliest = self.earliest.min(bucket);
        self.place(bucket, at, event);
    }

    /// Hands out, in order, every event whose bucket is at most `last`.
    pub fn reach(&mut self, last: u64, mut hand_out: impl FnMut(u64, Time, T)) {
        loop {
            let Some((level, digit)) = self.first() else {
                self.earliest = u64::MAX;
                return;
            };
            let shift = level as u32 * BITS;
            // The first bucket of the slot: the wheel's number above this digit, this digit, and zeros below.
            let above = self.now.checked_shr(shift + BITS).unwrap_or(0);
            let start = (above.checked_shl(BITS).unwrap_or(0) | digit as u64) << shift;
            if start > last {
                self.earliest = start;
                return;
            }
            self.now = self.now.max(start);
            let index = level * SLOTS + digit;
            let mut events = std::mem::take(&mut self.slots[index]);
            self.clear_bit(level, digit);
            for &(at, event) in &events {
                let bucket = at.as_nanos() >> BUCKET_BITS;
                if bucket <= last {
                    hand_out(bucket, at, event);
                } else {
                    self.place(bucket, at, event);
                }
            }
            // The array keeps its capacity for later events in this slot.
            events.clear();
            let slot = &mut self.slots[index];
            if slot.is_empty() {
                *slot = events;
            }
        }
    }

    /// When the earliest event is due.
    pub fn next_at(&self) -> Option<Time> {
        let (level, digit) = self.first()?;
        self.slots[level * SLOTS + digit].iter().map(|e| e.0).min()
    }

    #[inline]
    fn place(&mut self, bucket: u64, at: Time, event: T) {
        let differing = bucket ^ self.now;
        let level = differing.checked_ilog2().map_or(0, |bit| bit / BITS) as usize;
        let digit = (bucket >> (level as u32 * BITS)) as usize & (SLOTS - 1);
        self.slots[level * SLOTS + digit].push((at, event));
        self.occupied[level] |= 1 << digit;
        self.levels |= 1 << level;
    }

    #[inline]
    fn first(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    #[inline]
    fn clear_bit(&mut self, level: usize, digit: usize) {
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}
