//! Faults of UDP packets where they leave a bridge, in addition to the impairments of links: bursts of losses with a
//! maximum length, losses of chosen packets, corruption, blackholes, and a NAT that drops its bindings.
//!
//! The kinds of faults are those of the QUIC interop runner's network (quic-interop/quic-network-simulator), where
//! they belong to the receiving device. They run in wall-clock time. The world does not know about them, so journals
//! do not contain them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use swell_base::{Dur, Stream};
use swell_host::{Checksum, IpPacket, Nic, network, rewrite};

use crate::ip::{Header, UDP};

/// Corruption changes one of this many payload bytes, which cover the headers of QUIC.
const FRONT: u64 = 50;
/// Most senders that a NAT knows. It drops packets of others, since programs could make its tables grow. They are at
/// most half of the ports of an address, so a free port is found soon.
const MOST_SENDERS: usize = 1 << 15;

/// A kind of fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Drops a packet with this probability, but at most `run` packets in a row.
    Drop {
        /// The probability.
        share: f64,
        /// Most packets in a row.
        run: u32,
    },
    /// Changes one of the first 50 bytes of payload and updates the checksum. QUIC Version Negotiation packets are
    /// left unchanged.
    Corrupt {
        /// The probability.
        share: f64,
        /// Most packets in a row.
        run: u32,
    },
    /// Drops the packets with these numbers. The first packet is number 1.
    List(BTreeSet<u64>),
    /// A blackhole: packets pass for `on`, then all are dropped for `off`, whatever their protocol. This repeats
    /// `times` times.
    Blackhole {
        /// How long packets pass in each period.
        on: Dur,
        /// How long packets are dropped in each period.
        off: Dur,
        /// Number of periods.
        times: u32,
    },
}

/// A NAT that assigns new ports to the senders on the left side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebind {
    /// Time of the first rebinding.
    pub first: Dur,
    /// Interval between later rebindings; without it there is only one.
    pub every: Option<Dur>,
    /// Senders also get another address, from the same /24 prefix.
    pub address: bool,
}

/// The faults on both sides of a bridge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Faults of packets that leave on the left and on the right.
    pub ends: [Vec<Fault>; 2],
    /// Rebinding by a NAT between the two sides.
    pub rebind: Option<Rebind>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Counts of packets that left on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// UDP packets that were to leave; on a side with a blackhole, packets of all protocols.
    pub packets: u64,
    /// How many of them were dropped.
    pub dropped: u64,
    /// UDP packets with a changed byte.
    pub corrupted: u64,
    /// Senders that got a new port.
    pub rebound: u64,
}

/// Counts of both sides: left, right.
pub type FaultTally = Arc<Mutex<[FaultCounts; 2]>>;

impl Faults {
    /// Wraps the interfaces of a bridge, left and right, so that leaving packets undergo the faults. The time of the
    /// faults starts now.
    pub(crate) fn between(&self, nics: [Box<dyn Nic>; 2], tally: &FaultTally) -> [Box<dyn Nic>; 2] {
        if *self == Faults::default() {
            return nics;
        }
        let begun = Instant::now();
        let nat = self.rebind.map(|r| Nat::new(r, self.seed));
        let nat = nat.map(|nat| Arc::new(Mutex::new(nat)));
        let mut side = 0;
        nics.map(|nic| {
            let end = self.ends[side].iter();
            let exit = Exit {
                nic,
                begun,
                side,
                course: Course {
                    faults: end.map(|f| (f.clone(), 0)).collect(),
                    rng: Stream::indexed(self.seed, "faults", side as u64),
                },
                nat: nat.clone(),
                tally: Arc::clone(tally),
                dropped: 0,
                packet: Vec::new(),
            };
            side += 1;
            Box::new(exit) as Box<dyn Nic>
        })
    }
}

/// The faults of one side. Each has a counter: the length of its current run of hits, or the number of packets seen.
struct Course {
    faults: Vec<(Fault, u64)>,
    rng: Stream,
}

impl Course {
    /// Whether a fault can concern a packet of this protocol.
    fn concerns(&self, protocol: u8) -> bool {
        let hole = |f: &(Fault, u64)| matches!(f.0, Fault::Blackhole { .. });
        protocol == UDP || self.faults.iter().any(hole)
    }

    /// Applies the faults to a packet, which may change it. Returns whether the packet passes.
    fn passes(
        &mut self,
        elapsed: Dur,
        packet: &mut [u8],
        header: &Header,
        counts: &mut FaultCounts,
    ) -> bool {
        let udp = header.protocol == UDP && header.ports != [0; 2];
        for (fault, state) in &mut self.faults {
            let hit = match fault {
                Fault::Blackhole { on, off, times } => {
                    let period = on.as_nanos() + off.as_nanos();
                    let (round, at) = (
                        elapsed.as_nanos() / period.max(1),
                        elapsed.as_nanos() % period.max(1),
                    );
                    round < u64::from(*times) && at >= on.as_nanos()
                }
                _ if !udp => false,
                Fault::List(numbers) => {
                    *state += 1;
                    numbers.contains(state)
                }
                Fault::Corrupt { .. } if negotiates(packet, header) => {
                    *state = 0;
                    false
                }
                Fault::Drop { share, run } | Fault::Corrupt { share, run } => {
                    let hit = *state < u64::from(*run) && self.rng.chance(*share);
                    *state = if hit { *state + 1 } else { 0 };
                    hit
                }
            };
            match fault {
                _ if !hit => {}
                Fault::Corrupt { .. } => {
                    counts.corrupted += u64::from(corrupt(packet, header, &mut self.rng));
                }
                _ => {
                    counts.dropped += 1;
                    return false;
                }
            }
        }
        true
    }
}

/// Length of an IP packet by its own fields: without the padding of a short Ethernet frame, which may follow. Length
/// zero means that the packet is too long for the field (RFC 2675).
fn length(packet: &[u8], header: &Header) -> usize {
    let (at, more) = match header.source {
        IpAddr::V4(_) => (2, 0),
        IpAddr::V6(_) => (4, 40),
    };
    let told = usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    if told == 0 {
        return packet.len();
    }
    // A wrong length does not cut off the headers that were parsed.
    (told + more).max(payload(header)).min(packet.len())
}

/// Offset of the payload of a UDP packet.
fn payload(header: &Header) -> usize {
    header.transport + 8
}

/// Whether this is a QUIC Version Negotiation packet: a long header with version 0 (RFC 9000 section 17.2.1).
fn negotiates(packet: &[u8], header: &Header) -> bool {
    packet
        .get(payload(header)..)
        .and_then(|p| p.first_chunk())
        .is_some_and(|[first, version @ ..]: &[u8; 5]| first & 0x80 != 0 && *version == [0; 4])
}

/// Offset of the checksum of a UDP packet; `None` if it has none (RFC 768).
fn checksum(packet: &[u8], header: &Header) -> Option<usize> {
    let place = header.transport + 6;
    let there = packet.get(place..place + 2)? != [0, 0];
    there.then_some(place)
}

/// Overwrites part of a UDP header or payload, or an address, and updates the UDP checksum. `also` lists other
/// checksums that cover the bytes.
fn change(packet: &mut [u8], header: &Header, at: usize, with: &[u8], also: &[usize]) {
    let Some(place) = checksum(packet, header) else {
        return rewrite(packet, at, with, also);
    };
    rewrite(packet, at, with, &[&[place], also].concat());
    if packet[place..place + 2] == [0, 0] {
        // A UDP checksum of zero would mean "no checksum", so zero is sent as all ones (RFC 768).
        packet[place..place + 2].fill(0xff);
    }
}

/// Changes one byte of payload; false if there is no payload.
fn corrupt(packet: &mut [u8], header: &Header, rng: &mut Stream) -> bool {
    let start = payload(header);
    let front = FRONT.min(packet.len().saturating_sub(start) as u64);
    if front == 0 {
        return false;
    }
    let at = start + rng.below(front) as usize;
    let new = packet[at].wrapping_add(1 + rng.below(255) as u8);
    let word = start + (at - start) / 2 * 2;
    let mut bytes = packet[word..packet.len().min(word + 2)].to_vec();
    bytes[at - word] = new;
    change(packet, header, word, &bytes, &[]);
    true
}

/// An address and port of a sender on the left, either inside or outside the NAT.
type PortAddress = (Ipv4Addr, u16);

struct Nat {
    rebind: Rebind,
    next: Option<Dur>,
    out: BTreeMap<PortAddress, PortAddress>,
    /// Inside place by outside place. Answers to outside places that are no longer here are dropped.
    back: BTreeMap<PortAddress, PortAddress>,
    addresses: BTreeMap<Ipv4Addr, Ipv4Addr>,
    rng: Stream,
}

impl Nat {
    fn new(rebind: Rebind, seed: u64) -> Nat {
        Nat {
            rebind,
            next: Some(rebind.first),
            out: BTreeMap::new(),
            back: BTreeMap::new(),
            addresses: BTreeMap::new(),
            rng: Stream::new(seed, "rebinding"),
        }
    }

    /// Performs the rebindings that are due, and returns how many senders were rebound.
    fn forget(&mut self, elapsed: Dur) -> u64 {
        let mut rebound = 0;
        while let Some(next) = self.next.filter(|&next| next <= elapsed) {
            self.next = self.rebind.every.map(|e| next + e.max(Dur::from_nanos(1)));
            if self.next.is_some_and(|n| n <= elapsed) {
                // No packet was sent in between, so one rebinding has the same effect as several.
                continue;
            }
            if self.rebind.address {
                for (inside, outside) in &mut self.addresses {
                    let before = *outside;
                    while *outside == before || outside == inside {
                        let [a, b, c, _] = inside.octets();
                        *outside = Ipv4Addr::new(a, b, c, 1 + self.rng.below(254) as u8);
                    }
                }
            }
            self.back.clear();
            for (from, to) in &mut self.out {
                let address = *self.addresses.entry(from.0).or_insert(from.0);
                let before = *to;
                while *to == before || self.back.contains_key(to) {
                    *to = (address, 1 + self.rng.below(u64::from(u16::MAX)) as u16);
                }
                self.back.insert(*to, *from);
                rebound += 1;
            }
        }
        rebound
    }

    /// The translated address and port of a packet that leaves on a side; `None` if there is no binding.
    fn translate(&mut self, right: bool, place: PortAddress) -> Option<PortAddress> {
        if !right {
            return self.back.get(&place).copied();
        }
        if let Some(&known) = self.out.get(&place) {
            return Some(known);
        }
        if self.out.len() >= MOST_SENDERS {
            return None;
        }
        let mut outside = (*self.addresses.entry(place.0).or_insert(place.0), place.1);
        while self.back.contains_key(&outside) {
            outside.1 = outside.1.wrapping_add(1).max(1);
        }
        self.out.insert(place, outside);
        self.back.insert(outside, place);
        Some(outside)
    }

    /// Translates an IPv4 UDP packet; false if it has no binding.
    fn passes(&mut self, right: bool, packet: &mut [u8], header: &Header) -> bool {
        let (address, port, at) = match right {
            true => (header.source, header.ports[0], 12),
            false => (header.destination, header.ports[1], 16),
        };
        let IpAddr::V4(v4) = address else {
            return true;
        };
        if header.protocol != UDP || header.ports == [0; 2] {
            return true;
        }
        let Some((new, new_port)) = self.translate(right, (v4, port)) else {
            return false;
        };
        change(packet, header, at, &new.octets(), &[10]);
        let place = header.transport + if right { 0 } else { 2 };
        change(packet, header, place, &new_port.to_be_bytes(), &[]);
        true
    }
}

/// An interface whose outgoing packets undergo faults.
struct Exit {
    nic: Box<dyn Nic>,
    begun: Instant,
    /// 0 on the left, 1 on the right.
    side: usize,
    course: Course,
    nat: Option<Arc<Mutex<Nat>>>,
    tally: FaultTally,
    dropped: u64,
    packet: Vec<u8>,
}

impl Nic for Exit {
    fn fd(&self) -> BorrowedFd<'_> {
        self.nic.fd()
    }

    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        self.nic.read(each)
    }

    fn write(&mut self, frame: &[u8], checksum: Checksum) -> u64 {
        let Some(start) = network(frame) else {
            return self.nic.write(frame, checksum);
        };
        let Some(header) = Header::of(&frame[start..]) else {
            return self.nic.write(frame, checksum);
        };
        self.packet.clear();
        self.packet.extend_from_slice(frame);
        checksum.complete(&mut self.packet);
        let end = start + length(&frame[start..], &header);
        let packet = &mut self.packet[start..end];
        let elapsed = Dur::from_nanos(self.begun.elapsed().as_nanos() as u64);
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = &mut tally[self.side];
        counts.packets += u64::from(self.course.concerns(header.protocol));
        let mut passes = self.course.passes(elapsed, packet, &header, counts);
        if passes && let Some(nat) = &self.nat {
            let mut nat = nat.lock().unwrap_or_else(PoisonError::into_inner);
            counts.rebound += nat.forget(elapsed);
            passes = nat.passes(self.side == 1, packet, &header);
            counts.dropped += u64::from(!passes);
        }
        drop(tally);
        match passes {
            true => self.nic.write(&self.packet, Checksum::Full),
            false => {
                self.dropped += 1;
                0
            }
        }
    }

    fn flush(&mut self) -> u64 {
        self.nic.flush()
    }

    fn lost(&self) -> u64 {
        self.nic.lost()
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn stamp(&self) -> Option<u64> {
        self.nic.stamp()
    }

    fn stamps(&self) -> bool {
        self.nic.stamps()
    }

    fn empty(&self) -> bool {
        self.nic.empty()
    }
}

#[cfg(test)]
#[path = "tests/faults.rs"]
mod tests;
