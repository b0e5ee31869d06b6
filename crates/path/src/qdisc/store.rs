//! Parts shared by the disciplines: a limit, a queue with arrival times, and ECN marking (RFC 3168).

use std::collections::VecDeque;

use swell_base::{Head, Packet, QueueLimit, Rate, Time};

use super::Backlog;

/// A limit on waiting packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    packets: u64,
    bytes: u64,
}

impl Bound {
    /// The limit `limit`. A limit in time is converted to bytes at `rate`; without a rate, packets never wait. A
    /// limit in bandwidth-delay products must have been resolved before, and counts as unlimited here.
    pub fn new(limit: QueueLimit, rate: Option<Rate>) -> Bound {
        let (packets, bytes) = match limit {
            QueueLimit::Packets(n) => (n, u64::MAX),
            QueueLimit::Bytes(b) => (u64::MAX, b.0),
            QueueLimit::Time(d) => (u64::MAX, rate.map_or(u64::MAX, |r| r.carried_in(d).0)),
            QueueLimit::Bdp(_) => (u64::MAX, u64::MAX),
        };
        Bound { packets, bytes }
    }

    /// Whether `packet` does not fit in a queue with this backlog.
    #[inline]
    pub fn refuses(&self, waiting: Backlog, packet: &Head) -> bool {
        waiting.packets >= self.packets || waiting.bytes + u64::from(packet.size) > self.bytes
    }

    /// Whether the backlog exceeds the limit.
    pub fn exceeded(&self, waiting: Backlog) -> bool {
        waiting.packets > self.packets || waiting.bytes > self.bytes
    }
}

/// A FIFO that stores the arrival of each packet.
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

/// Sets Congestion Experienced (RFC 3168 section 5) if the transport is ECN-capable; returns false otherwise. The
/// codepoint is the lower two bits, as in the octet of the IP header.
pub(super) fn mark(packet: &mut Head) -> bool {
    const CE: u8 = 0b11;
    let capable = packet.seg.ecn & CE != 0;
    if capable {
        packet.seg.ecn |= CE;
    }
    capable
}
