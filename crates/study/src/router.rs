//! Router benchmarking (section 6 of the Harpoon paper): learnt traffic against a constant-spacing packet generator, with
//! a kernel's forwarding under test.
//!
//! Here is what is run, how counts become numbers, and what the paper's claims say of those. The player of a run gets
//! over ([`bench::Player`]): it takes real time and a real kernel, which are not of this room.

pub mod bench;
mod capacity;
mod claims;
mod figures;
mod load;
mod numbers;
mod results;
#[cfg(test)]
mod tests;

use swell_base::{Rate, Warning};

pub use capacity::Capacity;
pub use load::{SEED, Wanted, at_rate, learnt};
pub use numbers::{Count, INTERVALS, NUMBERS, Raw};

use crate::Study;
use bench::{Bench, Setting};
use results::Results;

/// What a first run offered, for the generator to offer it too: rounded, so that it can be named.
pub fn offered(numbers: &[f64]) -> Option<Rate> {
    let at = NUMBERS.iter().position(|n| *n == "offered")?;
    let offered = numbers.get(at).copied().filter(|x| *x > 0.0)?;
    Some(Rate::from_bps((offered / 1e4).round() as u64 * 10_000))
}

/// The study from its numbers: of each run that was played, in any order. `command` is what runs it again.
pub fn study(
    setting: &Setting,
    runs: &[(Bench, Vec<f64>)],
    capacity: Option<&Capacity>,
    mut doubts: Vec<Warning>,
    command: String,
) -> Study {
    let results = Results::new(runs);
    doubts.push(Warning::note(
        "other-router",
        "the paper's router is a Cisco 6509 with lines of 1 Gbit/s; this is the kernel's forwarding behind a token \
         bucket, whose queue is as long as the paper's bursts say that router's was: more than 465 packets, less than 697",
    ));
    // Floods are to be more than can be sent.
    let own = runs.iter().filter(|r| !r.0.floods());
    let short = own
        .filter_map(|r| results.get(r.0, "short"))
        .fold(0.0, f64::max);
    if short > 1e-3 {
        doubts.push(Warning::warning(
            "generator-short",
            format!(
                "a generator did not send {:.1} % of its packets in one of the runs: see the table",
                short * 100.0
            ),
        ));
    }
    let mut ledgers = vec![claims::tables(&results), claims::patterns(&results)];
    ledgers.extend(capacity.map(claims::capacity));
    Study {
        name: "router".to_owned(),
        title: "A router under learnt and under constant traffic".to_owned(),
        paper: "J. Sommers & P. Barford, Self-configuring network traffic generation, IMC 2004, section 6".to_owned(),
        doubts,
        ledgers,
        sections: figures::sections(&results),
        command,
        facts: vec![
            ("runs".to_owned(), format!("{}, of {} each", runs.len(), setting.span)),
            (
                "output line".to_owned(),
                format!(
                    "{:.0} Mbit/s, headers of the link layer counted; {} packets of 1500 bytes wait",
                    setting.line.as_mbit(),
                    setting.queue
                ),
            ),
            ("looks".to_owned(), format!("every {}, without the first {}", setting.every, setting.settle)),
            (
                "hosts".to_owned(),
                match setting.today {
                    true => "as the kernel makes them",
                    false => "Reno, and receive windows of 64 KB at most, as the paper's had",
                }
                .to_owned(),
            ),
            ("learnt from".to_owned(), format!("flow records of the users of model `{}`", setting.model)),
        ],
        reference: String::new(),
        real_time: true,
    }
}
