//! Per-flow state of the world.

use crate::index::LinkIndex;
use crate::path::Bound;
use crate::port::Port;
use swell_base::{Direction, FlowId, Head, Packet, Paged, Side, Tag, Time};
use swell_tcp::Endpoint;
use swell_workload::{Conn, End, Info, Wire};

/// Identity of the flow whose packet a tap sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// Number of the workload; `u32::MAX` for packets between ports.
    pub workload: u32,
    /// The connection.
    pub conn: Conn,
    /// Application class, as numbered by the workload.
    pub class: u32,
    /// Keys of the client's and the server's access paths, or else their names in the workload. Equal ones mean the same
    /// host; 0 is another one each time.
    pub hosts: [u64; 2],
    /// The side of the tapped link on which the client is.
    pub client_side: Side,
    /// True for a TCP connection, false for a datagram flow.
    pub tcp: bool,
    /// Packet options that the workload requested.
    pub wire: Wire,
    /// Caps on the client's and the server's receive windows, bytes; 0 = the profile's buffer size.
    pub windows: [u32; 2],
}

impl Parties {
    /// The direction in which packets cross the tapped link towards the server, or towards the client.
    pub fn direction(&self, to_server: bool) -> Direction {
        Direction::of(to_server == (self.client_side == Side::Right))
    }
}

/// Observes every packet at both ends of a shared link, in order of time.
pub trait Tap: Send {
    /// A packet left the link at `at`, towards the server if `to_server`, otherwise towards the client. The default
    /// implementation does nothing.
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let _ = (at, parties, to_server, packet);
    }

    /// A packet arrived at the link's queue at `at`. The queue has not yet decided whether to accept it. The default
    /// implementation does nothing.
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let _ = (at, parties, to_server, packet);
    }
}

/// Observes the TCP packets of a workload at its hosts: before the access path of their sender, which may drop them, and
/// behind that of their receiver.
pub trait HostTap: Send {
    /// An end of a connection sends a packet. `at` is after its random delay, which may be in the future. Packets of a host
    /// leave in the order in which they are shown, so an earlier one may hold this one up.
    fn sends(&mut self, at: Time, conn: Conn, end: End, packet: &Head);

    /// A packet has reached an end of an open connection.
    fn receives(&mut self, at: Time, conn: Conn, end: End, packet: &Head);
}

/// A flow over a transport `T`. The fields that every event needs share the first cache line; each endpoint of a TCP
/// connection begins on a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Flow<T> {
    pub workload: u32,
    pub conn: Conn,
    /// The first link that packets of the client and of the server enter.
    pub first: [LinkIndex; 2],
    /// Destinations of packets from the client and from the server.
    pub bound: [Bound; 2],
    /// Handles of the two hosts' access paths, released some time after the flow has closed.
    pub access: [u32; 2],
    /// The [suspended timer](crate::feed) of a source that writes to one of the ends, if there is one.
    pub feed: u32,
    pub tag: Tag,
    /// The workload does not want to be notified of arriving data.
    pub silent: bool,
    /// A [`HostTap`] observes its packets.
    pub observed: bool,
    pub transport: T,
}

/// A flow of any kind. Boxed, so that each takes only the memory that its kind needs.
pub(crate) enum AnyFlow {
    Tcp(Box<Flow<TcpPair>>),
    Datagrams(Box<Flow<Datagrams>>),
    /// Packets of real programs, sent between two ports.
    Ports(Box<Flow<[Port; 2]>>),
}

/// The two ends of a TCP connection.
#[repr(C)]
pub(crate) struct TcpPair {
    /// When the earliest wake-up queued for each end is due.
    pub wake_at: [Time; 2],
    pub ends: [Endpoint; 2],
    pub closed: [bool; 2],
    /// Only for hosts without an access link: from this instant on, no delayed packet of the host is pending.
    pub silent_at: [Time; 2],
}

pub(crate) struct Datagrams {
    pub sent: u64,
    /// Bytes of IP and UDP headers.
    pub headers: u32,
    /// The side on which the client is.
    pub client_side: Side,
    /// Payload bytes that arrived at the client and at the server.
    pub received: [u64; 2],
}

/// Open flows by number. Numbers are never reused.
#[derive(Default)]
pub(crate) struct Flows {
    open: Paged<AnyFlow>,
    /// Number of flows opened so far.
    count: u32,
}

impl Flows {
    /// The number of the flow that will be added next.
    pub fn next(&self) -> u32 {
        self.count
    }

    pub fn add(&mut self, flow: AnyFlow) {
        self.open.insert(self.count, flow);
        self.count += 1;
    }

    /// Removes a flow that has closed.
    pub fn remove(&mut self, index: u32) -> Option<AnyFlow> {
        self.open.remove(index)
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&AnyFlow> {
        self.open.get(index)
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut AnyFlow> {
        self.open.get_mut(index)
    }

    /// The flow, if it is a TCP connection.
    #[inline]
    pub fn tcp(&self, index: u32) -> Option<&Flow<TcpPair>> {
        match self.open.get(index)? {
            AnyFlow::Tcp(flow) => Some(flow),
            _ => None,
        }
    }

    #[inline]
    pub fn tcp_mut(&mut self, index: u32) -> Option<&mut Flow<TcpPair>> {
        match self.open.get_mut(index)? {
            AnyFlow::Tcp(flow) => Some(flow),
            _ => None,
        }
    }

    /// The flow, if it carries datagrams.
    #[inline]
    pub fn datagrams_mut(&mut self, index: u32) -> Option<&mut Flow<Datagrams>> {
        match self.open.get_mut(index)? {
            AnyFlow::Datagrams(flow) => Some(flow),
            _ => None,
        }
    }

    /// The flow, if it is between two ports.
    #[inline]
    pub fn ports(&self, index: u32) -> Option<&Flow<[Port; 2]>> {
        match self.open.get(index)? {
            AnyFlow::Ports(flow) => Some(flow),
            _ => None,
        }
    }

    /// [Prefetches](swell_base::fetch()) the table entry of a flow.
    #[inline]
    pub fn fetch(&self, index: u32) {
        self.open.fetch(index);
    }
}

/// The parts of a flow that closing it requires.
pub(crate) struct ClosedFlow {
    pub workload: u32,
    pub conn: Conn,
    pub feed: u32,
    pub access: [u32; 2],
}

impl<T> Flow<T> {
    fn ended(&self) -> ClosedFlow {
        ClosedFlow {
            workload: self.workload,
            conn: self.conn,
            feed: self.feed,
            access: self.access,
        }
    }
}

impl AnyFlow {
    pub fn ended(&self) -> ClosedFlow {
        match self {
            AnyFlow::Tcp(flow) => flow.ended(),
            AnyFlow::Datagrams(flow) => flow.ended(),
            AnyFlow::Ports(flow) => flow.ended(),
        }
    }

    /// Transport statistics of the flow.
    pub fn info(&self) -> Info {
        let pair = match self {
            AnyFlow::Tcp(flow) => &flow.transport,
            AnyFlow::Datagrams(flow) => {
                return Info {
                    received: flow.transport.received,
                    ..Info::default()
                };
            }
            AnyFlow::Ports(_) => return Info::default(),
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
        from: end,
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
        let ends = offset_of!(Flow<TcpPair>, transport) + offset_of!(TcpPair, ends);
        assert_eq!(ends % 64, 0);
        assert!(ends <= 128);
        assert_eq!(size_of::<Endpoint>() % 64, 0);
    }

    #[test]
    fn a_flow_of_datagrams_takes_two_cache_lines() {
        assert!(size_of::<Flow<Datagrams>>() <= 128);
        assert_eq!(size_of::<Option<AnyFlow>>(), 16);
    }
}
