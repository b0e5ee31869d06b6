//! Input of the self-configuration.

use swell_base::Dur;

/// A flow record as the model needs it. Hosts are opaque: any numbers that distinguish them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The host that sent the packets.
    pub source: u128,
    /// The host that received them.
    pub destination: u128,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Bytes of headers per packet that `bytes` includes: 40 for TCP over IPv4, 60 over IPv6, 28 and 48
    /// for UDP. Add 14 if link-layer bytes are counted; 0 if `bytes` is payload alone.
    pub header: u32,
    /// From source to destination.
    pub forward: Uniflow,
    /// From destination to source, if the record covers both directions (RFC 5103).
    pub reverse: Option<Uniflow>,
    /// Whether it was closed by the active time-out, so that another record continues it.
    pub continues: bool,
    /// Packets passed per packet counted, if the counters still need multiplying by it. 1 if not sampled;
    /// values that are not above 1 count as 1.
    pub sampling: f64,
}

/// The packets of one direction of a flow (RFC 5103).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uniflow {
    /// Packets, as counted.
    pub packets: u64,
    /// Bytes, as counted.
    pub bytes: u64,
    /// Union of their TCP flags, if known.
    pub flags: Option<u8>,
    /// Time of the first packet, nanoseconds since the Unix epoch (or any fixed instant).
    pub first: i64,
    /// Time of the last packet; not before `first`.
    pub last: i64,
}

impl Record {
    /// The record with counters multiplied by the sampling interval.
    pub(super) fn scaled(&self) -> Record {
        let scale = |side: &Uniflow| Uniflow {
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

impl Uniflow {
    /// Bytes without headers, at least zero.
    pub(super) fn payload(&self, header: u32) -> u64 {
        self.bytes
            .saturating_sub(self.packets.saturating_mul(u64::from(header)))
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags.is_some_and(|f| f & flag != 0)
    }

    /// Adds a later or earlier piece of the same direction.
    pub(super) fn join(&mut self, other: &Uniflow) {
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

/// A count multiplied by the sampling interval, rounded.
pub(super) fn times(count: u64, sampling: f64) -> u64 {
    if sampling == 1.0 {
        return count;
    }
    (count as f64 * sampling + 0.5) as u64
}

/// A span in nanoseconds, as times are counted.
pub(super) fn nanos(span: Dur) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// The span from `from` to `to` in whole microseconds; zero if negative.
pub(super) fn micros_between(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0) / 1_000
}

/// Ports that clients of trusted hosts' services bind, such as those of NFS (`bindresvport(3)`).
const BOUND: std::ops::Range<u16> = 600..1_024;
/// The first port of the dynamic ranges (Linux, `ip(7)`).
pub(super) const DYNAMIC: u16 = 32_768;

/// Which of two ports is the server's: the lower one. `None` if they are equal, or if the lower one may be a client's
/// that talks to a registered port.
pub(super) fn server_by_port(ports: [u16; 2]) -> Option<usize> {
    let low = usize::from(ports[1] < ports[0]);
    let registered = (1_024..DYNAMIC).contains(&ports[1 - low]);
    let is_client = BOUND.contains(&ports[low]) && registered;
    (ports[0] != ports[1] && !is_client).then_some(low)
}
