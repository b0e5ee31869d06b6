//! Measurements of the path to a host.

use super::Hosts;
use swell_base::Stream;

/// Number of samples kept of each measured quantity of a host.
pub(crate) const RESERVOIR: usize = 64;

/// A uniform sample of a stream of values (Vitter 1985, algorithm R).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservoir {
    pub(crate) seen: u32,
    /// Values and the times they were seen, in milliseconds.
    pub(crate) kept: Vec<(u32, u32)>,
}

impl Reservoir {
    pub(super) fn push(&mut self, value: (u32, u32), rng: &mut Stream) {
        self.seen = self.seen.saturating_add(1);
        if self.kept.len() < RESERVOIR {
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
    /// Where the kept values are densest on a logarithmic scale: the half-sample mode (Bickel & Frühwirth,
    /// Computational Statistics & Data Analysis 50, 2006). `None` if there are none.
    pub(crate) fn mode(&self) -> Option<u32> {
        let mut logs: Vec<f64> = self
            .kept
            .iter()
            .map(|&(v, _)| f64::from(v.max(1)).ln())
            .collect();
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

    /// The share of the kept values within `factor` of `value`.
    pub(crate) fn near(&self, value: u32, factor: f64) -> f64 {
        let near = |&&(v, _): &&(u32, u32)| {
            let ratio = f64::from(v) / f64::from(value.max(1));
            (1.0 / factor..=factor).contains(&ratio)
        };
        self.kept.iter().filter(near).count() as f64 / self.kept.len().max(1) as f64
    }
}

/// Measurements between the tap and a host. A host that never answered has none, which costs some ten
/// bytes. Samples are allocated on demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Indexed by [`Sample`].
    samples: [Option<Box<Reservoir>>; 4],
    /// Data packets from the host, and how many of them were lost before the tap.
    pub(crate) sent: [u32; 2],
    /// Data packets to the host, and how many of them were lost beyond the tap.
    pub(crate) received: [u32; 2],
}

impl Measured {
    /// The samples of a kind, to add one.
    pub(super) fn reservoir(&mut self, kind: Sample) -> &mut Reservoir {
        self.samples[kind as usize].get_or_insert_default()
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
}

impl Hosts {
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
}

fn add(sum: &mut u32, n: u64) {
    *sum = sum.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
}
