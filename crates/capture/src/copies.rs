//! Detects packets that the capture system recorded twice.
//!
//! A mirror port that copies a frame both where it enters and where it leaves a switch, or a capture on two interfaces
//! of a router, records each packet twice within microseconds. A packet is a copy of an earlier one if its addresses,
//! lengths, transport header and [`mark`](Packet::mark) are the same, whatever its time to live and link layer.
//! `editcap -d` of Wireshark compares whole frames instead, which a router changes.
//!
//! A retransmission is no copy. It has another IP identification or checksum (of its timestamps), and comes a round trip
//! later. Only packets that an identification or sequence numbers tell apart are evidence, and the share of copies among
//! them decides: nobody retransmits one packet in ten within milliseconds. Senders do send equal packets in a row where
//! nothing tells them apart: duplicate ACKs, or datagrams without identification whose checksum is left to the card.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use swell_base::{Code, Warning};

use crate::translated::Translated;
use crate::{Packet, Transport};

/// Packets at the beginning of a trace that [`Copies::begin`] examines before any is used.
pub(crate) const OPENING: usize = 4096;
/// Longest time between a packet and its copy, nanoseconds: what a router takes, with a short queue.
pub(crate) const WITHIN: u64 = 5_000_000;
/// Buckets of the table of recent packets, and packets in each: altogether those of five milliseconds at three million
/// packets per second.
pub(crate) const BUCKETS: usize = 1 << 12;
pub(crate) const DEEP: usize = 4;
/// One packet in so many must be a copy for the capture to be one that doubles packets.
pub(crate) const SHARE: u32 = 10;
/// Fewer copies are none.
pub(crate) const LEAST: u32 = 4;
/// While there are none, this many packets …
const LOOK: u32 = 1 << 10;
/// … of so many are examined.
const EVERY: u32 = 1 << 14;

/// An empty place of the table.
const NONE: (u64, i64) = (0, i64::MIN);

/// Finds copies of packets, once it is clear that the capture system makes them.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Whether the capture system doubles packets.
    pub(crate) systematic: bool,
    translated: Translated,
    /// Packets of the outer side of an address translator that were found.
    outer: u64,
    /// Fingerprints of recent packets and their times. A fingerprint of 0 is none.
    recent: Vec<[(u64, i64); DEEP]>,
    turn: u32,
    /// Packets examined in this turn that tell, and copies among them.
    seen: u32,
    copies: u32,
}

impl Copies {
    /// Examines the beginning of a trace.
    pub(crate) fn begin<'p>(&mut self, packets: impl Iterator<Item = &'p Packet>) {
        self.start();
        packets.for_each(|p| self.examine(p));
        self.decide();
        self.start();
    }

    /// Whether the packet is a copy of one before.
    #[inline]
    pub(crate) fn is_copy(&mut self, p: &Packet) -> bool {
        if self.systematic || self.translated.systematic {
            return self.leaves_out(p);
        }
        self.turn = (self.turn + 1) % EVERY;
        if self.turn < LOOK {
            self.look(p);
        }
        false
    }

    fn leaves_out(&mut self, p: &Packet) -> bool {
        if self.systematic && self.finds(p) {
            return true;
        }
        let outer = self.translated.systematic && self.translated.is_outer(p);
        self.outer += u64::from(outer);
        outer
    }

    /// Decides whether what was examined shows that the capture system makes copies.
    fn decide(&mut self) {
        self.systematic = self.copies >= LEAST && self.copies * SHARE >= self.seen;
        self.translated.decide();
    }

    fn look(&mut self, p: &Packet) {
        if self.turn == 0 {
            self.start();
        }
        self.examine(p);
        if self.turn == LOOK - 1 {
            self.decide();
        }
    }

    fn start(&mut self) {
        self.recent.clear();
        self.recent.resize(BUCKETS, [NONE; DEEP]);
        (self.seen, self.copies) = (0, 0);
        self.translated.start();
    }

    fn examine(&mut self, p: &Packet) {
        if tells(p) {
            self.seen += 1;
            self.copies += u32::from(self.finds(p));
        }
        self.translated.examine(p);
    }

    /// Whether an equal packet is among the recent ones.
    fn finds(&mut self, p: &Packet) -> bool {
        if p.mark == 0 {
            return false;
        }
        let print = print(p);
        let found = find(&mut self.recent, print, p.time);
        // One that tells may have several copies. Others may be two packets, so each has one.
        if !found || tells(p) {
            keep(&mut self.recent, print, p.time);
        }
        found
    }
}

impl Copies {
    /// A warning about packets left out, of so many in the trace.
    pub(crate) fn warning(&self, packets: u64, left_out: u64) -> Option<Warning> {
        let share = |n: u64| 100.0 * n as f64 / packets.max(1) as f64;
        let copies = left_out.saturating_sub(self.outer);
        let mut text = Vec::new();
        if copies > 0 {
            text.push(format!(
                "{copies} of {packets} packets ({:.0} %) were captured twice within 5 ms, at a mirror port or on both \
                 sides of a router: the copies are left out",
                share(copies)
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
        (!text.is_empty()).then(|| Warning::warning(Code::CapturedTwice, text.join("; ")))
    }
}

/// Whether an equal packet can only be the same one: there is an IPv4 identification, TCP data, or the number of ESP.
fn tells(p: &Packet) -> bool {
    let numbered = match &p.transport {
        Transport::Tcp(h) => h.payload > 0,
        // RFC 4303.
        Transport::Other(50) => true,
        _ => false,
    };
    p.mark >> 48 != 0 || (numbered && p.mark != 0)
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

/// Fingerprint of all that a router leaves as it is. Never 0.
fn print(p: &Packet) -> u64 {
    let header = match &p.transport {
        Transport::Tcp(h) => [
            u64::from(h.src_port) << 16 | u64::from(h.dst_port) | u64::from(h.flags) << 32,
            u64::from(h.seq) << 32 | u64::from(h.ack),
            u64::from(h.window) << 32 | u64::from(h.payload),
        ],
        &Transport::Udp {
            src_port,
            dst_port,
            payload,
        } => [
            u64::from(src_port) << 16 | u64::from(dst_port),
            u64::from(payload),
            1,
        ],
        &Transport::Other(n) | &Transport::Truncated(n) => [u64::from(n), 0, 2],
        Transport::Icmp => [0, 0, 3],
        Transport::Fragment => [0, 0, 4],
    };
    FixedState::with_seed(0).hash_one((p.src, p.dst, p.ip_len, p.mark, header)) | 1
}
