//! The queue of the tapped link, as round trips show it.
//!
//! A sample's excess is what it is above the shortest of its host. Excesses of many hosts at one time have the queue of the
//! link in them that all share, and what each host's own path adds. So the least of several hosts' is a
//! cautious estimate of the shared queue. Queues elsewhere have nothing to do with each other: their least is about
//! nothing, and does not explain what there is; then nothing is taken out at all.
//!
//! A queue that fills up drops. Losses elsewhere come while it is long and while it is not; what comes more often while it is
//! long is its own.

use swell_base::Dur;

use crate::hosts::{Measured, Sample};

/// Samples of a host from which on the shortest says something.
const TIMED: usize = 3;
/// Samples this near are of one time, milliseconds.
const NEAR: u32 = 100;
/// Other hosts that have to agree.
const OTHERS: usize = 3;
/// Samples whose queue is known from which on there is one.
const ENOUGH: usize = 100;
/// The part of all excess that a shared queue explains at least. Of independent delays the least of three is a third.
const EXPLAINED: f64 = 0.5;

/// Length of a bin in which losses are counted, milliseconds.
const BIN: u32 = 250;
/// A loss shows up to so many bins later: what is lost at the end of a transfer is sent again after a time-out.
const LATER: usize = 4;
/// Packets while the queue was short from which on their losses say something.
const PACKETS: u64 = 1_000;

/// Data packets over time, and those that were lost.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    /// By side of the tap, then by bin: of hosts there, `[packets, lost]` that they sent and that were sent to them.
    bins: [Vec<[[u32; 2]; 2]>; 2],
}

impl Passing {
    /// At a time, nanoseconds, so many packets of a host on `side`, and news of lost ones: of hosts there on their way to
    /// the tap, and on the way to them.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, side: usize, sent: u64, lost: [u64; 2]) {
        if sent == 0 && lost == [0; 2] {
            return;
        }
        let bin = (at / 1_000_000) as usize / BIN as usize;
        if bin >= self.bins[0].len() {
            self.bins
                .iter_mut()
                .for_each(|b| b.resize(bin + 1, [[0; 2]; 2]));
        }
        let counts = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let [left, right] = &mut self.bins;
        let (own, other) = if side == 0 {
            (left, right)
        } else {
            (right, left)
        };
        own[bin][0][0] += counts(sent);
        other[bin][1][0] += counts(sent);
        own[bin][0][1] += counts(lost[0]);
        own[bin][1][1] += counts(lost[1]);
    }

    /// The part of the losses of `side` that are not the queue's, sent and received, where `is_long` tells of bins in
    /// which it was long.
    fn elsewhere(&self, side: usize, is_long: impl Fn(usize) -> bool) -> [f64; 2] {
        let mut sums = [[[0u64; 2]; 2]; 2];
        let mut since = LATER + 1;
        for (i, bin) in self.bins[side].iter().enumerate() {
            since = if is_long(i) {
                0
            } else {
                since.saturating_add(1)
            };
            let sum = &mut sums[usize::from(since <= LATER)];
            for (way, counts) in sum.iter_mut().zip(bin) {
                way[0] += u64::from(counts[0]);
                way[1] += u64::from(counts[1]);
            }
        }
        [0, 1].map(|way| {
            let [short, long] = [sums[0][way], sums[1][way]];
            let (packets, lost) = (short[0] + long[0], short[1] + long[1]);
            if short[0] < PACKETS || lost == 0 {
                return 1.0;
            }
            let expected = short[1] as f64 / short[0] as f64 * packets as f64;
            (expected / lost as f64).min(1.0)
        })
    }
}

/// What was common to the hosts on one side of the tap.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Time in milliseconds, host, and excess in microseconds; by time.
    excess: Vec<(u32, u32, u32)>,
    /// Mean over the samples, microseconds.
    mean: u64,
    /// The part of the losses that are not its own: of packets from these hosts, and to them.
    pub(crate) elsewhere: [f64; 2],
}

impl Default for Queue {
    /// None.
    fn default() -> Queue {
        Queue {
            excess: Vec::new(),
            mean: 0,
            elsewhere: [1.0; 2],
        }
    }
}

impl Queue {
    /// Of these hosts, and of the packets that passed them.
    pub(crate) fn of<'h>(
        hosts: impl Iterator<Item = (u32, &'h Measured)>,
        passing: &Passing,
        side: usize,
    ) -> Queue {
        let mut excess = Vec::new();
        for (host, measured) in hosts {
            for kind in [Sample::Handshake, Sample::Data] {
                let kept = measured.get(kind).map_or(&[][..], |r| &r.kept);
                let least = kept.iter().map(|k| k.0).min();
                if let Some(least) = least.filter(|_| kept.len() >= TIMED) {
                    excess.extend(kept.iter().map(|&(v, at)| (at, host, v - least)));
                }
            }
        }
        excess.sort_unstable();
        let mut queue = Queue {
            excess,
            ..Queue::default()
        };
        let (mut all, mut shared, mut known) = (0u64, 0u64, 0);
        // The longest in each bin.
        let mut longest: Vec<u32> = Vec::new();
        for &(at, host, own) in &queue.excess {
            if let Some(least) = queue.least(host, at) {
                all += u64::from(own);
                shared += u64::from(least.min(own));
                known += 1;
                let bin = (at / BIN) as usize;
                longest.resize(longest.len().max(bin + 1), 0);
                longest[bin] = longest[bin].max(least.min(own));
            }
        }
        if known < ENOUGH || (shared as f64) < EXPLAINED * all as f64 || shared == 0 {
            return Queue::default();
        }
        queue.mean = shared / known as u64;
        let long = |bin: usize| longest.get(bin).is_some_and(|&q| u64::from(q) > queue.mean);
        queue.elsewhere = passing.elsewhere(side, long);
        queue
    }

    /// The mean that was taken out.
    pub(crate) fn mean(&self) -> Dur {
        Dur::from_micros(self.mean)
    }

    /// What all shared at a time, microseconds, by the others than `host`; nothing where too few were there: then the
    /// link was not busy.
    pub(crate) fn of_all(&self, host: u32, at: u32) -> u32 {
        self.least(host, at).unwrap_or(0)
    }

    /// The least excess of others around a time.
    fn least(&self, host: u32, at: u32) -> Option<u32> {
        let from = self
            .excess
            .partition_point(|e| e.0 < at.saturating_sub(NEAR));
        let near = self.excess[from..]
            .iter()
            .take_while(|e| e.0 <= at.saturating_add(NEAR));
        let mut others: Vec<u32> = Vec::new();
        let mut least = None;
        for &(_, other, own) in near.filter(|e| e.1 != host) {
            if !others.contains(&other) {
                others.push(other);
            }
            least = Some(least.map_or(own, |l: u32| l.min(own)));
        }
        least.filter(|_| others.len() >= OTHERS)
    }
}

#[cfg(test)]
mod tests {
    use swell_base::Stream;

    use super::*;
    use crate::hosts::Hosts;

    /// Twenty hosts, sampled every 15 ms in turn, for 30 s: what `delay` makes of a time and a host comes on top of 20 ms,
    /// in microseconds. Losses: one in twenty packets while `lossy`.
    fn found(
        mut delay: impl FnMut(u64, u32, &mut Stream) -> u64,
        lossy: impl Fn(u64) -> bool,
    ) -> (Queue, u32) {
        let mut hosts = Hosts::new(Vec::new());
        let mut rng = Stream::new(1, "queue");
        let mut passing = Passing::default();
        let ids: Vec<u32> = (0..20u8)
            .map(|i| hosts.id(std::net::IpAddr::from([192, 0, 2, i])))
            .collect();
        for k in 0..2_000u64 {
            let (at, host) = (15 * k, ids[(k % 20) as usize]);
            let rtt = 20_000 + delay(at, host, &mut rng);
            hosts.sample(host, Sample::Handshake, rtt, at * 1_000_000);
            for packet in 0..20 {
                let lost = u64::from(packet == 0 && lossy(at));
                passing.add(at * 1_000_000, 0, 1, [0, 0]);
                passing.add(at * 1_000_000, 1, 0, [0, lost]);
            }
        }
        let measured = ids.iter().filter_map(|&h| Some((h, hosts.measured(h)?)));
        (Queue::of(measured, &passing, 1), ids[0])
    }

    /// Long for two seconds of six.
    fn busy(at: u64) -> bool {
        at % 6_000 < 2_000
    }

    #[test]
    fn what_all_wait_for_is_the_queue() {
        let queue = |at: u64, rng: &mut Stream| {
            let jitter = rng.below(2_000);
            jitter + if busy(at) { 30_000 } else { 0 }
        };
        let (q, host) = found(|at, _, rng| queue(at, rng), busy);
        // A third of the time, within the jitter.
        let mean = q.mean().as_secs_f64() * 1e3;
        assert!((9.0..11.0).contains(&mean), "{mean} ms");
        for at in [12_500u32, 13_500] {
            let found = q.of_all(host, at);
            assert!((28_000..31_000).contains(&found), "{found} at {at}");
        }
        assert!(q.of_all(host, 16_000) < 1_000);
        // It lost everything that was lost.
        assert_eq!(q.elsewhere, [1.0, 0.0]);
        // Losses that do not care for the queue stay the hosts'.
        let (always, _) = found(|at, _, rng| queue(at, rng), |_| true);
        let share = always.elsewhere[1];
        assert!((0.9..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn what_each_waits_for_alone_stays() {
        // As long and as often, but at times of its own; and jitter as large.
        let own = |at: u64, host: u32| busy(at + 977 * u64::from(host));
        let (q, host) = found(|at, h, _| if own(at, h) { 30_000 } else { 0 }, busy);
        assert_eq!((q.mean(), q.of_all(host, 12_500)), (Dur::ZERO, 0));
        assert_eq!(q.elsewhere, [1.0; 2]);
        let (jitter, _) = found(|_, _, rng| (rng.exponential(10.0) * 1e3) as u64, busy);
        assert_eq!(jitter.mean(), Dur::ZERO);
    }

    #[test]
    fn few_hosts_tell_nothing() {
        let (q, _) = found(|at, h, _| u64::from(h < 2 && busy(at)) * 30_000, busy);
        assert_eq!(q.mean(), Dur::ZERO);
    }
}
