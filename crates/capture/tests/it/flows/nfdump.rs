//! nfdump files built byte by byte: damaged blocks, compressed or not, and biflows.

use std::io::Read;

use super::drain;
use crate::build::Order;
use swell_capture::flow::{FlowReader, FlowSkip, Layer};

const LE: Order = Order::Little;
/// Numbers of the compressions in a file header of layout 2.
const PLAIN: u8 = 0;
const LZ4: u8 = 3;
const ZSTD: u8 = 4;

/// A file of layout 2 with these blocks of records.
fn file(packing: u8, blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = vec![0x0c, 0xa5, 2, 0];
    file.resize(40, 0);
    file[16] = packing;
    for block in blocks {
        file.extend(LE.u32(1));
        file.extend(LE.u32(block.len() as u32));
        file.extend([3, 0, 0, 0]);
        file.extend(block);
    }
    file
}

/// An LZ4 block that consists of literals.
fn lz4(content: &[u8]) -> Vec<u8> {
    let mut packed = vec![0xf0];
    let more = content.len() - 15;
    packed.extend(vec![255; more / 255]);
    packed.push((more % 255) as u8);
    packed.extend(content);
    packed
}

fn element(kind: u16, content: Vec<u8>) -> Vec<u8> {
    let head = [LE.u16(kind), LE.u16(content.len() as u16 + 4)].concat();
    [head, content].concat()
}

fn record(elements: &[Vec<u8>]) -> Vec<u8> {
    let body = elements.concat();
    let mut record = Vec::new();
    for n in [11, body.len() as u16 + 12, elements.len() as u16, 0, 1, 0] {
        record.extend(LE.u16(n));
    }
    record.extend(body);
    record
}

/// Element 1: times in milliseconds, three packets, a source port.
fn generic(first: u64, last: u64, port: u16) -> Vec<u8> {
    let mut content: Vec<u8> = [first, last, 0, 3, 180]
        .iter()
        .flat_map(|n| LE.u64(*n))
        .collect();
    content.extend(LE.u16(port));
    content.extend([80, 0, 6, 0x1b, 0, 0]);
    element(1, content)
}

/// Element 2: IPv4 addresses.
fn addresses() -> Vec<u8> {
    element(2, vec![1, 0, 0, 10, 2, 0, 0, 10])
}

fn records(ports: std::ops::Range<u16>) -> Vec<u8> {
    let record = |port| record(&[generic(1_000, 2_000, port), addresses()]);
    ports.flat_map(record).collect()
}

/// Returns a file in pieces of `step` bytes.
struct Dripping<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.step.min(buffer.len());
        self.bytes.read(&mut buffer[..n])
    }
}

#[test]
fn what_a_bad_size_hides_does_not_depend_on_packing_or_on_how_bytes_arrive() {
    let zeros = |n: usize| vec![0; n];
    let long = [vec![11, 0, 255, 255], zeros(70)].concat();
    for (what, damaged, good) in [
        // With the headers of file and block, this fills a window of 256 KiB.
        (
            "a window of zeros first",
            [zeros(262_092), records(1..5_001)].concat(),
            0,
        ),
        (
            "zeros in between",
            [records(1..101), zeros(300_000), records(101..5_000)].concat(),
            100,
        ),
        (
            "a small size",
            [records(1..2_001), vec![11, 0, 3, 0], records(1..8_000)].concat(),
            2_000,
        ),
        (
            "a size beyond the end",
            [records(1..5_001), long].concat(),
            5_000,
        ),
        (
            "half a header",
            [records(1..5_001), vec![11, 0, 76]].concat(),
            5_000,
        ),
        ("nothing", records(1..5_001), 5_000),
    ] {
        // The following block is read.
        let next = records(60_000..60_010);
        let packed = file(LZ4, &[lz4(&damaged), lz4(&next)]);
        let bad = u64::from(what != "nothing");
        let plain = file(PLAIN, &[damaged, next]);
        let expected = drain(FlowReader::new(&packed[..]).unwrap());
        assert!(expected.error.is_none(), "{what}: {:?}", expected.error);
        assert_eq!(expected.records.len(), good + 10, "{what}");
        for step in [usize::MAX, 100_003, 1_009] {
            let bytes = &plain[..];
            let read = drain(FlowReader::new(Dripping { bytes, step }).unwrap());
            assert!(read.error.is_none(), "{what}: {:?}", read.error);
            assert!(
                read.records == expected.records,
                "{what}, {step} bytes at a time: {} records",
                read.records.len()
            );
            for counts in [&read.counts, &expected.counts] {
                assert_eq!(counts.skipped(FlowSkip::BadRecord).times, bad, "{what}");
            }
        }
    }
}

#[test]
fn a_file_cut_short_in_what_is_hidden_says_so() {
    let whole = file(PLAIN, &[vec![0; 600_000]]);
    for end in [whole.len() - 1, whole.len() - 300_000, 262_144] {
        let read = drain(FlowReader::new(&whole[..end]).unwrap());
        let error = read.error.unwrap_or_else(|| panic!("cut at {end}"));
        assert!(error.offset <= end as u64, "{error}");
    }
}

/// Elements may be in any order, and nfcapd 1.7.1 swaps the times of some flows.
#[test]
fn both_directions_of_a_biflow_have_the_records_times() {
    let counters: Vec<u8> = [1u64, 7, 700].iter().flat_map(|n| LE.u64(*n)).collect();
    let other = element(5, counters);
    for (first, last) in [(1_000, 2_000), (2_000, 1_000)] {
        let generic = generic(first, last, 4_000);
        for elements in [
            [generic.clone(), addresses(), other.clone()],
            [other.clone(), addresses(), generic],
        ] {
            let bytes = file(PLAIN, &[record(&elements)]);
            let read = drain(FlowReader::new(&bytes[..]).unwrap());
            let [record] = read.records[..] else {
                panic!("{:?}", read.counts)
            };
            let back = record
                .reverse
                .expect("there are counters of the other side");
            assert_eq!((back.packets, back.bytes), (7, 700));
            let times = (1_000_000_000, 2_000_000_000);
            assert_eq!((record.first, record.last), times);
            assert_eq!((back.first, back.last), times);
            assert_eq!(read.counts.backward, u64::from(first > last));
        }
    }
}

/// Calls and questions about the time have as many packets and bytes each way. Alone in a file, they keep both directions.
#[test]
fn symmetric_traffic_keeps_both_directions() {
    for (packets, bytes, back) in [(1, 76, [1, 76]), (3_000, 600_000, [2_990, 598_000])] {
        let mut udp = generic(1_000, 2_000, 4_000);
        udp[4 + 24..4 + 32].copy_from_slice(&LE.u64(packets));
        udp[4 + 32..4 + 40].copy_from_slice(&LE.u64(bytes));
        udp[4 + 44] = 17;
        let other = [1, back[0], back[1]].map(|n| LE.u64(n)).concat();
        let one = record(&[udp, addresses(), element(5, other)]);
        let file = file(PLAIN, &[one.repeat(50)]);
        let read = drain(FlowReader::new(&file[..]).unwrap());
        assert_eq!(read.records.len(), 50);
        assert!(read.records.iter().all(|r| {
            let sides = r.reverse.map(|b| [b.packets, b.bytes]);
            (r.packets, r.bytes, sides) == (packets, bytes, Some(back))
        }));
        assert_eq!(read.counts.counted_behind, 0);
    }
}

/// nfcapd stores the payload that Cisco's ASA counts as if it were bytes of packets. Its element 19 has the time and the
/// kind of an event; those of NAT routers and of other firewalls lack one of them, and their bytes are those of packets.
#[test]
fn bytes_of_cisco_firewalls_are_payload() {
    // As many packets and bytes each way, which would be the same packets behind another exporter.
    let other = || element(5, [1, 4, 180].map(|n| LE.u64(n)).concat());
    let mut own = generic(1_000, 2_000, 4_000);
    own[4 + 24..4 + 32].copy_from_slice(&LE.u64(4));
    for (time, kind, layer, kept) in [
        (1_500, 2, Layer::Payload, 20),
        (0, 2, Layer::Network, 7),
        (1_500, 0, Layer::Network, 7),
    ] {
        let event = [LE.u64(time).to_vec(), vec![7, 0, 0, 0, 0, 0, kind, 0]].concat();
        for elements in [
            [
                own.clone(),
                addresses(),
                other(),
                element(19, event.clone()),
            ],
            [
                element(19, event.clone()),
                other(),
                addresses(),
                own.clone(),
            ],
        ] {
            let file = file(PLAIN, &[record(&elements).repeat(20)]);
            let read = drain(FlowReader::new(&file[..]).unwrap());
            assert_eq!(read.records.len(), 20);
            assert!(read.records.iter().all(|r| r.layer == layer));
            let back = read.records.iter().filter_map(|r| r.reverse);
            assert_eq!(back.filter(|b| b.bytes == 180).count(), kept);
        }
    }
    // A shorter element is no damage.
    let short = file(
        PLAIN,
        &[record(&[own, addresses(), element(19, vec![1; 9])])],
    );
    let read = drain(FlowReader::new(&short[..]).unwrap());
    assert_eq!(read.records[0].layer, Layer::Network);
}

/// A sampler of exporter 2 that selects `packets` out of `packets + space` packets.
fn sampler(id: i64, packets: u32, space: u32) -> Vec<u8> {
    let head = [LE.u16(15), LE.u16(24), LE.u16(2), LE.u16(1)].concat();
    let numbers = [LE.u32(packets), LE.u32(space)].concat();
    [head, LE.u64(id as u64).to_vec(), numbers].concat()
}

/// The same in layout 1.
fn legacy_sampler(id: i32, interval: u32) -> Vec<u8> {
    let mut record = [LE.u16(9), LE.u16(16)].concat();
    record.extend(LE.u32(id as u32));
    record.extend(LE.u32(interval));
    record.extend([LE.u16(1), LE.u16(2)].concat());
    record
}

/// A flow of exporter 2 with multiplied counters, which may name its sampler.
fn multiplied(named: Option<u64>) -> Vec<u8> {
    let mut elements = vec![generic(1_000, 2_000, 4_000), addresses()];
    elements.extend(named.map(|id| element(18, [LE.u64(id).to_vec(), vec![2, 0, 0, 0]].concat())));
    let mut flow = record(&elements);
    // Exporter and flags in the record's header.
    (flow[8], flow[10]) = (2, 2);
    flow
}

/// Which sampler is used, as in nfcapd, and when the factor stays unknown.
#[test]
fn sampler_records_say_by_how_much_counters_were_multiplied() {
    for (what, samplers, named, interval) in [
        ("none", vec![], None, 1.0),
        ("the only one", vec![sampler(7, 1, 99)], None, 100.0),
        ("of layout 1", vec![legacy_sampler(7, 512)], None, 512.0),
        (
            "two that agree",
            vec![sampler(7, 1, 9), sampler(8, 2, 18)],
            None,
            10.0,
        ),
        (
            "two that do not",
            vec![sampler(7, 1, 9), sampler(8, 1, 99)],
            None,
            1.0,
        ),
        (
            "named",
            vec![sampler(7, 1, 9), sampler(8, 1, 99)],
            Some(8),
            100.0,
        ),
        (
            "generic",
            vec![sampler(7, 1, 9), sampler(-1, 1, 999)],
            None,
            1_000.0,
        ),
        (
            "named before generic",
            vec![sampler(7, 1, 9), sampler(-1, 1, 99)],
            Some(7),
            10.0,
        ),
        (
            "default last",
            vec![sampler(-2, 1, 9), sampler(-1, 1, 99)],
            Some(3),
            100.0,
        ),
        (
            "overruled",
            vec![sampler(7, 1, 9), sampler(-3, 1, 4)],
            Some(7),
            5.0,
        ),
        (
            "impossible",
            vec![sampler(7, 0, 9), sampler(7, 0, 0)],
            None,
            1.0,
        ),
        (
            "said anew",
            vec![sampler(7, 1, 9), sampler(7, 1, 19)],
            Some(7),
            20.0,
        ),
    ] {
        let block = [samplers.concat(), multiplied(named), records(1..2)].concat();
        let bytes = file(PLAIN, &[block]);
        let read = drain(FlowReader::new(&bytes[..]).unwrap());
        let [scaled, plain] = read.records[..] else {
            panic!("{what}: {:?}", read.counts)
        };
        assert_eq!(
            (scaled.sampling.interval, scaled.sampling.scaled),
            (interval, true),
            "{what}"
        );
        assert!(
            !plain.sampling.scaled && plain.sampling.interval == 1.0,
            "{what}"
        );
        assert_eq!(read.counts.skipped(FlowSkip::OtherKind).times, 0, "{what}");
    }
    // A sampler record that is too short counts as damage.
    let short = [LE.u16(15), LE.u16(8), LE.u16(2), LE.u16(1)].concat();
    let bytes = file(PLAIN, &[[short, multiplied(None)].concat()]);
    let read = drain(FlowReader::new(&bytes[..]).unwrap());
    assert_eq!(read.counts.skipped(FlowSkip::BadRecord).times, 1);
    assert_eq!(read.records.len(), 1);
}

/// nfdump's blocks have at most 5 MiB, so no reference needs a window above 16 MiB.
#[test]
fn zstd_may_not_ask_for_a_huge_window() {
    let content = records(1..10);
    for (log, records) in [(10, 9), (24, 9), (26, 0)] {
        let mut encoder = zstd::stream::read::Encoder::new(&content[..], 0).unwrap();
        encoder
            .set_parameter(zstd::zstd_safe::CParameter::WindowLog(log))
            .unwrap();
        let mut packed = Vec::new();
        encoder.read_to_end(&mut packed).unwrap();
        let bytes = file(ZSTD, &[packed]);
        let read = drain(FlowReader::new(&bytes[..]).unwrap());
        assert_eq!(
            read.records.len(),
            records,
            "window of 2^{log}: {:?}",
            read.error
        );
        assert_eq!(read.error.is_some(), records == 0);
    }
}
