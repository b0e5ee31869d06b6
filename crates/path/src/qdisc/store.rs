//! What the disciplines share: a bound on what waits, a queue that knows when each packet came,
//! the mark of RFC 3168.

use std::collections::VecDeque;

use swell_base::{Head, Packet, QueueLimit, Rate, Time};

use super::Backlog;

/// A limit on what waits, in packets and in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    packets: u64,
    bytes: u64,
}

impl Bound {
    /// At most `limit`. A limit in time is turned into bytes at `rate` (without a rate nothing ever
    /// waits); one in bandwidth-delay products must have been resolved before and counts as
    /// unlimited here.
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> Bound {
        let (packets, bytes) = match limit {
            QueueLimit::Packets(n) => (n, u64::MAX),
            QueueLimit::Bytes(b) => (u64::MAX, b.0),
            QueueLimit::Time(d) => (u64::MAX, rate.map_or(u64::MAX, |r| r.carried_in(d).0)),
            QueueLimit::Bdp(_) => (u64::MAX, u64::MAX),
        };
        Bound { packets, bytes }
    }

    /// Whether `packet` does not fit.
    #[inline]
    pub fn refuses(&self, waiting: Backlog, packet: &Head) -> bool {
        waiting.packets >= self.packets || waiting.bytes + u64::from(packet.size) > self.bytes
    }

    /// Whether more waits than allowed.
    pub fn exceeded(&self, waiting: Backlog) -> bool {
        waiting.packets > self.packets || waiting.bytes > self.bytes
    }
}

/// First in, first out, each packet with the instant it came.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamped {
    packets: VecDeque<(Time, Packet)>,
    bytes: u64,
}

impl Stamped {
    pub fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back((now, packet));
    }
    pub fn pop(&mut self) -> Option<(Time, Packet)> {
        let first = self.packets.pop_front()?;
        self.bytes -= u64::from(first.1.size);
        Some(first)
    }
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}

/// Sets Congestion Experienced (RFC 3168 section 5) if the sender understands it; false where only
/// a drop is understood. The codepoint is the lower two bits, as in the header's octet.
pub(super) fn mark(packet: &mut Head) -> bool {
    const CE: u8 = 0b11;
    let capable = packet.seg.ecn & CE != 0;
    if capable {
        packet.seg.ecn |= CE;
    }
    capable
}
