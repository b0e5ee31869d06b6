//! What self-configuration takes in.

use swell_base::Dur;

/// A flow record as the model needs it. Hosts are opaque: any numbers that tell them apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The host that sent the packets.
    pub source: u128,
    /// The host they went to.
    pub destination: u128,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Bytes of headers in every packet that `bytes` counts: 40 for TCP over IPv4, 60 over IPv6, 28 and
    /// 48 for UDP, 14 more where the link layer is counted, 0 where `bytes` is payload alone.
    pub header: u32,
    /// From source to destination.
    pub forward: Direction,
    /// From destination to source, where the record is of both directions (RFC 5103).
    pub reverse: Option<Direction>,
    /// Closed because the active time-out had passed: there should be a record that goes on.
    pub continues: bool,
    /// Packets passed per packet counted, if the counters still need multiplying by it: 1 if not sampled, and
    /// for whatever is not above.
    pub sampling: f64,
}

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Packets, as counted.
    pub packets: u64,
    /// Bytes, as counted.
    pub bytes: u64,
    /// Union of their TCP flags, where known.
    pub flags: Option<u8>,
    /// Time of the first packet, nanoseconds since the Unix epoch (or any one instant).
    pub first: i64,
    /// Time of the last packet; not before `first`.
    pub last: i64,
}

impl Record {
    /// The record with sampling multiplied out.
    pub(super) fn scaled(&self) -> Record {
        let scale = |side: &Direction| Direction {
            packets: times(side.packets, self.sampling),
            bytes: times(side.bytes, self.sampling),
            ..*side
        };
        Record {
            forward: scale(&self.forward),
            reverse: self.reverse.as_ref().map(scale),
            sampling: 1.0,
            ..*self
        }
    }
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
/// TCP flags (RFC 9293 section 3.1).
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const PSH: u8 = 8;
pub(super) const ACK: u8 = 16;

impl Direction {
    /// Bytes without headers, at least zero.
    pub(super) fn payload(&self, header: u32) -> u64 {
        self.bytes
            .saturating_sub(self.packets.saturating_mul(u64::from(header)))
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags.is_some_and(|f| f & flag != 0)
    }

    /// Adds a later or earlier piece of the same direction.
    pub(super) fn join(&mut self, other: &Direction) {
        if self.packets == 0 {
            *self = *other;
            return;
        }
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.flags = match (self.flags, other.flags) {
            (Some(a), Some(b)) => Some(a | b),
            (a, b) => a.or(b),
        };
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// A count with sampling undone on average.
pub(super) fn times(count: u64, sampling: f64) -> u64 {
    if sampling == 1.0 {
        return count;
    }
    (count as f64 * sampling + 0.5) as u64
}

/// Nanoseconds of a span, as times are counted.
pub(super) fn nanos(span: Dur) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// The span from `from` to `to`, zero where it is negative, in whole microseconds.
pub(super) fn micros_between(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0) / 1_000
}
