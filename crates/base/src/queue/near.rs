//! Near events: a calendar of unsorted buckets that share memory pools.

use crate::{Time, fetch};

/// A bucket spans 2^16 ns, 66 us: less than one event on average at ten thousand per second. At a million per second,
/// a bucket holds enough events to prefetch for them as a batch. All [`BUCKETS`] together reach 268 ms ahead, which
/// covers nearly all round trips.
pub(super) const BUCKET_BITS: u32 = 16;

const _: () = assert!(BUCKET_BITS <= u16::BITS);

/// Number of buckets ahead of the current one. A power of two; the bitmap has at most 64 words.
pub(super) const BUCKETS: usize = 4096;
const WORDS: usize = BUCKETS / 64;

/// Buckets by number modulo [`BUCKETS`], each a list with the latest addition first. The first event of a bucket has
/// a small entry of its own, so the entries of a few hundred pending events stay in the first-level cache. A vector
/// per bucket would touch new cache lines throughout each turn of the calendar. Further events go into chunks, so a
/// full bucket is read with one cache miss per chunk.
#[derive(Debug)]
pub(super) struct Near<T> {
    /// The head of each bucket's list.
    heads: Box<[Link; BUCKETS]>,
    /// At most one for each bucket.
    entries: Vec<Entry<T>>,
    chunks: Vec<Chunk<T>>,
    /// Heads of the free lists of entries and of chunks.
    free: Link,
    free_chunk: Link,
    /// A bit per non-empty bucket, and a bit per non-zero word.
    occupied: [u64; WORDS],
    words: u64,
}

/// A link of a list. It is the index of an entry, which ends its list; or [`CHUNK`] with the index of a chunk and the
/// number of its events; or [`END`]. With the number in the link, adding an event does not read the chunk.
type Link = u32;
const CHUNK: Link = 1 << 31;
const FILLED_BITS: u32 = 3;
/// The end of the free lists, and the head of an empty bucket.
const END: Link = Link::MAX;

/// Number of events in a chunk: events of eight bytes then fill a cache line.
const ROOM: usize = 6;
const _: () = assert!(ROOM < (1 << FILLED_BITS) - 1);

/// With events of eight bytes, four entries fit in a cache line.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    event: T,
    /// The next free entry.
    next: Link,
    /// Nanoseconds after the beginning of the bucket.
    after: u16,
}

/// With events of eight bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk<T> {
    /// In the order in which they were added. Elements beyond the number in use are stale.
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

/// The time `after` nanoseconds after the beginning of a bucket.
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
        // A bucket spans 2^16 ns.
        let after = (at.as_nanos() % (1 << BUCKET_BITS)) as u16;
        if self.heads[i] != END {
            self.push_behind(i, after, event);
            return;
        }
        if let Some(unused) = self.entries.get_mut(self.free as usize) {
            self.heads[i] = std::mem::replace(&mut self.free, unused.next);
            // Two separate stores: an entry that is assembled first would be copied through memory.
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

    /// Adds an event to bucket `i`, which is not empty.
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

    /// Adds a chunk with one event.
    #[cold]
    #[inline(never)]
    fn grow_chunks(&mut self, chunk: Chunk<T>) -> Link {
        let place = self.chunks.len();
        assert!(place < chunk_at(END), "too many events are pending");
        self.chunks.push(chunk);
        CHUNK | (place as Link) << FILLED_BITS | 1
    }

    /// Takes the only event of a bucket if it is `wanted`. `None` if the bucket has more events, or if the event is
    /// not wanted.
    #[inline]
    pub fn take_only(
        &mut self,
        bucket: u64,
        wanted: impl FnOnce((Time, T)) -> bool,
    ) -> Option<(Time, T)> {
        let i = bucket as usize % BUCKETS;
        let head = self.heads[i];
        // A link to a chunk is out of the range of entries.
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

    /// Moves all events of a bucket to the end of `to`, latest addition first.
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

    /// The head of a bucket's list; [`END`] if it is empty.
    #[inline]
    pub fn first_in(&self, bucket: u64) -> Link {
        self.heads[bucket as usize % BUCKETS]
    }

    /// [Prefetches](fetch()) the target of a link.
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

    /// The next link of a list. Reads the target of `link`.
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

    /// The next non-empty bucket after `present`, cyclically.
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
            // First the words after this one, then from the beginning up to this one.
            let w = (word + 1 + self.words.rotate_right(word as u32 + 1).trailing_zeros() as usize)
                % WORDS;
            w * 64 + self.occupied[w].trailing_zeros() as usize
        };
        let ahead = (found + BUCKETS - here) % BUCKETS;
        Some(present + ahead as u64)
    }
}
