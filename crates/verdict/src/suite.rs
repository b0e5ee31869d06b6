//! The cheapest background with the same effect on an application as learnt traffic.
//!
//! The file lists the candidates, the cheapest first, and names the target that they stand in for (`run.suite`).
//! A candidate is sufficient if every judgement is within the margin of its value beside the target
//! ([`judge::p_insufficient`]). It is insufficient if a difference beyond the margin is shown; these p-values are
//! corrected likewise.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Answer, LEVEL, MARGIN, weighed};
use super::condition::Condition;
use super::judge::{self, Judgement};
use super::loads::Loads;
use super::measures::judgements;
use super::own::Asked;
use super::values::Found;
use super::{drift, validity};
use swell_experiment::store::Results;

/// Which background is enough.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Suite {
    /// The background that the candidates are to stand in for.
    pub target: String,
    /// The candidates, cheapest first.
    pub candidates: Vec<Candidate>,
    /// The first that is sufficient; `None` where none is shown to be.
    pub cheapest: Option<String>,
    /// Whether all that are cheaper are insufficient.
    pub settled: bool,
    /// Replications that would settle the cheaper ones; `None` where nothing is open, or no number of them would.
    pub replications_wanted: Option<usize>,
}

/// One background that might be enough.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// The background.
    pub background: String,
    /// Its kind, as the file writes it.
    pub kind: &'static str,
    /// It in a few words.
    pub what: String,
    /// Whether it is sufficient.
    pub sufficient: Answer,
    /// p-value of "something that is judged is beyond the margin", corrected for all candidates.
    pub p: f64,
    /// What the answer rests on: ratios of the target over this background.
    pub judged: Vec<Judgement>,
    /// Why there is no answer; empty where nothing stands against one.
    pub withheld: Vec<String>,
    /// Why nobody may say that it is sufficient.
    pub open: Vec<String>,
    /// Replications that would tell; `None` where they are enough, or no number of them is.
    pub replications_wanted: Option<usize>,
}

/// Judges all other `conditions` as substitutes for `target`.
pub(super) fn of(
    results: &Results,
    foreground: &str,
    asked: &Asked,
    conditions: &[Condition<'_>],
    target: &Condition<'_>,
) -> Suite {
    let name = target.background.name();
    let own = Loads::of(results, foreground, target);
    let others = conditions.iter().filter(|c| c.background.name() != name);
    let mut candidates: Vec<Candidate> = others
        .map(|c| {
            let mut found = judgements(asked, target, c);
            found
                .open
                .extend(validity::lacking(results, target.background));
            let mut withheld = if c.background.is_none() {
                // No traffic is sufficient exactly if the target does not matter, so the same objections apply.
                found.open.extend(own.gave_way());
                found.open.extend(drift::of([results; 2], [target, c]));
                validity::against(target, c, &own, &found)
            } else {
                let other = Loads::of(results, foreground, c);
                found.open.extend(drift::of([results; 2], [target, c]));
                let mut reasons = own.missed();
                match c.background.is_model() {
                    // A model is scaled to the downstream rate only; its upstream rate may differ from the target's.
                    true => {
                        reasons.extend(validity::in_common(target, c, &found));
                        reasons.extend(other.missed());
                        reasons.extend([&own, &other].iter().flat_map(|l| l.gave_way()));
                    }
                    false => {
                        reasons.extend(validity::at_equal_load(target, c, [&own, &other], &found));
                    }
                }
                reasons.sort();
                reasons.dedup();
                reasons
            };
            withheld.extend(validity::unlike(results, target.background));
            Candidate {
                background: c.background.name().into(),
                kind: c.background.kind(),
                what: c.background.describe(),
                withheld,
                ..Candidate::new(found)
            }
        })
        .collect();
    decide(&mut candidates);
    let first = candidates.iter().position(|c| c.sufficient == Answer::Yes);
    let cheaper = &candidates[..first.unwrap_or(candidates.len())];
    let unclear = || cheaper.iter().filter(|c| c.sufficient == Answer::Unclear);
    let wanted = unclear().map(|c| c.replications_wanted).collect();
    Suite {
        target: name.into(),
        cheapest: first.map(|i| candidates[i].background.clone()),
        settled: unclear().count() == 0,
        replications_wanted: Option::<Vec<usize>>::and_then(wanted, |w| w.into_iter().max()),
        candidates,
    }
}

impl Candidate {
    /// A candidate with its judgements; the other fields are not yet set.
    pub(super) fn new(found: Found) -> Candidate {
        Candidate {
            background: String::new(),
            kind: "",
            what: String::new(),
            sufficient: Answer::Unclear,
            p: 1.0,
            judged: found.judged,
            withheld: Vec::new(),
            open: found.open,
            replications_wanted: None,
        }
    }
}

/// Decides for all `candidates` from their judgements.
pub(super) fn decide(candidates: &mut [Candidate]) {
    judge::correct(candidates.iter_mut().flat_map(|c| &mut c.judged));
    let judged: Vec<&[Judgement]> = candidates.iter().map(|c| &*c.judged).collect();
    let ps = judge::p_insufficient(&judged);
    let count: usize = judged.iter().map(|own| own.len()).sum();
    // Worst case of the correction for a single candidate.
    let alpha = (1.0 - LEVEL) / candidates.len().max(1) as f64;
    for (c, p) in candidates.iter_mut().zip(ps) {
        c.p = p;
        let answer = judge::sufficient(&c.judged, p);
        c.sufficient = weighed(answer.inverted(), &c.withheld, &c.open).inverted();
        if c.sufficient == Answer::Unclear && c.withheld.is_empty() && c.open.is_empty() {
            let now = c.judged.iter().map(|j| j.ratio.replications).max();
            let beyond = c
                .judged
                .iter()
                .filter(|j| j.ratio.value.ln().abs() > MARGIN.ln_1p());
            // One difference shown is enough; that there is none must be shown of everything.
            let one = alpha.min((1.0 - LEVEL) / (2 * count).max(1) as f64);
            let differs = beyond.filter_map(|j| j.to_decide(one)).min();
            let each = c.judged.iter().map(|j| j.to_decide(alpha));
            let equal = || each.collect::<Option<Vec<_>>>()?.into_iter().max();
            c.replications_wanted = differs.or_else(equal).filter(|&n| Some(n) > now);
        }
    }
}
