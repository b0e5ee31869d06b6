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

mod compare;
mod condition;
mod doubts;
mod drift;
mod gaps;
mod judge;
mod loads;
mod numbers;
mod own;
mod packets;
mod parametric;
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
use swell_stats::{Bootstrap, Estimate, MIN_REPLICATIONS, Observation, PairedRatio};

use swell_experiment::file::File;
use swell_experiment::made_up::MadeUp;
use swell_experiment::observe::Outcome;
use swell_experiment::store::Results;

pub use compare::{ConditionComparison, Difference, RunComparison};
use condition::{Condition, request_time, request_times};
pub use condition::{request_observations, valid_runs};
pub use doubts::{UNLIKE_TRACE, of_runs as doubts_of_runs};
pub use judge::{Judgement, Statistic};
use loads::Loads;
use own::Paths;
pub use ratios::Known;
use ratios::{bounded, without_interval};
pub use suite::{Candidate, Suite};
use values::Asked;
pub use words::Paragraph;

/// The percentiles of slowdowns.
pub const PERCENTILES: [f64; 4] = [0.05, 0.5, 0.9, 0.95];

/// The percentiles that decide a question: the median and the tail.
pub const DECISIVE: [f64; 3] = [0.5, 0.9, 0.95];

/// With fewer requests than this, only the median of their times is known.
pub const FEW: usize = 20;

/// Equivalence margin: two values within this share of each other, up or down, are equal for practical purposes.
pub const MARGIN: f64 = 0.10;

/// The confidence level of intervals.
pub const LEVEL: f64 = 0.95;

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

/// The answers for one foreground.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ForegroundVerdict {
    /// The foreground.
    pub foreground: String,
    /// The background of kind `none` that slowdowns are against.
    pub reference: Option<String>,
    /// One per background, in the order of the file.
    pub backgrounds: Vec<BackgroundVerdict>,
    /// Traffic that stands for real one, such as learnt traffic, against the parametric backgrounds that match it.
    pub comparisons: Vec<Comparison>,
    /// Does background traffic matter? Yes where any of the backgrounds does, no where none does.
    pub matters: Answer,
    /// Whether it fails without background traffic: more than a tenth of its requests fail or are given up beside the
    /// reference, or all of them beside everything, or a measure of its own shows it beside the reference.
    pub application_failed: bool,
    /// Is a parametric background of the same mean rate enough? `None` without comparisons.
    pub parametric_enough: Option<Answer>,
    /// The cheapest background that does what the one named in `run.suite` does; `None` where the file names none.
    pub suite: Option<Suite>,
    /// How sure we are.
    pub sureness: Sureness,
    /// The answers in plain English: a sentence or two per question.
    pub sentence: String,
    /// The same with what it rests on: a paragraph per question.
    pub paragraphs: Vec<Paragraph>,
    /// What to doubt about these figures.
    pub doubts: Vec<Warning>,
}

/// One foreground against one background.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BackgroundVerdict {
    /// The background.
    pub background: String,
    /// Its kind, as the file writes it.
    pub kind: &'static str,
    /// Requests, all replications but the late ones.
    pub requests: usize,
    /// Those of them that were unfinished at the end of a run.
    pub unfinished: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Replications that may decide: without late ones.
    pub replications: usize,
    /// Mean rate of the background that left the bottleneck beside the foreground: up and down,
    /// bits per second.
    pub load_bps: [f64; 2],
    /// Mean rate of the background that arrived at the bottleneck beside the foreground, likewise.
    pub offered_bps: [f64; 2],
    /// What was requested of it, or what it carries when it is alone, likewise; `None` where neither is known.
    pub requested_bps: [Option<f64>; 2],
    /// Percentiles of request times, by [`PERCENTILES`].
    pub quantiles: Vec<Quantile>,
    /// What the answer rests on.
    pub judged: Vec<Judgement>,
    /// What is shown beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Judgement>,
    /// Why there is no answer; empty where nothing stands against one.
    pub withheld: Vec<String>,
    /// Why nobody may say that nothing differs, though a difference that is shown would stand.
    pub open: Vec<String>,
    /// Whether it changes any measure by more than the margin; `None` for the reference.
    pub matters: Option<Answer>,
}

impl BackgroundVerdict {
    /// Everything that was compared, whether an answer rests on it or not.
    pub fn compared(&self) -> impl Iterator<Item = &Judgement> {
        self.judged.iter().chain(&self.beside)
    }
}

/// A percentile of request times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quantile {
    /// The percentile, 0..=1.
    pub p: f64,
    /// Seconds; `None` where it cannot be told.
    pub seconds: Option<Estimate>,
    /// Times as long as without background; `None` without reference, or where it cannot be told.
    /// [`Known`] says how much of it is known.
    pub slowdown: Option<Estimate>,
}

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

/// An answer with its doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Yes: an interval lies wholly on this side of the margin.
    Yes,
    /// No.
    No,
    /// The intervals do not decide it.
    Unclear,
}

/// How sure we are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sureness {
    /// Replications.
    pub replications: usize,
    /// Half the width of the widest decisive interval, over its value; infinite where a
    /// percentile could not be told, `None` where there are no intervals: with nothing to
    /// compare, or with a single replication.
    pub widest: Option<f64>,
    /// Doubts of weight `warning` among all that apply.
    pub warnings: usize,
    /// Replications that would narrow the widest interval to the margin, by the square-root law.
    pub replications_wanted: Option<usize>,
}

impl Sureness {
    /// Whether there are too few replications for intervals to be what they claim.
    pub fn tentative(&self) -> bool {
        self.replications < MIN_REPLICATIONS
    }
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
    let asked = asked(file, name, &conditions, bootstrap);
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
            .map(|_| validity::weighed(judge::answer(&b.judged), &b.withheld, &b.open));
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
        validity::nothing_sent(name, &mut backgrounds, &mut comparisons);
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

/// What is asked about a foreground.
fn asked(file: &File, name: &str, conditions: &[Condition<'_>], bootstrap: Bootstrap) -> Asked {
    let own = || file.foreground.iter().filter(|f| f.name() == name);
    let paths = own().next().map(|f| Paths::of_all(file.ways(&f.route())));
    let paths = paths.unwrap_or_default();
    let all = || conditions.iter().flat_map(|c| c.runs.iter().flatten());
    Asked {
        directions: own::directions(own().next(), &paths, all().copied()),
        datagrams: own().any(|f| f.is_open_loop()) && own::are_timed(all().copied()),
        useful: own().all(|f| f.program().is_none()) && own::know_useful(all().copied()),
        sizes: own().flat_map(|f| f.sizes()).copied().collect(),
        measures: own().flat_map(|f| f.measures()).collect(),
        program: own().any(|f| f.program().is_some()),
        end: file.run.duration.as_secs_f64(),
        bootstrap,
        paths,
    }
}

/// What the measures of a foreground are beside each background, for one that nothing is compared about: the background,
/// and each measure against itself.
pub fn levels(results: &Results, foreground: &str) -> Vec<(String, Vec<Judgement>)> {
    let bootstrap = Bootstrap::seeded(results.experiment.run.seed);
    let listed = results.experiment.background.iter();
    let new = |background| Condition::new(results, foreground, background, &bootstrap);
    let conditions: Vec<Condition<'_>> = listed.map(new).collect();
    let asked = asked(&results.experiment, foreground, &conditions, bootstrap);
    let each = conditions.iter().map(|c| {
        let found = values::judgements(&asked, c, c);
        let judged = found.judged.into_iter().chain(found.beside).collect();
        (c.background.name().into(), judged)
    });
    each.collect()
}

fn background(
    results: &Results,
    foreground: &str,
    asked: &Asked,
    with: &Condition<'_>,
    alone: Option<&Condition<'_>>,
) -> BackgroundVerdict {
    let name = with.background.name();
    let count = |outcome| {
        let valid = with.runs.iter().flatten();
        valid
            .flat_map(|r| &r.observed.requests)
            .filter(|r| r.outcome == outcome)
            .count()
    };
    let times = swell_stats::Replications::censored(&with.times);
    let quantiles: Vec<Quantile> = PERCENTILES
        .iter()
        .zip(&with.seconds)
        .map(|(&p, &seconds)| Quantile {
            p,
            seconds: seconds.filter(|_| told(p, &with.times)),
            slowdown: alone.and_then(|alone| slowdown(with, alone, p, asked.end)),
        })
        .collect();
    let found = alone.map(|alone| values::judgements(asked, with, alone));
    let mut found = found.unwrap_or_default();
    let loads = Loads::of(results, foreground, with);
    if let Some(alone) = alone {
        found.open.extend(loads.gave_way());
        found
            .open
            .extend(validity::lacking(results, with.background));
        found.open.extend(drift::of([results; 2], [with, alone]));
    }
    BackgroundVerdict {
        background: name.into(),
        kind: with.background.kind(),
        requests: times.samples(),
        unfinished: count(Outcome::Unfinished),
        failed: count(Outcome::Failed),
        replications: match alone {
            Some(alone) => values::pairs(with, alone).len(),
            None => with.runs.iter().flatten().count(),
        },
        load_bps: loads.carried,
        offered_bps: loads.offered,
        requested_bps: loads.requested,
        quantiles,
        withheld: alone.map_or_else(Vec::new, |alone| {
            let mut reasons = validity::against(with, alone, &loads, &found);
            reasons.extend(validity::unlike(results, with.background));
            reasons
        }),
        matters: alone.map(|_| Answer::Unclear),
        judged: found.judged,
        beside: found.beside,
        open: found.open,
    }
}

/// Percentiles of observations pooled over all replications, with bootstrap intervals over replications; `None` where a
/// percentile cannot be estimated.
fn pooled(
    bootstrap: &Bootstrap,
    groups: &[Vec<Observation>],
    percentiles: &[f64],
) -> Vec<Option<Estimate>> {
    if groups.is_empty() {
        return vec![None; percentiles.len()];
    }
    let all = swell_stats::Replications::censored(groups);
    let found = bootstrap.quantiles(&all, percentiles);
    found.into_iter().map(|e| e.map(without_interval)).collect()
}

/// Whether there are enough requests for percentile `p` to mean anything.
fn told(p: f64, groups: &[Vec<Observation>]) -> bool {
    p == 0.5 || groups.iter().map(Vec::len).sum::<usize>() >= FEW
}

/// The ratio of percentile `p` under one condition to that under another, from the valid runs.
fn slowdown(over: &Condition<'_>, under: &Condition<'_>, p: f64, end: f64) -> Option<Estimate> {
    let paired = over.paired;
    let (over, under) = values::times(over, under, end);
    if !told(p, &over) || !told(p, &under) {
        return None;
    }
    let ratio = match paired {
        true => PairedRatio::of(&over, &under, p)?,
        false => PairedRatio::independent(&over, &under, p)?,
    };
    Some(judge::estimate(&ratio, over.len().min(under.len())))
}

impl Answer {
    /// The answer to the opposite question.
    fn inverted(self) -> Answer {
        match self {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unclear => Answer::Unclear,
        }
    }
}

/// Yes if any answer is yes, no if there are answers and all are no, else unclear.
fn any(answers: impl Iterator<Item = Answer>) -> Answer {
    let answers: Vec<Answer> = answers.collect();
    if answers.contains(&Answer::Yes) {
        Answer::Yes
    } else if !answers.is_empty() && answers.iter().all(|&a| a == Answer::No) {
        Answer::No
    } else {
        Answer::Unclear
    }
}

fn sureness(
    backgrounds: &[BackgroundVerdict],
    comparisons: &[Comparison],
    warnings: usize,
) -> Sureness {
    let judged = backgrounds
        .iter()
        .flat_map(|b| &b.judged)
        .chain(comparisons.iter().flat_map(|c| &c.judged));
    // Of a measure with too few values only the median is judged, however narrow its interval is. Another measure, such
    // as the request rate, does not stand in for its tail. Nobody asks for the tail of one size, or where traffic matters.
    let tail_unknown = backgrounds.iter().any(|b| {
        let has_tail = |of: &Judgement| {
            let mut own = b.judged.iter().filter(|j| j.measure == of.measure);
            own.any(Judgement::tells_of_bad_days)
        };
        let mut medians = b
            .judged
            .iter()
            .filter(|j| j.statistic != Statistic::Mean && !j.measure.starts_with(sizes::TIME_OF));
        let none_tells = !b.judged.iter().any(Judgement::tells_of_bad_days);
        let unknown = (none_tells && !b.judged.is_empty()) || !medians.all(has_tail);
        b.matters != Some(Answer::Yes) && unknown
    });
    let replications = backgrounds.iter().map(|b| b.replications).min();
    let replications = replications.unwrap_or(0);
    let mut widest: Option<f64> = None;
    let mut wanted = Some(0);
    for judgement in judged.filter(|_| replications > 1) {
        let e = &judgement.ratio;
        let own = (e.high - e.low) / 2.0 / e.value.abs();
        widest = Some(widest.map_or(own, |w| w.max(own)));
        wanted = wanted
            .zip(judgement.replications_wanted)
            .map(|(a, b)| a.max(b));
    }
    if tail_unknown && replications > 1 {
        (widest, wanted) = (Some(f64::INFINITY), None);
    }
    Sureness {
        replications,
        widest,
        warnings,
        replications_wanted: wanted.filter(|&n| n > 0),
    }
}

#[cfg(test)]
mod tests;
