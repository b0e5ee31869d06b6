//! The answers for a foreground: about each background, over all of them, and how sure they are.

use schemars::JsonSchema;
use serde::Serialize;
use swell_base::{Direction, Warning};
use swell_stats::{Estimate, MIN_REPLICATIONS, Replications};

use super::answer::{Answer, PERCENTILES};
use super::condition::{Condition, pairs, slowdown, told, watched};
use super::judge::{Judgement, Statistic};
use super::loads::Loads;
use super::measures::judgements;
use super::own::Asked;
use super::parametric::Comparison;
#[cfg(doc)]
use super::ratios::Known;
use super::side::Paragraph;
use super::suite::Suite;
use super::values::{Remedy, TIME_OF};
use super::{drift, validity};
use swell_experiment::observe::Outcome;
use swell_experiment::store::Results;

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
    /// Whether its clients are at the end of the foreground's servers: its down is the foreground's up.
    #[serde(skip)]
    pub turned: bool,
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
    /// What would let it be judged, where that is known.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
    /// Whether it changes any measure by more than the margin; `None` for the reference.
    pub matters: Option<Answer>,
}

impl BackgroundVerdict {
    /// Its own direction that flows in this direction of the foreground.
    pub fn along(&self, direction: Direction) -> Direction {
        match self.turned {
            true => direction.opposite(),
            false => direction,
        }
    }

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
    /// Seconds that it takes at least, by how long the requests were watched; `None` where `seconds` is known, or nothing
    /// can be told.
    #[serde(skip)]
    pub at_least: Option<f64>,
    /// Times as long as without background; `None` without reference, or where it cannot be told.
    /// [`Known`] says how much of it is known.
    pub slowdown: Option<Estimate>,
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

/// The answer about the background `with`, compared with `alone`, the reference. Whether it matters is decided later,
/// over all backgrounds.
pub(super) fn background(
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
    let times = Replications::censored(&with.times);
    let quantiles: Vec<Quantile> = PERCENTILES
        .iter()
        .zip(&with.seconds)
        .map(|(&p, &seconds)| Quantile {
            p,
            seconds: seconds.filter(|_| told(p, &with.times)),
            at_least: (seconds.is_none() && told(p, &with.times))
                .then(|| watched(p, &with.times))
                .flatten(),
            slowdown: alone.and_then(|alone| slowdown(with, alone, p, asked.end)),
        })
        .collect();
    let found = alone.map(|alone| judgements(asked, with, alone));
    let mut found = found.unwrap_or_default();
    let loads = Loads::of(results, foreground, with);
    if let Some(alone) = alone {
        let short = loads.gave_way();
        if !short.is_empty() {
            found.remedy.get_or_insert(Remedy::Longer);
        }
        found.open.extend(short);
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
            Some(alone) => pairs(with, alone).len(),
            None => with.runs.iter().flatten().count(),
        },
        load_bps: loads.carried,
        offered_bps: loads.offered,
        requested_bps: loads.requested,
        turned: loads.is_turned(),
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
        remedy: found.remedy,
    }
}

/// How sure the answers are; `warnings` of weight apply to them.
pub(super) fn sureness(
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
            .filter(|j| j.statistic != Statistic::Mean && !j.measure.starts_with(TIME_OF));
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
