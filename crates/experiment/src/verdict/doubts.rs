//! What to doubt.

use std::collections::BTreeMap;

use swell_base::{Severity, Warning};
use swell_stats::{MIN_TAIL_SAMPLES, Replications};

use super::values::Asked;
use super::{BackgroundVerdict, Condition, DECISIVE};
use crate::measure::Source;
use crate::store::Results;

/// Times nearer to each other than this share do not vary: a request on an idle link may wait for an acknowledgement of the one
/// before, and hosts take up to a transmission before they send.
const EQUAL: f64 = 0.02;

/// Whether all samples are there and equal.
fn constant(times: &Replications) -> bool {
    let values = times.complete_values();
    match (values.first(), values.last()) {
        (Some(first), Some(last)) => {
            times.censored_samples() == 0 && last - first <= EQUAL * last.abs()
        }
        _ => false,
    }
}

/// Doubts by what they could change, the most first: runs that decide nothing, loads and measures that are not what they
/// should be, too little to conclude from. What is not named here changes less.
const BY_WEIGHT: [&str; 21] = [
    "no-reference",
    "emulator-late",
    "client-failed",
    "failed-requests",
    "measure-missing",
    "measure-unread",
    "stretched-measure",
    "no-request",
    "no-connection",
    "rate-missed",
    "up-exceeds-down",
    "few-replications",
    "phase-effects",
    "unintended-loss",
    "refused-packets",
    "super-packets",
    "censored-quantile",
    "few-samples",
    "load-yields",
    "many-copies",
    "uneven-seeds",
];

/// The place of a doubt among others of its severity: those that could change the answer most come first.
pub fn rank(code: &str) -> usize {
    let known = BY_WEIGHT.iter().position(|c| *c == code);
    known.unwrap_or(BY_WEIGHT.len())
}

/// How many weigh `warning`.
pub(super) fn heavy(doubts: &[Warning]) -> usize {
    doubts
        .iter()
        .filter(|d| d.severity == Severity::Warning)
        .count()
}

/// Doubts about the experiment and its runs: each once, with the number of runs it holds for;
/// heavy ones first.
pub(super) fn general(results: &Results) -> Vec<Warning> {
    let mut doubts = results.manifest.warnings.clone();
    let mut in_runs: BTreeMap<(&str, &str), (usize, &Warning)> = BTreeMap::new();
    for doubt in &results.manifest.run_warnings {
        let w = &doubt.warning;
        in_runs.entry((&w.code, &w.message)).or_insert((0, w)).0 += 1;
    }
    let runs = results.runs.len();
    for (n, warning) in in_runs.into_values() {
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
    // What makes no requests is not short of them.
    let requests = (asked.measures.iter()).any(|m| m.source == Source::RequestTimes);
    let mut doubts: Vec<Warning> = Vec::new();
    for (b, condition) in backgrounds.iter().zip(conditions) {
        let times = Replications::censored(&condition.times);
        let idle = b.load_bps == [0.0; 2];
        let mut few: Vec<String> = Vec::new();
        for p in DECISIVE {
            for doubt in times.doubts(&[p]) {
                match doubt.code.as_str() {
                    // Too few replications are too few everywhere: say it once.
                    "few-replications" => {
                        if !doubts.iter().any(|d| d.code == doubt.code) {
                            doubts.push(doubt);
                        }
                    }
                    // More of the same would say nothing new.
                    "few-samples" if idle && constant(&times) || !requests => {}
                    "few-samples" => few.push(format!("p{:.0}", p * 100.0)),
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
        let load = |name: &str| {
            let found = backgrounds.iter().find(|x| x.background == name);
            found.map_or(0.0, |x| x.load_bps[1])
        };
        let (own, other) = (load(b.name()), load(target));
        if (own - other).abs() > super::loads::UNEQUAL * other.max(1.0) {
            doubts.push(Warning::note(
                "load-yields",
                format!(
                    "beside {foreground}, {} carried {:.2} Mbit/s and {target} {:.2} Mbit/s, though alone they carry the same: responsive traffic gives way",
                    b.name(),
                    own / 1e6,
                    other / 1e6
                ),
            ));
        }
    }
    doubts
}
