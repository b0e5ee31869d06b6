//! pcapng files.

use crate::build::*;
use crate::read_clean;
use swell_base::Code;
use swell_capture::{LinkType, Reader, Skip};

fn frame() -> Vec<u8> {
    web_frames().remove(0)
}

#[test]
fn packets_of_every_block_type_are_read_in_both_byte_orders() {
    for order in Order::BOTH {
        let mut file = section(order);
        file.extend(interface(order, 1, 0, &[]));
        file.extend(enhanced(order, 0, 5_000_001, &frame()));
        file.extend(obsolete(order, 0, 5_000_002, &frame()));
        file.extend(simple(order, frame().len() as u32, &frame()));
        let (packets, counts) = read_clean(&file);
        let times: Vec<i64> = packets.iter().map(|p| p.time).collect();
        // A simple packet block has no time, so it gets that of the previous packet.
        assert_eq!(times, [5_000_001_000, 5_000_002_000, 5_000_002_000]);
        assert_eq!((counts.records, counts.without_time), (3, 1));
    }
}

/// Options of an interface, a time in its ticks, that time in nanoseconds, and ticks per second.
type Case<'a> = (&'a [(u16, &'a [u8])], u64, i64, Option<u64>);

#[test]
fn every_resolution_and_offset_becomes_nanoseconds() {
    let offset = 100i64.to_le_bytes();
    let negative = (-3i64).to_le_bytes();
    let cases: [Case<'_>; 9] = [
        (&[], 1_500_000, 1_500_000_000, Some(1_000_000)),
        (
            &[(9, &[9])],
            1_500_000_001,
            1_500_000_001,
            Some(1_000_000_000),
        ),
        (&[(9, &[3])], 1_501, 1_501_000_000, Some(1_000)),
        (&[(9, &[0])], 2, 2_000_000_000, Some(1)),
        // Resolutions beyond nanoseconds lose precision.
        (&[(9, &[12])], 1_999, 1, Some(1_000_000_000_000)),
        (&[(9, &[127])], u64::MAX, 0, None),
        // 2^-20 s, slightly less than a microsecond.
        (&[(9, &[0x80 | 20])], 3 << 19, 1_500_000_000, Some(1 << 20)),
        // An option that is not needed comes first; its length requires padding.
        (
            &[(2, b"eth0/"), (9, &[9]), (14, &offset)],
            7,
            100_000_000_007,
            Some(1_000_000_000),
        ),
        (&[(14, &negative)], 0, -3_000_000_000, Some(1_000_000)),
    ];
    for (options, ticks, nanos, per_second) in cases {
        let mut file = section(Order::Little);
        file.extend(interface(Order::Little, 1, 0, options));
        file.extend(enhanced(Order::Little, 0, ticks, &frame()));
        let mut reader = Reader::new(&file[..]).unwrap();
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!(packet.time, nanos, "{options:?}");
        assert_eq!(reader.interfaces()[0].ticks_per_second, per_second);
        assert_eq!(reader.counts().odd_times, 0);
    }
}

#[test]
fn a_time_that_does_not_fit_is_counted_and_replaced_by_the_one_before() {
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, 1, 0, &[(9, &[0])]));
    file.extend(enhanced(Order::Little, 0, 3, &frame()));
    file.extend(enhanced(Order::Little, 0, 1 << 40, &frame()));
    let (packets, counts) = read_clean(&file);
    assert_eq!(packets[1].time, 3_000_000_000);
    assert_eq!(counts.odd_times, 1);
}

#[test]
fn interfaces_keep_their_own_link_type_clock_and_number_across_sections() {
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, 1, 0, &[]));
    file.extend(interface(Order::Little, 101, 64, &[(9, &[9])]));
    file.extend(enhanced(Order::Little, 1, 11, &v4(17, &udp(b"abc"))));
    file.extend(enhanced(Order::Little, 0, 12, &frame()));
    // A new section discards the previous interfaces, and may have another byte order.
    file.extend(section(Order::Big));
    file.extend(interface(Order::Big, 113, 0, &[]));
    let mut cooked = vec![0; 14];
    cooked.extend([0x86, 0xdd]);
    cooked.extend(v6(17, &udp(b"abcd")));
    file.extend(enhanced(Order::Big, 0, 13, &cooked));
    file.extend(enhanced(Order::Big, 1, 14, &frame()));

    let mut reader = Reader::new(&file[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(p) = reader.next_packet().unwrap() {
        seen.push((p.interface, p.time, p.ip_len));
    }
    assert_eq!(seen, [(1, 11, 31), (0, 12_000, 60), (2, 13_000, 52)]);
    let links: Vec<LinkType> = reader.interfaces().iter().map(|i| i.link).collect();
    assert_eq!(
        links,
        [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL]
    );
    // Interface 1 only existed in the first section.
    assert_eq!(reader.counts().skipped(Skip::BadRecord), 1);
    assert_eq!(reader.counts().records, 4);
}

#[test]
fn a_simple_packet_is_as_long_as_the_snap_length_lets_it_be() {
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, 1, 58, &[]));
    file.extend(simple(Order::Little, 1514, &frame()[..58]));
    let (packets, counts) = read_clean(&file);
    assert_eq!((packets[0].captured_len, packets[0].wire_len), (58, 1514));
    assert_eq!(counts.cut, 1);
}

#[test]
fn blocks_that_are_not_needed_are_counted_apart_from_unknown_ones() {
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, 1, 0, &[]));
    for kind in [4, 5, 10, 0x0bad, 0x4000_0bad, 0x1234, 0x8000_0001] {
        file.extend(block(Order::Little, kind, b"whatever"));
    }
    file.extend(enhanced(Order::Little, 0, 1, &frame()));
    let (packets, counts) = read_clean(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!((counts.other_blocks, counts.unknown_blocks), (5, 2));
}

#[test]
fn a_packet_that_claims_more_than_its_block_is_skipped_and_the_next_one_read() {
    let mut liar = enhanced(Order::Little, 0, 1, &frame());
    liar[20..24].copy_from_slice(&1_000_000u32.to_le_bytes());
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, 1, 0, &[]));
    file.extend(liar);
    file.extend(block(Order::Little, 6, &[0; 8]));
    file.extend(enhanced(Order::Little, 0, 2, &frame()));
    let (packets, counts) = read_clean(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!(counts.skipped(Skip::BadRecord), 2);
    assert_eq!(counts.records, 3);
}

#[test]
fn a_packet_before_any_interface_is_skipped() {
    let mut file = section(Order::Little);
    file.extend(enhanced(Order::Little, 0, 1, &frame()));
    file.extend(simple(Order::Little, 1, &frame()));
    let (packets, counts) = read_clean(&file);
    assert!(packets.is_empty());
    assert_eq!(counts.skipped(Skip::BadRecord), 2);
}

/// Statistics count from the beginning of the capture: the last ones of each interface count.
#[test]
fn packets_that_the_capture_system_dropped_are_told() {
    for order in Order::BOTH {
        let statistics = |interface: u32, options: &[(u16, u64)]| {
            let mut body = order.u32(interface).to_vec();
            body.extend([0; 8]);
            for (code, value) in options {
                body.extend(order.u16(*code));
                body.extend(order.u16(8));
                body.extend(order.u64(*value));
            }
            body.extend([0; 4]);
            block(order, 5, &body)
        };
        let mut file = section(order);
        file.extend(interface(order, 1, 0, &[]));
        file.extend(interface(order, 1, 0, &[]));
        file.extend(enhanced(order, 0, 1, &frame()));
        // Packets received and accepted by the filter are not lost.
        file.extend(statistics(0, &[(4, 90), (5, 3), (6, 80), (7, 2)]));
        file.extend(statistics(1, &[(5, 100)]));
        file.extend(statistics(0, &[(5, 7)]));
        // No such interface.
        file.extend(statistics(9, &[(5, 1_000)]));
        let (_, counts) = read_clean(&file);
        assert_eq!((counts.dropped, counts.other_blocks), (109, 4));
        // A new section begins anew.
        file.extend(section(order));
        file.extend(interface(order, 1, 0, &[]));
        file.extend(statistics(0, &[(7, 1)]));
        let both = read_clean(&file).1;
        assert_eq!(both.dropped, 110);
        assert_eq!(both.doubts()[0].code, Code::CaptureDropped);
    }
}
