//! Link layers: from the first byte of a frame to the first byte of an IP packet.

use crate::Heading;
use crate::skip::Skip;
use std::fmt;

/// A link-layer type, by its number in pcap and pcapng files (the tcpdump.org registry,
/// <https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet, without frame check sequence and preamble.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: LinkType = LinkType(9);
    /// Raw IP, as numbered by libpcap in memory, and in the files of some systems.
    pub const RAW_BSD: LinkType = LinkType(12);
    /// Raw IP, as numbered by OpenBSD.
    pub const RAW_OPENBSD: LinkType = LinkType(14);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// PPPoE session without the Ethernet header.
    pub const PPP_ETHER: LinkType = LinkType(51);
    /// Raw IP; the first nibble gives the version.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The link types that are decoded. Frames of others are counted and skipped.
    pub const SUPPORTED: [LinkType; 14] = [
        LinkType::NULL,
        LinkType::ETHERNET,
        LinkType::PPP,
        LinkType::RAW_BSD,
        LinkType::RAW_OPENBSD,
        LinkType::PPP_HDLC,
        LinkType::PPP_ETHER,
        LinkType::RAW,
        LinkType::C_HDLC,
        LinkType::LOOP,
        LinkType::LINUX_SLL,
        LinkType::IPV4,
        LinkType::IPV6,
        LinkType::LINUX_SLL2,
    ];

    /// The usual name, for common types.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            6 => "Token Ring",
            7 => "ARCNET",
            8 => "SLIP",
            9 | 50 => "PPP",
            10 => "FDDI",
            12 | 14 | 101 => "raw IP",
            51 => "PPPoE",
            100 => "ATM",
            104 => "Cisco HDLC",
            105 => "IEEE 802.11",
            107 => "Frame Relay",
            108 => "OpenBSD loopback",
            113 => "Linux cooked",
            127 => "IEEE 802.11 radiotap",
            187 | 201 => "Bluetooth HCI",
            189 | 220 => "USB",
            192 => "PPI",
            195 | 230 => "IEEE 802.15.4",
            197 => "ERF",
            226 => "Solaris ipnet",
            228 => "raw IPv4",
            229 => "raw IPv6",
            239 => "netfilter log",
            242 => "IP over InfiniBand",
            258 => "Apple PKTAP",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

/// An interface on which packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its link type.
    pub link: LinkType,
    /// Its snap length in bytes, as the file states it; 0 if the file states none.
    pub snaplen: u32,
    /// Resolution of its times in ticks per second, if that is an integer.
    pub ticks_per_second: Option<u64>,
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "link type {}", self.0),
        }
    }
}

/// The protocol that follows the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    V4,
    V6,
    /// The first nibble gives the version.
    Either,
}

/// Removes the link layer: the offset of the IP packet in `data`, and its version.
#[inline]
pub(crate) fn peel(link: LinkType, data: &[u8]) -> Result<(usize, Network), Skip> {
    match link {
        LinkType::ETHERNET => ether_type(data, 12),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => Ok((0, Network::Either)),
        LinkType::IPV4 => Ok((0, Network::V4)),
        LinkType::IPV6 => Ok((0, Network::V6)),
        LinkType::NULL | LinkType::LOOP => loopback(data),
        LinkType::LINUX_SLL => ether_type(data, 14),
        // SLL2 has the protocol first, in a header of 20 bytes.
        LinkType::LINUX_SLL2 => match be16(data, 0)? {
            0x0800 => Ok((20, Network::V4)),
            0x86dd => Ok((20, Network::V6)),
            other => after_ether_type(data, other, 20),
        },
        LinkType::PPP | LinkType::PPP_HDLC => ppp(data),
        LinkType::C_HDLC => ether_type(data, 2),
        LinkType::PPP_ETHER => pppoe(data, 0),
        _ => Err(Skip::UnsupportedLink),
    }
}

/// Ethernet addresses of source and destination as numbers; zero if there are none.
#[inline]
pub(crate) fn stations(link: LinkType, data: &[u8]) -> [u64; 2] {
    match (link, data.first_chunk::<12>()) {
        (LinkType::ETHERNET, Some(&[a, b, c, d, e, f, g, h, i, j, k, l])) => [
            u64::from_be_bytes([0, 0, g, h, i, j, k, l]),
            u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
        ],
        _ => [0; 2],
    }
}

/// The direction of a frame in a Linux cooked capture, from its packet type.
#[inline]
pub(crate) fn heading(link: LinkType, data: &[u8]) -> Heading {
    let kind = match link {
        LinkType::LINUX_SLL => be16(data, 0).ok(),
        LinkType::LINUX_SLL2 => data.get(10).map(|&kind| u16::from(kind)),
        _ => None,
    };
    match kind {
        Some(0) => Heading::Inbound,
        Some(4) => Heading::Outbound,
        _ => Heading::Unknown,
    }
}

/// Continues with the EtherType at `at`.
#[inline]
fn ether_type(data: &[u8], at: usize) -> Result<(usize, Network), Skip> {
    match be16(data, at)? {
        0x0800 => Ok((at + 2, Network::V4)),
        0x86dd => Ok((at + 2, Network::V6)),
        other => after_ether_type(data, other, at + 2),
    }
}

/// Handles everything but plain IPv4 and IPv6: tags, labels, PPPoE, 802.2. `at` is the offset after the EtherType.
fn after_ether_type(
    data: &[u8],
    mut protocol: u16,
    mut at: usize,
) -> Result<(usize, Network), Skip> {
    loop {
        match protocol {
            0x0800 => return Ok((at, Network::V4)),
            0x86dd => return Ok((at, Network::V6)),
            // IEEE 802.1Q, 802.1ad, and the numbers used for QinQ before 802.1ad.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
                protocol = be16(data, at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => return mpls(data, at),
            0x8864 => return pppoe(data, at),
            // IEEE 802.3: a length, followed by 802.2. Only SNAP with an EtherType carries IP (RFC 1042).
            0..=0x05dc => {
                let llc = data.get(at..at + 6).ok_or(Skip::ShortLink)?;
                if llc != [0xaa, 0xaa, 0x03, 0, 0, 0] {
                    return Err(Skip::NotIp);
                }
                protocol = be16(data, at + 6)?;
                at += 8;
                if protocol <= 0x05dc {
                    return Err(Skip::NotIp);
                }
            }
            _ => return Err(Skip::NotIp),
        }
    }
}

/// A label stack (RFC 3032). It does not state what it carries. As in routers (RFC 4928), the first nibble
/// distinguishes IP from everything else, such as a pseudowire control word.
fn mpls(data: &[u8], mut at: usize) -> Result<(usize, Network), Skip> {
    loop {
        let label = data.get(at..at + 4).ok_or(Skip::ShortLink)?;
        at += 4;
        if label[2] & 1 != 0 {
            break;
        }
    }
    match data.get(at).ok_or(Skip::ShortLink)? >> 4 {
        4 => Ok((at, Network::V4)),
        6 => Ok((at, Network::V6)),
        _ => Err(Skip::NotIp),
    }
}

/// A PPPoE session header (RFC 2516 section 4), followed by PPP without address and control.
fn pppoe(data: &[u8], at: usize) -> Result<(usize, Network), Skip> {
    let header = data.get(at..at + 6).ok_or(Skip::ShortLink)?;
    // Version 1 and type 1; code 0 is session data.
    if header[0] != 0x11 || header[1] != 0 {
        return Err(Skip::NotIp);
    }
    ppp_protocol(data, at + 6)
}

/// PPP with address and control (RFC 1662), which may be omitted. Captures of serial lines also use this type for
/// Cisco HDLC, which begins with another address (RFC 1547 section 4.3.1).
fn ppp(data: &[u8]) -> Result<(usize, Network), Skip> {
    match data {
        [0xff, 0x03, ..] => ppp_protocol(data, 2),
        [0x0f | 0x8f, 0x00, ..] => ether_type(data, 2),
        _ => ppp_protocol(data, 0),
    }
}

/// The PPP protocol field: two bytes, or one if compressed (RFC 1661 section 2: the last byte is odd).
fn ppp_protocol(data: &[u8], at: usize) -> Result<(usize, Network), Skip> {
    let first = *data.get(at).ok_or(Skip::ShortLink)?;
    let (protocol, next) = if first & 1 == 1 {
        (u16::from(first), at + 1)
    } else {
        (be16(data, at)?, at + 2)
    };
    match protocol {
        0x0021 => Ok((next, Network::V4)),
        0x0057 => Ok((next, Network::V6)),
        0x0281 | 0x0283 => mpls(data, next),
        _ => Err(Skip::NotIp),
    }
}

/// The address family in four bytes, in the byte order of the capturing machine (NULL) or in network byte order
/// (LOOP). Families are small numbers, so the order can be inferred. The number of IPv6 depends on the system: 10
/// Linux, 24 NetBSD and OpenBSD, 26 Solaris, 28 FreeBSD, 30 Darwin.
fn loopback(data: &[u8]) -> Result<(usize, Network), Skip> {
    let bytes = *data.first_chunk::<4>().ok_or(Skip::ShortLink)?;
    let family = u32::from_be_bytes(bytes).min(u32::from_le_bytes(bytes));
    match family {
        2 => Ok((4, Network::V4)),
        10 | 24 | 26 | 28 | 30 => Ok((4, Network::V6)),
        _ => Err(Skip::NotIp),
    }
}

#[inline]
fn be16(data: &[u8], at: usize) -> Result<u16, Skip> {
    match data.get(at..at + 2) {
        Some(&[a, b]) => Ok(u16::from_be_bytes([a, b])),
        _ => Err(Skip::ShortLink),
    }
}
