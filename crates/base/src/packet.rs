//! Packets as small values without payload bytes.

use std::ops::{Deref, DerefMut};

use crate::{Dur, End, Time};

/// The flow of a packet; the world maps it to a route and two endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Foreground or background traffic, which meters count separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tag {
    /// The application under study.
    #[default]
    Foreground,
    /// All other traffic on the link.
    Background,
}

/// TCP flags, as in the header (RFC 9293 section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// The acknowledgement field is valid.
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all of `other`'s flags are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// The union of both sets of flags.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The SACK blocks of a segment (RFC 2018), at most three. Each is (start, end), relative to the segment's `ack`, so
/// that both fit in 32 bits. A first block that starts below `ack`, or lies within the second block, reports
/// duplicate data (RFC 2883).
///
/// The number of blocks is stored in the segment ([`Segment::sacks`]). Code that finds zero there does not have to
/// read the blocks, which a [pool of packets](Head) stores in other memory. Blocks beyond that number are stale and
/// have no meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks([[i32; 2]; 3]);

impl SackBlocks {
    /// Appends a block after the first `count` blocks if there is space, and increments `count`. Returns whether it
    /// did. `start` and `end` are relative to `ack`, and `start < end`.
    pub fn push(&mut self, count: &mut u8, start: i32, end: i32) -> bool {
        debug_assert!(start < end, "an empty SACK block");
        match self.0.get_mut(usize::from(*count)) {
            Some(free) => {
                *free = [start, end];
                *count += 1;
                true
            }
            None => false,
        }
    }
    /// The first `count` blocks, in the order in which they were added.
    pub fn first(&self, count: u8) -> impl Iterator<Item = (i32, i32)> + '_ {
        let blocks = self.0.iter().take(usize::from(count));
        blocks.map(|&[start, end]| (start, end))
    }
}

/// The transport header of a packet. Sequence numbers are 64-bit offsets that never wrap: the SYN is 0, the first
/// byte of data 1. For a datagram, `seq` is its number and `len` its payload size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First sequence number of the payload, or of the SYN or FIN if there is no payload.
    pub seq: u64,
    /// Next sequence number expected from the other side, if `flags` has ACK.
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Receive window in bytes, already scaled.
    pub window: u32,
    /// TCP flags; none for a datagram.
    pub flags: Flags,
    /// ECN codepoint of the IP header (RFC 3168): 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Number of SACK blocks. [The blocks](SackBlocks) are stored separately.
    pub sacks: u8,
    /// TCP timestamps, or a transport's one-way delay measurement.
    pub stamps: Stamps,
}

/// The timestamps of a segment in five bytes: two numbers of 20 bits. For TCP they are both values of the option of
/// RFC 7323, in milliseconds (modulo about 17 minutes). Transports that measure one-way delays store the time of
/// sending and the delay of the segment that is acknowledged, both in [ticks](Stamps::TICK) (modulo 16.8 s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps([u8; 5]);

impl Stamps {
    /// Timestamps are stored modulo this many units.
    pub const RANGE: u32 = 1 << 20;

    /// Unit of one-way delay measurement.
    pub const TICK: Dur = Dur::from_micros(16);

    /// TSval and TSecr. Only the lower 20 bits are stored.
    #[inline]
    pub fn new(value: u32, echo: u32) -> Stamps {
        let range = u64::from(Stamps::RANGE - 1);
        let both = u64::from(value) & range | (u64::from(echo) & range) << 20;
        let [a, b, c, d, e, ..] = both.to_le_bytes();
        Stamps([a, b, c, d, e])
    }

    #[inline]
    fn both(self) -> u64 {
        let [a, b, c, d, e] = self.0;
        u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
    }

    /// TSval: when the segment was sent.
    #[inline]
    pub fn value(self) -> u32 {
        (self.both() & u64::from(Stamps::RANGE - 1)) as u32
    }

    /// TSecr: the timestamp, or the one-way delay, of the segment that is acknowledged.
    #[inline]
    pub fn echo(self) -> u32 {
        (self.both() >> 20) as u32 // 20 bits
    }

    /// Stores an instant. For datagrams, whose sender is known to the network only.
    #[inline]
    pub fn instant(at: Time) -> Stamps {
        let [a, b, c, d, e, ..] = at.as_nanos().to_le_bytes();
        Stamps([a, b, c, d, e])
    }

    /// Time from a stored instant to `now`, modulo 18 minutes.
    #[inline]
    pub fn age(self, now: Time) -> Dur {
        Dur::from_nanos(now.as_nanos().wrapping_sub(self.both()) & ((1 << 40) - 1))
    }

    /// Difference between two timestamps in their unit; negative if `value` is before `earlier`.
    #[inline]
    pub fn since(value: u32, earlier: u32) -> i32 {
        (value.wrapping_sub(earlier) << 12) as i32 >> 12
    }
}

impl Segment {
    /// Sequence space used: the payload plus one each for SYN and FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }
}

/// A packet without its SACK blocks, which few packets have. This is the part that a pool stores in one place. The
/// payload is only a length; real bytes stay with the port through which they entered.
///
/// A copy that must keep the blocks is a [`Packet`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// Reserved for the network, which stores the packet's destination here. Senders leave it zero.
    pub note: u64,
    /// The flow.
    pub flow: FlowId,
    /// Network-layer size in bytes: IP header, transport header and payload.
    pub size: u16,
    /// The end of the flow that sent it.
    pub from: End,
    /// Foreground or background.
    pub tag: Tag,
    /// Transport fields.
    pub seg: Segment,
}

/// A whole packet, for code outside a pool. It dereferences to its [`Head`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// The packet without its SACK blocks.
    pub head: Head,
    /// The SACK blocks; `head.seg.sacks` says how many are valid.
    pub sacks: SackBlocks,
}

impl Packet {
    /// The SACK blocks, relative to `ack`.
    pub fn sacks(&self) -> impl Iterator<Item = (i32, i32)> + '_ {
        self.sacks.first(self.head.seg.sacks)
    }
}

impl From<Head> for Packet {
    /// A packet without SACK blocks.
    fn from(mut head: Head) -> Packet {
        head.seg.sacks = 0;
        Packet {
            head,
            sacks: SackBlocks::default(),
        }
    }
}

impl Deref for Packet {
    type Target = Head;
    #[inline]
    fn deref(&self) -> &Head {
        &self.head
    }
}

impl DerefMut for Packet {
    #[inline]
    fn deref_mut(&mut self) -> &mut Head {
        &mut self.head
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Packet) -> bool {
        self.head == other.head && self.sacks().eq(other.sacks())
    }
}

impl Eq for Packet {}

/// Header bytes of a datagram over IPv4 (RFC 791: 20) and IPv6 (RFC 8200: 40), including UDP's own (RFC 768: 8).
pub const UDP_HEADERS: [u32; 2] = [28, 48];

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Active queue management chose it.
    Aqm,
    /// The link lost it (random loss).
    Loss,
}

impl DropReason {
    /// All reasons, in numerical order.
    pub const ALL: [DropReason; 3] = [DropReason::QueueFull, DropReason::Aqm, DropReason::Loss];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Aqm => "aqm",
            DropReason::Loss => "loss",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_without_sacks_fits_a_cache_line() {
        assert_eq!((size_of::<Packet>(), size_of::<Head>()), (72, 48));
    }

    #[test]
    fn two_time_stamps_fit_and_are_compared_across_the_wrap() {
        for (value, echo) in [(0, 0), (1, 0xf_ffff), (0xa_5a5a, 0x5_a5a5), (0xf_ffff, 1)] {
            let stamps = Stamps::new(value, echo);
            assert_eq!((stamps.value(), stamps.echo()), (value, echo));
        }
        assert_eq!(Stamps::new(Stamps::RANGE + 7, 0).value(), 7);
        assert_eq!(Stamps::since(5, Stamps::RANGE - 2), 7);
        assert_eq!(Stamps::since(Stamps::RANGE - 2, 5), -7);
    }

    #[test]
    fn an_instant_is_stored_to_the_nanosecond() {
        for sent in [0, 1, 5_000_000_123, (1 << 40) - 1, 3 << 40] {
            let (at, delay) = (Time::from_nanos(sent), Dur::from_nanos(700_000_000_001));
            assert_eq!(Stamps::instant(at).age(at + delay), delay, "{sent}");
        }
    }

    #[test]
    fn a_fourth_sack_block_is_refused() {
        let (mut sacks, mut n) = (SackBlocks::default(), 0);
        assert!(sacks.push(&mut n, -10, 20) && sacks.push(&mut n, 30, 40));
        assert!(sacks.push(&mut n, 50, i32::MAX));
        assert!(!sacks.push(&mut n, 70, 80));
        let all = [(-10, 20), (30, 40), (50, i32::MAX)];
        assert_eq!((n, sacks.first(n).collect::<Vec<_>>()), (3, all.to_vec()));
    }

    #[test]
    fn packets_are_equal_up_to_the_blocks_they_count() {
        let mut sacked = Packet::default();
        sacked.sacks.push(&mut sacked.head.seg.sacks, 1, 2);
        let mut other = sacked;
        assert_eq!(sacked, other);
        other.sacks.push(&mut 0, 1, 3);
        assert_ne!(sacked, other, "another block");
        // Blocks beyond the count have no meaning.
        assert_eq!(Packet::from(other.head), Packet::default());
        other.head.seg.sacks = 0;
        assert_eq!(other, Packet::default());
    }
}
