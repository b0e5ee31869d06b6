//! pcap and snoop files.

use crate::build::*;
use crate::{read, read_clean};
use swell_capture::{Format, LinkType, Reader};

#[test]
fn both_byte_orders_and_both_units_give_the_same_nanoseconds() {
    let frame = web_frames().remove(0);
    for order in Order::BOTH {
        for (magic, fraction) in [(MICROS, 123_456), (NANOS, 123_456_000)] {
            let mut file = pcap_header(order, magic, 4, 96, 1);
            let len = frame.len() as u32;
            // More bytes on the wire than captured, and more than the snap length, as in header-only traces.
            let header = [1_700_000_000, fraction, len, 1514];
            file.extend(pcap_record(order, header, &frame));
            let (packets, counts) = read_clean(&file);
            assert_eq!(packets[0].time, 1_700_000_000_123_456_000);
            assert_eq!(packets[0].captured_len, len);
            assert_eq!(packets[0].wire_len, 1514);
            assert_eq!((counts.records, counts.cut), (1, 1));
            assert_eq!(counts.wire_bytes, 1514);
            assert_eq!(counts.captured_bytes, u64::from(len));
        }
    }
}

#[test]
fn seconds_are_unsigned() {
    let frame = web_frames().remove(0);
    let mut file = pcap_header(Order::Little, NANOS, 4, 96, 1);
    let len = frame.len() as u32;
    file.extend(pcap_record(
        Order::Little,
        [u32::MAX, 999_999_999, len, len],
        &frame,
    ));
    assert_eq!(read_clean(&file).0[0].time, 4_294_967_295_999_999_999);
}

#[test]
fn the_variant_with_longer_record_headers_is_read() {
    let frame = web_frames().remove(0);
    let mut file = pcap_header(Order::Little, 0xa1b2_cd34, 4, 65535, 1);
    for i in 0..2 {
        let len = frame.len() as u32;
        let mut record = pcap_record(Order::Little, [i, 5, len, len], &[]);
        record.extend([3, 0, 0, 0, 0, 8, 0, 0]);
        record.extend(&frame);
        file.extend(record);
    }
    let (packets, _) = read_clean(&file);
    assert_eq!(packets.len(), 2);
    assert_eq!(packets[1].time, 1_000_005_000);
}

#[test]
fn lengths_of_old_versions_are_swapped_back() {
    let frame = web_frames().remove(0);
    let len = frame.len() as u32;
    // Swapped before version 2.3; in 2.3 only if the usual order is impossible.
    for (minor, lengths) in [
        (2, [1500, len]),
        (3, [1500, len]),
        (3, [len, 1500]),
        (4, [len, 1500]),
    ] {
        let mut file = pcap_header(Order::Big, MICROS, minor, 96, 1);
        let header = [1, 1, lengths[0], lengths[1]];
        file.extend(pcap_record(Order::Big, header, &frame));
        let (packets, _) = read_clean(&file);
        assert_eq!((packets[0].captured_len, packets[0].wire_len), (len, 1500));
    }
}

#[test]
fn bits_above_the_link_type_are_not_part_of_it() {
    let mut file = pcap_header(Order::Little, MICROS, 4, 96, 0x4400_0001);
    let frame = web_frames().remove(0);
    let len = frame.len() as u32;
    file.extend(pcap_record(Order::Little, [1, 1, len, len], &frame));
    let reader = Reader::new(&file[..]).unwrap();
    assert_eq!(reader.interfaces()[0].link, LinkType::ETHERNET);
    assert_eq!(reader.interfaces()[0].snaplen, 96);
    assert_eq!(reader.interfaces()[0].ticks_per_second, Some(1_000_000));
    assert_eq!(read_clean(&file).0.len(), 1);
}

#[test]
fn impossible_fractions_are_counted() {
    let frame = web_frames().remove(0);
    let len = frame.len() as u32;
    let mut file = pcap_header(Order::Little, MICROS, 4, 96, 1);
    for (seconds, fraction) in [(5, 0), (4, 999_999), (4, 999_999), (4, 1_000_000), (5, 0)] {
        file.extend(pcap_record(
            Order::Little,
            [seconds, fraction, len, len],
            &frame,
        ));
    }
    let (packets, counts) = read_clean(&file);
    assert_eq!(counts.odd_times, 1);
    assert_eq!(packets[3].time, packets[4].time);
}

#[test]
fn a_header_and_nothing_else_is_an_empty_trace() {
    let (packets, counts) = read_clean(&pcap(1, &[]));
    assert!(packets.is_empty());
    assert_eq!(counts.records, 0);
}

#[test]
fn snoop_files_are_read() {
    let file = snoop(&web_frames());
    assert_eq!(Reader::new(&file[..]).unwrap().format(), Format::Snoop);
    let (packets, counts) = read_clean(&file);
    assert_eq!(packets.len(), 6);
    assert_eq!(counts.tcp, 6);
    assert_eq!(packets[3].time, 1_000_000_003_000);
    // The padding of the last record is often missing.
    let odd = snoop(&[ethernet(0x0800, &v4(17, &udp(b"x")))]);
    assert_eq!(read_clean(&odd[..odd.len() - 1]).0.len(), 1);
    let error = read(&odd[..odd.len() - 2]).2.expect("the frame is cut");
    assert_eq!(error.offset, 16);
}
