//! A foreground beside a background: its runs, the times of their requests, and the pairs of runs of two such.

use swell_base::{Code, Direction, Dur};
use swell_experiment::file::{Background, File};
use swell_experiment::measure::Failing;
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::{Results, RunResult};
use swell_stats::{Bootstrap, Estimate, Observation, PairedRatio};

use super::answer::PERCENTILES;
use super::judge::estimate;
use super::ratios::{bounded, pooled};

/// The runs of a foreground beside a background that may decide, by replication: all but the late ones, which have the
/// warning `emulator-late`.
pub fn valid_runs<'r>(
    results: &'r Results,
    foreground: &'r str,
    background: &'r str,
) -> Vec<&'r RunResult> {
    let runs = runs(results, foreground, background);
    runs.into_iter().flatten().collect()
}

/// The runs of `foreground` beside `background` by replication; `None` for those that were late.
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
                .any(|w| w.cell == run.cell && w.warning.code == Code::EmulatorLate);
            (!late).then_some(run)
        })
        .collect()
}

/// The request times in each of `runs`, seconds. An unfinished request is a lower bound, a failed one an infinite lower
/// bound.
pub fn request_observations(runs: &[&RunResult]) -> Vec<Vec<Observation>> {
    runs.iter().map(|run| request_times(run)).collect()
}

/// The request times of one run.
pub(super) fn request_times(run: &RunResult) -> Vec<Observation> {
    run.observed.requests.iter().map(request_time).collect()
}

/// How long one request took.
pub(super) fn request_time(r: &Request) -> Observation {
    match r.outcome {
        Outcome::Done => Observation::complete(r.last_byte - r.start),
        Outcome::Unfinished => Observation::at_least(r.observed_until - r.start),
        // It never finishes, so it ranks beyond every request that does.
        Outcome::Failed => Observation::at_least(f64::INFINITY),
    }
}

/// Runs with warnings that bear on what can be compared.
#[derive(Clone, Copy, Default)]
pub(super) struct Warned {
    /// Runs in which no request shows, so that whole runs of the client were timed.
    pub whole: usize,
    /// Runs whose client ended with an error.
    pub failed: usize,
    /// Runs in which overlapping requests were timed as one.
    pub merged: usize,
}

impl Warned {
    /// Warnings of the runs of `foreground` beside `background` in the replications that are `kept`.
    pub(super) fn of(
        results: &Results,
        foreground: &str,
        background: &str,
        kept: impl Fn(usize) -> bool,
    ) -> Warned {
        let count = |code: Code| {
            let warned = results.manifest.run_warnings.iter();
            let own =
                warned.filter(|w| w.warning.code == code && kept(w.cell.replication as usize));
            own.filter(|w| w.cell.foreground == foreground && w.cell.background == background)
                .count()
        };
        Warned {
            whole: count(Code::NoRequest),
            failed: count(Code::ClientFailed),
            merged: count(Code::MergedRequests),
        }
    }
}

/// One foreground beside one background: its runs and their request times.
pub(super) struct Condition<'r> {
    pub(super) background: &'r Background,
    /// The valid runs by replication; `None` where the run of that replication was late and is excluded.
    pub(super) runs: Vec<Option<&'r RunResult>>,
    /// Request times of the valid runs.
    pub(super) times: Vec<Vec<Observation>>,
    /// Percentiles of the request times pooled over the valid runs, by [`PERCENTILES`], seconds.
    pub(super) seconds: Vec<Option<Estimate>>,
    /// Whether run `i` is paired with run `i` of the other condition. Otherwise the two samples are independent.
    pub(super) paired: bool,
    /// Runs with warnings.
    pub(super) warned: Warned,
    /// What shows that the foreground does not work.
    pub(super) failing: Vec<Failing>,
    /// One-way propagation delay of the foreground's path, up and down, seconds.
    pub(super) propagation: [f64; 2],
    /// The name of its run directory, where two are compared.
    pub(super) of_run: Option<String>,
}

/// What texts call two conditions that are compared.
pub(super) fn names(with: &Condition<'_>, without: &Condition<'_>) -> [String; 2] {
    let both = [with, without];
    match (&with.of_run, &without.of_run) {
        (Some(one), Some(other)) => [one, other].map(|run| format!("in {run}")),
        _ if without.background.is_none() => ["with it", "without"].map(String::from),
        _ => both.map(|c| format!("with {}", c.background.name())),
    }
}

impl<'r> Condition<'r> {
    pub(super) fn new(
        results: &'r Results,
        foreground: &'r str,
        background: &'r Background,
        bootstrap: &Bootstrap,
    ) -> Condition<'r> {
        let runs = runs(results, foreground, background.name());
        let warned = Warned::of(results, foreground, background.name(), |_| true);
        let propagation = propagation(&results.experiment, foreground);
        let all = results.experiment.foreground.iter();
        let failing = all
            .filter(|f| f.name() == foreground)
            .flat_map(|f| f.failing())
            .collect();
        Condition {
            background,
            runs: Vec::new(),
            times: Vec::new(),
            seconds: Vec::new(),
            paired: true,
            warned,
            failing,
            propagation,
            of_run: None,
        }
        .with_runs(runs, bootstrap)
    }

    /// The same with these runs, and their request times.
    pub(super) fn with_runs(
        mut self,
        runs: Vec<Option<&'r RunResult>>,
        bootstrap: &Bootstrap,
    ) -> Condition<'r> {
        let valid: Vec<&RunResult> = runs.iter().flatten().copied().collect();
        self.times = request_observations(&valid);
        self.seconds = pooled(bootstrap, &self.times, &PERCENTILES);
        self.runs = runs;
        self
    }
}

/// One-way propagation delay of a foreground's path with its access links, up and down, before any change, seconds; zero
/// for a foreground that the file does not have.
fn propagation(file: &File, foreground: &str) -> [f64; 2] {
    let Some(own) = file.foreground.iter().find(|f| f.name() == foreground) else {
        return [0.0; 2];
    };
    let links = file.links();
    let sum = |way: &Vec<(String, Direction)>| {
        let of = |(name, direction): &(String, Direction)| {
            let link = links.iter().find(|l| l.name == *name)?;
            Some(link.keys.directions()[*direction].delay)
        };
        way.iter().filter_map(of).sum::<Dur>()
    };
    let ways = file.ways(&own.route()).each_ref().map(sum);
    let both = ways[0] + ways[1];
    // A packet crosses one access link at each end.
    let access = match (own.delay(&file.network), file.network.rtt) {
        (Some(access), _) => access * 2,
        (None, Some(rtt)) => rtt.saturating_sub(both).scale(0.5),
        (None, None) => file.network.access_delay() * 2,
    };
    ways.map(|way| (way + access).as_secs_f64())
}

/// The valid runs of both conditions.
pub(super) struct Pairs<'r> {
    pub over: Vec<&'r RunResult>,
    pub under: Vec<&'r RunResult>,
    /// Whether `over[i]` and `under[i]` are a pair. Otherwise these are two independent samples.
    pub paired: bool,
    /// What texts call the two: for example "with it" and "without".
    pub names: [String; 2],
}

impl<'r> Pairs<'r> {
    /// The number of pairs, or the size of the smaller of two independent samples.
    pub fn len(&self) -> usize {
        self.over.len().min(self.under.len())
    }

    pub fn each(&self) -> impl Iterator<Item = (&'r RunResult, &'r RunResult)> {
        self.over.iter().copied().zip(self.under.iter().copied())
    }

    pub fn all(&self) -> impl Iterator<Item = &'r RunResult> + Clone {
        self.over.iter().chain(&self.under).copied()
    }

    /// How many pairs, or runs of independent samples, are excluded.
    pub fn left_out(&self, with: &Condition<'_>, without: &Condition<'_>) -> usize {
        match self.paired {
            true => with.runs.len().max(without.runs.len()) - self.len(),
            false => {
                let runs = with.runs.iter().chain(&without.runs);
                runs.filter(|r| r.is_none()).count()
            }
        }
    }
}

/// The valid runs of both conditions. A pair counts only if both of its runs are valid.
pub(super) fn pairs<'r>(with: &Condition<'r>, without: &Condition<'r>) -> Pairs<'r> {
    let paired = with.paired;
    let (over, under) = match paired {
        true => {
            let both = with.runs.iter().zip(&without.runs);
            both.filter_map(|(a, b)| Some(((*a)?, (*b)?))).unzip()
        }
        false => {
            let of = |c: &Condition<'r>| c.runs.iter().flatten().copied().collect();
            (of(with), of(without))
        }
    };
    Pairs {
        over,
        under,
        paired,
        names: names(with, without),
    }
}

/// Request times of both conditions, for the same runs as [`pairs`]. All times are capped at `end` seconds.
pub(super) fn times(
    with: &Condition<'_>,
    without: &Condition<'_>,
    end: f64,
) -> (Vec<Vec<Observation>>, Vec<Vec<Observation>>) {
    let pairs = pairs(with, without);
    let [over, under] = [pairs.over, pairs.under].map(|runs| {
        let times = runs.into_iter().map(request_times);
        times.map(|own| bounded(&own, end)).collect()
    });
    (over, under)
}

/// With fewer requests than this, only the median of their times is known.
pub const FEW: usize = 20;

/// Whether there are enough requests for percentile `p` to mean anything.
pub(super) fn told(p: f64, groups: &[Vec<Observation>]) -> bool {
    p == 0.5 || groups.iter().map(Vec::len).sum::<usize>() >= FEW
}

/// The percentile of how long requests were watched: what did not finish takes longer. `None` if that many failed.
pub(super) fn watched(p: f64, groups: &[Vec<Observation>]) -> Option<f64> {
    let mut values: Vec<f64> = groups.iter().flatten().map(|o| o.value).collect();
    values.sort_by(f64::total_cmp);
    let rank = ((p * values.len() as f64).ceil() as usize).max(1);
    values.get(rank - 1).copied().filter(|v| v.is_finite())
}

/// The ratio of percentile `p` under one condition to that under another, from the valid runs.
pub(super) fn slowdown(
    over: &Condition<'_>,
    under: &Condition<'_>,
    p: f64,
    end: f64,
) -> Option<Estimate> {
    let paired = over.paired;
    let (over, under) = times(over, under, end);
    if !told(p, &over) || !told(p, &under) {
        return None;
    }
    let ratio = match paired {
        true => PairedRatio::of(&over, &under, p)?,
        false => PairedRatio::independent(&over, &under, p)?,
    };
    Some(estimate(&ratio, over.len().min(under.len())))
}
