//! Leaves out the packets of interfaces that another one sees, too.
//!
//! A file may hold what two hosts or two interfaces of a router saw of the same traffic. Round trips, losses and the load
//! are those of one point. So of two interfaces that share packets, the second in number leaves out those that the first
//! sees within a second. It also leaves out what is lost between them: the packets of a flow of which the first saw nearly
//! all others. Other flows of the same hosts show nothing: each member of a link aggregation carries some of them.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::evidence::{LEAST, SHARE, print};
use crate::identified::Told;
use crate::{Packet, Transport};

/// Interfaces that are compared, the first ones of a file.
const MOST: usize = 32;
/// Longest time between a packet on one interface and on another, nanoseconds.
const LONGEST: u64 = 1_000_000_000;
/// Buckets of the table of recent packets, and packets in each: altogether 12 MB, with room for two seconds of 100 000
/// packets per second on the interfaces that are used. Of more, some copies are not found.
const BUCKETS: usize = 1 << 16;
const DEEP: usize = 8;
/// Buckets of the table of flows, and flows in each.
const FLOW_BUCKETS: usize = 1 << 14;
const FLOWS_DEEP: usize = 4;
/// Of a flow's packets on the second interface, the first sees nearly all: seven in eight.
const NEARLY: [u16; 2] = [7, 8];
/// From this number of packets on, earlier ones of a flow count less.
const MANY: u16 = 64;

/// Interfaces on which a packet was seen recently. A fingerprint of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    print: u64,
    time: i64,
    on: u32,
}

/// A flow on an interface that leaves out copies. A fingerprint of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    print: u64,
    time: i64,
    /// Its packets, and copies among them.
    packets: u16,
    copies: u16,
}

impl Flow {
    /// Takes a packet into account. Returns whether nearly all packets before it were copies.
    fn count(&mut self, copy: bool) -> bool {
        let [part, of] = NEARLY;
        let nearly = self.copies > 0 && self.copies * of >= self.packets * part;
        if self.packets == MANY {
            (self.packets, self.copies) = (self.packets / 2, self.copies / 2);
        }
        self.packets += 1;
        self.copies += u16::from(copy);
        nearly
    }
}

/// Finds interfaces whose packets another one sees, too.
#[derive(Debug, Default)]
pub(crate) struct Interfaces {
    /// For each interface, those before it that see the same packets, as bits.
    instead: [u32; MOST],
    /// All interfaces that are used instead of others.
    used: u32,
    /// Packets examined on each interface.
    seen: [u32; MOST],
    /// Packets that were seen on both of two interfaces.
    both: Vec<[u32; MOST]>,
    recent: Vec<[Seen; DEEP]>,
    flows: Vec<[Flow; FLOWS_DEEP]>,
}

impl Interfaces {
    /// Whether some interface sees what another one sees.
    pub(crate) fn systematic(&self) -> bool {
        self.used != 0
    }

    /// Counts an examined packet. `on` is the interface on which it was seen before.
    pub(crate) fn examine(&mut self, p: &Packet, on: Option<u32>) {
        let here = p.interface as usize;
        if here >= MOST {
            return;
        }
        self.seen[here] += 1;
        if let Some(there) = on.map(|i| i as usize).filter(|i| *i < MOST && *i != here) {
            self.both.resize(MOST, [0; MOST]);
            self.both[here.min(there)][here.max(there)] += 1;
        }
    }

    /// Decides which interfaces see the packets of others.
    pub(crate) fn decide(&mut self) {
        for (a, row) in self.both.iter().enumerate() {
            for (b, &both) in row.iter().enumerate() {
                if both >= LEAST && both * SHARE >= self.seen[a].min(self.seen[b]) {
                    self.instead[b] |= 1 << a;
                    self.used |= 1 << a;
                }
            }
        }
        self.seen = [0; MOST];
        self.both.clear();
    }

    /// Remembers on which interface a packet is seen.
    pub(crate) fn note(&mut self, p: &Packet, told: Told) {
        let on = bit(p.interface) & self.used;
        if on == 0 || !is_distinct(p, told) {
            return;
        }
        self.recent.resize(BUCKETS, [Seen::default(); DEEP]);
        let print = print(p, told);
        let bucket = &mut self.recent[(print >> 32) as usize % BUCKETS];
        let near = |s: &Seen| s.print == print && s.time.abs_diff(p.time) <= LONGEST;
        if let Some(same) = bucket.iter_mut().find(|s| near(s)) {
            (same.time, same.on) = (p.time, same.on | on);
        } else if let Some(oldest) = bucket.iter_mut().min_by_key(|s| s.time) {
            let time = p.time;
            *oldest = Seen { print, time, on };
        }
    }

    /// Whether another interface sees the packet, or nearly all of its flow.
    pub(crate) fn leaves_out(&mut self, p: &Packet, told: Told) -> bool {
        let instead = self.instead.get(p.interface as usize).copied();
        let Some(instead) = instead.filter(|i| *i != 0) else {
            return false;
        };
        let copy = is_distinct(p, told) && self.is_on(p, told, instead);
        let nearly = self.flow(p).is_some_and(|f| f.count(copy));
        copy || nearly
    }

    /// Whether one of these interfaces sees the packet.
    fn is_on(&self, p: &Packet, told: Told, interfaces: u32) -> bool {
        let print = print(p, told);
        let bucket = self.recent.get((print >> 32) as usize % BUCKETS);
        bucket.into_iter().flatten().any(|s| {
            let near = s.time.abs_diff(p.time) <= LONGEST;
            s.print == print && near && s.on & interfaces != 0
        })
    }

    /// The flow of a packet on its interface. A new one takes the place of the oldest of its bucket.
    fn flow(&mut self, p: &Packet) -> Option<&mut Flow> {
        self.flows
            .resize(FLOW_BUCKETS, [Flow::default(); FLOWS_DEEP]);
        let print = flow(p);
        let bucket = &mut self.flows[(print >> 32) as usize % FLOW_BUCKETS];
        let at = match bucket.iter().position(|f| f.print == print) {
            Some(at) => at,
            None => {
                let oldest = (0..FLOWS_DEEP).min_by_key(|i| bucket[*i].time)?;
                bucket[oldest] = Flow {
                    print,
                    ..Flow::default()
                };
                oldest
            }
        };
        bucket[at].time = p.time;
        Some(&mut bucket[at])
    }
}

/// Whether an equal packet on another interface can only be the same one. Tunnels whose packets differ in nothing that is
/// captured may use several links at once.
fn is_distinct(p: &Packet, told: Told) -> bool {
    told != Told::No || p.mark as u32 != 0
}

fn bit(interface: u32) -> u32 {
    1u32.checked_shl(interface).unwrap_or(0)
}

/// Fingerprint of a flow in one direction on one interface. Never 0.
fn flow(p: &Packet) -> u64 {
    let ports = match &p.transport {
        Transport::Tcp(h) => (6, h.src_port, h.dst_port),
        &Transport::Udp {
            src_port, dst_port, ..
        } => (17, src_port, dst_port),
        Transport::Icmp => (1, 0, 0),
        &Transport::Other(n) | &Transport::Truncated(n) => (n, 0, 0),
        Transport::Fragment => (0, 0, 0),
    };
    FixedState::with_seed(4).hash_one((p.src, p.dst, ports, p.interface)) | 1
}
