//! `swell under`: a program behind an emulated network with background traffic on it.

mod experiment;
mod line;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use swell_experiment::backend::RunError;
use swell_experiment::run::{Ended, Event, Failure, Options};
use swell_experiment::{Plan, Results, Verdict};
use swell_live::backend::{Emulator, Exit, Settings, Went};
use swell_live::host::Rights;
use swell_live::scratch::Scratch;

use self::line::Line;
use crate::cli::UnderArgs;
use crate::fail::Fail;
use crate::{interrupt, out, report, tables};

/// What is remembered of runs while they go on.
#[derive(Default)]
struct Seen {
    exits: Vec<Exit>,
    went: Vec<Went>,
}

pub(crate) fn under(args: &UnderArgs, rights: Rights, json: bool) -> Result<u8, Fail> {
    let scratch =
        Scratch::new().map_err(|e| Fail::failed(format!("no temporary directory: {e}")))?;
    let background = experiment::background(args, scratch.path())?;
    let text = experiment::text(args, &background)?;
    let here = std::env::current_dir().map_err(Fail::failed)?;
    let plan = Plan::resolve(&text, "swell under", &here).map_err(Fail::usage)?;
    let dir = directory(args, scratch.path());

    let seen = std::sync::Arc::new(Mutex::new(Seen::default()));
    let line = std::sync::Arc::new(Line::new(plan.links().map(|l| l.rate), args.quiet || json));
    let compared = args.compare.is_some();
    let settings = Settings {
        terminal: !compared,
        // A program that has the terminal is not run again by itself.
        repeats: if compared { crate::run::REPEATS } else { 0 },
        packets: args.pcap.clone().filter(|_| !compared),
        watch: Some(Box::new({
            let line = std::sync::Arc::clone(&line);
            move |s| line.show(s)
        })),
        ended: Some(Box::new({
            let seen = std::sync::Arc::clone(&seen);
            move |exit| remembered(&seen).exits.push(*exit)
        })),
        went: Some(Box::new({
            let (seen, line) = (std::sync::Arc::clone(&seen), std::sync::Arc::clone(&line));
            move |went| {
                line.clear();
                remembered(&seen).went.push(went.clone());
            }
        })),
        ..args.emulation.settings()
    };
    let emulator = Emulator::new(rights, settings);
    let options = Options {
        dir: dir.clone(),
        threads: crate::run::parallelism(),
        fresh: true,
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
        Ok(Ended::Complete(results)) => *results,
        Ok(Ended::Interrupted { .. }) => return Err(Fail::interrupted("interrupted")),
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
        out::json(&serde_json::json!({
            "run": kept(args).then_some(&dir), "report": page, "verdict": verdict,
            "emulation": seen.went.iter().map(tables::emulation_json).collect::<Vec<_>>(),
        }));
    } else {
        say(args, &results, &verdict, &seen);
        if let Some(page) = &page {
            out::data(&format!("report: {}", page.display()));
        }
    }
    Ok(if compared {
        crate::run::judged(&verdict, &args.fail_if)
    } else {
        code(&seen.exits)
    })
}

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
        Some(swell_live::host::Error::Program { code, .. }) => Some(*code),
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

fn directory(args: &UnderArgs, scratch: &Path) -> PathBuf {
    match &args.output {
        Some(dir) => dir.clone(),
        None if kept(args) => Path::new("runs").join("under"),
        None => scratch.join("run"),
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
            out::data(&tables::wrapped(&foreground.sentence));
            out::data("");
        }
    } else if !args.quiet {
        // The program's own output has standard output to itself.
        out::say(&tables::under(results, &seen.exits, &seen.went));
    }
    if let (true, Some(dir)) = (kept(args), results.dir.to_str()) {
        out::say(&format!("kept: {dir}"));
    }
}
