//! The filler study: traffic that uses what others leave, and what it does to them.
//!
//! After A. Feldman, "Effects of filler traffic in IP networks" (2001): a central link with two strict
//! priorities, pre-existing traffic replayed from a trace in both directions, and one endless TCP
//! transfer below it. See `docs/studies.md`.

pub mod anchors;
mod captured;
pub mod cells;
mod claims;
mod figures;
pub mod lineup;
pub mod peers;
pub mod results;
mod run;
mod standin;

use swell_base::{Dur, Warning};
use swell_workload::Packets;

pub use captured::{TraceError, captured};
pub use run::{Account, Filler, Outcome, Setting, run};
pub use standin::stand_ins;

use crate::{Ledger, Section, Study};
use cells::FillerCell;
use results::Results;

/// The study from its numbers, as [`crate::grid::run`] gave them for [`cells::cells`] of `traces`:
/// the three stand-ins, then captured traces. `command` is what runs it again.
pub fn study(
    traces: &[Trace],
    cells: &[FillerCell<'_>],
    numbers: &[Vec<f64>],
    command: String,
) -> Study {
    let results = Results::new(cells, numbers);
    let (stand_ins, captures) = traces.split_at(traces.len().min(STAND_INS));
    let mut sections = vec![Section {
        title: "The paper's figures".to_string(),
        what: "The paper's traces are not to be had. These are stand-ins: two self-similar ones and a \
               Poisson one, at the rates of the paper's."
            .to_string(),
        pictures: figures::figures(&results, stand_ins, ""),
        tables: Vec::new(),
    }];
    sections.extend(stand_ins.first().map(figures::in_time));
    for (i, trace) in captures.iter().enumerate() {
        sections.push(Section {
            title: format!("The captured trace {}", trace.name),
            what: format!(
                "{:.0} s, {:.2} Mbit/s in the filler's direction and {:.2} in the other; {} packets \
                 between hosts of one side are left out.",
                trace.duration.as_secs_f64(),
                trace.load(0) / 1e6,
                trace.load(1) / 1e6,
                trace.left_out
            ),
            pictures: figures::figures(&results, std::slice::from_ref(trace), &format!("c{i}-")),
            tables: Vec::new(),
        });
    }
    sections.extend(stand_ins.first().map(|t| figures::price(&results, t, "")));
    for (i, trace) in captures.iter().enumerate() {
        sections.push(figures::price(&results, trace, &format!("c{i}-")));
    }
    // ns-2 had the whole of the stand-ins.
    let whole = stand_ins.iter().all(|t| t.duration == WHOLE);
    sections.extend(whole.then(|| peers::section(&results, stand_ins)));
    let mut ledgers = vec![claims::ledger(&results, stand_ins)];
    ledgers.extend(captures.iter().map(|t| Ledger {
        title: format!("The same claims on the captured trace {}", t.name),
        ..claims::ledger(&results, std::slice::from_ref(t))
    }));
    Study {
        name: "filler".to_string(),
        title: "What filler traffic does to the traffic that was there".to_string(),
        paper: "A. Feldman, Effects of filler traffic in IP networks, 2001".to_string(),
        doubts: doubts(stand_ins, captures),
        ledgers,
        sections,
        command,
        reference: "ns-2.35".into(),
        real_time: false,
        facts: vec![("runs".to_string(), cells.len().to_string())],
    }
}

fn doubts(stand_ins: &[Trace], captures: &[Trace]) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if let Some(short) = stand_ins.iter().find(|t| t.duration < WHOLE) {
        doubts.push(Warning::warning(
            "quick-study",
            format!(
                "a first look: stand-ins of {} instead of {WHOLE}; verdicts may differ from the full \
                 study's, and ns-2's numbers are not beside them",
                short.duration
            ),
        ));
    }
    for trace in captures {
        doubts.extend(trace.doubts.iter().map(|doubt| Warning {
            message: format!("trace {}: {}", trace.name, doubt.message),
            ..doubt.clone()
        }));
    }
    doubts
}

/// How many traces [`stand_ins`] are.
const STAND_INS: usize = 3;
/// How long they were in ns-2.
pub const WHOLE: Dur = Dur::from_secs(600);

/// Pre-existing traffic.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it is called.
    pub name: String,
    /// Packets in the filler's direction and in the other.
    pub packets: [Packets; 2],
    /// From the first packet to the end.
    pub duration: Dur,
    /// Packets of the source that are in neither.
    pub left_out: u64,
    /// What to doubt about the source.
    pub doubts: Vec<Warning>,
}

impl Trace {
    /// Load in the filler's direction (0) or the other (1), bits per second.
    pub fn load(&self, direction: usize) -> f64 {
        let bytes: u64 = self.packets[direction].iter().map(|p| u64::from(p.1)).sum();
        bytes as f64 * 8.0 / self.duration.as_secs_f64()
    }

    /// Mean wait of a packet of this trace below nothing but its own kind, were its arrivals Poisson
    /// (Cobham 1954; Kleinrock 1976, section 3.6): the residual transmission that it finds, of
    /// its own class and of a filler whose transmissions take the share `filler` of the time and
    /// `filler_size` bytes each, over one minus its own load. `rate` in bits per second; seconds.
    pub fn priority_wait(&self, rate: f64, filler: f64, filler_size: f64) -> f64 {
        let seconds = self.duration.as_secs_f64();
        let (mut work, mut square) = (0.0, 0.0);
        for &(_, size) in &*self.packets[0] {
            let s = f64::from(size) * 8.0 / rate;
            work += s;
            square += s * s;
        }
        let load = work / seconds;
        let residual = square / seconds / 2.0 + filler * filler_size * 8.0 / rate / 2.0;
        residual / (1.0 - load)
    }
}

/// What pre-existing traffic leaves of a link of `rate` Mbit/s in the first direction, bits per second.
fn capacity_left(trace: &Trace, rate: u32) -> f64 {
    (f64::from(rate) * 1e6 - trace.load(0)).max(1.0)
}
