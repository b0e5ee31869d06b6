//! The table of current flows, keyed by addresses and ports.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use swell_capture::{Packet, Tcp as Header};

use crate::addresses::{MAPPED, bits};
use crate::tcp::{MAX_JUMP, Tracked};
use crate::udp::Flow as UdpFlow;
use crate::users::ConnectionIndex;

/// Both ends of a flow, the smaller one first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) a: u128,
    b: u128,
    ports: u32,
    udp: bool,
}

impl Key {
    /// Whether both ends are IPv6 addresses.
    pub(crate) fn ipv6(&self) -> bool {
        self.a >> 32 != MAPPED >> 32
    }
}

#[derive(Debug)]
pub(crate) enum State {
    /// A SYN with no packet after it. Kept small because scans consist of these.
    Asked(Box<Asked>),
    Tcp(Box<Tracked>),
    Udp(Box<UdpFlow>),
    /// Boxed, to keep slots small.
    Closed(Box<ClosedConnection>),
    Free,
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: Key,
    pub(crate) state: State,
    pub(crate) last: u64,
    /// Whether the TCP connection has ended.
    pub(crate) closed: bool,
    /// Whether the client is `key.a`.
    pub(crate) client_is_a: bool,
    /// Whether packets from `key.a` go left to right.
    pub(crate) a_is_left: bool,
    pub(crate) hosts: [u32; 2],
    pub(crate) place: Option<ConnectionIndex>,
}

/// A SYN without an answer so far.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) at: u64,
    pub(crate) ip_len: u32,
    pub(crate) header: Header,
}

impl Asked {
    /// Converts to a fully tracked connection, at its second packet.
    pub(crate) fn tracked(&self, quiet: u64) -> Tracked {
        let mut tracked = Tracked::new(self.at);
        tracked.packet(0, self.at, self.ip_len, &self.header, quiet);
        tracked
    }
}

/// What is remembered of a TCP connection that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClosedConnection {
    /// The client's initial sequence number, if its SYN was seen.
    pub(crate) isn: Option<u32>,
    /// Sequence numbers after the last data of the client and of the server, if known.
    pub(crate) ends: [Option<u32>; 2],
}

impl ClosedConnection {
    /// Whether a packet from end `from` holds data that are not of the ended connection: it was no end, or the
    /// ports are used again.
    pub(crate) fn goes_on(&self, from: usize, h: &Header) -> bool {
        let beyond = |end: u32| {
            let last = h.seq.wrapping_add(h.payload);
            i64::from(last.wrapping_sub(end) as i32)
        };
        let old = -MAX_JUMP..=0;
        let beside = h.flags & (Header::SYN | Header::RST) == 0;
        h.payload > 0 && beside && self.ends[from].is_none_or(|end| !old.contains(&beyond(end)))
    }
}

/// Slots by key. The index stores slot numbers only, as the slots hold the keys anyway.
#[derive(Debug)]
pub(crate) struct Table {
    index: HashTable<u32>,
    hasher: FixedState,
    slots: Vec<Slot>,
    free: Vec<u32>,
    cursor: usize,
}

impl Table {
    pub(crate) fn new() -> Table {
        Table {
            index: HashTable::new(),
            hasher: FixedState::with_seed(0),
            slots: Vec::new(),
            free: Vec::new(),
            cursor: 0,
        }
    }

    /// Number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of slots, free ones included.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn get(&self, i: u32) -> &Slot {
        &self.slots[i as usize]
    }

    pub(crate) fn get_mut(&mut self, i: u32) -> &mut Slot {
        &mut self.slots[i as usize]
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        let slots = &self.slots;
        self.index
            .find(self.hasher.hash_one(key), |&i| {
                slots[i as usize].key == *key
            })
            .copied()
    }

    /// Inserts a slot whose key is not in the table yet.
    pub(crate) fn insert(&mut self, slot: Slot) -> u32 {
        let hash = self.hasher.hash_one(slot.key);
        let i = match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = slot;
                i
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        let (hasher, slots) = (&self.hasher, &self.slots);
        self.index
            .insert_unique(hash, i, |&j| hasher.hash_one(slots[j as usize].key));
        i
    }

    pub(crate) fn release(&mut self, i: u32) {
        let s = &mut self.slots[i as usize];
        s.state = State::Free;
        let hash = self.hasher.hash_one(s.key);
        if let Ok(entry) = self.index.find_entry(hash, |&j| j == i) {
            entry.remove();
        }
        self.free.push(i);
    }

    /// The next slot in round-robin order; `None` if there are no slots.
    #[inline]
    pub(crate) fn turn(&mut self) -> Option<u32> {
        self.cursor += 1;
        if self.cursor >= self.slots.len() {
            self.cursor = 0;
        }
        (!self.slots.is_empty()).then_some(self.cursor as u32)
    }
}

/// The flow key of a packet, and whether the packet comes from the key's first end.
pub(crate) fn key(p: &Packet, src_port: u16, dst_port: u16, udp: bool) -> (Key, bool) {
    let (a, b) = (bits(p.src), bits(p.dst));
    let from_a = (a, src_port) <= (b, dst_port);
    let join = |x: u16, y: u16| u32::from(x) << 16 | u32::from(y);
    let key = if from_a {
        Key {
            a,
            b,
            ports: join(src_port, dst_port),
            udp,
        }
    } else {
        Key {
            a: b,
            b: a,
            ports: join(dst_port, src_port),
            udp,
        }
    };
    (key, from_a)
}
