//! A peer of a file-sharing swarm.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Stream};
use swell_workload::{Remote, SwarmConfig};

use super::contract::{
    Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access, reads,
};
use super::{Active, Delays, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::measure::{GOODPUT, Measure};
use crate::simulate::transport::tcp;

/// Largest number of peers and of requests under way.
const MOST: u32 = 10_000;
/// Largest number of slots. Each peer has rivals for all of them.
const SLOTS: u32 = 100;

/// A client of a file-sharing swarm (BitTorrent): connections to many peers, which choke and unchoke each other
/// and exchange blocks both ways. It begins in steady state. As a foreground it begins with the run and not after
/// the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swarm {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Peers to which the client has a connection.
    #[serde(default = "peers")]
    pub peers: u32,
    /// Share of the peers that have the whole file: they send and never request.
    #[serde(default)]
    pub seeds: f64,
    /// Peers that the client, and each of its peers, unchokes at a time: those that gave most in 20 s, and an
    /// optimistic one.
    #[serde(default = "slots")]
    pub slots: u32,
    /// Requests for blocks of 16 kB that are under way on a connection.
    #[serde(default = "pipeline")]
    pub pipeline: u32,
    /// Cap on the blocks that the client sends. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Rate>,
    /// Cap on the blocks that the client requests. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Rate>,
    /// Access links of the peers. Each peer draws one, and divides its `up` evenly among `slots`.
    #[serde(default = "links")]
    pub access: Vec<PeerLink>,
    /// One-way delay of the peers' access paths: of all, a list that they take in turn, or `{ from, to }` between
    /// which each draws its own. The client's own is the network's `access_delay`; as a foreground, what
    /// makes its `rtt`, if that is given.
    #[serde(default = "delays")]
    pub delay: Delays,
    /// The TCP of all peers; `congestion = "ledbat"` for clients that yield.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// An access link of peers and how many have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerLink {
    /// Capacity from the peer.
    pub up: Rate,
    /// Capacity to the peer.
    pub down: Rate,
    /// Share of the peers.
    pub share: f64,
}

fn peers() -> u32 {
    40
}

/// Four, the optimistic unchoke included (BEP 3).
fn slots() -> u32 {
    4
}

/// About what aria2 reaches; docs/experiment.md compares the traffic.
fn pipeline() -> u32 {
    20
}

/// Access links as Bharambe, Herley & Padmanabhan (INFOCOM 2006, table I) derive them from a measurement of Gnutella's
/// peers: of the same years as BitTorrent's large share of traffic.
fn links() -> Vec<PeerLink> {
    let link = |down: u64, up: u64, share| PeerLink {
        up: Rate::from_bps(up * 1000),
        down: Rate::from_bps(down * 1000),
        share,
    };
    vec![
        link(784, 128, 0.2),
        link(1500, 384, 0.4),
        link(3000, 1000, 0.25),
        link(10_000, 5000, 0.15),
    ]
}

/// Round trips of about 30 to 210 ms with the client's own delay: one continent and the next.
fn delays() -> Delays {
    Delays::Uniform {
        from: Dur::from_millis(10),
        to: Dur::from_millis(100),
    }
}

impl Swarm {
    fn check_access(&self, at: &Slot<'_>, found: &mut Findings) {
        let shares = self.access.iter().map(|link| link.share);
        found.shares(at.key("access"), shares, "peers");
        for (i, link) in self.access.iter().enumerate() {
            let place = at.key(&format!("access[{i}]"));
            found.access(format!("{place}.up"), Some(link.up));
            found.access(format!("{place}.down"), Some(link.down));
        }
    }

    /// The access link at this point of their cumulative shares.
    fn link(&self, at: f64) -> PeerLink {
        let mut sum = 0.0;
        let found = self.access.iter().find(|link| {
            sum += link.share;
            at < sum
        });
        (found.or(self.access.last()).copied()).unwrap_or_else(|| links()[0])
    }

    /// The peers of the client. Each draws whether it is a seed, its access link and its delay.
    fn remotes(&self, seed: u64) -> Vec<Remote> {
        let delays = self.delay.of(self.peers, Stream::new(seed, "swarm-delay"));
        let mut draws = Stream::new(seed, "swarm-peers");
        let mut one = |delay| {
            let is_seed = draws.chance(self.seeds);
            let link = self.link(draws.uniform());
            let mut path = access(delay);
            (path.up, path.down) = (Some(link.up), Some(link.down));
            Remote {
                access: path,
                share: link.up.scale(1.0 / f64::from(self.slots)),
                seed: is_seed,
            }
        };
        delays.into_iter().map(&mut one).collect()
    }
}

impl Keys for Swarm {
    reads!(name, active, route);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "a swarm as a foreground is simulated only",
            "write backend = \"simulated\", make it the background, or run a real client (experiments/programs/bittorrent.toml)",
            found,
        );
        for (key, n, most) in [
            ("peers", self.peers, MOST),
            ("slots", self.slots, SLOTS),
            ("pipeline", self.pipeline, MOST),
        ] {
            found.within(
                at.key(key),
                1..=most,
                n,
                format!("{n} {key} are out of range"),
                &format!("write 1 to {most}"),
            );
        }
        found.probability(at.key("seeds"), self.seeds);
        for (key, cap) in [("upload", self.upload), ("download", self.download)] {
            if cap == Some(Rate::default()) {
                found.add(
                    at.key(key),
                    "a cap of 0 lets no block through",
                    "leave the key out for no cap",
                );
            }
        }
        self.check_access(at, found);
        self.delay.check(at.key("delay"), found);
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("takes what its peers give and its caps let through: it has no rate to match")
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.default_delay()))
    }

    fn measures(&self) -> Vec<Measure> {
        vec![GOODPUT]
    }

    fn sends(&self) -> Option<[bool; 2]> {
        Some([self.seeds < 1.0, true])
    }

    fn clients(&self) -> u32 {
        self.peers
    }

    fn describe(&self, _: Role) -> String {
        let cap = |way, cap: Option<Rate>| cap.map(|cap| format!(", {way} at most {cap}"));
        format!(
            "a swarm of {} peers{}{}",
            self.peers,
            cap("up", self.upload).unwrap_or_default(),
            cap("down", self.download).unwrap_or_default()
        )
    }
}

impl Plays for WithDelay<Swarm> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let (swarm, seed) = (&self.keys, at.own_seed());
        let machine = swell_workload::Swarm::new(SwarmConfig {
            slots: swarm.slots,
            pipeline: swarm.pipeline,
            upload: swarm.upload,
            download: swarm.download,
            client: access(self.delay),
            remotes: swarm.remotes(seed),
            reach: at.way.rates,
            seed,
        });
        Ok(Some((Box::new(machine), tcp(&swarm.tcp))))
    }

    fn class(&self, _: u32) -> String {
        "swarm".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let caps = [self.keys.upload, self.keys.download];
        let rate = |d: usize| {
            let link = at.way.rates[d];
            caps[d].map_or(link, |cap| cap.min(link)).bps() as f64 * [0.9, 0.3][d]
        };
        Plausible::of([rate(0), rate(1)], 0.5)
    }
}
