//! Models of either kind: finds, writes and summarises them.

use std::io::{self, Read};
use std::path::Path;

use swell_base::Warning;
use swell_experiment::{bundled, file};
use swell_traffic::flowlevel::{FlowModel, Law};
use swell_traffic::{Exchange, MAX_BYTES, Model};

use crate::Error;

/// A model of either kind.
#[derive(Clone, Debug)]
pub enum AnyModel {
    /// Learnt from packets: users, sessions and exchanges.
    Packets(Box<Model>),
    /// Learnt from flow records: intervals of sessions, sizes and gaps.
    Flows(Box<FlowModel>),
}

impl AnyModel {
    /// Opens the bundled model of this name, or the model in this file.
    ///
    /// # Errors
    /// If there is none, or the file cannot be read.
    pub fn open(what: &Path) -> Result<AnyModel, Error> {
        if let Some(bytes) = what.to_str().and_then(bundled::model) {
            let model = Model::from_slice(bytes).map_err(Error::failed)?;
            return Ok(AnyModel::Packets(Box::new(model)));
        }
        if let Some(bytes) = what.to_str().and_then(bundled::flow_model) {
            let model = FlowModel::from_slice(bytes).map_err(Error::failed)?;
            return Ok(AnyModel::Flows(Box::new(model)));
        }
        if !what.is_file() {
            return Err(missing(what));
        }
        let usage = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", what.display()));
        let bytes = read(what).map_err(|e| usage(&e))?;
        if !is_json(&bytes) {
            return Err(usage(&"this is no model")
                .hint("`swell learn TRACE -o MODEL` makes one of a trace"));
        }
        if FlowModel::is_one(&bytes) {
            let model = FlowModel::from_slice(&bytes).map_err(|e| usage(&e))?;
            return Ok(AnyModel::Flows(Box::new(model)));
        }
        let model = Model::from_slice(&bytes).map_err(|e| usage(&e))?;
        Ok(AnyModel::Packets(Box::new(model)))
    }

    /// Reasons to distrust it.
    pub fn warnings(&self) -> &[Warning] {
        match self {
            AnyModel::Packets(m) => &m.warnings,
            AnyModel::Flows(m) => &m.warnings,
        }
    }

    /// The contents of its file.
    ///
    /// # Errors
    /// If compression fails.
    pub fn to_bytes(&self, compress: bool) -> io::Result<Vec<u8>> {
        match self {
            AnyModel::Packets(m) => {
                let mut bytes = Vec::new();
                m.write(&mut bytes, compress)?;
                Ok(bytes)
            }
            AnyModel::Flows(m) if compress => m.to_zstd(),
            AnyModel::Flows(m) => Ok(m.to_json().into_bytes()),
        }
    }

    /// A summary in numbers, as `swell show --json` prints it.
    pub fn summary(&self) -> serde_json::Value {
        match self {
            AnyModel::Packets(m) => summary(m),
            AnyModel::Flows(m) => flow_summary(m),
        }
    }
}

/// The bytes of a model's file. No more are read than a model may have: it may be a trace of any size.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the contents of a file may be JSON, possibly compressed with Zstandard.
fn is_json(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x28\xb5\x2f\xfd") || bytes.trim_ascii_start().starts_with(b"{")
}

/// A model learnt from packets: a bundled one by its name, or one in a file.
///
/// # Errors
/// If there is none, the file cannot be read, or the model was learnt from flow records.
pub fn packet_model(what: &Path) -> Result<Model, Error> {
    match AnyModel::open(what)? {
        AnyModel::Packets(model) => Ok(*model),
        AnyModel::Flows(_) => Err(Error::usage(format!(
            "{} is a flow-level model: it does not say what this needs",
            what.display()
        ))
        .hint("learn a model from a packet trace")),
    }
}

/// The error that nothing has this name, with a suggestion.
pub fn missing(what: &Path) -> Error {
    let name = what.display().to_string();
    let known: Vec<&str> = bundled::models().chain(bundled::flow_models()).collect();
    let (_, hint) = file::unknown_name("model", &name, &known);
    Error::usage(format!(
        "no file, no run directory and no bundled model is called `{name}`"
    ))
    .hint(hint)
}

/// Mean rates of the model's own trace, left to right and right to left, in bits per second. Zero if the trace had no
/// duration.
pub fn mean_bps(model: &Model) -> [f64; 2] {
    let seconds = model.duration.as_secs_f64();
    model.totals.bytes.map(|b| match model.has_duration() {
        true => b as f64 * 8.0 / seconds,
        false => 0.0,
    })
}

/// Characteristics that distinguish backgrounds: a row of `swell models --bench`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Character {
    /// Whether the rates and the slope are those of what the model plays, because there was no trace to take them from.
    pub played: bool,
    /// Mean rates left to right and right to left, in bits per second of network-layer bytes; of application bytes if
    /// there was no trace and nothing was played.
    pub mean_bps: [f64; 2],
    /// Slope of the wavelet energy of the larger direction from 8 ms to 1 s, in decibels per octave. Independent packets
    /// have 0, long-range dependent traffic has more. `None` if there was too little traffic.
    pub energy_slope_db: Option<f64>,
    /// RTTs of TCP connections end to end, in seconds: percentiles 10, 50 and 90.
    pub rtt_s: Option<[f64; 3]>,
    /// Share of the bytes that respond to congestion: those of TCP connections.
    pub elasticity: f64,
    /// Rates that a stand-in plays, relative to the published ones, left to right and right to left.
    pub of_target: Option<[f64; 2]>,
}

/// The characteristics of a model.
pub fn character(model: &Model) -> Character {
    let from = &model.provenance;
    let rates = mean_bps(model);
    let larger = usize::from(rates[1] > rates[0]);
    let (mean_bps, energy_slope_db) = match &from.played {
        Some(played) => (played.rates, played.energy_slope),
        None => (rates, model.load.energy_slope(larger)),
    };
    let of_target = (from.target.zip(from.played.as_ref()))
        .map(|(target, played)| [0, 1].map(|way| played.rates[way] / target[way]));
    let (mut rtts, mut bytes) = (Vec::new(), [0.0; 2]);
    for session in &model.sessions {
        for connection in session.connections() {
            let datagrams = matches!(connection.exchange, Exchange::Datagrams(_));
            let sum: f64 = connection.exchange.bytes().iter().map(|&b| b as f64).sum();
            bytes[usize::from(datagrams)] += session.weight * sum;
            if !datagrams {
                let ends = [
                    model.client_paths.get(session.client as usize),
                    model.server_paths.get(connection.server as usize),
                ];
                let rtt: f64 = ends.iter().flatten().map(|p| p.rtt.as_secs_f64()).sum();
                rtts.push((rtt, session.weight));
            }
        }
    }
    let all = bytes[0] + bytes[1];
    Character {
        played: from.played.is_some(),
        mean_bps,
        energy_slope_db,
        of_target,
        rtt_s: (!rtts.is_empty()).then(|| [0.1, 0.5, 0.9].map(|p| weighted(&mut rtts, p))),
        elasticity: if all > 0.0 { bytes[0] / all } else { 0.0 },
    }
}

/// The weighted quantile: the least value at or below which lies a share `p` of the weight. `values` is not empty.
fn weighted(values: &mut [(f64, f64)], p: f64) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = p * values.iter().map(|v| v.1).sum::<f64>();
    for &(value, weight) in &*values {
        left -= weight;
        if left <= 0.0 {
            return value;
        }
    }
    values.last().map_or(0.0, |v| v.0)
}

/// Summary of a model in numbers.
fn summary(model: &Model) -> serde_json::Value {
    let t = &model.totals;
    serde_json::json!({
        "name": model.name,
        "made_by": model.provenance.made_by,
        "sources": model.provenance.sources,
        "note": model.provenance.note,
        "duration_s": model.duration.as_secs_f64(),
        "mean_bps": mean_bps(model),
        "packets": t.packets,
        "bytes": t.bytes,
        "tcp_connections": t.tcp_connections,
        "tcp_handshakes": t.tcp_handshakes,
        "udp_flows": t.udp_flows,
        "unmodelled_packets": t.unmodelled_packets,
        "sessions": model.sessions.len(),
        "client_paths": model.client_paths.len(),
        "server_paths": model.server_paths.len(),
        "classes": model.classes.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        "fidelity": model.provenance.certificate,
    })
}

/// Summary of a flow-level model in numbers.
fn flow_summary(model: &FlowModel) -> serde_json::Value {
    let t = &model.totals;
    let tcp = &model.tcp;
    let law = |law: Option<Law>, unit: f64| {
        law.map(|l| {
            let at = |p| l.quantile(p) / unit;
            serde_json::json!({
                "mean": l.mean() / unit, "p10": at(0.1), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99),
            })
        })
    };
    let udp = model.udp.iter().map(|u| {
        serde_json::json!({
            "kind": u.kind.name(), "sources": u.sources, "flows": u.flows, "packets": u.packets,
            "bytes": u.bytes, "answers": u.answers, "answer_bytes": u.answer_bytes,
        })
    });
    serde_json::json!({
        "name": model.name,
        "made_by": model.provenance.made_by,
        "sources": model.provenance.sources,
        "note": model.provenance.note,
        "profile": model.profile.name(),
        "interval_s": model.interval.as_secs_f64(),
        "intervals": tcp.intervals.len(),
        "duration_s": model.duration().as_secs_f64(),
        "records": t.records,
        "refused": t.refused,
        "packets": t.packets,
        "bytes": t.bytes,
        "joined": t.joined,
        "small": t.small,
        "censored": t.censored,
        "sampled": model.sampled,
        "tcp_connections": tcp.down.count(),
        "bytes_up": tcp.up.sum(),
        "bytes_down": tcp.down.sum(),
        "sizes_up": law(tcp.up.law(), 1.0),
        "sizes_down": law(tcp.down.law(), 1.0),
        "gaps_s": law(model.gap_law(), 1e6),
        "clients": tcp.sources.hosts(),
        "servers": tcp.destinations.hosts(),
        "sessions": tcp.intervals.iter().map(|i| i.sessions).collect::<Vec<_>>(),
        "udp": udp.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Dur;
    use swell_traffic::Played;

    #[test]
    fn a_model_has_its_character() {
        let mut model = Model::from_slice(bundled::model("browsing").unwrap()).unwrap();
        // Energies that double with each octave.
        model.load.lsd_bin = Dur::from_millis(1);
        model.load.lsd = [0, 1].map(|_| (1..14).map(f64::from).collect());
        let c = character(&model);
        assert!((c.energy_slope_db.unwrap() - 3.0103).abs() < 1e-3, "{c:?}");
        model.load.lsd = [0, 1].map(|_| vec![4.0; 5]);
        assert_eq!(character(&model).energy_slope_db, None);
        // What it plays stands for a trace that it does not have.
        model.provenance.played = Some(Played {
            rates: [1e6, 3e6],
            energy_slope: Some(1.5),
            ..Played::default()
        });
        model.provenance.target = Some([2e6, 3e6]);
        let plays = character(&model);
        assert_eq!(
            (plays.energy_slope_db, plays.of_target),
            (Some(1.5), Some([0.5, 1.0]))
        );
        model.sessions.clear();
        assert_eq!(character(&model).rtt_s, None);
    }

    /// A sparse file of a terabyte.
    #[test]
    fn no_more_is_read_than_a_model_may_have() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let path = scratch.path().join("big.pcap");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(read(&path).unwrap().len(), MAX_BYTES + 1);
        assert!(AnyModel::open(&path).is_err());
    }

    #[test]
    fn what_is_no_model_is_told_in_words() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let path = scratch.path().join("x.pcap");
        for bytes in [&b""[..], b"\xa1\xb2\xc3\xd4", b"name = \"x\""] {
            std::fs::write(&path, bytes).unwrap();
            let error = packet_model(&path).unwrap_err();
            assert!(
                error.message.ends_with("x.pcap: this is no model"),
                "{error:?}"
            );
        }
    }

    #[test]
    fn quantiles_are_weighted() {
        let mut values = [(3.0, 1.0), (1.0, 8.0), (2.0, 1.0)];
        assert_eq!(
            [0.1, 0.5, 0.8, 0.85, 0.95].map(|p| weighted(&mut values, p)),
            [1.0, 1.0, 1.0, 2.0, 3.0]
        );
    }

    #[test]
    fn bundled_models_differ_in_character() {
        let of = |name: &str| {
            let model = Model::from_slice(bundled::model(name).unwrap()).unwrap();
            character(&model)
        };
        let slow = of("auckland").rtt_s.unwrap();
        let fast = of("auckland-hb").rtt_s.unwrap();
        assert_eq!(fast, [0.004; 3]);
        assert!(slow[1] > 0.02, "{slow:?}");
        // A stand-in has the published rates, and what it plays stands for the trace.
        let mawi = of("mawi");
        assert!(mawi.played && mawi.energy_slope_db.is_some());
        for (way, published) in [10.0e6, 7.8e6].into_iter().enumerate() {
            assert!(
                (mawi.mean_bps[way] / published - 1.0).abs() < 0.02,
                "{mawi:?}"
            );
            assert!(
                (mawi.of_target.unwrap()[way] - 1.0).abs() < 0.02,
                "{mawi:?}"
            );
        }
        let learnt = of("video-call");
        assert!(!learnt.played && learnt.of_target.is_none());
        // Web traffic only, and web traffic with calls.
        assert_eq!(of("isi-2pm").elasticity, 1.0);
        let mixed = of("access-link").elasticity;
        assert!((0.5..0.99).contains(&mixed), "{mixed}");
    }
}
