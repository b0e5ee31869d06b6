//! TCP with its options, and UDP.

use crate::build::*;
use crate::dissect_whole;
use swell_capture::{Frame, LinkType, Tcp, TcpOptions, Transport, dissect, tcp_options};

fn transport(ip: &[u8]) -> Transport {
    dissect_whole(101, ip)
        .expect("the IP header is well formed")
        .transport
}

#[test]
fn every_field_of_a_tcp_header() {
    let segment = tcp(0x18, &[], b"hello");
    let want = Tcp {
        src_port: 1234,
        dst_port: 80,
        seq: 7,
        ack: 9,
        flags: Tcp::PSH | Tcp::ACK,
        window: 4096,
        payload: 5,
        options: TcpOptions::default(),
    };
    assert_eq!(transport(&v4(6, &segment)), Transport::Tcp(want));
    assert_eq!(transport(&v6(6, &segment)), Transport::Tcp(want));
}

#[test]
fn the_payload_is_what_was_on_the_wire_whatever_was_captured() {
    let whole = ethernet(0x0800, &v4(6, &tcp(0x10, &[1; 12], &[9; 1400])));
    // The header up to the window is sufficient, whether or not the options are cut.
    for captured in [14 + 20 + 16, 54, 60, 66, 96, whole.len()] {
        let packet = dissect(&Frame {
            time: 0,
            interface: 0,
            heading: swell_capture::Heading::Unknown,
            link: LinkType::ETHERNET,
            wire_len: whole.len() as u32,
            data: &whole[..captured],
        });
        match packet.expect("IP is whole").transport {
            Transport::Tcp(tcp) => assert_eq!(tcp.payload, 1400),
            other => panic!("{captured}: {other:?}"),
        }
    }
    let cut = dissect(&Frame {
        time: 0,
        interface: 0,
        heading: swell_capture::Heading::Unknown,
        link: LinkType::ETHERNET,
        wire_len: whole.len() as u32,
        data: &whole[..14 + 20 + 15],
    });
    assert_eq!(cut.unwrap().transport, Transport::Truncated(6));
}

#[test]
fn the_options_of_a_syn() {
    let options = tcp_options(&[
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0xff, 0, 0, 2, 1, 3, 3, 7,
    ]);
    assert_eq!(
        options,
        TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0xff00_0002)),
            sack: [None; 4],
        }
    );
}

#[test]
fn the_usual_timestamps_are_read_the_same_with_and_without_padding() {
    let usual = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let reordered = [8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1];
    assert_eq!(tcp_options(&usual), tcp_options(&reordered));
    assert_eq!(
        tcp_options(&usual).timestamps,
        Some((0x0102_0304, 0x0506_0708))
    );
}

#[test]
fn sack_blocks_up_to_four() {
    for blocks in 0..=4u32 {
        let mut bytes = vec![1, 1, 5, 2 + 8 * blocks as u8];
        for i in 0..blocks {
            bytes.extend((i * 100).to_be_bytes());
            bytes.extend((i * 100 + 50).to_be_bytes());
        }
        let sack = tcp_options(&bytes).sack;
        for (i, block) in (0u32..).zip(sack) {
            let want = (i < blocks).then_some((i * 100, i * 100 + 50));
            assert_eq!(block, want);
        }
    }
}

#[test]
fn malformed_options_end_the_list_and_keep_what_came_before() {
    let with = |tail: &[u8]| tcp_options(&[&[2, 4, 5, 0xb4][..], tail].concat());
    let mss_alone = tcp_options(&[2, 4, 5, 0xb4]);
    assert_eq!(mss_alone.mss, Some(1460));
    // Option lengths of zero, one, beyond the end, and missing; an end of list before more options; a length that is
    // wrong for its kind.
    for tail in [
        &[3, 0, 7][..],
        &[3, 1, 7],
        &[8, 10, 1, 2],
        &[3],
        &[0, 3, 3, 7],
        &[3, 4, 7, 7],
        &[8, 2],
        &[5, 2],
        &[254, 4, 0, 0],
    ] {
        assert_eq!(with(tail), mss_alone, "{tail:?}");
    }
}

#[test]
fn headers_that_contradict_themselves_are_counted_as_such() {
    let mut low_offset = tcp(0x10, &[], &[]);
    low_offset[12] = 4 << 4;
    assert_eq!(transport(&v4(6, &low_offset)), Transport::Other(6));
    let mut high_offset = tcp(0x10, &[], &[]);
    high_offset[12] = 6 << 4;
    assert_eq!(transport(&v4(6, &high_offset)), Transport::Other(6));
    let mut short_udp = udp(b"hello");
    short_udp[4..6].copy_from_slice(&7u16.to_be_bytes());
    assert_eq!(transport(&v4(17, &short_udp)), Transport::Other(17));
    assert_eq!(transport(&v4(17, &udp(b"")[..7])), Transport::Other(17));
}

#[test]
fn udp_payload_comes_from_its_own_length() {
    let payload = |t| match t {
        Transport::Udp { payload, .. } => payload,
        other => panic!("{other:?}"),
    };
    let mut datagram = udp(b"hello");
    datagram.extend([0; 10]);
    assert_eq!(payload(transport(&v4(17, &datagram))), 5);
    // A length of zero, as in offloaded or jumbo datagrams: only the IP length is known.
    datagram[4..6].copy_from_slice(&[0, 0]);
    assert_eq!(payload(transport(&v4(17, &datagram))), 15);
}
