//! Reads numbers (one per line) from standard input and writes their statistics as JSON.
//!
//! ```text
//! energies -- 3 < samples.txt               energies per octave with three vanishing moments
//! energies -- coherence 3 < both.txt        correlations per octave of the first half and the second half
//! energies -- quantiles 0.5,0.95 < x.txt    quantiles, mean, sd, c.o.v.
//! energies -- distance 1000 < x.txt         KS and Wasserstein distances of the first 1000 to the rest
//! energies -- special < a.txt               zeta(2, a)
//! ```
#![expect(clippy::print_stdout, reason = "the output of a program")]
#![expect(
    clippy::disallowed_methods,
    reason = "an example has arguments and reads its input"
)]

use std::io::{self, Read};

use serde_json::{Value, json};
use swell_stats::{Coherence, Ecdf, coherences, energies, hurwitz_zeta, ks, wasserstein_log2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let samples: Vec<f64> = text
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let argument = arguments.get(1).map_or("", String::as_str);
    let answer = match arguments.first().map(String::as_str) {
        Some("quantiles") => {
            let ps: Vec<f64> = argument
                .split(',')
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            quantiles(samples, &ps)
        }
        Some("distance") => distances(&samples, argument.parse()?),
        Some("coherence") => {
            let (x, y) = samples.split_at(samples.len() / 2);
            let octaves = coherences(x, y, argument.parse()?);
            octaves.iter().map(Coherence::correlation).collect()
        }
        Some("special") => samples.iter().map(|&a| json!(hurwitz_zeta(a))).collect(),
        Some(vanishing) => serde_json::to_value(energies(&samples, vanishing.parse()?))?,
        None => {
            return Err("say what to compute: N, coherence, quantiles, distance or special".into());
        }
    };
    println!("{answer}");
    Ok(())
}

fn quantiles(samples: Vec<f64>, ps: &[f64]) -> Value {
    let e = Ecdf::new(samples);
    json!({
        "quantiles": ps.iter().map(|&p| e.quantile(p)).collect::<Vec<_>>(),
        "mean": e.mean(),
        "sd": e.sd(),
        "cov": e.cov(),
    })
}

fn distances(samples: &[f64], first: usize) -> Value {
    let (a, b) = samples.split_at(first.min(samples.len()));
    let (a, b) = (Ecdf::new(a.to_vec()), Ecdf::new(b.to_vec()));
    json!({
        "ks": ks(&a, &b),
        "wasserstein_log2": wasserstein_log2(&a, &b),
    })
}
