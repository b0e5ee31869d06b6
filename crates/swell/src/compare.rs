//! `swell compare`.

use std::path::{Path, PathBuf};

use groundswell::files;
use swell_experiment::Results;
use swell_experiment::file::suggest;
use swell_study::file::quoted;
use swell_verdict::{Answer, Difference, RunComparison};

use crate::cli::CompareArgs;
use crate::fail::Fail;
use crate::output::{self, Output};
use crate::{interrupt, out, tables, threshold};

pub(crate) fn compare(args: &CompareArgs, json: bool) -> Result<u8, Fail> {
    files::outputs(&args.html, &[])?;
    let mut runs: Vec<(String, Results)> = Vec::new();
    for (dir, name) in args.runs.iter().zip(names(&args.runs)) {
        runs.push((name, groundswell::show::results(dir)?));
    }
    let (first, base) = &runs[0];
    let mut comparisons = Vec::new();
    for (name, other) in &runs[1..] {
        let comparison = RunComparison::of([base, other], [first, name]);
        check(&comparison, args.by.as_deref())?;
        comparisons.push(comparison);
    }
    if let Some(page) = &args.html {
        let command = command(args);
        let html = swell_report::comparison_html(&runs, &comparisons, &command);
        interrupt::write(page, html.as_bytes())?;
    }
    if json {
        Output::Compare {
            runs: args.runs.iter().map(output::path).collect(),
            report: args.html.as_ref().map(output::path),
            comparisons: &comparisons,
        }
        .print();
    } else {
        for comparison in &comparisons {
            out::warnings(&comparison.doubts);
            out::data(&tables::compare::comparison(comparison));
        }
        if let Some(page) = &args.html {
            out::data(&format!("report: {}", page.display()));
        }
    }
    let open = comparisons.iter().any(|c| c.differs == Answer::Unclear);
    Ok(match open {
        true => threshold::NOT_SETTLED,
        false => threshold::ANSWERED,
    })
}

/// Checks that the runs are comparable, and differ only in what `by` names.
fn check(c: &RunComparison, by: Option<&str>) -> Result<(), Fail> {
    let (first, second) = (&c.first, &c.second);
    if c.conditions.is_empty() {
        return Err(Fail::usage(format!(
            "{first} and {second} have no foreground beside the same background in common"
        ))
        .hint("what is compared has the same names in both"));
    }
    let Some(by) = by else { return Ok(()) };
    // Only seeds in common make pairs, so these are no difference between experiments.
    if ["run.seed", "run.replications"].contains(&by) {
        return Err(Fail::usage(format!(
            "--by {by}: replications are paired by their seeds, so it is not compared"
        ))
        .hint("leave out --by; `swell show A B` judges runs of other seeds together"));
    }
    let keys: Vec<&str> = c.changes.iter().map(|change| &*change.key).collect();
    if by.is_empty() {
        return Err(Fail::usage("--by is empty: it names a key").hint(suggest(
            by,
            &keys,
            "they differ in",
        )));
    }
    if c.beside(by).count() == keys.len() {
        let same = format!("{first} and {second} do not differ in {by}");
        let all: Vec<String> = c.changes.iter().map(change).collect();
        return Err(match keys[..] {
            [] => Fail::usage(same),
            _ => Fail::usage(format!("{same}, but in {}", all.join("; "))).hint(suggest(
                by,
                &keys,
                "they differ in",
            )),
        });
    }
    let beside: Vec<String> = c.beside(by).map(change).collect();
    if !beside.is_empty() {
        return Err(Fail::usage(format!(
            "{first} and {second} differ in more than {by}: {}",
            beside.join("; ")
        ))
        .hint("without --by they are compared all the same"));
    }
    Ok(())
}

/// A difference in the form `network.rate (10Mbit, 20Mbit)`.
fn change(d: &Difference) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
    format!("{} ({}, {})", d.key, text(&d.first), text(&d.second))
}

/// The names of runs: the last part of their paths if these differ, otherwise the whole paths.
fn names(runs: &[PathBuf]) -> Vec<String> {
    let last = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let short: Option<Vec<String>> = runs.iter().map(last).collect();
    let unique = |names: &Vec<String>| {
        names
            .iter()
            .enumerate()
            .all(|(i, n)| !names[..i].contains(n))
    };
    short.filter(unique).unwrap_or_else(|| {
        let whole = runs.iter().map(|path| path.display().to_string());
        whole.collect()
    })
}

/// The command that recreates the page.
fn command(args: &CompareArgs) -> String {
    let mut command = "swell compare".to_owned();
    for dir in &args.runs {
        command += &format!(" {}", quoted(dir));
    }
    if let Some(by) = &args.by {
        command += &format!(" --by {by}");
    }
    if let Some(page) = &args.html {
        command += &format!(" --html {}", quoted(Path::new(page)));
    }
    command
}
