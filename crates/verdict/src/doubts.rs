//! Doubts: warnings that qualify the verdict.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Code, Severity, Warning};
use swell_stats::{MIN_REPLICATIONS, MIN_TAIL_SAMPLES, Replications, quantile_name};

use super::answer::DECISIVE;
use super::condition::Condition;
use super::foreground::BackgroundVerdict;
use super::judge::{Judgement, Statistic};
use super::loads::Loads;
use super::own::Asked;
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

/// Codes of warnings about a model by which its traffic is not that of its trace. Such a warning stands beside the
/// verdict in full, where others about the model itself take less room.
pub const UNLIKE_TRACE: [Code; 11] = [
    Code::LoadLeftOut,
    Code::BurstsSpread,
    Code::TurnsMerged,
    Code::SessionsInStep,
    Code::UnclearPauses,
    Code::LinkRate,
    Code::LinkLosses,
    Code::LinkDelay,
    Code::PacedSenders,
    Code::UdpOpenLoop,
    Code::NoRtt,
];

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
            .entry((warning.code.as_str(), &warning.message))
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
    doubts.sort_by_key(|d| (std::cmp::Reverse(d.severity), d.code.rank()));
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
    let mut doubts: Vec<Warning> = few_replications(backgrounds, conditions)
        .into_iter()
        .collect();
    let mut of_backgrounds: Vec<(&str, Warning)> = Vec::new();
    for (b, condition) in backgrounds.iter().zip(conditions) {
        let times = Replications::censored(&condition.times);
        let idle = b.load_bps == [0.0; 2];
        let mut own: Vec<Warning> = Vec::new();
        let (mut few, mut unknown): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for p in DECISIVE {
            for doubt in times.doubts(&[p]) {
                match doubt.code {
                    Code::FewReplications => {}
                    // More requests with the same constant time would add nothing.
                    Code::FewSamples if idle && constant(&times) || !requests => {}
                    Code::FewSamples => few.push(quantile_name(p)),
                    Code::CensoredQuantile => unknown.push(quantile_name(p)),
                    _ => own.push(doubt),
                }
            }
        }
        if !few.is_empty() {
            own.push(Warning::warning(
                Code::FewSamples,
                format!(
                    "{} requests are few for {}; {MIN_TAIL_SAMPLES} are wanted beyond each",
                    b.requests,
                    few.join(", "),
                ),
            ));
        }
        if !unknown.is_empty() {
            own.push(Warning::warning(
                Code::CensoredQuantile,
                format!(
                    "{}: not identifiable, {} of {} requests were unfinished; a longer run helps where its end cut them off",
                    unknown.join(", "),
                    times.censored_samples(),
                    times.samples(),
                ),
            ));
        }
        own.extend(never_seen(b, asked));
        if b.failed > 0 {
            own.push(Warning::warning(
                Code::FailedRequests,
                format!(
                    "{} of {} requests failed; they count as slower than every request that finished",
                    b.failed, b.requests
                ),
            ));
        }
        of_backgrounds.extend(own.into_iter().map(|w| (&*b.background, w)));
        doubts.extend(apart(results, foreground, condition.background));
    }
    doubts.extend(joined(foreground, &of_backgrounds));
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
                Code::LoadYields,
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

/// The doubt that there are too few replications, with the number on which the answers rest.
fn few_replications(
    backgrounds: &[BackgroundVerdict],
    conditions: &[Condition<'_>],
) -> Option<Warning> {
    let both = backgrounds.iter().zip(conditions);
    let (b, condition) = both.min_by_key(|(b, _)| b.replications)?;
    let (n, all) = (b.replications, condition.runs.len());
    let whose = match n < all {
        true => format!("{n} of {all} replications with {}", b.background),
        false => format!("{n} replication{}", if n == 1 { "" } else { "s" }),
    };
    (n < MIN_REPLICATIONS).then(|| {
        Warning::warning(
            Code::FewReplications,
            format!("{whose}: intervals need at least {MIN_REPLICATIONS}; run more seeds"),
        )
    })
}

/// What is said of backgrounds, with their names.
type Parts<'a> = Vec<(&'a str, Vec<&'a str>)>;

/// One doubt for each code: what is the same against several backgrounds is said once, with their names.
fn joined(foreground: &str, found: &[(&str, Warning)]) -> Vec<Warning> {
    let mut all: Vec<(&Warning, Parts<'_>)> = Vec::new();
    for (background, doubt) in found {
        let at = all.iter().position(|(first, _)| first.code == doubt.code);
        let at = at.unwrap_or_else(|| {
            all.push((doubt, Vec::new()));
            all.len() - 1
        });
        let parts = &mut all[at].1;
        match parts.iter_mut().find(|(what, _)| *what == doubt.message) {
            Some((_, names)) => names.push(background),
            None => parts.push((&doubt.message, vec![background])),
        }
    }
    let one = |(first, parts): (&Warning, Parts<'_>)| {
        // What all of them end with is said once, at the end.
        let end = first
            .message
            .split_once("; ")
            .map(|(_, end)| format!("; {end}"));
        let end = end.filter(|end| parts.iter().all(|(what, _)| what.ends_with(end.as_str())));
        let end = end.unwrap_or_default();
        let parts: Vec<String> = parts
            .iter()
            .map(|(what, names)| {
                let what = what.strip_suffix(end.as_str()).unwrap_or(what);
                format!("against {}: {what}", names.join(", "))
            })
            .collect();
        Warning {
            message: format!("{foreground} {}{end}", parts.join("; ")),
            ..first.clone()
        }
    };
    all.into_iter().map(one).collect()
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
            Code::NoCommonLink,
            format!(
                "{foreground} against {name}: {name} crosses no link of {foreground}, so it cannot matter there"
            ),
        )
    })
}

/// A note on events, such as stalls, that happened in no run: rare ones may be missed by so few runs.
fn never_seen(b: &BackgroundVerdict, asked: &Asked) -> Option<Warning> {
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
            Code::NeverSeen,
            format!(
                "{} was zero in all {} runs; what happens in fewer than {:.0} % of the runs may not show in so few",
                names.join(", "),
                b.replications,
                100.0 * rarest
            ),
        )
    })
}
