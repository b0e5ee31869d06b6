//! A foreground beside a background: its runs, and the times of their requests.

use swell_experiment::file::Background;
use swell_experiment::measure::Failing;
use swell_experiment::observe::{Outcome, Request};
use swell_experiment::store::{Results, RunResult};
use swell_stats::{Bootstrap, Estimate, Observation};

use super::validity::Warned;
use super::{PERCENTILES, own, pooled, validity};

/// The runs of a foreground beside a background that may decide, by replication: all but the late ones, which have the
/// warning `emulator-late`.
pub fn valid_runs<'r>(
    results: &'r Results,
    foreground: &'r str,
    background: &'r str,
) -> Vec<&'r RunResult> {
    let runs = validity::runs(results, foreground, background);
    runs.into_iter().flatten().collect()
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
        let runs = validity::runs(results, foreground, background.name());
        let warned = Warned::of(results, foreground, background.name(), |_| true);
        let propagation = own::propagation(&results.experiment, foreground);
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
