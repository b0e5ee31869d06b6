use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The Internet checksum as written in RFC 1071 section 4.1, deliberately independent of the code under test.
fn rfc1071(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    let mut k = 0;
    while k + 1 < bytes.len() {
        sum += u32::from(bytes[k]) * 256 + u32::from(bytes[k + 1]);
        k += 2;
    }
    if k < bytes.len() {
        sum += u32::from(bytes[k]) * 256;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The bytes of the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), built from an IP header.
fn pseudo_header(packet: &[u8], transport: usize) -> Vec<u8> {
    let length = (packet.len() - transport) as u32;
    let mut bytes = Vec::new();
    if packet[0] >> 4 == 4 {
        bytes.extend_from_slice(&packet[12..20]);
        bytes.extend_from_slice(&[0, 6]);
        bytes.extend_from_slice(&(length as u16).to_be_bytes());
    } else {
        bytes.extend_from_slice(&packet[8..40]);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 6]);
    }
    bytes
}

#[derive(Debug, Clone)]
pub(crate) struct Super {
    pub packet: Vec<u8>,
    pub transport: usize,
    pub header: usize,
}

impl Super {
    pub fn checksum(&self) -> Checksum {
        Checksum::Partial {
            start: self.transport as u16,
            offset: 16,
        }
    }
}

/// A super-packet as the kernel creates it: options, flags, any payload, and the sum of the pseudo-header in the
/// checksum field.
pub(crate) fn super_packet() -> impl Strategy<Value = Super> {
    (
        any::<bool>(),
        // IP options are rare.
        prop_oneof![4 => Just(0), 1 => 0..=10usize],
        0..=10usize,
        vec(any::<u8>(), 40),
        any::<(u32, u8, u16)>(),
        vec(any::<u8>(), 0..20_000),
    )
        .prop_map(
            |(v4, ip_options, tcp_options, noise, (seq, flags, id), payload)| {
                let transport = if v4 {
                    20 + 4 * ip_options
                } else {
                    40 + 8 * ip_options
                };
                let header = transport + 20 + 4 * tcp_options;
                let mut packet = vec![0xa5; header];
                if v4 {
                    packet[..20].copy_from_slice(&noise[..20]);
                    packet[0] = 0x40 | (5 + ip_options as u8);
                    packet[9] = 6;
                    packet[4..6].copy_from_slice(&id.to_be_bytes());
                } else {
                    packet[..40].copy_from_slice(&noise);
                    packet[0] = 0x60;
                }
                packet[transport + 4..transport + 8].copy_from_slice(&seq.to_be_bytes());
                packet[transport + 12] = (5 + tcp_options as u8) << 4;
                packet[transport + 13] = flags;
                packet.extend_from_slice(&payload);
                let partial = !rfc1071(&pseudo_header(&packet, transport));
                packet[transport + 16..transport + 18].copy_from_slice(&partial.to_be_bytes());
                Super {
                    packet,
                    transport,
                    header,
                }
            },
        )
}

pub(crate) fn cut(whole: &Super, size: u16) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let count = segment(
        &whole.packet,
        whole.checksum(),
        size,
        &mut Vec::new(),
        &mut |wire| {
            let bytes = [wire.header, wire.payload].concat();
            assert_eq!(wire.checksum, whole.checksum());
            all.push(bytes);
        },
    );
    assert_eq!(count, Ok(all.len()));
    all
}

proptest! {
    #[test]
    fn segments_put_together_are_the_super_packet(whole in super_packet(), size in 1..9000u16) {
        let segments = cut(&whole, size);
        let step = usize::from(size);
        let payload = &whole.packet[whole.header..];
        prop_assert_eq!(segments.len(), payload.len().div_ceil(step).max(1));
        let together: Vec<u8> = segments.iter().flat_map(|s| s[whole.header..].to_vec()).collect();
        prop_assert_eq!(&together[..], payload);
        for (k, s) in segments.iter().enumerate() {
            let last = k + 1 == segments.len();
            prop_assert!(last || s.len() == whole.header + step);
            let at = |bytes: &[u8], p: usize| be32(bytes, whole.transport + p);
            prop_assert_eq!(at(s, 4), at(&whole.packet, 4).wrapping_add((k * step) as u32));
            // Everything except lengths, identification, checksums, sequence number and flags is unchanged.
            let mut same = s[..whole.header].to_vec();
            same[whole.transport + 4..whole.transport + 8]
                .copy_from_slice(&whole.packet[whole.transport + 4..whole.transport + 8]);
            for p in [whole.transport + 13, whole.transport + 16, whole.transport + 17] {
                same[p] = whole.packet[p];
            }
            let changed = if same[0] >> 4 == 4 { vec![2, 3, 4, 5, 10, 11] } else { vec![4, 5] };
            for p in changed {
                same[p] = whole.packet[p];
            }
            prop_assert_eq!(&same[..], &whole.packet[..whole.header]);
            let (flags, all) = (s[whole.transport + 13], whole.packet[whole.transport + 13]);
            let taken = if k > 0 { CWR } else { 0 } | if last { 0 } else { FIN | PSH };
            prop_assert_eq!(flags, all & !taken);
        }
    }

    #[test]
    fn lengths_and_checksums_are_those_of_the_wire(whole in super_packet(), size in 1..3000u16) {
        for (k, mut s) in cut(&whole, size).into_iter().enumerate() {
            if s[0] >> 4 == 4 {
                prop_assert_eq!(usize::from(be16(&s, 2)), s.len());
                prop_assert_eq!(be16(&s, 4), be16(&whole.packet, 4).wrapping_add(k as u16));
                prop_assert_eq!(rfc1071(&s[..whole.transport]), 0);
            } else {
                prop_assert_eq!(usize::from(be16(&s, 4)), s.len() - 40);
            }
            let sum = rfc1071(&s[whole.transport..]);
            s[whole.transport + 16..whole.transport + 18].copy_from_slice(&sum.to_be_bytes());
            let mut summed = pseudo_header(&s, whole.transport);
            summed.extend_from_slice(&s[whole.transport..]);
            prop_assert_eq!(rfc1071(&summed), 0);
        }
    }

    #[test]
    fn hostile_headers_never_panic(
        mut packet in vec(any::<u8>(), 0..300),
        version in 0..16u8,
        anywhere in any::<u16>(),
        near in 0..100u16,
        size in any::<u16>(),
    ) {
        if let Some(first) = packet.first_mut() {
            *first = version << 4 | *first & 15;
        }
        for start in [anywhere, near] {
            for offset in [16, size] {
                let checksum = Checksum::Partial { start, offset };
                for step in [size, near] {
                    let mut bytes = 0;
                    let shown = segment(&packet, checksum, step, &mut Vec::new(), &mut |wire| {
                        bytes += wire.payload.len();
                    });
                    prop_assert!(shown.is_ok() || bytes == 0);
                    prop_assert!(bytes <= packet.len());
                }
            }
        }
        let whole = segment(&packet, Checksum::Full, 100, &mut Vec::new(), &mut |_| ());
        prop_assert!(whole.is_err());
    }
}

/// A UDP super-packet: one header with the sum of a pseudo-header (RFC 768) that contains the length of the whole.
fn udp_super(v6: bool, payload: &[u8]) -> (Vec<u8>, Checksum) {
    let length = (8 + payload.len()) as u16;
    let mut packet: Vec<u8> = if v6 {
        let mut ip = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
        ip[4..6].copy_from_slice(&length.to_be_bytes());
        ip.extend((0..32).map(|i| i * 7));
        ip
    } else {
        let mut ip = vec![0x45, 2, 0, 0, 0xff, 0xff, 0x40, 0, 64, 17, 0, 0];
        ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        ip[2..4].copy_from_slice(&(20 + length).to_be_bytes());
        let sum = rfc1071(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    };
    let start = packet.len();
    packet.extend([0x30, 0x39, 1, 187]);
    packet.extend(length.to_be_bytes());
    packet.extend((!rfc1071(&udp_pseudo(&packet, length))).to_be_bytes());
    packet.extend_from_slice(payload);
    let checksum = Checksum::Partial {
        start: start as u16,
        offset: 6,
    };
    (packet, checksum)
}

/// Addresses, protocol and length; lengths here have 16 bits in both IP versions.
fn udp_pseudo(packet: &[u8], length: u16) -> Vec<u8> {
    let addresses = if packet[0] >> 4 == 4 {
        &packet[12..20]
    } else {
        &packet[8..40]
    };
    [addresses, &[0, 17], &length.to_be_bytes()].concat()
}

#[test]
fn datagrams_that_were_handed_over_as_one_are_whole_each() {
    let payload: Vec<u8> = (0..5_003u32).map(|i| (i * i) as u8).collect();
    for v6 in [false, true] {
        let (packet, checksum) = udp_super(v6, &payload);
        let mut cut = Vec::new();
        let count = datagrams(&packet, checksum, 1200, &mut Vec::new(), &mut |wire| {
            cut.push([wire.header, wire.payload].concat());
        });
        assert_eq!((count.unwrap(), cut.len()), (5, 5));
        let start = if v6 { 40 } else { 20 };
        let mut whole = Vec::new();
        for (k, one) in cut.iter().enumerate() {
            let length = u16::from_be_bytes([one[start + 4], one[start + 5]]);
            assert_eq!(usize::from(length), one.len() - start);
            if v6 {
                assert_eq!(u16::from_be_bytes([one[4], one[5]]), length);
            } else {
                assert_eq!(usize::from(u16::from_be_bytes([one[2], one[3]])), one.len());
                assert_eq!(rfc1071(&one[..20]), 0, "packet {k}");
                // Identification numbers continue, and wrap around.
                assert_eq!(
                    u16::from_be_bytes([one[4], one[5]]),
                    0xffff_u16.wrapping_add(k as u16)
                );
            }
            // After the device's computation, the checksum is correct.
            let mut done = one.clone();
            let sum = rfc1071(&done[start..]);
            done[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
            let all = [udp_pseudo(&done, length), done[start..].to_vec()].concat();
            assert_eq!(rfc1071(&all), 0, "packet {k}, version 6: {v6}");
            whole.extend_from_slice(&one[start + 8..]);
        }
        assert_eq!(whole, payload);
        // TCP's checksum position, no space for the header, no payload per packet: these are refused, and nothing is
        // shown.
        let nothing = &mut |_: IpPacket<'_>| panic!("shown");
        let wrong = Checksum::Partial {
            start: start as u16,
            offset: 16,
        };
        assert!(datagrams(&packet, wrong, 1200, &mut Vec::new(), nothing).is_err());
        assert!(datagrams(&packet, Checksum::Full, 1200, &mut Vec::new(), nothing).is_err());
        assert!(datagrams(&packet, checksum, 0, &mut Vec::new(), nothing).is_err());
        for short in 0..start + 8 {
            assert!(datagrams(&packet[..short], checksum, 1200, &mut Vec::new(), nothing).is_err());
        }
    }
}
