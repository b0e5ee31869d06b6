//! Changes of the network during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Direction, Dur, QueueLimit, Rate};

use super::Loss;
use super::named::{Named, Short};
use super::qdisc::QdiscSpec;

/// Something about the bottleneck that changes during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the start of the run, warm-up included.
    pub at: Dur,
    /// And again after each of these spans, until the run ends. Default: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Dur>,
    /// Which direction. Default both.
    #[serde(default)]
    pub direction: Directions,
    /// The rate from now on. Of a packet in transmission the rest goes at the new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A packet-delivery trace instead of a rate from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<DeliveriesSpec>,
    /// One-way propagation delay from now on. Packets stay in order where it falls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Random loss from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// How much the queue holds from now on. With `queue` or `qdisc` a new queue takes over what
    /// waits, and what it has no room for is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Queueing discipline from now on. What one of `queue` and `qdisc` leaves out is as under
    /// `[network]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<QdiscSpec>,
    /// Nothing gets through for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Dur>,
    /// What becomes of packets during the outage. Default wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_packets: Option<OutagePackets>,
}

/// One direction of the bottleneck, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Left to right: away from the clients.
    Up,
    /// Right to left: towards the clients.
    Down,
    /// Up and down.
    #[default]
    Both,
}

impl Directions {
    /// Whether it includes this direction.
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Directions::Both => true,
            Directions::Up => direction == Direction::Up,
            Directions::Down => direction == Direction::Down,
        }
    }
}

/// What becomes of packets during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutagePackets {
    /// The transmitter stands still, and they wait.
    Wait,
    /// They are transmitted and lost.
    Lost,
}

/// A packet-delivery trace in mahimahi's format: a line for each opportunity to deliver 1500 bytes,
/// with whole milliseconds; it repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliveries {
    /// The file, relative to this one; it may be compressed.
    pub file: String,
    /// How far into the trace it begins. Default: drawn by the seed, one instant for all traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Dur>,
    /// SHA-256 of the file, 64 hexadecimal digits; another file is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A packet-delivery trace in a file: a path or a table.
pub type DeliveriesSpec = Named<Deliveries>;

impl Short for Deliveries {
    const SPEC: &'static str = "DeliveriesSpec";
    const KEY: &'static str = "file";
    const WHAT: &'static str = "the path of a delivery trace";
}
