//! The packet as the world moves it: a small value, no payload.

use std::ops::{Deref, DerefMut};

/// Which flow a packet belongs to; the world maps it to a route and two endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A direction across a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Left to right.
    Up,
    /// Right to left.
    Down,
}

impl Direction {
    /// Both, in the order of their numbers.
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];
}

/// Whose traffic a packet is: what meters keep apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tag {
    /// The application under study.
    #[default]
    Foreground,
    /// Everything else on the link.
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
    /// The acknowledgement field counts.
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all of `other`'s flags are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Both sets together.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// Room for the selective acknowledgement blocks of a segment (RFC 2018), three at most, each as (start, end)
/// counted from the segment's `ack`, so that they fit 32 bits. A first block that starts below `ack`, or lies within
/// the second, names data that arrived twice (RFC 2883).
///
/// How many there are stands in the segment ([`Segment::sacks`]), beside which the blocks lie or travel: who finds
/// none there does not look here, which in a [pool of packets](Head) is other memory. What lies beyond that
/// many is left from before and means nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks([[i32; 2]; 3]);

impl SackBlocks {
    /// Adds a block behind the first `count` if there is room, and counts it; `start` and `end` count from `ack`,
    /// `start < end`.
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
    /// The first `count` blocks in the order they were added.
    pub fn first(&self, count: u8) -> impl Iterator<Item = (i32, i32)> + '_ {
        let blocks = self.0.iter().take(usize::from(count));
        blocks.map(|&[start, end]| (start, end))
    }
}

/// The transport part of a packet. Sequence numbers are 64-bit offsets that never wrap: the SYN is
/// 0, the first byte of data 1. For a datagram `seq` is its number and `len` its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First sequence number of the payload (of the SYN or FIN where there is none).
    pub seq: u64,
    /// Next sequence number expected from the other side, where `flags` has ACK.
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Receive window in bytes, already scaled.
    pub window: u32,
    /// TCP flags; none for a datagram.
    pub flags: Flags,
    /// ECN codepoint of the IP header (RFC 3168): 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// How many selective acknowledgements it has; [they themselves](SackBlocks) are kept beside it.
    pub sacks: u8,
    /// Time stamps, or what a transport measures one-way delays by.
    pub stamps: Stamps,
}

/// The time stamps of a segment in the room that a packet has for them: the two times of the option of RFC 7323, in
/// milliseconds and modulo 2^20, about 17 minutes; or one number of 32 bits where a transport measures one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps([u8; 5]);

impl Stamps {
    /// Times are known modulo this many milliseconds.
    pub const RANGE: u32 = 1 << 20;

    /// TSval and TSecr in milliseconds, of which the lower 20 bits are kept.
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

    /// TSecr: the time stamp of the segment that it answers.
    #[inline]
    pub fn echo(self) -> u32 {
        (self.both() >> 20) as u32 // 20 bits
    }

    /// One number.
    #[inline]
    pub fn one_way(micros: u32) -> Stamps {
        let [a, b, c, d] = micros.to_le_bytes();
        Stamps([a, b, c, d, 0])
    }

    /// With payload, when the segment was sent, in microseconds, which wraps after 71 minutes; without, how long the
    /// segment that it answers was under way.
    #[inline]
    pub fn micros(self) -> u32 {
        self.both() as u32 // the lower half
    }

    /// How much later than `earlier` a time stamp is, in milliseconds; negative where it is earlier.
    #[inline]
    pub fn since(value: u32, earlier: u32) -> i32 {
        (value.wrapping_sub(earlier) << 12) as i32 >> 12
    }
}

impl Segment {
    /// Sequence space used: payload plus one for SYN and one for FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }
}

/// A packet but for its selective acknowledgements, which few have: what is at hand of one that lies in a pool.
/// Payload is a count, real bytes stay with the port they came in through.
///
/// A copy that is kept must have the blocks with it: that is a [`Packet`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// For the network that carries it, which notes here where the packet is bound for. Whoever sends leaves it zero.
    pub note: u64,
    /// The flow.
    pub flow: FlowId,
    /// Network-layer size in bytes: IP header, transport header and payload.
    pub size: u16,
    /// Which way it goes: 0 to the server, 1 to the client.
    pub way: u8,
    /// Whose traffic it is.
    pub tag: Tag,
    /// Transport fields.
    pub seg: Segment,
}

/// A whole packet, for who holds it himself; it reads as its [`Head`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// All but the selective acknowledgements.
    pub head: Head,
    /// As many of them as `head.seg.sacks` says.
    pub sacks: SackBlocks,
}

impl Packet {
    /// Its selective acknowledgements, counted from its `ack`.
    pub fn sacks(&self) -> impl Iterator<Item = (i32, i32)> + '_ {
        self.sacks.first(self.head.seg.sacks)
    }
}

impl From<Head> for Packet {
    /// A packet without selective acknowledgements.
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

/// Headers of a datagram in bytes, over IPv4 (RFC 791: 20) and over IPv6 (RFC 8200: 40), with UDP's own
/// (RFC 768: 8).
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
    /// Every reason, in the order of their numbers.
    pub const ALL: [DropReason; 3] = [DropReason::QueueFull, DropReason::Aqm, DropReason::Loss];

    /// The name used in tables.
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
        assert_eq!(Stamps::one_way(u32::MAX - 3).micros(), u32::MAX - 3);
        assert_eq!(Stamps::since(5, Stamps::RANGE - 2), 7);
        assert_eq!(Stamps::since(Stamps::RANGE - 2, 5), -7);
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
        // What lies beyond the count means nothing.
        assert_eq!(Packet::from(other.head), Packet::default());
        other.head.seg.sacks = 0;
        assert_eq!(other, Packet::default());
    }
}
