//! `swell run`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use groundswell::files::parent_exists;
use indicatif::ProgressDrawTarget;
use swell_base::Dur;
use swell_base::Warning;
use swell_experiment::file::BackendKind;
use swell_experiment::made_up::MadeUp;
use swell_experiment::run::{Ended, Event, Failure, LockError, Options, Shard};
use swell_experiment::suite::suite;
use swell_experiment::{Backend, Plan, Results, Simulator, Verdict, bundled, file};

use swell_emulate::backend::{Emulator, Settings};
use swell_host::Rights;

use crate::cli::RunArgs;
use crate::fail::Fail;
use crate::output::Output;
use crate::threshold::{self, Threshold};
use crate::{interrupt, junit, out, report, tables};

/// The bundled experiment that runs when none is given.
const QUICK_START: &str = "quickstart";

/// How often an emulated run that was too late is repeated, before it is left out of the verdict.
pub(crate) const REPEATS: u32 = 2;

/// Whether the experiment wants the emulator; a file that does not read says so later.
pub(crate) fn emulates(args: &RunArgs) -> bool {
    let Ok((text, source, _)) = read(args) else {
        return false;
    };
    let set = file::override_keys(&text, &args.set).unwrap_or(text);
    let wanted = file::read(&set, &source).map(|f| f.backend);
    !args.dry_run && wanted.is_ok_and(|b| b == BackendKind::Emulated)
}

pub(crate) fn run(args: &RunArgs, rights: Option<Rights>, json: bool) -> Result<u8, Fail> {
    let (text, source, base) = read(args)?;
    if args.experiment.is_none() {
        out::say("running the bundled quick start; `swell run EXPERIMENT.toml` runs yours");
    }
    if let Some(dir) = &args.output {
        parent_exists(dir)?;
    }
    let plan = plan(args, &text, &source, &base)?;
    let backend: Box<dyn Backend> = match rights {
        _ if args.dry_run => Box::new(MadeUp::default()),
        Some(rights) => Box::new(Emulator::new(rights, emulation(args))),
        None => Box::new(Simulator),
    };
    let options = Options {
        dir: directory(args, &plan),
        threads: args.threads.map_or_else(parallelism, usize::from),
        fresh: args.fresh,
        shard: args.shard,
    };
    if args.shard.is_some() && backend.at_once() == 1 {
        let message = "--shard: runs in real time on one machine would disturb each other";
        return Err(Fail::usage(message).hint("only simulated runs can be divided"));
    }
    interrupt::wishes();
    // Nothing is drawn before the first stage says how long it is.
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
            // The bar counts thousandths of runs, so that it moves within them.
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
    let ended = swell_experiment::run::run(&plan, &*backend, &options, &events, &interrupt::wished);
    bar.finish_and_clear();
    let results = match ended {
        Ok(Ended::Complete(results)) => *results,
        Ok(Ended::Interrupted {
            finished,
            runs,
            measured,
        }) => {
            let dir = options.dir.display();
            return Err(Fail::interrupted(match (finished, measured) {
                (0, 1..) => format!(
                    "interrupted while measuring; {measured} measurements are kept in {dir}, none of {runs} runs has begun"
                ),
                _ => format!("interrupted; {finished} of {runs} runs are kept in {dir}"),
            })
            .hint("the same command goes on where it stopped"));
        }
        Ok(Ended::Shard { finished, runs }) => {
            shard_done(&options.dir, options.shard, (finished, runs), json);
            return Ok(threshold::ANSWERED);
        }
        Err(failure @ Failure::Lock(LockError::Busy { .. })) => return Err(busy(failure)),
        Err(failure @ Failure::Other { .. }) => {
            return Err(Fail::usage(failure)
                .hint("--fresh throws the old runs away; -o DIR writes elsewhere"));
        }
        Err(failure) => return Err(Fail::failed(failure)),
    };
    let dir = options.dir.display();
    interrupt::ends(
        &format!("interrupted; all runs are kept in {dir}, the report is not written"),
        &format!("`swell report {dir}` writes it"),
    );
    let page = options.dir.join(report::PAGE);
    report::write(&results, &page)?;
    let verdict = Verdict::of(&results);
    say(&results, &verdict, &page, json);
    // Numbers that were made up answer nothing.
    Ok(if args.dry_run {
        threshold::ANSWERED
    } else {
        if let Some(file) = &args.junit {
            junit::write(file, &results.manifest.name, &verdict, &args.fail_if)?;
        }
        judged(&verdict, &args.fail_if)
    })
}

/// Says that a shard is done, and what to do next.
pub(crate) fn shard_done(
    dir: &Path,
    shard: Option<Shard>,
    (finished, runs): (usize, usize),
    json: bool,
) {
    let shard = shard.map_or_else(String::new, |s| s.to_string());
    if json {
        return Output::Shard {
            run: dir,
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
    out::say("the same command without --shard does what is missing and joins all of them");
}

/// A directory that another process has.
pub(crate) fn busy(error: impl std::fmt::Display) -> Fail {
    Fail::failed(error).hint("wait until it is done; -o DIR writes elsewhere")
}

/// Says which thresholds are crossed; the exit code of the verdict.
pub(crate) fn judged(verdict: &Verdict, fail_if: &[Threshold]) -> u8 {
    let crossed: Vec<String> = fail_if.iter().flat_map(|t| t.crossed(verdict)).collect();
    for line in &crossed {
        out::say(&format!("failed: {line}"));
    }
    match threshold::exit_code(verdict) {
        threshold::APPLICATION_FAILED => threshold::APPLICATION_FAILED,
        _ if !crossed.is_empty() => threshold::THRESHOLD,
        // Whoever sets thresholds asks for them.
        _ if !fail_if.is_empty() => threshold::ANSWERED,
        code => code,
    }
}

fn emulation(args: &RunArgs) -> Settings {
    Settings {
        repeats: REPEATS,
        ..args.emulation.settings()
    }
}

/// Prints the table, the verdict and where the report is.
fn say(results: &Results, verdict: &Verdict, page: &Path, json: bool) {
    if json {
        return Output::Run {
            run: &results.dir,
            report: page,
            verdict,
            measured: &results.manifest.measured,
        }
        .print();
    }
    doubts(results, verdict);
    for foreground in &verdict.foregrounds {
        out::warnings(&foreground.doubts);
        out::data(&tables::slowdowns(foreground));
        out::data(&tables::answers(foreground));
    }
    out::data(&format!("report: {}", page.display()));
}

/// Says what to doubt; what a model itself says in one line, since the report and `swell show` tell it.
pub(crate) fn doubts(results: &Results, verdict: &Verdict) {
    let models = &results.manifest.models;
    let of_a_model = |doubt: &Warning| {
        models
            .values()
            .flat_map(|m| &m.warnings)
            .any(|w| doubt.message.ends_with(&w.message))
    };
    let rest: Vec<Warning> = verdict
        .doubts
        .iter()
        .filter(|d| !of_a_model(d))
        .cloned()
        .collect();
    out::warnings(&rest);
    for (background, model) in models {
        let mut codes: Vec<&str> = model.warnings.iter().map(|w| w.code.as_str()).collect();
        codes.dedup();
        if !codes.is_empty() {
            let text = format!(
                "note: the model behind {background} has doubts of its own ({}); the report and `swell show {}` tell them",
                codes.join(", "),
                model.name,
            );
            out::say(&tables::wrapped(&text));
        }
    }
}

/// The text of the experiment, what messages call it, and where its model files are.
fn read(args: &RunArgs) -> Result<(String, String, PathBuf), Fail> {
    let Some(path) = &args.experiment else {
        let text = bundled::experiment(QUICK_START)
            .ok_or_else(|| Fail::failed("the quick start is not bundled"))?;
        return Ok((
            text.into(),
            format!("{QUICK_START}.toml (bundled)"),
            PathBuf::new(),
        ));
    };
    if path.as_os_str() == "-" {
        // It is asked for twice, and can be read once.
        static TYPED: OnceLock<Result<String, String>> = OnceLock::new();
        let typed = TYPED
            .get_or_init(|| std::io::read_to_string(std::io::stdin()).map_err(|e| e.to_string()));
        let text = typed
            .clone()
            .map_err(|e| Fail::usage(format!("standard input: {e}")))?;
        return Ok((text, "standard input".into(), PathBuf::new()));
    }
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let base = path.parent().map_or_else(PathBuf::new, Path::to_owned);
            Ok((text, name, base))
        }
        Err(e) => {
            let fail = Fail::usage(format!("{name}: {e}"));
            // A file that is there but cannot be read is the one that was meant.
            if path.join("manifest.json").exists() {
                return Err(fail.hint(format!("`swell show {name}` shows a run")));
            }
            if e.kind() != std::io::ErrorKind::NotFound {
                return Err(fail);
            }
            Err(match neighbour(path) {
                Some(near) => fail.hint(format!("did you mean `{near}`?")),
                None => fail.hint("`swell run` alone runs a bundled experiment"),
            })
        }
    }
}

/// An experiment file beside `path` whose name is like its.
fn neighbour(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let wanted = path.file_name()?.to_str()?;
    let mut names: Vec<String> = std::fs::read_dir(parent.unwrap_or(Path::new(".")))
        .ok()?
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.ends_with(".toml"))
        .collect();
    names.sort();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, hint) = file::unknown_name("file", wanted, &known);
    let near = known
        .into_iter()
        .find(|n| hint == format!("did you mean `{n}`?"))?;
    Some(parent.map_or_else(|| near.into(), |p| p.join(near).display().to_string()))
}

fn plan(args: &RunArgs, text: &str, source: &str, base: &Path) -> Result<Plan, Fail> {
    let mut assignments = args.set.clone();
    if args.quick {
        // The file must read before its length can be cut; what --set changes counts.
        let set = file::override_keys(text, &args.set).ok();
        let run = match set.and_then(|t| file::read(&t, source).ok()) {
            Some(file) => file.run,
            None => file::read(text, source).map_err(Fail::problems)?.run,
        };
        let whole = |d: Dur| Dur::from_nanos(d.as_nanos() - d.as_nanos() % run.bins.as_nanos());
        let warmup = whole(run.warmup / 2);
        let length = warmup + whole(run.duration.saturating_sub(run.warmup) / 4).max(run.bins);
        let seconds = |d: Dur| format!("\"{}\"", d);
        assignments.splice(
            0..0,
            [
                format!("run.replications={}", run.replications.min(3)),
                format!("run.warmup={}", seconds(warmup)),
                format!("run.duration={}", seconds(length)),
            ],
        );
    }
    if args.packets {
        assignments.push("run.keep.packets=true".into());
    }
    if assignments.is_empty() && args.suite.is_none() {
        return Plan::resolve(text, source, base).map_err(Fail::problems);
    }
    // What the file itself has wrong is told with the file's own lines.
    file::read(text, source).map_err(Fail::problems)?;
    let mut changed = file::override_keys(text, &assignments).map_err(Fail::usage)?;
    let said = match (args.set.is_empty(), args.quick, args.packets) {
        (false, ..) => "--set",
        (true, true, _) => "--quick",
        (true, false, true) => "--packets",
        (true, false, false) => "--suite",
    };
    if let Some(learnt) = &args.suite {
        let file =
            file::read(&changed, &format!("{source} with {said}")).map_err(Fail::problems)?;
        let learnt = Some(learnt.as_str()).filter(|name| !name.is_empty());
        changed = suite(&changed, &file, learnt).map_err(|message| {
            Fail::usage(message)
                .hint("add a background of kind = \"learnt\"; `swell models` lists models")
        })?;
    }
    Plan::resolve(&changed, &format!("{source} with {said}"), base).map_err(Fail::problems)
}

fn directory(args: &RunArgs, plan: &Plan) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let mut name = plan.file.name.clone();
        if args.suite.is_some() {
            name += "-suite";
        }
        if args.quick {
            name += "-quick";
        }
        if args.dry_run {
            name += "-dry";
        }
        Path::new("runs").join(name)
    })
}

pub(crate) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
