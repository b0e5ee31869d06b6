//! What a captured packet says, link layer peeled off.

use crate::dissect::BLANK;
use std::net::IpAddr;

/// Which way a packet passed its interface: the direction bits of `epb_flags` in pcapng, the packet
/// type of Linux cooked captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heading {
    /// The file does not say.
    #[default]
    Unknown,
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// A packet as the rest of the project sees it: when, how large, between whom, and what its
/// transport header says. No payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Capture time, nanoseconds since the Unix epoch. May step backwards: captures do.
    pub time: i64,
    /// Bytes on the wire including the link layer, as the capture says.
    pub wire_len: u32,
    /// Bytes of the frame that were captured.
    pub captured_len: u32,
    /// Network-layer length: header and payload of the IP packet (the outer one of a tunnel), from
    /// its own header; from the frame's length where the header gives none.
    pub ip_len: u32,
    /// Interface number within the file, counted over all sections (0 for pcap).
    pub interface: u32,
    /// Which way it passed that interface.
    pub heading: Heading,
    /// Ethernet addresses of source and destination, as numbers below 2^48; zeros where there are none.
    pub stations: [u64; 2],
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// IP time to live or hop limit.
    pub ttl: u8,
    /// ECN codepoint (RFC 3168).
    pub ecn: u8,
    /// The transport header.
    pub transport: Transport,
}

impl Default for Packet {
    /// All zeros, and the transport of a fragment: room for [`Reader::read_into`](crate::Reader::read_into).
    fn default() -> Packet {
        BLANK
    }
}

/// The transport part of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// TCP, header complete enough to use.
    Tcp(Tcp),
    /// UDP.
    Udp {
        /// Source port.
        src_port: u16,
        /// Destination port.
        dst_port: u16,
        /// Payload bytes on the wire, from the UDP or IP length.
        payload: u32,
    },
    /// ICMP or ICMPv6, not taken further.
    Icmp,
    /// A fragment other than the first: no transport header.
    Fragment,
    /// Another protocol, by its IP protocol number; 6 and 17 where a TCP or UDP header contradicts
    /// itself.
    Other(u8),
    /// The capture ends before the transport header does.
    Truncated(u8),
}

/// A TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number as in the header.
    pub seq: u32,
    /// Acknowledgement number as in the header.
    pub ack: u32,
    /// Flags byte (CWR ECE URG ACK PSH RST SYN FIN).
    pub flags: u8,
    /// Window as in the header, not scaled.
    pub window: u16,
    /// Payload bytes on the wire, from the IP length, whatever the snap length cut.
    pub payload: u32,
    /// Options that could be read.
    pub options: TcpOptions,
}

/// TCP options of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323).
    pub window_scale: Option<u8>,
    /// Selective acknowledgement permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Timestamps: value and echo (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks present, up to four: left and right edge.
    pub sack: [Option<(u32, u32)>; 4],
}

impl Tcp {
    /// FIN flag.
    pub const FIN: u8 = 0x01;
    /// SYN flag.
    pub const SYN: u8 = 0x02;
    /// RST flag.
    pub const RST: u8 = 0x04;
    /// PSH flag.
    pub const PSH: u8 = 0x08;
    /// ACK flag.
    pub const ACK: u8 = 0x10;

    /// Whether all of `flags` are set.
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}
