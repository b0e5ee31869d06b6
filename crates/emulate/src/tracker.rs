//! Follows the connections and datagram flows of the programs by observing their packets.

use swell_base::{Dur, Time};

use super::connections::{Connection, Connections};
use super::control::OpenFlow;
use super::datagrams::{Conversation, Datagrams};
use super::ip::{Header, TCP};

/// The shortest retransmission timeout of Linux (`TCP_RTO_MIN`). Most losses are repaired sooner.
const RETRANSMISSION: Dur = Dur::from_millis(200);

/// Follows all packets of the programs.
#[derive(Debug, Default)]
pub struct Tracker {
    connections: Connections,
    datagrams: Datagrams,
    crossing: Dur,
}

/// What a packet belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tracked {
    /// A TCP connection.
    Connection(usize),
    /// A flow of datagrams.
    Datagrams(usize),
    /// Nothing that is followed.
    Other,
}

/// Everything that was followed.
#[derive(Clone, Debug, Default)]
pub struct Conversations {
    /// TCP connections, in the order in which they were opened.
    pub connections: Vec<Connection>,
    /// Flows of datagrams, in the order in which they began.
    pub datagrams: Vec<Conversation>,
    /// Number of connections and flows that were not followed.
    pub unfollowed: u64,
}

impl Tracker {
    /// For a network that no packet crosses in less than `crossing`.
    pub fn new(crossing: Dur) -> Tracker {
        Tracker {
            connections: Connections::new(crossing),
            datagrams: Datagrams::new(crossing),
            crossing,
        }
    }

    /// Changes the shortest time in which a packet crosses the network.
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.crossing = crossing;
        self.connections.crosses_in(crossing);
        self.datagrams.crosses_in(crossing);
    }

    /// Open connections, and datagram flows with recent arrivals.
    pub(crate) fn open_flows(&self, now: Time) -> Vec<OpenFlow> {
        let datagrams = self.datagrams.open_flows(now);
        self.connections.open_flows().chain(datagrams).collect()
    }

    /// A host sent a packet. `packet` begins with its headers; `rest` is what follows it.
    pub(crate) fn sent(&mut self, at: Time, header: &Header, packet: &[u8], rest: &[u8]) {
        match header.protocol {
            TCP => (self.connections).sent(at, header, packet, packet.len() + rest.len()),
            _ => self.datagrams.sent(at, header, packet, rest),
        }
    }

    /// A packet that entered at `entered` reached a host.
    pub(crate) fn received(
        &mut self,
        at: Time,
        entered: Time,
        header: &Header,
        packet: &[u8],
    ) -> Option<Tracked> {
        let tracked = match header.protocol {
            TCP => self
                .connections
                .received(at, header, packet)
                .map(Tracked::Connection),
            _ => self
                .datagrams
                .received(at, entered, header, packet)
                .map(Tracked::Datagrams),
        };
        Some(tracked.unwrap_or(Tracked::Other))
    }

    /// A packet entered at `entered`, was due at `at` and left later by `by`.
    pub(crate) fn left_late(&mut self, tracked: Tracked, entered: Time, at: Time, by: Dur) {
        match tracked {
            Tracked::Connection(index) => self.connections.left_late(index, at, by),
            Tracked::Datagrams(index) => self.datagrams.left_late(index, entered, at, by),
            Tracked::Other => {}
        }
    }

    /// The loop was stalled for `by`. Packets that hosts sent during that time entered late, and they may belong to
    /// any conversation.
    pub(crate) fn stalled(&mut self, at: Time, by: Dur) {
        self.connections.stalled(at, by);
        self.datagrams.stalled(at, by);
    }

    /// Lateness may have changed which packet was lost at `at`. It may belong to any conversation.
    pub(crate) fn misplaced(&mut self, at: Time) {
        // A loss more or less delays the end by a retransmission timeout and the round trip of what is sent again.
        let by = RETRANSMISSION + self.crossing * 2;
        self.connections.stalled(at, by);
        self.datagrams.misplaced(at, by);
    }

    /// All conversations, observed until `end`.
    pub fn finish(self, end: Time) -> Conversations {
        Conversations {
            unfollowed: self.connections.unfollowed + self.datagrams.unfollowed,
            connections: self.connections.finish(end),
            datagrams: self.datagrams.finish(end),
        }
    }
}
