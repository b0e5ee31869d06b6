//! Checks that a background carries its nominal load from its first second on.
//!
//! A learnt background runs alone, through the whole program: file, calibration, runs, tables. Its carried load
//! is compared with the rate that its sessions offer in the same windows, so that the heavy-tailed variation between
//! seeds cancels.

pub mod alone;

use std::path::Path;

use swell_base::{Direction, Dur, Rate};

use crate::backend::{Backend, RunSpec};
use crate::plan::Plan;
use crate::run::{self, Options, RunOutcome};
use crate::simulate::Simulator;
use crate::store::Results;

/// The parameters of a check.
#[derive(Clone, Debug)]
pub struct Question<'q> {
    /// A bundled model, or the path of a file.
    pub model: &'q str,
    /// Mean rate down; `None` for the model's own.
    pub rate: Option<Rate>,
    /// Rate of the link, both directions.
    pub link: Rate,
    /// Length of a run.
    pub duration: Dur,
    /// Length of the first and of the last window.
    pub part: Dur,
    /// Number of runs.
    pub seeds: u32,
    /// Number of concurrent runs.
    pub threads: usize,
}

/// The rate that a model carries alone, down, bits per second; means over seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The requested rate, or the mean rate of the model's sessions.
    pub nominal: f64,
    /// Factor on its sessions.
    pub sessions: f64,
    /// Offered and carried rates in the first window, in the last window and in the whole run.
    pub windows: [Window; 3],
}

/// Rates in a window, over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Rate that the draws offer, bits per second.
    pub offered: f64,
    /// Rate that left the bottleneck, bits per second.
    pub carried: f64,
    /// Standard error of `carried`, over seeds.
    pub error: f64,
    /// Standard error of `carried / offered`, over seeds.
    pub ratio_error: f64,
}

impl Window {
    /// Ratio of the carried to the offered rate.
    pub fn ratio(&self) -> f64 {
        self.carried / self.offered
    }
}

/// Runs a model alone. `dir` becomes the run directory.
///
/// # Errors
/// If the model cannot run with these parameters.
pub fn ask(question: &Question<'_>, dir: &Path) -> Result<Answer, String> {
    let rate = question
        .rate
        .map_or(String::new(), |r| format!("rate = \"{r}\""));
    let text = format!(
        r#"
name = "load"
[network]
rate = "{link}"
queue = "100000p"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "model"
kind = "learnt"
model = "{model}"
{rate}
[run]
replications = {seeds}
warmup = "0s"
duration = "{duration}"
"#,
        link = question.link,
        model = question.model,
        seeds = question.seeds,
        duration = question.duration,
    );
    let (plan, results) = results(&text, dir, question.threads)?;
    let measured = &results.manifest.measured;
    let sessions = measured
        .get("model")
        .and_then(|m| m.sessions)
        .unwrap_or(1.0);
    let mut nominal = 0.0;
    let end = question.duration;
    let spans = [
        (Dur::ZERO, question.part),
        (end.saturating_sub(question.part), end),
        (Dur::ZERO, end),
    ];
    let mut seen = [const { Vec::new() }; 3];
    for run in &results.runs {
        let spec = plan
            .spec(&run.cell, measured)
            .ok_or("no such run in the plan")?;
        for (part_seen, (from, to)) in seen.iter_mut().zip(spans) {
            let part = RunSpec {
                warmup: from,
                duration: to,
                ..spec.clone()
            };
            // The draw does not depend on the length of the run: a longer run begins like a shorter one.
            let known = Simulator.offered(&part).map_err(|e| e.to_string())?;
            let offered = known.ok_or("nobody knows what it offers")?;
            nominal = offered.mean[1];
            let [start, stop] = [from, to].map(Dur::as_secs_f64);
            let bytes: u64 = (run.observed.bins.iter())
                .filter(|b| {
                    b.direction == Direction::Down && b.time >= start - 1e-9 && b.time < stop - 1e-9
                })
                .map(|b| b.departed[1])
                .sum();
            part_seen.push((offered.drawn[1], bytes as f64 * 8.0 / (stop - start)));
        }
    }
    Ok(Answer {
        nominal: question.rate.map_or(nominal, |r| r.bps() as f64),
        sessions,
        windows: seen.map(|runs| window(&runs)),
    })
}

/// Runs an experiment in the simulator.
fn results(text: &str, dir: &Path, threads: usize) -> Result<(Plan, Results), String> {
    let plan = Plan::resolve(text, "load.toml", Path::new(".")).map_err(|e| e.to_string())?;
    let options = Options {
        dir: dir.to_owned(),
        threads,
        fresh: true,
        shard: None,
    };
    let ended = run::run(&plan, &Simulator, &options, &|_| {}, &|| false);
    match ended.map_err(|e| e.to_string())? {
        RunOutcome::Complete(results) => Ok((plan, *results)),
        RunOutcome::Interrupted { .. } | RunOutcome::Shard { .. } => Err("interrupted".into()),
    }
}

fn window(runs: &[(f64, f64)]) -> Window {
    let n = runs.len().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / n;
    let (offered, carried) = (mean(&|r| r.0), mean(&|r| r.1));
    let error =
        |of: &dyn Fn(&(f64, f64)) -> f64| (mean(&|r| of(r).powi(2)) / (n - 1.0).max(1.0)).sqrt();
    let ratio = carried / offered;
    Window {
        offered,
        carried,
        error: error(&|r| r.1 - carried),
        ratio_error: error(&|r| r.1 - ratio * r.0) / offered,
    }
}
