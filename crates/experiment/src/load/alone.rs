//! Checks that the rate which a manifest gives for a background alone is the rate that it carries alone.
//!
//! A learnt background is calibrated and then runs with the network to itself. The calibrated rates of the replications
//! are compared with the bytes that left the bottleneck in the runs.

use std::path::Path;

use swell_base::{Code, Direction, Dur, Rate};

use super::results;

/// The parameters of a check.
#[derive(Clone, Copy, Debug)]
pub struct Case<'c> {
    /// A bundled model, or the path of a file.
    pub model: &'c str,
    /// Requested mean rate down.
    pub rate: Rate,
    /// Rate of the link, both directions. Its queue is one bandwidth-delay product.
    pub link: Rate,
    /// Round-trip propagation delay; half of it is that of the link.
    pub rtt: Dur,
    /// Warm-up of a run.
    pub warmup: Dur,
    /// Length of a run, warm-up included.
    pub duration: Dur,
    /// Number of runs.
    pub seeds: u32,
    /// Number of concurrent runs.
    pub threads: usize,
}

/// Calibrated and carried rates down, bits per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// By the manifest, of each replication.
    pub claimed: Vec<f64>,
    /// In the run of each replication.
    pub carried: Vec<f64>,
    /// By the manifest, in the mean over all draws.
    pub expected: f64,
    /// Factor on the model's sessions.
    pub sessions: f64,
    /// Whether the doubt `rate-missed` was raised.
    pub missed: bool,
    /// Wall-clock time of the calibration over that of the runs. Meaningful with one thread.
    pub cost: f64,
}

impl Found {
    /// Ratio of the claimed to the carried rate, over all runs.
    pub fn ratio(&self) -> f64 {
        self.claimed.iter().sum::<f64>() / self.carried.iter().sum::<f64>()
    }

    /// Largest deviation of the claimed rate of a run from the carried one, as a share of the carried one.
    pub fn worst(&self) -> f64 {
        let each = self.claimed.iter().zip(&self.carried);
        each.map(|(claimed, carried)| (claimed / carried - 1.0).abs())
            .fold(0.0, f64::max)
    }
}

/// Calibrates and runs a model alone. `dir` becomes the run directory.
///
/// # Errors
/// If the model cannot run with these parameters.
pub fn check(case: &Case<'_>, dir: &Path) -> Result<Found, String> {
    let text = format!(
        r#"
name = "alone"
[network]
rate = "{link}"
delay = "{delay}"
rtt = "{rtt}"
queue = "1BDP"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "model"
kind = "learnt"
model = "{model}"
rate = "{rate}"
[run]
replications = {seeds}
warmup = "{warmup}"
duration = "{duration}"
"#,
        link = case.link,
        delay = case.rtt / 4,
        rtt = case.rtt,
        model = case.model,
        rate = case.rate,
        seeds = case.seeds,
        warmup = case.warmup,
        duration = case.duration,
    );
    let (_, results) = results(&text, dir, case.threads)?;
    let manifest = &results.manifest;
    let measured = manifest
        .measured
        .get("model")
        .ok_or("it was not measured")?;
    let mut runs: Vec<_> = results.runs.iter().collect();
    runs.sort_by_key(|run| run.cell.replication);
    let carried = runs.iter().map(|run| {
        let down = run
            .observed
            .links
            .iter()
            .filter(|l| l.direction == Direction::Down);
        let rate = |bytes: u64, seconds: f64| bytes as f64 * 8.0 / seconds;
        down.map(|l| rate(l.departed[1], l.duration)).sum()
    });
    let running: f64 = manifest.run_s.values().sum();
    Ok(Found {
        claimed: measured.down_bps_each.clone(),
        carried: carried.collect(),
        expected: measured.expected_bps.unwrap_or(measured.down_bps),
        sessions: measured.sessions.unwrap_or(1.0),
        missed: manifest.warnings.iter().any(|w| w.code == Code::RateMissed),
        cost: (manifest.wall_s - running) / running,
    })
}
