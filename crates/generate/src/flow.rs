//! Records of transfers, kept until they are fetched.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All data arrived.
    Done,
    /// The run ended first.
    Unfinished,
    /// It was reset or refused, or made no progress for too long.
    Failed,
}

impl Outcome {
    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Unfinished => "unfinished",
            Outcome::Failed => "failed",
        }
    }
}

/// A transfer or a datagram source, as its client saw it. Times are nanoseconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// It consists of datagrams, not of a TCP connection.
    pub datagrams: bool,
    /// It used a connection that was kept by an earlier transfer.
    pub reused: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of the session within its family.
    pub session: u32,
    /// When it was due.
    pub due: u64,
    /// When it began.
    pub begun: u64,
    /// When the connection was established; 0 if never.
    pub connected: u64,
    /// When the first byte of the answer arrived; 0 if never.
    pub first: u64,
    /// When it ended.
    pub end: u64,
    /// Bytes that the kernel accepted for sending.
    pub up: u64,
    /// Bytes received.
    pub down: u64,
    /// Smallest round-trip time measured by the client's kernel, in microseconds; `u32::MAX` if none.
    pub rtt: u32,
    /// Segments that the client retransmitted. For a datagram source: datagrams that were answered.
    pub again: u32,
    /// Source address; unspecified if the kernel chose it.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            datagrams: false,
            reused: false,
            outcome: Outcome::Failed,
            session: 0,
            due: 0,
            begun: 0,
            connected: 0,
            first: 0,
            end: 0,
            up: 0,
            down: 0,
            rtt: u32::MAX,
            again: 0,
            source: Ipv6Addr::UNSPECIFIED.into(),
            destination: Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

/// Bytes of an encoded flow.
pub const ROW: usize = 104;

impl Flow {
    /// Encodes a flow for transfer to the controller: little-endian, in the order of the fields, IPv4 addresses
    /// mapped to IPv6.
    pub fn encode(&self) -> [u8; ROW] {
        let mut out = [0; ROW];
        out[0] = u8::from(self.datagrams);
        out[1] = u8::from(self.reused);
        out[2] = self.outcome as u8;
        out[4..8].copy_from_slice(&self.session.to_le_bytes());
        let longs = [
            self.due,
            self.begun,
            self.connected,
            self.first,
            self.end,
            self.up,
            self.down,
        ];
        for (at, value) in (8..).step_by(8).zip(longs) {
            out[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        out[64..68].copy_from_slice(&self.rtt.to_le_bytes());
        out[68..72].copy_from_slice(&self.again.to_le_bytes());
        out[72..88].copy_from_slice(&octets(self.source));
        out[88..104].copy_from_slice(&octets(self.destination));
        out
    }

    /// Decodes a flow; `None` if its outcome is invalid.
    pub fn decode(bytes: &[u8; ROW]) -> Option<Flow> {
        let short = |at: usize| {
            let mut b = [0; 4];
            b.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(b)
        };
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << 32;
        let address = |at: usize| {
            let mut b = [0; 16];
            b.copy_from_slice(&bytes[at..at + 16]);
            IpAddr::from(Ipv6Addr::from(b)).to_canonical()
        };
        Some(Flow {
            datagrams: bytes[0] != 0,
            reused: bytes[1] != 0,
            outcome: match bytes[2] {
                0 => Outcome::Done,
                1 => Outcome::Unfinished,
                2 => Outcome::Failed,
                _ => return None,
            },
            session: short(4),
            due: long(8),
            begun: long(16),
            connected: long(24),
            first: long(32),
            end: long(40),
            up: long(48),
            down: long(56),
            rtt: short(64),
            again: short(68),
            source: address(72),
            destination: address(88),
        })
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    }
}

/// Flows that wait to be fetched. If there are too many, the oldest are discarded and count as lost.
#[derive(Debug)]
pub struct FlowLog {
    rows: VecDeque<[u8; ROW]>,
    /// Number of the oldest row that is still present.
    first: u64,
    room: usize,
}

impl FlowLog {
    /// A log with capacity for `room` flows.
    pub fn new(room: usize) -> FlowLog {
        FlowLog {
            rows: VecDeque::new(),
            first: 0,
            room: room.max(1),
        }
    }

    /// Appends flows.
    pub fn add(&mut self, flows: impl Iterator<Item = Flow>) {
        for flow in flows {
            if self.rows.len() == self.room {
                self.rows.pop_front();
                self.first += 1;
            }
            self.rows.push_back(flow.encode());
        }
    }

    /// At most `most` rows from number `from` on, and the number of the first of them. The rows before `from` count
    /// as received and are removed. If the returned number exceeds `from`, the rows between them were lost.
    pub fn fetch(&mut self, from: u64, most: usize) -> (u64, Vec<u8>) {
        let end = self.first + self.rows.len() as u64;
        let from = from.min(end);
        while self.first < from {
            self.rows.pop_front();
            self.first += 1;
        }
        if self.rows.capacity() > 4 * self.rows.len() + 4096 {
            self.rows.shrink_to(2 * self.rows.len());
        }
        let mut rows = Vec::with_capacity(most.min(self.rows.len()) * ROW);
        for row in self.rows.iter().take(most) {
            rows.extend_from_slice(row);
        }
        (self.first, rows)
    }

    /// Number of the next row to be added, which is the number of rows ever added.
    pub fn total(&self) -> u64 {
        self.first + self.rows.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(n: u64) -> Flow {
        Flow {
            datagrams: n.is_multiple_of(2),
            reused: n.is_multiple_of(3),
            outcome: [Outcome::Done, Outcome::Unfinished, Outcome::Failed][n as usize % 3],
            session: n as u32,
            due: n,
            begun: n + 1,
            connected: n + 2,
            first: n + 3,
            end: u64::MAX - n,
            up: n << 40,
            down: n * 7,
            rtt: u32::MAX,
            again: 9,
            source: "10.0.0.1".parse().unwrap(),
            destination: "fd01::2".parse().unwrap(),
        }
    }

    #[test]
    fn flows_come_home_as_they_were() {
        for n in 0..12 {
            assert_eq!(Flow::decode(&flow(n).encode()), Some(flow(n)));
        }
        let mut wrong = flow(1).encode();
        wrong[2] = 3;
        assert_eq!(Flow::decode(&wrong), None);
    }

    #[test]
    fn what_was_fetched_is_forgotten_and_what_was_lost_is_known() {
        let mut log = FlowLog::new(10);
        log.add((0..6).map(flow));
        let (first, rows) = log.fetch(0, 4);
        assert_eq!((first, rows.len()), (0, 4 * ROW));
        // Not acknowledged: the same rows are returned again.
        assert_eq!(log.fetch(0, 4), (first, rows));
        assert_eq!(log.fetch(4, 100).0, 4);
        log.add((6..20).map(flow));
        let (next, rest) = log.fetch(6, 100);
        assert_eq!((next, rest.len()), (10, 10 * ROW), "four were lost");
        assert_eq!(rest[..ROW], flow(10).encode());
        assert_eq!(log.fetch(u64::MAX, 9), (20, Vec::new()));
        assert_eq!(log.total(), 20);
    }
}
