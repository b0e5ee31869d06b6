//! `swell under`: a program behind an emulated network with background traffic on it.

pub(crate) mod args;
pub(crate) mod line;
mod shell;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use groundswell::files;
use groundswell::run::Event;
use groundswell::under::{Done, Session};
use swell_base::Code;
use swell_emulate::backend::{Exit, Input, Settings};
use swell_experiment::Results;
use swell_host::Rights;
use swell_host::scratch::Scratch;
use swell_verdict::{Answer, Remedy, Verdict};

use self::line::{Line, rates};
use crate::cli::UnderArgs;
use crate::fail::Fail;
use crate::output::{self, Emulation, Output};
use crate::{control, interrupt, junit, learn, out, report, tables, threshold};

pub(crate) fn under(args: &UnderArgs, rights: Rights, json: bool) -> Result<u8, Fail> {
    let scratch =
        Scratch::new().map_err(|e| Fail::failed(format!("no temporary directory: {e}")))?;
    if args.command.is_empty() && (args.compare.is_some() || !std::io::stdin().is_terminal()) {
        return Err(
            Fail::usage("there is no command, and a shell needs a terminal")
                .hint("swell under BACKGROUND -- COMMAND"),
        );
    }
    // The run makes its own directory.
    let own = |file: &&PathBuf| {
        let dir = args.output.as_deref();
        dir.is_some_and(|dir| files::is_inside(file, dir))
    };
    let printed = junit::is_printed(args.junit.as_deref(), json)?;
    let junit = args.junit.as_ref().filter(|_| !printed);
    let outputs = [junit, args.report.as_ref(), args.pcap.as_ref()];
    let outputs = || outputs.into_iter().flatten();
    files::outputs(
        outputs().filter(|f| !own(f)),
        &[PathBuf::from(&args.link.background)],
    )?;
    for (file, dir) in outputs().zip(args.output.iter().cycle()) {
        files::not_of_run(file, dir)?;
    }
    let client = shell::Client::of(&args.command, &args.link.background, scratch.path())?;
    let trace = [args.link.background.clone().into()];
    let session = learn::with_bar(&trace, |progress| {
        Session::new(args.options(client)?, scratch.path(), progress)
    })?;
    threshold::check(&args.fail_if, &session.plan.file)?;
    let line = Arc::new(Line::new(
        rates(&session.plan),
        args.quiet || json || args.compare.is_none(),
    ));
    let compared = args.compare.is_some();
    let input = Input::of_this_process();
    if compared && !args.quiet {
        // The runs warn, too, but only when all is over.
        out::warnings(input.doubt().as_slice());
    }
    let settings = Settings {
        input,
        packets: args.pcap.clone(),
        // A comparison needs an unchanged network, so `swell set` is not offered.
        control: (!compared)
            .then(|| control::serve(scratch.path(), &args.link.link().title(), true)),
        watch: Some(Box::new({
            let line = Arc::clone(&line);
            move |s| line.show(s)
        })),
        conditions: Some(Box::new({
            let line = Arc::clone(&line);
            move |_| line.clear()
        })),
        ..args.emulation.settings()
    };
    interrupt::wishes();
    let measuring = AtomicBool::new(false);
    let events = |event: Event<'_>| {
        if let Event::Stage {
            name: "measuring",
            runs,
            finished,
        } = event
            && runs > finished
            && !measuring.swap(true, Ordering::Relaxed)
            && !args.quiet
        {
            out::say("measuring the background alone (simulated) ...");
        }
        if let Event::Stage {
            name: "running",
            runs,
            finished,
        } = event
            && finished > 0
            && !args.quiet
        {
            out::say(&format!(
                "{finished} of {runs} runs of the interrupted comparison are there already"
            ));
        }
    };
    let done = session.run(rights, settings, &events, &interrupt::wished);
    line.clear();
    let done = done?;
    let Done {
        results, verdict, ..
    } = &done;
    let page = args
        .report
        .clone()
        .or_else(|| compared.then(|| results.dir.join(report::PAGE)));
    if let Some(page) = &page {
        report::write(results, page)?;
    }
    if json {
        Output::Under {
            run: session.kept.then(|| output::path(&results.dir)),
            report: page.as_ref().map(output::path),
            verdict,
            emulation: done.conditions.iter().map(Emulation::of).collect(),
        }
        .print();
    } else if printed {
        if !args.quiet {
            crate::run::doubts(results, verdict);
        }
    } else {
        say(args, &done);
        if session.kept {
            out::say(&format!("kept: {}", results.dir.display()));
        }
        if let Some(page) = &page {
            out::data(&format!("report: {}", page.display()));
        }
    }
    if let Some(file) = &args.junit {
        junit::write(file, results, verdict, &args.fail_if)?;
    }
    Ok(if compared {
        crate::run::judged(&results.experiment, verdict, &args.fail_if)
    } else {
        code(&done.exits)
    })
}

/// Prints the end of the client's output in its first run if a measure was found in no run.
fn unmatched(args: &UnderArgs, results: &Results) {
    let measures = || results.runs.iter().flat_map(|r| &r.observed.measures);
    let absent = |name: &str| !measures().any(|s| s.measure == name);
    let Some(missing) = args.measure.iter().find(|m| absent(&m.name)) else {
        return;
    };
    let Some(cell) = results.manifest.cells.first() else {
        return;
    };
    let output = results.dir.join(swell_experiment::run::OUTPUT);
    let path = output
        .join(swell_experiment::run::name(0, cell))
        .join("client-0.out");
    out::say(&format!(
        "hint: {} was found in no run; {} ends:\n  {}",
        missing.name,
        path.display(),
        last_lines(&path).join("\n  ")
    ));
}

/// Number of output lines in that hint, and how many bytes at the end of the output are searched for them.
const LINES: usize = 5;
const END: u64 = 16 << 10;

/// The last lines of a file, whatever its bytes are; none if it cannot be read.
fn last_lines(path: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut bytes = Vec::new();
        file.take(END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = lines.iter().rev().take(LINES).rev();
    last.map(|line| (*line).to_owned()).collect()
}

/// The exit code of the program, in the convention of shells.
fn code(exits: &[Exit]) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = exits.last().and_then(|e| e.status);
    match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(1),
            (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(1),
            (None, None) => 1,
        },
        // As timeout(1) does.
        None => 124,
    }
}

/// What to do where an answer is open: more runs of one request each would take long, and no number of requests tells
/// how late a stream comes.
fn remedy(verdict: &Verdict) -> Option<String> {
    let all = verdict.foregrounds.iter().flat_map(|f| &f.backgrounds);
    let open = all.filter(|b| b.matters == Some(Answer::Unclear));
    let known = open.filter_map(|b| Some((b.remedy?, b.replications.max(1))));
    // Those of one program are alike, but for how many requests there were.
    let least = known.min_by_key(|(remedy, _)| match remedy {
        Remedy::Measure => 0,
        Remedy::Requests { seen, .. } => *seen,
        Remedy::Longer => usize::MAX,
    });
    least.map(|(remedy, runs)| hint(remedy, runs))
}

/// The same for a background with so many runs.
fn hint(remedy: Remedy, runs: usize) -> String {
    match remedy {
        Remedy::Measure => "hint: let the program print how late what it gets comes, and name that with --measure; \
                            more runs tell no more"
            .into(),
        Remedy::Longer => format!(
            "hint: in short runs traffic may carry less by chance: let the program run longer, as in a loop, or \
             --compare {}",
            2 * runs
        ),
        Remedy::Requests {
            percentile,
            seen,
            wanted,
        } => format!(
            "hint: {} needs {wanted} requests beside each background, and there were {seen}: let the program run \
             longer, with {} or more in each run, as in a loop, or --compare {}",
            swell_stats::quantile_name(percentile),
            wanted.div_ceil(runs),
            (wanted * runs).div_ceil(seen.max(1))
        ),
    }
}

fn say(args: &UnderArgs, done: &Done) {
    let Done {
        results, verdict, ..
    } = done;
    // Doubts that the table already shows, or that do not apply here.
    let untold = [
        Code::EmulatorStalled,
        Code::NoReference,
        Code::FewReplications,
    ];
    let mut told = verdict.clone();
    if args.compare.is_none() {
        told.doubts.retain(|d| !untold.contains(&d.code));
    }
    if !args.quiet {
        crate::run::doubts(results, &told);
    }
    if args.compare.is_some() {
        crate::run::foregrounds(results, verdict);
        if let Some(hint) = remedy(verdict) {
            out::say(&crate::tables::wrapped(&hint));
        }
    } else if !args.quiet {
        // Standard output belongs to the program.
        out::say(&tables::under::summary(
            results,
            &done.exits,
            &done.conditions,
        ));
    }
    unmatched(args, results);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of one request each run is told how to get a p90.
    #[test]
    fn too_few_requests_have_a_way_out() {
        let said = |percentile, seen, wanted, runs| {
            let remedy = Remedy::Requests {
                percentile,
                seen,
                wanted,
            };
            hint(remedy, runs)
        };
        let p90 = said(0.9, 10, 100, 10);
        assert!(
            p90.contains("with 10 or more in each run, as in a loop, or --compare 100"),
            "{p90}"
        );
        assert!(said(0.9, 40, 100, 10).contains("--compare 25"));
        // No fewer than there were.
        let p95 = said(0.95, 185, 200, 5);
        assert!(p95.contains("p95 needs 200"), "{p95}");
        assert!(
            p95.contains("with 40 or more in each run, as in a loop, or --compare 6"),
            "{p95}"
        );
        assert!(hint(Remedy::Measure, 5).contains("--measure"));
        assert!(hint(Remedy::Longer, 5).contains("run longer, as in a loop, or --compare 10"));
    }

    #[test]
    fn the_last_lines_of_any_output_are_shown() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("client-0.out");
        assert!(last_lines(&path).is_empty());
        std::fs::write(&path, "").unwrap();
        assert!(last_lines(&path).is_empty());
        std::fs::write(&path, b"a\nb\xff\n\n").unwrap();
        assert_eq!(last_lines(&path), ["a", "b\u{fffd}"]);
        std::fs::write(&path, "x".repeat(1 << 20) + "\n1\n2\n3\n4\n5\n").unwrap();
        assert_eq!(last_lines(&path), ["1", "2", "3", "4", "5"]);
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        assert_eq!(last_lines(&path)[0].len() as u64, END);
    }
}
