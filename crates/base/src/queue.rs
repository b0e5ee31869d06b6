//! The event queue: an array-bucket radix wheel.

use crate::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// Events ordered by time; events at one instant come out in the order they went in.
///
/// A radix wheel (a monotone radix heap with array buckets): an event lies on the level of the
/// highest digit in which its time differs from the wheel's, in the slot of that digit. The lowest
/// non-empty slot holds the earliest event; taking from a higher level first deals that slot out
/// anew, in order, so that equal times (which always share a slot) keep their order. Cost is flat
/// in the number of pending events.
///
/// Times must never lie before the last one popped: a simulator's do not.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// `slots[level * SLOTS + digit]`.
    slots: Vec<Vec<(Time, T)>>,
    /// A bit per slot that is not empty.
    occupied: [u64; LEVELS],
    /// A bit per level that is not empty.
    levels: u32,
    /// Read position in the level-0 slot being drained, so that its front is taken in O(1).
    cursor: usize,
    now: u64,
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
            slots: (0..SLOTS * LEVELS).map(|_| Vec::new()).collect(),
            occupied: [0; LEVELS],
            levels: 0,
            cursor: 0,
            now: 0,
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
        debug_assert!(at.as_nanos() >= self.now, "an event in the past");
        let t = at.as_nanos().max(self.now);
        self.place(t, event);
        self.len += 1;
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, T)> {
        if self.len == 0 {
            return None;
        }
        loop {
            let (level, digit) = self.first()?;
            let index = level * SLOTS + digit;
            if level == 0 {
                let slot = &mut self.slots[index];
                let (at, event) = slot[self.cursor];
                if at > until {
                    return None;
                }
                self.now = at.as_nanos();
                self.cursor += 1;
                if self.cursor == slot.len() {
                    slot.clear();
                    self.cursor = 0;
                    self.clear_bit(0, digit);
                }
                self.len -= 1;
                return Some((at, event));
            }
            // Nothing on lower levels: this slot holds the earliest event.
            let slot = &self.slots[index];
            if let [(at, event)] = slot[..] {
                if at > until {
                    return None;
                }
                self.now = at.as_nanos();
                self.slots[index].clear();
                self.clear_bit(level, digit);
                self.len -= 1;
                return Some((at, event));
            }
            let earliest = slot.iter().map(|e| e.0).min()?;
            if earliest > until {
                return None;
            }
            self.now = earliest.as_nanos();
            let mut events = std::mem::take(&mut self.slots[index]);
            self.clear_bit(level, digit);
            for &(at, event) in &events {
                self.place(at.as_nanos(), event);
            }
            // The array keeps its room for the next events that land here.
            events.clear();
            self.slots[index] = events;
        }
    }

    /// When the earliest event is due.
    pub fn next_at(&self) -> Option<Time> {
        let (level, digit) = self.first()?;
        let slot = &self.slots[level * SLOTS + digit];
        if level == 0 {
            Some(slot[self.cursor].0)
        } else {
            slot.iter().map(|e| e.0).min()
        }
    }

    #[inline]
    fn place(&mut self, t: u64, event: T) {
        let differing = t ^ self.now;
        let level = if differing == 0 {
            0
        } else {
            ((u64::BITS - 1 - differing.leading_zeros()) / BITS) as usize
        };
        let digit = (t >> (level as u32 * BITS)) as usize & (SLOTS - 1);
        self.slots[level * SLOTS + digit].push((Time::from_nanos(t), event));
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
