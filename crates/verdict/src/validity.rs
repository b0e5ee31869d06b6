//! Whether the runs support an answer at all.

use swell_base::{Code, Severity};
use swell_stats::{MIN_REPLICATIONS, mean};

use super::answer::MARGIN;
use super::condition::{Condition, names, pairs};
use super::loads::Loads;
use super::numbers::quantity;
use super::values::Found;
use swell_experiment::kinds::Part;
use swell_experiment::measure::Failing;
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::Results;

/// A program does not work if more than this share of its requests fail or are given up without background traffic.
const BROKEN: f64 = 0.10;

/// The reason why nobody may say that nothing differs, where the client ended with an error more often in one of the
/// two conditions.
pub(super) fn ends_differ(with: &Condition<'_>, without: &Condition<'_>) -> Option<String> {
    let [a, b] = [with, without].map(|c| (c.warned.failed, c.runs.len()));
    let share = |(k, n): (usize, usize)| k as f64 / n.max(1) as f64;
    let [one, other] = names(with, without);
    ((share(a) - share(b)).abs() > MARGIN).then(|| {
        format!(
            "the client ended with an error in {} of {} runs {one}, and in {} of {} {other}",
            a.0, a.1, b.0, b.1
        )
    })
}

/// The reason to withhold an answer where overlapping requests were timed as one and what counts as a request is not
/// the same in both conditions.
fn merged(with: &Condition<'_>, without: &Condition<'_>) -> Option<String> {
    let seldom = |c: &Condition<'_>| c.warned.merged as f64 <= MARGIN * c.runs.len() as f64;
    if seldom(with) && seldom(without) {
        return None;
    }
    let [a, b] = [with, without].map(|c| {
        let requests = c.runs.iter().flatten().flat_map(|r| &r.observed.requests);
        let done = requests.filter(|r| r.outcome == Outcome::Done);
        let bytes: Vec<f64> = done.map(|r| r.bytes as f64).collect();
        mean(&bytes).unwrap_or(0.0)
    });
    let [one, other] = names(with, without);
    ((a - b).abs() > MARGIN * a.min(b)).then(|| {
        format!(
            "requests that overlap are timed as one, and one holds {a:.0} bytes {one} and {b:.0} {other}"
        )
    })
}

/// Codes of warnings of a model that lacks harm which its trace does, and what it lacks.
pub(super) const LACKING: [(Code, &str); 5] = [
    (Code::LoadLeftOut, "some of the load"),
    (Code::BurstsSpread, "some of the bursts"),
    (Code::SessionsInStep, "the common bursts"),
    (Code::LinkDelay, "the short round trips"),
    (Code::PacedSenders, "the congestion control"),
];

/// Codes of warnings of a model that may do more or less harm than its trace, and how it differs.
const UNLIKE: [(Code, &str); 1] = [(Code::TurnsMerged, "has larger bursts than its trace")];

/// Reasons why nobody may say that the traffic of these models does no harm: they lack some that their traces do.
pub(super) fn lacking(results: &Results, background: &Part) -> Vec<String> {
    let lacks = LACKING.map(|(code, what)| (code, format!("lacks {what} of its trace")));
    of_models(results, background, &lacks)
}

/// Reasons why the traffic of these models tells nothing of that of their traces.
pub(super) fn unlike(results: &Results, background: &Part) -> Vec<String> {
    let is = UNLIKE.map(|(code, what)| (code, what.to_owned()));
    of_models(results, background, &is)
}

/// What these codes of warnings say about the models of a background.
fn of_models(results: &Results, background: &Part, codes: &[(Code, String)]) -> Vec<String> {
    let leaves = results.experiment.leaves(background);
    let models = leaves
        .iter()
        .filter_map(|leaf| results.manifest.models.get(leaf.name()));
    let warnings = models.flat_map(|model| model.warnings.iter().map(move |w| (model, w)));
    let said = warnings.filter_map(|(model, w)| {
        let (code, what) = codes.iter().find(|(code, _)| w.code == *code)?;
        let name = &model.name;
        (w.severity == Severity::Warning).then(|| format!("the model {name} {what} ({code})"))
    });
    said.collect()
}

/// Reasons to withhold an answer about `with` compared with `alone`.
pub(super) fn against(
    with: &Condition<'_>,
    alone: &Condition<'_>,
    loads: &Loads,
    found: &Found,
) -> Vec<String> {
    let mut reasons = in_common(with, alone, found);
    reasons.extend(failures(alone));
    reasons.extend(loads.missed());
    reasons
}

/// Reasons why `learnt` and `parametric`, with these loads, cannot be compared at equal load.
pub(super) fn at_equal_load(
    learnt: &Condition<'_>,
    parametric: &Condition<'_>,
    loads: [&Loads; 2],
    found: &Found,
) -> Vec<String> {
    let mut reasons = in_common(learnt, parametric, found);
    reasons.extend(Loads::differ(loads));
    // What was compared is then not the same load, whichever way the figures point.
    reasons.extend(loads.iter().flat_map(|l| l.gave_way()));
    reasons
}

/// Whether the application does not work without background traffic or, where there is no `reference`, at all.
pub(super) fn application_failed(reference: Option<&Condition<'_>>, all: &[Condition<'_>]) -> bool {
    match reference {
        Some(alone) => !failures(alone).is_empty(),
        None => !all.is_empty() && all.iter().all(|c| share_failed(c) == 1.0),
    }
}

/// Reasons why the application does not work without background traffic; none if it does.
fn failures(alone: &Condition<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let failed = share_failed(alone);
    if failed > BROKEN {
        let given_up = alone
            .failing
            .iter()
            .any(|f| matches!(f, Failing::GivenUp(_)));
        reasons.push(format!(
            "{:.0} % of the requests fail{} without background traffic",
            failed * 100.0,
            if given_up { " or are given up" } else { "" }
        ));
    }
    for failing in &alone.failing {
        let (name, unit, limit, bound) = match *failing {
            Failing::Above(name, unit, limit) => (name, unit, limit, "more"),
            Failing::Below(name, unit, limit) => (name, unit, limit, "less"),
            Failing::GivenUp(_) => continue,
        };
        let all = alone
            .runs
            .iter()
            .flatten()
            .flat_map(|r| &r.observed.measures);
        let values: Vec<f64> = all.filter(|m| m.measure == name).map(|m| m.value).collect();
        let fails = |value: &f64| match failing {
            Failing::Below(..) => *value < limit,
            _ => *value > limit,
        };
        reasons.extend(mean(&values).filter(fails).map(|value| {
            format!(
                "its mean {name} is {} without background traffic, where {bound} than {} is failure",
                quantity(value, unit),
                quantity(limit, unit)
            )
        }));
    }
    reasons
}

/// The share of the requests that failed or were given up.
fn share_failed(of: &Condition<'_>) -> f64 {
    let requests = || of.runs.iter().flatten().flat_map(|r| &r.observed.requests);
    let given_up = |r: &Request| {
        // Times are rounded to nanoseconds.
        let watched = r.observed_until - r.start + 1e-8;
        let after = |f: &Failing| matches!(f, Failing::GivenUp(after) if watched >= *after);
        r.outcome == Outcome::Unfinished && of.failing.iter().any(after)
    };
    let failed = requests().filter(|r| r.outcome == Outcome::Failed || given_up(r));
    failed.count() as f64 / requests().count().max(1) as f64
}

/// Reasons to withhold an answer that hold for any comparison: too few valid runs, or nothing measured.
pub(super) fn in_common(
    with: &Condition<'_>,
    without: &Condition<'_>,
    found: &Found,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let (whole, all) = (
        with.warned.whole + without.warned.whole,
        with.runs.len() + without.runs.len(),
    );
    if whole > 0 && whole < all {
        reasons.push(format!(
            "no request shows in {whole} of {all} runs, and times of whole runs are no times of requests"
        ));
    }
    reasons.extend(merged(with, without));
    let pairs = pairs(with, without);
    let usable = pairs.len();
    let late = pairs.left_out(with, without);
    if late > 0 && usable == 0 {
        reasons.push("all runs were late".into());
    } else if late > 0 && usable < MIN_REPLICATIONS {
        reasons.push(format!(
            "{late} of {} runs were late, and {usable} are too few",
            usable + late
        ));
    } else if found.judged.is_empty() && found.open.is_empty() {
        reasons.push("nothing was measured".into());
    }
    reasons
}
