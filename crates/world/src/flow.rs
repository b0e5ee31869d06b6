//! What the world knows of a connection.

use crate::path::Bound;
use crate::port::Port;
use swell_base::{FlowId, Head, Packet, Tag, Time};
use swell_tcp::Endpoint;
use swell_workload::{Conn, End, Info, Wire};

/// A queue of a shared link, or an access link: see [`crate::links`]. `NONE` where a host is right at a shared link.
pub(crate) type LinkIndex = u32;
pub(crate) const NONE: LinkIndex = u32::MAX;

/// Whose packets a tap sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// Number of the workload; `u32::MAX` where packets come in by a port.
    pub workload: u32,
    /// The connection.
    pub conn: Conn,
    /// Application class, as the workload numbers them.
    pub class: u32,
    /// Keys of the client's and the server's access paths: equal keys, equal hosts.
    pub hosts: [u64; 2],
    /// The client is on the right.
    pub from_right: bool,
    /// A TCP connection, not a datagram flow.
    pub tcp: bool,
    /// What was asked for of its packets.
    pub wire: Wire,
    /// Caps on the client's and the server's receive windows, bytes; 0 = the profile's.
    pub windows: [u32; 2],
}

/// Sees every packet at both ends of a shared link, in the order of time.
pub trait Tap: Send {
    /// A packet left the link at `at`, going `to_server` or back.
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet);

    /// A packet arrived at the link's queue at `at`, going `to_server` or back; the queue has
    /// yet to decide whether it takes it. Does nothing unless it is written.
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let _ = (at, parties, to_server, packet);
    }
}

/// Begins with a cache line that says what everything needs, which kind of transport it is among it; each
/// endpoint of a TCP connection begins with a line of its own.
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub workload: u32,
    pub conn: Conn,
    /// The link that the client and the server send onto.
    pub first: [LinkIndex; 2],
    pub tag: Tag,
    /// Its workload does not want to know what arrives.
    pub silent: bool,
    /// Somebody looks at its inside.
    pub probed: bool,
    /// The timer that [rests](crate::feed), of a source that writes to one of its ends, if there is one.
    pub feed: u32,
    /// Where what the client and the server send is bound for.
    pub bound: [Bound; 2],
    pub transport: Transport,
    /// Handles of the two hosts' access paths, given back when the flow is reaped.
    pub access: [u32; 2],
    /// Who the two ends are, for taps.
    pub parties: Parties,
}

#[expect(
    clippy::large_enum_variant,
    reason = "flows are boxed one by one, and most are TCP"
)]
#[repr(C)]
pub(crate) enum Transport {
    Tcp(TcpPair),
    Datagrams {
        sent: u64,
        /// Bytes of IP and UDP headers.
        headers: u32,
        /// Payload bytes that arrived at the client and at the server.
        received: [u64; 2],
    },
    /// Packets of real programs between two ports.
    Ports([Port; 2]),
    /// Over.
    Gone,
}

#[repr(C)]
pub(crate) struct TcpPair {
    /// When the earliest wake-up queued for each end is due.
    pub wake_at: [Time; 2],
    pub closed: [bool; 2],
    pub ends: [Endpoint; 2],
}

impl Flow {
    /// What the transport knows of it.
    pub fn info(&self) -> Info {
        let pair = match &self.transport {
            Transport::Tcp(pair) => pair,
            Transport::Datagrams { received, .. } => {
                return Info {
                    received: *received,
                    ..Info::default()
                };
            }
            Transport::Gone | Transport::Ports(_) => return Info::default(),
        };
        let stats = pair.ends.each_ref().map(Endpoint::stats);
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Info {
            client_retransmissions: count(stats[0].retransmitted),
            server_retransmissions: count(stats[1].retransmitted),
            min_rtt: stats.iter().filter_map(|s| s.min_rtt).min(),
            received: [stats[0].delivered, stats[1].delivered],
        }
    }
}

/// An empty packet that `end` sends.
#[inline]
pub(crate) fn packet(flow: u32, end: End, tag: Tag) -> Packet {
    Packet::from(Head {
        flow: FlowId(flow),
        way: end as u8,
        tag,
        ..Head::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_first_endpoint_begins_with_a_cache_line() {
        // Which variant it is is said where the transport begins, before the pair.
        let pair = size_of::<Transport>() - size_of::<TcpPair>();
        let ends = offset_of!(Flow, transport) + pair + offset_of!(TcpPair, ends);
        assert_eq!((pair, ends), (8, 64));
        assert_eq!(size_of::<Endpoint>() % 64, 0);
    }
}
