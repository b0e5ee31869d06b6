//! What is known of thresholds before anything runs.

use swell_experiment::file::{File, Foreground, suggest};
use swell_experiment::measure::COMPLETION_TIME;

use super::{Of, Threshold, possible};
use crate::fail::Fail;

/// Checks that thresholds name foregrounds and backgrounds of `experiment`, and measures that they may have. A threshold
/// on nothing would fail only after all runs.
pub(crate) fn check(thresholds: &[Threshold], experiment: &File) -> Result<(), Fail> {
    let foregrounds: Vec<&str> = experiment.foreground.iter().map(|f| f.name()).collect();
    let backgrounds: Vec<&str> = experiment.background.iter().map(|b| b.name()).collect();
    let both: Vec<String> = (foregrounds.iter())
        .flat_map(|f| backgrounds.iter().map(move |b| format!("{f}:{b}")))
        .collect();
    let mut known = [backgrounds, foregrounds.clone()].concat();
    for threshold in thresholds {
        let Some(name) = threshold.name.as_deref() else {
            has_measure(threshold, experiment)?;
            continue;
        };
        let own = name.rsplit_once(':').map_or(name, |pair| pair.1);
        let reference = experiment.background.iter().find(|b| b.is_none());
        let is_reference = reference.is_some_and(|b| b.name() == own);
        if is_reference && !foregrounds.contains(&name) && !matches!(threshold.of, Of::Seconds(_)) {
            let message = format!(
                "--fail-if '{}': `{own}` is what the others are compared with",
                threshold.text
            );
            let hint = match &threshold.of {
                Of::Slowdown(_) => "name another background, or take its .seconds",
                Of::Ratio(measure, _) | Of::Value(measure, _)
                    if *measure == COMPLETION_TIME.name =>
                {
                    "name another background; of this one p5, p50, p90 and p95 are known, in .seconds"
                }
                _ => "name another background",
            };
            return Err(Fail::usage(message).hint(hint));
        }
        if known.contains(&name) || both.iter().any(|pair| pair == name) {
            has_measure(threshold, experiment)?;
            continue;
        }
        // Pairs are candidates for a name that is a pair; otherwise they would only lengthen the list.
        if name.contains(':') {
            known = both.iter().map(String::as_str).collect();
        }
        let message = format!(
            "--fail-if '{}': no foreground or background is called `{name}`",
            threshold.text
        );
        return Err(Fail::usage(message).hint(suggest(name, &known, "there are")));
    }
    Ok(())
}

/// Checks that a foreground which the threshold may be about can have its measure, and that a slowdown has a reference.
fn has_measure(threshold: &Threshold, experiment: &File) -> Result<(), Fail> {
    let fails = |why: String| Fail::usage(format!("--fail-if '{}': {why}", threshold.text));
    // Only of request times the verdict has values where nothing is compared.
    let compares = !matches!(threshold.of, Of::Seconds(_));
    if compares && !experiment.background.iter().any(|b| b.is_none()) {
        let why = "there is nothing to compare with: the experiment has no background of kind none";
        let hint = match &threshold.of {
            Of::Value(name, Some(_)) if *name == COMPLETION_TIME.name => {
                "add one, or take p5, p50, p90 or p95, in .seconds"
            }
            _ => "add one",
        };
        return Err(fails(why.into()).hint(hint));
    }
    let is_background = |name: &str| experiment.background.iter().any(|b| b.name() == name);
    let named = threshold
        .name
        .as_deref()
        .filter(|name| !is_background(name));
    let concerned = |f: &&Foreground| {
        named.is_none_or(|name| {
            let rest = name.strip_prefix(f.name());
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix(':').is_some_and(is_background)
            })
        })
    };
    let own: Vec<&Foreground> = experiment.foreground.iter().filter(concerned).collect();
    if own.iter().any(|f| threshold.may_be_of(f)) {
        return Ok(());
    }
    let mut measures: Vec<String> = Vec::new();
    for measure in own.iter().flat_map(|f| possible(f)) {
        if !measures.iter().any(|m| *m == measure.name) {
            measures.push(measure.name.into());
        }
    }
    let known: Vec<&str> = measures.iter().map(String::as_str).collect();
    let whose = match own[..] {
        [one] => one.name(),
        _ => "no foreground",
    };
    let (not, has) = match own[..] {
        [_] => ("no ", "it has"),
        _ => ("", "there are"),
    };
    Err(match &threshold.of {
        Of::Slowdown(_) | Of::Seconds(_) => {
            let others = match known[..] {
                [] => "it has no measures".into(),
                _ => format!(
                    "{has} {}: write {1}.ratio or {1}.value",
                    known.join(", "),
                    known[0]
                ),
            };
            fails(format!("{whose} has {not}request times")).hint(others)
        }
        Of::Ratio(name, _) | Of::Value(name, _) => {
            fails(format!("{whose} has {not}measure `{name}`")).hint(suggest(name, &known, has))
        }
    })
}
