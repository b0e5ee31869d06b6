//! What makes a packet the same flow, and the same packet, at two taps.

use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use swell_capture::{Packet, Tcp, Transport};

use crate::addresses::{MAPPED, bits};

/// Kinds of flows with ports.
const TCP: u16 = 0;
const UDP: u16 = 1;
/// Fragments, the first of a datagram included, belong to their pair of hosts: the others have no ports.
const FRAGMENTS: u16 = 2;
const ICMP: u16 = 3;
/// Other IP protocols by their numbers, from here on.
const OTHERS: u16 = 256;

/// Both ends of a flow with their ports, the smaller one first, and the protocol. Packets without ports are flows of
/// their pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flow {
    ends: [u128; 2],
    ports: [u16; 2],
    kind: u16,
}

impl Flow {
    /// The flow of a packet, and whether the packet comes from the second end.
    pub(super) fn of(p: &Packet) -> (Flow, bool) {
        let ([from, to], kind) = match &p.transport {
            _ if p.fragment != 0 => ([0; 2], FRAGMENTS),
            Transport::Tcp(h) => ([h.src_port, h.dst_port], TCP),
            &Transport::Udp {
                src_port, dst_port, ..
            } => ([src_port, dst_port], UDP),
            Transport::Icmp => ([0; 2], ICMP),
            Transport::Fragment => ([0; 2], FRAGMENTS),
            &Transport::Other(n) | &Transport::Truncated(n) => ([0; 2], OTHERS + u16::from(n)),
        };
        let [src, dst] = [p.src, p.dst].map(bits);
        let back = (dst, to) < (src, from);
        let flow = match back {
            false => Flow {
                ends: [src, dst],
                ports: [from, to],
                kind,
            },
            true => Flow {
                ends: [dst, src],
                ports: [to, from],
                kind,
            },
        };
        (flow, back)
    }

    /// The addresses of its ends.
    pub(super) fn addresses(&self) -> [IpAddr; 2] {
        self.ends.map(|bits| match bits >> 32 == MAPPED >> 32 {
            true => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            false => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        })
    }
}

/// A number that tells the packet from others of its flow and direction, as far as routers leave it unchanged; `None` if
/// its header has nothing that does.
pub(super) fn print(p: &Packet) -> Option<u64> {
    let hash = |of: &dyn Fn(FixedState) -> u64| of(FixedState::with_seed(1));
    match &p.transport {
        _ if p.fragment != 0 => None,
        Transport::Tcp(h) => {
            let fields = (h.seq, h.ack, h.flags, h.payload, h.options.timestamps);
            Some(hash(&|state| state.hash_one(fields)))
        }
        _ if p.mark == 0 => None,
        _ => Some(hash(&|state| state.hash_one((p.ip_len, p.mark)))),
    }
}

/// What a connection's first packet keeps under other addresses: sequence number and timestamp of its SYN.
pub(super) fn opening(p: &Packet) -> Option<u64> {
    let Transport::Tcp(h) = &p.transport else {
        return None;
    };
    let syn = h.has(Tcp::SYN) && !h.has(Tcp::ACK);
    let value = h.options.timestamps.map(|t| t.0);
    syn.then(|| FixedState::with_seed(2).hash_one((h.seq, value)))
}

/// Places of items in a list, by what they are of. It holds numbers only.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(HashTable<u32>);

fn hash(of: &impl Hash) -> u64 {
    FixedState::with_seed(0).hash_one(of)
}

impl Places {
    /// The place of the item whose `key` is this one.
    #[inline]
    pub(super) fn find<T, K: Hash + Eq>(
        &self,
        wanted: &K,
        all: &[T],
        key: impl Fn(&T) -> K,
    ) -> Option<usize> {
        let found = self
            .0
            .find(hash(wanted), |&i| key(&all[i as usize]) == *wanted);
        found.map(|&i| i as usize)
    }

    /// Adds the last item of the list.
    pub(super) fn add_last<T, K: Hash>(&mut self, all: &[T], key: impl Fn(&T) -> K) {
        let last = all.len() - 1;
        (self.0).insert_unique(hash(&key(&all[last])), last as u32, |&i| {
            hash(&key(&all[i as usize]))
        });
    }

    /// The places of all items of a list.
    pub(super) fn of<T, K: Hash>(all: &[T], key: impl Fn(&T) -> K) -> Places {
        let mut places = Places(HashTable::with_capacity(all.len()));
        for (i, item) in all.iter().enumerate() {
            (places.0).insert_unique(hash(&key(item)), i as u32, |&i| {
                hash(&key(&all[i as usize]))
            });
        }
        places
    }
}
