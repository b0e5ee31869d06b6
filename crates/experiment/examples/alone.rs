//! The rate that a background carries alone, by its calibration and in runs: `docs/load.md`.
//!
//! `cargo run --release -p swell-experiment --example alone -- [SEEDS] [MODEL...]`
#![expect(clippy::print_stdout, reason = "a table for people")]

use std::env;

use swell_base::{Dur, Rate};
use swell_experiment::load::alone::{Case, check};

/// A case: link, round-trip delay, model, requested rate, length of a run.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: [Row; 26] = [
    ("1Mbit", "10ms", "mawi2", "500kbit", "60s"),
    ("2500kbit", "10ms", "browsing", "500kbit", "30s"),
    ("5Mbit", "40ms", "browsing", "4500kbit", "30s"),
    ("1Mbit", "300ms", "browsing", "500kbit", "60s"),
    ("2Mbit", "600ms", "browsing", "1400kbit", "60s"),
    ("5Mbit", "600ms", "browsing", "500kbit", "60s"),
    ("10Mbit", "100ms", "browsing", "6Mbit", "20s"),
    ("60Mbit", "30ms", "browsing", "50Mbit", "20s"),
    ("5Mbit", "100ms", "browsing", "400kbit", "60s"),
    ("25Mbit", "40ms", "browsing", "1Mbit", "60s"),
    ("100Mbit", "20ms", "browsing", "5Mbit", "30s"),
    ("1Mbit", "150ms", "access-link", "500kbit", "120s"),
    ("3Mbit", "600ms", "access-link", "2700kbit", "60s"),
    ("20Mbit", "50ms", "access-link", "10Mbit", "30s"),
    ("20Mbit", "30ms", "access-link", "3Mbit", "60s"),
    ("100Mbit", "20ms", "access-link", "50Mbit", "20s"),
    ("1Gbit", "20ms", "access-link", "50Mbit", "20s"),
    ("1Mbit", "50ms", "streaming", "800kbit", "120s"),
    ("5Mbit", "600ms", "streaming", "1Mbit", "120s"),
    ("10Mbit", "40ms", "streaming", "500kbit", "60s"),
    ("12Mbit", "20ms", "streaming", "10Mbit", "30s"),
    ("8Mbit", "200ms", "mawi2", "2Mbit", "60s"),
    ("20Mbit", "600ms", "mawi2", "16Mbit", "30s"),
    ("80Mbit", "40ms", "mawi2", "50Mbit", "20s"),
    ("50Mbit", "600ms", "mawi2", "2Mbit", "60s"),
    ("1Gbit", "100ms", "mawi2", "20Mbit", "60s"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    let seeds: u32 = args.next().map_or(Ok(5), |s| s.parse())?;
    let named: Vec<String> = args.collect();
    let dir = env::temp_dir().join(format!("swell-alone-{}", std::process::id()));
    println!(
        "| link | RTT | model | asked, Mbit/s | run | calibrated | carried | calibrated / carried | worst seed | expected | missed | cost |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (link, rtt, model, rate, duration) in CASES {
        if !named.is_empty() && !named.iter().any(|name| name == model) {
            continue;
        }
        let rate: Rate = rate.parse()?;
        let case = Case {
            model,
            rate,
            link: link.parse()?,
            rtt: rtt.parse()?,
            warmup: Dur::from_secs(5),
            duration: duration.parse()?,
            seeds,
            threads: 1,
        };
        let found = check(&case, &dir)?;
        let mean = |each: &[f64]| each.iter().sum::<f64>() / each.len() as f64 / 1e6;
        println!(
            "| {link} | {rtt} | {model} | {:.2} | {duration} | {:.3} | {:.3} | {:.3} | {:.1} % | {:.3} | {} | {:.2} |",
            rate.bps() as f64 / 1e6,
            mean(&found.claimed),
            mean(&found.carried),
            found.ratio(),
            found.worst() * 100.0,
            found.expected / 1e6,
            if found.missed { "yes" } else { "" },
            found.cost,
        );
    }
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}
