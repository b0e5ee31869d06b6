//! `swell learn`.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_capture::{Counts, Packet, Reader, Skip};
use swell_learn::{Learner, Options};
use swell_traffic::{Model, Parameters, Provenance};

use crate::cli::{FlowArgs, LearnArgs};
use crate::fail::Fail;
use crate::{interrupt, out, show, tables};

mod collect;
pub(crate) mod flows;
mod ipfix;
mod models;
mod private;

use flows::{LearntFlows, Opened};

/// First addresses of sources and destinations in configurations of Harpoon: a model has none of its own.
const HARPOON_POOLS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)];

/// A trace or several, read and learnt.
pub(crate) struct Learnt {
    pub model: Model,
    /// File, format and counts of each trace.
    pub traces: Vec<(String, &'static str, Counts)>,
}

pub(crate) fn learn(args: &LearnArgs, json: bool) -> Result<(), Fail> {
    let name = match (&args.name, args.traces.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(trace)) => stem(trace),
        (None, None) => "collected".into(),
    };
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.json")));
    let parameters = Parameters {
        group_timeout: args.group_timeout,
        session_timeout: args.session_timeout,
        ..Options::default().parameters
    };
    interrupt::ends(
        "interrupted; no model was written",
        "the same command begins anew",
    );
    let compress = output.extension().is_some_and(|e| e == "zst");
    let failed = |e: std::io::Error| Fail::failed(format!("{}: {e}", output.display()));
    let learnt = match args.listen {
        Some(address) => {
            let provenance = provenance(&[], args.note.clone());
            let flows = collect::collect(address, args.duration, &name, provenance, &args.flows)?;
            Any::Flows(Box::new(flows))
        }
        None => {
            let options = Options {
                name,
                parameters,
                inside: args.inside.clone(),
                link_rtt: args.link_rtt,
                length: args.length,
                budget: Options::items(args.budget * 1000),
                apart: args.private.is_some(),
                ..Options::default()
            };
            any(&args.traces, options, args.note.clone(), &args.flows)?
        }
    };
    let (learnt, cost) = match args.private {
        Some(epsilon) => private::release(learnt, epsilon)?,
        None => (learnt, None),
    };
    if output.extension().is_some_and(|e| e == "xml") {
        return configurations(&learnt, &output, json);
    }
    let mut bytes = Vec::new();
    match &learnt {
        Any::Packets(l) => l.model.write(&mut bytes, compress).map_err(failed)?,
        Any::Flows(l) if compress => bytes = l.model.to_zstd().map_err(failed)?,
        Any::Flows(l) => bytes = l.model.to_json().into_bytes(),
    }
    out::write(&output, &bytes)?;

    let memory = peak_memory();
    if json {
        out::json(&serde_json::json!({
            "model": output, "bytes": bytes.len(), "peak_memory_bytes": memory,
            "traces": learnt.counts_json(),
            "summary": learnt.summary(), "warnings": learnt.warnings(),
            "private": cost.map(|c| private::json(&c)),
        }));
        return Ok(());
    }
    for line in learnt.counts_lines() {
        out::say(&line);
    }
    out::warnings(learnt.warnings());
    out::data(&learnt.table());
    if let Some(cost) = &cost {
        out::data(&private::text(cost));
    }
    if let Some(peak) = memory {
        out::say(&format!("peak memory: {:.1} MB", peak as f64 / 1e6));
    }
    out::data(&format!(
        "model: {} ({:.0} kB)",
        output.display(),
        bytes.len() as f64 / 1e3
    ));
    Ok(())
}

/// Writes the model as configurations of Harpoon.
fn configurations(learnt: &Any, output: &Path, json: bool) -> Result<(), Fail> {
    let Any::Flows(learnt) = learnt else {
        let message = "Harpoon plays flow-level models: this is one of packets";
        return Err(Fail::usage(message).hint("--flows meters packet traces into flow records"));
    };
    let name = stem(output);
    let texts = learnt.model.to_harpoon(HARPOON_POOLS);
    let mut written = Vec::new();
    for (side, text) in ["client", "server"].into_iter().zip(texts) {
        let path = output.with_file_name(format!("{name}-{side}.xml"));
        out::write(&path, text.as_bytes())?;
        written.push(path);
    }
    if json {
        out::json(&serde_json::json!({
            "configurations": written, "warnings": learnt.model.warnings,
            "summary": show::flow_summary(&learnt.model),
        }));
        return Ok(());
    }
    out::warnings(&learnt.model.warnings);
    for path in written {
        out::data(&format!("configuration: {}", path.display()));
    }
    Ok(())
}

/// Whatever the files hold, learnt.
pub(crate) enum Any {
    Packets(Box<Learnt>),
    Flows(Box<LearntFlows>),
}

impl Any {
    pub(crate) fn warnings(&self) -> &[Warning] {
        match self {
            Any::Packets(l) => &l.model.warnings,
            Any::Flows(l) => &l.model.warnings,
        }
    }

    pub(crate) fn summary(&self) -> serde_json::Value {
        match self {
            Any::Packets(l) => show::summary(&l.model),
            Any::Flows(l) => show::flow_summary(&l.model),
        }
    }

    pub(crate) fn table(&self) -> String {
        match self {
            Any::Packets(l) => tables::model(&l.model),
            Any::Flows(l) => tables::flows::model(&l.model),
        }
    }

    pub(crate) fn counts_lines(&self) -> Vec<String> {
        let packets = |(f, format, c): &(String, &str, Counts)| tables::counts_line(f, format, c);
        match self {
            Any::Packets(l) => l.traces.iter().map(packets).collect(),
            Any::Flows(l) => l.files.iter().map(tables::flows::counts_line).collect(),
        }
    }

    pub(crate) fn counts_json(&self) -> Vec<serde_json::Value> {
        match self {
            Any::Packets(l) => l.traces.iter().map(tables::counts_json).collect(),
            Any::Flows(l) => l.files.iter().map(tables::flows::counts_json).collect(),
        }
    }
}

/// Learns from files of packets or of flow records, as the first one is.
pub(crate) fn any(
    files: &[PathBuf],
    mut options: Options,
    note: String,
    args: &FlowArgs,
) -> Result<Any, Fail> {
    let bar = flows::bar(files);
    let first = Opened::new(&files[0], &bar)?;
    let provenance = provenance(files, note);
    let name = &options.name;
    if let Some(learnt) = models::read(&first, files, name, &provenance, args)? {
        return Ok(Any::Flows(Box::new(learnt)));
    }
    if first.is_flows(args) {
        let learnt = flows::read(first, &files[1..], &bar, name, provenance, args)?;
        return Ok(Any::Flows(Box::new(learnt)));
    }
    options.provenance = provenance;
    let learnt = packets(first, &files[1..], &bar, options, args.digest)?;
    Ok(Any::Packets(Box::new(learnt)))
}

/// Learns from packet traces.
pub(crate) fn read(traces: &[PathBuf], mut options: Options, note: String) -> Result<Learnt, Fail> {
    let bar = flows::bar(traces);
    let first = Opened::new(&traces[0], &bar)?;
    options.provenance = provenance(traces, note);
    packets(first, &traces[1..], &bar, options, false)
}

fn provenance(files: &[PathBuf], note: String) -> Provenance {
    Provenance {
        made_by: format!("swell {}", env!("CARGO_PKG_VERSION")),
        sources: files.iter().map(|p| file_name(p)).collect(),
        digests: Vec::new(),
        note,
        thinning: None,
        private: None,
        certificate: None,
    }
}

/// Reads traces, one after the other, into one model. A trace that breaks off is used as far as
/// it goes, with a doubt in the model.
fn packets(
    first: Opened,
    others: &[PathBuf],
    bar: &indicatif::ProgressBar,
    options: Options,
    digest: bool,
) -> Result<Learnt, Fail> {
    let mut learner = Learner::new(options);
    let mut read = Vec::new();
    let mut digests = Vec::new();
    // Time of the latest packet of all traces so far.
    let mut latest: Option<i64> = None;
    let mut next = Some(first);
    let mut others = others.iter();
    while let Some(mut file) = next.take() {
        let named = file.name.clone();
        let mut reader = Reader::named(&named, file.bytes()).map_err(Fail::usage)?;
        let mut packet = Packet::default();
        let before = latest;
        let mut beginning = true;
        loop {
            match reader.read_into(&mut packet) {
                Ok(true) => {
                    if std::mem::take(&mut beginning) && before.is_some_and(|b| packet.time < b) {
                        let message = format!("{named} begins before the trace before it ends");
                        return Err(Fail::usage(message)
                            .hint("name the traces of one link in the order of their times"));
                    }
                    latest = latest.max(Some(packet.time));
                    learner.push(&packet);
                }
                Ok(false) => break,
                Err(error) => {
                    learner.doubt(Warning::warning("trace-damaged", error.to_string()));
                    break;
                }
            }
        }
        if reader.counts().packets == 0 {
            return Err(Fail::usage(format!("{named}: no IP packets in it")).hint(
                tables::counts_line(&named, reader.format().name(), reader.counts()),
            ));
        }
        for skip in Skip::ALL {
            let n = reader.counts().skipped(skip);
            if n > 0 {
                learner.doubt(Warning::note(
                    "records-skipped",
                    format!(
                        "{}: {n} records skipped: {}",
                        file_name(Path::new(&named)),
                        skip.text()
                    ),
                ));
            }
        }
        read.push((named, reader.format().name(), reader.counts().clone()));
        drop(reader);
        // Read to the end in any case.
        let sha256 = file.source.digest().map_err(Fail::failed)?;
        digests.extend(digest.then_some(sha256));
        next = others.next().map(|p| Opened::new(p, bar)).transpose()?;
    }
    bar.finish_and_clear();
    let mut model = learner.finish();
    model.provenance.digests = digests;
    Ok(Learnt {
        model,
        traces: read,
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || "standard input".into(),
        |n| n.to_string_lossy().into_owned(),
    )
}

/// The file name up to its first dot.
pub(crate) fn stem(path: &Path) -> String {
    let name = file_name(path);
    let stem = name.split('.').next().unwrap_or("");
    if stem.is_empty() || stem == "-" {
        "model".into()
    } else {
        stem.into()
    }
}

/// The most memory this process ever held, in bytes, where the system says (Linux: VmHWM).
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
