//! Backgrounds that are given packet by packet, or that take all there is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate};

use super::background::delay;
use super::{TcpSettings, Transport};

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
    /// compressed in time until the measured rate is this. No packet is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
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
    /// Let the trace's up direction flow down and the other way round.
    #[serde(default)]
    pub reversed: bool,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// The TCP that carries the packets, where TCP does.
    #[serde(default)]
    pub tcp: TcpSettings,
}

/// Endless connections, each of which sends as much as its TCP lets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greedy {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub connections: u32,
    /// Which way their data flows.
    #[serde(default)]
    pub direction: Direction,
    /// When the first begins, up to a second later: the seed draws by how much.
    #[serde(default)]
    pub start: Dur,
    /// Time between the beginning of one and of the next.
    #[serde(default)]
    pub stagger: Dur,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// The TCP that carries them.
    #[serde(default)]
    pub tcp: TcpSettings,
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
}

fn one() -> u32 {
    1
}
