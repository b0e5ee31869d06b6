//! `swell run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use groundswell::files;
use groundswell::run::{Event, Experiment, Options, Outcome, REPEATS, Shard, Source};
use indicatif::ProgressDrawTarget;
use swell_base::{Severity, Warning};
use swell_emulate::backend::Settings;
use swell_experiment::Results;
use swell_experiment::file::File;
use swell_experiment::store::ModelFacts;
use swell_host::Rights;
use swell_verdict::{UNLIKE_TRACE, Verdict};

use crate::cli::RunArgs;
use crate::fail::Fail;
use crate::output::{self, Output};
use crate::threshold::{self, Threshold};
use crate::{interrupt, junit, out, report, tables};

/// The experiment to run.
pub(crate) fn source(args: &RunArgs) -> Result<Source, Fail> {
    match &args.experiment {
        Some(path) => Source::open(path),
        None => {
            out::say("running the bundled quick start; `swell run EXPERIMENT.toml` runs yours");
            Source::quick_start()
        }
    }
}

/// The options of the run.
pub(crate) fn options(args: &RunArgs) -> Options {
    Options {
        set: args.set.clone(),
        quick: args.quick,
        packets: args.packets,
        suite: args.suite.clone(),
        made_up: args.made_up,
        output: args.output.clone(),
        threads: args.threads.map(usize::from),
        fresh: args.fresh,
        resume: args.resume,
        shard: args.shard,
        energy_known: args.energy_known,
        emulation: Settings {
            repeats: REPEATS,
            ..args.emulation.settings()
        },
    }
}

pub(crate) fn run(
    args: &RunArgs,
    source: &Source,
    rights: Option<Rights>,
    json: bool,
) -> Result<u8, Fail> {
    // Made-up numbers are for trying a command, whatever its options.
    if let Some(option) = args.emulation.given()
        && rights.is_none()
        && !args.made_up
    {
        let message = format!("{option} is for emulated runs, and these are simulated");
        return Err(Fail::usage(message).hint("leave it, or --set backend=emulated"));
    }
    let printed = junit::is_printed(args.junit.as_deref(), json)?;
    let experiment = Experiment::new(source, options(args), rights)?;
    threshold::check(&args.fail_if, &experiment.plan.file)?;
    // The run makes its own directory.
    let own = |file: &&PathBuf| files::is_inside(file, experiment.dir());
    let inputs: Vec<PathBuf> = args.experiment.iter().cloned().collect();
    let written = || args.junit.iter().filter(|f| !out::is_stdout(f));
    files::outputs(written().filter(|f| !own(f)), &inputs)?;
    for file in written().filter(own) {
        files::not_of_run(file, experiment.dir())?;
    }
    interrupt::wishes();
    // Draw nothing before the first stage has set its length.
    let bar = out::bar(
        0,
        "{prefix:>9} [{bar:30}] {msg} runs, {elapsed} gone, {eta} to go",
    );
    bar.set_draw_target(ProgressDrawTarget::hidden());
    let log = out::Log::new();
    let events = |event: Event<'_>| match event {
        Event::Stage {
            name,
            runs,
            finished,
        } => {
            bar.set_prefix(name);
            bar.set_message(format!("{finished}/{runs}"));
            // The bar counts thousandths of runs, so that it advances within a run.
            bar.set_length(runs as u64 * 1000);
            bar.set_position(finished as u64 * 1000);
            if bar.is_hidden() {
                bar.set_draw_target(out::draw_target());
            }
            bar.reset_elapsed();
            bar.reset_eta();
            if finished > 0 && finished < runs {
                bar.suspend(|| {
                    out::say(&format!(
                        "{name}: {finished} of {runs} runs are there already"
                    ))
                });
            }
        }
        Event::Progress(done) => {
            bar.set_position((done * 1000.0) as u64);
            let runs = bar.length().unwrap_or(0) / 1000;
            log.report(&bar.prefix(), done, runs as f64);
            bar.set_message(format!("{}/{runs}", done as u64));
        }
        Event::Finished(_) => {}
    };
    let outcome = experiment.run(&events, &interrupt::wished);
    bar.finish_and_clear();
    let (results, verdict) = match outcome? {
        Outcome::Complete(results, verdict) => (results, verdict),
        Outcome::Shard { finished, runs } => {
            shard_done(experiment.dir(), args.shard, (finished, runs), json);
            return Ok(threshold::ANSWERED);
        }
    };
    let dir = experiment.dir().display();
    interrupt::ends(
        &format!("interrupted; all runs are kept in {dir}, the report is not written"),
        &format!("`swell report {dir}` writes it"),
    );
    let page = experiment.dir().join(report::PAGE);
    report::write(&results, &page)?;
    match printed {
        true => doubts(&results, &verdict),
        false => say(&results, &verdict, &page, json),
    }
    // Made-up numbers answer nothing, so the exit code ignores the verdict.
    Ok(if args.made_up {
        threshold::ANSWERED
    } else {
        if let Some(file) = &args.junit {
            junit::write(file, &results, &verdict, &args.fail_if)?;
        }
        judged(&results.experiment, &verdict, &args.fail_if)
    })
}

/// Reports that a shard is complete, and what to do next.
pub(crate) fn shard_done(
    dir: &Path,
    shard: Option<Shard>,
    (finished, runs): (usize, usize),
    json: bool,
) {
    let shard = shard.map_or_else(String::new, |s| s.to_string());
    if json {
        return Output::Shard {
            run: output::path(dir),
            shard: &shard,
            finished,
            runs,
        }
        .print();
    }
    out::data(&format!(
        "shard {shard} is done: {finished} of {runs} runs are in {}",
        dir.display()
    ));
    out::say(
        "then run the same command without --shard: it runs what is missing and merges all shards",
    );
}

/// Reports the crossed thresholds and returns the exit code of the verdict on `experiment`.
pub(crate) fn judged(experiment: &File, verdict: &Verdict, fail_if: &[Threshold]) -> u8 {
    let lines = fail_if.iter().flat_map(|t| t.crossed(experiment, verdict));
    let crossed: Vec<String> = lines.collect();
    for line in &crossed {
        out::say(&format!("failed: {line}"));
    }
    match threshold::exit_code(experiment, verdict) {
        threshold::APPLICATION_FAILED => threshold::APPLICATION_FAILED,
        _ if !crossed.is_empty() => threshold::THRESHOLD,
        // With thresholds, only they determine the exit code.
        _ if !fail_if.is_empty() => threshold::ANSWERED,
        code => code,
    }
}

/// Prints the table, the verdict and the path of the report.
fn say(results: &Results, verdict: &Verdict, page: &Path, json: bool) {
    if json {
        return Output::Run {
            run: output::path(&results.dir),
            report: output::path(page),
            verdict,
            measured: &results.manifest.measured,
        }
        .print();
    }
    doubts(results, verdict);
    foregrounds(results, verdict);
    out::data(&format!("report: {}", page.display()));
}

/// Prints each foreground's doubts, table and answers.
pub(crate) fn foregrounds(results: &Results, verdict: &Verdict) {
    let mut told: Vec<&Warning> = Vec::new();
    for foreground in &verdict.foregrounds {
        // What an earlier foreground said in the same words is not said again.
        let new: Vec<Warning> = (foreground.doubts.iter())
            .filter(|d| !told.contains(d))
            .cloned()
            .collect();
        told.extend(&foreground.doubts);
        out::warnings(&new);
        out::data(&tables::of_run(results, foreground));
        if !tables::is_silent(&results.experiment, foreground) {
            out::data(&tables::answers(foreground));
        }
    }
}

/// Prints the doubts. Those of a model itself take one line, because the report and `swell show` list them.
pub(crate) fn doubts(results: &Results, verdict: &Verdict) {
    let (rest, folded) = folded(&results.manifest.models, &verdict.doubts);
    out::warnings(&rest);
    for text in folded {
        out::say(&tables::wrapped(&text));
    }
}

/// The doubts about a model.
#[derive(Default)]
struct OfModel<'d> {
    backgrounds: Vec<&'d str>,
    /// Number of warnings and of notes.
    counts: [usize; 2],
    codes: Vec<&'d str>,
}

/// The doubts to print, and a line for each model instead of the doubts about it. The line has their number, because
/// the verdict counts them among the warnings to read first.
fn folded(
    models: &BTreeMap<String, ModelFacts>,
    doubts: &[Warning],
) -> (Vec<Warning>, Vec<String>) {
    let mut rest = Vec::new();
    let mut by_model: BTreeMap<&str, OfModel<'_>> = BTreeMap::new();
    for doubt in doubts {
        let of = models.iter().find(|(background, model)| {
            let end = |w: &Warning| format!("background {background}: {}", w.message);
            (model.warnings.iter()).any(|w| doubt.message.ends_with(&end(w)))
        });
        // What says that the traffic is not that of the trace is always read.
        let grave = UNLIKE_TRACE.contains(&doubt.code) && doubt.severity == Severity::Warning;
        let Some((background, model)) = of.filter(|_| !grave) else {
            rest.push(doubt.clone());
            continue;
        };
        // The name that `swell show` takes: that of a bundled model, or the path of the file.
        let shown = match model.source.as_str() {
            "bundled" => &model.name,
            path => path,
        };
        let own = by_model.entry(shown).or_default();
        own.counts[usize::from(doubt.severity != Severity::Warning)] += 1;
        if !own.backgrounds.contains(&background.as_str()) {
            own.backgrounds.push(background);
        }
        if !own.codes.contains(&doubt.code.as_str()) {
            own.codes.push(doubt.code.as_str());
        }
    }
    let lines = by_model.into_iter().map(|(model, own)| {
        let [warnings, notes] = own.counts;
        let what = match (warnings, notes) {
            (0, n) => count(n, "note"),
            (n, 0) => format!("{n} of the warnings to read first"),
            (n, m) => format!("{n} of the warnings to read first and {}", count(m, "note")),
        };
        format!(
            "note: {what} on the model behind {} ({}) are not printed here; the report and `swell show {model}` list them",
            own.backgrounds.join(", "),
            own.codes.join(", "),
        )
    });
    (rest, lines.collect())
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use swell_base::Code;

    use super::*;

    /// Every warning is either printed or counted in a line.
    #[test]
    fn folded_doubts_are_counted() {
        let facts = |name: &str, source: &str| ModelFacts {
            name: name.into(),
            source: source.into(),
            hash: String::new(),
            note: String::new(),
            warnings: vec![
                Warning::warning(Code::Thinned, "few sessions"),
                Warning::note(Code::OneWay, "one side"),
                Warning::warning(Code::LoadLeftOut, "a third"),
            ],
        };
        let models = BTreeMap::from([
            ("a".to_owned(), facts("access", "bundled")),
            ("b".to_owned(), facts("access", "bundled")),
            ("c".to_owned(), facts("access", "models/access.json")),
        ]);
        let about = |background: &str, w: &Warning| Warning {
            message: format!("model of background {background}: {}", w.message),
            ..w.clone()
        };
        let mut doubts = vec![Warning::warning(
            Code::NoReference,
            "no background of kind none",
        )];
        for (background, model) in &models {
            doubts.extend(model.warnings.iter().map(|w| about(background, w)));
        }
        let (rest, lines) = folded(&models, &doubts);
        assert_eq!(rest.len(), 4);
        assert_eq!(
            lines,
            [
                "note: 2 of the warnings to read first and 2 notes on the model behind a, b (thinned, one-way) are \
                 not printed here; the report and `swell show access` list them",
                "note: 1 of the warnings to read first and 1 note on the model behind c (thinned, one-way) are \
                 not printed here; the report and `swell show models/access.json` list them",
            ]
        );
    }
}
