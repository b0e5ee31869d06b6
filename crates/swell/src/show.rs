//! `swell show`.

use std::path::{Path, PathBuf};

use groundswell::files;
use groundswell::learn::{FileCounts, Learnt};
use groundswell::model::AnyModel;
use groundswell::show::{self, Shown};
use swell_experiment::{Results, bundled};
use swell_verdict::Verdict;

use crate::cli::ShowArgs;
use crate::fail::Fail;
use crate::run::{doubts, foregrounds};
use crate::{learn, out, pictures, study, tables};

/// The path that is meant: NAME is runs/NAME too, where `swell run` puts results, if nothing else has the name.
fn meant(what: &Path) -> PathBuf {
    let is_name = what.components().count() == 1 && what.as_os_str() != "-";
    let bundled = what
        .to_str()
        .is_some_and(|name| bundled::model(name).is_some() || bundled::flow_model(name).is_some());
    let kept = Path::new("runs").join(what);
    match is_name && !bundled && !what.exists() && kept.is_dir() {
        true => kept,
        false => what.to_owned(),
    }
}

pub(crate) fn show(args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let what = meant(&args.what);
    let more: Vec<PathBuf> = args.more.iter().map(|more| meant(more)).collect();
    let outputs = [&args.html, &args.svg, &args.png, &args.pdf, &args.vega];
    let written = outputs.into_iter().flatten();
    if written.clone().filter(|file| out::is_stdout(file)).count() > 1 {
        return Err(
            Fail::usage("two pictures cannot both go to standard output")
                .hint("name a file for one of them"),
        );
    }
    files::outputs(
        written.filter(|file| !out::is_stdout(file)),
        std::slice::from_ref(&what),
    )?;
    if args.more.is_empty() && study::is_of_study(&what) {
        if args.foreground.is_some() {
            return Err(Fail::usage("--foreground: only runs have foregrounds"));
        }
        return pictures::of_study(&what, args, json);
    }
    let shown = learn::with_bar(std::slice::from_ref(&what), |progress| {
        show::open(&what, &more, progress)
    })?;
    if args.foreground.is_some() && !matches!(shown, Shown::Run(..)) {
        return Err(Fail::usage("--foreground: only runs have foregrounds"));
    }
    match shown {
        Shown::Run(results, verdict) => run(&results, &verdict, args, json),
        Shown::Model(known) => model(&known, args, json),
        Shown::Trace(learnt) => trace(&learnt, args, json),
    }
}

fn run(results: &Results, verdict: &Verdict, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    pictures::of_run(results, verdict, args)?;
    // Standard output then has the specification and nothing else.
    if pictures::printed(args) {
        return Ok(());
    }
    if json {
        out::json(&serde_json::json!({"manifest": results.manifest, "verdict": verdict}));
        return Ok(());
    }
    doubts(results, verdict);
    foregrounds(results, verdict);
    Ok(())
}

fn model(model: &AnyModel, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    drawn(model, args)?;
    if pictures::printed(args) {
        return Ok(());
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

/// Writes the requested pictures of a model; an error if it has none.
fn drawn(model: &AnyModel, args: &ShowArgs) -> Result<(), Fail> {
    let options = [
        ("--html", &args.html),
        ("--svg", &args.svg),
        ("--png", &args.png),
        ("--pdf", &args.pdf),
        ("--vega", &args.vega),
    ];
    let asked = options.iter().find(|(_, file)| file.is_some());
    match (model, asked) {
        (AnyModel::Packets(packets), _) => pictures::of_model(packets, args),
        (AnyModel::Flows(_), None) => Ok(()),
        (AnyModel::Flows(_), Some((option, _))) => Err(Fail::usage(format!(
            "{option}: there are no pictures of flow-level models"
        ))
        .hint("models that are learnt from packets have some")),
    }
}

fn trace(learnt: &Learnt, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    drawn(&learnt.model, args)?;
    if pictures::printed(args) {
        return Ok(());
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
