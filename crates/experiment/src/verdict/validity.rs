//! Whether the runs support an answer at all.

use swell_stats::MIN_REPLICATIONS;

use super::judge::{Judgement, Statistic};
use super::{Answer, Condition, DECISIVE, values};
use crate::observe::Outcome;
use crate::store::{Results, RunResult};

/// The code of the warning about runs that lateness could have changed: such runs decide nothing.
const LATE: &str = "emulator-late";

/// A load off by more than this is not an equal one.
pub(super) const UNEQUAL: f64 = 0.10;

/// A load off by more than this is another experiment.
const MISSED: f64 = 0.25;

/// A program of whose requests more than this share fail without background does not work.
const BROKEN: f64 = 0.10;

/// The runs of `foreground` against `background` by replication; `None` for those that were late.
pub(super) fn runs<'r>(
    results: &'r Results,
    foreground: &'r str,
    background: &'r str,
) -> Vec<Option<&'r RunResult>> {
    results
        .of(foreground, background)
        .map(|run| {
            let late = results
                .manifest
                .run_warnings
                .iter()
                .any(|w| w.cell == run.cell && w.warning.code == LATE);
            (!late).then_some(run)
        })
        .collect()
}

/// An answer that nothing stands against, or none.
pub(super) fn weighed(answer: Answer, withheld: &[String]) -> Answer {
    if withheld.is_empty() {
        answer
    } else {
        Answer::Unclear
    }
}

/// What stands against an answer about `with` beside `alone`.
pub(super) fn against(
    results: &Results,
    with: &Condition<'_>,
    alone: &Condition<'_>,
    judged: &[Judgement],
) -> Vec<String> {
    let mut reasons = in_common(with, alone, judged);
    let failed = share_failed(alone);
    if failed > BROKEN {
        reasons.push(format!(
            "{:.0} % of the requests fail without background traffic",
            failed * 100.0
        ));
    }
    let name = with.background.name();
    if let Some((requested, carried)) = missed(results, name, MISSED) {
        reasons.push(format!(
            "{:.2} Mbit/s of {name} were requested and {:.2} carried",
            requested / 1e6,
            carried / 1e6
        ));
    }
    reasons
}

/// What stands against comparing `learnt` and `parametric` at equal load.
pub(super) fn at_equal_load(
    results: &Results,
    learnt: &Condition<'_>,
    parametric: &Condition<'_>,
    judged: &[Judgement],
) -> Vec<String> {
    let mut reasons = in_common(learnt, parametric, judged);
    let alone = |c: &Condition<'_>| {
        let measured = results.manifest.measured.get(c.background.name());
        measured.map(|m| m.down_bps)
    };
    if let (Some(a), Some(b)) = (alone(learnt), alone(parametric))
        && (a - b).abs() > UNEQUAL * a.max(b)
    {
        reasons.push(format!(
            "their loads differ: {:.2} and {:.2} Mbit/s carried when alone",
            a / 1e6,
            b / 1e6
        ));
    }
    reasons
}

/// The requested and the carried rate of a background that missed what was requested by more than `share`, bit/s.
fn missed(results: &Results, background: &str, share: f64) -> Option<(f64, f64)> {
    let measured = results.manifest.measured.get(background)?;
    let requested = measured.target_bps?;
    let off = (measured.down_bps - requested).abs();
    (off > share * requested).then_some((requested, measured.down_bps))
}

/// Whether the application does not work without background traffic; where there is no `reference`, at all.
pub(super) fn application_failed(reference: Option<&Condition<'_>>, all: &[Condition<'_>]) -> bool {
    match reference {
        Some(alone) => share_failed(alone) > BROKEN,
        None => !all.is_empty() && all.iter().all(|c| share_failed(c) == 1.0),
    }
}

fn share_failed(of: &Condition<'_>) -> f64 {
    let requests = || of.runs.iter().flatten().flat_map(|r| &r.observed.requests);
    let failed = requests().filter(|r| r.outcome == Outcome::Failed).count();
    failed as f64 / requests().count().max(1) as f64
}

fn in_common(with: &Condition<'_>, without: &Condition<'_>, judged: &[Judgement]) -> Vec<String> {
    let mut reasons = Vec::new();
    let usable = values::pairs(with, without).len();
    let late = with.runs.len().max(without.runs.len()) - usable;
    if late > 0 && usable < MIN_REPLICATIONS {
        reasons.push(format!(
            "{late} of {} runs were late, and {usable} are too few",
            usable + late
        ));
    } else if judged.is_empty() {
        reasons.push("nothing was measured".into());
    }
    reasons
}

/// The largest percentile of request times that was judged, if not all decisive ones were.
pub(super) fn judged_up_to(judged: &[Judgement]) -> Option<f64> {
    let percentiles = judged.iter().filter_map(|j| match j.statistic {
        Statistic::Percentile(p) => Some(p),
        Statistic::Mean => None,
    });
    let largest = percentiles.max_by(f64::total_cmp)?;
    DECISIVE.iter().any(|&p| p > largest).then_some(largest)
}
