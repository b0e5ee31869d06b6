//! The ICMP error that a router sends if it has no route for a packet.

use super::ip::{Header, ICMP, ICMP_V6};
use swell_host::{Checksum, IpPacket};

/// How many bytes of the packet are quoted. RFC 1812 section 4.3.2.3 allows 576 bytes in all; RFC 4443 section 2.4
/// allows the minimum IPv6 MTU.
const QUOTED: usize = 500;

/// The ICMP message "network unreachable" (RFC 792; RFC 4443 section 3.1, "no route to destination") for a packet,
/// sent from the packet's destination address. `None` for an ICMP error, which must not be answered (RFC 1122 section
/// 3.2.2; RFC 4443 section 2.4). Echo requests are answered, so that `ping` prints the error.
pub(super) fn unreachable(header: &Header, wire: &IpPacket<'_>) -> Option<Vec<u8>> {
    let mut whole = [wire.header, wire.payload].concat();
    let echo = match header.protocol {
        ICMP => whole.get(header.transport) == Some(&8),
        ICMP_V6 => whole.get(header.transport) == Some(&128),
        _ => true,
    };
    if !echo {
        return None;
    }
    wire.checksum.complete(&mut whole);
    whole.truncate(QUOTED);
    let v6 = header.source.is_ipv6();
    let mut message = vec![if v6 { 1 } else { 3 }, 0, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&whole);
    let mut packet = if v6 {
        let length = message.len() as u16;
        let mut p = vec![
            0x60,
            0,
            0,
            0,
            (length >> 8) as u8,
            length as u8,
            ICMP_V6,
            64,
        ];
        // Swap source and destination.
        p.extend_from_slice(&wire.header[24..40]);
        p.extend_from_slice(&wire.header[8..24]);
        // RFC 4443 section 2.3: the checksum covers a pseudo-header.
        let pseudo = sum(&p[8..40]) + u32::from(length) + u32::from(ICMP_V6);
        message[2..4].copy_from_slice(&fold(pseudo).to_be_bytes());
        p
    } else {
        let length = (20 + message.len()) as u16;
        let mut p = vec![
            0x45,
            0,
            (length >> 8) as u8,
            length as u8,
            0,
            0,
            0,
            0,
            64,
            ICMP,
            0,
            0,
        ];
        p.extend_from_slice(&wire.header[16..20]);
        p.extend_from_slice(&wire.header[12..16]);
        let check = !fold(sum(&p));
        p[10..12].copy_from_slice(&check.to_be_bytes());
        p
    };
    let start = packet.len();
    packet.extend_from_slice(&message);
    let partial = Checksum::Partial {
        start: start as u16,
        offset: 2,
    };
    partial.complete(&mut packet);
    Some(packet)
}

/// The sum of the 16-bit words of an even number of bytes.
fn sum(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks::<2>();
    words
        .iter()
        .map(|w| u32::from(u16::from_be_bytes(*w)))
        .sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(packet: &[u8]) -> Vec<u8> {
        let header = Header::of(packet).unwrap();
        let wire = IpPacket {
            header: packet,
            payload: &[],
            checksum: Checksum::Full,
        };
        unreachable(&header, &wire).unwrap()
    }

    #[test]
    fn the_message_comes_back_with_right_checksums() {
        let mut p = vec![0; 60];
        (p[0], p[9]) = (0x45, 6);
        p[12..20].copy_from_slice(&[198, 18, 0, 1, 1, 2, 3, 4]);
        let m = message(&p);
        assert_eq!((m[9], m[20], m[21]), (ICMP, 3, 0));
        assert_eq!(m[12..20], [1, 2, 3, 4, 198, 18, 0, 1]);
        assert_eq!(m[28..], p[..]);
        assert_eq!((fold(sum(&m[..20])), fold(sum(&m[20..]))), (0xffff, 0xffff));

        let mut q = vec![0; 80];
        (q[0], q[6], q[8], q[39]) = (0x60, 17, 0x20, 9);
        let n = message(&q);
        assert_eq!((n[6], n[40], n[23], n[24]), (ICMP_V6, 1, 9, 0x20));
        let pseudo = sum(&n[8..40]) + (n.len() as u32 - 40) + u32::from(ICMP_V6);
        assert_eq!(fold(pseudo + sum(&n[40..])), 0xffff);
        // Errors are not answered with errors.
        p[9] = ICMP;
        let header = Header::of(&p).unwrap();
        let wire = IpPacket {
            header: &p,
            payload: &[],
            checksum: Checksum::Full,
        };
        assert_eq!(unreachable(&header, &wire), None);
        // Type 8 of RFC 792: an echo request.
        p[20] = 8;
        assert_eq!(message(&p)[20..22], [3, 0]);
    }
}
