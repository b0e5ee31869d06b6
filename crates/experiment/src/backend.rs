//! The interface of backends, which execute runs, and the full specification of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Direction, Dur, derived};
use swell_path::Deliveries;

pub use crate::error::RunError;
use crate::file::{Change, Hop, Keep, Link, Queue, Stack, narrowest, queues};
pub use crate::kinds::Offered;
use crate::kinds::{Machine, PathProperties, Playing, Role, Setting};
use crate::observe::{Cell, Observations};

/// Executes runs: a simulator, an emulator or real hosts.
pub trait Backend: Sync {
    /// The name that is stored in manifests.
    fn name(&self) -> &'static str;

    /// Whether a run of the same specification has the same result at any time and place. Otherwise results depend on
    /// what no run directory records, such as the program under test.
    fn is_reproducible(&self) -> bool {
        true
    }

    /// Settings that are not in the experiment and affect results, by name, for the manifest. Runs with other settings
    /// are not counted together with these.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The maximum number of concurrent runs that do not disturb each other.
    fn at_once(&self) -> usize {
        usize::MAX
    }

    /// Whether a run writes files in addition to its tables. If so, it gets a directory for them.
    fn writes(&self, _spec: &RunSpec) -> bool {
        false
    }

    /// Executes a run. It calls `progress` from time to time with the finished share, 0..=1, and aborts when
    /// `cancelled` returns true.
    ///
    /// # Errors
    /// If it was cancelled or could not be executed.
    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError>;

    /// Whether the conditions of a run spoilt its result. It is then repeated when all other runs are finished, because
    /// what disturbed it may have ended by then.
    fn is_spoilt(&self, _observed: &Observations) -> bool {
        false
    }

    /// Mean rates of the background alone on the network (`spec.foreground` is `None`), from the network-layer bytes
    /// that left the slowest link of its path after the warm-up. Of several parts it is the sum, each at the slowest
    /// link of its own path and in its own directions.
    ///
    /// # Errors
    /// Like [`run`](Backend::run).
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
        let [mut up_bps, mut down_bps] = [0.0; 2];
        for part in &spec.background {
            let [up, down] = spec.narrowest(&part.path).map(|queue| {
                let all = totals(queue).filter(|l| l.duration > 0.0);
                let all = all.map_or(0.0, |l| l.departed[1] as f64 * 8.0 / l.duration);
                all * share(spec, &observed, part, queue)
            });
            up_bps += up;
            down_bps += down;
        }
        // Several parts may share a link that some of them enter from elsewhere, so the packets that enter are counted
        // by part. Wire losses are in the totals only.
        let mut entered = 0;
        let mut crossed = BTreeSet::new();
        for part in &spec.background {
            for way in Direction::BOTH.map(|along| queues(&part.path, along)) {
                entered += way.first().map_or(0, |first| match spec.is_mixed() {
                    true => {
                        let name = &spec.links[first.link].name;
                        let own = observed.parts.iter().filter(|p| {
                            p.part == part.name && p.link == *name && p.direction == first.direction
                        });
                        own.map(|p| p.arrived_packets).sum::<u64>()
                    }
                    false => totals(*first).map_or(0, |l| l.arrived_packets[1]),
                });
                crossed.extend(way);
            }
        }
        let dropped = crossed.into_iter().filter_map(totals);
        let dropped = dropped.map(|l| l.dropped[1]).sum::<u64>();
        Ok(MeasuredRates {
            up_bps,
            down_bps,
            lost: match entered {
                0 => 0.0,
                n => dropped as f64 / n as f64,
            },
        })
    }

    /// The rate that the background of `spec` offers, if it is known before the run.
    ///
    /// # Errors
    /// If the background cannot be built.
    fn offered(&self, spec: &RunSpec) -> Result<Option<Offered>, RunError> {
        offered(spec)
    }
}

/// The share of a part in the background bytes that left a queue.
fn share(spec: &RunSpec, observed: &Observations, part: &Playing, queue: Queue) -> f64 {
    if !spec.is_mixed() {
        return 1.0;
    }
    let name = &spec.links[queue.link].name;
    let background = Role::Background.word();
    let (mut own, mut all) = (0, 0);
    for row in observed.parts.iter().filter(|p| p.role == background) {
        if row.link == *name && row.direction == queue.direction {
            all += row.departed;
            own += if row.part == part.name {
                row.departed
            } else {
                0
            };
        }
    }
    own as f64 / all.max(1) as f64
}

/// Mean rates of a background, network-layer bits per second.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MeasuredRates {
    /// Left to right.
    pub up_bps: f64,
    /// Right to left: towards the clients.
    pub down_bps: f64,
    /// Share of the packets that were dropped on its way, both directions.
    pub lost: f64,
}

/// The full specification of a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Identifies the run. Random streams derive from its seed.
    pub cell: Cell,
    /// The links.
    pub links: Vec<Duplex>,
    /// The delivery traces to which links and changes refer.
    pub deliveries: BTreeMap<String, Arc<Deliveries>>,
    /// The application under study; `None` for the background alone.
    pub foreground: Option<Playing>,
    /// Other applications, which run at the same time.
    pub beside: Vec<Playing>,
    /// The parts of the background; empty if there is no background.
    pub background: Vec<Playing>,
    /// Warm-up: background alone, not counted in totals. The foreground starts at its end.
    pub warmup: Dur,
    /// Length of the run, warm-up included.
    pub duration: Dur,
    /// Bin width of the time series.
    pub bins: Dur,
    /// The TCP implementation for the background, if the backend has a choice.
    pub background_stack: Stack,
    /// Which large results to keep. Packets are kept if there is a file for them.
    pub keep: Keep,
    /// Whether to fill the table `delays`.
    pub delays: bool,
    /// File for the packets that arrive at links; `None` to keep no packets.
    pub packets: Option<PathBuf>,
    /// An existing directory for files that the run writes in addition to its tables.
    pub output: Option<PathBuf>,
}

/// The full specification of a link in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplex {
    /// Its name in tables.
    pub name: Arc<str>,
    /// Initial state, up and down. Queue limits are in packets, bytes or time, never in BDP.
    pub directions: [Link; 2],
    /// Changes of the two directions. A change of a queue has both limit and discipline, with limits in packets, bytes
    /// or time; delivery traces have phases.
    pub changes: [Vec<Change>; 2],
}

impl RunSpec {
    /// The initial state of a direction of a link.
    pub fn link(&self, queue: Queue) -> &Link {
        &self.links[queue.link].directions[queue.direction]
    }

    /// Both directions of the links of a path.
    pub fn along<'s>(&'s self, path: &'s [Hop]) -> impl Iterator<Item = &'s Link> {
        path.iter().flat_map(|hop| &self.links[hop.link].directions)
    }

    /// The links with the lowest initial rates of a path: from its clients, and towards them.
    ///
    /// # Panics
    /// If the path has no link.
    pub fn narrowest(&self, path: &[Hop]) -> [Queue; 2] {
        Direction::BOTH.map(|along| {
            let narrowest = narrowest(path, along, |queue| self.link(queue).rate);
            narrowest.expect("a path has a link")
        })
    }

    /// The links that the foreground crosses; all links if there is no foreground.
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

    /// The properties of a path that its traffic needs to know.
    fn way(&self, path: &[Hop]) -> PathProperties {
        PathProperties {
            rates: self.narrowest(path).map(|queue| self.link(queue).rate),
            round_trip: self.along(path).map(|l| l.delay).sum(),
        }
    }

    /// The parts with this role, each with its setting in the run. They are sorted by name, so that their order in the
    /// file has no effect.
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

    /// The workload of the foreground over kernel sockets, beginning at once; `None` if there is none, or only the
    /// simulator supports it.
    pub fn over_sockets(&self) -> Option<Machine> {
        let own = self.foreground.as_ref()?;
        let mut parts = self.parts(Role::Foreground).into_iter();
        let (setting, part) = parts.find(|(_, part)| std::ptr::eq(*part, own))?;
        part.over_sockets(&Setting {
            warmup: Dur::ZERO,
            ..setting
        })
    }

    /// Whether there are several foregrounds or several parts of the background. If so, each part is counted
    /// separately.
    pub fn is_mixed(&self) -> bool {
        self.background.len() > 1 || !self.beside.is_empty()
    }
}

/// Label of the seeds for all parts of a role except the first, which uses the seed of the run.
const PART: u64 = 1 << 41;

/// The rate that a run's background offers, if it is known before the run.
///
/// # Errors
/// If the background cannot be built.
pub fn offered(spec: &RunSpec) -> Result<Option<Offered>, RunError> {
    let mut sum: Option<Offered> = None;
    for (setting, part) in spec.parts(Role::Background) {
        let Some(own) = part.offered(&setting)? else {
            return Ok(None);
        };
        sum = Some(match sum {
            None => own,
            Some(sum) => sum.with(own),
        });
    }
    Ok(sum)
}
