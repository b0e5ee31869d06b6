//! Backgrounds that are given packet by packet, or that take all there is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate};

use super::background::delay;
use super::{LoadBasis, RateSpec, TcpSettings, Transport};

/// The packets of a capture at their own times, in both directions, whatever happens to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Path of a capture (pcap, pcapng, snoop; plain or compressed), relative to the experiment
    /// file.
    pub trace: String,
    /// What carries the packets: datagrams of their sizes, or one TCP connection per direction that
    /// is given them as writes at their times.
    #[serde(default)]
    pub transport: Transport,
    /// Mean rate of the down direction when the background is alone: the trace is stretched or
    /// compressed in time to this. No packet is left out. Or `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered, what is sent;
    /// over TCP carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Times are multiplied by this: 2 is half as fast. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<f64>,
    /// Times are rounded up to multiples of this; 0s leaves them exact.
    #[serde(default)]
    pub grid: Dur,
    /// Where in the trace a run starts, in the trace's own time. Beyond its end it begins again.
    /// Default: drawn anew by every seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Dur>,
    /// Whether the trace is over after its last packet. Default: it begins again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Networks (CIDR) that are inside, on the left of the tapped link; all others are outside. Default:
    /// what the capture says, by interfaces, directions and Ethernet addresses, or who talks to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// Let the trace's up direction flow down and the other way round.
    #[serde(default)]
    pub reversed: bool,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// Capacity of the access path on each side, both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// The TCP that carries the packets, where TCP does.
    #[serde(default)]
    pub tcp: TcpSettings,
}

/// Packets of many on/off sources, both directions, whatever happens to them. Their on and off times have a
/// heavy tail, so that all together are self-similar, with a Hurst parameter of (3 - `shape`) / 2 (Willinger,
/// Taqqu, Sherman and Wilson 1997). While a source is on its packets have exponential intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Mean rate of the down direction in network-layer bytes; or `match:NAME`, the measured mean rate of
    /// that background.
    pub rate: RateSpec,
    /// Mean rate of the up direction. Default: none.
    #[serde(default)]
    pub rate_up: Rate,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sources per direction.
    #[serde(default = "sources")]
    pub sources: u32,
    /// Mean time for which a source is on.
    #[serde(default = "on")]
    pub on: Dur,
    /// Mean time for which it is off. 0s: never; then all packets have exponential intervals.
    #[serde(default = "off")]
    pub off: Dur,
    /// Shape of the Pareto law of both times, above 1.
    #[serde(default = "shape")]
    pub shape: f64,
    /// Network-layer sizes of packets, each drawn by itself.
    #[serde(default = "sizes")]
    pub sizes: Vec<Size>,
    /// Seeds of the up and of the down direction: every run then has the same packets, those that
    /// Python's generator gives with these seeds. Default: drawn anew by every seed of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<[u64; 2]>,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// Capacity of the access path on each side, both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
}

/// A size of packets and how many have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Network-layer bytes.
    pub packet: Bytes,
    /// Share of the packets.
    pub share: f64,
}

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
    /// Which way their data flows.
    #[serde(default)]
    pub direction: Direction,
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
    /// take in turn, or `{ from, to }` between which each draws its own.
    #[serde(default)]
    pub delay: Delays,
    /// Capacity of every access path, on each side and in both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// The TCP that carries them.
    #[serde(default)]
    pub tcp: TcpSettings,
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
    /// The longest that a connection may have.
    pub fn longest(&self) -> Dur {
        match self {
            Delays::Same(delay) => *delay,
            Delays::InTurn(list) => list.iter().copied().max().unwrap_or_default(),
            Delays::Uniform { to, .. } => *to,
        }
    }
}

impl Default for Delays {
    fn default() -> Delays {
        Delays::Same(delay())
    }
}

fn yes() -> bool {
    true
}

/// A direction of the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Left to right: away from the clients.
    Up,
    /// Right to left: towards the clients.
    #[default]
    Down,
    /// Both at the same time, by different connections.
    Both,
}

fn one() -> u32 {
    1
}

fn spread() -> Dur {
    Dur::from_secs(1)
}

fn sources() -> u32 {
    50
}

fn on() -> Dur {
    Dur::from_millis(500)
}

fn off() -> Dur {
    Dur::from_secs(2)
}

fn shape() -> f64 {
    1.4
}

/// Acknowledgements, segments of hosts that do not discover paths, and full Ethernet frames: the three
/// peaks of packet sizes on backbones of the time (Thompson, Miller & Wilder, IEEE Network 11(6), 1997).
fn sizes() -> Vec<Size> {
    let size = |packet, share| Size {
        packet: Bytes(packet),
        share,
    };
    vec![size(40, 0.5), size(552, 0.4), size(1500, 0.1)]
}
