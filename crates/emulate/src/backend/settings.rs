//! How the emulator runs, and under which conditions it ran.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swell_base::Dur;
use swell_host::{HostLoss, Offload, Precision, Pressure};

use super::exit::Exit;
use super::input::Input;
use crate::{Control, Counts, Late, Pace, Snapshot};

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
