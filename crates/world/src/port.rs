//! Ports: where packets of real programs enter and leave the world.
//!
//! The caller keeps the bytes of a packet and gives the world a *handle*. The world returns each handle exactly once.
//! It comes either with the instant at which the packet left the world ([`Delivery`]) or with the reason why it was
//! dropped ([`PacketDrop`]). A port is a host with an access path like any other, and its packets wait in the same
//! queues.

use std::collections::VecDeque;

use swell_base::{DropReason, FlowId, Head, Time};
use swell_workload::Access;

use crate::index::LinkIndex;
use crate::path::PathId;

/// A port. Ports are numbered in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

/// Position of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortConfig {
    /// The path of its packets.
    pub path: PathId,
    /// The port is at the right end of the path instead of the left.
    pub right: bool,
    /// Access path between the port and that end of the path.
    pub access: Access,
}

/// A packet that has left the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When it left; never later than the world's current instant.
    pub at: Time,
    /// The port where it left.
    pub port: Port,
    /// Its flow.
    pub flow: FlowId,
    /// The handle given to [`World::inject`](crate::World::inject).
    pub handle: u64,
    /// ECN codepoint of the IP header, which a queue may have marked.
    pub ecn: u8,
}

/// A packet of a port that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDrop {
    /// When it was dropped.
    pub at: Time,
    /// The handle given to [`World::inject`](crate::World::inject).
    pub handle: u64,
    /// Why it was dropped.
    pub reason: DropReason,
}

/// The ports of a world.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    pub places: Vec<Attachment>,
    /// Access links of ports that can drop packets.
    pub dropping: Vec<LinkIndex>,
    pub delivered: VecDeque<Delivery>,
    /// Packets that were injected and have neither been delivered nor dropped.
    pub inside: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment {
    pub path: PathId,
    pub right: bool,
    /// The first link that packets from the port enter.
    pub first: LinkIndex,
    /// The access link that leads to the port.
    pub last: LinkIndex,
}

impl Ports {
    /// A packet has arrived at its port.
    pub fn deliver(&mut self, at: Time, port: Port, packet: &Head) {
        self.inside -= 1;
        self.delivered.push_back(Delivery {
            at,
            port,
            flow: packet.flow,
            handle: packet.seg.seq,
            ecn: packet.seg.ecn,
        });
    }
}
