//! `swell show`.

use std::fs;
use std::path::Path;

use swell_experiment::{Results, Verdict, bundled, file};
use swell_traffic::Model;
use swell_traffic::flowlevel::{FlowModel, Law};

use crate::cli::{FlowArgs, ShowArgs};
use crate::fail::Fail;
use crate::learn::Any;
use crate::run::doubts;
use crate::{learn, out, pictures, report, tables};

pub(crate) fn show(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let what = args.what.as_path();
    if what.is_dir() {
        return run(args, json);
    }
    if let Some(more) = args.more.first() {
        let message = format!(
            "{}: only run directories are shown together",
            more.display()
        );
        return Err(Fail::usage(message));
    }
    let named = |name: &str| bundled::model(name).or_else(|| bundled::flow_model(name));
    let is_bundled = what.to_str().and_then(named).is_some();
    if is_bundled || looks_like_a_model(what) {
        return match any_model_file(what)? {
            AnyModel::Packets(found) => model(&found, args, json),
            AnyModel::Flows(found) => flow_model(&found, json),
        };
    }
    if !what.exists() && what.as_os_str() != "-" {
        return Err(missing(what));
    }
    trace(args, json)
}

/// A model of either kind.
pub(crate) enum AnyModel {
    Packets(Box<Model>),
    Flows(Box<FlowModel>),
}

/// A model of either kind by the name of a bundled one or by its path.
pub(crate) fn any_model_file(what: &Path) -> Result<AnyModel, Fail> {
    if let Some(bytes) = what.to_str().and_then(bundled::model) {
        let model = Model::from_slice(bytes).map_err(Fail::failed)?;
        return Ok(AnyModel::Packets(Box::new(model)));
    }
    if let Some(bytes) = what.to_str().and_then(bundled::flow_model) {
        let model = FlowModel::from_slice(bytes).map_err(Fail::failed)?;
        return Ok(AnyModel::Flows(Box::new(model)));
    }
    if !what.is_file() {
        return Err(missing(what));
    }
    let usage = |e: &dyn std::fmt::Display| Fail::usage(format!("{}: {e}", what.display()));
    let bytes = fs::read(what).map_err(|e| usage(&e))?;
    if FlowModel::is_one(&bytes) {
        let model = FlowModel::from_slice(&bytes).map_err(|e| usage(&e))?;
        return Ok(AnyModel::Flows(Box::new(model)));
    }
    let model = Model::from_slice(&bytes).map_err(|e| usage(&e))?;
    Ok(AnyModel::Packets(Box::new(model)))
}

/// A model learnt from packets by the name of a bundled one or by its path.
pub(crate) fn any_model(what: &Path) -> Result<Model, Fail> {
    match any_model_file(what)? {
        AnyModel::Packets(model) => Ok(*model),
        AnyModel::Flows(_) => Err(Fail::usage(format!(
            "{} is a flow-level model: it does not say what this needs",
            what.display()
        ))
        .hint("learn a model from a packet trace")),
    }
}

fn missing(what: &Path) -> Fail {
    let name = what.display().to_string();
    let known: Vec<&str> = bundled::models().chain(bundled::flow_models()).collect();
    let (_, hint) = file::unknown_name("model", &name, &known);
    Fail::usage(format!(
        "no file, no run directory and no bundled model is called `{name}`"
    ))
    .hint(hint)
}

/// Model files are JSON, or named after it: traces never start with a brace.
fn looks_like_a_model(path: &Path) -> bool {
    let name = path.to_string_lossy();
    if name.ends_with(".json") || name.ends_with(".json.zst") {
        return true;
    }
    use std::io::Read;
    let mut first = [0u8; 1];
    fs::File::open(path)
        .and_then(|mut f| f.read_exact(&mut first))
        .is_ok()
        && first == *b"{"
}

/// The run directories as one.
fn joined(args: &ShowArgs) -> Result<Results, Fail> {
    let mut all = report::load(&args.what)?;
    for dir in &args.more {
        all = all.join(report::load(dir)?).map_err(Fail::usage)?;
    }
    Ok(all)
}

fn run(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let results = joined(args)?;
    let verdict = Verdict::of(&results);
    pictures::of_run(&results, args)?;
    // The specification is then what standard output has.
    if args.vega.as_deref().is_some_and(out::is_stdout) {
        return Ok(());
    }
    if json {
        out::json(&serde_json::json!({"manifest": results.manifest, "verdict": verdict}));
        return Ok(());
    }
    doubts(&results, &verdict);
    for foreground in &verdict.foregrounds {
        out::warnings(&foreground.doubts);
        out::data(&tables::slowdowns(foreground));
        out::data(tables::answers(foreground).trim_end());
    }
    Ok(())
}

fn model(model: &Model, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    pictures::of_model(model, args)?;
    if args.vega.as_deref().is_some_and(out::is_stdout) {
        return Ok(());
    }
    if json {
        let mut value = summary(model);
        value["warnings"] = serde_json::json!(model.warnings);
        out::json(&value);
    } else {
        out::warnings(&model.warnings);
        out::data(&tables::model(model));
    }
    Ok(())
}

fn trace(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let traces = std::slice::from_ref(&args.what);
    let learnt = learn::any(
        traces,
        swell_learn::Options {
            name: learn::stem(&args.what),
            ..swell_learn::Options::default()
        },
        String::new(),
        &FlowArgs::default(),
    )?;
    if let Any::Packets(packets) = &learnt {
        pictures::of_model(&packets.model, args)?;
    }
    if json {
        out::json(&serde_json::json!({
            "traces": learnt.counts_json(),
            "summary": learnt.summary(), "warnings": learnt.warnings(),
        }));
        return Ok(());
    }
    out::warnings(learnt.warnings());
    for line in learnt.counts_lines() {
        out::data(&line);
    }
    out::data(&learnt.table());
    Ok(())
}

fn flow_model(model: &FlowModel, json: bool) -> Result<(), Fail> {
    if json {
        let mut value = flow_summary(model);
        value["warnings"] = serde_json::json!(model.warnings);
        out::json(&value);
    } else {
        out::warnings(&model.warnings);
        out::data(&tables::flows::model(model));
    }
    Ok(())
}

/// Mean rates of the model's own trace, left to right and right to left, bits per second.
pub(crate) fn mean_bps(model: &Model) -> [f64; 2] {
    let seconds = model.duration.as_secs_f64();
    model.totals.bytes.map(|b| match seconds > 0.0 {
        true => b as f64 * 8.0 / seconds,
        false => 0.0,
    })
}

/// A model in figures.
pub(crate) fn summary(model: &Model) -> serde_json::Value {
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
pub(crate) fn flow_summary(model: &FlowModel) -> serde_json::Value {
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
