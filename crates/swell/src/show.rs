//! `swell show`.

use std::fs;
use std::path::Path;

use swell_experiment::{Verdict, bundled, file};
use swell_traffic::Model;

use crate::cli::ShowArgs;
use crate::fail::Fail;
use crate::{learn, out, pictures, report, tables};

pub(crate) fn show(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let what = args.what.as_path();
    if what.is_dir() {
        return run(args, json);
    }
    let is_bundled = what.to_str().and_then(bundled::model).is_some();
    if is_bundled || looks_like_a_model(what) {
        return model(&any_model(what)?, args, json);
    }
    if !what.exists() && what.as_os_str() != "-" {
        return Err(missing(what));
    }
    trace(args, json)
}

/// A model by the name of a bundled one or by its path.
pub(crate) fn any_model(what: &Path) -> Result<Model, Fail> {
    if let Some(bytes) = what.to_str().and_then(bundled::model) {
        return Model::from_slice(bytes).map_err(Fail::failed);
    }
    if !what.is_file() {
        return Err(missing(what));
    }
    let usage = |e: &dyn std::fmt::Display| Fail::usage(format!("{}: {e}", what.display()));
    let bytes = fs::read(what).map_err(|e| usage(&e))?;
    Model::from_slice(&bytes).map_err(|e| usage(&e))
}

fn missing(what: &Path) -> Fail {
    let name = what.display().to_string();
    let known: Vec<&str> = bundled::models().collect();
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

fn run(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let results = report::load(&args.what)?;
    let verdict = Verdict::of(&results);
    pictures::of_run(&results, args)?;
    if json {
        out::json(&serde_json::json!({"manifest": results.manifest, "verdict": verdict}));
        return Ok(());
    }
    out::warnings(&verdict.doubts);
    for foreground in &verdict.foregrounds {
        out::warnings(&foreground.doubts);
        out::data(&tables::slowdowns(foreground));
        out::data(&tables::wrapped(&foreground.sentence));
    }
    Ok(())
}

fn model(model: &Model, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    pictures::of_model(model, args)?;
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
    let learnt = learn::read(
        traces,
        learn::stem(&args.what),
        String::new(),
        swell_learn::Options::default().parameters,
    )?;
    pictures::of_model(&learnt.model, args)?;
    if json {
        out::json(&serde_json::json!({
            "traces": learnt.traces.iter().map(tables::counts_json).collect::<Vec<_>>(),
            "summary": summary(&learnt.model), "warnings": learnt.model.warnings,
        }));
        return Ok(());
    }
    out::warnings(&learnt.model.warnings);
    for (file, format, counts) in &learnt.traces {
        out::data(&tables::counts_line(file, format, counts));
    }
    out::data(&tables::model(&learnt.model));
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
    })
}
