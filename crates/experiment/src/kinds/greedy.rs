//! Endless connections.

use std::ops::RangeInclusive;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Direction, Dur, Rate, Side, Stream};
use swell_workload::GreedyConfig;

use super::contract::{
    Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, path, reads,
};
use super::defaults::{one, yes};
use super::{Active, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{ACCESS_DELAY, Directions, Route, TcpSettings};
use crate::measure::{GOODPUT, Measure};
use crate::simulate::transport::tcp;

/// Allowed number of connections of one part.
const CONNECTIONS: RangeInclusive<u32> = 1..=100_000;

/// Endless connections, each of which sends as much as its TCP lets it. As a foreground they begin with the
/// run and not after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greedy {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// How many, in each direction that they take.
    #[serde(default = "one")]
    pub connections: u32,
    /// Which links it crosses. Before `direction`, which is its own here.
    #[serde(flatten)]
    pub route: Route,
    /// Which way their data flows; both at the same time by different connections.
    #[serde(default = "down")]
    pub direction: Directions,
    /// When the first begins, up to `spread` later: the seed draws by how much.
    #[serde(default)]
    pub start: Dur,
    /// Within how much time after its turn each begins; 0s begins exactly then, in every run.
    #[serde(default = "spread")]
    pub spread: Dur,
    /// Whether each draws for itself how much later it begins. Where not, all begin later by the same time,
    /// and runs hardly differ.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub independent: bool,
    /// Time between the beginning of one and of the next.
    #[serde(default)]
    pub stagger: Dur,
    /// One-way delay of the access path on each side of the bottleneck: of all connections, a list that they
    /// take in turn, or `{ from, to }` between which each draws its own. Default: the network's `access_delay`; of
    /// a foreground, what makes its `rtt`, if that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// Capacity of every access path, on each side and in both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// The TCP that carries them.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
}

/// Delays of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Delays {
    /// The same for all.
    Same(Dur),
    /// One after the other, and again from the first.
    InTurn(Vec<Dur>),
    /// Each draws its own, uniformly.
    Uniform {
        /// The shortest.
        from: Dur,
        /// The longest.
        to: Dur,
    },
}

impl Delays {
    /// The longest delay of a connection.
    pub fn longest(&self) -> Dur {
        match self {
            Delays::Same(delay) => *delay,
            Delays::InTurn(list) => list.iter().copied().max().unwrap_or_default(),
            Delays::Uniform { to, .. } => *to,
        }
    }

    /// The delay of each of `count` connections.
    pub(super) fn of(&self, count: u32, mut draws: Stream) -> Vec<Dur> {
        let count = count as usize;
        match self {
            Delays::Same(delay) => vec![*delay; count],
            Delays::InTurn(list) => list.iter().copied().cycle().take(count).collect(),
            Delays::Uniform { from, to } => {
                let wide = to.saturating_sub(*from);
                let mut one = |_| *from + wide.scale(draws.uniform());
                (0..count).map(&mut one).collect()
            }
        }
    }

    /// Rejects delays that no connection can have.
    pub(super) fn check(&self, key: String, found: &mut Findings) {
        match self {
            Delays::InTurn(list) if list.is_empty() => {
                found.add(key, "a list of no delays", "write at least one");
            }
            Delays::Uniform { from, to } if from > to => found.add(
                key,
                format!("there is nothing from {from} to {to}"),
                "write the shorter one first",
            ),
            _ => {}
        }
    }
}

impl Default for Delays {
    fn default() -> Delays {
        Delays::Same(ACCESS_DELAY)
    }
}

fn down() -> Directions {
    Directions::Down
}

fn spread() -> Dur {
    Dur::from_secs(1)
}

impl Keys for Greedy {
    reads!(name, active, route);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "endless transfers as a foreground are simulated only",
            "write backend = \"simulated\", or make them the background",
            found,
        );
        found.within(
            at.key("connections"),
            CONNECTIONS,
            self.connections,
            format!("{} connections are out of range", self.connections),
            "write 1 to 100000",
        );
        if self.start >= at.duration {
            found.add(
                at.key("start"),
                format!("it begins at {}, when the run is over", self.start),
                "write less than `run.duration`",
            );
        }
        if let Some(delay) = &self.delay {
            delay.check(at.key("delay"), found);
        }
        found.access(at.key("access"), self.access);
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("takes all there is: it has no rate to match")
    }

    fn delay(&self, _: Dur) -> Option<Dur> {
        self.delay.as_ref().map(Delays::longest)
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let default = || Delays::Same(with.default_delay());
        Some(Arc::new(Greedy {
            delay: Some(self.delay.clone().unwrap_or_else(default)),
            ..self.clone()
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        vec![GOODPUT]
    }

    fn sends(&self) -> Option<[bool; 2]> {
        Some(Direction::BOTH.map(|d| self.direction.has(d)))
    }

    fn clients(&self) -> u32 {
        self.connections
    }

    fn describe(&self, role: Role) -> String {
        let way = match self.direction {
            Directions::Up => "up",
            Directions::Down => "down",
            Directions::Both => "each way",
        };
        let transfers = match self.connections {
            1 => "transfer",
            _ => "transfers",
        };
        let what = format!("{} endless {transfers} {way}", self.connections);
        match role {
            Role::Foreground => format!("{what}: see the flows and the bottleneck"),
            Role::Background => what,
        }
    }
}

impl Plays for Greedy {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let seed = at.own_seed();
        // Connections need individual start phases. Otherwise all replications would be identical, and confidence
        // intervals would have zero width.
        let mut phases = Stream::new(seed, "greedy-phase");
        let each_way = self.connections;
        let connections = match self.direction {
            Directions::Both => each_way.saturating_mul(2),
            Directions::Up | Directions::Down => each_way,
        };
        let first = self.spread.scale(phases.uniform());
        let later = match self.independent {
            true => (std::iter::once(first))
                .chain((1..connections).map(|_| self.spread.scale(phases.uniform())))
                .collect(),
            false => vec![first; connections as usize],
        };
        let delays = self.delay.clone().unwrap_or_default();
        let delays = delays.of(connections, Stream::new(seed, "greedy-delay"));
        let config = GreedyConfig {
            connections,
            from: Side::of(self.direction == Directions::Down),
            start: self.start,
            stagger: self.stagger,
            later,
            delays,
            sender: path(Dur::ZERO, self.access),
            receiver: path(Dur::ZERO, self.access),
        };
        let machine = match self.direction {
            Directions::Both => swell_workload::Greedy::both_ways(config),
            Directions::Up | Directions::Down => swell_workload::Greedy::new(config),
        };
        Ok(Some((Box::new(machine), tcp(&self.tcp))))
    }

    fn class(&self, _: u32) -> String {
        "greedy".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay.as_ref().map_or(ACCESS_DELAY, Delays::longest)
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let ways = match self.direction {
            Directions::Up => [1.0, 0.0],
            Directions::Down => [0.0, 1.0],
            Directions::Both => [1.0, 1.0],
        };
        let rate = |d: Direction| at.way.rates[d].bps() as f64 * 0.9 * ways[d];
        Plausible::of(Direction::BOTH.map(rate), 0.5)
    }
}
