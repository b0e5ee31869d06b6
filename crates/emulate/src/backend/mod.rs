//! The emulated backend of an experiment: real programs in hosts of their own, joined by a world that
//! runs against the clock.

mod bridge;
mod kernel;
mod machine;
mod observe;
mod place;
mod play;
mod programs;
mod requests;
mod serve;
mod side;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swell_base::{Dur, Time};
use swell_experiment::backend::{Backend, MeasuredRates, RunError};
use swell_experiment::observe::Observations;
use swell_experiment::stage::RunParts;
use swell_experiment::{RunSpec, Simulator};
use swell_world::{Hop, PathId, World};

use crate::{Control, Counts, Entry, Late, Pace, Snapshot};
use swell_host::{HostLoss, Offload, Precision, Pressure, Rights};

pub use bridge::Bridge;
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
    /// What the hosts' kernels leave to their devices.
    pub offload: Offload,
    /// A second of the world takes this many seconds; below 1 counts as 1.
    pub stretch: f64,
    /// A run that was too late is repeated with time stretched, at most to this.
    pub stretch_to: f64,
    /// How often a run that was too late is repeated, if time is not stretched.
    pub repeats: u32,
    /// Keep a journal of each run, by which it can be repeated in virtual time.
    pub record: bool,
    /// The client uses this process's standard input and output; else its output is kept in files.
    pub terminal: bool,
    /// Where the packets of the programs are written; else where the run's specification says.
    pub packets: Option<PathBuf>,
    /// Where somebody may ask something of a run while it goes on.
    pub control: Option<Arc<Control>>,
    /// Called with the state of a run while it goes on.
    pub watch: Listener<Snapshot>,
    /// Called when a run of a client has ended.
    pub ended: Listener<Exit>,
    /// Called with the conditions of a run on this machine.
    pub conditions: Listener<Conditions>,
}

/// The conditions of a run on this machine.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Lateness of its packets.
    pub late: Late,
    /// Whether it could have changed what the run shows.
    pub too_late: bool,
    /// What happened at the edge of the world.
    pub counts: Counts,
    /// What the kernel granted the thread that drives the world.
    pub precision: Precision,
    /// What the hosts' kernels left to their devices.
    pub offload: Offload,
    /// By how much time was stretched.
    pub stretch: f64,
    /// How long the run took.
    pub wall: Duration,
    /// How long the thread that drives the world ran without real-time priority because it was too busy.
    pub gave_way: Dur,
    /// How long that thread was ready to run while others had its processor.
    pub waited: Dur,
    /// What others took from the machine's processors meanwhile.
    pub pressure: Pressure,
    /// What the kernels of the hosts lost or refused, by name of the host.
    pub losses: Vec<(String, Vec<HostLoss>)>,
}

/// File name of a journal inside the directory of a run's output.
pub const JOURNAL: &str = "journal";

/// Runs experiments against the clock.
pub struct Emulator {
    rights: Rights,
    settings: Settings,
}

impl Emulator {
    /// An emulator that may make hosts.
    pub fn new(rights: Rights, settings: Settings) -> Emulator {
        Emulator { rights, settings }
    }
}

impl Backend for Emulator {
    fn name(&self) -> &'static str {
        "emulated"
    }

    /// One: two runs would share the processors and be late.
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
            repeats += u32::from(!stretchable);
            stretch = (stretch * 2.0).min(self.settings.stretch_to.max(stretch));
        }
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

/// The paths of a run whose hosts have ports.
#[derive(Clone, Copy, Debug)]
struct Ways {
    foreground: PathId,
    /// Of a background over kernel sockets.
    background: PathId,
}

/// The world of a run when its clock is started: a recorded run is repeated from here. The foreground
/// comes in by ports.
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

/// Repeats a run from its journal in virtual time, and says what differs: nothing, unless the journal,
/// the experiment or the program has changed.
///
/// # Errors
/// Where the journal or the run does not fit.
pub fn replay(spec: &RunSpec, entries: &[Entry]) -> Result<Option<[Option<Entry>; 2]>, RunError> {
    let (mut world, ..) = beginning(spec)?;
    let repeated = crate::replay(&mut world, entries);
    Ok(crate::first_difference(entries, &repeated))
}
