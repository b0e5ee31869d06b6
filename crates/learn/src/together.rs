//! What all hosts send and receive together, and whether one line limits it.
//!
//! Packet pairs show the slowest link on their way, and that may be the tapped link itself. Hosts with lines of their own
//! exceed the rate of one line when several are busy at once; hosts that share a line never do. So the bytes of each
//! direction are counted in windows of 1 to 512 ms, by rate and by whether several hosts had a part in them. A capacity
//! is that of a shared line if windows of several hosts fill it and hardly any exceeds it.

use swell_base::Rate;

/// Number of window lengths: 1 ms, 2 ms, … 512 ms.
const LEVELS: usize = 10;
/// Shortest window, nanoseconds.
const FINEST: u64 = 1_000_000;
/// Hosts of a window that are told apart. With more, several had a part in any case.
const HOSTS: usize = 8;
/// Largest share of the bytes of a window that a host may have for the window to count as that of several.
const SEVERAL: f64 = 0.75;
/// Buckets of rates for each factor of two.
const BUCKETS: f64 = 16.0;
/// Least length of a window in full packets at the rate in question, for it to tell the rate: receivers acknowledge two or
/// more at a time.
const PACKETS: u64 = 32;
/// The same for it to tell that the line was busy: longer than what a server sends at once, and shorter than most queues;
/// or longer, where the line is busy for that long most of the time.
pub(crate) const BUSY_PACKETS: [u64; 2] = [12, 32];
/// Rates within this factor of a capacity fill it.
const FULL: f64 = 1.1;
/// Minimum number of windows for a conclusion.
const ENOUGH: u32 = 5;
/// Maximum share of the windows that may exceed a line: in a queue on their way, acknowledgements get closer together.
const EXCEED: f64 = 0.05;
/// The same among the windows of several hosts.
const SEVERAL_EXCEED: f64 = 0.25;
/// Maximum share of the shortest windows that may exceed a line where longer ones do not: hosts at different distances
/// answer at different times to what the line carried at one.
const SHORT_EXCEED: f64 = 0.5;
/// Windows that fill the line, for each of those that come close to it, and minimum number of windows, for a conclusion
/// from longer ones.
const MOSTLY: u32 = 4;
const MANY: u32 = 20;
/// Least share of the windows that fill a line, for the line to be full all the time.
const ALWAYS: f64 = 0.75;
/// Rate from which on a window finds the line busy, as a part of the line's.
const BUSY: f64 = 0.85;
/// Length of a bin whose busiest windows are kept, milliseconds.
const BIN: u64 = 64;
/// Maximum number of bins: four hours and a half. Longer traces use bins of twice, four times, … the length.
const MAX_BINS: usize = 1 << 18;

/// Bytes by host.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    of: [(u32, u64); HOSTS],
    hosts: usize,
}

impl Shares {
    fn add(&mut self, host: u32, bytes: u64) {
        let known = &mut self.of[..self.hosts];
        if let Some(own) = known.iter_mut().find(|own| own.0 == host) {
            own.1 += bytes;
        } else if self.hosts < HOSTS {
            self.of[self.hosts] = (host, bytes);
            self.hosts += 1;
        }
    }

    fn largest(&self) -> u64 {
        let known = &self.of[..self.hosts];
        known.iter().map(|own| own.1).max().unwrap_or(0)
    }
}

/// A window in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    number: u64,
    bytes: u64,
    /// By the host whose lines are in question, and by the hosts at the other end.
    ends: [Shares; 2],
}

/// Number of windows of a rate: all, those of several hosts, and those of one host with several at the other end.
type Count = [u32; 3];

/// The bytes that pass in one direction, or that arrive.
#[derive(Clone, Debug)]
pub(crate) struct Together {
    windows: [Window; LEVELS],
    /// By level, then by bucket.
    counts: [Vec<Count>; LEVELS],
    /// Milliseconds.
    width: u64,
    /// The bucket of the busiest window of each length, by bin.
    busiest: Vec<[u8; LEVELS]>,
}

impl Default for Together {
    fn default() -> Together {
        Together {
            windows: Default::default(),
            counts: Default::default(),
            width: BIN,
            busiest: Vec::new(),
        }
    }
}

/// The bucket of a rate in kbit/s.
fn bucket(kbit: f64) -> usize {
    (kbit.max(1.0).log2() * BUCKETS).round() as usize
}

/// The same, coarser, for one byte: up to 100 Gbit/s.
fn coarse(bucket: usize) -> u8 {
    u8::try_from(bucket / 2).unwrap_or(u8::MAX)
}

/// Milliseconds of a window.
fn millis(level: usize) -> u64 {
    1 << level
}

/// The shortest window that holds so many full packets at a rate in kbit/s.
fn level(kbit: f64, packets: u64) -> usize {
    let fits = |k: &usize| millis(*k) as f64 * kbit >= (packets * 1500 * 8) as f64;
    (0..LEVELS).find(fits).unwrap_or(LEVELS - 1)
}

impl Together {
    /// Counts bytes at a time in nanoseconds. `ends`: the host whose line is in question, and its peer.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, ends: [u32; 2], bytes: u64) {
        let number = at / FINEST;
        if number != self.windows[0].number {
            self.close(0, number);
        }
        let window = &mut self.windows[0];
        window.bytes += bytes;
        for (shares, host) in window.ends.iter_mut().zip(ends) {
            shares.add(host, bytes);
        }
    }

    /// Ends a window, and begins that with the given number.
    fn close(&mut self, level: usize, number: u64) {
        let next = Window {
            number,
            ..Window::default()
        };
        let done = std::mem::replace(&mut self.windows[level], next);
        if done.bytes == 0 {
            return;
        }
        self.count(level, &done);
        if level + 1 == LEVELS {
            return;
        }
        if self.windows[level + 1].number != done.number / 2 {
            self.close(level + 1, done.number / 2);
        }
        let longer = &mut self.windows[level + 1];
        longer.bytes += done.bytes;
        for (sum, own) in longer.ends.iter_mut().zip(&done.ends) {
            for &(host, bytes) in &own.of[..own.hosts] {
                sum.add(host, bytes);
            }
        }
    }

    fn count(&mut self, level: usize, window: &Window) {
        let length = millis(level);
        let place = bucket(window.bytes as f64 * 8.0 / length as f64);
        let counts = &mut self.counts[level];
        if counts.len() <= place {
            counts.resize(place + 1, [0; 3]);
        }
        let several = |end: usize| {
            let largest = window.ends[end].largest();
            largest as f64 <= SEVERAL * window.bytes as f64
        };
        let kinds = [true, several(0), !several(0) && several(1)];
        for (sum, is) in counts[place].iter_mut().zip(kinds) {
            *sum = sum.saturating_add(u32::from(is));
        }
        let [first, last] = [window.number, window.number + 1].map(|n| n * length);
        while usize::try_from(last / self.width).is_ok_and(|bin| bin >= MAX_BINS) {
            self.coarsen();
        }
        let [first, last] = [first, last - 1].map(|at| (at / self.width) as usize);
        if self.busiest.len() <= last {
            self.busiest.resize(last + 1, [0; LEVELS]);
        }
        for bin in self.busiest.iter_mut().take(last + 1).skip(first) {
            bin[level] = bin[level].max(coarse(place));
        }
    }

    /// Joins bins in pairs.
    fn coarsen(&mut self) {
        self.width *= 2;
        let joined = self.busiest.chunks(2).map(|pair| {
            pair.iter().fold([0; LEVELS], |most, bin| {
                std::array::from_fn(|k| most[k].max(bin[k]))
            })
        });
        self.busiest = joined.collect();
    }

    /// Counts the windows in progress, too.
    pub(crate) fn finish(&mut self) {
        for level in 0..LEVELS {
            self.close(level, u64::MAX >> level);
        }
    }

    /// Windows of a length that come close to a rate in kbit/s, those that fill it, and those that exceed it.
    fn windows(&self, level: usize, kbit: f64) -> [Count; 3] {
        let [close, low, high] = [kbit / FULL.powi(3), kbit / FULL, kbit * FULL].map(bucket);
        let mut sums = [[0; 3]; 3];
        for (place, counts) in self.counts[level].iter().enumerate().skip(close) {
            let sum = &mut sums[usize::from(place >= low) + usize::from(place > high)];
            for (total, n) in sum.iter_mut().zip(counts) {
                *total += n;
            }
        }
        sums
    }

    /// Whether a line of this rate limits all together. `one`: a single host has nearly all bytes, so that only those at
    /// the other end can tell.
    pub(crate) fn limit(&self, rate: Rate, one: bool) -> Limit {
        let kbit = rate.bps() as f64 / 1e3;
        let shortest = level(kbit, PACKETS);
        let kind = if one { 2 } else { 1 };
        let found = (shortest..(shortest + 2).min(LEVELS)).map(|level| {
            let [close, full, over] = self.windows(level, kbit);
            let exceeds = |of: usize, most: f64| f64::from(over[of]) > most * f64::from(full[of]);
            let several = over[1] >= ENOUGH && exceeds(1, SEVERAL_EXCEED);
            // A load without a limit is the rarer, the higher it is.
            let peak = full[kind] >= ENOUGH && full[kind] > close[kind];
            match () {
                () if exceeds(0, EXCEED) => Limit::None,
                () if peak && !exceeds(kind, SEVERAL_EXCEED) => Limit::Shared,
                () if several => Limit::None,
                () if full[0] < ENOUGH => Limit::Unreached,
                () => Limit::Unclear,
            }
        });
        let found: Vec<Limit> = found.collect();
        let shared = found.contains(&Limit::Shared) || self.full_at_length(kbit, shortest, kind);
        match shared {
            true => Limit::Shared,
            // Where some windows are exceeded, longer ones may be so too seldom.
            false => found.into_iter().min().unwrap_or(Limit::None),
        }
    }

    /// Whether longer windows nearly always fill a line in kbit/s and do not exceed it, though shorter ones do at times. A
    /// load without a limit exceeds its mean in short windows about as often as it comes up to it.
    fn full_at_length(&self, kbit: f64, shortest: usize, kind: usize) -> bool {
        let [close, full, over] = self.windows(shortest, kbit).map(|count| count[0]);
        if f64::from(over) > SHORT_EXCEED * f64::from(full) || full <= close {
            return false;
        }
        (shortest + 1..LEVELS).any(|longer| {
            let [near, own, more] = self.windows(longer, kbit);
            let mostly = own[kind] >= MANY && own[kind] > MOSTLY * near[kind];
            mostly && f64::from(more[0]) <= EXCEED * f64::from(own[0])
        })
    }

    /// Whether a line of this rate is full all the time, and hosts share it. `one`: as for [`Together::limit`].
    pub(crate) fn always(&self, rate: Rate, one: bool) -> bool {
        let kbit = rate.bps() as f64 / 1e3;
        let kind = if one { 2 } else { 1 };
        let shortest = level(kbit, PACKETS);
        [shortest, LEVELS - 1].into_iter().all(|level| {
            let all: f64 = self.counts[level].iter().map(|n| f64::from(n[0])).sum();
            let [_, full, over] = self.windows(level, kbit);
            let most = f64::from(full[kind]) >= ALWAYS * all;
            full[kind] >= MANY && most && f64::from(over[0]) <= EXCEED * f64::from(full[0])
        })
    }

    /// The rate of most of the longest windows, if a line of this rate is full all the time.
    pub(crate) fn steady(&self, one: bool) -> Option<Rate> {
        let counts = self.counts[LEVELS - 1].iter().enumerate();
        let kbit = |bucket: usize| (bucket as f64 / BUCKETS).exp2();
        let most = kbit(counts.max_by_key(|(_, n)| n[0])?.0);
        let near = most / FULL..most * FULL;
        let (mut sum, mut windows) = (0.0, 0.0);
        for (place, n) in self.counts[LEVELS - 1].iter().enumerate() {
            if near.contains(&kbit(place)) {
                sum += f64::from(n[0]) * kbit(place);
                windows += f64::from(n[0]);
            }
        }
        // Known to about a hundredth.
        let digit = 10f64.powf((sum / windows).log10().floor() - 2.0);
        let rate = Rate::from_bps(((sum / windows / digit).round() * digit * 1e3) as u64);
        self.always(rate, one).then_some(rate)
    }

    /// Whether a line of this rate was full for so many packets around a time in milliseconds.
    pub(crate) fn busy(&self, rate: Rate, packets: u64, at: u32) -> bool {
        let kbit = rate.bps() as f64 / 1e3;
        let level = level(kbit, packets);
        let least = coarse(bucket(kbit * BUSY));
        let at = u64::from(at);
        let [first, last] = [at.saturating_sub(millis(level)), at + millis(level)]
            .map(|at| usize::try_from(at / self.width).unwrap_or(usize::MAX));
        let bins = self.busiest.iter().take(last.saturating_add(1)).skip(first);
        bins.map(|bin| bin[level]).any(|most| most >= least)
    }
}

/// Whether a capacity limits all hosts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    /// More passes at times.
    None,
    /// Less passes at all times.
    Unreached,
    /// All together never exceed it. But one host is busy at a time, so it may be its own.
    Unclear,
    /// Several hosts fill it, and never exceed it.
    Shared,
}

#[cfg(test)]
mod tests {
    use swell_base::Stream;

    use super::*;

    const MBIT: u64 = 10;

    fn rate(mbit: u64) -> Rate {
        Rate::from_bps(mbit * 1_000_000)
    }

    /// Counts two packets of 1500 bytes of a host at a time in microseconds.
    fn pair(found: &mut Together, at: u64, host: u32) {
        found.add(at * 1000, [host, 99], 3_000);
    }

    /// Transfers of a second at 10 Mbit/s each, of three hosts in turn; one begins `gap` milliseconds after the other.
    fn transfers(gap: u64) -> Together {
        let mut pairs = Vec::new();
        for i in 0..30u64 {
            pairs.extend((0..416).map(|k| (i * gap * 1_000 + k * 2_400, (i % 3) as u32)));
        }
        pairs.sort_unstable();
        let mut found = Together::default();
        pairs
            .iter()
            .for_each(|&(at, host)| pair(&mut found, at, host));
        found.finish();
        found
    }

    /// Three hosts send a packet in turn at 10 Mbit/s, except while it is `idle` at a time in milliseconds.
    fn in_turn(idle: impl Fn(u64) -> bool) -> Together {
        let mut found = Together::default();
        for k in (0..50_000u64).filter(|k| !idle(k * 12 / 10)) {
            found.add(k * 1_200_000, [(k % 3) as u32, 99], 1_500);
        }
        found.finish();
        found
    }

    #[test]
    fn a_line_that_is_full_all_the_time() {
        let near = |found: &Together| {
            let rate = found.steady(false).map(|rate| rate.bps() as f64 / 1e6);
            rate.is_some_and(|mbit| (mbit / MBIT as f64 - 1.0).abs() < 0.03)
        };
        // BBR sends next to nothing for 200 ms of every ten seconds.
        for found in [in_turn(|_| false), in_turn(|at| at % 10_000 < 200)] {
            assert!(near(&found) && found.always(rate(MBIT), false));
            assert!(!found.always(rate(2 * MBIT), false) && !found.always(rate(MBIT / 2), false));
        }
        let half = in_turn(|at| at % 1_000 < 500);
        assert!(!half.always(rate(MBIT), false) && half.steady(false).is_none());
        // One host at a time may be on a line of its own.
        assert!(transfers(1_000).steady(false).is_none());
    }

    #[test]
    fn hosts_that_share_a_line_fill_it_together() {
        // Packets of three hosts in turn, a second of every two.
        let mut found = Together::default();
        for second in 0..20u64 {
            for k in 0..416 {
                pair(&mut found, second * 2_000_000 + k * 2_400, (k % 3) as u32);
            }
        }
        found.finish();
        assert_eq!(found.limit(rate(MBIT), false), Limit::Shared);
        // Other rates are none that they have in common.
        assert_eq!(found.limit(rate(6), false), Limit::None);
        assert_eq!(found.limit(rate(20), false), Limit::Unreached);
        // It was busy in the even seconds.
        for (at, is) in [(500, true), (1_500, false), (4_300, true), (5_700, false)] {
            for packets in BUSY_PACKETS {
                assert_eq!(found.busy(rate(MBIT), packets, at), is, "{at}");
            }
        }
    }

    #[test]
    fn hosts_with_equal_lines_exceed_one_together() {
        assert_eq!(transfers(700).limit(rate(MBIT), false), Limit::None);
        // Seldom together, but not never.
        assert_eq!(transfers(850).limit(rate(MBIT), false), Limit::None);
        // Never together: nobody can tell.
        assert_eq!(transfers(1_500).limit(rate(MBIT), false), Limit::Unclear);
    }

    #[test]
    fn where_one_host_receives_all_its_senders_tell() {
        let mut found = Together::default();
        for k in 0..4_000u64 {
            found.add(k * 2_400_000, [7, (k % 3) as u32], 3_000);
        }
        found.finish();
        assert_eq!(found.limit(rate(MBIT), true), Limit::Shared);
        assert_eq!(found.limit(rate(MBIT), false), Limit::Unclear);
    }

    /// Many hosts that send a few packets at a time over a much faster link: their load is smooth, and is near any rate of
    /// its size, but nothing limits it.
    #[test]
    fn a_smooth_load_is_no_line() {
        for mean in [3, 4, 5, 6, 7, 8, 9, 10, 11] {
            let mut rng = Stream::new(3, "smooth");
            let mut found = Together::default();
            let mut at = 0.0;
            // Four packets at a time.
            let gap = 4.0 * 1500.0 * 8.0 / mean as f64;
            for _ in 0..60_000 {
                at += rng.exponential(gap);
                let host = rng.below(40) as u32;
                found.add((at * 1000.0) as u64, [host, 99], 6_000);
            }
            found.finish();
            let limit = found.limit(rate(10), false);
            assert_ne!(limit, Limit::Shared, "{mean}");
        }
    }

    /// Hosts at different distances acknowledge at different times what a full line carried, so that more arrives in
    /// short windows at times.
    #[test]
    fn hosts_at_different_distances_share_a_line() {
        let mut rng = Stream::new(5, "distances");
        let mut arrived: Vec<(u64, u32)> = Vec::new();
        // Bursts of 1 to 4 pairs of packets go to one host each.
        let (mut k, mut host) = (0, 0);
        while k < 20_000u64 {
            for _ in 0..=rng.below(4) {
                arrived.push((k * 2_400 + 6_000 * u64::from(host), host));
                k += 1;
            }
            host = rng.below(10) as u32;
        }
        arrived.sort_unstable();
        let mut found = Together::default();
        arrived
            .iter()
            .for_each(|&(at, to)| pair(&mut found, at, to));
        found.finish();
        assert_eq!(found.limit(rate(MBIT), false), Limit::Shared);
        for other in [5, 8, 13, 20] {
            assert_ne!(found.limit(rate(other), false), Limit::Shared, "{other}");
        }
    }

    /// Memory is bounded, however long the trace, and what was busy stays so.
    #[test]
    fn bins_grow_wider_instead_of_more() {
        let mut found = Together::default();
        let day = 86_400_000_000_000;
        for i in 0..5 {
            for k in 0..1_000 {
                found.add(i * day + k * 2_400_000, [0, 1], 3_000);
            }
        }
        found.finish();
        assert!(found.busiest.len() <= MAX_BINS);
        let at = u32::try_from(3 * day / 1_000_000).unwrap();
        assert!(found.busy(rate(MBIT), 32, at + 1_000));
        assert!(!found.busy(rate(MBIT), 32, at + 40_000_000));
    }
}
