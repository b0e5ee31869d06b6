//! What is due soon: a calendar of unsorted buckets over one pool of entries.

use crate::Time;

use super::BUCKET_BITS;

const _: () = assert!(BUCKET_BITS <= u16::BITS);

/// Buckets ahead of the present one. A power of two, at most 64 words of bits.
pub(super) const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;
/// The end of a bucket's list, and of the free list.
const END: u32 = u32::MAX;

/// Buckets by number modulo [`BUCKETS`], each a list through a common pool, latest addition first.
/// The entries of a few hundred pending events stay in the first-level cache, where a vector per
/// bucket would walk through a cache of memory once per turn of the calendar.
#[derive(Debug)]
pub(super) struct Near<T> {
    /// First entry of each bucket.
    heads: Box<[u32; BUCKETS]>,
    pool: Vec<Entry<T>>,
    /// First of the pool's entries that are not in use.
    free: u32,
    /// A bit per bucket that is not empty, and a bit per word that is not zero.
    occupied: [u64; WORDS],
    words: u64,
}

/// An event of eight bytes makes four to a cache line.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    event: T,
    next: u32,
    /// Nanoseconds after the beginning of the bucket.
    after: u16,
}

impl<T> Entry<T> {
    #[inline]
    fn at(&self, bucket: u64) -> Time {
        Time::from_nanos(bucket << BUCKET_BITS | u64::from(self.after))
    }
}

impl<T: Copy> Near<T> {
    pub fn new() -> Self {
        Near {
            heads: Box::new([END; BUCKETS]),
            pool: Vec::new(),
            free: END,
            occupied: [0; WORDS],
            words: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, bucket: u64, at: Time, event: T) {
        let i = bucket as usize % BUCKETS;
        let next = self.heads[i];
        // A bucket is shorter than 2^16 ns.
        let after = (at.as_nanos() % (1 << BUCKET_BITS)) as u16;
        if let Some(unused) = self.pool.get_mut(self.free as usize) {
            self.heads[i] = std::mem::replace(&mut self.free, unused.next);
            // One by one: put together first, they would be read again before they are written.
            unused.event = event;
            unused.next = next;
            unused.after = after;
        } else {
            self.heads[i] = self.grow(Entry { event, next, after });
        }
        self.occupied[i / 64] |= 1 << (i % 64);
        self.words |= 1 << (i / 64);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, entry: Entry<T>) -> u32 {
        self.pool.push(entry);
        self.pool.len() as u32 - 1
    }

    /// Takes the only event of a bucket that holds one, if it is not later than `until`; `None`
    /// where there are more, or none so early.
    #[inline]
    pub fn take_only(&mut self, bucket: u64, until: Time) -> Option<(Time, T)> {
        let i = bucket as usize % BUCKETS;
        let head = self.heads[i];
        let entry = self.pool.get_mut(head as usize)?;
        let at = entry.at(bucket);
        if entry.next != END || at > until {
            return None;
        }
        let only = (at, entry.event);
        entry.next = self.free;
        self.free = head;
        self.heads[i] = END;
        self.empty(i);
        Some(only)
    }

    #[inline]
    fn empty(&mut self, i: usize) {
        let left = self.occupied[i / 64] & !(1 << (i % 64));
        self.occupied[i / 64] = left;
        if left == 0 {
            self.words &= !(1 << (i / 64));
        }
    }

    /// Moves what a bucket holds to the end of `to`, latest addition first.
    #[inline]
    pub fn take(&mut self, bucket: u64, to: &mut Vec<(Time, T)>) {
        let i = bucket as usize % BUCKETS;
        let mut place = std::mem::replace(&mut self.heads[i], END);
        while let Some(entry) = self.pool.get_mut(place as usize) {
            to.push((entry.at(bucket), entry.event));
            let next = std::mem::replace(&mut entry.next, self.free);
            self.free = std::mem::replace(&mut place, next);
        }
        self.empty(i);
    }

    /// The place of the latest addition to a bucket; no place if it is empty.
    #[inline]
    pub fn first_in(&self, bucket: u64) -> u32 {
        self.heads[bucket as usize % BUCKETS]
    }

    /// The place that follows another in its list; no place at its end.
    #[inline]
    pub fn behind(&self, place: u32) -> u32 {
        self.pool.get(place as usize).map_or(END, |e| e.next)
    }

    /// When the earliest event of a bucket is due.
    pub fn earliest_in(&self, bucket: u64) -> Option<Time> {
        let entry = |place: u32| self.pool.get(place as usize);
        std::iter::successors(entry(self.heads[bucket as usize % BUCKETS]), |e| {
            entry(e.next)
        })
        .map(|e| e.at(bucket))
        .min()
    }

    /// The next bucket after `present` that holds something, going round.
    #[inline]
    pub fn next_after(&self, present: u64) -> Option<u64> {
        if self.words == 0 {
            return None;
        }
        let here = present as usize % BUCKETS;
        let from = (here + 1) % BUCKETS;
        let (word, bit) = (from / 64, from % 64);
        let rest = self.occupied[word] >> bit;
        let found = if rest != 0 {
            from + rest.trailing_zeros() as usize
        } else {
            // Words after this one first, then from the beginning up to this one.
            let w = (word + 1 + self.words.rotate_right(word as u32 + 1).trailing_zeros() as usize)
                % WORDS;
            w * 64 + self.occupied[w].trailing_zeros() as usize
        };
        let ahead = (found + BUCKETS - here) % BUCKETS;
        Some(present + ahead as u64)
    }
}
