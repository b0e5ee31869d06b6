//! Compares the model of a trace with the models of its regenerated traffic.

use serde::Serialize;
use swell_base::Stream;
use swell_traffic::{Exchange, Marginals, Model, Quantity, Session};

use super::distance::{self, DECIBELS};
use super::row::{Row, spread};

/// Every comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// Name of the model.
    pub model: String,
    /// Runs compared.
    pub seeds: usize,
    /// Volumes, medians and energies.
    pub rows: Vec<Row>,
}

/// Acceptable relative difference of volumes.
const VOLUME: f64 = 0.05;
/// Acceptable relative difference of medians.
const MEDIAN: f64 = 0.10;
/// Minimum number of values for the comparison of a median.
const ENOUGH: usize = 30;
/// Acceptable difference of the mean log2 energy over the seeds: 1.5 dB. The range over the seeds would be no
/// criterion, because it grows with their number.
const ENERGY: f64 = 1.5 / DECIBELS;
/// Bootstrap resamples of the trace's sessions.
const RESAMPLES: usize = 1000;
/// Minimum number of sessions for a bootstrap interval. That of two sessions reaches from nothing to twice the trace,
/// so that no replay would be outside.
const SESSIONS: usize = 10;
/// Largest relative difference that a bootstrap interval excuses. One session with most of the bytes makes it as wide
/// as two sessions do.
const EXCUSED: f64 = 0.20;

/// Compares `runs` with the `trace`. `halves` is the distance between its two halves ([`distance::halves`]).
pub fn compare(trace: &Model, runs: &[Model], halves: Option<[f64; 2]>) -> Fidelity {
    let mut rows = Vec::new();
    volumes(trace, runs, &mut rows);
    medians(trace, runs, &mut rows);
    distance::distributions(trace, runs, &mut rows);
    distance::energy(trace, runs, halves, &mut rows);
    energies(trace, runs, &mut rows);
    Fidelity {
        model: trace.name.clone(),
        seeds: runs.len(),
        rows,
    }
}

fn volumes(trace: &Model, runs: &[Model], rows: &mut Vec<Row>) {
    let total = |m: &Model| m.totals.bytes[0] + m.totals.bytes[1] - m.totals.unmodelled_bytes;
    let ip_bytes = |s: &Session| {
        let [up, down] = s.bytes();
        (up + down) as f64
    };
    let tcp = |s: &Session| {
        let is_tcp = |c: &&swell_traffic::Connection| !matches!(c.exchange, Exchange::Datagrams(_));
        s.connections().filter(is_tcp).count() as f64
    };
    let mut row = |name: &str, of: &dyn Fn(&Model) -> f64, own: Option<[f64; 2]>| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        rows.push(Row::mean(name.into(), of(trace), &values, VOLUME, own));
    };
    let spread_of_bytes = bootstrap(trace, ip_bytes);
    row(
        "bytes of modelled flows",
        &|m| total(m) as f64,
        spread_of_bytes(total(trace) as f64),
    );
    for (d, name) in ["bytes left to right", "bytes right to left"]
        .iter()
        .enumerate()
    {
        let own = bootstrap(trace, |s| s.bytes()[usize::from(s.outside) ^ d] as f64);
        row(
            name,
            &|m| m.totals.bytes[d] as f64,
            own(trace.totals.bytes[d] as f64),
        );
    }
    row(
        "packets",
        &|m| (m.totals.packets[0] + m.totals.packets[1]) as f64,
        None,
    );
    // Connections without a SYN or data in the trace belong to no session.
    let all = |m: &Model| m.sessions.iter().map(|s| s.weight * tcp(s)).sum();
    let own = bootstrap(trace, tcp)(all(trace));
    row("TCP connections with SYN or data", &all, own);
    row("UDP flows", &|m| m.totals.udp_flows as f64, None);
}

/// The 95 % interval of a sum over sessions, resampled with replacement, scaled to a total that
/// counts the same thing with headers. It never reaches further than [`EXCUSED`], and few sessions have none.
fn bootstrap(trace: &Model, of: impl Fn(&Session) -> f64) -> impl Fn(f64) -> Option<[f64; 2]> {
    let values: Vec<f64> = trace.sessions.iter().map(|s| s.weight * of(s)).collect();
    let sum: f64 = values.iter().sum();
    let enough = values.len() >= SESSIONS && sum > 0.0;
    let mut rng = Stream::new(1, "fidelity/bootstrap");
    let n = values.len() as u64;
    let mut sums: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..n).map(|_| values[rng.below(n) as usize]).sum())
        .collect();
    sums.sort_by(f64::total_cmp);
    move |total| {
        let scale = enough.then(|| total / sum)?;
        let [least, most] = [1.0 - EXCUSED, 1.0 + EXCUSED].map(|share| share * total);
        let at = |p: f64| {
            (sums[(p * (RESAMPLES - 1) as f64).round() as usize] * scale).clamp(least, most)
        };
        Some([at(0.025), at(0.975)])
    }
}

fn medians(trace: &Model, runs: &[Model], rows: &mut Vec<Row>) {
    use Quantity as Q;
    const COMPARED: [Quantity; 9] = [
        Q::Request,
        Q::Response,
        Q::ServerThink,
        Q::ClientThink,
        Q::GroupThink,
        Q::Gap,
        Q::ClientRtt,
        Q::ServerRtt,
        Q::Datagram,
    ];
    let own = Marginals::of(trace);
    let theirs: Vec<Marginals> = runs.iter().map(Marginals::of).collect();
    let classes = trace.classes.iter().map(|c| c.name.as_str());
    for class in std::iter::once("").chain(classes) {
        for quantity in COMPARED {
            let Some(sample) = own.get(class, quantity).filter(|s| s.len() >= ENOUGH) else {
                continue;
            };
            let median = |s: &swell_traffic::Sample| s.quantile(0.5);
            let values: Vec<f64> = theirs
                .iter()
                // A quantity that is missing in a run counts as zero, so that the row is not met.
                .map(|m| m.get(class, quantity).and_then(median).unwrap_or(0.0))
                .collect();
            let Some(measured) = median(sample) else {
                continue;
            };
            let class = if class.is_empty() {
                String::new()
            } else {
                format!(", {class}")
            };
            let unit = quantity.unit();
            let unit = if unit.is_empty() {
                String::new()
            } else {
                format!(" [{unit}]")
            };
            let name = format!("median {quantity}{class}{unit}");
            rows.push(Row::mean(name, measured, &values, MEDIAN, None));
        }
    }
}

/// Rows with log2 of the energy at every timescale of the trace's diagram.
fn energies(trace: &Model, runs: &[Model], rows: &mut Vec<Row>) {
    for (d, way) in ["left to right", "right to left"].iter().enumerate() {
        for (i, &y) in trace.load.lsd[d].iter().enumerate() {
            let timescale = trace.load.lsd_bin.as_secs_f64() * f64::powi(2.0, i as i32 + 1);
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|m| m.load.lsd[d].get(i))
                .copied()
                .collect();
            if values.is_empty() || !y.is_finite() {
                continue;
            }
            let regenerated = values.iter().sum::<f64>() / values.len() as f64;
            rows.push(Row {
                quantity: format!("log2 energy of bytes {way} at {timescale:.3} s"),
                trace: y,
                regenerated,
                spread: spread(&values),
                limit: None,
                interval: None,
                bar: None,
                // Not met if the octave is silent in a run, because there is no logarithm.
                met: values.len() == runs.len() && (regenerated - y).abs() <= ENERGY,
            });
        }
    }
}
