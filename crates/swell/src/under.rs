//! `swell under`: a program behind an emulated network with background traffic on it.

pub(crate) mod args;
pub(crate) mod experiment;
pub(crate) mod line;
mod shell;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use swell_emulate::backend::{Conditions, Emulator, Exit, Settings};
use swell_experiment::backend::RunError;
use swell_experiment::run::{Ended, Event, Failure, Options};
use swell_experiment::store::Manifest;
use swell_experiment::{Plan, Results, Verdict};
use swell_host::Rights;
use swell_host::scratch::Scratch;

use self::line::{Line, rates};
use crate::cli::UnderArgs;
use crate::fail::Fail;
use crate::output::{Emulation, Output};
use crate::{control, interrupt, junit, out, report, tables};

/// The name of the backend, as run directories have it.
const EMULATED: &str = "emulated";

/// What is remembered of runs while they go on.
#[derive(Default)]
struct Seen {
    exits: Vec<Exit>,
    conditions: Vec<Conditions>,
}

pub(crate) fn under(args: &UnderArgs, rights: Rights, json: bool) -> Result<u8, Fail> {
    let scratch =
        Scratch::new().map_err(|e| Fail::failed(format!("no temporary directory: {e}")))?;
    let background = experiment::background(&args.link, scratch.path())?;
    if args.command.is_empty() && (args.compare.is_some() || !std::io::stdin().is_terminal()) {
        return Err(
            Fail::usage("there is no command, and a shell needs a terminal")
                .hint("swell under BACKGROUND -- COMMAND"),
        );
    }
    let client = shell::Client::of(args, scratch.path())?;
    let text = experiment::text(args, &client, &background)?;
    let here = std::env::current_dir().map_err(Fail::failed)?;
    let plan = Plan::resolve(&text, "swell under", &here).map_err(Fail::problems)?;
    let dir = directory(args, scratch.path(), &plan)?;

    let seen = std::sync::Arc::new(Mutex::new(Seen::default()));
    let line = std::sync::Arc::new(Line::new(
        rates(&plan),
        args.quiet || json || args.compare.is_none(),
    ));
    let compared = args.compare.is_some();
    let settings = Settings {
        terminal: !compared,
        // A program that has the terminal is not run again by itself.
        repeats: if compared { crate::run::REPEATS } else { 0 },
        packets: args.pcap.clone().filter(|_| !compared),
        // A comparison is of one network.
        control: (!compared)
            .then(|| control::serve(scratch.path(), &experiment::title(&args.link))),
        watch: Some(Box::new({
            let line = std::sync::Arc::clone(&line);
            move |s| line.show(s)
        })),
        ended: Some(Box::new({
            let seen = std::sync::Arc::clone(&seen);
            move |exit| remembered(&seen).exits.push(*exit)
        })),
        conditions: Some(Box::new({
            let (seen, line) = (std::sync::Arc::clone(&seen), std::sync::Arc::clone(&line));
            move |conditions| {
                line.clear();
                remembered(&seen).conditions.push(conditions.clone());
            }
        })),
        ..args.emulation.settings()
    };
    let emulator = Emulator::new(rights, settings);
    let options = Options {
        dir: dir.clone(),
        threads: crate::run::parallelism(),
        fresh: true,
        shard: None,
    };
    interrupt::wishes();
    let events = |event: Event<'_>| {
        if let Event::Stage {
            name: "measuring",
            runs,
            finished,
        } = event
            && runs > finished
            && !args.quiet
        {
            out::say("measuring the background alone (simulated) ...");
        }
    };
    let ended = swell_experiment::run::run(&plan, &emulator, &options, &events, &interrupt::wished);
    line.clear();
    let results = match ended {
        Ok(Ended::Complete(results)) => with_request(args, *results)?,
        // Nothing is asked for in shards here.
        Ok(Ended::Interrupted { .. } | Ended::Shard { .. }) => {
            return Err(Fail::interrupted("interrupted"));
        }
        Err(failure) => {
            return Err(Fail {
                code: not_started(&failure).unwrap_or(1),
                ..Fail::failed(failure)
            });
        }
    };
    let page = args
        .report
        .clone()
        .or_else(|| compared.then(|| dir.join(report::PAGE)));
    if let Some(page) = &page {
        report::write(&results, page)?;
    }
    let seen = remembered(&seen);
    let verdict = Verdict::of(&results);
    if json {
        Output::Under {
            run: kept(args).then_some(&dir),
            report: page.as_deref(),
            verdict: &verdict,
            emulation: seen.conditions.iter().map(Emulation::of).collect(),
        }
        .print();
    } else {
        say(args, &results, &verdict, &seen);
        if let Some(page) = &page {
            out::data(&format!("report: {}", page.display()));
        }
    }
    if let Some(file) = &args.junit {
        junit::write(file, &results.manifest.name, &verdict, &args.fail_if)?;
    }
    Ok(if compared {
        crate::run::judged(&verdict, &args.fail_if)
    } else {
        code(&seen.exits)
    })
}

/// The results, with the load that was asked for: the experiment has only a multiple of the model's sessions that should
/// make it. The verdict holds it against what came.
fn with_request(args: &UnderArgs, mut results: Results) -> Result<Results, Fail> {
    let title = experiment::title(&args.link);
    if let (Some(measured), Some(load)) =
        (results.manifest.measured.get_mut(&title), args.link.load)
    {
        measured.target_bps = Some(load.bps() as f64);
        results.manifest.save(&results.dir).map_err(Fail::failed)?;
    }
    Ok(results)
}

/// The end of what the client wrote in its first run, where a measure was found in none.
fn unmatched(args: &UnderArgs, results: &Results) {
    let measures = || results.runs.iter().flat_map(|r| &r.observed.measures);
    let absent = |name: &str| !measures().any(|s| s.measure == name);
    let Some(missing) = args.measure.iter().find(|m| absent(&m.name)) else {
        return;
    };
    let cell = &results.manifest.cells[0];
    let output = results.dir.join(swell_experiment::run::OUTPUT);
    let path = output
        .join(swell_experiment::run::name(0, cell))
        .join("client-0.out");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let end = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
    out::say(&format!(
        "hint: {} was found in no run; {} ends:\n  {end}",
        missing.name,
        path.display()
    ));
}

/// Lines of a program's output that a hint shows.
const LINES: usize = 5;

fn remembered(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a shell returns for a program that could not be started.
fn not_started(failure: &Failure) -> Option<u8> {
    let Failure::Run {
        reason: RunError::Failed(e),
        ..
    } = failure
    else {
        return None;
    };
    match e.downcast_ref() {
        Some(swell_host::Error::Program { code, .. }) => Some(*code),
        _ => None,
    }
}

/// What the program returned, as a shell would say it.
fn code(exits: &[Exit]) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = exits.last().and_then(|e| e.status);
    match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(1),
            (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(1),
            (None, None) => 1,
        },
        // As timeout(1) has it.
        None => 124,
    }
}

/// Whether what was run stays.
fn kept(args: &UnderArgs) -> bool {
    args.output.is_some() || args.compare.is_some() || args.emulation.record
}

/// Where it is kept; an error where something else is there already, which nobody asked to throw away.
fn directory(args: &UnderArgs, scratch: &Path, plan: &Plan) -> Result<PathBuf, Fail> {
    let own = |dir: &Path| match std::fs::read_dir(dir) {
        Err(_) => true,
        Ok(mut entries) => {
            entries.next().is_none()
                || Manifest::load(dir).is_ok_and(|m| m.hash == plan.hash(EMULATED))
        }
    };
    match &args.output {
        Some(dir) if own(dir) => Ok(dir.clone()),
        Some(dir) if !dir.join(Manifest::FILE).is_file() => Err(Fail::usage(format!(
            "{} is not empty, and holds no run",
            dir.display()
        ))
        .hint("-o DIR with a directory of its own")),
        Some(dir) if args.fresh => Ok(dir.clone()),
        Some(dir) => Err(Fail::usage(format!(
            "{} holds the run of another command",
            dir.display()
        ))
        .hint("--fresh throws it away, -o DIR writes elsewhere")),
        None if kept(args) => {
            let runs = Path::new("runs");
            let numbered = (2..).map(|n| runs.join(format!("under-{n}")));
            let mut all = std::iter::once(runs.join("under")).chain(numbered);
            all.find(|dir| own(dir))
                .ok_or_else(|| Fail::failed("runs/ is full"))
        }
        None => Ok(scratch.join("run")),
    }
}

fn say(args: &UnderArgs, results: &Results, verdict: &Verdict, seen: &Seen) {
    // What the table says, and what is not asked here.
    let untold = [
        "emulated",
        "emulator-stalled",
        "no-reference",
        "few-replications",
    ];
    let mut told = verdict.clone();
    if args.compare.is_none() {
        told.doubts.retain(|d| !untold.contains(&d.code.as_str()));
    }
    if !args.quiet {
        crate::run::doubts(results, &told);
    }
    if args.compare.is_some() {
        for foreground in &verdict.foregrounds {
            out::warnings(&foreground.doubts);
            out::data(&tables::slowdowns(foreground));
            out::data(&tables::answers(foreground));
        }
    } else if !args.quiet {
        // The program's own output has standard output to itself.
        out::say(&tables::under(results, &seen.exits, &seen.conditions));
    }
    unmatched(args, results);
    if let (true, Some(dir)) = (kept(args), results.dir.to_str()) {
        out::say(&format!("kept: {dir}"));
    }
}
