//! Distances between a trace and its regenerated traffic: energies in decibels, distributions in octaves. Each is
//! reported with the distance of the trace from itself.
//!
//! *Energy.* The mean over octaves from 2 ms to 8 s of the absolute difference between the logarithm of the wavelet
//! energy of bytes, averaged over the seeds, and that of the trace. The same difference between the two halves of the
//! trace is its noise, which no model can be expected to undercut. The limit grows with this noise, up to [`CAP`].
//!
//! *Distributions.* The Wasserstein-1 distance of the binary logarithms, for each seed: the mean number of doublings
//! between the distributions. Differences without effect on a network do not count: times below [`TIME`] and round-trip
//! times below [`RTT`] are raised to these values.

use std::collections::BTreeMap;

use swell_stats::{Ecdf, energies, wasserstein_log2};
use swell_traffic::{Marginals, Model, Path, Quantity, Sample};

use super::row::{Row, spread};
use crate::captures::Capture;

/// Decibels per octave of energy.
pub(super) const DECIBELS: f64 = 10.0 * std::f64::consts::LOG10_2;
/// Limit of the mean difference over the octaves, dB.
const ENERGY: f64 = 1.5;
/// Maximum of this limit if the halves of the trace differ by more than [`ENERGY`], dB.
const CAP: f64 = 6.0;
/// Difference of an octave that is silent either in the trace or in the runs, but not in both, dB.
const SILENT: f64 = 20.0;
/// Longest timescale of the compared octaves, seconds.
const LONGEST: f64 = 8.2;
/// Limit of the Wasserstein-1 distance, octaves.
const DISTANCE: f64 = 0.1;
/// The same limit between borrowed round-trip times and those available to borrow. It is larger, because the borrowed
/// ones are random draws.
const BORROWED: f64 = 0.5;
/// Shorter pauses than this do not differ, seconds.
const TIME: f64 = 1e-3;
/// Shorter round-trip times than this do not differ, seconds.
const RTT: f64 = 1e-4;
/// Number of quantiles of weighted samples.
const QUANTILES: usize = 2_000;
/// Minimum number of values for the comparison of a distribution.
const ENOUGH: usize = 30;
/// Vanishing moments of the wavelet, as in the learner.
const MOMENTS: usize = 3;

/// The quantities whose distributions are compared, over all classes, with the value to which smaller ones are raised.
const COMPARED: [(Quantity, f64); 7] = [
    (Quantity::Request, 1.0),
    (Quantity::Response, 1.0),
    (Quantity::ServerThink, TIME),
    (Quantity::ClientThink, TIME),
    (Quantity::GroupThink, TIME),
    (Quantity::ClientRtt, RTT),
    (Quantity::ServerRtt, RTT),
];

/// Distance between the energies of the two halves of a trace, up and down: mean over the octaves, dB. NaN if there is
/// nothing to compare.
pub fn halves(trace: &Capture) -> [f64; 2] {
    let bin = 1_000_000;
    let bins = (trace.length.as_nanos() / bin + 1) as usize;
    trace.packets.each_ref().map(|way| {
        let mut counts = vec![0.0; bins];
        for &(at, bytes) in way.iter() {
            if let Some(count) = counts.get_mut((at.as_nanos() / bin) as usize) {
                *count += f64::from(bytes);
            }
        }
        let (a, b) = counts.split_at(bins / 2);
        let [a, b] = [a, b].map(|half| -> Vec<f64> {
            let octaves = energies(half, MOMENTS);
            octaves.iter().map(swell_stats::Octave::y).collect()
        });
        apart(&a, &b, bin as f64 / 1e9)
    })
}

/// The mean absolute difference of logarithms of energy over the octaves that either has, dB. `bin` is in seconds.
fn apart(a: &[f64], b: &[f64], bin: f64) -> f64 {
    let octaves = (LONGEST / bin).log2().floor().max(0.0) as usize;
    let octaves = octaves.min(a.len().max(b.len()));
    let difference = |j: usize| match (a.get(j), b.get(j)) {
        (Some(x), Some(y)) if x.is_finite() && y.is_finite() => DECIBELS * (x - y).abs(),
        _ => SILENT,
    };
    (0..octaves).map(difference).sum::<f64>() / octaves as f64
}

/// Rows of the energies over all octaves, one for each direction.
pub(super) fn energy(trace: &Model, runs: &[Model], halves: Option<[f64; 2]>, rows: &mut Vec<Row>) {
    let bin = trace.load.lsd_bin.as_secs_f64();
    for (d, way) in ["left to right", "right to left"].iter().enumerate() {
        let own = &trace.load.lsd[d];
        if own.is_empty() {
            continue;
        }
        let mean: Vec<f64> = (0..own.len())
            .map(|j| {
                // If the octave is silent in a run, its logarithm and therefore the mean are not finite.
                let of = |m: &Model| m.load.lsd[d].get(j).copied().unwrap_or(f64::NAN);
                runs.iter().map(of).sum::<f64>() / runs.len() as f64
            })
            .collect();
        let each: Vec<f64> = (runs.iter())
            .map(|m| {
                apart(
                    &mean,
                    &m.load.lsd[d][..m.load.lsd[d].len().min(mean.len())],
                    bin,
                )
            })
            .collect();
        let noise = halves.map_or(f64::NAN, |h| h[d]);
        // `max` ignores a noise of NaN.
        let limit = ENERGY.max(noise).min(CAP);
        rows.push(Row::distance(
            format!("energy of bytes {way}, mean over octaves [dB]"),
            apart(own, &mean, bin),
            noise,
            // Spread of the seeds about their mean.
            spread(&each),
            limit,
        ));
    }
}

/// Rows of the distributions.
pub(super) fn distributions(trace: &Model, runs: &[Model], rows: &mut Vec<Row>) {
    let own = Marginals::of(trace);
    let theirs: Vec<Marginals> = runs.iter().map(Marginals::of).collect();
    for (quantity, floor) in COMPARED {
        let Some(sample) = own.get("", quantity).filter(|s| s.len() >= ENOUGH) else {
            continue;
        };
        let sample = floored(sample, floor);
        let each: Vec<f64> = theirs
            .iter()
            .map(|m| {
                let other = m.get("", quantity).map(|s| floored(s, floor));
                other
                    .and_then(|o| wasserstein_log2(&sample, &o))
                    .unwrap_or(f64::INFINITY)
            })
            .collect();
        rows.push(Row::distance(
            format!("distance of {quantity} [octaves]"),
            each.iter().sum::<f64>() / each.len() as f64,
            f64::NAN,
            spread(&each),
            DISTANCE,
        ));
    }
    // A host has the class of the first session that uses it, as in the learner.
    let mut class = [BTreeMap::new(), BTreeMap::new()];
    for s in &trace.sessions {
        class[0].entry(s.client).or_insert(s.class);
        for c in s.connections() {
            class[1].entry(c.server).or_insert(s.class);
        }
    }
    borrowed("client", &trace.client_paths, &class[0], rows);
    borrowed("server", &trace.server_paths, &class[1], rows);
}

fn floored(sample: &Sample, floor: f64) -> Ecdf {
    let values = sample.ecdf(QUANTILES);
    Ecdf::new(values.samples().iter().map(|v| v.max(floor)).collect())
}

/// Compares borrowed round-trip times with those available to borrow. A host without a measured round-trip time borrows
/// that of a host of its class or, if there is none, of any host. `class` is by host.
fn borrowed(side: &str, paths: &[Path], class: &BTreeMap<u32, u32>, rows: &mut Vec<Row>) {
    let seconds = |p: &Path| p.rtt.as_secs_f64().max(RTT);
    let mut donors: BTreeMap<Option<u32>, Vec<f64>> = BTreeMap::new();
    let mut needy: BTreeMap<u32, f64> = BTreeMap::new();
    let mut lent = Vec::new();
    for (path, i) in paths.iter().zip(0..) {
        let of = class.get(&i).copied().unwrap_or_default();
        if path.rtt_samples > 0 {
            donors.entry(Some(of)).or_default().push(seconds(path));
            donors.entry(None).or_default().push(seconds(path));
        } else {
            *needy.entry(of).or_default() += 1.0;
            lent.push(seconds(path));
        }
    }
    if lent.len() < ENOUGH {
        return;
    }
    let mut there = Vec::new();
    for (of, hosts) in needy {
        if let Some(all) = donors.get(&Some(of)).or_else(|| donors.get(&None)) {
            there.extend(all.iter().map(|&rtt| (rtt, hosts / all.len() as f64)));
        }
    }
    // Where no host has a round trip, there is nothing to borrow and nothing to compare.
    if there.is_empty() {
        return;
    }
    let there = Sample::new(there).ecdf(QUANTILES);
    let distance = wasserstein_log2(&there, &Ecdf::new(lent)).unwrap_or(f64::INFINITY);
    rows.push(Row::distance(
        format!("distance of {side}-side RTT, hosts without samples [octaves]"),
        distance,
        f64::NAN,
        [distance; 2],
        BORROWED,
    ));
}
