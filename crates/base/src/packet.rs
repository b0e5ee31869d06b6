//! The packet as the world moves it: a small value, no payload.

/// Which flow a packet belongs to; the world maps it to a route and two endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

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

/// Up to three selective acknowledgement blocks (RFC 2018), each as (start, end) counted from the
/// segment's `ack`, so that they fit 32 bits. A block below `ack` cannot be said.
///
/// How many there are stands before them, so that who finds none does not look where they would be, which is
/// another cache line of a packet in a pool.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct SackBlocks {
    count: u8,
    /// Start and end, low half first: two bytes are the alignment that the place before them allows.
    blocks: [[[u16; 2]; 2]; 3],
}

impl SackBlocks {
    /// Adds a block if there is room; `start` and `end` count from `ack`, `start < end`.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        debug_assert!(start < end, "an empty SACK block");
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(free) => {
                *free = [start, end].map(|n| [n as u16, (n >> 16) as u16]);
                self.count += 1;
                true
            }
            None => false,
        }
    }
    /// The blocks in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let blocks = self.blocks.iter().take(usize::from(self.count));
        blocks.map(|b| {
            let [start, end] = b.map(|[low, high]| u32::from(low) | u32::from(high) << 16);
            (start, end)
        })
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Leaves none.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SackBlocks {}

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
    /// A time in microseconds, which wraps after 71 minutes. For transports that measure one-way delays: with
    /// payload, when the segment was sent; without, how long the segment that it answers was under way. For
    /// receivers that tune their buffer: without payload, when it was sent; with, the stamp that last came.
    /// Else zero.
    pub stamp: u32,
    /// TCP flags; none for a datagram.
    pub flags: Flags,
    /// ECN codepoint of the IP header (RFC 3168): 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl Segment {
    /// Sequence space used: payload plus one for SYN and one for FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }
}

/// A packet in the world: 64 bytes, what few packets have last. Payload is a count, real bytes stay with the port
/// they came in through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// The flow, which gives the route.
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

impl Packet {
    /// Where selective acknowledgements begin, which few packets have.
    pub const SACKS: usize = std::mem::offset_of!(Packet, seg)
        + std::mem::offset_of!(Segment, sack)
        + std::mem::offset_of!(SackBlocks, blocks);
}

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
    fn a_packet_is_one_cache_line() {
        assert_eq!((size_of::<Packet>(), Packet::SACKS), (64, 40));
    }

    #[test]
    fn a_fourth_sack_block_is_refused() {
        let mut s = SackBlocks::default();
        assert!(s.is_empty());
        assert!(s.push(10, 20) && s.push(30, 40) && s.push(50, 60));
        assert!(!s.push(70, 80));
        assert_eq!(s.iter().collect::<Vec<_>>(), [(10, 20), (30, 40), (50, 60)]);
    }
}
