//! Decodes captured frames into [`Packet`]s.

use crate::link::{self, Network};
use crate::skip::Skip;
use crate::transport::{self, Payload};
use crate::{Heading, LinkType, Packet, Transport};
use std::net::{IpAddr, Ipv6Addr};

/// A record of a capture: the bytes of a frame, with its time and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Capture time, nanoseconds since the Unix epoch.
    pub time: i64,
    /// Interface number within the file, counted over all sections (0 for pcap).
    pub interface: u32,
    /// Direction in which it passed that interface, as the capture file states it.
    pub heading: Heading,
    /// Link type of that interface.
    pub link: LinkType,
    /// Bytes on the wire, as the capture states them.
    pub wire_len: u32,
    /// The bytes captured.
    pub data: &'a [u8],
}

/// Decodes a frame. The link-layer and IP headers must be complete. A transport header that is cut or contradicts
/// itself still yields a packet, which is marked accordingly.
///
/// Tunnels (IP in IP, GRE, VXLAN, GTP, Teredo, pseudowires) are not followed: the packet is the
/// outer one, which is what the link carried.
///
/// # Errors
/// The reason why the frame holds no usable IP packet.
#[inline]
pub fn dissect(frame: &Frame<'_>) -> Result<Packet, Skip> {
    let mut packet = Packet::BLANK;
    dissect_into(frame, &mut packet)?;
    Ok(packet)
}

/// Like [`dissect`], but writes the packet to its final place. Moving a packet right after it was written field by
/// field stalls the processor. After an error the contents of `packet` are meaningless.
#[inline]
pub(crate) fn dissect_into(frame: &Frame<'_>, packet: &mut Packet) -> Result<(), Skip> {
    let (at, network) = link::peel(frame.link, frame.data)?;
    // Must not panic: `peel` may point beyond the captured bytes, as with SLL2's fixed header.
    let ip = frame.data.get(at..).unwrap_or_default();
    // Bytes on the wire left for IP, padding included. They give the length if the header has none.
    let room = (frame.wire_len as usize).saturating_sub(at) as u32;
    packet.time = frame.time;
    packet.wire_len = frame.wire_len;
    packet.captured_len = frame.data.len() as u32;
    packet.interface = frame.interface;
    packet.stations = link::stations(frame.link, frame.data);
    packet.heading = match frame.heading {
        Heading::Unknown => link::heading(frame.link, frame.data),
        known => known,
    };
    let version = ip.first().ok_or(Skip::ShortIp)? >> 4;
    match (network, version) {
        (Network::V4 | Network::Either, 4) => v4(ip, room, packet),
        (Network::V6 | Network::Either, 6) => v6(ip, room, packet),
        (Network::Either, _) => Err(Skip::NotIp),
        _ => Err(Skip::BadIp),
    }
}

/// IPv4 (RFC 791).
#[inline]
fn v4(ip: &[u8], room: u32, packet: &mut Packet) -> Result<(), Skip> {
    let h = ip.first_chunk::<20>().ok_or(Skip::ShortIp)?;
    let header_len = usize::from(h[0] & 0x0f) * 4;
    if header_len < 20 {
        return Err(Skip::BadIp);
    }
    let total = match u16::from_be_bytes([h[2], h[3]]) {
        // Offload engines deliver packets of more than 64 KiB, and some deliver all packets, with a length of zero.
        // Then only the frame's length is known.
        0 => room,
        n => u32::from(n),
    };
    if (total as usize) < header_len {
        return Err(Skip::BadIp);
    }
    packet.ip_len = total;
    packet.src = IpAddr::from([h[12], h[13], h[14], h[15]]);
    packet.dst = IpAddr::from([h[16], h[17], h[18], h[19]]);
    packet.ttl = h[8];
    packet.ecn = h[1] & 0x03;
    let fragmentation = u16::from_be_bytes([h[6], h[7]]);
    let fragment_offset = fragmentation & 0x1fff;
    packet.fragment = match fragmentation & (MORE_FRAGMENTS | 0x1fff) {
        0 => 0,
        _ => fragment_of(h[9], u32::from(u16::from_be_bytes([h[4], h[5]]))),
    };
    packet.mark =
        u64::from(u16::from_be_bytes([h[4], h[5]])) << 48 | u64::from(fragment_offset) << 32;
    if fragment_offset != 0 {
        packet.transport = Transport::Fragment;
    } else {
        // Options are not needed. If they are cut, everything after them is missing as well.
        let payload = Payload {
            protocol: h[9],
            data: ip.get(header_len..).unwrap_or_default(),
            len: total - header_len as u32,
        };
        packet.mark |= u64::from(transport::mark(&payload));
        transport::decode(payload, &mut packet.transport);
    }
    Ok(())
}

/// The flag of IPv4 of all fragments but the last.
const MORE_FRAGMENTS: u16 = 0x2000;

/// What fragments of one datagram have in common: [`Packet::fragment`].
fn fragment_of(protocol: u8, identification: u32) -> u64 {
    1 << 40 | u64::from(protocol) << 32 | u64::from(identification)
}

/// IPv6 (RFC 8200).
#[inline]
fn v6(ip: &[u8], room: u32, packet: &mut Packet) -> Result<(), Skip> {
    let h = ip.first_chunk::<40>().ok_or(Skip::ShortIp)?;
    let rest = &ip[40..];
    let declared = u32::from(u16::from_be_bytes([h[4], h[5]]));
    let payload_len = if declared != 0 {
        declared
    } else {
        // A jumbogram (RFC 2675), a BIG TCP packet without a length, or an empty packet.
        match jumbo_len(h[6], rest) {
            Some(n) if n > 0xffff && n <= room.saturating_sub(40) => n,
            Some(_) => return Err(Skip::BadIp),
            None if h[6] == NO_NEXT_HEADER => 0,
            None => room.checked_sub(40).ok_or(Skip::BadIp)?,
        }
    };
    packet.ip_len = payload_len.saturating_add(40);
    packet.src = v6_address(h, 8);
    packet.dst = v6_address(h, 24);
    packet.ttl = h[7];
    packet.ecn = (h[1] >> 4) & 0x03;
    (packet.mark, packet.fragment) = (0, 0);
    match h[6] {
        // TCP and UDP need no walk and come first.
        protocol @ (6 | 17) => {
            let payload = Payload {
                protocol,
                data: rest,
                len: payload_len,
            };
            packet.mark = u64::from(transport::mark(&payload));
            transport::decode(payload, &mut packet.transport);
        }
        first => {
            let mut fragment = None;
            match walk(first, rest, payload_len, &mut fragment) {
                Ok(payload) => {
                    packet.mark = u64::from(transport::mark(&payload));
                    transport::decode(payload, &mut packet.transport);
                }
                Err(transport) => packet.transport = transport,
            }
            if let Some(of) = fragment {
                packet.fragment = fragment_of(of.protocol, of.identification);
                packet.mark |=
                    u64::from(of.identification as u16) << 48 | u64::from(of.offset) << 32;
            }
        }
    }
    Ok(())
}

/// The fields of an IP packet that flow records need in addition to [`Packet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpPayload<'a> {
    /// Type of service or traffic class.
    pub tos: u8,
    /// Protocol of the payload after the extension headers; 44 for an IPv6 fragment other than the first.
    pub protocol: u8,
    /// The captured part of the payload.
    pub data: &'a [u8],
}

/// The payload of a frame that [`dissect`] accepted.
pub(crate) fn ip_payload<'a>(frame: &Frame<'a>) -> Option<IpPayload<'a>> {
    let (at, _) = link::peel(frame.link, frame.data).ok()?;
    let ip = frame.data.get(at..)?;
    if ip.first()? >> 4 == 4 {
        let h = ip.first_chunk::<20>()?;
        let total = match u16::from_be_bytes([h[2], h[3]]) {
            0 => ip.len(),
            n => ip.len().min(usize::from(n)),
        };
        return Some(IpPayload {
            tos: h[1],
            protocol: h[9],
            data: ip
                .get(usize::from(h[0] & 0x0f) * 4..total)
                .unwrap_or_default(),
        });
    }
    let h = ip.first_chunk::<40>()?;
    let len = match u16::from_be_bytes([h[4], h[5]]) {
        0 => ip.len() - 40,
        n => (ip.len() - 40).min(usize::from(n)),
    };
    let (protocol, data) = match walk(h[6], &ip[40..40 + len], u32::MAX, &mut None) {
        Ok(payload) => (payload.protocol, payload.data),
        Err(Transport::Other(n) | Transport::Truncated(n)) => (n, &[][..]),
        Err(_) => (FRAGMENT, &[][..]),
    };
    Some(IpPayload {
        tos: h[0] << 4 | h[1] >> 4,
        protocol,
        data,
    })
}

const HOP_BY_HOP: u8 = 0;
const FRAGMENT: u8 = 44;
const NO_NEXT_HEADER: u8 = 59;

#[inline]
fn v6_address(header: &[u8; 40], at: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&header[at..at + 16]);
    IpAddr::V6(Ipv6Addr::from(octets))
}

/// The jumbo payload option (RFC 2675 section 2). It can only be in a hop-by-hop header directly after the IPv6
/// header.
fn jumbo_len(next: u8, rest: &[u8]) -> Option<u32> {
    if next != HOP_BY_HOP {
        return None;
    }
    let len = (usize::from(*rest.get(1)?) + 1) * 8;
    let mut options = rest.get(2..len.min(rest.len()))?;
    while let [kind, tail @ ..] = options {
        options = match (*kind, tail) {
            (0, _) => tail,
            (0xc2, [4, a, b, c, d, ..]) => return Some(u32::from_be_bytes([*a, *b, *c, *d])),
            (_, [n, body @ ..]) => body.get(usize::from(*n)..)?,
            (_, []) => return None,
        };
    }
    None
}

/// The fragment header of an IPv6 packet (RFC 8200 section 4.5).
struct FragmentHeader {
    protocol: u8,
    /// In units of 8 bytes.
    offset: u16,
    identification: u32,
}

/// Reads a fragment header; `None` if it is cut, or if the packet is whole (RFC 6946).
fn fragment_header(data: &[u8]) -> Option<FragmentHeader> {
    let &[protocol, _, a, b, c, d, e, f] = data.first_chunk()?;
    let field = u16::from_be_bytes([a, b]);
    (field & !6 != 0).then(|| FragmentHeader {
        protocol,
        offset: field >> 3,
        identification: u32::from_be_bytes([c, d, e, f]),
    })
}

/// Walks the extension headers (RFC 8200 section 4; RFC 4302 for the authentication header). Every step consumes at
/// least eight bytes, so the walk ends.
fn walk<'d>(
    mut next: u8,
    mut data: &'d [u8],
    mut len: u32,
    fragment: &mut Option<FragmentHeader>,
) -> Result<Payload<'d>, Transport> {
    loop {
        let size = match next {
            // Hop-by-hop, routing, destination options, mobility, HIP, Shim6.
            HOP_BY_HOP | 43 | 60 | 135 | 139 | 140 => match data.get(1) {
                Some(&n) => (usize::from(n) + 1) * 8,
                None => return Err(Transport::Truncated(next)),
            },
            // Fragment header.
            FRAGMENT => match data
                .get(2..4)
                .inspect(|_| *fragment = fragment_header(data))
            {
                Some(&[a, b]) if u16::from_be_bytes([a, b]) & 0xfff8 != 0 => {
                    return Err(Transport::Fragment);
                }
                Some(_) => 8,
                None => return Err(Transport::Truncated(next)),
            },
            // Authentication header: length in 32-bit words, minus two.
            51 => match data.get(1) {
                Some(&n) => (usize::from(n) + 2) * 4,
                None => return Err(Transport::Truncated(next)),
            },
            protocol => {
                return Ok(Payload {
                    protocol,
                    data,
                    len,
                });
            }
        };
        // The extension header is longer than the packet, so its contents cannot be trusted.
        let Some(left) = len.checked_sub(size as u32) else {
            return Err(Transport::Other(next));
        };
        let Some(rest) = data.get(size..) else {
            return Err(Transport::Truncated(next));
        };
        next = data[0];
        data = rest;
        len = left;
    }
}
