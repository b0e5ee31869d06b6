//! What the runs say: does background traffic matter to this application here, is a parametric
//! background enough, and how sure are we.
//!
//! Times are from a request's start to its last byte. Unfinished requests are lower bounds
//! (right-censored), failed ones are slower than everything, and percentiles are Kaplan-Meier's. Slowdowns and ratios are of percentiles, with
//! 95 % bootstrap intervals over replications, paired by seed. Intervals hold for one percentile
//! at a time, not for all of them at once.

mod doubts;
mod ratios;
mod words;

use serde::Serialize;
use swell_base::Warning;
use swell_stats::{Bootstrap, Estimate, MIN_REPLICATIONS, Observation};

use crate::file::Background;
use crate::made_up::MadeUp;
use crate::observe::Outcome;
use crate::store::Results;

pub use ratios::Known;
use ratios::{Times, without_interval};

/// The percentiles of slowdowns.
pub const PERCENTILES: [f64; 4] = [0.05, 0.5, 0.9, 0.95];

/// The percentiles that a question is decided on: the middle and the bad days.
pub const DECISIVE: [f64; 3] = [0.5, 0.9, 0.95];

/// What counts as equal for practical purposes: within this share of each other, up or down.
pub const MARGIN: f64 = 0.10;

/// The answers, one foreground after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// One per foreground, in the order of the file.
    pub foregrounds: Vec<ForegroundVerdict>,
    /// What to doubt about the experiment as a whole and its runs; each doubt once.
    pub doubts: Vec<Warning>,
    /// What counts as equal for practical purposes: [`MARGIN`].
    pub margin: f64,
}

/// The answers for one foreground.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForegroundVerdict {
    /// The foreground.
    pub foreground: String,
    /// The background of kind `none` that slowdowns are against.
    pub reference: Option<String>,
    /// One per background, in the order of the file.
    pub backgrounds: Vec<BackgroundVerdict>,
    /// Learnt traffic against the parametric backgrounds that match it.
    pub comparisons: Vec<Comparison>,
    /// Does background traffic matter? Judged by the learnt ones, or by all where none is learnt.
    pub matters: Answer,
    /// Is a parametric background of the same mean rate enough? `None` without comparisons.
    pub parametric_enough: Option<Answer>,
    /// How sure we are.
    pub sureness: Sureness,
    /// All of it in plain English: one sentence per question.
    pub sentence: String,
    /// What to doubt about these figures.
    pub doubts: Vec<Warning>,
}

/// One foreground against one background.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundVerdict {
    /// The background.
    pub background: String,
    /// Its kind, as the file writes it.
    pub kind: &'static str,
    /// Requests, all replications.
    pub requests: usize,
    /// Requests that the end of a run cut off.
    pub unfinished: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Replications.
    pub replications: usize,
    /// Mean rate of the background that left the bottleneck beside the foreground: up and down,
    /// bits per second.
    pub load_bps: [f64; 2],
    /// Percentiles of request times, by [`PERCENTILES`].
    pub quantiles: Vec<Quantile>,
    /// Whether it makes requests slower by more than the margin; `None` for the reference.
    pub matters: Option<Answer>,
}

/// A percentile of request times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// The percentile, 0..=1.
    pub p: f64,
    /// Seconds; `None` where it cannot be told.
    pub seconds: Option<Estimate>,
    /// Times as long as without background; `None` without reference, or where it cannot be told.
    /// [`Known`] says how much of it is known.
    pub slowdown: Option<Estimate>,
}

/// Learnt traffic against a parametric background of the same mean rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The learnt background.
    pub learnt: String,
    /// The parametric one.
    pub parametric: String,
    /// Its kind, as the file writes it.
    pub kind: &'static str,
    /// Percentile behind learnt traffic over percentile behind the parametric one, by
    /// [`PERCENTILES`]; `None` where it cannot be told. [`Known`] says how much of each is known.
    pub ratios: Vec<(f64, Option<Estimate>)>,
    /// Whether the parametric one is enough: all decisive ratios within the margin.
    pub enough: Answer,
}

/// An answer with its doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// What `results` say.
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

/// The request times of a foreground against a background, by replication: lower bounds where a
/// request did not complete, infinite ones where it failed.
pub fn request_observations(
    results: &Results,
    foreground: &str,
    background: &str,
) -> Vec<Vec<Observation>> {
    let end = results.experiment.run.duration.as_secs_f64();
    results
        .of(foreground, background)
        .map(|run| {
            let requests = run.observed.requests.iter();
            requests
                .map(|r| match r.outcome {
                    Outcome::Done => Observation::complete(r.last_byte - r.start),
                    // It was watched to the end of the run.
                    Outcome::Unfinished => Observation::at_least(end - r.start),
                    // It never finishes: beyond every request that does.
                    Outcome::Failed => Observation::at_least(f64::INFINITY),
                })
                .collect()
        })
        .collect()
}

fn foreground(results: &Results, name: &str, heavy: usize) -> ForegroundVerdict {
    // A seed of its own, so that intervals are the same whenever they are computed.
    let bootstrap = Bootstrap::seeded(results.experiment.run.seed);
    let listed = &results.experiment.background;
    let end = results.experiment.run.duration.as_secs_f64();
    let times: Vec<Times> = listed
        .iter()
        .map(|b| Times::new(&request_observations(results, name, b.name()), end))
        .collect();
    let reference = listed.iter().position(|b| b.kind() == "none");
    let backgrounds: Vec<BackgroundVerdict> = listed
        .iter()
        .zip(&times)
        .map(|(b, behind)| {
            let alone = reference
                .filter(|&r| listed[r].name() != b.name())
                .map(|r| &times[r]);
            background(results, name, b, behind, alone, &bootstrap)
        })
        .collect();
    let comparisons: Vec<Comparison> = listed
        .iter()
        .enumerate()
        .filter_map(|(i, parametric)| {
            let target = parametric.matches()?;
            let learnt = listed
                .iter()
                .position(|b| b.name() == target && b.kind() == "learnt")?;
            Some(compare(
                &bootstrap,
                (&listed[learnt], &times[learnt]),
                (parametric, &times[i]),
            ))
        })
        .collect();

    let any_learnt = backgrounds.iter().any(|b| b.kind == "learnt");
    let judged = backgrounds
        .iter()
        .filter(|b| !any_learnt || b.kind == "learnt")
        .filter_map(|b| b.matters);
    let matters = any(judged);
    let parametric_enough = (!comparisons.is_empty()).then(|| {
        // Enough where one of them is.
        any(comparisons.iter().map(|c| c.enough))
    });
    let doubts = doubts::of_foreground(results, name, &backgrounds, &times);
    let sureness = sureness(&backgrounds, &comparisons, heavy + doubts::heavy(&doubts));
    let mut verdict = ForegroundVerdict {
        foreground: name.into(),
        reference: reference.map(|r| listed[r].name().into()),
        backgrounds,
        comparisons,
        matters,
        parametric_enough,
        sureness,
        sentence: String::new(),
        doubts,
    };
    verdict.sentence = words::sentence(&verdict);
    if results.manifest.backend == MadeUp::NAME {
        verdict.sentence = format!(
            "A dry run: nothing was simulated, and every number here is made up. {}",
            verdict.sentence
        );
    }
    verdict
}

fn background(
    results: &Results,
    foreground: &str,
    background: &Background,
    behind: &Times,
    alone: Option<&Times>,
    bootstrap: &Bootstrap,
) -> BackgroundVerdict {
    let count = |outcome| {
        results
            .of(foreground, background.name())
            .flat_map(|r| &r.observed.requests)
            .filter(|r| r.outcome == outcome)
            .count()
    };
    let load = |direction: u8| {
        let links = results
            .of(foreground, background.name())
            .flat_map(|r| &r.observed.links)
            .filter(|l| l.direction == direction);
        let (bytes, seconds) = links.fold((0.0, 0.0), |(bytes, seconds), l| {
            (bytes + l.departed[1] as f64, seconds + l.duration)
        });
        if seconds > 0.0 {
            bytes * 8.0 / seconds
        } else {
            0.0
        }
    };
    let times = &behind.censored;
    let seconds = bootstrap.quantiles(times, &PERCENTILES);
    let slowdowns = alone.map(|alone| ratios::of(bootstrap, behind, alone));
    let quantiles: Vec<Quantile> = PERCENTILES
        .iter()
        .enumerate()
        .map(|(i, &p)| Quantile {
            p,
            seconds: seconds[i].map(without_interval),
            slowdown: slowdowns.as_ref().and_then(|s| s[i]),
        })
        .collect();
    let matters = alone.map(|_| {
        let decisive = quantiles.iter().filter(|q| DECISIVE.contains(&q.p));
        slower(decisive.map(|q| q.slowdown))
    });
    BackgroundVerdict {
        background: background.name().into(),
        kind: background.kind(),
        requests: times.samples(),
        unfinished: count(Outcome::Unfinished),
        failed: count(Outcome::Failed),
        replications: times.count(),
        load_bps: [load(0), load(1)],
        quantiles,
        matters,
    }
}

fn compare(
    bootstrap: &Bootstrap,
    (learnt, behind_learnt): (&Background, &Times),
    (parametric, behind_parametric): (&Background, &Times),
) -> Comparison {
    let ratios = ratios::of(bootstrap, behind_learnt, behind_parametric);
    let ratios: Vec<(f64, Option<Estimate>)> = PERCENTILES.into_iter().zip(ratios).collect();
    let decisive = ratios.iter().filter(|r| DECISIVE.contains(&r.0));
    Comparison {
        learnt: learnt.name().into(),
        parametric: parametric.name().into(),
        kind: parametric.kind(),
        enough: equal(decisive.map(|r| r.1)),
        ratios,
    }
}

/// Whether any ratio is above the margin (yes), or all are below it (no).
fn slower(ratios: impl Iterator<Item = Option<Estimate>> + Clone) -> Answer {
    let mut all = ratios.clone();
    if ratios.flatten().any(|r| r.low > 1.0 + MARGIN) {
        Answer::Yes
    } else if all.all(|r| r.is_some_and(|r| r.high < 1.0 + MARGIN)) {
        Answer::No
    } else {
        Answer::Unclear
    }
}

/// Where an interval lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// All of it within the margin around one.
    Within,
    /// All of it outside.
    Outside,
    /// Across an edge of the margin.
    Astride,
}

/// Where the interval of `e` lies.
fn side(e: &Estimate) -> Side {
    let (low, high) = (1.0 / (1.0 + MARGIN), 1.0 + MARGIN);
    if e.low > high || e.high < low {
        Side::Outside
    } else if e.low >= low && e.high <= high {
        Side::Within
    } else {
        Side::Astride
    }
}

/// Whether all ratios are within the margin (yes), or any is outside (no).
fn equal(ratios: impl Iterator<Item = Option<Estimate>>) -> Answer {
    let sides: Vec<Option<Side>> = ratios.map(|r| r.as_ref().map(side)).collect();
    if sides.contains(&Some(Side::Outside)) {
        Answer::No
    } else if sides.iter().all(|&s| s == Some(Side::Within)) {
        Answer::Yes
    } else {
        Answer::Unclear
    }
}

/// Yes where one is, no where all are.
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
    let slowdowns = backgrounds
        .iter()
        .filter(|b| b.matters.is_some())
        .flat_map(|b| &b.quantiles)
        .map(|q| (q.p, q.slowdown));
    let ratios = comparisons.iter().flat_map(|c| c.ratios.iter().copied());
    let replications = backgrounds.iter().map(|b| b.replications).min();
    let replications = replications.unwrap_or(0);
    let mut widest: Option<f64> = None;
    let mut wanted = Some(0);
    for (_, estimate) in slowdowns
        .chain(ratios)
        .filter(|(p, _)| DECISIVE.contains(p) && replications > 1)
    {
        let own = estimate.map_or(f64::INFINITY, |e| (e.high - e.low) / 2.0 / e.value.abs());
        widest = Some(widest.map_or(own, |w| w.max(own)));
        let enough = estimate.and_then(|e| e.replications_for(MARGIN));
        wanted = wanted.zip(enough).map(|(a, b)| a.max(b));
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
