//! Detects packets that the capture system recorded twice.
//!
//! A mirror port that copies a frame both where it enters and where it leaves a switch, or a capture on two interfaces
//! of a router, records each packet twice within microseconds. A packet is a copy of an earlier one if its addresses,
//! lengths, transport header and [`mark`](Packet::mark) are the same, whatever its time to live and link layer.
//! Where an IPv4 identification tells packets apart, the checksums of TCP and UDP may differ.
//! `editcap -d` of Wireshark compares whole frames instead, which a router changes.
//!
//! A retransmission is no copy. It has another IP identification or checksum (of its timestamps), and comes a round trip
//! later. Only packets that an identification or sequence numbers tell apart are evidence, and the share of copies among
//! them decides: nobody retransmits one packet in ten within milliseconds. Senders do send equal packets in a row where
//! nothing tells them apart: duplicate ACKs, or datagrams without identification whose checksum is left to the card.
//!
//! Two points of a path may be farther [`apart`](crate::apart), and the file may name them as
//! [`interfaces`](crate::interfaces).

use swell_base::{Code, Warning};

use crate::apart::Apart;
use crate::evidence::{BUCKETS, DEEP, LEAST, SHARE, WITHIN, is_marked, print};
use crate::identified::{Identified, Told};
use crate::interfaces::Interfaces;
use crate::translated::Translated;
use crate::{Packet, Transport};

/// Packets at the beginning of a trace in which [`Copies::begin`] looks for copies within milliseconds.
const OPENING: usize = 4096;
/// Most packets that it examines for copies that come later: 10 MB of memory.
const LONG_OPENING: usize = 1 << 15;
/// Trace time that it examines, unless these are more packets, nanoseconds.
const OPENING_TIME: u64 = 2_000_000_000;
/// While there are none, this many packets …
const LOOK: u32 = 1 << 10;
/// … of so many are examined.
const EVERY: u32 = 1 << 14;
/// Beside them, one packet in so many is examined for copies that come later, and its copies with it.
const SAMPLED: u32 = 16;
/// After so many of them it is decided.
const SAMPLES: u32 = 512;

/// An empty place of the table.
const NONE: (u64, i64) = (0, i64::MIN);

/// Whether the opening of a trace needs more packets than these.
pub(crate) fn opens<'p>(first: &'p Packet, last: &'p Packet, packets: usize) -> bool {
    let short = last.time.abs_diff(first.time) < OPENING_TIME;
    packets < OPENING || (packets < LONG_OPENING && short)
}

/// Finds copies of packets, once it is clear that the capture system makes them.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Whether the capture system doubles packets.
    pub(crate) systematic: bool,
    identified: Identified,
    apart: Apart,
    interfaces: Interfaces,
    translated: Translated,
    /// Packets that were found of the outer side of an address translator, …
    outer: u64,
    /// … more than milliseconds after an equal one, …
    late: u64,
    /// … and on an interface that sees what another one sees.
    elsewhere: u64,
    /// Fingerprints of recent packets and their times. A fingerprint of 0 is none.
    recent: Vec<[(u64, i64); DEEP]>,
    turn: u32,
    /// Packets examined in this turn that tell, and copies among them.
    seen: u32,
    copies: u32,
}

impl Copies {
    /// Examines the beginning of a trace.
    pub(crate) fn begin(&mut self, packets: &[&Packet]) {
        self.start();
        packets.iter().for_each(|p| self.identified.learn(p));
        packets.iter().for_each(|p| self.sample(p, 1));
        self.decide_apart();
        packets.iter().for_each(|p| self.note(p));
        let first = &packets[..packets.len().min(OPENING)];
        first.iter().for_each(|p| self.examine(p));
        self.decide(LEAST);
        self.start();
        self.apart.start();
    }

    /// Whether packets have to be [noted](Copies::note) a second before they are looked up.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.interfaces.systematic()
    }

    /// Notes a packet that will be looked up.
    pub(crate) fn note(&mut self, p: &Packet) {
        if self.interfaces.systematic() {
            self.interfaces.note(p, self.identified.told(p));
        }
    }

    /// Whether the packet is a copy of one before.
    #[inline]
    pub(crate) fn is_copy(&mut self, p: &Packet) -> bool {
        if self.systematic || self.apart.systematic || self.translated.systematic {
            return self.leaves_out(p);
        }
        self.turn = (self.turn + 1) % EVERY;
        if self.turn < LOOK {
            self.look(p);
        }
        if is_sampled(p) {
            self.sample_on(p);
        }
        self.interfaces.systematic() && {
            self.identified.learn(p);
            self.is_elsewhere(p)
        }
    }

    fn leaves_out(&mut self, p: &Packet) -> bool {
        self.identified.learn(p);
        if self.is_elsewhere(p) || (self.systematic && self.finds(p)) {
            return true;
        }
        if self.apart.systematic {
            let told = self.identified.told(p);
            let late = self.apart.is_copy(p, told);
            self.late += u64::from(late);
            if late {
                return true;
            }
        } else if is_sampled(p) {
            self.sample_on(p);
        }
        let outer = self.translated.systematic && self.translated.is_outer(p);
        self.outer += u64::from(outer);
        outer
    }

    /// Whether another interface sees the packet, or nearly all of its flow.
    #[inline]
    fn is_elsewhere(&mut self, p: &Packet) -> bool {
        if !self.interfaces.systematic() {
            return false;
        }
        let told = self.identified.told(p);
        self.interfaces.note(p, told);
        let elsewhere = self.interfaces.leaves_out(p, told);
        self.elsewhere += u64::from(elsewhere);
        elsewhere
    }

    /// Decides whether what was examined shows that the capture system makes copies. Fewer packets that tell are no
    /// evidence.
    fn decide(&mut self, fewest: u32) {
        let enough = self.seen >= fewest && self.copies >= LEAST;
        self.systematic |= enough && self.copies * SHARE >= self.seen;
        self.translated.decide();
    }

    fn look(&mut self, p: &Packet) {
        if self.turn == 0 {
            self.start();
        }
        self.identified.learn(p);
        self.examine(p);
        if self.turn == LOOK - 1 {
            // The first packets of flows do not show whether their identifications change.
            self.decide(LOOK / 16);
        }
    }

    /// Examines one of so many packets for copies that come later, or on another interface.
    fn sample(&mut self, p: &Packet, of: u32) {
        let told = self.identified.told(p);
        // A checksum may be the same by chance, but not on another interface as often.
        let content = matches!(p.transport, Transport::Udp { .. }) && p.mark as u32 != 0;
        if told != Told::No || content {
            let original = self.apart.examine(p, told, of);
            self.interfaces.examine(p, original.map(|o| o.interface));
        }
    }

    #[cold]
    fn sample_on(&mut self, p: &Packet) {
        self.identified.learn(p);
        self.sample(p, SAMPLED);
        if self.apart.examined() >= SAMPLES {
            self.decide_apart();
        }
    }

    fn decide_apart(&mut self) {
        self.apart.decide();
        self.interfaces.decide();
    }

    fn start(&mut self) {
        self.recent.clear();
        self.recent.resize(BUCKETS, [NONE; DEEP]);
        (self.seen, self.copies) = (0, 0);
        self.translated.start();
    }

    fn examine(&mut self, p: &Packet) {
        if self.tells(p) {
            self.seen += 1;
            self.copies += u32::from(self.finds(p));
        }
        self.translated.examine(p);
    }

    /// Whether an equal packet can only be the same one, or a retransmission.
    fn tells(&self, p: &Packet) -> bool {
        self.identified.told(p) != Told::No
    }

    /// Whether an equal packet is among the recent ones.
    fn finds(&mut self, p: &Packet) -> bool {
        if !is_marked(p) {
            return false;
        }
        let told = self.identified.told(p);
        let print = print(p, told);
        let found = find(&mut self.recent, print, p.time);
        // One that tells may have several copies. Others may be two packets, so each has one.
        if !found || told != Told::No {
            keep(&mut self.recent, print, p.time);
        }
        found
    }
}

impl Copies {
    /// Warnings about packets left out, of so many in the trace, and about those that may be copies.
    pub(crate) fn warnings(&self, packets: u64, left_out: u64) -> Vec<Warning> {
        let share = |n: u64| 100.0 * n as f64 / packets.max(1) as f64;
        let copies = left_out.saturating_sub(self.outer + self.late + self.elsewhere);
        let mut text = Vec::new();
        if copies > 0 {
            text.push(format!(
                "{copies} of {packets} packets ({:.0} %) were captured twice within 5 ms, at a mirror port or on both \
                 sides of a router: the copies are left out",
                share(copies)
            ));
        }
        if self.late > 0 {
            text.push(format!(
                "{} of {packets} packets ({:.0} %) were captured twice up to {:.0} ms apart, at two points of their \
                 path: the later ones are left out; to be sure, capture at one point",
                self.late,
                share(self.late),
                (self.apart.longest as f64 / 1e6).ceil()
            ));
        }
        if self.elsewhere > 0 {
            text.push(format!(
                "{} of {packets} packets ({:.0} %) were captured on a second interface or in a second file, too, \
                 or belong to flows that were: only those of the first are used",
                self.elsewhere,
                share(self.elsewhere)
            ));
        }
        if self.outer > 0 {
            text.push(format!(
                "{} of {packets} packets ({:.0} %) were captured on both sides of an address translator (NAT): only \
                 those of its inner side are used; to be sure, capture on the inner interface alone",
                self.outer,
                share(self.outer)
            ));
        }
        let mut warnings = Vec::new();
        if !text.is_empty() {
            warnings.push(Warning::warning(Code::CapturedTwice, text.join("; ")));
        }
        if let Some(again) = self.apart.came_again().filter(|_| !self.looks_ahead()) {
            warnings.push(Warning::warning(
                Code::RecurringPackets,
                format!(
                    "{:.0} % of the TCP packets with data and without an IP identification come again within a second: \
                     the path loses many, or they were captured at two points; all are used",
                    100.0 * again
                ),
            ));
        }
        warnings
    }
}

/// Whether a packet is examined: one in [`SAMPLED`]. Equal ones are as well.
#[inline]
fn is_sampled(p: &Packet) -> bool {
    // TCP without a checksum has its numbers. An identification comes without the checksum, which the sender's card may complete.
    let value = match p.mark >> 48 {
        0 if p.mark == 0 => match &p.transport {
            Transport::Tcp(h) => u64::from(h.seq) << 32 | u64::from(h.payload),
            _ => 0,
        },
        0 => p.mark,
        _ => p.mark >> 32 << 32 | u64::from(p.ip_len),
    };
    // Only the highest bits of the product depend on all of the value.
    value != 0 && value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SAMPLED.ilog2()) == 0
}

/// Whether a fingerprint was kept within the last milliseconds. It is then removed.
fn find(table: &mut [[(u64, i64); DEEP]], print: u64, time: i64) -> bool {
    let bucket = &mut table[(print >> 32) as usize % BUCKETS];
    let same = |entry: &&mut (u64, i64)| entry.0 == print && entry.1.abs_diff(time) <= WITHIN;
    match bucket.iter_mut().find(same) {
        Some(entry) => {
            *entry = NONE;
            true
        }
        None => false,
    }
}

/// Keeps a fingerprint in the place of the oldest of its bucket.
fn keep(table: &mut [[(u64, i64); DEEP]], print: u64, time: i64) {
    let bucket = &mut table[(print >> 32) as usize % BUCKETS];
    if let Some(oldest) = bucket.iter_mut().min_by_key(|entry| entry.1) {
        *oldest = (print, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One packet in 16 is examined, whether an identification tells it, a checksum, or both.
    #[test]
    fn one_packet_in_sixteen_is_sampled() {
        let tcp = Transport::Tcp(Default::default());
        for (transport, shift) in [(Transport::Other(47), 48), (tcp, 0), (tcp, 48)] {
            let packet = |n: u64| Packet {
                mark: n << shift,
                transport,
                ..Packet::default()
            };
            let sampled = (1..1 << 16).filter(|n| is_sampled(&packet(*n))).count();
            assert!(sampled.abs_diff(1 << 12) < 1 << 8, "{shift}: {sampled}");
        }
    }
}
