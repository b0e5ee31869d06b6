//! What the world knows of a connection.

use swell_base::{FlowId, Packet, Tag, Time};
use swell_tcp::Endpoint;
use swell_workload::{Conn, End, Info};

/// A link's place in the world; `NONE` ends a route.
pub(crate) type LinkIndex = u32;
pub(crate) const NONE: LinkIndex = u32::MAX;

/// Whose packets a tap sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// Number of the workload.
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
}

/// Sees every packet that has crossed the bottleneck.
pub trait Tap: Send {
    /// A packet left the bottleneck at `at`, going `to_server` or back.
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet);
}

/// Links from client to server and back, without gaps: every route crosses the bottleneck, access
/// links are left out where there are none, and `NONE` fills what is left.
pub(crate) type Routes = [[LinkIndex; 3]; 2];

/// Top bit of [`Packet::hop`]: set on the way from server to client.
const TO_CLIENT: u8 = 0x80;

pub(crate) struct Flow {
    pub workload: u32,
    pub conn: Conn,
    pub tag: Tag,
    pub transport: Transport,
    /// Who the two ends are, for taps.
    pub parties: Parties,
    /// Handles of the two hosts' access paths, given back when the flow is reaped.
    pub access: [u64; 2],
}

#[expect(
    clippy::large_enum_variant,
    reason = "flows are boxed one by one, and most are TCP"
)]
pub(crate) enum Transport {
    Tcp(TcpPair),
    Datagrams {
        sent: u64,
    },
    /// Over; packets on the way still find their route.
    Gone,
}

pub(crate) struct TcpPair {
    pub ends: [Endpoint; 2],
    /// When the earliest wake-up queued for each end is due.
    pub wake_at: [Time; 2],
    pub closed: [bool; 2],
}

impl Flow {
    /// What the transport knows of it.
    pub fn info(&self) -> Info {
        let Transport::Tcp(pair) = &self.transport else {
            return Info::default();
        };
        let stats = pair.ends.each_ref().map(Endpoint::stats);
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Info {
            client_retransmissions: count(stats[0].retransmitted),
            server_retransmissions: count(stats[1].retransmitted),
            min_rtt: stats.iter().filter_map(|s| s.min_rtt).min(),
        }
    }
}

/// An empty packet that `end` sends onto the first link of its route.
#[inline]
pub(crate) fn packet(flow: u32, end: End, tag: Tag) -> Packet {
    let hop = match end {
        End::Client => 0,
        End::Server => TO_CLIENT,
    };
    Packet {
        flow: FlowId(flow),
        hop,
        tag,
        ..Packet::default()
    }
}

/// Which way a packet goes (0 = to the server) and how many links it has crossed.
#[inline]
pub(crate) fn progress(packet: &Packet) -> (usize, usize) {
    (
        usize::from(packet.hop >> 7),
        usize::from(packet.hop & !TO_CLIENT),
    )
}

/// The link that a packet crosses next; `None` at the end of its route.
#[inline]
pub(crate) fn next_link(routes: &Routes, packet: &Packet) -> Option<LinkIndex> {
    let (way, crossed) = progress(packet);
    routes[way].get(crossed).copied().filter(|&l| l != NONE)
}

/// A route over those of `links` that are there.
pub(crate) fn route(links: [LinkIndex; 3]) -> [LinkIndex; 3] {
    let mut route = [NONE; 3];
    let there = links.into_iter().filter(|&l| l != NONE);
    for (place, link) in route.iter_mut().zip(there) {
        *place = link;
    }
    route
}
