//! Detects that a capture holds each packet on both sides of an address translator (NAT, RFC 3022).
//!
//! A capture on two interfaces of a NAT gateway, or on `any`, has each packet before and after translation. They differ
//! in one address, its port, checksums and the time to live, which is one less afterwards. The other end, lengths, the
//! IPv4 identification, and TCP's numbers are the same. Only one side of each connection is used: the inner one, where
//! hosts have their own addresses. A packet from inside passes it before translation, one from outside afterwards.
//!
//! Senders with a constant identification make alike packets, too. So where no numbers of TCP tell packets apart, their
//! times to live must.

use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::FixedState;

use crate::evidence::{BUCKETS, DEEP, LEAST, SHARE, WITHIN};
use crate::{Packet, Tcp, Transport};

/// Connections whose outer side is remembered. A later one may take the place of an earlier one, which then takes
/// another packet from inside to be known again.
const OUTER: usize = 1 << 16;

/// A recent packet as one of its ends sees it.
#[derive(Clone, Copy, Debug)]
struct Recent {
    print: u64,
    time: i64,
    flow: u64,
    ttl: u8,
}

const NONE: Recent = Recent {
    print: 0,
    time: i64::MIN,
    flow: 0,
    ttl: 0,
};

/// Finds packets of the outer side of an address translator.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    /// Whether the capture holds both sides.
    pub(crate) systematic: bool,
    recent: Vec<[Recent; DEEP]>,
    /// Fingerprints of connections on the outer side.
    outer: Vec<u64>,
    /// Packets examined that tell, and those that were seen before under another address.
    seen: u32,
    found: u32,
}

impl Translated {
    /// Forgets what was examined, but not which connections are outside.
    pub(crate) fn start(&mut self) {
        self.recent.clear();
        self.recent.resize(BUCKETS, [NONE; DEEP]);
        (self.seen, self.found) = (0, 0);
    }

    /// Examines a packet.
    pub(crate) fn examine(&mut self, p: &Packet) {
        if tells(p) {
            self.seen += 1;
            self.found += u32::from(self.pair(p).is_some());
        }
    }

    /// Decides whether what was examined shows both sides of a translator.
    pub(crate) fn decide(&mut self) {
        self.systematic = self.found >= LEAST && self.found * SHARE >= self.seen;
        if !self.systematic {
            self.outer = Vec::new();
        }
    }

    /// Whether a packet belongs to the outer side of its connection.
    pub(crate) fn is_outer(&mut self, p: &Packet) -> bool {
        let flow = flow(p);
        // Without ports, one address pair may stand for several hosts inside, and for the gateway itself.
        if ports(p) != [0; 2] && self.outer.get(place(flow)) == Some(&flow) {
            return true;
        }
        tells(p) && self.pair(p) == Some(flow)
    }

    /// The outer side of the packet's connection, if the packet was seen on the other side before. It is remembered.
    fn pair(&mut self, p: &Packet) -> Option<u64> {
        let flow = flow(p);
        let mut outer = None;
        for to in [true, false] {
            let print = print(p, to);
            let bucket = &mut self.recent[(print >> 32) as usize % BUCKETS];
            let routed = |r: &Recent| r.ttl.abs_diff(p.ttl) == 1;
            let other = bucket.iter().find(|r| {
                let near = r.time.abs_diff(p.time) <= WITHIN;
                r.print == print && r.flow != flow && near && (is_numbered(p) || routed(r))
            });
            if let Some(&other) = other {
                // Packets of two interfaces may have equal stamps in any order.
                let later = (p.time, other.ttl) >= (other.time, p.ttl);
                // Its source was changed on its way out, or its destination on its way in.
                let changed = if later == to { flow } else { other.flow };
                let known = |of: &u64| self.outer.get(place(*of)) == Some(of);
                let first = [flow, other.flow].into_iter().find(known);
                outer = outer.or(Some(first.unwrap_or(changed)));
            }
            if let Some(oldest) = bucket.iter_mut().min_by_key(|r| r.time) {
                *oldest = Recent {
                    print,
                    time: p.time,
                    flow,
                    ttl: p.ttl,
                };
            }
        }
        if let Some(outer) = outer {
            self.outer.resize(OUTER, 0);
            self.outer[place(outer)] = outer;
        }
        outer
    }
}

/// Whether an equal packet under another address can only be the same one.
fn tells(p: &Packet) -> bool {
    p.mark >> 48 != 0 || is_numbered(p)
}

/// Whether it has data of TCP or begins a connection, with numbers that no other connection has by chance.
fn is_numbered(p: &Packet) -> bool {
    let numbers = |h: &Tcp| match h.has(Tcp::SYN) {
        true => h.seq != 0,
        false => h.payload > 0 && h.seq != 0 && h.ack != 0,
    };
    matches!(&p.transport, Transport::Tcp(h) if numbers(h))
}

fn ports(p: &Packet) -> [u16; 2] {
    match &p.transport {
        Transport::Tcp(h) => [h.src_port, h.dst_port],
        &Transport::Udp {
            src_port, dst_port, ..
        } => [src_port, dst_port],
        _ => [0; 2],
    }
}

/// Fingerprint of a connection, in either direction. Never 0.
fn flow(p: &Packet) -> u64 {
    let [from, to] = ports(p);
    let ends: [(IpAddr, u16); 2] = [(p.src, from), (p.dst, to)];
    let of = |end| FixedState::with_seed(1).hash_one((end, protocol(p)));
    of(ends[0]).wrapping_add(of(ends[1])) | 1
}

/// The place of a connection's fingerprint, whose lowest bit is always set.
fn place(flow: u64) -> usize {
    (flow >> 1) as usize % OUTER
}

/// A number for each protocol.
fn protocol(p: &Packet) -> u64 {
    match &p.transport {
        Transport::Tcp(_) => 6,
        Transport::Udp { .. } => 17,
        &Transport::Other(n) | &Transport::Truncated(n) => u64::from(n) << 8 | 2,
        Transport::Icmp => 3,
        Transport::Fragment => 4,
    }
}

/// Fingerprint of all that translation of the other end leaves as it is. Never 0.
fn print(p: &Packet, to: bool) -> u64 {
    let [src_port, dst_port] = ports(p);
    let end = if to {
        (p.dst, dst_port)
    } else {
        (p.src, src_port)
    };
    let numbers = match &p.transport {
        Transport::Tcp(h) => [
            u64::from(h.seq) << 32 | u64::from(h.ack),
            u64::from(h.payload) << 8 | u64::from(h.flags),
            protocol(p),
        ],
        &Transport::Udp { payload, .. } => [u64::from(payload), 0, protocol(p)],
        _ => [0, 0, protocol(p)],
    };
    let number = p.mark >> 32;
    FixedState::with_seed(0).hash_one((end, to, p.ip_len, number, numbers)) | 1
}
