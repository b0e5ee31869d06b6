//! What to doubt.

use std::collections::BTreeMap;

use swell_base::{Severity, Warning};
use swell_stats::Replications;

use super::{BackgroundVerdict, DECISIVE};
use crate::store::Results;

/// A background whose load beside the foreground is off its matched one's by more than this is
/// no longer of equal load.
const UNEQUAL: f64 = 0.10;

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
    doubts.sort_by_key(|d| std::cmp::Reverse(d.severity));
    doubts
}

/// Doubts about the figures of one foreground.
pub(super) fn of_foreground(
    results: &Results,
    foreground: &str,
    backgrounds: &[BackgroundVerdict],
    times: &[Replications],
) -> Vec<Warning> {
    let mut doubts: Vec<Warning> = Vec::new();
    for (b, behind) in backgrounds.iter().zip(times) {
        for doubt in behind.doubts(&DECISIVE) {
            // Too few replications are too few everywhere: say it once.
            if doubt.code == "few-replications" {
                if !doubts.iter().any(|d| d.code == doubt.code) {
                    doubts.push(doubt);
                }
                continue;
            }
            doubts.push(Warning {
                message: format!("{foreground} against {}: {}", b.background, doubt.message),
                ..doubt
            });
        }
        if b.failed > 0 {
            doubts.push(Warning::warning(
                "failed-requests",
                format!(
                    "{foreground} against {}: {} of {} requests failed; they count as slower than all the time they were given",
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
        if (own - other).abs() > UNEQUAL * other.max(1.0) {
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
