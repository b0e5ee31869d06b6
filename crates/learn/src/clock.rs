//! Capture time, corrected where the clock cannot be trusted.
//!
//! A packet may be older than one before it, as in merged captures from several interfaces. It counts at
//! the later time. A single stamp far ahead of all others would stretch the model over empty time. A clock
//! that was set would do the same, or compress the rest of the trace into an instant. Both are detected
//! here and reported. A silence that counts as real is reported, too.

/// Shorter spacings are artefacts of the capture: interrupts deliver packets in groups and stamp them
/// microseconds apart. A full packet takes this long at 1.2 Gbit/s; faster links count as unlimited.
pub(crate) const LEAST_GAP: u64 = 10_000;

/// A step ahead of more than this must be confirmed by the next packet.
const FAR: i64 = 60_000_000_000;
/// A step back of more than this, in several packets, means a set clock: merged captures are closer in
/// time.
const BACK: i64 = 5_000_000_000;
/// A longer silence was not observed: the clock was set, or captures were joined.
const DAY: i64 = 86_400_000_000_000;
/// Remaining length of such a silence, if there was a trace before it: longer than any session time-out.
const LEFT: i64 = 600_000_000_000;
/// Number of packets that must agree that the clock was set back.
const AGREE: u32 = 8;

/// Irregularities of the capture's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Packets older than one before them, and the largest step, nanoseconds.
    pub(crate) backward: u64,
    pub(crate) backward_most: u64,
    /// Packets stamped far ahead of those before and after, and the largest distance, nanoseconds.
    pub(crate) far_off: u64,
    pub(crate) far_off_most: u64,
    /// Number of times the clock was set, and the largest step, nanoseconds.
    pub(crate) set: u64,
    pub(crate) set_most: u64,
    /// The longest silence that counts as time without load, nanoseconds.
    pub(crate) silence_most: u64,
}

/// Converts stamps to nanoseconds since the beginning.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Offset to subtract from stamps; `None` before the first.
    origin: Option<i64>,
    now: i64,
    seen: u32,
    behind: u32,
    /// Resolution: the stamps of the preview are multiples of it; 0 before any.
    tick: u64,
    /// Number of stamps that it was learnt from.
    stamps: u32,
    pub(crate) odd: Oddities,
}

/// Known clock resolutions, nanoseconds: whole seconds and parts of them that a program wrote, 10 ms and 1 ms of
/// old timers, or fine enough.
const CLOCKS: [u64; 5] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000];
/// A coarser clock hides round trips and pauses, nanoseconds.
const COARSE: u64 = 1_000_000;
/// Fewer stamps may be round by chance.
const STAMPS: u32 = 100;
/// A spacing of this many ticks is accurate to a tenth.
pub(crate) const TICKS: u64 = 10;

impl Clock {
    /// Learns the clock's resolution from a stamp.
    pub(crate) fn ticks(&mut self, stamp: i64) {
        let fits = |tick: &u64| {
            let coarser = self.tick == 0 || *tick <= self.tick;
            coarser && stamp.unsigned_abs().is_multiple_of(*tick)
        };
        self.tick = CLOCKS.into_iter().find(fits).unwrap_or(1);
        self.stamps = self.stamps.saturating_add(1);
    }

    /// The clock's resolution in nanoseconds, if it hides round trips and pauses.
    pub(crate) fn coarse(&self) -> Option<u64> {
        (self.tick >= COARSE && self.stamps >= STAMPS).then_some(self.tick)
    }

    /// The shortest spacing that the stamps can resolve, nanoseconds.
    pub(crate) fn least_gap(&self) -> u64 {
        LEAST_GAP.max(TICKS * self.tick)
    }

    /// The latest time.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now.unsigned_abs()
    }

    /// Whether the stamp is so far ahead that the next one must confirm it.
    #[inline]
    pub(crate) fn leaps(&self, stamp: i64) -> bool {
        self.origin
            .is_some_and(|origin| stamp.saturating_sub(origin) > self.now.saturating_add(FAR))
    }

    /// Whether `next` refutes a stamp that leapt ahead. Counts it, if so.
    pub(crate) fn far_off(&mut self, stamp: i64, next: i64) -> bool {
        let off = next < stamp.saturating_sub(FAR);
        if off {
            let origin = self.origin.unwrap_or(stamp);
            let ahead = stamp.saturating_sub(origin).saturating_sub(self.now);
            self.odd.far_off += 1;
            self.odd.far_off_most = self.odd.far_off_most.max(ahead.unsigned_abs());
        }
        off
    }

    /// Whether a stamp that leapt ahead, and is the last, is implausible. Counts it, if so.
    pub(crate) fn incredible(&mut self, stamp: i64) -> bool {
        let now = self.stamp();
        stamp.saturating_sub(now) > DAY && self.far_off(stamp, now)
    }

    /// The stamp that corresponds to the current time.
    pub(crate) fn stamp(&self) -> i64 {
        self.origin.unwrap_or(0).saturating_add(self.now)
    }

    /// The time of a packet just taken by its own stamp, which may be a little before those of earlier
    /// packets; negative before the first of all. `None` if it is farther back than merged captures are.
    pub(crate) fn own(&self, stamp: i64) -> Option<i64> {
        let at = stamp.saturating_sub(self.origin.unwrap_or(stamp));
        (at >= self.now.saturating_sub(BACK)).then_some(at)
    }

    /// Takes a packet with this stamp: time advances, or stays.
    #[inline]
    pub(crate) fn advance(&mut self, stamp: i64) {
        let origin = *self.origin.get_or_insert(stamp);
        let at = stamp.saturating_sub(origin);
        let step = at.saturating_sub(self.now);
        self.seen = self.seen.saturating_add(1);
        if (0..=DAY).contains(&step) {
            self.odd.silence_most = self.odd.silence_most.max(step.unsigned_abs());
            self.now = at;
            self.behind = 0;
        } else {
            self.odd_step(origin, step);
        }
    }

    #[cold]
    fn odd_step(&mut self, origin: i64, step: i64) {
        if step > 0 {
            let left = if self.seen > AGREE { LEFT } else { 0 };
            self.set(origin.saturating_add(step - left), step);
            self.now = self.now.saturating_add(left);
            return;
        }
        self.odd.backward += 1;
        self.odd.backward_most = self.odd.backward_most.max(step.unsigned_abs());
        self.behind = if step < -BACK { self.behind + 1 } else { 0 };
        if self.behind >= AGREE {
            self.set(origin.saturating_add(step), step);
        }
    }

    fn set(&mut self, origin: i64, step: i64) {
        self.origin = Some(origin);
        self.behind = 0;
        self.odd.set += 1;
        self.odd.set_most = self.odd.set_most.max(step.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn clock(stamps: impl IntoIterator<Item = i64>) -> Clock {
        let mut c = Clock::default();
        stamps.into_iter().for_each(|s| c.advance(s));
        c
    }

    #[test]
    fn time_never_runs_back() {
        let c = clock([5 * S, 7 * S, 6 * S, 8 * S]);
        assert_eq!(c.now(), 3 * S as u64);
        assert_eq!((c.odd.backward, c.odd.backward_most), (1, S as u64));
        assert_eq!((c.odd.set, c.odd.far_off), (0, 0));
    }

    #[test]
    fn a_coarse_clock_is_told_by_its_stamps() {
        let coarse = |step: i64, n: i64| {
            let mut c = Clock::default();
            (0..n).for_each(|i| c.ticks(1_700 * S + i / 3 * step));
            c.coarse()
        };
        assert_eq!(coarse(S, 100), Some(1_000_000_000));
        assert_eq!(coarse(3_000_000, 100), Some(1_000_000));
        assert_eq!(coarse(1_000_000, 99), None);
        assert_eq!(coarse(999_000, 1_000), None);
    }

    #[test]
    fn a_leap_is_far_off_unless_the_next_packet_bears_it_out() {
        let mut c = clock((0..20).map(|i| i * S));
        let leap = 4_000 * S;
        assert!(c.leaps(leap) && !c.leaps(70 * S));
        assert!(!c.far_off(leap, leap + S) && c.odd.far_off == 0);
        assert!(c.far_off(leap, 20 * S));
        assert_eq!((c.odd.far_off, c.odd.far_off_most), (1, 3_981 * S as u64));
    }

    /// Both sides of every limit: a minute ahead, five seconds back, eight packets, a day.
    #[test]
    fn limits() {
        let c = clock((0..20).map(|i| i * S));
        assert!(c.leaps(79 * S + 1) && !c.leaps(79 * S));
        let mut borne = clock([0, S]);
        assert!(!borne.far_off(500 * S, 440 * S) && borne.far_off(500 * S, 440 * S - 1));
        let set = |back: i64, times: i64| {
            clock(
                (0..200)
                    .map(|i| i * S)
                    .chain((0..times).map(|i| 199 * S - back + i)),
            )
            .odd
            .set
        };
        assert_eq!([set(6 * S, 7), set(6 * S, 8), set(6 * S, 12)], [0, 1, 1]);
        assert_eq!([set(5 * S, 20), set(5 * S + 30, 8)], [0, 1]);
        assert_eq!(
            [clock([0, DAY]).odd.set, clock([0, DAY + 1]).odd.set],
            [0, 1]
        );
        // From the ninth packet on, ten minutes remain of the removed silence.
        let joined = |n: i64| clock((0..n).map(|i| i * S).chain([2 * DAY])).now();
        assert_eq!(joined(7), 6 * S as u64);
        assert_eq!(joined(8), (7 + 600) * S as u64);
    }

    /// A spacing accurate to a tenth has at least ten ticks of the clock, and at least ten microseconds.
    #[test]
    fn ticks_are_found() {
        for (stamps, gap) in [
            ([1_020_000_000, 3_030_000_000], 100_000_000),
            ([1_021_000_000, 3_030_000_000], 10_000_000),
            ([1_020_000_000, 3_031_000_000], 10_000_000),
            ([1_020_001_000, 3_030_000_000], 10_000),
            ([1_020_000_001, 3_030_000_000], 10_000),
        ] {
            let mut c = Clock::default();
            stamps.into_iter().for_each(|s| c.ticks(s));
            assert_eq!(c.least_gap(), gap, "{stamps:?}");
        }
    }

    #[test]
    fn a_clock_that_was_set_neither_stretches_nor_stops_time() {
        let year = 365 * DAY;
        let ahead = clock((0..20).map(|i| i * S).chain((0..20).map(|i| year + i * S)));
        assert_eq!(ahead.now(), (19 * S + LEFT + 19 * S) as u64);
        assert_eq!(ahead.odd.set, 1);
        // A first packet stamped in 1970 is not a trace of its own.
        let first = clock([0].into_iter().chain((0..20).map(|i| year + i * S)));
        assert_eq!(first.now(), 19 * S as u64);
        let back = clock((0..20).map(|i| year + i * S).chain((0..20).map(|i| i * S)));
        assert_eq!(back.now(), (19 * S + 12 * S) as u64);
        assert_eq!((back.odd.set, back.odd.backward), (1, 8));
        // Removed time does not count as silence.
        assert_eq!(ahead.odd.silence_most, S as u64);
        assert_eq!(back.odd.silence_most, S as u64);
    }

    #[test]
    fn a_silence_of_less_than_a_day_counts() {
        let c = clock([0, S, 3_600 * S, 3_601 * S]);
        assert_eq!(c.now(), 3_601 * S as u64);
        assert_eq!(c.odd.silence_most, 3_599 * S as u64);
        assert_eq!(c.odd.set, 0);
    }
}
