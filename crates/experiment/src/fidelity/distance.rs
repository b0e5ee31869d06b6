//! How far apart: energies in decibels, distributions in octaves, each beside what the trace is from itself.
//!
//! *Energy.* The logarithm of the wavelet energy of bytes, octave by octave from 2 ms to 8 s, mean over the seeds,
//! against the trace's: the mean of the absolute differences. Beside it the same difference between two halves of
//! the trace, which no model can be expected to undercut. The allowance ends at [`CAP`], however unlike the halves.
//!
//! *Distributions.* Wasserstein-1 of the binary logarithms, of each seed by itself: how many doublings the mass
//! must be moved. Differences that no network shows do not count: times below [`TIME`], round trips below
//! [`RTT`] are taken as that long.

use std::collections::BTreeMap;

use swell_stats::{Ecdf, energies, wasserstein_log2};
use swell_traffic::{Marginals, Model, Path, Quantity, Sample};

use super::compare::{Row, spread};
use crate::plan::Capture;

/// Decibels per octave of energy.
pub(super) const DECIBELS: f64 = 10.0 * std::f64::consts::LOG10_2;
/// What the mean over the octaves may be off, dB.
const ENERGY: f64 = 1.5;
/// What it may be off at most where halves of the trace differ more than [`ENERGY`], dB.
const CAP: f64 = 6.0;
/// What an octave counts that is silent in the trace or in the runs alone, dB.
const SILENT: f64 = 20.0;
/// Longest timescale of an octave that counts, seconds.
const LONGEST: f64 = 8.2;
/// What Wasserstein-1 may be, octaves.
const DISTANCE: f64 = 0.1;
/// The same between what hosts without samples borrowed and what there was to borrow, which are drawn.
const BORROWED: f64 = 0.5;
/// Shorter pauses than this are no pauses, seconds.
const TIME: f64 = 1e-3;
/// Shorter round trips than this are alike, seconds.
const RTT: f64 = 1e-4;
/// Quantiles taken of weighted samples.
const QUANTILES: usize = 2_000;
/// Values below which a distribution is not compared.
const ENOUGH: usize = 30;
/// Vanishing moments of the wavelet, as the learner takes them.
const MOMENTS: usize = 3;

/// The quantities whose distributions are compared, over all classes, and what is not told apart.
const COMPARED: [(Quantity, f64); 7] = [
    (Quantity::Request, 1.0),
    (Quantity::Response, 1.0),
    (Quantity::ServerThink, TIME),
    (Quantity::ClientThink, TIME),
    (Quantity::GroupThink, TIME),
    (Quantity::ClientRtt, RTT),
    (Quantity::ServerRtt, RTT),
];

/// How far the energies of the two halves of a trace are apart, up and down: mean over the octaves, dB. NaN where
/// nothing is to be compared.
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

/// The mean absolute difference of logarithms of energy over the octaves that either has, dB. `bin`: seconds.
fn apart(a: &[f64], b: &[f64], bin: f64) -> f64 {
    let octaves = (LONGEST / bin).log2().floor().max(0.0) as usize;
    let octaves = octaves.min(a.len().max(b.len()));
    let difference = |j: usize| match (a.get(j), b.get(j)) {
        (Some(x), Some(y)) if x.is_finite() && y.is_finite() => DECIBELS * (x - y).abs(),
        _ => SILENT,
    };
    (0..octaves).map(difference).sum::<f64>() / octaves as f64
}

/// Rows of the energies over all octaves, a direction each.
pub(super) fn energy(trace: &Model, runs: &[Model], halves: Option<[f64; 2]>, rows: &mut Vec<Row>) {
    let bin = trace.load.lsd_bin.as_secs_f64();
    for (d, way) in ["left to right", "right to left"].iter().enumerate() {
        let own = &trace.load.lsd[d];
        if own.is_empty() {
            continue;
        }
        let mean: Vec<f64> = (0..own.len())
            .map(|j| {
                // A run in which the octave is silent has no logarithm, and the mean none either.
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
        // Of a number and no number the number is the larger.
        let limit = ENERGY.max(noise).min(CAP);
        rows.push(Row::distance(
            format!("energy of bytes {way}, mean over octaves [dB]"),
            apart(own, &mean, bin),
            noise,
            // Seeds about their mean.
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
    // As the learner numbers them: by the first session that uses them.
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

/// Hosts of which no round trip was measured are played with one of a host of their class, else of any: what they
/// have against what there is to have. `class`: by host.
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
