//! IPv4 and IPv6.

use crate::build::*;
use crate::dissect_whole;
use std::net::IpAddr;
use swell_capture::{Frame, LinkType, Skip, Transport, dissect};

const UDP: Transport = Transport::Udp {
    src_port: 53,
    dst_port: 4000,
    payload: 5,
};

fn raw(ip: &[u8]) -> Result<swell_capture::Packet, Skip> {
    dissect_whole(101, ip)
}

#[test]
fn addresses_ttl_and_ecn_of_both_versions() {
    let four = raw(&v4(17, &udp(b"hello"))).unwrap();
    assert_eq!(four.src, "10.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!(four.dst, "10.0.0.2".parse::<IpAddr>().unwrap());
    assert_eq!((four.ttl, four.ecn, four.ip_len), (64, 2, 33));
    let six = raw(&v6(17, &udp(b"hello"))).unwrap();
    assert_eq!(six.src, "2001:db8::1".parse::<IpAddr>().unwrap());
    assert_eq!(six.dst, "2001:db8::2".parse::<IpAddr>().unwrap());
    assert_eq!((six.ttl, six.ecn, six.ip_len), (63, 3, 53));
}

#[test]
fn options_move_the_transport_header() {
    let packet = raw(&v4_with(17, 0, &[1; 12], &udp(b"hello"))).unwrap();
    assert_eq!(packet.transport, UDP);
    assert_eq!(packet.ip_len, 45);
}

#[test]
fn padding_behind_the_packet_is_not_payload() {
    let mut frame = ethernet(0x0800, &v4(6, &tcp(0x10, &[], &[])));
    frame.resize(60, 0);
    let packet = dissect_whole(1, &frame).unwrap();
    assert_eq!((packet.wire_len, packet.ip_len), (60, 40));
    let Transport::Tcp(tcp) = packet.transport else {
        panic!("{:?}", packet.transport);
    };
    assert_eq!(tcp.payload, 0);
}

#[test]
fn a_first_fragment_has_a_transport_header_and_later_ones_have_none() {
    let first = raw(&v4_with(17, 0x2000, &[], &udp(b"hello"))).unwrap();
    assert_eq!(first.transport, UDP);
    let later = raw(&v4_with(17, 0x2001, &[], &udp(b"hello"))).unwrap();
    assert_eq!(later.transport, Transport::Fragment);
    let do_not_fragment = raw(&v4_with(17, 0x4000, &[], &udp(b"hello"))).unwrap();
    assert_eq!(do_not_fragment.transport, UDP);

    let fragment = |offset: [u8; 2]| {
        [
            &[17, 0, offset[0], offset[1], 0, 0, 0, 9][..],
            &udp(b"hello"),
        ]
        .concat()
    };
    assert_eq!(raw(&v6(44, &fragment([0, 1]))).unwrap().transport, UDP);
    assert_eq!(
        raw(&v6(44, &fragment([0, 8]))).unwrap().transport,
        Transport::Fragment
    );
}

/// The protocol and the identification, with which the first fragment and later ones find each other.
#[test]
fn fragments_of_one_datagram_have_a_number_in_common() {
    let v4 = |flags: u16| raw(&v4_with(17, flags, &[], &udp(b"hello"))).unwrap();
    let [whole, first, later, last] = [0x4000, 0x2000, 0x2001, 0x0003].map(v4);
    assert_eq!(whole.fragment, 0);
    assert!(first.fragment != 0);
    assert_eq!([later.fragment, last.fragment], [first.fragment; 2]);
    assert_eq!(
        [first, later, last].map(|p| p.mark >> 32 & 0xffff),
        [0, 1, 3]
    );
    let v6_at = |field: u16, id: u8| {
        let [a, b] = field.to_be_bytes();
        let header = [17, 0, a, b, 0, 1, 0, id];
        raw(&v6(44, &[&header[..], &udp(b"hello")].concat())).unwrap()
    };
    let [begins, follows, other] = [v6_at(1, 9), v6_at(8 * 185, 9), v6_at(1, 8)];
    assert_eq!(begins.transport, UDP);
    assert!(begins.fragment != 0 && begins.fragment != other.fragment);
    assert_eq!(begins.fragment, follows.fragment);
    assert_eq!((follows.mark >> 48, follows.mark >> 32 & 0xffff), (9, 185));
    // A fragment header without fragments (RFC 6946).
    assert_eq!(v6_at(0, 9).fragment, 0);
}

#[test]
fn a_first_fragment_carries_the_bytes_of_the_fragment_not_of_the_datagram() {
    let mut datagram = udp(b"hello");
    datagram[4..6].copy_from_slice(&4000u16.to_be_bytes());
    let first = raw(&v4_with(17, 0x2000, &[], &datagram)).unwrap();
    assert_eq!(first.transport, UDP);
}

#[test]
fn extension_headers_are_walked() {
    let inner = udp(b"hello");
    // Hop-by-hop (16 bytes), destination options, routing, and authentication (24 bytes).
    let mut chain = vec![60, 1];
    chain.extend([0; 14]);
    chain.extend([43, 0, 0, 0, 0, 0, 0, 0]);
    chain.extend([51, 0, 0, 0, 0, 0, 0, 0]);
    chain.extend([17, 4]);
    chain.extend([0; 22]);
    chain.extend(&inner);
    let whole = v6(0, &chain);
    assert_eq!(raw(&whole).unwrap().transport, UDP);
    // If the packet is cut inside the chain, the header in which it ends is reported.
    for (end, header) in [(41, 0), (50, 0), (60, 60), (65, 43), (74, 51), (96, 17)] {
        let cut = dissect(&Frame {
            time: 0,
            interface: 0,
            heading: swell_capture::Heading::Unknown,
            link: LinkType::RAW,
            wire_len: whole.len() as u32,
            data: &whole[..end],
        });
        assert_eq!(
            cut.unwrap().transport,
            Transport::Truncated(header),
            "{end}"
        );
    }
}

#[test]
fn protocols_that_are_not_followed_are_named_by_number() {
    for protocol in [4, 41, 47, 50, 59, 89, 132] {
        let inner = v4(17, &udp(b"x"));
        assert_eq!(
            raw(&v6(protocol, &inner)).unwrap().transport,
            Transport::Other(protocol)
        );
        assert_eq!(
            raw(&v4(protocol, &inner)).unwrap().transport,
            Transport::Other(protocol)
        );
    }
    assert_eq!(raw(&v4(1, &[8, 0])).unwrap().transport, Transport::Icmp);
    assert_eq!(raw(&v6(58, &[128, 0])).unwrap().transport, Transport::Icmp);
}

#[test]
fn a_length_of_zero_means_what_is_left_of_the_frame() {
    // As captured with segmentation offload: 70000 bytes on the wire, of which the headers were captured.
    let mut four = v4(6, &tcp(0x10, &[], &[]));
    four[2..4].copy_from_slice(&[0, 0]);
    let mut six = v6(6, &tcp(0x10, &[], &[]));
    six[4..6].copy_from_slice(&[0, 0]);
    for (ether_type, ip, headers) in [(0x0800, four, 40), (0x86dd, six, 60)] {
        let frame = ethernet(ether_type, &ip);
        let packet = dissect(&Frame {
            time: 0,
            interface: 0,
            heading: swell_capture::Heading::Unknown,
            link: LinkType::ETHERNET,
            wire_len: 70_014,
            data: &frame,
        })
        .unwrap();
        assert_eq!(packet.ip_len, 70_000);
        let Transport::Tcp(tcp) = packet.transport else {
            panic!("{:?}", packet.transport);
        };
        assert_eq!(tcp.payload, 70_000 - headers);
    }
}

#[test]
fn a_jumbogram_has_the_length_of_its_option() {
    let mut chain = vec![6, 0, 0xc2, 4];
    chain.extend(66_000u32.to_be_bytes());
    chain.extend(tcp(0x10, &[], &[]));
    let mut ip = v6(0, &chain);
    ip[4..6].copy_from_slice(&[0, 0]);
    let mut frame = Frame {
        time: 0,
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: LinkType::IPV6,
        wire_len: 66_040,
        data: &ip,
    };
    let packet = dissect(&frame).unwrap();
    assert_eq!(packet.ip_len, 66_040);
    let Transport::Tcp(tcp) = packet.transport else {
        panic!("{:?}", packet.transport);
    };
    assert_eq!(tcp.payload, 66_000 - 8 - 20);
    // A length that does not fit the frame is invalid.
    frame.wire_len = 66_039;
    assert_eq!(dissect(&frame), Err(Skip::BadIp));
}

#[test]
fn headers_that_contradict_themselves_are_bad() {
    let mut short_header = v4(17, &udp(b"hello"));
    short_header[0] = 0x44;
    assert_eq!(raw(&short_header), Err(Skip::BadIp));
    let mut short_total = v4(17, &udp(b"hello"));
    short_total[2..4].copy_from_slice(&19u16.to_be_bytes());
    assert_eq!(raw(&short_total), Err(Skip::BadIp));
    assert_eq!(raw(&v4(17, &[])[..19]), Err(Skip::ShortIp));
    assert_eq!(raw(&v6(17, &[])[..39]), Err(Skip::ShortIp));
    // The extension header is longer than the packet.
    let packet = raw(&v6(60, &[17, 9, 0, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!(packet.transport, Transport::Other(60));
}
