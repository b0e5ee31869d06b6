//! Detects captures that a file holds twice.
//!
//! Files are joined by hand, and sometimes with themselves. A packet with the same stamp, addresses and
//! header fields as one read long before is the same packet. It passed the tap once.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use swell_capture::{Packet, Transport};

use crate::index::Index;

/// Number of packets at the start that identify a capture.
const KNOWN: u32 = 4096;
/// A packet older than the latest by more than this is checked, nanoseconds. Merged captures from several
/// interfaces are closer in time.
const STEP: i64 = 1_000_000_000;
/// Number of consecutive known packets that show that a capture starts again.
const AGREE: u32 = 8;

/// Finds packets that were read before.
#[derive(Debug)]
pub(crate) struct Repeats {
    known: Index<u64>,
    kept: u32,
    /// The latest stamp.
    latest: i64,
    row: u32,
    /// All packets up to this stamp have been read.
    until: Option<i64>,
    /// Number of repeated packets.
    pub(crate) packets: u64,
}

impl Repeats {
    pub(crate) fn new() -> Repeats {
        Repeats {
            known: Index::new(),
            kept: 0,
            latest: i64::MIN,
            row: 0,
            until: None,
            packets: 0,
        }
    }

    /// Whether the packet was read before.
    #[inline]
    pub(crate) fn again(&mut self, p: &Packet) -> bool {
        if p.time > self.latest {
            self.latest = p.time;
            (self.row, self.until) = (0, None);
        } else if self.until.is_some() || self.latest.saturating_sub(p.time) > STEP {
            return self.old(p);
        }
        if self.kept < KNOWN {
            self.kept += 1;
            self.known.insert(print(p), 0);
        }
        false
    }

    #[cold]
    fn old(&mut self, p: &Packet) -> bool {
        let again = self.until.is_some() || self.known.get(&print(p)).is_some();
        self.row = if again { self.row + 1 } else { 0 };
        if self.row >= AGREE {
            self.until = Some(self.latest);
        }
        self.packets += u64::from(again);
        again
    }
}

/// Fingerprint that distinguishes a packet from all others.
fn print(p: &Packet) -> u64 {
    let numbers = match &p.transport {
        Transport::Tcp(h) => [
            u32::from(h.src_port) << 16 | u32::from(h.dst_port),
            h.seq,
            h.ack,
            h.payload,
        ],
        &Transport::Udp {
            src_port,
            dst_port,
            payload,
        } => [
            u32::from(src_port) << 16 | u32::from(dst_port),
            payload,
            0,
            1,
        ],
        _ => [0, 0, 0, 2],
    };
    FixedState::with_seed(0).hash_one((p.time, p.src, p.dst, p.ip_len, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(ms: i64, seq: u32) -> Packet {
        let header = swell_capture::Tcp {
            seq,
            ..swell_capture::Tcp::default()
        };
        Packet {
            time: ms * MS,
            ip_len: 1000,
            transport: Transport::Tcp(header),
            ..Packet::default()
        }
    }

    fn again(stamps: impl IntoIterator<Item = (i64, u32)>) -> (Vec<bool>, u64) {
        let mut repeats = Repeats::new();
        let told = stamps
            .into_iter()
            .map(|(ms, seq)| repeats.again(&packet(ms, seq)))
            .collect();
        (told, repeats.packets)
    }

    #[test]
    fn a_capture_joined_with_itself_is_read_once() {
        // Longer than the remembered part.
        let n = 3 * i64::from(KNOWN);
        let once = || (0..n).map(|i| (i, i as u32));
        let more = (n..n + 100).map(|i| (i, i as u32));
        let (told, packets) = again(once().chain(once()).chain(once()).chain(more));
        let expected = |i: i64| (n..3 * n).contains(&i);
        assert!((0..).zip(&told).all(|(i, &t)| t == expected(i)));
        assert_eq!(packets, 2 * n as u64);
    }

    #[test]
    fn what_is_only_late_or_alike_is_no_copy() {
        // Two interfaces, one of which delivers its packets in late blocks.
        let late = (0..400i64).flat_map(|block| {
            let at = 100 * block;
            (at..at + 100)
                .chain(at - 900..at - 800)
                .map(|ms| (ms, ms.unsigned_abs() as u32))
        });
        assert_eq!(again(late).1, 0);
        // Files in the wrong order: different stamps.
        let swapped = (5_000..9_000).chain(0..4_000).map(|ms| (ms, ms as u32));
        assert_eq!(again(swapped).1, 0);
        // The same stamps, but different packets.
        let other = (0..4_000)
            .map(|ms| (ms, ms as u32))
            .chain((0..4_000).map(|ms| (ms, 100_000 + ms as u32)));
        assert_eq!(again(other).1, 0);
    }
}
