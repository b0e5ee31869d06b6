//! What runs a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Dur, derived};
use swell_path::Deliveries;

use crate::exporter::Exporter;
use crate::file::{Change, Hop, Link, Queue, Stack, narrowest, queues};
use crate::kinds::{Playing, Role, Setting, Way};
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
    /// `None`): network-layer bytes that left the slowest link of its path after the warm-up.
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
        let totals = |queue: Queue| {
            let name = &spec.links[queue.link].name;
            let mut links = observed.links.iter();
            links.find(|l| l.link == *name && l.direction == queue.direction)
        };
        let [up_bps, down_bps] = spec.slowest().map(|queue| {
            totals(queue).map_or(0.0, |l| match l.duration > 0.0 {
                true => l.departed[1] as f64 * 8.0 / l.duration,
                false => 0.0,
            })
        });
        let ways = spec.background.iter().flat_map(|part| {
            let queues = [false, true].map(|down| queues(&part.path, down));
            queues.into_iter()
        });
        let ways: Vec<Vec<Queue>> = ways.collect();
        // What enters a path arrives at its first link.
        let first: BTreeSet<Queue> = ways.iter().map(|way| way[0]).collect();
        let crossed: BTreeSet<Queue> = ways.iter().flatten().copied().collect();
        let arrived = first.into_iter().filter_map(totals);
        let arrived = arrived.map(|l| l.arrived_packets[1]).sum::<u64>() as f64;
        let dropped = crossed.into_iter().filter_map(totals);
        let dropped = dropped.map(|l| l.dropped[1]).sum::<u64>() as f64;
        Ok(MeasuredRates {
            up_bps,
            down_bps,
            lost: match arrived > 0.0 {
                true => dropped / arrived,
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
    /// Share of the packets that were dropped on its way, both directions.
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
    /// The links.
    pub links: Vec<Duplex>,
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
    /// Whether to say what requests waited for.
    pub waterfall: bool,
    /// Flow exporters on the links.
    pub records: Option<Exporter>,
    /// Where to write the packets that arrive at the bottleneck; nowhere if `None`.
    pub packets: Option<PathBuf>,
    /// A directory for what the run writes beside its tables; it is there.
    pub output: Option<PathBuf>,
}

/// A link of a run, everything said.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplex {
    /// The name by which tables know it.
    pub name: Arc<str>,
    /// Up and down, as they are at first. Queues are in packets, bytes or time, never BDP.
    pub directions: [Link; 2],
    /// How the two directions change. Queues are in packets, bytes or time, and said with discipline
    /// and limit; delivery traces have their phases.
    pub changes: [Vec<Change>; 2],
}

impl RunSpec {
    /// A direction of a link as it is at first.
    pub fn link(&self, queue: Queue) -> &Link {
        &self.links[queue.link].directions[usize::from(queue.direction)]
    }

    /// Both directions of the links of a path.
    pub fn along<'s>(&'s self, path: &'s [Hop]) -> impl Iterator<Item = &'s Link> {
        path.iter().flat_map(|hop| &self.links[hop.link].directions)
    }

    /// Where a path has its lowest rates at first: on the way from its clients, and on the way to them.
    ///
    /// # Panics
    /// Where the path has no link.
    pub fn narrowest(&self, path: &[Hop]) -> [Queue; 2] {
        [false, true].map(|down| {
            let narrowest = narrowest(path, down, |queue| self.link(queue).rate);
            narrowest.expect("a path has a link")
        })
    }

    /// The same of all that the background crosses.
    pub fn slowest(&self) -> [Queue; 2] {
        let hops: Vec<Hop> = self
            .background
            .iter()
            .flat_map(|part| part.path.clone())
            .collect();
        match hops.is_empty() {
            true => self.narrowest(&self.foreground_path()),
            false => self.narrowest(&hops),
        }
    }

    /// The links that the foreground crosses; all where there is no foreground.
    pub fn foreground_path(&self) -> Vec<Hop> {
        let own = self.foreground.as_ref().map(|part| part.path.clone());
        own.unwrap_or_else(|| {
            let hop = |link| Hop {
                link,
                reversed: false,
            };
            (0..self.links.len()).map(hop).collect()
        })
    }

    /// What a path is to those on it.
    fn way(&self, path: &[Hop]) -> Way {
        Way {
            rates: self.narrowest(path).map(|queue| self.link(queue).rate),
            round_trip: self.along(path).map(|l| l.delay).sum(),
        }
    }

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
                way: self.way(&part.path),
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
