//! What is due soon: a calendar of unsorted buckets over common pools.

use crate::{Time, fetch};

use super::BUCKET_BITS;

const _: () = assert!(BUCKET_BITS <= u16::BITS);

/// Buckets ahead of the present one. A power of two, at most 64 words of bits.
pub(super) const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;

/// Buckets by number modulo [`BUCKETS`], each a list, latest addition first. The event added first has
/// an entry of its own: those of a few hundred pending events stay in the first-level cache, where a
/// vector per bucket would walk through a cache of memory once per turn of the calendar. What is added
/// after it lies in chunks, so that a crowded bucket is read with one wait for memory per chunk.
#[derive(Debug)]
pub(super) struct Near<T> {
    /// The beginning of each bucket's list.
    heads: Box<[Link; BUCKETS]>,
    /// One at most for each bucket.
    entries: Vec<Entry<T>>,
    chunks: Vec<Chunk<T>>,
    /// First of the entries that are not in use, and of the chunks.
    free: Link,
    free_chunk: Link,
    /// A bit per bucket that is not empty, and a bit per word that is not zero.
    occupied: [u64; WORDS],
    words: u64,
}

/// A place in a list: that of an entry, which is the last of its list; or [`CHUNK`], the place of a
/// chunk and how many events it holds, so that who adds one need not read the chunk; or [`END`].
type Link = u32;
const CHUNK: Link = 1 << 31;
const FILLED_BITS: u32 = 3;
/// The end of the free lists, and the beginning of an empty bucket.
const END: Link = Link::MAX;

/// Events in a chunk: of eight bytes each, what a cache line holds.
const ROOM: usize = 6;
const _: () = assert!(ROOM < (1 << FILLED_BITS) - 1);

/// An event of eight bytes makes four to a cache line.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    event: T,
    /// The next that is not in use.
    next: Link,
    /// Nanoseconds after the beginning of the bucket.
    after: u16,
}

/// With events of eight bytes, a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk<T> {
    /// In the order in which they were added; behind those in use, whatever was there.
    events: [T; ROOM],
    after: [u16; ROOM],
    next: Link,
}

#[inline]
fn chunk_at(link: Link) -> usize {
    ((link & !CHUNK) >> FILLED_BITS) as usize
}

#[inline]
fn filled(link: Link) -> usize {
    (link % (1 << FILLED_BITS)) as usize
}

/// The time so many nanoseconds after the beginning of a bucket.
#[inline]
fn time(bucket: u64, after: u16) -> Time {
    Time::from_nanos(bucket << BUCKET_BITS | u64::from(after))
}

impl<T: Copy> Near<T> {
    pub fn new() -> Self {
        Near {
            heads: Box::new([END; BUCKETS]),
            entries: Vec::new(),
            chunks: Vec::new(),
            free: END,
            free_chunk: END,
            occupied: [0; WORDS],
            words: 0,
        }
    }

    #[inline(always)]
    pub fn push(&mut self, bucket: u64, at: Time, event: T) {
        let i = bucket as usize % BUCKETS;
        // A bucket is shorter than 2^16 ns.
        let after = (at.as_nanos() % (1 << BUCKET_BITS)) as u16;
        if self.heads[i] != END {
            self.push_behind(i, after, event);
            return;
        }
        if let Some(unused) = self.entries.get_mut(self.free as usize) {
            self.heads[i] = std::mem::replace(&mut self.free, unused.next);
            // One by one: put together first, they would be read again before they are written.
            unused.event = event;
            unused.after = after;
        } else {
            self.heads[i] = self.grow(Entry {
                event,
                next: END,
                after,
            });
        }
        self.occupied[i / 64] |= 1 << (i % 64);
        self.words |= 1 << (i / 64);
    }

    /// Adds to bucket `i`, which is not empty.
    #[inline(never)]
    fn push_behind(&mut self, i: usize, after: u16, event: T) {
        let head = self.heads[i];
        let filled = filled(head);
        if head >= CHUNK
            && filled < ROOM
            && let Some(chunk) = self.chunks.get_mut(chunk_at(head))
        {
            chunk.events[filled] = event;
            chunk.after[filled] = after;
            self.heads[i] = head + 1;
        } else if let Some(unused) = self.chunks.get_mut(chunk_at(self.free_chunk)) {
            self.heads[i] = self.free_chunk + 1;
            self.free_chunk = std::mem::replace(&mut unused.next, head);
            unused.events[0] = event;
            unused.after[0] = after;
        } else {
            self.heads[i] = self.grow_chunks(Chunk {
                events: [event; ROOM],
                after: [after; ROOM],
                next: head,
            });
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, entry: Entry<T>) -> Link {
        self.entries.push(entry);
        self.entries.len() as Link - 1
    }

    /// Adds a chunk of one event.
    #[cold]
    #[inline(never)]
    fn grow_chunks(&mut self, chunk: Chunk<T>) -> Link {
        let place = self.chunks.len();
        assert!(place < chunk_at(END), "too many events are pending");
        self.chunks.push(chunk);
        CHUNK | (place as Link) << FILLED_BITS | 1
    }

    /// Takes the only event of a bucket that holds one, if it is `wanted`; `None` where there are more, or it is
    /// not.
    #[inline]
    pub fn take_only(
        &mut self,
        bucket: u64,
        wanted: impl FnOnce((Time, T)) -> bool,
    ) -> Option<(Time, T)> {
        let i = bucket as usize % BUCKETS;
        let head = self.heads[i];
        // The place of a chunk is that of no entry.
        let entry = self.entries.get_mut(head as usize)?;
        let only = (time(bucket, entry.after), entry.event);
        if !wanted(only) {
            return None;
        }
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
        let mut link = std::mem::replace(&mut self.heads[i], END);
        while link >= CHUNK
            && let Some(chunk) = self.chunks.get_mut(chunk_at(link))
        {
            let held = chunk.after.iter().zip(&chunk.events).take(filled(link));
            let held = held.map(|(&after, &event)| (time(bucket, after), event));
            to.extend(held.rev());
            let next = std::mem::replace(&mut chunk.next, self.free_chunk);
            self.free_chunk = link >> FILLED_BITS << FILLED_BITS;
            link = next;
        }
        if let Some(entry) = self.entries.get_mut(link as usize) {
            to.push((time(bucket, entry.after), entry.event));
            entry.next = self.free;
            self.free = link;
        }
        self.empty(i);
    }

    /// The beginning of a bucket's list; the end of all lists if it is empty.
    #[inline]
    pub fn first_in(&self, bucket: u64) -> Link {
        self.heads[bucket as usize % BUCKETS]
    }

    /// [Asks](fetch()) for a link of a list.
    #[inline]
    pub fn fetch(&self, link: Link) {
        if link < CHUNK {
            if let Some(entry) = self.entries.get(link as usize) {
                fetch(entry);
            }
        } else if let Some(chunk) = self.chunks.get(chunk_at(link)) {
            fetch(chunk);
        }
    }

    /// What follows in a list, read from what is there.
    #[inline]
    pub fn behind(&self, link: Link) -> Link {
        if link >= CHUNK {
            self.chunks.get(chunk_at(link)).map_or(END, |c| c.next)
        } else {
            END
        }
    }

    /// When the earliest event of a bucket is due.
    pub fn earliest_in(&self, bucket: u64) -> Option<Time> {
        let mut link = self.first_in(bucket);
        let mut earliest = None;
        while link >= CHUNK
            && let Some(chunk) = self.chunks.get(chunk_at(link))
        {
            let here = chunk.after.iter().take(filled(link)).min();
            earliest = here.into_iter().chain(earliest).min();
            link = chunk.next;
        }
        let first = self.entries.get(link as usize).map(|e| &e.after);
        let earliest = first.into_iter().chain(earliest).min();
        earliest.map(|&after| time(bucket, after))
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
