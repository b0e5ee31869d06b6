//! The Harpoon study: traffic learnt from its flow records and played back, compared with the original.
//!
//! After J. Sommers & P. Barford, "Self-configuring network traffic generation" (IMC 2004). Users of a
//! structural model cross a link on which a router exports flow records; a flow-level model is made of
//! those and nothing else, and its sessions cross the same link. See `docs/studies.md`.

pub mod cells;
mod claims;
pub mod exporter;
mod figures;
mod results;
mod run;
pub mod timestamps;

use swell_base::{Dur, Warning};

pub use run::{Imitation, Original, Seen, learn};

use crate::Study;
use results::Results;
use run::{COARSE, RTT};

/// How long the original is, and in a first look.
pub const WHOLE: Dur = Dur::from_secs(3_600);
/// See [`WHOLE`].
pub const QUICK: Dur = Dur::from_secs(900);

/// The study from its numbers, as [`swell_experiment::run::grid::run`] gave them for [`cells::cells`] of `original` and as many
/// `seeds`, and for [`timestamps::cells`]. `command` is what runs it again.
pub fn study(
    original: &Original,
    seeds: u64,
    numbers: &[Vec<f64>],
    times: &[Vec<f64>],
    command: String,
) -> Study {
    let whole = (original.duration.as_nanos() / COARSE.as_nanos()) as usize;
    let whole = whole.min(cells::COARSES);
    let results = Results::new(numbers, seeds);
    let results = results.as_ref();
    let mbit = |r: &Results<'_>| {
        let bytes = r.original("bytes").unwrap_or(0.0);
        bytes * 8.0 / original.duration.as_secs_f64() / 1e6
    };
    Study {
        name: "harpoon".to_string(),
        title: "Traffic from nothing but its flow records".to_string(),
        paper: "J. Sommers & P. Barford, Self-configuring network traffic generation, IMC 2004"
            .to_string(),
        doubts: doubts(original, seeds),
        ledgers: results
            .map(|r| claims::ledger(r, whole))
            .into_iter()
            .chain([timestamps::claims::ledger(times)])
            .collect(),
        sections: results
            .map_or(Vec::new(), |r| figures::sections(r, whole))
            .into_iter()
            .chain([timestamps::section(times)])
            .collect(),
        command,
        reference: String::new(),
        real_time: false,
        facts: vec![
            (
                "runs".to_string(),
                (numbers.len() + times.len()).to_string(),
            ),
            (
                "original".to_string(),
                format!(
                    "{} times the users of model `{}` for {}, every round trip {RTT}: {:.2} Mbit/s both ways",
                    original.sessions,
                    original.model.name,
                    original.duration,
                    results.map_or(0.0, mbit)
                ),
            ),
            (
                "records".to_string(),
                format!(
                    "one direction each; active time-out {}, inactive {}",
                    exporter::ACTIVE,
                    exporter::INACTIVE
                ),
            ),
            (
                "not here".to_string(),
                "S4.10 and S4.11 need real time: `swell study router`".to_string(),
            ),
        ],
    }
}

fn doubts(original: &Original, seeds: u64) -> Vec<Warning> {
    let mut doubts = vec![Warning::note(
        "stand-in",
        "the paper's traces are not to be had: the original is simulated, so the network under original and \
         copies differs in nothing but what the claims are about",
    )];
    if original.duration < WHOLE || seeds < 2 {
        doubts.push(Warning::warning(
            "quick-study",
            format!(
                "a first look: {} and {seeds} seed{}; verdicts may differ from the full study's",
                original.duration,
                if seeds == 1 { "" } else { "s" }
            ),
        ));
    }
    doubts
}

#[cfg(test)]
mod tests;
