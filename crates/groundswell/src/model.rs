//! Models of either kind: found, written, in figures.

use std::io;
use std::path::Path;

use swell_base::Warning;
use swell_experiment::{bundled, file};
use swell_traffic::Model;
use swell_traffic::flowlevel::{FlowModel, Law};

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
    /// The bundled model of this name, or the model in this file.
    ///
    /// # Errors
    /// Where there is none, or the file does not read.
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
        let bytes = std::fs::read(what).map_err(|e| usage(&e))?;
        if FlowModel::is_one(&bytes) {
            let model = FlowModel::from_slice(&bytes).map_err(|e| usage(&e))?;
            return Ok(AnyModel::Flows(Box::new(model)));
        }
        let model = Model::from_slice(&bytes).map_err(|e| usage(&e))?;
        Ok(AnyModel::Packets(Box::new(model)))
    }

    /// What to doubt in it.
    pub fn warnings(&self) -> &[Warning] {
        match self {
            AnyModel::Packets(m) => &m.warnings,
            AnyModel::Flows(m) => &m.warnings,
        }
    }

    /// Its file.
    ///
    /// # Errors
    /// Where compression fails.
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

    /// In figures, as `swell show --json` prints it.
    pub fn summary(&self) -> serde_json::Value {
        match self {
            AnyModel::Packets(m) => summary(m),
            AnyModel::Flows(m) => flow_summary(m),
        }
    }
}

/// A model learnt from packets: a bundled one by its name, or one in a file.
///
/// # Errors
/// Where there is none, the file does not read, or it was learnt from flow records.
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

/// That nothing is called so, with the name that was perhaps meant.
pub fn missing(what: &Path) -> Error {
    let name = what.display().to_string();
    let known: Vec<&str> = bundled::models().chain(bundled::flow_models()).collect();
    let (_, hint) = file::unknown_name("model", &name, &known);
    Error::usage(format!(
        "no file, no run directory and no bundled model is called `{name}`"
    ))
    .hint(hint)
}

/// Mean rates of the model's own trace, left to right and right to left, bits per second.
pub fn mean_bps(model: &Model) -> [f64; 2] {
    let seconds = model.duration.as_secs_f64();
    model.totals.bytes.map(|b| match seconds > 0.0 {
        true => b as f64 * 8.0 / seconds,
        false => 0.0,
    })
}

/// A model in figures.
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

/// A flow-level model in figures.
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
