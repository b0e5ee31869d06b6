//! Doubts: warnings that qualify the verdict.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Severity, Warning};
use swell_stats::{MIN_TAIL_SAMPLES, Replications, quantile_name};

use super::loads::Loads;
use super::values::Asked;
use super::{BackgroundVerdict, Condition, DECISIVE, Judgement, Statistic};
use swell_experiment::kinds::Part;
use swell_experiment::measure::{Measure, Source};
use swell_experiment::observe::Cell;
use swell_experiment::store::{Results, RunWarning};

/// Request times within this share of each other count as constant. Even on an idle link they vary a little: a request
/// may wait for an ACK of the previous one, and hosts may delay a packet by up to one transmission time.
const EQUAL: f64 = 0.02;

/// Whether no sample is censored and all are about equal.
fn constant(times: &Replications) -> bool {
    let values = times.complete_values();
    match (values.first(), values.last()) {
        (Some(first), Some(last)) => {
            times.censored_samples() == 0 && last - first <= EQUAL * last.abs()
        }
        _ => false,
    }
}

/// Codes of doubts, ordered by how much they could change the answer, the most first: invalid runs, wrong loads or
/// measures, too little data. Every code that this crate gives the severity `warning` is listed; others matter less.
const BY_WEIGHT: [&str; 37] = [
    "made-up",
    "no-reference",
    "several-changes",
    "no-common-link",
    "emulator-late",
    "client-failed",
    "input-not-read",
    "left-behind",
    "multicast-lost",
    "output-cut",
    "failed-requests",
    "measure-missing",
    "measure-unread",
    "odd-measures",
    "stretched-measure",
    "no-request",
    "no-connection",
    "rate-missed",
    "matched-apart",
    "copied-apart",
    "slowest-changes",
    "up-exceeds-down",
    "open-loop-loss",
    "narrow-access",
    "stretched",
    "change-after-end",
    "few-replications",
    "phase-effects",
    "unintended-loss",
    "refused-packets",
    "super-packets",
    "short-warm-up",
    "censored-quantile",
    "few-samples",
    "load-yields",
    "many-copies",
    "uneven-seeds",
];

/// Codes of warnings about a model by which its traffic is not that of its trace. Such a warning stands beside the
/// verdict in full, where others about the model itself take less room.
pub const UNLIKE_TRACE: [&str; 5] = [
    "load-left-out",
    "bursts-spread",
    "turns-merged",
    "sessions-in-step",
    "unclear-pauses",
];

/// Sort key of a doubt among others of its severity: those that could change the answer most come first.
pub fn rank(code: &str) -> usize {
    let known = BY_WEIGHT.iter().position(|c| *c == code);
    known.unwrap_or(BY_WEIGHT.len())
}

/// The number of doubts with severity `warning`.
pub(super) fn heavy(doubts: &[Warning]) -> usize {
    doubts
        .iter()
        .filter(|d| d.severity == Severity::Warning)
        .count()
}

/// Doubts about runs, with the runs that have each: those with the same code and message are one doubt.
pub fn of_runs(results: &Results) -> Vec<(&Warning, BTreeSet<&Cell>)> {
    let mut cells: BTreeMap<(&str, &str), (&Warning, BTreeSet<&Cell>)> = BTreeMap::new();
    for RunWarning { cell, warning } in &results.manifest.run_warnings {
        let (_, own) = cells
            .entry((&warning.code, &warning.message))
            .or_insert((warning, BTreeSet::new()));
        // A run may say the same twice, for each of two links for example.
        own.insert(cell);
    }
    cells.into_values().collect()
}

/// Doubts about the experiment and its runs, the most severe first. Each appears once, with the number of runs that
/// it applies to.
pub(super) fn general(results: &Results) -> Vec<Warning> {
    let mut doubts = results.manifest.warnings.clone();
    let runs = results.runs.len();
    for (warning, cells) in of_runs(results) {
        let n = cells.len();
        let message = if n == runs {
            warning.message.clone()
        } else {
            format!("{} ({n} of {runs} runs)", warning.message)
        };
        doubts.push(Warning {
            message,
            ..warning.clone()
        });
    }
    doubts.sort_by_key(|d| (std::cmp::Reverse(d.severity), rank(&d.code)));
    doubts
}

/// Doubts about the figures of one foreground.
pub(super) fn of_foreground(
    results: &Results,
    foreground: &str,
    backgrounds: &[BackgroundVerdict],
    conditions: &[Condition<'_>],
    asked: &Asked,
) -> Vec<Warning> {
    // Too few requests is no doubt about a foreground that makes none.
    let requests = (asked.measures.iter()).any(|m| m.source == Source::RequestTimes);
    let mut doubts: Vec<Warning> = Vec::new();
    for (b, condition) in backgrounds.iter().zip(conditions) {
        let times = Replications::censored(&condition.times);
        let idle = b.load_bps == [0.0; 2];
        let mut few: Vec<String> = Vec::new();
        for p in DECISIVE {
            for doubt in times.doubts(&[p]) {
                match doubt.code.as_str() {
                    // Too few replications concern every condition, so report this once.
                    "few-replications" => {
                        if !doubts.iter().any(|d| d.code == doubt.code) {
                            doubts.push(doubt);
                        }
                    }
                    // More requests with the same constant time would add nothing.
                    "few-samples" if idle && constant(&times) || !requests => {}
                    "few-samples" => few.push(quantile_name(p)),
                    _ => doubts.push(Warning {
                        message: format!(
                            "{foreground} against {}: {}",
                            b.background, doubt.message
                        ),
                        ..doubt
                    }),
                }
            }
        }
        if !few.is_empty() {
            doubts.push(Warning::warning(
                "few-samples",
                format!(
                    "{foreground} against {}: {} requests are few for {}; {MIN_TAIL_SAMPLES} are wanted beyond each",
                    b.background,
                    b.requests,
                    few.join(", "),
                ),
            ));
        }
        doubts.extend(apart(results, foreground, condition.background));
        doubts.extend(never_seen(foreground, b, asked));
        if b.failed > 0 {
            doubts.push(Warning::warning(
                "failed-requests",
                format!(
                    "{foreground} against {}: {} of {} requests failed; they count as slower than every request that finished",
                    b.background, b.failed, b.requests
                ),
            ));
        }
    }
    for b in &results.experiment.background {
        let Some(target) = b.matches() else { continue };
        let loads = |name: &str| {
            let found = conditions.iter().find(|c| c.background.name() == name);
            found.map(|c| Loads::of(results, foreground, c))
        };
        let (Some(own), Some(other)) = (loads(b.name()), loads(target)) else {
            continue;
        };
        if let Some((on, [own, other])) = Loads::yielded([&own, &other]) {
            doubts.push(Warning::note(
                "load-yields",
                format!(
                    "beside {foreground}, {} carried {:.2} Mbit/s and {target} {:.2} Mbit/s {on}, though alone they carry the same: responsive traffic gives way",
                    b.name(),
                    own / 1e6,
                    other / 1e6
                ),
            ));
        }
    }
    doubts
}

/// A doubt about a background without a link in common with the foreground. Other foregrounds that run at the same time
/// may hand on what it does to them.
fn apart(results: &Results, foreground: &str, background: &Part) -> Option<Warning> {
    let file = &results.experiment;
    let mut own = file.foreground.iter().filter(|f| f.name() == foreground);
    let may = file.run.together || background.is_none();
    let apart = !may && own.any(|own| !own.is_none() && !file.meet(own, background));
    let name = background.name();
    apart.then(|| {
        Warning::warning(
            "no-common-link",
            format!(
                "{foreground} against {name}: {name} crosses no link of {foreground}, so it cannot matter there"
            ),
        )
    })
}

/// A note on events, such as stalls, that happened in no run: rare ones may be missed by so few runs.
fn never_seen(foreground: &str, b: &BackgroundVerdict, asked: &Asked) -> Option<Warning> {
    let per_run = |j: &&Judgement| {
        let own = |m: &Measure| m.name == j.measure && m.source == Source::Samples;
        j.never() && j.statistic == Statistic::Mean && asked.measures.iter().any(own)
    };
    let names: Vec<&str> = b
        .judged
        .iter()
        .filter(per_run)
        .map(|j| &*j.measure)
        .collect();
    // With 95 % confidence, what happens in a larger share of the runs would have been seen once.
    let rarest = 1.0 - 0.05f64.powf(1.0 / b.replications.max(1) as f64);
    (!names.is_empty()).then(|| {
        Warning::note(
            "never-seen",
            format!(
                "{foreground} against {}: {} was zero in all {} runs; what happens in fewer than {:.0} % of the runs may not show in so few",
                b.background,
                names.join(", "),
                b.replications,
                100.0 * rarest
            ),
        )
    })
}
