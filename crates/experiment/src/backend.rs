//! What runs a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Bytes, Dur, Rate};
use swell_path::Deliveries;
use swell_traffic::flowlevel::{FlowModel, Playback};
use swell_traffic::{Knobs, Model};
use swell_workload::Packets;

use crate::file::{
    Change, Greedy, Link, OnOff, Program, Replay, Stack, TcpSettings, Transport, Web,
};
use crate::observe::{Cell, Observations};

/// What runs a run: a simulator, an emulator, real hosts.
pub trait Backend: Sync {
    /// The name that manifests record.
    fn name(&self) -> &'static str;

    /// How many runs it can do at the same time without one disturbing the other.
    fn at_once(&self) -> usize {
        usize::MAX
    }

    /// Whether a run writes files of its own, beside its tables: then it is given a directory for them.
    fn writes(&self, _spec: &RunSpec) -> bool {
        false
    }

    /// Runs one run to its end. `progress` takes the share done, 0..=1, now and then; where
    /// `cancelled` says so the run is given up.
    ///
    /// # Errors
    /// Where it was cancelled or could not be run.
    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError>;

    /// Mean rates of the background when it has the network to itself (`spec.foreground` is
    /// `None`): network-layer bytes that left the bottleneck after the warm-up.
    ///
    /// # Errors
    /// As [`run`](Backend::run).
    fn measure(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<MeasuredRates, RunError> {
        let observed = self.run(spec, progress, cancelled)?;
        let mean = |direction: u8| {
            let totals = observed.links.iter().find(|l| l.direction == direction);
            totals.map_or(0.0, |l| match l.duration > 0.0 {
                true => l.departed[1] as f64 * 8.0 / l.duration,
                false => 0.0,
            })
        };
        let sum = |of: fn(&crate::observe::LinkTotals) -> u64| {
            observed.links.iter().map(of).sum::<u64>() as f64
        };
        let arrived = sum(|l| l.arrived_packets[1]);
        Ok(MeasuredRates {
            up_bps: mean(0),
            down_bps: mean(1),
            lost: match arrived > 0.0 {
                true => sum(|l| l.dropped[1]) / arrived,
                false => 0.0,
            },
        })
    }

    /// What the background of `spec` offers, where that is known before it runs.
    ///
    /// # Errors
    /// Where the background cannot be built.
    fn offered(&self, spec: &RunSpec) -> Result<Option<Offered>, RunError> {
        crate::simulate::stage::offered(spec)
    }
}

/// What a background offers up and down, bits per second of network-layer bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// In the mean over all draws.
    pub mean: [f64; 2],
    /// What this draw offers between the end of the warm-up and the end of the run.
    pub drawn: [f64; 2],
}

/// Mean rates of a background, bits per second of network-layer bytes.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MeasuredRates {
    /// Left to right.
    pub up_bps: f64,
    /// Right to left: towards the clients.
    pub down_bps: f64,
    /// Share of the packets that were dropped at the bottleneck, both directions.
    pub lost: f64,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The backend cannot run this.
    #[error("{0}")]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// A run, everything said.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Which run. Random streams come from its seed.
    pub cell: Cell,
    /// The bottleneck's up and down direction. Queues are in packets, bytes or time, never BDP.
    pub links: [Link; 2],
    /// How the two directions change. Queues are in packets, bytes or time, and said with discipline
    /// and limit; delivery traces have their phases.
    pub changes: [Vec<Change>; 2],
    /// The delivery traces that links and changes name.
    pub deliveries: BTreeMap<String, Arc<Deliveries>>,
    /// The application under study; `None` for the background alone.
    pub foreground: Option<ForegroundSpec>,
    /// The background.
    pub background: BackgroundSpec,
    /// The first part of the run: background alone, in no total. The foreground starts after it.
    pub warmup: Dur,
    /// Length of the run, warm-up included.
    pub duration: Dur,
    /// Bin width of the time series.
    pub bins: Dur,
    /// Whose TCP the background runs on, where the backend has both.
    pub background_stack: Stack,
    /// Whether to fill the table of background connections.
    pub flows: bool,
    /// Whether to fill the table of waits at the bottleneck.
    pub waits: bool,
    /// Whether to say if connections lose together.
    pub synchrony: bool,
    /// Where to write the packets that arrive at the bottleneck; nowhere if `None`.
    pub packets: Option<PathBuf>,
    /// A directory for what the run writes beside its tables; it is there.
    pub output: Option<PathBuf>,
}

/// An application under study, everything said.
#[derive(Clone, Debug, PartialEq)]
pub enum ForegroundSpec {
    /// Clients that fetch objects.
    Web {
        /// As in the file.
        web: Web,
        /// One-way delay of the access path on each side of the bottleneck.
        delay: Dur,
    },
    /// A real program.
    Program {
        /// As in the file.
        program: Program,
        /// One-way delay of the access path on each side of the bottleneck.
        delay: Dur,
    },
    /// Packets of one size. Independent sources are numbered after the background's.
    Packets(PacketsSpec),
    /// Endless connections.
    Greedy(Greedy),
}

/// Background traffic, everything said.
#[derive(Clone, Debug, PartialEq)]
pub enum BackgroundSpec {
    /// None.
    None,
    /// Packets of one size.
    Parametric(PacketsSpec),
    /// A learnt model.
    Learnt {
        /// As it was read: the knobs are not applied yet.
        model: Arc<Model>,
        /// The knobs; `sessions` is what calibration found.
        knobs: Knobs,
        /// The TCP that users and servers run.
        tcp: TcpSettings,
    },
    /// A flow-level model.
    Sessions {
        /// As it was read.
        model: Arc<FlowModel>,
        /// How it is played; `load` is what calibration found.
        playback: Playback,
        /// One-way delay of the access path on each side of the bottleneck.
        delay: Dur,
        /// The TCP that clients and servers run.
        tcp: TcpSettings,
    },
    /// The packets of a trace.
    Replay {
        /// As in the file; `stretch`, `rate` and `reversed` are said below.
        replay: Replay,
        /// The trace.
        trace: Arc<Trace>,
        /// Times are multiplied by this.
        stretch: f64,
    },
    /// Endless connections.
    Greedy(Greedy),
    /// Packets of on/off sources.
    OnOff(OnOff),
}

/// The packets of a trace, in the directions in which they are replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Up and down: time since the first packet, network-layer bytes.
    pub packets: [Packets; 2],
    /// After how long it begins again.
    pub period: Dur,
}

impl Trace {
    /// Mean rates up and down, bits per second of network-layer bytes.
    pub fn bps(&self) -> [f64; 2] {
        let seconds = self.period.as_secs_f64();
        self.packets.each_ref().map(|way| {
            let bytes: u64 = way.iter().map(|p| u64::from(p.1)).sum();
            bytes as f64 * 8.0 / seconds
        })
    }
}

/// Packets of one size, everything said.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsSpec {
    /// Their intervals.
    pub process: Process,
    /// What carries them.
    pub transport: Transport,
    /// Sources per direction.
    pub sources: u32,
    /// Network-layer size of a packet.
    pub packet: Bytes,
    /// Mean rate up and down, in network-layer bytes; a zero direction is silent.
    pub rates: [Rate; 2],
    /// Whether each source has intervals of its own.
    pub independent: bool,
    /// One-way delay of the access path on the left and on the right.
    pub delays: [Dur; 2],
    /// Capacity of every access path on the left; unlimited if `None`.
    pub access: Option<Rate>,
    /// The TCP that carries them, where TCP does.
    pub tcp: TcpSettings,
}

/// The intervals between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Equal.
    Cbr,
    /// Exponential.
    Poisson,
}
