//! Seeds of the flow record fuzz target.

use std::collections::BTreeMap;

use super::messages::{PLAIN, ipfix, plain, set, template, v9};
use crate::build::{Order, ethernet, pcap, udp, v4};
use swell_capture::flow::{FlowDirection, FlowRecord, IpfixWriter, Reverse};

/// A file of each format.
pub fn seeds() -> BTreeMap<&'static str, Vec<u8>> {
    let data = set(256, &[plain(3, 180), plain(1, 40)].concat());
    let sets = [set(2, &template(256, &PLAIN)), data.clone()];
    let variable = [
        set(
            2,
            &template(257, &[(8, 4), (12, 4), (82, 65_535), (2, 8), (152, 8)]),
        ),
        set(
            257,
            &[
                10, 0, 0, 1, 10, 0, 0, 2, 2, b'i', b'f', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 15,
                66, 64,
            ],
        ),
    ];
    let mut v5 = vec![0, 5, 0, 1];
    for word in [60_000u32, 1_700_000_000, 5, 9, 0x0001_400a] {
        v5.extend(word.to_be_bytes());
    }
    for word in [
        0x0a00_0001u32,
        0x0a00_0002,
        0,
        0x0001_0002,
        3,
        180,
        1000,
        4000,
        0x9c40_0050,
    ] {
        v5.extend(word.to_be_bytes());
    }
    v5.extend([0, 0x1b, 6, 0, 0, 0, 0, 0, 24, 24, 0, 0]);
    let v9_sets = [set(0, &template(256, &PLAIN)), data];
    let variable_v9 = [
        set(
            0,
            &template(257, &[(8, 4), (12, 4), (82, 65_535), (2, 4), (1, 4)]),
        ),
        set(
            257,
            &[&plain(3, 180)[..8], &[2, b'i', b'f'], &plain(3, 180)[8..]].concat(),
        ),
    ];
    let mut late = ipfix(0, 1, &[set(256, &plain(3, 180))]);
    late.extend(ipfix(1, 1, &[set(2, &template(256, &PLAIN))]));
    BTreeMap::from([
        ("ipfix", ipfix(0, 1, &sets)),
        ("ipfix-variable", ipfix(0, 1, &variable)),
        ("ipfix-late", late),
        ("ipfix-written", written()),
        ("v5", v5),
        ("v9", [v9(9700, 1000, 0, &v9_sets), v9(9800, 1001, 2, &v9_sets)].concat()),
        ("v9-variable", v9(9700, 1000, 0, &variable_v9)),
        ("sflow", sflow()),
        ("pcap", pcap(1, &[ethernet(0x0800, &v4(17, &udp(&ipfix(0, 1, &sets))))])),
        ("nfdump-plain", nfdump(&[])),
        ("nfdump-samplers", nfdump(&samplers())),
        (
            "argus",
            b"StartTime,Dur,Proto,SrcAddr,Sport,DstAddr,Dport,TotPkts,SrcBytes,DstBytes\n\
              1.5,2,tcp,10.0.0.1,4000,10.0.0.2,80,30,700,30000\n"
                .to_vec(),
        ),
        ("csv", b"start,src,dst,protocol,packets,bytes\n1.5,10.0.0.1,10.0.0.2,tcp,3,180\n".to_vec()),
        (
            "zeek-json",
            b"{\"ts\":1.5,\"id.orig_h\":\"10.0.0.1\",\"id.resp_h\":\"10.0.0.2\",\"orig_bytes\":5,\"resp_bytes\":6}\n".to_vec(),
        ),
    ])
}

fn written() -> Vec<u8> {
    let mut writer = IpfixWriter::new(Vec::new());
    let reverse = Reverse {
        first: 5,
        last: 9,
        packets: 2,
        bytes: 100,
        tcp_flags: None,
    };
    let record = FlowRecord {
        first: 5,
        last: 9,
        packets: 3,
        bytes: 180,
        reverse: Some(reverse),
        direction: FlowDirection::Egress,
        ..FlowRecord::BLANK
    };
    writer.record(&record).expect("a vector takes everything");
    writer.finish().expect("a vector takes everything")
}

/// An sFlow datagram with one flow sample that contains one raw header.
fn sflow() -> Vec<u8> {
    let packet = ethernet(0x0800, &v4(17, &udp(b"hello")));
    let padded = packet.len().next_multiple_of(4);
    let mut header = Vec::new();
    for word in [1, packet.len() as u32 + 4, 4, packet.len() as u32] {
        header.extend(u32::to_be_bytes(word));
    }
    header.extend(&packet);
    header.resize(16 + padded, 0);
    let mut sample = Vec::new();
    for word in [7, 1, 100, 700, 0, 1, 2, 1, 1, header.len() as u32] {
        sample.extend(u32::to_be_bytes(word));
    }
    sample.extend(header);
    let mut out = Vec::new();
    for word in [5, 1, 0x0a00_0001, 0, 4, 1000, 1, 1, sample.len() as u32] {
        out.extend(u32::to_be_bytes(word));
    }
    out.extend(sample);
    out
}

/// Sampler records of both layouts.
fn samplers() -> Vec<u8> {
    let le = Order::Little;
    let mut out = Vec::new();
    for n in [15, 24, 1, 1] {
        out.extend(le.u16(n));
    }
    out.extend(le.u64(7));
    out.extend(le.u32(1));
    out.extend(le.u32(99));
    for n in [9, 16] {
        out.extend(le.u16(n));
    }
    out.extend(le.u32(8));
    out.extend(le.u32(512));
    out.extend(le.u16(2));
    out.extend(le.u16(1));
    out
}

/// An uncompressed file of layout 2: other records, and one flow of two elements. Its counters are multiplied if
/// `others` is not empty.
fn nfdump(others: &[u8]) -> Vec<u8> {
    let le = Order::Little;
    let multiplied = if others.is_empty() { 0 } else { 2 };
    let mut generic = Vec::new();
    for n in [1_700_000_000_000u64, 1_700_000_001_000, 0, 3, 180] {
        generic.extend(le.u64(n));
    }
    generic.extend([0x40, 0x9c, 80, 0, 6, 0x1b, 0, 0]);
    let mut record = Vec::new();
    for (kind, element) in [(1, generic), (2, vec![1, 0, 0, 10, 2, 0, 0, 10])] {
        record.extend(le.u16(kind));
        record.extend(le.u16(element.len() as u16 + 4));
        record.extend(element);
    }
    let mut file = vec![0x0c, 0xa5, 2, 0];
    file.resize(40, 0);
    let size = record.len() as u16 + 12;
    file.extend(le.u32(1));
    file.extend(le.u32(u32::from(size) + others.len() as u32));
    file.extend([3, 0, 0, 0]);
    file.extend(others);
    for n in [11, size, 2, 0, 1, multiplied] {
        file.extend(le.u16(n));
    }
    file.extend(record);
    file
}

#[test]
fn every_seed_holds_a_record() {
    for (name, bytes) in seeds() {
        let reader = swell_capture::flow::FlowReader::new(&bytes[..]);
        let read = super::drain(reader.unwrap_or_else(|e| panic!("{name}: {e}")));
        assert!(read.counts.records > 0, "{name}: {:?}", read.counts);
        assert!(read.error.is_none(), "{name}: {:?}", read.error);
    }
}
