//! The event queue: sorted buckets for what is near, a radix wheel for what is far.

mod far;
mod near;

use crate::Time;

use self::far::Far;
use self::near::{BUCKETS, Near};

/// A bucket spans 2^16 ns, 66 us: one event at ten thousand a second, and so many at a million that what they are
/// about can be looked at together. All [`BUCKETS`] of them reach 268 ms ahead, nearly all round trips.
const BUCKET_BITS: u32 = 16;

/// What a bucket is sorted by, in one number: its 16 bits of time, then the rank, then the place among
/// all its events, if there are not more.
const RANK_BITS: u32 = 29;
const PLACE_BITS: u32 = u64::BITS - BUCKET_BITS - RANK_BITS;
/// Fewer events than these are sorted as they are.
const FEW: usize = 8;

/// An event of an [`EventQueue`].
pub trait Ranked: Copy {
    /// Which of several events at one instant comes first: that of the lowest rank, which is below 2^29.
    fn rank(&self) -> u32 {
        0
    }
}

/// Events ordered by time; events at one instant come out in the order of their [rank](Ranked::rank), and those of one
/// rank in the order they went in.
///
/// A calendar: an event that is due within the next 4096 buckets is added to its bucket;
/// a bucket is sorted (stably) when its turn comes. What is due later waits in a radix wheel and
/// moves into its bucket the moment that bucket comes within reach, before anything else can be
/// put there, so that equal times keep their order. An event is thus touched about twice, however
/// many are pending.
///
/// An event may lie before the last one popped: it comes next.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// The present bucket, latest first: the next event is the last, and of equal times the one
    /// added first is nearer to the end.
    active: Vec<(Time, T)>,
    /// Number of the present bucket: time >> BUCKET_BITS.
    bucket: u64,
    /// Room to sort a bucket in: its events as they are taken out, and a number for each of them.
    taken: Vec<(Time, T)>,
    keys: Vec<u64>,
    near: Near<T>,
    far: Far<T>,
    len: usize,
    /// The bucket whose successor is looked at, and the event there that was looked at last.
    looked_in: u64,
    looked_at: u32,
}

impl<T: Ranked> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<T: Ranked> EventQueue<T> {
    /// An empty queue at the beginning of time.
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

    /// Events pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event at `at`.
    #[inline(always)]
    pub fn push(&mut self, at: Time, event: T) {
        self.len += 1;
        let bucket = at.as_nanos() >> BUCKET_BITS;
        // Of the present bucket and earlier ones this is beyond all others.
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
            // After everything that comes no later.
            let key = (at, event.rank());
            let before = self.active.partition_point(|e| (e.0, e.1.rank()) > key);
            self.active.insert(before, (at, event));
        } else {
            self.far.push(at, event);
        }
    }

    /// Takes the earliest event if it is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, T)> {
        self.pop_before(until, u32::MAX)
    }

    /// Takes the earliest event if it is due before `until`, or at `until` and its rank is at most `rank`: for who has
    /// events elsewhere too.
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
                // Where pending events are few, most buckets hold one.
                match self.near.take_only(bucket, |e| !is_after(e, until, rank)) {
                    Some(only) => only,
                    None => self.pop_first_of(bucket, until, rank)?,
                }
            }
        };
        self.len -= 1;
        Some(next)
    }

    /// The earliest event of a bucket whose turn it is, if it comes in time.
    #[inline(never)]
    fn pop_first_of(&mut self, bucket: u64, until: Time, rank: u32) -> Option<(Time, T)> {
        // A bucket gives its latest addition first: sorting keeps equal ones that way round.
        self.near.take(bucket, &mut self.active);
        if (FEW..=1 << PLACE_BITS).contains(&self.active.len()) {
            self.sort_many();
        } else {
            self.active
                .sort_by_key(|e| std::cmp::Reverse((e.0, e.1.rank())));
        }
        self.active.pop_if(|e| !is_after(*e, until, rank))
    }

    /// Sorts a bucket as numbers, the smaller the later: events are moved once, not with every comparison.
    fn sort_many(&mut self) {
        std::mem::swap(&mut self.active, &mut self.taken);
        self.keys.clear();
        let taken = self.taken.iter().enumerate();
        self.keys.extend(taken.map(|(place, &(at, event))| {
            let rank = event.rank();
            debug_assert!(rank < 1 << RANK_BITS, "rank {rank}");
            // What a time has above the bits of a bucket is shifted out.
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

    /// [Asks](crate::fetch()) for some events in the bucket after the present one, for others with each call. What is
    /// near lies in lists, and a list can only be followed from one place to the next.
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

    /// Events known to come next, the first of them last; empty where few are pending. More may come
    /// in between. For who wants to have at hand what they are about.
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

    /// Goes on to the next bucket that holds something, if it begins by `until`, and says which.
    #[inline]
    fn turn(&mut self, until: Time) -> Option<u64> {
        let last = until.as_nanos() >> BUCKET_BITS;
        let next = match self.near.next_after(self.bucket) {
            Some(bucket) => bucket,
            // When exactly the earliest of all is due takes time to find.
            None if self.far.earliest() > last => return None,
            None => self.far.next_at()?.as_nanos() >> BUCKET_BITS,
        };
        if next > last {
            return None;
        }
        self.bucket = next;
        // What comes within reach of the new present moves up before anything is added there.
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

/// Whether an event comes after all that have this rank at `until`.
#[inline]
fn is_after<T: Ranked>((at, event): (Time, T), until: Time, rank: u32) -> bool {
    at > until || (at == until && event.rank() > rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;
    use std::collections::BTreeMap;

    /// An event whose number says which rank it has.
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
                    // Now and then something that should have happened before.
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
                        // Something of some rank is due elsewhere at the same instant.
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
    /// Pushes events at these times, in this order, and compares with what a stable sort says.
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

    /// Many events in one bucket, several of one rank at each instant.
    #[test]
    fn a_crowded_bucket_keeps_equal_times_in_order() {
        let mut rng = Stream::new(1, "crowd");
        for events in (2..40u64).chain([1000]) {
            in_order((0..events).map(|_| (1 << 20) + rng.below(events.div_ceil(10)) * 50));
        }
    }

    /// More than there are places in the numbers that a bucket is sorted by.
    #[test]
    fn an_overcrowded_bucket_keeps_equal_times_in_order() {
        in_order((0..(1 << PLACE_BITS) + 9).map(|i| (1 << 20) + i % 3));
    }
}
