//! A flow exporter on the link: what a router with NetFlow would report of the packets that cross it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Packet, Time};
use swell_capture::flow::{FlowRecord, Metering, MeteringProcess, PacketSampling};
use swell_world::{Parties, Tap};

/// Time-outs of the exporter: a flow that goes on is reported after the first, one that is silent after the
/// second.
pub const ACTIVE: Dur = Dur::from_secs(60);
/// See [`ACTIVE`].
pub const INACTIVE: Dur = Dur::from_secs(15);
/// Every server's port; the model asks no more of it than that it is a well-known one.
const SERVER_PORT: u16 = 80;
/// Clients' ports, from 1024 on: a host opens far fewer connections within a minute.
const CLIENT_PORTS: u32 = 60_000;

/// The exporter, in the world that it looks at.
pub struct Exporter(Arc<Mutex<State>>);

/// What an exporter reports to the caller that runs the world.
pub struct Reports(Arc<Mutex<State>>);

/// One direction of a connection as its packets show it, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueFlow {
    /// Its addresses and ports, source and destination.
    pub ends: [(IpAddr, u16); 2],
    /// Times of the first and of the last packet.
    pub packets: [i64; 2],
    /// Times of the first and of the last packet with payload, where there is one.
    pub payload: Option<[i64; 2]>,
}

struct State {
    metering: MeteringProcess,
    done: Vec<FlowRecord>,
    /// Hosts met on the left and on the right.
    hosts: [BTreeMap<u64, u32>; 2],
    /// By workload, connection and direction.
    flows: BTreeMap<(u32, u32, bool), TrueFlow>,
}

/// An exporter that samples one packet in `sample`, at random.
pub fn exporter(sample: u32, seed: u64) -> (Exporter, Reports) {
    let sampling = match sample {
        0 | 1 => PacketSampling::All,
        interval => PacketSampling::Random { interval, seed },
    };
    let state = Arc::new(Mutex::new(State {
        metering: MeteringProcess::new(Metering {
            active_timeout: ACTIVE,
            inactive_timeout: INACTIVE,
            sampling,
            ..Metering::default()
        }),
        done: Vec::new(),
        hosts: Default::default(),
        flows: BTreeMap::new(),
    }));
    (Exporter(Arc::clone(&state)), Reports(state))
}

impl Reports {
    /// All records, in the order in which flows ended, and what the packets themselves were.
    pub fn take(self) -> (Vec<FlowRecord>, Vec<TrueFlow>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = std::mem::take(&mut state.done);
        state.metering.finish(&mut records);
        records.sort_by_key(|r| r.last);
        let flows = std::mem::take(&mut state.flows);
        (records, flows.into_values().collect())
    }
}

impl Tap for Exporter {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let described = state.describe(at, parties, to_server, packet);
        state.note(&described, parties, to_server, packet.seg.len > 0);
        let State { metering, done, .. } = &mut *state;
        metering.packet(described, done);
    }
}

impl State {
    fn describe(
        &mut self,
        at: Time,
        parties: &Parties,
        to_server: bool,
        packet: &Packet,
    ) -> FlowRecord {
        let [client, server] = parties.hosts;
        let client = self.address(parties.from_right, client);
        let server = self.address(!parties.from_right, server);
        let port = 1024 + (parties.conn.0 % CLIENT_PORTS) as u16;
        let (from, to) = if to_server {
            ((client, port), (server, SERVER_PORT))
        } else {
            ((server, SERVER_PORT), (client, port))
        };
        let at = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        FlowRecord {
            first: at,
            last: at,
            src: from.0,
            src_port: from.1,
            dst: to.0,
            dst_port: to.1,
            protocol: 6,
            packets: 1,
            bytes: u64::from(packet.size),
            tcp_flags: Some(packet.seg.flags.0),
            ..FlowRecord::BLANK
        }
    }

    /// Keeps the packet's time, whatever the metering makes of it.
    fn note(&mut self, packet: &FlowRecord, parties: &Parties, to_server: bool, payload: bool) {
        let at = packet.first;
        let key = (parties.workload, parties.conn.0, to_server);
        let flow = self.flows.entry(key).or_insert(TrueFlow {
            ends: [(packet.src, packet.src_port), (packet.dst, packet.dst_port)],
            packets: [at, at],
            payload: None,
        });
        flow.packets[1] = at;
        if payload {
            flow.payload = Some([flow.payload.map_or(at, |p| p[0]), at]);
        }
    }

    /// The address of a host by its key: 10.x.y.z on the left, 11.x.y.z on the right.
    fn address(&mut self, right: bool, key: u64) -> IpAddr {
        let hosts = &mut self.hosts[usize::from(right)];
        let next = hosts.len() as u32;
        let number = *hosts.entry(key).or_insert(next);
        Ipv4Addr::from_bits((10 + u32::from(right)) << 24 | number & 0x00ff_ffff).into()
    }
}
