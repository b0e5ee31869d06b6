//! Whether a parametric background is enough: comparisons of what stands for real traffic with what matches its rate.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use swell_experiment::store::Results;
use swell_stats::Estimate;

use super::answer::{Answer, PERCENTILES, any, weighed};
use super::condition::{Condition, slowdown};
use super::judge::{self, Judgement};
use super::loads::Loads;
use super::measures::judgements;
use super::own::Asked;
#[cfg(doc)]
use super::ratios::Known;
use super::{drift, validity};

/// Traffic that stands for real one against a parametric background of the same mean rate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The background that stands for real traffic: learnt, sessions, an imitation or a replay.
    pub learnt: String,
    /// The parametric one.
    pub parametric: String,
    /// Its kind, as the file writes it.
    pub kind: &'static str,
    /// Percentile behind learnt traffic over percentile behind the parametric one, by
    /// [`PERCENTILES`]; `None` where it cannot be told. [`Known`] says how much of each is known.
    pub ratios: Vec<(f64, Option<Estimate>)>,
    /// What the answer rests on.
    pub judged: Vec<Judgement>,
    /// Why the two cannot be compared; empty where they can.
    pub withheld: Vec<String>,
    /// Why nobody may say that the parametric one is enough.
    pub open: Vec<String>,
    /// Whether the parametric one is enough: everything judged within the margin.
    pub enough: Answer,
}

/// Compares what stands for real traffic with a parametric background of the same mean rate.
pub(super) fn compare(
    results: &Results,
    foreground: &str,
    asked: &Asked,
    learnt: &Condition<'_>,
    parametric: &Condition<'_>,
) -> Comparison {
    let ratio = |p: f64| (p, slowdown(learnt, parametric, p, asked.end));
    let mut found = judgements(asked, learnt, parametric);
    let [a, b] = [learnt, parametric].map(|c| Loads::of(results, foreground, c));
    found
        .open
        .extend(drift::of([results; 2], [learnt, parametric]));
    (found.open).extend(validity::lacking(results, learnt.background));
    let mut withheld = validity::at_equal_load(learnt, parametric, [&a, &b], &found);
    withheld.extend(validity::unlike(results, learnt.background));
    Comparison {
        learnt: learnt.background.name().into(),
        parametric: parametric.background.name().into(),
        kind: parametric.background.kind(),
        ratios: PERCENTILES.into_iter().map(ratio).collect(),
        withheld,
        judged: found.judged,
        open: found.open,
        enough: Answer::Unclear,
    }
}

/// Decides for all `comparisons` from their judgements. Any of the parametric backgrounds that match the same learnt
/// one may be called enough, so they are alternatives and corrected together, like the candidates of a suite.
pub(super) fn decide(comparisons: &mut [Comparison]) {
    judge::correct(comparisons.iter_mut().flat_map(|c| &mut c.judged));
    let learnt: BTreeSet<String> = comparisons.iter().map(|c| c.learnt.clone()).collect();
    for name in learnt {
        let mut own: Vec<&mut Comparison> = comparisons
            .iter_mut()
            .filter(|c| c.learnt == name)
            .collect();
        let judged: Vec<&[Judgement]> = own.iter().map(|c| &*c.judged).collect();
        let ps = judge::p_insufficient(&judged);
        for (c, p) in own.iter_mut().zip(ps) {
            let lacking = judge::sufficient(&c.judged, p).inverted();
            c.enough = weighed(lacking, &c.withheld, &c.open).inverted();
        }
    }
}

/// Whether every learnt background has a parametric one that is enough for it.
pub(super) fn enough(comparisons: &[Comparison]) -> Option<Answer> {
    let mut learnt: Vec<&str> = comparisons.iter().map(|c| &*c.learnt).collect();
    learnt.dedup();
    let of = |name: &str| {
        any(comparisons
            .iter()
            .filter(|c| c.learnt == name)
            .map(|c| c.enough))
    };
    // "Enough for all" is the opposite of "lacking for any".
    let lacking = learnt.into_iter().map(|name| of(name).inverted());
    (!comparisons.is_empty()).then(|| any(lacking).inverted())
}
