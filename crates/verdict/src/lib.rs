//! The verdict on the runs: whether background traffic matters to an application, whether a parametric background
//! is enough, and how sure these answers are.
//!
//! The unit of independence is the replication. Each run yields percentiles of every measure ([`swell_experiment::measure`]).
//! The verdict compares them with and without a background by their ratio, paired by replication
//! ([`swell_stats::PairedRatio`]). Unfinished requests are right-censored; failed requests count as slower than
//! every other request.
//!
//! * *Matters*: a ratio lies beyond the margin, for the worse or the better, at the 5 % level after Hommel's correction
//!   over all judgements of a foreground.
//! * *Does not matter*: the 90 % intervals of all judgements lie within the margin. This also needs five replications
//!   or more, every requested measure judged, a background at the requested load ([`loads`]) and no drift
//!   ([`drift`]). Either answer needs credible runs ([`validity`]).
//! * *Unclear* otherwise. A wrong "does not matter" is the worst possible answer, so the verdict prefers "unclear".
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use swell_experiment::run::{self, RunOutcome};
//! use swell_experiment::{Plan, Simulator};
//! use swell_verdict::{Answer, Verdict};
//!
//! let text = r#"
//!     name = "short"
//!     network = { rate = "10Mbit", rtt = "20ms" }
//!     foreground = [{ name = "web", kind = "web", object = "10kB", think = "100ms" }]
//!     background = [
//!         { name = "none", kind = "none" },
//!         { name = "poisson", kind = "poisson", rate = "5Mbit" },
//!     ]
//!     run = { replications = 2, warmup = "1s", duration = "3s", seed = 1 }
//! "#;
//! let plan = Plan::resolve(text, "short.toml", Path::new("."))?;
//! let dir = tempfile::tempdir()?;
//! let options = run::Options { dir: dir.path().join("short"), threads: 2, fresh: false, shard: None };
//! let RunOutcome::Complete(results) = run::run(&plan, &Simulator, &options, &|_| (), &|| false)? else {
//!     unreachable!("nothing interrupts it");
//! };
//! // Two replications never show that traffic does not matter: the verdict says so.
//! let verdict = Verdict::of(&results);
//! assert_ne!(verdict.foregrounds[0].matters, Answer::No);
//! println!("{}", verdict.foregrounds[0].sentence);
//! # Ok(())
//! # }
//! ```

mod answer;
mod compare;
mod condition;
mod counted;
mod doubts;
mod drift;
mod foreground;
mod gaps;
mod judge;
mod loads;
mod measures;
mod numbers;
mod own;
mod packets;
mod parametric;
mod rare;
mod ratios;
mod requests;
mod samples;
mod side;
mod sizes;
mod streams;
mod suite;
mod validity;
mod values;
mod words;

use schemars::JsonSchema;
use serde::Serialize;
use swell_base::{Code, Warning};
use swell_stats::Bootstrap;

use swell_experiment::made_up::MadeUp;
use swell_experiment::store::Results;

pub use answer::{Answer, LEVEL, MARGIN, PERCENTILES};
use answer::{any, weighed};
pub use compare::{ConditionComparison, Difference, RunComparison};
use condition::Condition;
pub use condition::{FEW, request_observations, valid_runs};
pub use doubts::{UNLIKE_TRACE, of_runs as doubts_of_runs};
pub use foreground::{BackgroundVerdict, ForegroundVerdict, Quantile, Sureness};
use foreground::{background, sureness};
pub use judge::{Judgement, Statistic};
use measures::judgements;
use own::Asked;
pub use parametric::Comparison;
pub use ratios::Known;
pub use side::Paragraph;
pub use suite::{Candidate, Suite};
pub use values::Remedy;

/// The answers, one foreground after the other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// One per foreground, in the order of the file.
    pub foregrounds: Vec<ForegroundVerdict>,
    /// What to doubt about the experiment as a whole and its runs; each doubt once.
    pub doubts: Vec<Warning>,
    /// What counts as equal for practical purposes: [`MARGIN`].
    pub margin: f64,
}

impl Verdict {
    /// Computes the verdict on `results`.
    pub fn of(results: &Results) -> Verdict {
        let doubts = doubts::general(results);
        let heavy = doubts::heavy(&doubts);
        Verdict {
            foregrounds: results
                .foregrounds()
                .into_iter()
                .map(|f| foreground(results, f, heavy))
                .collect(),
            doubts,
            margin: MARGIN,
        }
    }
}

fn foreground<'r>(results: &'r Results, name: &'r str, heavy: usize) -> ForegroundVerdict {
    // A fixed seed makes the intervals reproducible.
    let bootstrap = Bootstrap::seeded(results.experiment.run.seed);
    let listed = &results.experiment.background;
    let conditions: Vec<Condition<'r>> = listed
        .iter()
        .map(|background| Condition::new(results, name, background, &bootstrap))
        .collect();
    let file = &results.experiment;
    let without = conditions.iter().find(|c| c.background.is_none());
    let asked = Asked::of(file, name, &conditions, bootstrap).with_idle(without);
    let reference = listed.iter().position(|b| b.is_none());
    let mut backgrounds: Vec<BackgroundVerdict> = conditions
        .iter()
        .map(|with| {
            let alone = reference
                .map(|r| &conditions[r])
                .filter(|alone| alone.background.name() != with.background.name());
            background(results, name, &asked, with, alone)
        })
        .collect();
    judge::correct(backgrounds.iter_mut().flat_map(|b| &mut b.judged));
    judge::correct(backgrounds.iter_mut().flat_map(|b| &mut b.beside));
    for b in &mut backgrounds {
        b.matters = b
            .matters
            .map(|_| weighed(judge::answer(&b.judged), &b.withheld, &b.open));
    }
    let mut comparisons: Vec<Comparison> = conditions
        .iter()
        .filter_map(|against| {
            let target = against.background.matches()?;
            // In a suite, models with other dependencies also match the target, but they are not parametric.
            if file.run.suite.is_some() && against.background.is_model() {
                return None;
            }
            let real = conditions
                .iter()
                .find(|c| c.background.name() == target && c.background.is_real())?;
            Some(parametric::compare(results, name, &asked, real, against))
        })
        .collect();
    parametric::decide(&mut comparisons);
    let idle = asked.is_idle(results.runs.iter().filter(|r| r.cell.foreground == name))
        // Packets for unknown addresses were sent, too.
        && !results.manifest.run_warnings.iter().any(|w| {
            w.cell.foreground == name && w.warning.code == Code::UnroutablePackets
        });
    if idle {
        nothing_sent(name, &mut backgrounds, &mut comparisons);
    }

    let target = file.run.suite.as_deref();
    let target = target.and_then(|t| conditions.iter().find(|c| c.background.name() == t));
    // Nothing suffices for a program that was not measured.
    let target = target.filter(|_| !idle);
    let suite = target.map(|target| suite::of(results, name, &asked, &conditions, target));
    let matters = any(backgrounds.iter().filter_map(|b| b.matters));
    let parametric_enough = parametric::enough(&comparisons);
    let doubts = doubts::of_foreground(results, name, &backgrounds, &conditions, &asked);
    let sureness = sureness(&backgrounds, &comparisons, heavy + doubts::heavy(&doubts));
    let mut verdict = ForegroundVerdict {
        foreground: name.into(),
        reference: reference.map(|r| listed[r].name().into()),
        backgrounds,
        comparisons,
        matters,
        application_failed: validity::application_failed(
            reference.map(|r| &conditions[r]),
            &conditions,
        ),
        parametric_enough,
        suite,
        sureness,
        sentence: String::new(),
        paragraphs: Vec::new(),
        doubts,
    };
    verdict.paragraphs = words::paragraphs(&verdict);
    if results.manifest.backend == MadeUp::NAME {
        verdict.paragraphs[0]
            .text
            .insert_str(0, "Nothing was simulated: every number here is made up. ");
    }
    let texts: Vec<&str> = verdict.paragraphs.iter().map(|p| &*p.text).collect();
    verdict.sentence = texts.join(" ");
    verdict
}

/// Withholds every answer about an application that sent nothing over the network, with this as the only reason for it.
fn nothing_sent(
    foreground: &str,
    backgrounds: &mut [BackgroundVerdict],
    comparisons: &mut [Comparison],
) {
    let reason = vec![format!(
        "{foreground} sent no packet in any run, so nothing of the network was measured"
    )];
    for b in backgrounds.iter_mut().filter(|b| b.matters.is_some()) {
        b.matters = Some(Answer::Unclear);
        b.withheld.clone_from(&reason);
    }
    for c in comparisons {
        c.enough = Answer::Unclear;
        c.withheld.clone_from(&reason);
    }
}

/// What the measures of a foreground are beside each background, for one that nothing is compared about: the background,
/// and each measure against itself.
pub fn levels(results: &Results, foreground: &str) -> Vec<(String, Vec<Judgement>)> {
    let bootstrap = Bootstrap::seeded(results.experiment.run.seed);
    let listed = results.experiment.background.iter();
    let new = |background| Condition::new(results, foreground, background, &bootstrap);
    let conditions: Vec<Condition<'_>> = listed.map(new).collect();
    let without = conditions.iter().find(|c| c.background.is_none());
    let asked =
        Asked::of(&results.experiment, foreground, &conditions, bootstrap).with_idle(without);
    let each = conditions.iter().map(|c| {
        let found = judgements(&asked, c, c);
        let judged = found.judged.into_iter().chain(found.beside).collect();
        (c.background.name().into(), judged)
    });
    each.collect()
}

#[cfg(test)]
mod tests;
