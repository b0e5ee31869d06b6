//! `swell learn`.

use std::path::{Path, PathBuf};

use swell_base::Warning;
use swell_capture::{Counts, Packet, Reader, Skip};
use swell_learn::{Learner, Options};
use swell_traffic::{Model, Parameters, Provenance};

use crate::cli::LearnArgs;
use crate::fail::Fail;
use crate::source::Source;
use crate::{interrupt, out, show, tables};

/// A silence longer than this many nanoseconds is told: ten minutes.
const LONG_SILENCE: i64 = 600_000_000_000;

/// A trace or several, read and learnt.
pub(crate) struct Learnt {
    pub model: Model,
    /// File, format and counts of each trace.
    pub traces: Vec<(String, &'static str, Counts)>,
}

pub(crate) fn learn(args: &LearnArgs, json: bool) -> Result<(), Fail> {
    let name = args.name.clone().unwrap_or_else(|| stem(&args.traces[0]));
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
    let Learnt { model, traces } = read(&args.traces, name, args.note.clone(), parameters)?;
    let compress = output.extension().is_some_and(|e| e == "zst");
    let mut bytes = Vec::new();
    model
        .write(&mut bytes, compress)
        .map_err(|e| Fail::failed(format!("{}: {e}", output.display())))?;
    out::write(&output, &bytes)?;

    let memory = peak_memory();
    if json {
        out::json(&serde_json::json!({
            "model": output, "bytes": bytes.len(), "peak_memory_bytes": memory,
            "traces": traces.iter().map(tables::counts_json).collect::<Vec<_>>(),
            "summary": show::summary(&model), "warnings": model.warnings,
        }));
        return Ok(());
    }
    for (file, format, counts) in &traces {
        out::say(&tables::counts_line(file, format, counts));
    }
    out::warnings(&model.warnings);
    out::data(&tables::model(&model));
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

/// Reads traces, one after the other, into one model. A trace that breaks off is used as far as
/// it goes, with a doubt in the model.
pub(crate) fn read(
    traces: &[PathBuf],
    name: String,
    note: String,
    parameters: Parameters,
) -> Result<Learnt, Fail> {
    let total = traces
        .iter()
        .map(|p| std::fs::metadata(p).map_or(0, |m| m.len()))
        .sum();
    let bar = out::bar(
        total,
        "  reading [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
    );
    let mut learner = Learner::new(Options {
        name,
        provenance: Provenance {
            made_by: format!("swell {}", env!("CARGO_PKG_VERSION")),
            sources: traces.iter().map(|p| file_name(p)).collect(),
            digests: Vec::new(),
            note,
        },
        parameters,
        ..Options::default()
    });
    let mut read = Vec::new();
    let mut digests = Vec::new();
    // Time of the latest packet of all traces so far, and the longest silence.
    let mut latest: Option<i64> = None;
    let mut silence = 0;
    for path in traces {
        let named = path.display().to_string();
        let source = Source::open(path, &bar).map_err(|e| Fail::usage(format!("{named}: {e}")))?;
        let mut reader = Reader::named(&named, source.clone()).map_err(Fail::usage)?;
        let mut packet = Packet::default();
        let before = latest;
        let mut first = true;
        loop {
            match reader.read_into(&mut packet) {
                Ok(true) => {
                    if std::mem::take(&mut first) && before.is_some_and(|b| packet.time < b) {
                        let message = format!("{named} begins before the trace before it ends");
                        return Err(Fail::usage(message)
                            .hint("name the traces of one link in the order of their times"));
                    }
                    let now = latest.map_or(packet.time, |l| l.max(packet.time));
                    silence = silence.max(now.saturating_sub(latest.unwrap_or(now)));
                    latest = Some(now);
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
                    format!("{}: {n} records skipped: {}", file_name(path), skip.text()),
                ));
            }
        }
        read.push((named, reader.format().name(), reader.counts().clone()));
        drop(reader);
        digests.push(source.digest().map_err(Fail::failed)?);
    }
    bar.finish_and_clear();
    if silence > LONG_SILENCE {
        learner.doubt(Warning::warning(
            "gap-in-trace",
            format!(
                "no packet for {:.0} s on end: a gap between traces, or a clock that was set; it counts as time without load",
                silence as f64 / 1e9
            ),
        ));
    }
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
