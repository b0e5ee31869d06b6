//! `swell show`.

use std::fs;
use std::path::Path;

use groundswell::learn::FileCounts;
use groundswell::model::{AnyModel, missing};
use swell_experiment::{Results, Verdict, bundled};

use crate::cli::ShowArgs;
use crate::fail::Fail;
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
        return model(&AnyModel::open(what)?, args, json);
    }
    if !what.exists() && what.as_os_str() != "-" {
        return Err(missing(what).into());
    }
    trace(args, json)
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

fn model(model: &AnyModel, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    if let AnyModel::Packets(packets) = model {
        pictures::of_model(packets, args)?;
        if args.vega.as_deref().is_some_and(out::is_stdout) {
            return Ok(());
        }
    }
    if json {
        let mut value = model.summary();
        value["warnings"] = serde_json::json!(model.warnings());
        out::json(&value);
    } else {
        out::warnings(model.warnings());
        out::data(&tables::any_model(model));
    }
    Ok(())
}

fn trace(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let traces = std::slice::from_ref(&args.what);
    let learnt = learn::with_bar(traces, &groundswell::learn::Options::default())?;
    if let AnyModel::Packets(packets) = &learnt.model {
        pictures::of_model(packets, args)?;
    }
    if json {
        out::json(&serde_json::json!({
            "traces": learnt.files.iter().map(FileCounts::to_json).collect::<Vec<_>>(),
            "summary": learnt.model.summary(), "warnings": learnt.model.warnings(),
        }));
        return Ok(());
    }
    out::warnings(learnt.model.warnings());
    for file in &learnt.files {
        out::data(&tables::wrapped(&file.to_string()));
    }
    out::data(&tables::any_model(&learnt.model));
    Ok(())
}
