//! Inverts packet sampling as far as possible: how many connections there were, and how large their files.
//!
//! N. Duffield, C. Lund & M. Thorup, "Estimating flow distributions from sampled flow statistics" (SIGCOMM
//! 2003). Every direction of a connection has one SYN. If one packet in N is sampled, the number of
//! directions is N times that of the directions whose SYN was sampled. This holds whether each packet is
//! sampled with equal probability, or every N-th from a random one on. (The paper's second estimate uses
//! directions of which only the SYN was sampled. It has up to a few percent less noise, but two drawbacks.
//! It is too large if every N-th packet is sampled, because neighbours are then never both sampled. It is
//! also too large if directions are split into several records.) The servers' directions are counted if
//! they were recorded. Their SYNs accept, so scans and refusals are not counted as connections.
//!
//! The distribution of sizes is a mixture of binomial distributions, fitted by maximum likelihood with
//! expectation maximisation over geometric bins of segments. The SYNs add the number of connections,
//! including those without a sampled segment. An accepted connection is taken to carry a segment in every
//! recorded direction, because files of zero and of one segment cannot be distinguished. Below N segments,
//! a file rarely has two sampled packets, and many mixtures are nearly as likely. The one found is smooth,
//! and its number and sum are right.

use std::collections::BTreeMap;

use super::super::Histogram;
use super::super::model::{Estimate, Sampled};
use super::super::record::{ACK, RST, SYN};

/// Payload of a full segment over Ethernet (RFC 894, without TCP options).
const SEGMENT: u64 = 1_460;
/// Number of sampled segments of a file above which its size is N times their payload: the standard error
/// is 10 %.
const MANY: u64 = 100;
/// Steps of expectation maximisation. More steps would fit the noise below N segments.
const STEPS: usize = 200;
/// Relative width of a bin.
const BIN: f64 = 1.25;
/// Number of values that a bin is spread over.
const PARTS: u64 = 8;

/// The sampled packets of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observed {
    pub(super) packets: u64,
    pub(super) flags: Option<u8>,
    /// Payload of its file, if it was found to have one.
    pub(super) payload: u64,
}

/// Connections sampled at one rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Connections with any sampled packet, and those with sampled payload of a file.
    seen: u64,
    files: u64,
    /// Of clients and of servers.
    sides: [SampledDirection; 2],
}

#[derive(Clone, Debug, Default)]
struct SampledDirection {
    seen: u64,
    /// Directions whose SYN was sampled.
    syns: u64,
    /// Directions by sampled segments of their file, from 1 to below [`MANY`].
    segments: BTreeMap<u64, u64>,
    /// Total sampled payload of those, and the payload of each larger one.
    payload: u64,
    large: Histogram,
    /// Sum of squares of the sampled packets' payload. It assumes the fewest data packets that can carry a
    /// record's payload; the others are ACKs.
    squares: f64,
}

/// Connections as they were before sampling.
#[derive(Clone, Debug)]
pub(super) struct Undone {
    pub(super) known: Sampled,
    /// Number of connections in `sizes`.
    pub(super) files: u64,
    /// Connections without a file of the minimum size, estimated from the distributions of sizes.
    pub(super) dropped: u64,
    /// Payload of each connection from and to the client.
    pub(super) sizes: [Histogram; 2],
}

impl Tally {
    /// Adds a connection: the client's direction and the server's.
    pub(super) fn add(&mut self, observed: [Observed; 2]) {
        self.seen += 1;
        self.files += u64::from(observed.iter().any(|o| o.payload > 0));
        for (side, o) in self.sides.iter_mut().zip(observed) {
            side.add(&o);
        }
    }

    /// Inverts the sampling of one packet in `n`, then drops connections without a file of `min_file`
    /// bytes.
    pub(super) fn invert(&self, n: f64, min_file: u64) -> Undone {
        // If the servers' packets were recorded at all, there are about as many as clients' packets.
        let counted = usize::from(self.sides[1].seen * 4 >= self.sides[0].seen);
        let connections = self.sides[counted].number(n);
        // Without SYNs, only the connections seen are counted.
        let number = connections.map_or(0.0, |c| c.value).max(self.files as f64);
        let files = if self.files == 0 { 0.0 } else { number };
        let mut sizes = [0, 1].map(|i| self.sides[i].sizes(n, files as u64));
        let dropped = drop_small(&mut sizes, min_file);
        Undone {
            known: Sampled {
                interval: n,
                seen: self.seen,
                connections,
                bytes: [0, 1].map(|i| self.sides[i].bytes(n)),
                resolved: (n * SEGMENT as f64) as u64,
            },
            files: (files as u64).saturating_sub(dropped),
            dropped,
            sizes,
        }
    }
}

impl SampledDirection {
    fn add(&mut self, o: &Observed) {
        if o.packets == 0 {
            return;
        }
        let flags = o.flags.unwrap_or(0);
        let syn = flags & SYN != 0;
        // A refusal is no connection.
        let refusal = flags & !ACK == RST && o.payload == 0;
        self.seen += u64::from(!refusal);
        self.syns += u64::from(syn);
        if o.payload == 0 {
            return;
        }
        let segments = o.payload.div_ceil(SEGMENT).min(o.packets);
        self.squares += (o.payload as f64).powi(2) / segments as f64;
        if segments < MANY {
            *self.segments.entry(segments).or_default() += 1;
            self.payload = self.payload.saturating_add(o.payload);
        } else {
            self.large.add(o.payload);
        }
    }

    /// Number of directions before sampling; `None` if no SYN was sampled.
    fn number(&self, n: f64) -> Option<Estimate> {
        if self.syns == 0 {
            return None;
        }
        let syns = self.syns as f64;
        Some(Estimate {
            value: n * syns,
            error: (n * (n - 1.0) * syns).sqrt(),
        })
    }

    fn bytes(&self, n: f64) -> Estimate {
        let payload = self.payload as f64 + self.large.sum() as f64;
        Estimate {
            value: n * payload,
            error: (n * (n - 1.0) * self.squares).sqrt(),
        }
    }

    /// The sizes of `all` files. Their sum is the sampled payload times `n`.
    fn sizes(&self, n: f64, all: u64) -> Histogram {
        let mut sizes = Histogram::default();
        for (_, bucket) in self.large.buckets() {
            let value = bucket.sum as f64 / bucket.count as f64 * n;
            add(&mut sizes, value, bucket.count);
        }
        let small = all.saturating_sub(self.large.count());
        let parts = self.mixture(n, small);
        let segments: f64 = parts.iter().map(|&(size, count)| size * count as f64).sum();
        // Mean bytes of a segment, including the short ones at the ends of files.
        let each = n * self.payload as f64 / segments.max(1.0);
        for (size, count) in parts {
            add(&mut sizes, size * each, count);
        }
        sizes
    }

    /// Sizes in segments of `all` files, with the number of files of each size.
    fn mixture(&self, n: f64, all: u64) -> Vec<(f64, u64)> {
        let seen: u64 = self.segments.values().sum();
        if seen == 0 {
            return if all > 0 {
                vec![(0.0, all)]
            } else {
                Vec::new()
            };
        }
        let mut bins = vec![1.0];
        while let Some(&last) = bins.last()
            && last < 1.5 * MANY as f64 * n
        {
            bins.push((last * BIN).floor().max(last + 1.0));
        }
        let unseen = (0, all.saturating_sub(seen));
        let rows: Vec<(f64, Vec<f64>)> = std::iter::once(unseen)
            .chain(self.segments.iter().map(|(&j, &count)| (j, count)))
            .map(|(j, count)| {
                let row = bins.iter().map(|&i| binomial(j as f64, i, 1.0 / n));
                (count as f64, row.collect())
            })
            .collect();
        let shares = maximise(&rows, bins.len());
        // Whole numbers whose sums stay within one half of those of the shares.
        let (mut wanted, mut done) = (0.0, 0);
        let mut parts = Vec::new();
        for (i, share) in shares.iter().enumerate() {
            let split = if bins[i] > 1.0 { PARTS } else { 1 };
            let below = i.checked_sub(1).map_or(0.0, |j| bins[j]);
            let above = bins.get(i + 1).copied().unwrap_or(bins[i]);
            let [low, high] = [below, above].map(|b| (b + bins[i]) / 2.0);
            for part in 0..split {
                wanted += share * all as f64 / split as f64;
                let upto = ((wanted + 0.5) as u64).clamp(done, all);
                let size = match split {
                    1 => bins[i],
                    _ => low + (high - low) * (part as f64 + 0.5) / split as f64,
                };
                if upto > done {
                    parts.push((size, upto - done));
                }
                done = upto;
            }
        }
        parts
    }
}

/// Sets files of less than `min_file` bytes to zero, and drops the connections without a file in either
/// direction. Their number follows from the distributions of both directions, which are assumed to be
/// independent.
fn drop_small(sizes: &mut [Histogram; 2], min_file: u64) -> u64 {
    if min_file == 0 {
        return 0;
    }
    let all = sizes[0].count().max(sizes[1].count());
    let kept = |h: &Histogram| {
        let mut kept = Histogram::default();
        let large = h.buckets().filter(|(_, b)| b.sum / b.count >= min_file);
        large.for_each(|(i, b)| kept.add_bucket(i, b));
        kept
    };
    let files = [kept(&sizes[0]), kept(&sizes[1])];
    let none = files
        .each_ref()
        .map(|f| 1.0 - f.count() as f64 / all.max(1) as f64);
    let dropped = (none[0] * none[1] * all as f64 + 0.5) as u64;
    for (to, mut file) in sizes.iter_mut().zip(files) {
        let left = all.saturating_sub(dropped).saturating_sub(file.count());
        file.add_many(0, left);
        *to = file;
    }
    dropped
}

/// Adds `count` values whose mean is `value`.
fn add(sizes: &mut Histogram, value: f64, count: u64) {
    let low = value as u64;
    let above = ((value - low as f64) * count as f64 + 0.5) as u64;
    sizes.add_many(low, count.saturating_sub(above));
    sizes.add_many(low.saturating_add(1), above.min(count));
}

/// Maximum-likelihood shares of the bins. Each row has the number of its observations, and its probability
/// in each bin. A. Dempster, N. Laird & D. Rubin, J. Royal Statistical Society B 39 (1977).
fn maximise(rows: &[(f64, Vec<f64>)], bins: usize) -> Vec<f64> {
    let total: f64 = rows.iter().map(|r| r.0).sum();
    let mut shares = vec![1.0 / bins as f64; bins];
    for _ in 0..STEPS {
        let mut next = vec![0.0; bins];
        for (count, row) in rows {
            let all: f64 = shares.iter().zip(row).map(|(s, c)| s * c).sum();
            if all > 0.0 {
                for ((to, share), c) in next.iter_mut().zip(&shares).zip(row) {
                    *to += count / total * share * c / all;
                }
            }
        }
        shares = next;
    }
    shares
}

/// Probability of `k` successes in `n` trials of probability `p`.
fn binomial(k: f64, n: f64, p: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    libm::exp(choose + k * libm::log(p) + (n - k) * libm::log1p(-p))
}

#[cfg(test)]
mod tests;
