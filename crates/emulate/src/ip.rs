//! The fields of IP packets that the emulator reads, and the ECN field, the only one it writes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use swell_host::rewrite;

/// Protocol numbers (IANA, "Protocol Numbers").
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;
/// Extension headers of IPv6 (RFC 8200 section 4): hop-by-hop options, routing, destination options, mobility (RFC 6275),
/// HIP (RFC 7401) and Shim6 (RFC 5533). Their second byte is their length in units of 8 bytes, without the first unit.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];
/// The fragment header (RFC 8200 section 4.5), and its length.
const FRAGMENT: u8 = 44;
const FRAGMENT_LENGTH: usize = 8;
/// The authentication header (RFC 4302). Its second byte is its length in units of 4 bytes, less two.
const AUTHENTICATION: u8 = 51;

/// The header fields that determine a packet's route and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// Where the transport header begins.
    pub transport: usize,
    /// Source and destination port; zero if the packet has none.
    pub ports: [u16; 2],
    /// The ECN field (RFC 3168).
    pub ecn: u8,
    /// Set if this is a fragment. Only the first one has a transport header.
    pub fragment: Option<Fragment>,
}

/// Which fragment a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Identification, the same in all fragments of a datagram between two addresses.
    pub id: u32,
    /// It is the first one.
    pub first: bool,
}

impl Header {
    /// Parses a header; `None` if this is not an IP packet.
    pub fn of(packet: &[u8]) -> Option<Header> {
        let first = *packet.first()?;
        let (source, destination, protocol, transport, ecn, fragment) = match first >> 4 {
            4 => {
                let fixed: &[u8; 20] = packet.first_chunk()?;
                let address = |i: usize| {
                    IpAddr::V4(Ipv4Addr::new(
                        fixed[i],
                        fixed[i + 1],
                        fixed[i + 2],
                        fixed[i + 3],
                    ))
                };
                let transport = usize::from(first & 15) * 4;
                // RFC 791: flags and fragment offset. A fragment has an offset or the flag "more fragments".
                let flags = u16::from_be_bytes([fixed[6], fixed[7]]);
                let fragment = (flags & 0x3fff != 0).then(|| Fragment {
                    id: u16::from_be_bytes([fixed[4], fixed[5]]).into(),
                    first: flags & 0x1fff == 0,
                });
                (
                    address(12),
                    address(16),
                    fixed[9],
                    transport,
                    fixed[1] & 3,
                    fragment,
                )
            }
            6 => {
                let fixed: &[u8; 40] = packet.first_chunk()?;
                let address = |i: usize| {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&fixed[i..i + 16]);
                    IpAddr::V6(Ipv6Addr::from(octets))
                };
                let (protocol, transport, fragment) = behind_extensions(packet, fixed[6]);
                let ecn = fixed[1] >> 4 & 3;
                (address(8), address(24), protocol, transport, ecn, fragment)
            }
            _ => return None,
        };
        let mut ports = [0; 2];
        if fragment.is_none_or(|f| f.first)
            && (protocol == TCP || protocol == UDP)
            && let Some(p) = packet.get(transport..transport + 4)
        {
            ports = [
                u16::from_be_bytes([p[0], p[1]]),
                u16::from_be_bytes([p[2], p[3]]),
            ];
        }
        Some(Header {
            source,
            destination,
            protocol,
            transport,
            ports,
            ecn,
            fragment,
        })
    }
}

/// The protocol behind the extension headers of an IPv6 packet, where its header begins, and the fragment header if there is
/// one. `next` is the kind of the first header. The walk ends at a header that is cut off, or in a fragment that is not the
/// first; the protocol is then the kind of the header there.
fn behind_extensions(packet: &[u8], mut next: u8) -> (u8, usize, Option<Fragment>) {
    let (mut at, mut fragment) = (40, None);
    // Every step goes at least 8 bytes further.
    while let Some(e) = packet
        .get(at..)
        .and_then(|p| p.first_chunk::<FRAGMENT_LENGTH>())
    {
        let length = match next {
            FRAGMENT => {
                let first = u16::from_be_bytes([e[2], e[3]]) & 0xfff8 == 0;
                fragment = Some(Fragment {
                    id: u32::from_be_bytes([e[4], e[5], e[6], e[7]]),
                    first,
                });
                if !first {
                    return (e[0], at + FRAGMENT_LENGTH, fragment);
                }
                FRAGMENT_LENGTH
            }
            AUTHENTICATION => (usize::from(e[1]) + 2).max(2) * 4,
            _ if EXTENSIONS.contains(&next) => (usize::from(e[1]) + 1) * 8,
            _ => break,
        };
        (next, at) = (e[0], at + length);
    }
    (next, at, fragment)
}

/// What a host says of a datagram for a port that no socket has: its header, and the length of its payload. `header` is
/// that of the ICMP error "port unreachable" (RFC 792; RFC 4443 section 3.1), with which `packet` begins.
pub(crate) fn port_unreachable(header: &Header, packet: &[u8]) -> Option<(Header, u64)> {
    let message = packet.get(header.transport..)?;
    let kind = message.first_chunk::<2>()?;
    if !matches!((header.protocol, kind), (ICMP, [3, 3]) | (ICMP_V6, [1, 4])) {
        return None;
    }
    let quoted = message.get(8..)?;
    let inner = Header::of(quoted)?;
    let udp: &[u8; 8] = quoted.get(inner.transport..)?.first_chunk()?;
    let len = u64::from(u16::from_be_bytes([udp[4], udp[5]]));
    (inner.protocol == UDP).then_some((inner, len.saturating_sub(8)))
}

/// Writes the ECN field of a packet whose header was parsed before.
pub(crate) fn set_ecn(packet: &mut [u8], ecn: u8) {
    match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = [packet[0], packet[1] & !3 | ecn];
            rewrite(packet, 0, &word, &[10]);
        }
        Some(6) if packet.len() >= 40 => packet[1] = packet[1] & !0x30 | ecn << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let s: u32 = words.sum();
        let s = (s & 0xffff) + (s >> 16);
        (s & 0xffff) as u16 + (s >> 16) as u16
    }

    #[test]
    fn a_marked_header_has_the_right_checksum() {
        for tos in 0..=255u8 {
            let mut p = vec![
                0x45, tos, 0, 40, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ];
            let check = !sum(&p);
            p[10..12].copy_from_slice(&check.to_be_bytes());
            assert_eq!(sum(&p), 0xffff);
            set_ecn(&mut p, 3);
            assert_eq!((sum(&p), p[1]), (0xffff, tos | 3));
            p.resize(24, 9);
            let h = Header::of(&p).unwrap();
            assert_eq!((h.ecn, h.protocol, h.ports), (3, TCP, [0x0909, 0x0909]));
        }
    }

    #[test]
    fn ipv6_is_read_and_marked() {
        let mut p = vec![0; 60];
        p[0] = 0x6a;
        p[1] = 0x5f;
        p[6] = UDP;
        p[23] = 1;
        p[39] = 2;
        p[40..44].copy_from_slice(&[0, 53, 1, 0]);
        set_ecn(&mut p, 3);
        assert_eq!(p[..2], [0x6a, 0x7f]);
        let h = Header::of(&p).unwrap();
        assert_eq!((h.ecn, h.ports, h.transport), (3, [53, 256], 40));
        assert_eq!(h.destination, "::2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn only_first_fragments_have_ports() {
        let read = |packet: &[u8]| {
            let h = Header::of(packet).unwrap();
            let fragment = h.fragment.map(|f| (f.id, f.first));
            (h.protocol, h.transport, h.ports, fragment)
        };
        let ports = [53, 256];
        let mut v4 = vec![0; 60];
        v4[..10].copy_from_slice(&[0x45, 0, 0, 60, 1, 2, 0x20, 0, 64, UDP]);
        v4[20..24].copy_from_slice(&[0, 53, 1, 0]);
        assert_eq!(read(&v4), (UDP, 20, ports, Some((0x0102, true))));
        v4[6..8].copy_from_slice(&[0, 1]);
        assert_eq!(read(&v4), (UDP, 20, [0; 2], Some((0x0102, false))));
        // "Do not fragment" makes no fragment.
        v4[6..8].copy_from_slice(&[0x40, 0]);
        assert_eq!(read(&v4), (UDP, 20, ports, None));

        let mut v6 = vec![0; 60];
        (v6[0], v6[6]) = (0x60, FRAGMENT);
        v6[40..52].copy_from_slice(&[UDP, 0, 0, 1, 1, 2, 3, 4, 0, 53, 1, 0]);
        assert_eq!(read(&v6), (UDP, 48, ports, Some((0x0102_0304, true))));
        v6[43] = 8;
        assert_eq!(read(&v6), (UDP, 48, [0; 2], Some((0x0102_0304, false))));
    }

    #[test]
    fn ports_are_found_behind_extension_headers() {
        let mut v6 = vec![0; 40];
        v6[0] = 0x60;
        // Hop-by-hop options of 8 bytes, destination options of 16, authentication of 16, a first fragment.
        let chain = [
            (0, vec![60, 0, 1, 4, 0, 0, 0, 0]),
            (60, [&[AUTHENTICATION, 1, 1, 12][..], &[0; 12]].concat()),
            (AUTHENTICATION, [&[FRAGMENT, 2][..], &[0; 14]].concat()),
            (FRAGMENT, vec![TCP, 0, 0, 1, 1, 2, 3, 4]),
        ];
        v6[6] = chain[0].0;
        let ports = [0, 53, 1, 0, 0, 0, 0, 0];
        let whole = [v6.clone(), chain.map(|c| c.1).concat(), ports.to_vec()].concat();
        let h = Header::of(&whole).unwrap();
        let fragment = Fragment {
            id: 0x0102_0304,
            first: true,
        };
        assert_eq!((h.protocol, h.transport, h.ports), (TCP, 88, [53, 256]));
        assert_eq!(h.fragment, Some(fragment));
        // What is behind a header that is cut off is unknown.
        v6[6] = 60;
        let cut = [v6, vec![UDP, 9, 0, 53, 0, 53, 0, 0]].concat();
        let unknown = Header::of(&cut).unwrap();
        assert_eq!(
            (unknown.ports, unknown.transport > cut.len()),
            ([0; 2], true)
        );
    }

    #[test]
    fn nothing_panics() {
        let mut rng = swell_base::Stream::new(1, "ip");
        for n in 0..100_000 {
            let mut p: Vec<u8> = (0..rng.below(128)).map(|_| rng.below(256) as u8).collect();
            if n % 2 == 0 && p.len() > 40 {
                (p[0], p[6]) = (0x60, EXTENSIONS[n % 6]);
            }
            let _ = Header::of(&p);
            set_ecn(&mut p, 1);
        }
    }
}
