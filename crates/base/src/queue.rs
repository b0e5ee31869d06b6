//! The event queue: sorted buckets for near events and a radix wheel for far ones.

mod far;
mod near;

use crate::Time;

use self::far::Far;
use self::near::{BUCKET_BITS, BUCKETS, Near};

/// The sort key of an event within its bucket, in one number: its 16 bits of time, then its rank, then its index in
/// the bucket. Larger buckets than the index allows are sorted otherwise.
const RANK_BITS: u32 = 29;
const PLACE_BITS: u32 = u64::BITS - BUCKET_BITS - RANK_BITS;
/// Buckets with fewer events are sorted in place.
const FEW: usize = 8;

/// An event in an [`EventQueue`].
pub trait Ranked: Copy {
    /// Orders events at one instant: the lowest rank comes first. Ranks are below 2^29.
    fn rank(&self) -> u32 {
        0
    }
}

/// Events ordered by time. Events at one instant are popped in order of their [rank](Ranked::rank), and those of
/// equal rank in the order in which they were pushed.
///
/// This is a calendar queue. An event that is due within the next 4096 buckets is added to its bucket, and a bucket
/// is sorted (stably) when its turn comes. Later events wait in a radix wheel. They move to their bucket when it
/// comes within reach, before anything else can be added to it, so equal times keep their order. An event is thus
/// touched about twice, however many are pending.
///
/// An event may be earlier than the last one popped. It is then popped next.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// The current bucket in reverse order: the next event is the last element. Of events with equal keys, the one
    /// pushed first is nearer to the end.
    active: Vec<(Time, T)>,
    /// Number of the current bucket: time >> BUCKET_BITS.
    bucket: u64,
    /// Scratch space to sort a bucket: its events, and a sort key for each.
    taken: Vec<(Time, T)>,
    keys: Vec<u64>,
    near: Near<T>,
    far: Far<T>,
    len: usize,
    /// The bucket whose successor is being prefetched, and the link prefetched last.
    looked_in: u64,
    looked_at: u32,
}

impl<T: Ranked> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<T: Ranked> EventQueue<T> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        EventQueue {
            active: Vec::new(),
            bucket: 0,
            taken: Vec::new(),
            keys: Vec::new(),
            near: Near::new(),
            far: Far::new(),
            len: 0,
            looked_in: u64::MAX,
            looked_at: 0,
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event at `at`.
    #[inline(always)]
    pub fn push(&mut self, at: Time, event: T) {
        self.len += 1;
        let bucket = at.as_nanos() >> BUCKET_BITS;
        // For the current bucket and earlier ones, the subtraction wraps around and `ahead` is very large.
        let ahead = bucket.wrapping_sub(self.bucket + 1);
        if ahead < BUCKETS as u64 - 1 {
            self.near.push(bucket, at, event);
        } else {
            self.push_elsewhere(bucket, at, event);
        }
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, bucket: u64, at: Time, event: T) {
        if bucket <= self.bucket {
            // Behind all events with an equal or smaller key.
            let key = (at, event.rank());
            let before = self.active.partition_point(|e| (e.0, e.1.rank()) > key);
            self.active.insert(before, (at, event));
        } else {
            self.far.push(at, event);
        }
    }

    /// Pops the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, T)> {
        self.pop_before(until, u32::MAX)
    }

    /// Pops the earliest event if it is due before `until`, or at `until` with a rank of at most `rank`. This is for
    /// callers that merge events of other sources.
    #[inline(always)]
    pub fn pop_before(&mut self, until: Time, rank: u32) -> Option<(Time, T)> {
        let next = match self.active.last() {
            Some(&next) => {
                if is_after(next, until, rank) {
                    return None;
                }
                self.active.pop();
                next
            }
            None => {
                let bucket = self.turn(until)?;
                // If few events are pending, most buckets hold one.
                match self.near.take_only(bucket, |e| !is_after(e, until, rank)) {
                    Some(only) => only,
                    None => self.pop_first_of(bucket, until, rank)?,
                }
            }
        };
        self.len -= 1;
        Some(next)
    }

    /// Pops the earliest event of a bucket whose turn has come, unless it is too late.
    #[inline(never)]
    fn pop_first_of(&mut self, bucket: u64, until: Time, rank: u32) -> Option<(Time, T)> {
        // A bucket yields its latest addition first. The stable sort keeps equal events in that order.
        self.near.take(bucket, &mut self.active);
        if (FEW..=1 << PLACE_BITS).contains(&self.active.len()) {
            self.sort_many();
        } else {
            self.active
                .sort_by_key(|e| std::cmp::Reverse((e.0, e.1.rank())));
        }
        self.active.pop_if(|e| !is_after(*e, until, rank))
    }

    /// Sorts a bucket in descending order by numeric keys, so that each event moves only once.
    fn sort_many(&mut self) {
        std::mem::swap(&mut self.active, &mut self.taken);
        self.keys.clear();
        let taken = self.taken.iter().enumerate();
        self.keys.extend(taken.map(|(place, &(at, event))| {
            let rank = event.rank();
            debug_assert!(rank < 1 << RANK_BITS, "rank {rank}");
            // The shift drops the bits above the time within the bucket.
            let early = at.as_nanos() << RANK_BITS | u64::from(rank);
            !early << PLACE_BITS | place as u64
        }));
        self.keys.sort_unstable();
        let place = |key: &u64| (key % (1 << PLACE_BITS)) as usize;
        self.active.clear();
        self.active
            .extend(self.keys.iter().map(|key| self.taken[place(key)]));
        self.taken.clear();
    }

    /// [Prefetches](crate::fetch()) the next part of the bucket after the current one, a different part with each
    /// call. Buckets are linked lists, so each link must be read before the next one can be prefetched.
    #[inline]
    pub fn look_on(&mut self) {
        if self.looked_in != self.bucket {
            self.looked_in = self.bucket;
            self.looked_at = self.near.first_in(self.bucket + 1);
        } else {
            self.looked_at = self.near.behind(self.looked_at);
        }
        self.near.fetch(self.looked_at);
    }

    /// The events of the current bucket, the next one last; often empty if few are pending. Other events may still be
    /// inserted between them. Callers use this for prefetching.
    #[inline]
    pub fn ahead(&self) -> &[(Time, T)] {
        &self.active
    }

    /// When the earliest event is due.
    pub fn next_at(&self) -> Option<Time> {
        if let Some(first) = self.active.last() {
            return Some(first.0);
        }
        match self.near.next_after(self.bucket) {
            Some(bucket) => self.near.earliest_in(bucket),
            None => self.far.next_at(),
        }
    }

    /// Advances to the next non-empty bucket, if it begins by `until`, and returns its number.
    #[inline]
    fn turn(&mut self, until: Time) -> Option<u64> {
        let last = until.as_nanos() >> BUCKET_BITS;
        let next = match self.near.next_after(self.bucket) {
            Some(bucket) => bucket,
            // This bound avoids the search for the exact earliest event.
            None if self.far.earliest() > last => return None,
            None => self.far.next_at()?.as_nanos() >> BUCKET_BITS,
        };
        if next > last {
            return None;
        }
        self.bucket = next;
        // Far events that come within reach move to the calendar before anything else is added to their buckets.
        let reached = self.bucket + (BUCKETS as u64 - 1);
        if self.far.earliest() <= reached {
            self.reach(reached);
        }
        Some(self.bucket)
    }

    #[inline(never)]
    fn reach(&mut self, last: u64) {
        let near = &mut self.near;
        self.far
            .reach(last, |bucket, at, event| near.push(bucket, at, event));
    }
}

/// Whether an event comes after `until`, or at `until` with a higher rank.
#[inline]
fn is_after<T: Ranked>((at, event): (Time, T), until: Time, rank: u32) -> bool {
    at > until || (at == until && event.rank() > rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use std::collections::BTreeMap;

    /// An event whose rank is computed from its number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Numbered(u32);

    impl Ranked for Numbered {
        fn rank(&self) -> u32 {
            (self.0 % 16).saturating_sub(12)
        }
    }

    /// The oracle: a map from (time, rank, sequence number) to event.
    #[test]
    fn pops_in_the_order_of_a_time_and_sequence_map() {
        for seed in 0..20 {
            let mut rng = Stream::new(seed, "queue");
            let mut wheel = EventQueue::new();
            let mut map: BTreeMap<(u64, u32, Numbered), ()> = BTreeMap::new();
            let (mut now, mut seq) = (0u64, 0u32);
            for _ in 0..20_000 {
                wheel.look_on(); // changes nothing
                if rng.chance(0.52) || map.is_empty() {
                    let gap = match rng.below(5) {
                        0 => 0,
                        1 => 12_000,
                        2 => rng.below(1 << 12),
                        3 => rng.below(1 << 28),
                        _ => rng.below(1 << 45),
                    };
                    // Sometimes an event in the past.
                    let at = if rng.chance(0.05) {
                        now.saturating_sub(gap)
                    } else {
                        now + gap
                    };
                    let event = Numbered(seq);
                    wheel.push(Time::from_nanos(at), event);
                    map.insert((at, event.rank(), event), ());
                    seq += 1;
                } else {
                    let first = map.first_key_value().map(|(k, ())| *k);
                    let (until, rank) = match first {
                        // Another source has an event of some rank at the same instant.
                        Some((at, ..)) if rng.chance(0.3) => (at, rng.below(4) as u32),
                        _ => (now + rng.below(1 << 30), u32::MAX),
                    };
                    let want = first
                        .filter(|k| (k.0, k.1) <= (until, rank))
                        .map(|k| (k.0, k.2));
                    assert_eq!(wheel.next_at().map(Time::as_nanos), first.map(|k| k.0));
                    let got = wheel
                        .pop_before(Time::from_nanos(until), rank)
                        .map(|(t, e)| (t.as_nanos(), e));
                    assert_eq!(got, want);
                    if let Some((at, event)) = want {
                        map.remove(&(at, event.rank(), event));
                        now = now.max(at);
                    }
                }
                assert_eq!(wheel.len(), map.len());
            }
        }
    }
    /// Pushes events at these times, in this order, and compares with a stable sort.
    fn in_order(times: impl Iterator<Item = u64>) {
        let mut queue = EventQueue::new();
        let mut want: Vec<(u64, Numbered)> = times.zip((0..).map(Numbered)).collect();
        for &(at, event) in &want {
            queue.push(Time::from_nanos(at), event);
        }
        want.sort_by_key(|e| (e.0, e.1.rank()));
        for next in want {
            let got = queue.pop_until(Time::MAX);
            assert_eq!(got.map(|(at, event)| (at.as_nanos(), event)), Some(next));
        }
        assert!(queue.is_empty());
    }

    /// Many events in one bucket, several of equal rank at each instant.
    #[test]
    fn a_crowded_bucket_keeps_equal_times_in_order() {
        let mut rng = Stream::new(1, "crowd");
        for events in (2..40u64).chain([1000]) {
            in_order((0..events).map(|_| (1 << 20) + rng.below(events.div_ceil(10)) * 50));
        }
    }

    /// More events than a bucket's sort keys can index.
    #[test]
    fn an_overcrowded_bucket_keeps_equal_times_in_order() {
        in_order((0..(1 << PLACE_BITS) + 9).map(|i| (1 << 20) + i % 3));
    }
}
