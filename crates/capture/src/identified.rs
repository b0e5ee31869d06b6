//! Tells packets of a flow apart by their numbers.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::{Packet, Transport};

/// Flows whose identifications are remembered. A later one may take the place of an earlier one.
const FLOWS: usize = 1 << 13;
/// Fewer packets do not show whether identifications change.
const FEW: u16 = 8;
/// Identifications change if one in so many differs from the one before. Copies of a packet have the same.
const CHANGES: u16 = 8;
/// From this number of packets on, earlier ones count less.
const MANY: u16 = 256;

/// How well its numbers tell a packet from all others of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// An equal one may be another packet.
    No,
    /// By its data in TCP: an equal one may be a retransmission.
    Data,
    /// By an IPv4 identification, or the sequence number of ESP (RFC 4303): an equal one is the same packet.
    Surely,
}

/// Remembers in which flows identifications change. Senders may give all packets that are not fragmented the same one
/// (RFC 6864 section 4.1).
#[derive(Debug, Default)]
pub(crate) struct Identified {
    flows: Vec<Flow>,
}

/// The packets of one protocol from one host to another.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    print: u64,
    last: u16,
    packets: u16,
    changes: u16,
}

impl Identified {
    /// Takes the identification of a packet into account.
    pub(crate) fn learn(&mut self, p: &Packet) {
        let ident = identification(p);
        if ident == 0 || p.fragment != 0 {
            return;
        }
        self.flows.resize(FLOWS, Flow::default());
        let print = flow(p);
        let of = &mut self.flows[place(print)];
        if of.print != print {
            *of = Flow {
                print,
                last: ident,
                ..Flow::default()
            };
        }
        if of.packets == MANY {
            (of.packets, of.changes) = (of.packets / 2, of.changes / 2);
        }
        of.packets += 1;
        of.changes += u16::from(of.last != ident);
        of.last = ident;
    }

    /// How well its numbers tell a packet apart.
    pub(crate) fn told(&self, p: &Packet) -> Told {
        match &p.transport {
            Transport::Other(50) if p.mark != 0 => Told::Surely,
            _ if self.changes(p) => Told::Surely,
            Transport::Tcp(h) if h.payload > 0 => Told::Data,
            _ => Told::No,
        }
    }

    /// Whether the packet has an identification, and its flow does not have the same one all the time.
    fn changes(&self, p: &Packet) -> bool {
        // Fragments of a datagram have the same on purpose.
        if identification(p) == 0 || p.fragment != 0 {
            return identification(p) != 0;
        }
        let print = flow(p);
        let of = self.flows.get(place(print)).filter(|f| f.print == print);
        of.is_none_or(|f| f.packets < FEW || f.changes >= f.packets / CHANGES)
    }
}

fn identification(p: &Packet) -> u16 {
    (p.mark >> 48) as u16
}

fn place(print: u64) -> usize {
    (print >> 32) as usize % FLOWS
}

/// Fingerprint of all packets among which an identification is unique (RFC 6864 section 4.2). Never 0.
fn flow(p: &Packet) -> u64 {
    let protocol = match &p.transport {
        Transport::Tcp(_) => 6u8,
        Transport::Udp { .. } => 17,
        Transport::Icmp | Transport::Fragment => 1,
        &Transport::Other(n) | &Transport::Truncated(n) => n,
    };
    FixedState::with_seed(2).hash_one((p.src, p.dst, protocol)) | 1
}
