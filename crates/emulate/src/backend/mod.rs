//! The emulated backend of an experiment. Real programs run in hosts of their own, which are joined by a world that
//! runs in real time.

mod bridge;
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
mod side;
mod unrequested;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swell_base::{Code, Dur, Time, Warning};
use swell_experiment::backend::{Backend, MeasuredRates, RunError};
use swell_experiment::observe::Observations;
use swell_experiment::stage::RunParts;
use swell_experiment::{RunSpec, Simulator};
use swell_world::{Hop, PathId, World};

use crate::{Control, Counts, Entry, Late, Pace, Snapshot};
use swell_host::{HostLoss, Offload, Precision, Pressure, Rights};

pub use bridge::Bridge;
pub use input::Input;
pub use place::{CLIENT, SERVER};
pub use programs::Exit;

use play::Play;

/// A callback.
pub type Listener<T> = Option<Box<dyn Fn(&T) + Sync>>;

/// How the emulator runs.
#[derive(Default)]
pub struct Settings {
    /// How the loop waits.
    pub pace: Pace,
    /// Offloads that the hosts' kernels leave to their devices.
    pub offload: Offload,
    /// Wall-clock seconds per second of world time; values below 1 count as 1.
    pub stretch: f64,
    /// A run whose packets were too late is repeated with more stretch, up to this value.
    pub stretch_to: f64,
    /// How often such a run is repeated at once when time cannot be stretched any further. Zero: it is not repeated
    /// after the other runs either.
    pub repeats: u32,
    /// Keep a journal of each run, with which the run can be repeated in virtual time.
    pub record: bool,
    /// The client uses this process's standard input and output; otherwise its output is kept in files.
    pub terminal: bool,
    /// What clients without that terminal read from their standard input.
    pub input: Input,
    /// Where to write the packets of the programs; otherwise the run's specification decides.
    pub packets: Option<PathBuf>,
    /// Lets a controller change and observe a run.
    pub control: Option<Arc<Control>>,
    /// Called with the state of a run while it is in progress.
    pub watch: Listener<Snapshot>,
    /// Called when a run of the client program has ended.
    pub ended: Listener<Exit>,
    /// Called with the conditions of a run on this machine.
    pub conditions: Listener<Conditions>,
}

/// The conditions of a run on this machine.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Lateness of its packets.
    pub late: Late,
    /// Whether lateness could have changed the results.
    pub too_late: bool,
    /// Counts of packets at the edge of the world.
    pub counts: Counts,
    /// What the kernel granted the thread that drives the world.
    pub precision: Precision,
    /// Offloads that the hosts' kernels left to their devices.
    pub offload: Offload,
    /// Wall-clock seconds per second of world time.
    pub stretch: f64,
    /// How long the run took.
    pub wall: Duration,
    /// How long the thread that drives the world ran without real-time priority because its load was too high.
    pub gave_way: Dur,
    /// How long that thread was runnable while other threads had its processor.
    pub waited: Dur,
    /// Processor time that other programs took during the run.
    pub pressure: Pressure,
    /// Packets that the hosts' kernels lost or refused, by host name.
    pub losses: Vec<(String, Vec<HostLoss>)>,
}

/// File name of a journal inside a run's output directory.
pub const JOURNAL: &str = "journal";

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
                foreground,
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
                return observe::observe(spec, foreground, played);
            }
            // Programs append to files there, and what a late attempt reported must not count.
            if let Some(dir) = &spec.output {
                place::emptied(dir).map_err(play::failed)?;
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

/// The paths of a run between hosts with ports.
#[derive(Clone, Copy, Debug)]
struct Ways {
    foreground: PathId,
    /// The path of a background over kernel sockets.
    background: PathId,
}

/// The world of a run when its clock starts. A replay starts from the same world. Foreground packets enter by ports.
fn beginning(spec: &RunSpec) -> Result<(World, RunParts, Ways), RunError> {
    let real = kernel::real(spec)?;
    let (mut world, mut run_parts) = RunParts::new(&RunSpec {
        packets: None,
        foreground: None,
        background: if real {
            Vec::new()
        } else {
            spec.background.clone()
        },
        ..spec.clone()
    })?;
    let mut path = |hops: &[Hop]| {
        let path = world.add_path(hops);
        path.ok_or_else(|| RunError::Failed("a path that is none".into()))
    };
    let foreground = path(&spec.foreground_path())?;
    let background = match spec.background.first() {
        Some(part) if real => path(&part.path)?,
        _ => foreground,
    };
    let ways = Ways {
        foreground,
        background,
    };
    // A background over kernel sockets warms up in real time, a simulated one as fast as possible.
    if !real {
        world.advance(Time::ZERO + spec.warmup);
        run_parts.warmed_up(&world);
    }
    Ok((world, run_parts, ways))
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
