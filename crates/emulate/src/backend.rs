//! The emulated backend of an experiment. Real programs run in hosts of their own, which are joined by a world that
//! runs in real time.

mod attempt;
mod beginning;
mod bridge;
mod exit;
mod input;
mod kernel;
mod machine;
mod observe;
mod output;
mod place;
mod play;
mod programs;
mod requests;
mod serve;
mod settings;
mod side;
mod unrequested;

use std::collections::BTreeMap;

use swell_base::{Code, Warning};
use swell_experiment::backend::{Backend, MeasuredRates, RunError};
use swell_experiment::observe::Observations;
use swell_experiment::{RunSpec, Simulator};

use crate::{Entry, Pace};
use swell_host::{Offload, Rights};

pub use bridge::Bridge;
pub use exit::Exit;
pub use input::Input;
pub use place::{CLIENT, SERVER};
pub use settings::{Conditions, JOURNAL, Listener, Settings};

use attempt::{Play, failed};
use beginning::beginning;

/// Runs experiments with emulation in real time.
pub struct Emulator {
    rights: Rights,
    settings: Settings,
}

impl Emulator {
    /// An emulator that can create hosts with `rights`.
    pub fn new(rights: Rights, settings: Settings) -> Emulator {
        Emulator { rights, settings }
    }
}

impl Backend for Emulator {
    fn name(&self) -> &'static str {
        "emulated"
    }

    /// Nothing records the programs, the files that they read, or the state of this machine.
    fn is_reproducible(&self) -> bool {
        false
    }

    /// Named after the options of `swell run`.
    fn settings(&self) -> BTreeMap<String, String> {
        let Settings {
            pace,
            offload,
            stretch,
            stretch_to,
            ..
        } = &self.settings;
        let pace = match pace {
            Pace::Prompt => "prompt".to_owned(),
            Pace::Precise => "precise".to_owned(),
            Pace::Coalesced(rest) => format!("coalesce {rest}"),
        };
        let offload = match offload {
            Offload::Segment => "segment",
            Offload::Pass => "pass",
            Offload::Off => "off",
        };
        let (stretch, most) = (stretch.max(1.0), stretch_to.max(1.0));
        BTreeMap::from([
            ("pace".to_owned(), pace),
            ("offload".to_owned(), offload.to_owned()),
            ("stretch".to_owned(), stretch.to_string()),
            ("stretch-to".to_owned(), stretch.max(most).to_string()),
        ])
    }

    /// One at a time: concurrent runs would share the processors and be late.
    fn at_once(&self) -> usize {
        1
    }

    /// Programs have output, and recorded runs a journal.
    fn writes(&self, spec: &RunSpec) -> bool {
        let program = (spec.foreground.as_ref()).is_some_and(|f| f.program().is_some());
        program || (self.settings.record && spec.foreground.is_some())
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        let Some(foreground) = &spec.foreground else {
            return Simulator.run(spec, progress, cancelled);
        };
        let mut stretch = self.settings.stretch.max(1.0);
        let mut repeats = 0;
        loop {
            let play = Play {
                rights: &self.rights,
                settings: &self.settings,
                spec,
                foreground: &*foreground.traffic,
                stretch,
                progress,
                cancelled,
            };
            let played = play.play()?;
            if let Some(conditions) = &self.settings.conditions {
                conditions(&played.conditions);
            }
            let stretchable = stretch < self.settings.stretch_to;
            if !played.conditions.too_late || (repeats >= self.settings.repeats && !stretchable) {
                return observe::observe(spec, &*foreground.traffic, played);
            }
            // Programs append to files there, and what a late attempt reported must not count.
            if let Some(dir) = &spec.output {
                place::emptied(dir).map_err(failed)?;
            }
            repeats += u32::from(!stretchable);
            stretch = (stretch * 2.0).min(self.settings.stretch_to.max(stretch));
        }
    }

    fn is_spoilt(&self, observed: &Observations) -> bool {
        let late = |w: &Warning| w.code == Code::EmulatorLate;
        self.settings.repeats > 0 && observed.warnings.iter().any(late)
    }

    /// A background alone has no real program, so it is measured in virtual time.
    fn measure(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<MeasuredRates, RunError> {
        Simulator.measure(spec, progress, cancelled)
    }
}

/// Repeats a run from its journal in virtual time and returns the first difference. There is none unless the journal,
/// the experiment or the program has changed.
///
/// # Errors
/// If the journal or the run is invalid.
pub fn replay(spec: &RunSpec, entries: &[Entry]) -> Result<Option<[Option<Entry>; 2]>, RunError> {
    let (mut world, ..) = beginning(spec)?;
    let repeated = crate::replay(&mut world, entries);
    Ok(crate::first_difference(entries, &repeated))
}
