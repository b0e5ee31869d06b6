//! The packets of a run as a pcapng file that Wireshark reads.
//!
//! ```text
//!            queue                              queue
//!  left ──●──►▒▒▒──── bottleneck/up ────►    ◄────▒▒▒◄──●── right
//!         │                                             │
//!   interface 0                                    interface 1 (bottleneck/down)
//! ```
//!
//! Each direction is observed where packets arrive at its queue, before the queue drops any. A
//! trace taken there has every segment twice that was sent twice, the first time with what it was
//! dropped for, and each cause before its effect: data before their acknowledgement, duplicate
//! acknowledgements before the retransmission. That is what a TCP analysis needs to tell
//! retransmissions from reordering. What is lost on an access path *before* the queue is never seen.
//!
//! Only headers are written, with the packet's true length; payload is thought to be zeros, and the
//! checksums are right for that. Packets of the simulator carry no addresses, ports or options: those
//! are made up here, always the same for the same run. The file's times are seconds since the start of
//! the run, not a date. Memory grows by some hundred bytes per connection.

mod clock;
mod header;
pub(crate) mod hosts;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Flags, Packet, Segment, Time, derived};
use swell_capture::{Heading, LinkType, Record, Tcp, TcpOptions, WriteError, Writer};
use swell_tcp::Config;
use swell_world::{Parties, Tap};

use clock::Clock;
use header::Network;
use hosts::{Hosts, address};

/// The ephemeral ports of Linux (`ip_local_port_range`).
const CLIENT_PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;
/// Largest shift of a window (RFC 7323 section 2.3).
const LARGEST_SHIFT: u32 = 14;
/// What timestamps take of every segment, beside which an MSS is announced (RFC 6691 section 2).
const TIMESTAMPS: u32 = 12;

/// What must be known of a workload to give its packets headers.
#[derive(Clone, Debug)]
pub struct Source {
    /// The TCP of its connections, where they have none of their own.
    pub tcp: Arc<Config>,
    /// Server port by application class, and whether that is a class of datagrams.
    pub classes: Vec<(u16, bool)>,
    /// Server port of all other classes.
    pub port: u16,
}

/// Writes every packet that arrives at the bottleneck to a file.
#[derive(Clone, Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
}

impl Recorder {
    /// Creates the file. `sources` are the workloads by their numbers in the world; `seed` is what
    /// initial sequence numbers come from.
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn create(path: &Path, sources: Vec<Source>, seed: u64) -> Result<Recorder, WriteError> {
        let application = concat!("Groundswell ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::create(path, application)?;
        for name in ["bottleneck/up", "bottleneck/down"] {
            writer.interface(name, LinkType::RAW, header::LONGEST as u32)?;
        }
        let headers = Headers {
            sources,
            seed,
            hosts: Hosts::default(),
            connections: BTreeMap::new(),
            opened: BTreeMap::new(),
        };
        Ok(Recorder {
            state: Arc::new(Mutex::new(State {
                writer: Some(writer),
                failure: None,
                headers,
                bytes: Vec::with_capacity(header::LONGEST),
            })),
        })
    }

    /// What is to be given to the world.
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// Whether writing failed: the run may be given up.
    pub fn failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Completes the file; what is shown after that is not written.
    ///
    /// # Errors
    /// Where something could not be written.
    pub fn finish(self) -> Result<(), WriteError> {
        let mut state = self.lock();
        let writer = state.writer.take();
        match (state.failure.take(), writer) {
            (Some(failure), _) => Err(failure),
            (None, Some(writer)) => writer.finish().map(drop),
            (None, None) => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Recorder {
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.lock().arrival(at, parties, to_server, packet);
    }

    fn packet(&mut self, _at: Time, _parties: &Parties, to_server: bool, packet: &Packet) {
        let connections = &mut self.lock().headers.connections;
        if let Some(connection) = connections.get_mut(&packet.flow.0)
            && let Some(clock) = &mut connection.clock
        {
            clock.crossed(usize::from(!to_server), &packet.seg);
        }
    }
}

#[derive(Debug)]
struct State {
    writer: Option<Writer<File>>,
    failure: Option<WriteError>,
    headers: Headers,
    /// The headers under way.
    bytes: Vec<u8>,
}

impl State {
    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if self.failure.is_some() {
            return;
        }
        self.headers
            .write(&mut self.bytes, at, parties, to_server, packet);
        let up = to_server != parties.from_right;
        let written = writer.packet(&Record {
            interface: u32::from(!up),
            time: at.as_nanos(),
            wire_len: u32::from(packet.size),
            heading: Heading::Outbound,
            data: &self.bytes,
        });
        self.failure = written.err();
    }
}

/// From packets to headers.
#[derive(Debug)]
struct Headers {
    sources: Vec<Source>,
    seed: u64,
    hosts: Hosts,
    /// By flow.
    connections: BTreeMap<u32, Connection>,
    /// Connections so far between a client (right or left, number), a server and a port of its.
    opened: BTreeMap<(bool, u32, u32, u16), u32>,
}

/// A connection or a flow of datagrams. Pairs are the client's and the server's.
#[derive(Debug)]
struct Connection {
    hosts: [u32; 2],
    ports: [u16; 2],
    /// Initial sequence numbers.
    initial: [u32; 2],
    /// By how many bits each end's windows are shifted, where its SYN offered to; once that was seen.
    scales: [Option<Option<u32>>; 2],
    /// Where it has timestamps.
    clock: Option<Box<Clock>>,
    /// Datagrams that are datagrams; others stand for SYNs that nobody took.
    datagrams: bool,
}

impl Headers {
    /// Writes the headers of a packet over `out`.
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        at: Time,
        parties: &Parties,
        to_server: bool,
        packet: &Packet,
    ) {
        let flow = packet.flow.0;
        if !self.connections.contains_key(&flow) {
            let opened = self.open(flow, parties);
            self.connections.insert(flow, opened);
        }
        let Some(connection) = self.connections.get_mut(&flow) else {
            return;
        };
        let (from, to) = (usize::from(!to_server), usize::from(to_server));
        let host = |end: usize| {
            let right = parties.from_right != (end == 1);
            address(right, connection.hosts[end], parties.wire.ipv6)
        };
        let network = Network {
            from: host(from),
            to: host(to),
            ecn: packet.seg.ecn,
            size: packet.size,
        };
        let ports = [connection.ports[from], connection.ports[to]];
        let tcp = if parties.tcp {
            let source = self.sources.get(parties.workload as usize);
            connection.segment(at, from, parties, source, packet)
        } else if connection.datagrams {
            return header::udp(out, &network, ports);
        } else {
            connection.refused(from)
        };
        let tcp = Tcp {
            src_port: ports[0],
            dst_port: ports[1],
            ..tcp
        };
        header::tcp(out, &network, &tcp);
    }

    fn open(&mut self, flow: u32, parties: &Parties) -> Connection {
        let source = self.sources.get(parties.workload as usize);
        let class = source.and_then(|s| s.classes.get(parties.class as usize));
        let port = source.map_or(0, |s| s.port);
        let &(port, udp) = class.unwrap_or(&(port, !parties.tcp));
        let number = |hosts: &mut Hosts, end: usize| {
            let right = parties.from_right != (end == 1);
            hosts.number(right, parties.workload, parties.hosts[end])
        };
        let [client, server] = [0, 1].map(|end| number(&mut self.hosts, end));
        let before = self
            .opened
            .entry((parties.from_right, client, server, port))
            .or_default();
        // After 28 232 connections to one server port a port comes again.
        let span = u32::from(CLIENT_PORTS.end() - CLIENT_PORTS.start()) + 1;
        let own = CLIENT_PORTS.start() + (*before % span) as u16;
        *before += 1;
        let timestamps = parties.wire.timestamps;
        let timestamps = timestamps.or(source.map(|s| s.tcp.timestamps));
        let pair = |index: u64| {
            let random = derived(self.seed, index);
            [random as u32, (random >> 32) as u32]
        };
        // 0 is the seed itself.
        let (sequence, offset) = (1 + u64::from(flow), 1 << 63 | u64::from(flow));
        Connection {
            hosts: [client, server],
            ports: [own, port],
            initial: pair(sequence),
            scales: [None; 2],
            clock: (parties.tcp && timestamps.unwrap_or(false))
                .then(|| Box::new(Clock::new(pair(offset)))),
            datagrams: udp,
        }
    }
}

impl Connection {
    /// The TCP header, ports left out, of a segment that end `from` sends.
    fn segment(
        &mut self,
        at: Time,
        from: usize,
        parties: &Parties,
        source: Option<&Source>,
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
        let window = if seg.flags.has(Flags::SYN) {
            self.syn(from, parties, source, seg, &mut options);
            seg.window
        } else if self.scales.contains(&Some(None)) {
            seg.window
        } else {
            seg.window >> self.scales[from].flatten().unwrap_or(shift(seg.window))
        };
        let clock = self.clock.as_deref_mut();
        options.timestamps = clock.map(|c| c.stamp(at, from, seg));
        Tcp {
            seq: self.initial[from].wrapping_add(seg.seq as u32),
            ack: if acknowledges { ack } else { 0 },
            flags: seg.flags.0,
            window: window.min(0xffff) as u16,
            payload: seg.len,
            options,
            ..Tcp::default()
        }
    }

    /// The options that only a SYN has.
    fn syn(
        &mut self,
        from: usize,
        parties: &Parties,
        source: Option<&Source>,
        seg: &Segment,
        options: &mut TcpOptions,
    ) {
        // An end announces what the other may send.
        let own = u32::from(parties.wire.ends[from ^ 1].mss);
        let allowed = match (own, source) {
            (0, Some(source)) => source.tcp.mss,
            (own, _) => own,
        };
        let beside = if self.clock.is_some() { TIMESTAMPS } else { 0 };
        options.mss = Some((allowed + beside).min(0xffff) as u16);
        options.sack_permitted = source.is_some_and(|s| s.tcp.sack);
        // Who answers offers it only if it was offered (RFC 7323 section 2.2).
        let refused = seg.flags.has(Flags::ACK) && self.scales[from ^ 1] == Some(None);
        let largest = source.map_or(0, |s| s.tcp.recv_buffer).max(seg.window);
        let scales = (largest > 0xffff && !refused).then(|| shift(largest));
        self.scales[from] = Some(scales);
        options.window_scale = scales.map(|s| s as u8); // 14 at most
    }

    /// A connection that nobody accepted is played as datagrams: SYNs one way, resets the other.
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

/// The smallest shift that makes a window fit its 16 bits.
fn shift(window: u32) -> u32 {
    let bits = u32::BITS - window.leading_zeros();
    bits.saturating_sub(16).min(LARGEST_SHIFT)
}

#[cfg(test)]
mod tests;
