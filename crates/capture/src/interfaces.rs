//! Leaves out the packets of interfaces that see what another one sees.
//!
//! A file may hold what two hosts or two interfaces of a router saw of the same traffic. Round trips, losses and the load
//! are those of one point. So of two interfaces that share packets, only the first in number is used for what one host
//! sends to another, as long as it sees such packets. What only the second sees is used, too.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::Packet;
use crate::copies::{LEAST, SHARE};

/// Interfaces that are compared, the first ones of a file.
const MOST: usize = 32;
/// Pairs of hosts that are remembered.
const PAIRS: usize = 1 << 16;
/// An interface sees a pair of hosts for this long after a packet, nanoseconds.
const LASTS: u64 = 60_000_000_000;

/// Interfaces on which packets from one host to another were seen.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    print: u64,
    time: i64,
    on: u32,
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
    pairs: Vec<Pair>,
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

    /// Remembers which interface sees the packet's hosts.
    pub(crate) fn note(&mut self, p: &Packet) {
        let on = bit(p.interface) & self.used;
        if on == 0 {
            return;
        }
        self.pairs.resize(PAIRS, Pair::default());
        let print = print(p);
        let pair = &mut self.pairs[place(print)];
        if pair.print != print || pair.time.abs_diff(p.time) > LASTS {
            *pair = Pair {
                print,
                ..Pair::default()
            };
        }
        (pair.time, pair.on) = (p.time, pair.on | on);
    }

    /// Whether another interface sees packets of the same hosts.
    pub(crate) fn leaves_out(&self, p: &Packet) -> bool {
        let instead = self.instead.get(p.interface as usize).copied();
        let Some(instead) = instead.filter(|i| *i != 0) else {
            return false;
        };
        let print = print(p);
        self.pairs.get(place(print)).is_some_and(|pair| {
            pair.print == print && pair.time.abs_diff(p.time) <= LASTS && pair.on & instead != 0
        })
    }
}

fn bit(interface: u32) -> u32 {
    1u32.checked_shl(interface).unwrap_or(0)
}

fn place(print: u64) -> usize {
    (print >> 32) as usize % PAIRS
}

/// Fingerprint of what one host sends to another. Never 0.
fn print(p: &Packet) -> u64 {
    FixedState::with_seed(4).hash_one((p.src, p.dst)) | 1
}
