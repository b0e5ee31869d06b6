//! Makes up headers for packets of the simulator: addresses, ports, sequence numbers and options.

use std::collections::BTreeMap;
use std::sync::Arc;

use swell_base::{Flags, Packet, Segment, Side, Stamps, Time, derived};
use swell_capture::{Tcp, TcpOptions, Transport};
use swell_tcp::{Algorithm, Config};
use swell_world::Parties;

use super::header::{self, Network};
use super::hosts::{Hosts, address};

/// The ephemeral ports of Linux (`ip_local_port_range`).
const CLIENT_PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;
/// Largest shift of a window (RFC 7323 section 2.3).
const LARGEST_SHIFT: u32 = 14;
/// Bytes of the timestamps option in every segment. An announced MSS does not subtract options (RFC 6691 section 2).
const TIMESTAMPS: u32 = 12;

/// What must be known about a workload to make up headers for its packets.
#[derive(Clone, Debug)]
pub struct Source {
    /// Default TCP configuration of its connections.
    pub tcp: Arc<Config>,
    /// Server port by application class, and whether the class uses datagrams.
    pub classes: Vec<(u16, bool)>,
    /// Server port of all other classes.
    pub port: u16,
}

/// Makes up headers. Memory grows by some hundred bytes per connection. Links of a run share it, so that a host and a
/// connection have the same addresses, ports and sequence numbers on all of them, unless a path crosses a link from right
/// to left: left and right have networks of their own.
#[derive(Debug)]
pub(crate) struct Headers {
    sources: Vec<Source>,
    seed: u64,
    hosts: Hosts,
    /// By flow, and whether its client is right of the link.
    connections: BTreeMap<(u32, Side), Connection>,
    /// Number of connections so far, by client (right or left, number), server and server port.
    opened: BTreeMap<(Side, u32, u32, u16), u32>,
}

/// A connection or a flow of datagrams. Pairs are for client and server.
#[derive(Debug)]
struct Connection {
    hosts: [u32; 2],
    ports: [u16; 2],
    /// Initial sequence numbers.
    initial: [u32; 2],
    /// For each end: whether its SYN was seen, and the window scale (shift in bits) that the SYN offered, if any.
    offers: [Option<Option<u32>>; 2],
    /// Largest receive window of each end, bytes; 0 if unknown.
    windows: [u32; 2],
    /// What the clocks of both ends showed when the run began, if its segments carry timestamps.
    clocks: Option<[u32; 2]>,
    /// Whether its datagrams are real datagrams. Otherwise they represent SYNs of a refused connection.
    datagrams: bool,
}

impl Headers {
    /// `sources` are the workloads by their numbers in the world; `seed` is what initial sequence
    /// numbers come from.
    pub fn new(sources: Vec<Source>, seed: u64) -> Headers {
        Headers {
            sources,
            seed,
            hosts: Hosts::default(),
            connections: BTreeMap::new(),
            opened: BTreeMap::new(),
        }
    }

    /// The headers of a packet that arrives at the bottleneck.
    pub fn describe(
        &mut self,
        at: Time,
        parties: &Parties,
        to_server: bool,
        packet: &Packet,
    ) -> (Network, Transport) {
        let flow = (packet.flow.0, parties.client_side);
        if !self.connections.contains_key(&flow) {
            let opened = self.open(packet.flow.0, parties);
            self.connections.insert(flow, opened);
        }
        let connection = self
            .connections
            .get_mut(&flow)
            .expect("what was not there has just been put there");
        let (from, to) = (usize::from(!to_server), usize::from(to_server));
        let host = |end: usize| {
            let right = parties.client_side != Side::of(end == 1);
            address(right, connection.hosts[end], parties.wire.ipv6)
        };
        let network = Network {
            from: host(from),
            to: host(to),
            ecn: packet.seg.ecn,
            size: packet.size,
        };
        let [src_port, dst_port] = [connection.ports[from], connection.ports[to]];
        // A UDP class with congestion control is QUIC: its segments become datagrams.
        let tcp = if parties.tcp && !connection.datagrams {
            let source = self.sources.get(parties.workload as usize);
            connection.segment(at, from, parties, source, &network, packet)
        } else if connection.datagrams {
            let udp = Transport::Udp {
                src_port,
                dst_port,
                payload: u32::from(network.udp_length()) - 8,
            };
            return (network, udp);
        } else {
            connection.refused(from)
        };
        let tcp = Tcp {
            src_port,
            dst_port,
            ..tcp
        };
        (network, Transport::Tcp(tcp))
    }

    fn open(&mut self, flow: u32, parties: &Parties) -> Connection {
        let source = self.sources.get(parties.workload as usize);
        let class = source.and_then(|s| s.classes.get(parties.class as usize));
        let port = source.map_or(0, |s| s.port);
        let quic = source.is_some_and(|s| s.tcp.quic);
        let &(port, udp) = class.unwrap_or(&(port, quic || !parties.tcp));
        let number = |hosts: &mut Hosts, end: usize| {
            let right = parties.client_side != Side::of(end == 1);
            hosts.number(right, parties.workload, parties.hosts[end])
        };
        let [client, server] = [0, 1].map(|end| number(&mut self.hosts, end));
        let before = self
            .opened
            .entry((parties.client_side, client, server, port))
            .or_default();
        // Ports repeat after 28 232 connections to one server port.
        let span = u32::from(CLIENT_PORTS.end() - CLIENT_PORTS.start()) + 1;
        let own = CLIENT_PORTS.start() + (*before % span) as u16;
        *before += 1;
        let timestamps = parties.wire.timestamps;
        let timestamps = timestamps.or(source.map(|s| s.tcp.timestamps));
        // Transports that measure one-way delays carry these in the place of timestamps.
        let one_way = |s: &Source| matches!(s.tcp.algorithm, Algorithm::Ledbat | Algorithm::Lp);
        let timestamps = timestamps.filter(|_| !source.is_some_and(one_way));
        let pair = |index: u64| {
            let random = derived(self.seed, index);
            [random as u32, (random >> 32) as u32]
        };
        // The world caps windows in the same way (`swell_world`, `profiles.rs`).
        let windows = parties.windows.map(|cap| match source {
            Some(s) if cap == 0 => s.tcp.recv_buffer,
            Some(s) => cap.min(s.tcp.recv_buffer),
            None => 0,
        });
        // Label 0 would give the seed itself.
        let (sequence, offset) = (1 + u64::from(flow), 1 << 63 | u64::from(flow));
        Connection {
            hosts: [client, server],
            ports: [own, port],
            initial: pair(sequence),
            offers: [None; 2],
            windows,
            clocks: (parties.tcp && timestamps.unwrap_or(false)).then(|| pair(offset)),
            datagrams: udp,
        }
    }
}

/// All bits of a timestamp in milliseconds of which a segment that passes at `at` carries the lower ones.
fn whole(at: Time, stamp: u32) -> u32 {
    let now = (at.as_nanos() / 1_000_000) as u32;
    now.wrapping_add_signed(Stamps::since(stamp, now))
}

impl Connection {
    /// The TCP header, except ports, of a segment from end `from`. It has only options that fit the packet's size.
    fn segment(
        &mut self,
        at: Time,
        from: usize,
        parties: &Parties,
        source: Option<&Source>,
        network: &Network,
        packet: &Packet,
    ) -> Tcp {
        let seg = &packet.seg;
        let acknowledges = seg.flags.has(Flags::ACK);
        // Sequence numbers wrap on the wire.
        let ack = self.initial[from ^ 1].wrapping_add(seg.ack as u32);
        let mut options = TcpOptions::default();
        for (slot, (start, end)) in options.sack.iter_mut().zip(packet.sacks()) {
            *slot = Some((ack.wrapping_add_signed(start), ack.wrapping_add_signed(end)));
        }
        options.timestamps = self.clocks.map(|clocks| {
            let value = clocks[from].wrapping_add(whole(at, seg.stamps.value()));
            let echo = clocks[from ^ 1].wrapping_add(whole(at, seg.stamps.echo()));
            (value, if acknowledges { echo } else { 0 })
        });
        let mut flags = seg.flags.0;
        let shift = if seg.flags.has(Flags::SYN) {
            self.ask(from, parties, source, seg, &mut options);
            header::fit(&mut options, network, seg.len);
            self.offers[from] = Some(options.window_scale.map(u32::from));
            if source.is_some_and(|s| s.tcp.ecn) {
                // RFC 3168 section 6.1.1: the SYN sets both ECE and CWR, the SYN-ACK only ECE.
                flags |= Flags::ECE.0 | if acknowledges { 0 } else { Flags::CWR.0 };
            }
            // RFC 7323 section 2.2: windows in SYN segments are never scaled.
            0
        } else {
            header::fit(&mut options, network, seg.len);
            self.shift(from, seg.window)
        };
        Tcp {
            seq: self.initial[from].wrapping_add(seg.seq as u32),
            ack: if acknowledges { ack } else { 0 },
            flags,
            window: (seg.window >> shift).min(0xffff) as u16,
            payload: seg.len,
            options,
            ..Tcp::default()
        }
    }

    /// The window scale of end `from`: the offered one, if both ends offered one. A SYN that is not in the trace
    /// belongs to a connection that is older than the trace, and counts as an offer.
    fn shift(&self, from: usize, window: u32) -> u32 {
        if self.offers.contains(&Some(None)) {
            return 0;
        }
        let unseen = || shift(self.windows[from].max(window));
        self.offers[from].flatten().unwrap_or_else(unseen)
    }

    /// Adds the options that only a SYN has.
    fn ask(
        &self,
        from: usize,
        parties: &Parties,
        source: Option<&Source>,
        seg: &Segment,
        options: &mut TcpOptions,
    ) {
        // The announced MSS limits what the other end sends.
        let own = u32::from(parties.wire.ends[from ^ 1].mss);
        let allowed = match (own, source) {
            (0, Some(source)) => source.tcp.mss,
            (own, _) => own,
        };
        let beside = if self.clocks.is_some() { TIMESTAMPS } else { 0 };
        options.mss = Some((allowed + beside).min(0xffff) as u16);
        options.sack_permitted =
            source.is_some_and(|s| s.tcp.sack) && parties.wire.sack != Some(false);
        // A SYN-ACK has the option only if the SYN had it (RFC 7323 section 2.2).
        let refused = seg.flags.has(Flags::ACK) && self.offers[from ^ 1] == Some(None);
        let largest = self.windows[from].max(seg.window);
        let offers = largest > 0xffff || source.is_some_and(|s| s.tcp.window_scaling);
        options.window_scale = (offers && !refused).then(|| shift(largest) as u8); // 14 at most
    }

    /// The header for a packet of a refused connection, which the simulator represents as datagrams: SYNs in one
    /// direction, resets in the other.
    fn refused(&self, from: usize) -> Tcp {
        let options = TcpOptions {
            mss: Some(1460),
            sack_permitted: true,
            timestamps: Some((self.initial[1], 0)),
            window_scale: Some(7),
            ..TcpOptions::default()
        };
        if from == 0 {
            return Tcp {
                seq: self.initial[0],
                flags: Tcp::SYN,
                window: 0xffff,
                options,
                ..Tcp::default()
            };
        }
        Tcp {
            ack: self.initial[0].wrapping_add(1),
            flags: Tcp::RST | Tcp::ACK,
            ..Tcp::default()
        }
    }
}

/// The smallest shift that makes a window fit into 16 bits.
fn shift(window: u32) -> u32 {
    let bits = u32::BITS - window.leading_zeros();
    bits.saturating_sub(16).min(LARGEST_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_the_smallest_that_fit() {
        for (window, expected) in [
            (0, 0),
            (0xffff, 0),
            (0x1_0000, 1),
            (6 << 20, 7),
            (u32::MAX, 14),
        ] {
            assert_eq!(shift(window), expected, "{window}");
        }
    }
}
