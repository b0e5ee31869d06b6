//! Measurements of the path to a host.

use super::Hosts;
use crate::pairs::LEAST_PAIR;
use swell_base::Stream;

/// Number of samples kept of each measured quantity of a host.
pub(crate) const RESERVOIR: usize = 64;
/// The same of losses, and of the RTTs that they are compared with: few of them come while a busy link is not full, and
/// those tell most.
const RESERVOIR_OF_LOSSES: usize = 256;

/// A uniform sample of a stream of values (Vitter 1985, algorithm R).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservoir {
    pub(crate) seen: u32,
    /// Values and the times they were seen, in milliseconds.
    pub(crate) kept: Vec<(u32, u32)>,
}

impl Reservoir {
    pub(super) fn push(&mut self, value: (u32, u32), most: usize, rng: &mut Stream) {
        self.seen = self.seen.saturating_add(1);
        if self.kept.len() < most {
            // Most hosts yield only one sample.
            if self.kept.is_empty() {
                self.kept.reserve_exact(1);
            }
            self.kept.push(value);
        } else {
            let i = rng.below(u64::from(self.seen)) as usize;
            if let Some(slot) = self.kept.get_mut(i) {
                *slot = value;
            }
        }
    }

    /// The `q`-quantile of the kept values by nearest rank; `None` if there are none. `corrected` maps a
    /// value and its time to the value to rank.
    pub(crate) fn quantile(&self, q: f64, corrected: impl Fn(u32, u32) -> u32) -> Option<u32> {
        let mut sorted: Vec<u32> = self.kept.iter().map(|&(v, at)| corrected(v, at)).collect();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(q * last as f64).round() as usize])
    }
}

impl Reservoir {
    /// Number of different times at which the kept values were seen: some stand for several samples.
    pub(crate) fn moments(&self) -> usize {
        let mut times: Vec<u32> = self.kept.iter().map(|k| k.1).collect();
        times.sort_unstable();
        times.dedup();
        times.len()
    }

    /// Where the kept values from `least` on are densest on a logarithmic scale: the half-sample mode (Bickel &
    /// Frühwirth, Computational Statistics & Data Analysis 50, 2006). `None` if there are none.
    pub(crate) fn mode(&self, least: u32) -> Option<u32> {
        let kept = self.kept.iter().filter(|k| k.0 >= least);
        let mut logs: Vec<f64> = kept.map(|&(v, _)| f64::from(v.max(1)).ln()).collect();
        logs.sort_by(f64::total_cmp);
        let mut part = &logs[..];
        while part.len() > 2 {
            let half = part.len().div_ceil(2);
            let width = |w: &&[f64]| w[half - 1] - w[0];
            part = part
                .windows(half)
                .min_by(|a, b| width(a).total_cmp(&width(b)))?;
        }
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        (!part.is_empty()).then(|| mean.exp().round() as u32)
    }

    /// The share of the kept values from `least` on that are within `factor` of `value`.
    pub(crate) fn near(&self, value: u32, factor: f64, least: u32) -> f64 {
        let near = |&&(v, _): &&(u32, u32)| {
            let ratio = f64::from(v) / f64::from(value.max(1));
            (1.0 / factor..=factor).contains(&ratio)
        };
        let kept = || self.kept.iter().filter(|k| k.0 >= least);
        kept().filter(near).count() as f64 / kept().count().max(1) as f64
    }
}

/// The highest rate that a host kept up: the fifth of its busiest bins. A single bin may be busy because a queue
/// elsewhere let go of what it held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peak {
    bin: u32,
    /// Bytes of the current bin, after its first packet: that may have been on its way before.
    bytes: Option<u32>,
    /// Bytes of the busiest bins, the busiest first.
    busiest: [u32; 5],
    /// Number of bins within a tenth of the busiest, and of those with a quarter as much or more; and the busiest when
    /// they were first counted.
    busy: [u32; 2],
    since: u32,
}

impl Peak {
    /// Counts bytes at a time in nanoseconds, in bins of this width.
    pub(crate) fn add(&mut self, bytes: u64, at: u64, width: u64) {
        let bin = u32::try_from(at / width).unwrap_or(u32::MAX);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match &mut self.bytes {
            Some(sum) if bin == self.bin => *sum = sum.saturating_add(bytes),
            sum => {
                let ended = sum.replace(0).unwrap_or(0);
                self.bin = bin;
                let above = self.busiest.iter().take_while(|b| **b >= ended).count();
                if let Some(rest) = self.busiest.get_mut(above..).filter(|r| !r.is_empty()) {
                    rest.rotate_right(1);
                    rest[0] = ended;
                }
                self.count(ended);
            }
        }
    }

    /// Counts a bin that has ended.
    fn count(&mut self, ended: u32) {
        let most = self.busiest[0];
        if tenth_more(most, self.since) {
            self.since = most;
            self.busy = [0; 2];
        }
        self.busy[0] += u32::from(!tenth_more(most, ended));
        self.busy[1] += u32::from(ended >= most / 4);
    }

    /// Whether the busiest bins are equally busy, as those of a full line are: within a tenth. Of many bins of any load,
    /// the busiest are close to each other, too. But a line that is full is so most of the time that it is busy.
    fn steady(&self) -> bool {
        let [most, .., least] = self.busiest;
        let [full, busy] = self.busy;
        let enough = full as usize >= self.busiest.len() && full > busy / 2;
        least > 0 && !tenth_more(most, least) && enough
    }

    /// kbit/s for bins of this width in nanoseconds; zero where there are too few.
    pub(crate) fn rate(&self, width: u64) -> u32 {
        let bytes = self.busiest.last().copied().unwrap_or(0);
        u32::try_from(u64::from(bytes) * 8_000_000 / width).unwrap_or(u32::MAX)
    }
}

/// Whether `a` is greater than `b` by more than a tenth.
fn tenth_more(a: u32, b: u32) -> bool {
    u64::from(a) * 10 > u64::from(b) * 11
}

/// Bins of what one connection sends, nanoseconds: longer than most round trips, and shorter than large responses.
pub(crate) const PACE_BIN: u64 = 100_000_000;
/// Bins of what a host sends, nanoseconds: some packets at a few Mbit/s.
const SENT_BIN: u64 = 20_000_000;
/// Bins of what a host acknowledges, nanoseconds. ACKs that a queue on their way held back come together.
const DELIVERED_BIN: u64 = 200_000_000;

/// Measurements between the tap and a host. A host that never answered has none, which costs some ten
/// bytes. Samples are allocated on demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Indexed by [`Sample`].
    samples: [Option<Box<Reservoir>>; 10],
    /// Data packets from the host, and how many of them were lost before the tap.
    pub(crate) sent: [u32; 2],
    /// Data packets to the host, and how many of them were lost beyond the tap.
    pub(crate) received: [u32; 2],
    /// Data packets from the host and to it in transfers that a receive window held back.
    held_back: [u32; 2],
    sending: Peak,
    receiving: Peak,
}

impl Measured {
    /// The samples of a kind, to add one.
    pub(super) fn reservoir(&mut self, kind: Sample) -> &mut Reservoir {
        self.samples[kind as usize].get_or_insert_default()
    }

    /// The rates that the host reached when it sent large packets and when it received data, kbit/s.
    pub(crate) fn peaks(&self) -> [u32; 2] {
        [
            self.sending.rate(SENT_BIN),
            self.receiving.rate(DELIVERED_BIN),
        ]
    }

    /// Whether receive windows held back most of the data packets from the host, and of those to it.
    pub(crate) fn held_back(&self) -> [bool; 2] {
        let all = [self.sent[0], self.received[0]];
        [0, 1].map(|way| self.held_back[way] > 0 && self.held_back[way] >= all[way].div_ceil(2))
    }

    /// Whether the host received at the same rate whenever it received most.
    pub(crate) fn steady(&self) -> bool {
        self.receiving.steady()
    }

    /// The samples of a kind, if any.
    pub(crate) fn get(&self, kind: Sample) -> Option<&Reservoir> {
        self.samples[kind as usize].as_deref()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// SYN to SYN/ACK or SYN/ACK to ACK, microseconds.
    Handshake,
    /// Data to ACK, microseconds.
    Data,
    /// Capacity from packet pairs sent by the host, kbit/s.
    Up,
    /// Capacity from the dispersion of the host's ACKs, kbit/s.
    Down,
    /// Timestamp to its echo in data of the host, once it has lost some, microseconds.
    Sending,
    /// Rates that single connections of the host kept up when it sent, kbit/s.
    Pace,
    /// RTT when data from the host, and data to it, were lost, microseconds.
    LostUp,
    LostDown,
    /// The shortest answer of each connection whose handshake was not seen, microseconds.
    Echo,
    /// Data to ACK in the midst of transfers, with what waits in queues there; as often as there are packets, microseconds.
    Bulk,
}

impl Sample {
    /// Number of samples kept of this kind.
    pub(super) fn most(self) -> usize {
        match self {
            Sample::LostUp | Sample::LostDown | Sample::Sending | Sample::Bulk => {
                RESERVOIR_OF_LOSSES
            }
            _ => RESERVOIR,
        }
    }
}

impl Hosts {
    /// The measurements of a host.
    pub(crate) fn measured(&self, id: u32) -> Option<&Measured> {
        self.hosts[id as usize].measured.as_deref()
    }

    /// Counts a packet from a host, if it is large enough to tell a rate.
    #[inline]
    pub(crate) fn large(&mut self, from: u32, ip_len: u32, at: u64) {
        if ip_len >= LEAST_PAIR {
            let m = self.hosts[from as usize].measured.get_or_insert_default();
            m.sending.add(u64::from(ip_len), at, SENT_BIN);
        }
    }

    /// Samples the rate that a connection of a host kept up, if it sent for long enough to tell.
    pub(crate) fn paced(&mut self, from: u32, sending: &Peak, at: u64) {
        let rate = sending.rate(PACE_BIN);
        if rate > 0 {
            self.sample(from, Sample::Pace, u64::from(rate), at);
        }
    }

    /// Counts bytes that a host has acknowledged.
    #[inline]
    pub(crate) fn delivered(&mut self, to: u32, bytes: u64, at: u64) {
        if bytes >= u64::from(LEAST_PAIR) {
            let m = self.hosts[to as usize].measured.get_or_insert_default();
            m.receiving.add(bytes, at, DELIVERED_BIN);
        }
    }

    /// Counts data packets that went from one host to another, those lost before the tap, and those lost
    /// beyond it.
    pub(crate) fn losses(&mut self, from: u32, to: u32, packets: u64, before: u64, beyond: u64) {
        if packets == 0 {
            return;
        }
        let sent = &mut self.hosts[from as usize]
            .measured
            .get_or_insert_default()
            .sent;
        add(&mut sent[0], packets);
        add(&mut sent[1], before);
        let received = &mut self.hosts[to as usize]
            .measured
            .get_or_insert_default()
            .received;
        add(&mut received[0], packets);
        add(&mut received[1], beyond);
    }

    /// Counts data packets that went from one host to another in a transfer that the receive window held back.
    pub(crate) fn held_back(&mut self, from: u32, to: u32, packets: u64) {
        for (host, way) in [(from, 0), (to, 1)] {
            let m = self.hosts[host as usize].measured.get_or_insert_default();
            add(&mut m.held_back[way], packets);
        }
    }
}

fn add(sum: &mut u32, n: u64) {
    *sum = sum.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
}
