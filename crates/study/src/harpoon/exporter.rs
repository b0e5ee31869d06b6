//! A flow exporter on the link: what a router with NetFlow would report of the packets that cross it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Packet, Stream, Time};
use swell_capture::flow::{EndReason, FlowRecord, Sampling};
use swell_workload::Conn;
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

/// What an exporter reports, for who runs the world.
pub struct Reports(Arc<Mutex<State>>);

struct State {
    open: BTreeMap<(Conn, bool), FlowRecord>,
    done: Vec<FlowRecord>,
    /// Hosts met on the left and on the right.
    hosts: [BTreeMap<u64, u32>; 2],
    sample: u32,
    stream: Stream,
}

/// An exporter that samples one packet in `sample`, at random.
pub fn exporter(sample: u32, seed: u64) -> (Exporter, Reports) {
    let state = Arc::new(Mutex::new(State {
        open: BTreeMap::new(),
        done: Vec::new(),
        hosts: Default::default(),
        sample,
        stream: Stream::new(seed, "exporter"),
    }));
    (Exporter(Arc::clone(&state)), Reports(state))
}

impl Reports {
    /// All records, in the order in which flows ended.
    pub fn take(self) -> Vec<FlowRecord> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = std::mem::take(&mut state.done);
        records.extend(std::mem::take(&mut state.open).into_values());
        records.sort_by_key(|r| r.last);
        records
    }
}

impl Tap for Exporter {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.packet(at, parties, to_server, packet);
    }
}

impl State {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        if self.sample > 1 && !self.stream.chance(1.0 / f64::from(self.sample)) {
            return;
        }
        let at = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        let key = (parties.conn, to_server);
        let inactive = |r: &FlowRecord| (at - r.last) as u64 > INACTIVE.as_nanos();
        let active = |r: &FlowRecord| (at - r.first) as u64 > ACTIVE.as_nanos();
        if let Some(open) = self.open.get(&key)
            && (inactive(open) || active(open))
        {
            let end = if inactive(open) {
                EndReason::IdleTimeout
            } else {
                EndReason::ActiveTimeout
            };
            self.done.push(FlowRecord { end, ..*open });
            self.open.remove(&key);
        }
        if !self.open.contains_key(&key) {
            let record = self.begin(at, parties, to_server);
            self.open.insert(key, record);
        }
        if let Some(open) = self.open.get_mut(&key) {
            open.last = at;
            open.packets += 1;
            open.bytes += u64::from(packet.size);
            open.tcp_flags = Some(open.tcp_flags.unwrap_or(0) | packet.seg.flags.0);
        }
    }

    fn begin(&mut self, at: i64, parties: &Parties, to_server: bool) -> FlowRecord {
        let [client, server] = parties.hosts;
        let client = self.address(parties.from_right, client);
        let server = self.address(!parties.from_right, server);
        let port = 1024 + (parties.conn.0 % CLIENT_PORTS) as u16;
        let (from, to) = if to_server {
            ((client, port), (server, SERVER_PORT))
        } else {
            ((server, SERVER_PORT), (client, port))
        };
        let mut sampling = Sampling::UNKNOWN;
        sampling.interval = f64::from(self.sample);
        FlowRecord {
            first: at,
            last: at,
            src: from.0,
            src_port: from.1,
            dst: to.0,
            dst_port: to.1,
            protocol: 6,
            sampling,
            ..FlowRecord::BLANK
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
