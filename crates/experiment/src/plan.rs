//! Resolves an experiment file to a plan of fully specified runs.

mod datagrams;
pub(crate) mod deliveries;
mod filling;
mod imitations;
mod rates;
mod resolve;
pub(crate) mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swell_base::{Bytes, Direction, Dur, QueueLimit};
use swell_path::{Deliveries, Fifo};

use crate::backend::{Duplex, RunSpec};
use crate::file::{self, File, Keep, Link, LinkKeys, Route};
use crate::hash::Hash;
use crate::kinds::{Input, Part, Playing, Resolving, Role};
use crate::measure::DELAY;
use crate::observe::Cell;
use crate::store::{Measured, ModelFacts};

/// A resolved experiment: its models are read, its runs are listed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment. Model files are named relative to the run directory.
    pub file: File,
    /// Its text, with all defaults written out.
    pub toml: String,
    /// The file's name, as given by the user.
    pub source: String,
    /// The runs: foregrounds, then backgrounds, then replications, in the order of the file.
    pub cells: Vec<Cell>,
    /// The models and traces that backgrounds have read, by background.
    pub inputs: BTreeMap<String, Input>,
    /// Those that foregrounds have read, by foreground.
    pub foreground_inputs: BTreeMap<String, Input>,
    /// The packet-delivery traces of the network, by the path in the resolved file.
    pub deliveries: BTreeMap<String, Arc<Deliveries>>,
    /// Whether another run of the same backgrounds has looked whether those with `energy` have it. It is not looked again.
    pub energy_known: bool,
}

impl Plan {
    /// A hash of everything that the tables depend on: equal hashes mean equal tables.
    pub fn hash(&self, backend: &str) -> String {
        let mut hash = Hash::new()
            .part(crate::VERSION.as_bytes())
            .part(backend.as_bytes())
            .part(self.toml.as_bytes());
        for (background, facts) in self.facts() {
            hash = hash.part(background.as_bytes()).part(facts.hash.as_bytes());
        }
        hash.hex()
    }

    /// The facts about models and traces for the manifest, by background; those of a foreground are under `foreground
    /// NAME`, with the word as often as it takes where backgrounds are called so.
    pub fn facts(&self) -> impl Iterator<Item = (String, &ModelFacts)> {
        let mut taken: BTreeSet<String> = self.inputs.keys().cloned().collect();
        let foregrounds = self.foreground_inputs.iter().map(move |(name, input)| {
            let mut key = format!("foreground {name}");
            while !taken.insert(key.clone()) {
                key.insert_str(0, "foreground ");
            }
            (key, input)
        });
        let backgrounds = self.inputs.iter().map(|(name, i)| (name.clone(), i));
        let all = foregrounds.chain(backgrounds);
        all.map(|(name, input)| (name, &input.facts))
    }

    /// The backgrounds that must first be measured alone, as far as the file tells: those that another one matches, those
    /// that are scaled to a rate, and those that may lose packets: bursts, models of datagrams, mixes with traffic that
    /// does not slow down, a rate that was measured on another path, and packets that nearly fill a link.
    pub fn to_measure(&self) -> Vec<&Part> {
        let all = self.file.background.iter().map(|b| &b.0);
        all.filter(|b| self.is_to_measure(b, &BTreeMap::new()))
            .collect()
    }

    /// Whether it must be measured alone, by what is known of the rates that it may match.
    pub(crate) fn is_to_measure(&self, b: &Part, measured: &BTreeMap<String, Measured>) -> bool {
        let mut others = self.file.background.iter();
        let matched = others.any(|other| other.matches() == Some(b.name()));
        let mixed = !b.parts().is_empty()
            && (self.file.leaves(b).into_iter())
                .any(|leaf| leaf.is_open_loop() || self.plays_datagrams(leaf));
        let may_lose =
            b.may_lose() || mixed || self.plays_datagrams(b) || self.matches_elsewhere(b);
        matched || b.is_scaled() || may_lose || self.may_fill(b, measured) == Some(true)
    }

    /// Whether it never slows down, and takes the rate of a background with another path or other windows. Links of its
    /// own path may be too slow for that rate.
    fn matches_elsewhere(&self, background: &Part) -> bool {
        let hops = |part: &Part| self.file.hops(&part.route());
        let all = self.file.background.iter();
        let mut matched = all.filter(|b| background.matches() == Some(b.name()));
        background.is_open_loop()
            && matched.any(|other| {
                let leaves = self.file.leaves(other);
                leaves
                    .into_iter()
                    .any(|leaf| hops(leaf) != hops(background))
                    || other.active() != background.active()
            })
    }

    /// The same in the order in which they can be measured: first those that do not need the rates of others. Whether
    /// packets must be measured whose rate is that of another one shows only when that one is.
    pub(crate) fn measuring_stages(&self) -> Vec<Vec<&Part>> {
        let mut stages: Vec<Vec<&Part>> = Vec::new();
        let mut known = BTreeMap::new();
        let none = BTreeMap::new();
        let all = self.file.background.iter().map(|b| &b.0);
        let may = |b: &&Part| self.is_to_measure(b, &none) || self.may_fill(b, &none).is_none();
        for background in all.filter(may) {
            let stage = self.depth(background, &mut known);
            stages.resize_with(stages.len().max(stage + 1), Vec::new);
            stages[stage].push(background);
        }
        stages
    }

    /// Length of the longest chain of backgrounds that must be measured before this one. The check of the file rejects
    /// circles. `known` are those that were asked for before.
    fn depth<'p>(&'p self, background: &'p Part, known: &mut BTreeMap<&'p str, usize>) -> usize {
        if let Some(&depth) = known.get(background.name()) {
            return depth;
        }
        let all = &self.file.background;
        let needed = background.needs();
        let depth = needed
            .filter_map(|name| all.iter().find(|b| b.name() == name))
            .map(|other| self.depth(other, known) + 1)
            .max()
            .unwrap_or(0);
        known.insert(background.name(), depth);
        depth
    }

    /// The full specification of a run. `measured` holds the results of the calibration; a background that matches one
    /// without a result is silent.
    pub fn spec(&self, cell: &Cell, measured: &BTreeMap<String, Measured>) -> Option<RunSpec> {
        let backgrounds = &self.file.background;
        let background = backgrounds.iter().find(|b| b.name() == cell.background)?;
        let foreground = self
            .file
            .foreground
            .iter()
            .find(|f| f.name() == cell.foreground)?;
        let found = measured.get(background.name());
        let pace = found.and_then(Measured::pace);
        let replication = cell.replication as usize;
        // Packets at given times keep their goodput however late they arrive, so their delay is judged.
        let delays = foreground.measures().contains(&DELAY);
        Some(RunSpec {
            cell: cell.clone(),
            foreground: self.foreground(foreground, measured, replication),
            beside: self.beside(foreground, measured, replication),
            background: self.background(background, pace, measured, replication),
            // Those of segments over TCP are not timed; what they wait at the links is judged.
            keep: Keep {
                waits: self.file.run.keep.waits || (delays && !foreground.is_open_loop()),
                ..self.file.run.keep.clone()
            },
            delays,
            ..self.bare(cell.clone())
        })
    }

    /// The specification of a run that measures a background alone. `pace` overrides the file's sessions or the speed
    /// of a replay, or multiplies the rate of packets. `measured` holds the rates that it may match.
    pub fn alone(
        &self,
        background: &Part,
        replication: u32,
        pace: Option<f64>,
        measured: &BTreeMap<String, Measured>,
    ) -> RunSpec {
        let cell = Cell {
            foreground: String::new(),
            background: background.name().into(),
            replication,
            seed: self.seed(replication),
        };
        let mut parts = self.background(background, pace, measured, replication as usize);
        // The rate of a background with active windows applies within the windows, so measure without them.
        if background.parts().is_empty() {
            parts.iter_mut().for_each(|part| part.active = None);
        }
        RunSpec {
            background: parts,
            keep: Keep::NOTHING,
            ..self.bare(cell)
        }
    }

    fn seed(&self, replication: u32) -> u64 {
        self.file.run.seed.wrapping_add(u64::from(replication))
    }

    fn bare(&self, cell: Cell) -> RunSpec {
        let phase = deliveries::phase(&self.deliveries, cell.seed);
        let rtt = self.rtt();
        let links = self.file.links().into_iter().zip(self.links());
        let links = links.map(|(file, mut duplex)| {
            for link in &mut duplex.directions {
                if let Some(spec) = &mut link.deliveries {
                    deliveries::begin(spec, &self.deliveries, phase);
                }
            }
            let changes = Direction::BOTH.map(|d| {
                let (all, link) = (&file.keys.change, &duplex.directions[d]);
                deliveries::changes(all, d, link, rtt, &self.deliveries, phase)
            });
            Duplex { changes, ..duplex }
        });
        RunSpec {
            cell,
            links: links.collect(),
            deliveries: self.deliveries.clone(),
            foreground: None,
            beside: Vec::new(),
            background: Vec::new(),
            warmup: self.file.run.warmup,
            duration: self.file.run.duration,
            bins: self.file.run.bins,
            background_stack: self.file.run.background_stack,
            keep: self.file.run.keep.clone(),
            delays: false,
            packets: None,
            output: None,
        }
    }

    /// One-way access delay at each end of the path.
    fn access_delay(&self, foreground: &Part) -> Dur {
        let own = self.file.round_trip(&foreground.route());
        match (foreground.delay(&self.file.network), self.file.network.rtt) {
            (Some(delay), _) => delay,
            // A round trip crosses each of the two access paths twice.
            (None, Some(rtt)) => rtt.saturating_sub(own) / 4,
            (None, None) => self.file.network.access_delay(),
        }
    }

    /// The network's `rtt`, or the longest round-trip propagation delay of a foreground; of a background, where no
    /// foreground sends.
    pub fn rtt(&self) -> Dur {
        let file = &self.file;
        let trip = |part: &Part| file.round_trip(&part.route()) + self.access_delay(part) * 4;
        let sends = |part: &&Part| !part.is_none() && part.parts().is_empty();
        let foregrounds = file.foreground.iter().map(|f| &f.0).filter(sends);
        let backgrounds = file.background.iter().map(|b| &b.0).filter(sends);
        (file.network.rtt)
            .or_else(|| foregrounds.map(trip).max())
            .or_else(|| backgrounds.map(trip).max())
            .unwrap_or_else(|| file.round_trip(&Route::default()))
    }

    /// The initial links, with queue limits in packets, bytes or time.
    pub fn links(&self) -> Vec<Duplex> {
        let rtt = self.rtt();
        let links = self.file.links().into_iter();
        let links = links.map(|link| Duplex {
            directions: directions(&link.keys, rtt),
            name: link.name.into(),
            changes: Default::default(),
        });
        links.collect()
    }

    /// The parts of a background. `pace` applies to a background with a single part; the parts of a mix have theirs
    /// from `measured`.
    fn background(
        &self,
        background: &Part,
        pace: Option<f64>,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
    ) -> Vec<Playing> {
        let leaves = self.file.leaves(background);
        let one = |part: &Part| {
            let own = match background.parts().is_empty() {
                true => pace,
                false => measured.get(part.name()).and_then(Measured::pace),
            };
            let input = self.inputs.get(part.name());
            self.playing(Role::Background, part, input, own, measured, replication)
        };
        leaves.into_iter().filter_map(one).collect()
    }

    fn foreground(
        &self,
        foreground: &Part,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
    ) -> Option<Playing> {
        let input = self.foreground_inputs.get(foreground.name());
        self.playing(
            Role::Foreground,
            foreground,
            input,
            None,
            measured,
            replication,
        )
    }

    /// The other foregrounds, if all run at the same time.
    fn beside(
        &self,
        foreground: &Part,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
    ) -> Vec<Playing> {
        if !self.file.run.together {
            return Vec::new();
        }
        let all = self.file.foreground.iter();
        all.filter(|f| f.name() != foreground.name())
            .filter_map(|f| self.foreground(f, measured, replication))
            .collect()
    }

    /// A part in a run; `None` if it has no traffic.
    fn playing(
        &self,
        role: Role,
        part: &Part,
        input: Option<&Input>,
        pace: Option<f64>,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
    ) -> Option<Playing> {
        let with = Resolving {
            role,
            input: input.map(|input| &input.data),
            measured: &self.file.taken(part, measured),
            replication,
            pace,
            delay: self.access_delay(part),
            access_delay: self.file.network.access_delay(),
        };
        Some(Playing {
            name: part.name().to_owned(),
            traffic: part.keys().resolve(&with)?,
            active: part.active(),
            energy: part.energy(),
            path: self.file.hops(&part.route()),
        })
    }
}

/// The two directions of a link, with queue limits in packets, bytes or time.
fn directions(keys: &LinkKeys, rtt: Dur) -> [Link; 2] {
    let mut chosen = keys.queues_given().into_iter();
    keys.directions().map(|mut link| {
        let rate = link.rate;
        let given = chosen.next().unwrap_or(true);
        let limits = std::iter::once(&mut link.queue).chain(link.qdisc.limits_mut());
        for limit in limits {
            if let QueueLimit::Bdp(k) = *limit {
                *limit = Fifo::bdp(k, rate, rtt);
            }
        }
        // A default queue in BDP would be too small on a slow or short link, so it has a minimum size.
        if let (false, QueueLimit::Bytes(bytes)) = (given, &mut link.queue) {
            *bytes = Bytes(bytes.0.max(file::LEAST_QUEUE));
        }
        link
    })
}

fn cells(file: &File) -> Vec<Cell> {
    let mut cells = Vec::new();
    for foreground in &file.foreground {
        for background in &file.background {
            for replication in 0..file.run.replications {
                cells.push(Cell {
                    foreground: foreground.name().into(),
                    background: background.name().into(),
                    replication,
                    seed: file.run.seed.wrapping_add(u64::from(replication)),
                });
            }
        }
    }
    cells
}

pub use crate::captures::Capture;
pub use traces::Traces;
