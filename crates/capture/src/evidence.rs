//! What makes packets copies of each other, and how many copies show that the capture system makes them.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::identified::Told;
use crate::{Packet, Tcp, Transport};

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

/// Whether anything tells the packet from others with the same header. Without a checksum, as in synthetic captures and
/// where a tool cleared it, TCP has its numbers.
pub(crate) fn is_marked(p: &Packet) -> bool {
    p.mark != 0 || matches!(p.transport, Transport::Tcp(_))
}

/// Fingerprint of all that a router leaves as it is. Never 0.
///
/// If an identification tells the packet, the checksum of TCP or UDP does not count: a capture at the sender may hold the
/// partial one that its card completes.
pub(crate) fn print(p: &Packet, told: Told) -> u64 {
    let checksum = matches!(p.transport, Transport::Tcp(_) | Transport::Udp { .. });
    let mark = match told {
        Told::Surely if checksum => p.mark >> 32 << 32,
        _ => p.mark,
    };
    let header = match &p.transport {
        Transport::Tcp(h) => [
            u64::from(h.src_port) << 16 | u64::from(h.dst_port) | u64::from(h.flags) << 32,
            u64::from(h.seq) << 32 | u64::from(h.ack),
            u64::from(h.window) << 32 | u64::from(h.payload) | options(p, h, told),
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
    FixedState::with_seed(0).hash_one((p.src, p.dst, p.ip_len, mark, header)) | 1
}

/// What the checksum would say of the options that change from packet to packet, in the bits above the window. 0 with a
/// checksum.
fn options(p: &Packet, h: &Tcp, told: Told) -> u64 {
    // An identification tells the packet, and only one of its copies may have a checksum.
    if matches!(told, Told::Surely) || p.mark as u32 != 0 {
        return 0;
    }
    let changing = (h.options.timestamps, h.options.sack);
    FixedState::with_seed(5).hash_one(changing) >> 48 << 48
}
