//! The decoded headers of a captured packet, without its link layer.

use std::net::{IpAddr, Ipv4Addr};

/// The direction in which a packet passed its interface: from the name of the interface or the direction bits of
/// `epb_flags` in pcapng, or the packet type of Linux cooked captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heading {
    /// The file does not state it.
    #[default]
    Unknown,
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
    /// It crossed the link from left to right, from inside to outside: the interface is named `LINK/up`, as in packet
    /// files of a run.
    Up,
    /// It crossed the link from right to left: the interface is named `LINK/down`.
    Down,
}

/// A packet as the rest of the project sees it: time, lengths, addresses and transport header, without payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Capture time in nanoseconds since the Unix epoch. It may step backwards, as it does in real captures.
    pub time: i64,
    /// Bytes on the wire, link layer included, as the capture states them.
    pub wire_len: u32,
    /// Bytes of the frame that were captured.
    pub captured_len: u32,
    /// Network-layer length: header and payload of the IP packet (the outer one of a tunnel). It comes from the IP
    /// header, or from the frame's length if the header gives none.
    pub ip_len: u32,
    /// Interface number within the file, counted over all sections (0 for pcap).
    pub interface: u32,
    /// Direction in which it passed that interface.
    pub heading: Heading,
    /// Ethernet addresses of source and destination as numbers below 2^48; zero if there are none.
    pub stations: [u64; 2],
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// IP time to live or hop limit.
    pub ttl: u8,
    /// ECN codepoint (RFC 3168).
    pub ecn: u8,
    /// What fragments of one datagram have in common beside addresses, the first included: protocol and
    /// identification, and a bit that makes it differ from 0. 0 if the packet is whole.
    pub fragment: u64,
    /// What tells it from other packets of its flow, as no router changes it. The upper half has the IPv4 identification
    /// (of a fragment over IPv6, the lower half of its identification), and the fragment offset in units of 8 bytes. The
    /// lower half has the checksum of TCP, UDP or ICMP, or the sequence number of ESP. 0 if it has none of these.
    pub mark: u64,
    /// The transport header.
    pub transport: Transport,
}

impl Packet {
    /// A packet without any information.
    pub(crate) const BLANK: Packet = Packet {
        time: 0,
        wire_len: 0,
        captured_len: 0,
        ip_len: 0,
        interface: 0,
        heading: Heading::Unknown,
        stations: [0; 2],
        src: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ttl: 0,
        ecn: 0,
        fragment: 0,
        mark: 0,
        transport: Transport::Fragment,
    };
}

impl Default for Packet {
    /// All zeros, with the transport of a fragment: a buffer for [`Reader::read_into`](crate::Reader::read_into).
    fn default() -> Packet {
        Packet::BLANK
    }
}

/// The transport part of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// TCP, with a header that is complete enough to use.
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
    /// ICMP or ICMPv6, which are not decoded further.
    Icmp,
    /// A fragment other than the first, which has no transport header.
    Fragment,
    /// Another protocol, by its IP protocol number. It is 6 or 17 if a TCP or UDP header contradicts itself.
    Other(u8),
    /// The captured bytes end inside the transport header.
    Truncated(u8),
}

/// A TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags byte (CWR ECE URG ACK PSH RST SYN FIN).
    pub flags: u8,
    /// Window without scaling.
    pub window: u16,
    /// Payload bytes on the wire, from the IP length, regardless of the snap length.
    pub payload: u32,
    /// The options that could be read.
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
    /// SACK blocks, up to four: left and right edge.
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
    /// CWR flag: the congestion window was reduced (RFC 3168).
    pub const CWR: u8 = 0x80;

    /// Whether all of `flags` are set.
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}
