//! What runs a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Dur, derived};
use swell_path::Deliveries;

use crate::file::{Change, Link, Stack};
use crate::kinds::{Playing, Role, Setting};
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

impl Offered {
    /// What both offer together.
    pub fn with(self, other: Offered) -> Offered {
        let sum = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Offered {
            mean: sum(self.mean, other.mean),
            drawn: sum(self.drawn, other.drawn),
        }
    }
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
    pub foreground: Option<Playing>,
    /// Other applications, which run at the same time.
    pub beside: Vec<Playing>,
    /// The parts of the background; none where there is none.
    pub background: Vec<Playing>,
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

impl RunSpec {
    /// The parts that play a role, with what each must know of the run: in the order of their names, so that the order
    /// in the file changes nothing.
    pub fn parts(&self, role: Role) -> Vec<(Setting<'_>, &Playing)> {
        let mut all: Vec<&Playing> = match role {
            Role::Foreground => self.foreground.iter().chain(&self.beside).collect(),
            Role::Background => self.background.iter().collect(),
        };
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let mut first_source = match role {
            Role::Foreground => self.background.iter().map(|b| b.numbered_sources()).sum(),
            Role::Background => 0,
        };
        let mut parts = Vec::with_capacity(all.len());
        for (i, part) in all.into_iter().enumerate() {
            let setting = Setting {
                role,
                name: &part.name,
                replication: self.cell.replication,
                seed: match i {
                    0 => self.cell.seed,
                    i => derived(self.cell.seed, PART + i as u64),
                },
                warmup: self.warmup,
                duration: self.duration,
                links: &self.links,
                first_source,
            };
            first_source += part.numbered_sources();
            parts.push((setting, part));
        }
        parts
    }

    /// Whether there are several foregrounds or several parts of the background, which are counted one by one then.
    pub fn is_mixed(&self) -> bool {
        self.background.len() > 1 || !self.beside.is_empty()
    }
}

/// Which seeds the parts of a role draw from, but for the first.
const PART: u64 = 1 << 41;
