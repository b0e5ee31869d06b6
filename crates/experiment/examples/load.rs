//! The load of every bundled model, alone, at its own rate and at others: `docs/load.md`.
//!
//! `cargo run --release -p swell-experiment --example load -- [SEEDS] [SECONDS] [MODEL...]`
#![expect(clippy::print_stdout, reason = "a table for people")]

use std::env;

use swell_base::{Dur, Rate};
use swell_experiment::bundled;
use swell_experiment::load::{Question, ask};

/// Rates that models are scaled to, Mbit/s.
const RATES: [u64; 3] = [1, 10, 50];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    let seeds: u32 = args.next().map_or(Ok(20), |s| s.parse())?;
    let seconds: u64 = args.next().map_or(Ok(60), |s| s.parse())?;
    let named: Vec<String> = args.collect();
    let models: Vec<&str> = match named.is_empty() {
        true => bundled::models().collect(),
        false => named.iter().map(String::as_str).collect(),
    };
    let dir = env::temp_dir().join(format!("swell-load-{}", std::process::id()));
    println!(
        "| model | rate, Mbit/s | sessions x | offered by these seeds | carried | carried / offered | first 10 s | last 10 s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for model in models {
        let asked = RATES.map(|mbit| Some(Rate::from_bps(mbit * 1_000_000)));
        for rate in std::iter::once(None).chain(asked) {
            let question = Question {
                model,
                rate,
                link: Rate::from_bps(1_000_000_000),
                duration: Dur::from_secs(seconds),
                part: Dur::from_secs(10),
                seeds,
                threads: 2,
            };
            let answer = match ask(&question, &dir) {
                Ok(answer) => answer,
                Err(why) => {
                    let first = why
                        .lines()
                        .find(|l| l.contains("too small"))
                        .unwrap_or(&why);
                    println!(
                        "| {model} | {} | {} |",
                        rate.unwrap_or_default(),
                        first.trim()
                    );
                    continue;
                }
            };
            let [first, last, all] = answer.windows;
            let ratio = |w: swell_experiment::load::Window| {
                format!("{:.3} ± {:.3}", w.ratio(), w.ratio_error)
            };
            println!(
                "| {model} | {:.4} | {:.2} | {:.4} | {:.4} ± {:.4} | {} | {} | {} |",
                answer.nominal / 1e6,
                answer.sessions,
                all.offered / 1e6,
                all.carried / 1e6,
                all.error / 1e6,
                ratio(all),
                ratio(first),
                ratio(last),
            );
        }
    }
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}
