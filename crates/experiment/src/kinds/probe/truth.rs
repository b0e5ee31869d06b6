//! The actual available bandwidth during an estimate, which only the simulator knows.

use swell_base::{Dur, Time};
use swell_path::mean_offered;

use super::names::{AVAILABLE, BYTES, DURATION, ERROR, ESTIMATE, HIGH, LOW, PACKETS, Target};
use crate::kinds::contract::Crossed;
use crate::observe::{Estimate, MeasureSample, Observations};

/// Timescales of the table `estimates`, milliseconds.
const TIMESCALES: [usize; 4] = [10, 100, 1000, 10_000];

/// Adds the actual available bandwidth of `path` during each estimate, on its tightest link. The mean over that time
/// and the error of the estimate go to the measures, several timescales to the table of estimates. The error is against
/// `target`, because other traffic does not change the capacity.
///
/// Both are network-layer bandwidths for packets of the probe's mean size L: of a link whose layer adds H bytes to each
/// packet, the share L / (L + H) (Prasad et al., "Bandwidth estimation: metrics, measurement techniques, and tools",
/// IEEE Network 17(6), 2003, section II-A).
pub(super) fn add(path: &[Crossed<'_>], target: Target, observed: &mut Observations) {
    let Some(first) = path.first() else { return };
    let narrowest = path.iter().fold(first.capacity, |c, l| c.min(l.capacity));
    let mut found = Vec::new();
    let values: Vec<_> = observed.measures.iter().collect();
    // A workload reports all measures of an estimate consecutively.
    for own in values.chunk_by(|a, b| a.at == b.at) {
        let value = |name: &str| own.iter().find(|m| m.measure == name).map(|m| m.value);
        let all = [LOW, HIGH, BYTES, PACKETS, DURATION, ESTIMATE].map(value);
        let [
            Some(low),
            Some(high),
            Some(bytes),
            Some(packets),
            Some(duration),
            Some(estimate),
        ] = all
        else {
            continue;
        };
        let end = own[0].at;
        let last = (end * 1e3).round() as usize;
        let whole = ((duration * 1e3).round() as usize).clamp(1, last.max(1));
        let first_ms = last.saturating_sub(whole);
        let size = bytes / packets;
        let mean = free(path, size, first_ms, last).max(0.0);
        let actual = match target {
            Target::Available => mean,
            Target::Capacity => least(path, |link| {
                capacity(link, first_ms, last) * link.share(size)
            }),
        };
        let off = (estimate - actual).abs() / narrowest;
        found.extend(
            [(AVAILABLE, mean), (ERROR, off)].map(|(name, number)| MeasureSample {
                measure: name.to_owned(),
                value: number,
                at: end,
            }),
        );
        for width in TIMESCALES.into_iter().filter(|width| *width <= last) {
            let n = (whole / width).max(1);
            let each = (0..n).map(|i| free(path, size, last - (i + 1) * width, last - i * width));
            let each = swell_stats::Ecdf::new(each.collect());
            let Some((middle, ends)) = each
                .mean()
                .zip(each.samples().first().zip(each.samples().last()))
            else {
                continue;
            };
            observed.estimates.push(Estimate {
                at: end,
                range: [low, high],
                bytes: bytes as u64,
                duration,
                timescale: width as f64 / 1e3,
                intervals: n as u32,
                // A packet counts where it leaves, so a full link sends up to a packet more than its rate in an
                // interval. Nothing is available then; less than nothing is not.
                mean: middle.max(0.0),
                sd: each.sd().unwrap_or(0.0),
                ends: [*ends.0, *ends.1].map(|x| x.max(0.0)),
            });
        }
    }
    observed.measures.extend(found);
}

/// Available bandwidth for packets of `size` bytes from one millisecond to another, on the link with the least of it,
/// bits per second.
fn free(path: &[Crossed<'_>], size: f64, from: usize, to: usize) -> f64 {
    let link = |link: &Crossed<'_>| {
        let sent = link.others.iter().take(to).skip(from);
        let bits = sent.map(|b| f64::from(*b)).sum::<f64>() * 8.0;
        (capacity(link, from, to) - bits * 1e3 / (to - from) as f64) * link.share(size)
    };
    least(path, link)
}

impl Crossed<'_> {
    /// The share of network-layer bytes in its transmissions of packets of `size` bytes.
    fn share(&self, size: f64) -> f64 {
        size / (size + self.overhead)
    }
}

/// What a link can carry from one millisecond to another, bits per second.
fn capacity(link: &Crossed<'_>, from: usize, to: usize) -> f64 {
    let at = |ms: usize| Time::ZERO + Dur::from_millis(ms as u64);
    match &link.changing {
        Some(changing) => mean_offered(changing, at(from), at(to)).bps() as f64,
        None => link.capacity,
    }
}

/// The least value of a link.
fn least(path: &[Crossed<'_>], of: impl Fn(&Crossed<'_>) -> f64) -> f64 {
    path.iter().map(of).fold(f64::INFINITY, f64::min)
}
