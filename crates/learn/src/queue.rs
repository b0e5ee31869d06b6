//! Estimates the queueing delay of the tapped link from RTT samples.
//!
//! The excess of a sample is its difference from the host's minimum. The excesses of many hosts at the
//! same time share the delay of the tapped link's queue. Each also holds delay of the host's own path. So
//! the minimum over several hosts is a cautious estimate of the shared queue. Queues elsewhere are
//! independent, so their minimum is close to zero and explains little of the total excess. In that case
//! nothing is subtracted.
//!
//! A full queue drops packets. Losses elsewhere occur at the same rate whether the queue is long or short.
//! The surplus while the queue is long is attributed to the queue.

use swell_base::Dur;

use crate::hosts::{Measured, Sample};

/// Minimum number of samples of a host for its shortest sample to be meaningful.
const TIMED: usize = 3;
/// Samples within this distance count as simultaneous, milliseconds.
const NEAR: u32 = 100;
/// Minimum number of other hosts that must agree.
const OTHERS: usize = 3;
/// Minimum number of samples with a known shared delay for a queue to be reported.
const ENOUGH: usize = 100;
/// Minimum share of the total excess that a shared queue must explain. For independent exponential delays
/// the minimum of three explains a third.
const EXPLAINED: f64 = 0.5;

/// Length of a bin in which losses are counted, milliseconds.
const BIN: u64 = 250;
/// Maximum number of bins: 18 hours. Longer traces use bins of twice, four times, … the length.
const MAX_BINS: usize = 1 << 18;
/// Time by which detection may lag a loss, milliseconds: the last packet of a transfer is retransmitted
/// after a time-out.
const LATER: u64 = 1_000;
/// Minimum number of packets while the queue was short for their loss rate to be meaningful.
const PACKETS: u64 = 1_000;

/// Data packets over time, and how many of them were lost.
#[derive(Debug)]
pub(crate) struct Passing {
    /// Length of a bin, milliseconds.
    width: u64,
    /// By side of the tap, then by bin: `[packets, lost]` sent by hosts of that side, and sent to them.
    bins: [Vec<[[u32; 2]; 2]>; 2],
}

impl Default for Passing {
    fn default() -> Passing {
        Passing {
            width: BIN,
            bins: Default::default(),
        }
    }
}

impl Passing {
    /// The bin of a time in milliseconds.
    fn bin(&self, at: u64) -> usize {
        usize::try_from(at / self.width).unwrap_or(usize::MAX)
    }

    /// Joins bins in pairs.
    fn coarsen(&mut self) {
        self.width *= 2;
        for bins in &mut self.bins {
            let joined = bins.chunks(2).map(|pair| {
                pair.iter().fold([[0u32; 2]; 2], |sum, bin| {
                    [0, 1].map(|way| [0, 1].map(|k| sum[way][k].saturating_add(bin[way][k])))
                })
            });
            *bins = joined.collect();
        }
    }

    /// Makes room for a time in milliseconds, and returns its bin.
    fn grow(&mut self, at: u64) -> usize {
        while self.bin(at) >= MAX_BINS {
            self.coarsen();
        }
        let bin = self.bin(at);
        for bins in &mut self.bins {
            bins.resize(bins.len().max(bin + 1), [[0; 2]; 2]);
        }
        bin
    }

    /// Records data packets of a host on `side` at a time in nanoseconds. `lost` counts newly detected
    /// losses of hosts on that side: on their way to the tap, and on the way to them.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, side: usize, sent: u64, lost: [u64; 2]) {
        if sent == 0 && lost == [0; 2] {
            return;
        }
        let millis = at / 1_000_000;
        let mut bin = self.bin(millis);
        if bin >= self.bins[0].len() {
            bin = self.grow(millis);
        }
        let counts = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let [left, right] = &mut self.bins;
        let (own, other) = if side == 0 {
            (left, right)
        } else {
            (right, left)
        };
        for sum in [&mut own[bin][0][0], &mut other[bin][1][0]] {
            *sum = sum.saturating_add(counts(sent));
        }
        for (way, n) in own[bin].iter_mut().zip(lost) {
            way[1] = way[1].saturating_add(counts(n));
        }
    }

    /// The share of the losses of `side` that the queue did not cause, for packets sent and received.
    /// `is_long` tells in which bins the queue was long.
    fn elsewhere(&self, side: usize, is_long: impl Fn(usize) -> bool) -> [f64; 2] {
        let mut sums = [[[0u64; 2]; 2]; 2];
        let later = LATER.div_ceil(self.width);
        let mut since = later + 1;
        for (i, bin) in self.bins[side].iter().enumerate() {
            since = if is_long(i) {
                0
            } else {
                since.saturating_add(1)
            };
            let sum = &mut sums[usize::from(since <= later)];
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

/// The delay shared by the hosts on one side of the tap.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Time in milliseconds, host, and excess in microseconds; ordered by time. Of each millisecond the
    /// shortest, of [`OTHERS`] hosts and one more: they tell the minimum over the others of any host.
    excess: Vec<(u32, u32, u32)>,
    /// Mean over the samples, microseconds.
    mean: u64,
    /// The share of the losses that the queue did not cause: of packets from these hosts, and to them.
    pub(crate) elsewhere: [f64; 2],
}

impl Default for Queue {
    /// No queue.
    fn default() -> Queue {
        Queue {
            excess: Vec::new(),
            mean: 0,
            elsewhere: [1.0; 2],
        }
    }
}

impl Queue {
    /// Estimates the queue from these hosts and the packets that passed on their side.
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
        let mut queue = Queue::default();
        for moment in excess.chunk_by(|a, b| a.0 == b.0) {
            let mut shortest = moment.to_vec();
            shortest.dedup_by_key(|e| e.1);
            shortest.sort_unstable_by_key(|e| (e.2, e.1));
            shortest.truncate(OTHERS + 1);
            queue.excess.extend(shortest);
        }
        let (mut all, mut shared, mut known) = (0u64, 0u64, 0);
        // The maximum delay in each bin.
        let mut longest = vec![0u32; passing.bins[side].len()];
        for &(at, host, own) in &excess {
            if let Some(least) = queue.least(host, at) {
                all += u64::from(own);
                shared += u64::from(least.min(own));
                known += 1;
                if let Some(most) = longest.get_mut(passing.bin(u64::from(at))) {
                    *most = (*most).max(least.min(own));
                }
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

    /// The mean delay that was subtracted.
    pub(crate) fn mean(&self) -> Dur {
        Dur::from_micros(self.mean)
    }

    /// Shared delay at a time, in microseconds, from hosts other than `host`. Zero if too few hosts have
    /// samples then, because the link was not busy.
    pub(crate) fn of_all(&self, host: u32, at: u32) -> u32 {
        self.least(host, at).unwrap_or(0)
    }

    /// The minimum excess of other hosts around a time.
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
            if others.len() < OTHERS && !others.contains(&other) {
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

    /// Samples twenty hosts in turn, one every 15 ms, for 30 s. `delay` gives the microseconds added to 20
    /// ms for a time and a host. One packet in twenty is lost while `lossy` holds.
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

    /// Busy for two seconds of every six.
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
        // All losses are the queue's.
        assert_eq!(q.elsewhere, [1.0, 0.0]);
        // Losses independent of the queue stay with the hosts.
        let (always, _) = found(|at, _, rng| queue(at, rng), |_| true);
        let share = always.elsewhere[1];
        assert!((0.9..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn what_each_waits_for_alone_stays() {
        // As long and as often, but at different times per host; and jitter of the same size.
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

    /// Memory is bounded, and the sums are kept, however long the trace.
    #[test]
    fn bins_grow_wider_instead_of_more() {
        let mut passing = Passing::default();
        let day = 86_400_000_000_000;
        for i in 0..10 {
            passing.add(i * day, 0, 3, [1, 0]);
        }
        assert!(passing.bins.iter().all(|b| b.len() <= MAX_BINS));
        let sum = |side: usize, way: usize, k: usize| {
            let bins = passing.bins[side].iter();
            bins.map(|b| b[way][k]).sum::<u32>()
        };
        assert_eq!([sum(0, 0, 0), sum(1, 1, 0), sum(0, 0, 1)], [30, 30, 10]);
    }

    /// The work for one sample does not grow with the number of hosts.
    #[test]
    fn a_few_hosts_tell_about_a_crowded_millisecond() {
        let mut hosts = Hosts::new(Vec::new());
        let ids: Vec<u32> = (0..200u8)
            .map(|i| hosts.id(std::net::IpAddr::from([192, 0, 2, i])))
            .collect();
        for (at, rtt) in [(0, 20_000), (10_000, 50_000), (20_000, 50_000)] {
            for &id in &ids {
                hosts.sample(id, Sample::Handshake, rtt, at * 1_000_000);
            }
        }
        let measured = ids.iter().filter_map(|&h| Some((h, hosts.measured(h)?)));
        let q = Queue::of(measured, &Passing::default(), 1);
        assert_eq!(q.excess.len(), 3 * (OTHERS + 1));
        let waits = [0, 10_000, 20_000].map(|at| q.of_all(ids[0], at));
        assert_eq!(waits, [0, 30_000, 30_000]);
    }
}
