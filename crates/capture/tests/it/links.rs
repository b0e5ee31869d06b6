//! Link layers.

use crate::build::*;
use crate::{dissect_whole, read_clean};
use swell_capture::{LinkType, Skip, Transport};

/// Checks that the frame yields the UDP packet that it contains, for both IP versions.
fn holds_udp(link: u16, before: &[u8], ip: &[u8]) {
    let mut frame = before.to_vec();
    frame.extend(ip);
    let packet = dissect_whole(link, &frame).unwrap_or_else(|e| panic!("link {link}: {e:?}"));
    assert_eq!(packet.ip_len as usize, ip.len(), "link {link}");
    assert_eq!(
        packet.transport,
        Transport::Udp {
            src_port: 53,
            dst_port: 4000,
            payload: 5
        }
    );
    assert_eq!(packet.wire_len as usize, frame.len());
    // A frame that is cut anywhere gives a reason, or a packet with the same addresses.
    for end in 0..frame.len() {
        if let Ok(cut) = dissect_whole(link, &frame[..end]) {
            assert_eq!((cut.src, cut.dst), (packet.src, packet.dst));
        }
    }
}

#[test]
fn ip_is_found_behind_every_link_layer() {
    let (four, six) = (v4(17, &udp(b"hello")), v6(17, &udp(b"hello")));
    let mac = [2u8; 12];
    let ether = |rest: &[u8]| [&mac[..], rest].concat();
    let sll = |protocol: [u8; 2]| [&[0u8; 14][..], &protocol].concat();
    let sll2 = |protocol: [u8; 2]| [&protocol[..], &[0u8; 18]].concat();

    let fours: Vec<(u16, Vec<u8>)> = vec![
        (1, ether(&[8, 0])),
        // 802.1Q; 802.1ad with 802.1Q inside; three tags with old numbers.
        (1, ether(&[0x81, 0, 0, 5, 8, 0])),
        (1, ether(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        (
            1,
            ether(&[0x91, 0, 0, 5, 0x91, 0, 0, 5, 0x81, 0, 0, 6, 8, 0]),
        ),
        // One label, two labels.
        (1, ether(&[0x88, 0x47, 0, 1, 1, 64])),
        (1, ether(&[0x88, 0x48, 0, 1, 0, 64, 0, 2, 1, 64])),
        // A PPPoE session with two-byte and with compressed protocol field; PPPoE in a VLAN; MPLS over PPP over
        // PPPoE.
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21])),
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0x21])),
        (
            1,
            ether(&[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21]),
        ),
        (
            1,
            ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 2, 0x81, 0, 1, 1, 64]),
        ),
        // 802.3 length, 802.2 SNAP.
        (1, ether(&[0, 41, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0])),
        (51, vec![0x11, 0, 0, 1, 0, 9, 0, 0x21]),
        (9, vec![0xff, 3, 0, 0x21]),
        (9, vec![0, 0x21]),
        (9, vec![0x21]),
        (50, vec![0xff, 3, 0, 0x21]),
        (9, vec![0xff, 3, 2, 0x81, 0, 1, 1, 64]),
        (9, vec![0x0f, 0, 8, 0]),
        (50, vec![0x8f, 0, 8, 0]),
        (104, vec![0x0f, 0, 8, 0]),
        (104, vec![0x8f, 0, 0x88, 0x47, 0, 1, 1, 64]),
        (113, sll([8, 0])),
        (113, [sll([0x81, 0]), vec![0, 5, 8, 0]].concat()),
        (276, sll2([8, 0])),
        (276, [sll2([0x81, 0]), vec![0, 5, 8, 0]].concat()),
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (101, vec![]),
        (12, vec![]),
        (14, vec![]),
        (228, vec![]),
    ];
    for (link, before) in fours {
        holds_udp(link, &before, &four);
    }

    let sixes: Vec<(u16, Vec<u8>)> = vec![
        (1, ether(&[0x86, 0xdd])),
        (1, ether(&[0x81, 0, 0, 5, 0x86, 0xdd])),
        (1, ether(&[0x88, 0x47, 0, 1, 1, 64])),
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x57])),
        (9, vec![0xff, 3, 0, 0x57]),
        (113, sll([0x86, 0xdd])),
        (276, sll2([0x86, 0xdd])),
        (0, vec![10, 0, 0, 0]),
        (0, vec![0, 0, 0, 24]),
        (0, vec![28, 0, 0, 0]),
        (108, vec![0, 0, 0, 30]),
        (101, vec![]),
        (229, vec![]),
    ];
    for (link, before) in sixes {
        holds_udp(link, &before, &six);
    }
}

#[test]
fn every_supported_link_type_is_known_by_name() {
    for link in LinkType::SUPPORTED {
        assert!(link.name().is_some(), "{}", link.0);
        assert_ne!(dissect_whole(link.0, &[]), Err(Skip::UnsupportedLink));
    }
    assert_eq!(LinkType::ETHERNET.to_string(), "Ethernet (1)");
    assert_eq!(LinkType(999).to_string(), "link type 999");
}

#[test]
fn what_is_not_ip_is_said_to_be_so() {
    let cases: [(u16, Vec<u8>, Skip); 12] = [
        // ARP; PPPoE discovery; a pseudowire with a control word; spanning tree over 802.2.
        (1, ethernet(0x0806, &[0; 28]), Skip::NotIp),
        (1, ethernet(0x8863, &[0x11, 9, 0, 0, 0, 0]), Skip::NotIp),
        (
            1,
            ethernet(0x8864, &[0x11, 9, 0, 0, 0, 0, 0, 0x21]),
            Skip::NotIp,
        ),
        (1, ethernet(0x8847, &[0, 1, 1, 64, 0, 0, 0, 0]), Skip::NotIp),
        (1, ethernet(38, &[0x42, 0x42, 3, 0, 0, 0, 0]), Skip::NotIp),
        (9, vec![0xff, 3, 0xc0, 0x21, 1], Skip::NotIp),
        (0, vec![7, 0, 0, 0, 0x45], Skip::NotIp),
        (101, vec![0x50; 40], Skip::NotIp),
        // The EtherType says IP, but the first nibble does not.
        (1, ethernet(0x0800, &[0x65; 40]), Skip::BadIp),
        (1, ethernet(0x86dd, &v4(17, &udp(b""))), Skip::BadIp),
        (1, vec![0; 13], Skip::ShortLink),
        (127, vec![0; 60], Skip::UnsupportedLink),
    ];
    for (link, frame, reason) in cases {
        assert_eq!(dissect_whole(link, &frame), Err(reason), "{frame:02x?}");
    }
}

#[test]
fn unsupported_link_types_are_kept_by_number() {
    let (packets, counts) = read_clean(&pcap(127, &web_frames()));
    assert!(packets.is_empty());
    assert_eq!(counts.skipped(Skip::UnsupportedLink), 6);
    assert_eq!(counts.unsupported_links[&LinkType(127)], 6);
}
