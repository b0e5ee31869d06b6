//! Packets in the order of their times, each once.

mod points;

use super::build::{MICROS, Order, pcap_header, pcap_record};
use swell_base::Code;
use swell_capture::flow::{FlowReader, Metering};
use swell_capture::{Heading, InOrder, LinkType, Packet, Reader, Record, Writer};

/// A raw IPv4 packet with UDP of 100 bytes: identification, time to live, ports, checksum.
fn udp(ident: u16, ttl: u8, port: u16, checksum: u16) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 128];
    ip.extend(ident.to_be_bytes());
    ip.extend([0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
    ip.extend(port.to_be_bytes());
    ip.extend([0x10, 0, 0, 108]);
    ip.extend(checksum.to_be_bytes());
    ip.resize(128, 0);
    ip
}

/// A pcap file of packets at these microseconds.
fn file(packets: impl IntoIterator<Item = (i64, Vec<u8>)>) -> Vec<u8> {
    let mut out = pcap_header(Order::Little, MICROS, 4, 65535, 101);
    for (us, data) in packets {
        let us = us + 1_000_000_000_000;
        let len = data.len() as u32;
        let header = [(us / 1_000_000) as u32, (us % 1_000_000) as u32, len, len];
        out.extend(pcap_record(Order::Little, header, &data));
    }
    out
}

/// What is read: microseconds of the packets, packets put in order, copies, and codes of warnings.
fn read(bytes: &[u8]) -> (Vec<i64>, u64, u64, Vec<Code>) {
    let mut reader = InOrder::new(Reader::new(bytes).unwrap());
    let mut times = Vec::new();
    let mut packet = Packet::default();
    while reader.read_into(&mut packet).unwrap() {
        times.push(packet.time / 1000 - 1_000_000_000_000);
    }
    let doubts = reader.doubts();
    // Sentences begin with the number.
    let number = |code: Code| {
        let doubt = doubts.iter().find(|w| w.code == code);
        let first = doubt.map(|w| w.message.split(' ').next().unwrap_or_default());
        first.map_or(0, |n| n.parse().expect("a number"))
    };
    let (moved, copied) = (number(Code::PutInOrder), number(Code::CapturedTwice));
    let codes = doubts.iter().map(|w| w.code.clone()).collect();
    (times, moved, copied, codes)
}

/// Numbers of packets that are read and of copies, and codes of warnings.
fn kept(bytes: &[u8]) -> (i64, i64, Vec<Code>) {
    let (times, _, copied, codes) = read(bytes);
    (times.len() as i64, copied as i64, codes)
}

/// Packets with these stamps, in this order of the file.
fn stamped(stamps: &[i64]) -> Vec<u8> {
    let packets = (0..).zip(stamps);
    file(packets.map(|(i, &us)| (us, udp(i as u16, 64, (i >> 4) as u16 + 1, 0))))
}

/// The first place where time steps back.
fn odd(times: &[i64]) -> (usize, Option<&[i64]>) {
    (times.len(), times.windows(2).find(|w| w[1] < w[0]))
}

fn sorted(stamps: &[i64]) -> Vec<i64> {
    let mut sorted = stamps.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Stamps 50 us apart. Each packet is written up to `most` microseconds after its time.
fn shuffled(n: i64, most: i64) -> Vec<i64> {
    let mut written: Vec<(i64, i64)> = (0..n)
        .map(|i| (50 * i + (i * 7_919) % (most + 1), 50 * i))
        .collect();
    written.sort_unstable();
    written.into_iter().map(|w| w.1).collect()
}

#[test]
fn shuffled_packets_are_put_in_order() {
    for most in [120, 2_000, 299_000] {
        let stamps = shuffled(30_000, most);
        assert!(stamps != sorted(&stamps));
        let late = {
            let mut latest = 0;
            let late = |us: &&i64| {
                latest = latest.max(**us);
                **us < latest
            };
            stamps.iter().filter(late).count() as u64
        };
        let (times, moved, copied, codes) = read(&stamped(&stamps));
        assert!(times == sorted(&stamps), "{most}: {:?}", odd(&times));
        assert_eq!((moved, copied), (late, 0));
        assert_eq!(codes, [Code::PutInOrder]);
    }
    // Two interfaces whose packets are written in batches of 250 ms, as dumpcap does.
    let batch = |k: i64, own: i64| (0..2_500).map(move |i| 250_000 * k + 100 * i + own);
    let stamps: Vec<i64> = (0..20)
        .flat_map(|k| batch(k, 0).chain(batch(k, 50)))
        .collect();
    assert!(read(&stamped(&stamps)).0 == sorted(&stamps));
}

#[test]
fn an_ordered_trace_stays_as_it_is() {
    // Longer than the beginning that is held back, with equal stamps and silences.
    let stamps: Vec<i64> = (0..200_000)
        .map(|i| i / 3 * 40 + i / 50_000 * 7_000_000)
        .collect();
    let (times, moved, _, codes) = read(&stamped(&stamps));
    assert!(times == stamps, "{:?}", odd(&times));
    assert_eq!((moved, codes.len()), (0, 0));
}

/// After a long ordered beginning, packets before the first one that is late have passed. All later ones are put in
/// order.
#[test]
fn disorder_that_begins_late_is_found() {
    let mut stamps: Vec<i64> = (0..100_000).map(|i| 50 * i).collect();
    stamps.extend(shuffled(30_000, 2_000).iter().map(|us| us + 5_000_000));
    let (times, moved, ..) = read(&stamped(&stamps));
    // Two milliseconds are forty packets.
    let mut late = (1..times.len()).rev().filter(|&i| times[i] < times[i - 1]);
    assert!(late.next() < Some(100_080) && moved > 10_000);
    assert!(sorted(&times) == sorted(&stamps));
}

/// A clock that was set back, captures joined in the wrong order and single wrong stamps are no disorder: the packets
/// stay in the order of the file.
#[test]
fn steps_of_the_clock_are_kept() {
    let run = |from: i64| (0..3_000).map(move |i| from + 50 * i);
    let back: Vec<i64> = run(20_000_000).chain(run(10_000_000)).collect();
    let just: Vec<i64> = run(20_000_000).chain(run(20_149_950 - 300_001)).collect();
    let mut leap: Vec<i64> = run(0).collect();
    leap.insert(1_000, 3_600_000_000);
    leap.insert(2_000, -3_600_000_000);
    for stamps in [back, just, leap] {
        let (times, moved, ..) = read(&stamped(&stamps));
        assert!(times == stamps, "{:?}", odd(&times));
        assert_eq!(moved, 0);
    }
}

#[test]
fn packets_before_damage_come_before_the_error() {
    let stamps = shuffled(500, 2_000);
    let mut bytes = stamped(&stamps);
    bytes.truncate(bytes.len() - 3);
    let mut reader = InOrder::new(Reader::new(&bytes[..]).unwrap());
    for us in sorted(&stamps[..499]) {
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!(packet.time / 1000 - 1_000_000_000_000, us);
    }
    assert!(reader.next_packet().is_err());
    assert_eq!(reader.next_packet().unwrap(), None);
    assert_eq!(reader.reader().counts().packets, 499);
}

/// A mirror port that sends each packet twice, or both sides of a router: the time to live differs.
#[test]
fn copies_of_the_capture_system_are_dropped() {
    for (apart, ttl) in [(1, 64), (20, 63), (4_900, 63)] {
        let twice = |n: i64| {
            let mut all: Vec<(i64, Vec<u8>)> = (0..n)
                .flat_map(|i| {
                    let one = |at, left| (at, udp(i as u16 + 1, left, (i >> 4) as u16, 0));
                    [one(100 * i, 64), one(100 * i + apart, ttl)]
                })
                .collect();
            all.sort_by_key(|p| p.0);
            all
        };
        let (times, moved, copied, codes) = read(&file(twice(20_000)));
        assert!(
            times.iter().copied().eq((0..20_000).map(|i| 100 * i)),
            "{apart} us"
        );
        assert_eq!((moved, copied), (0, 20_000));
        assert_eq!(codes, [Code::CapturedTwice]);
        // From some point of the trace on.
        let alone = (0..100_000).map(|i| (100 * i - 10_000_000, udp(i as u16, 64, 1, 0)));
        let later = read(&file(alone.chain(twice(50_000))));
        assert!(later.2 > 30_000 && later.0.len() as u64 + later.2 == 200_000);
    }
}

/// Two points of a path that are farther apart: a router with a queue, or both ends of connections. The second point
/// may lose some packets, and its queue may come and go.
#[test]
fn copies_that_come_much_later_are_dropped() {
    let n = 20_000i64;
    for [shortest, longest] in [
        [6_000, 6_000],
        [20_000, 20_000],
        [15_000, 90_000],
        [900_000, 900_000],
    ] {
        let sent = |i: i64| 1_000 * i;
        // A queue that grows and drains in two seconds.
        let later = |i: i64| shortest + (longest - shortest) * (i % 2_000 - 1_000).abs() / 1_000;
        let lost = |i: &i64| i % 50 == 7;
        let one = |i: i64, at, ttl| (at, udp(i as u16 + 1, ttl, (i >> 4) as u16, 0));
        let mut all: Vec<(i64, Vec<u8>)> = (0..n).map(|i| one(i, sent(i), 64)).collect();
        let again = (0..n).filter(|i| !lost(i));
        all.extend(again.map(|i| one(i, sent(i) + later(i), 63)));
        all.sort_by_key(|p| p.0);
        let (times, _, copied, codes) = read(&file(all.clone()));
        let lag = [shortest, longest];
        assert!(
            times.iter().copied().eq((0..n).map(sent)),
            "{lag:?}: {:?}",
            odd(&times)
        );
        assert_eq!(
            (copied as i64, codes),
            (n - n / 50, vec![Code::CapturedTwice])
        );
        // From some point of the trace on.
        let alone = (0..3 * n).map(|i| one(i, sent(i) - 60_000_000, 64));
        let (_, late, said) = kept(&file(alone.chain(all)));
        assert!(late > n / 2, "{lag:?}: {late}");
        assert_eq!(said, [Code::CapturedTwice]);
    }
}

/// A TCP segment with data over IPv6: sequence number and checksum.
fn segment(seq: u32, checksum: u16) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0, 0, 120, 6, 64, 0x20, 1];
    ip.resize(40, 0);
    ip[39] = 1;
    ip.extend([0x9c, 0x40, 0, 80]);
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0]);
    ip.extend(checksum.to_be_bytes());
    ip.resize(160, 0);
    ip
}

/// IPv6 has no identifications. If nearly all segments with data come again, they are copies; if many do, it is said.
#[test]
fn copies_without_identifications() {
    let n = 20_000i64;
    for (again, expected) in [
        (1, Some(Code::CapturedTwice)),
        (4, Some(Code::RecurringPackets)),
        (30, None),
    ] {
        let mut all: Vec<(i64, Vec<u8>)> = Vec::new();
        for i in 0..n {
            let one = |at| (at, segment(1_000 * i as u32, (i * 7_919) as u16 | 1));
            all.push(one(1_000 * i));
            if i % again == 0 {
                all.push(one(1_000 * i + 20_000));
            }
        }
        all.sort_by_key(|p| p.0);
        let (times, _, copied, codes) = read(&file(all));
        assert_eq!(codes, Vec::from_iter(expected));
        let left = if again == 1 {
            n
        } else {
            n + (n + again - 1) / again
        };
        assert_eq!((times.len() as i64, copied as i64), (left, (1 / again) * n));
    }
}

/// A pcapng file of packets: interface, microseconds, bytes.
fn with_interfaces(packets: &[(u32, i64, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "a test").unwrap();
    for name in ["first", "second", "third"] {
        writer.interface(name, LinkType::RAW, 65_535).unwrap();
    }
    for (interface, us, data) in packets {
        let record = Record {
            interface: *interface,
            time: (us + 1_000_000_000_000).unsigned_abs() * 1_000,
            wire_len: data.len() as u32,
            heading: Heading::Unknown,
            data,
        };
        writer.packet(&record).unwrap();
    }
    writer.finish().unwrap()
}

/// What one interface sees is used, and what the other one sees alone: a router's own packets. Directions on an
/// interface each are no copies.
#[test]
fn one_of_two_interfaces_is_used() {
    let n = 30_000i64;
    let mut all: Vec<(u32, i64, Vec<u8>)> = Vec::new();
    let (own, far) = (([0, 1], 5_000), ([7, 7], 443));
    let router = ([9, 9], 123);
    let mut first = Vec::new();
    for i in 0..n {
        let (at, ident) = (1_000 * i, i as u16 + 1);
        let (out, back) = (between(ident, 64, own, far), between(!ident, 64, far, own));
        all.extend([(1, at, back.clone()), (0, at + 40_000, back)]);
        all.extend([(0, at + 500, out.clone()), (1, at + 30_500, out)]);
        first.extend([at + 40_000, at + 500]);
        if i % 3 == 0 {
            all.push((1, at + 700, between(ident, 64, router, far)));
            first.push(at + 700);
        }
    }
    all.sort_by_key(|p| p.1);
    let (times, _, copied, codes) = read(&with_interfaces(&all));
    assert!(times == sorted(&first), "{:?}", odd(&times));
    assert_eq!((copied as i64, codes), (2 * n, vec![Code::CapturedTwice]));
    // One after the other as well: from some point of the trace on.
    let alone = (0..50_000).map(|i| {
        (
            0,
            1_000 * i - 50_000_000,
            between(i as u16, 64, own, router),
        )
    });
    let later: Vec<_> = alone.chain(all).collect();
    let (left, dropped, _) = kept(&with_interfaces(&later));
    assert!(
        left < 50_000 + first.len() as i64 + 20_000 && dropped > n,
        "{left} and {dropped}"
    );
    // A tap with an interface for each direction.
    let tapped = (0..n).flat_map(|i| {
        let (at, ident) = (1_000 * i, i as u16);
        [
            (0, at, between(ident, 64, own, far)),
            (1, at + 300, between(ident, 64, far, own)),
        ]
    });
    let tapped = with_interfaces(&tapped.collect::<Vec<_>>());
    assert_eq!(kept(&tapped), (2 * n, 0, vec![]));
}

/// Numbers that return are no copies: a counter that was counted around, and identifications drawn by chance.
#[test]
fn numbers_that_return_are_kept() {
    let n = 200_000i64;
    for chance in [false, true] {
        let ident = |i: i64| match chance {
            // The high bits of a product are as if drawn.
            true => ((i * i + 17 * i).wrapping_mul(0x5851_f42d_4c95_7f2d) >> 40) as u16,
            false => i as u16,
        };
        let all = (0..n).map(|i| (10 * i, udp(ident(i), 64, 1, 0)));
        let (times, _, copied, codes) = read(&file(all));
        assert_eq!(
            (times.len() as i64, copied, codes.len()),
            (n, 0, 0),
            "{chance}"
        );
    }
}

/// A tunnel whose packets all have one identification, as those that are not fragmented may (RFC 6864), also in a capture
/// that begins before it does.
#[test]
fn an_identification_that_never_changes_tells_nothing() {
    let n = 20_000i64;
    let tunnel = |from: i64| {
        (0..n).flat_map(move |i| {
            let one = |at, host| (at, between(1, 64, ([0, host], 50_000), ([7, host], 4_789)));
            [one(from + 200 * i, 1), one(from + 200 * i + 90, 2)]
        })
    };
    assert_eq!(kept(&file(tunnel(0))), (2 * n, 0, vec![]));
    let before = (0..n).map(|i| (200 * i, udp(i as u16, 64, 1, 0)));
    let later = file(before.chain(tunnel(200 * n)));
    assert_eq!(kept(&later), (3 * n, 0, vec![]));
}

/// Metered flows count each packet once, too, also those before the first copies were noticed.
#[test]
fn copies_are_metered_once() {
    let twice = |ttl| {
        (0..9_000i64).flat_map(move |i| {
            let one = |at, left| (at, udp(i as u16 + 1, left, 7, 0));
            [one(1000 * i, 64), one(1000 * i + 20, ttl)]
        })
    };
    for ttl in [64, 63] {
        let bytes = file(twice(ttl));
        let mut reader = FlowReader::metered(Reader::new(&bytes[..]).unwrap(), Metering::default());
        let mut packets = 0;
        while let Some(record) = reader.next_record().unwrap() {
            packets += record.packets;
        }
        assert_eq!(packets, 9_000);
        let codes: Vec<Code> = reader.doubts().into_iter().map(|w| w.code).collect();
        assert_eq!(codes, [Code::CapturedTwice]);
    }
}

/// A capture on a pair of interfaces and the bridge over them, and batches of two interfaces that are longer than what is
/// held of recent packets.
#[test]
fn copies_are_found_thrice_and_far_apart_in_the_file() {
    let one = |i: i64, after: i64| (100 * i + after, udp(i as u16 + 1, 64, (i >> 4) as u16, 0));
    let thrice = (0..20_000).flat_map(|i| [one(i, 0), one(i, 1), one(i, 2)]);
    let found = read(&file(thrice));
    assert_eq!((found.0.len(), found.2), (20_000, 40_000));
    // 30 ms of each interface at 200 000 packets a second.
    let fast = |i: i64, after: i64| (5 * i + after, udp(i as u16 + 1, 64, (i >> 4) as u16, 0));
    let batches = (0..10i64).flat_map(|b| {
        let own = move |after| (6_000 * b..6_000 * (b + 1)).map(move |i| fast(i, after));
        own(0).chain(own(2))
    });
    let (times, _, copied, codes) = read(&file(batches));
    // The first 1024 packets show that there are copies.
    assert!(
        copied > 60_000 - 1_024 && times.len() as u64 + copied == 120_000,
        "{copied}"
    );
    assert!(codes.contains(&Code::CapturedTwice), "{codes:?}");
}

/// Repetitions by the sender are none: another identification, another time, or nothing that tells the packets apart.
#[test]
fn what_a_sender_repeats_is_kept() {
    let n = 20_000i64;
    let of = |each: &dyn Fn(i64) -> Vec<(i64, Vec<u8>)>| read(&file((0..n).flat_map(each)));
    // The same datagram with another identification.
    let again = of(&|i| {
        let one = |k: i64| (100 * i + k, udp((2 * i + k) as u16, 64, (i >> 4) as u16, 7));
        vec![one(0), one(1)]
    });
    // The same in all, 1.2 s later.
    let later = of(&|i| {
        let one = |k: i64| (2_400_000 * i + 1_200_000 * k, udp(i as u16, 64, 1, 7));
        vec![one(0), one(1)]
    });
    // A call over a stack without identifications and checksums.
    let call = of(&|i| vec![(100 * i, udp(0, 64, 1, 0))]);
    // A constant rate of datagrams with one content, and thus one checksum, without identifications.
    let constant = of(&|i| vec![(100 * i, udp(0, 64, 1, 7))]);
    // Trains of ten equal packets, such as duplicate ACKs, among others.
    let trains = of(&|i| vec![(100 * i, udp(0, 64, (i / 10) as u16, 7))]);
    // A frame of a video in two datagrams of equal size, whose checksums the card would have made.
    let frames = of(&|i| {
        let one = |at| (at, udp(0, 64, 1, 7));
        vec![one(20_000 * i), one(20_000 * i + 1_000)]
    });
    let sent = [&again, &later, &call, &constant, &trains, &frames];
    for (times, _, copied, codes) in sent {
        assert_eq!((*copied, codes.len()), (0, 0));
        assert!(times.len() as i64 == n || times.len() as i64 == 2 * n);
    }
    // One packet in twenty is the same in all within a millisecond: a round trip in a data centre.
    let some = of(&|i| {
        let one = |at| (at, udp(i as u16 + 1, 64, (i >> 4) as u16, 7));
        let mut both = vec![one(2_000 * i)];
        both.extend((i % 20 == 0).then(|| one(2_000 * i + 900)));
        both
    });
    assert_eq!(some.2, 0);
}

/// A UDP packet between these ends, each the last two bytes of an address of 10.1/16 and a port.
fn between(ident: u16, ttl: u8, from: ([u8; 2], u16), to: ([u8; 2], u16)) -> Vec<u8> {
    let mut ip = udp(ident, ttl, from.1, 0);
    ip[13..16].copy_from_slice(&[1, from.0[0], from.0[1]]);
    ip[16..20].copy_from_slice(&[10, 1, to.0[0], to.0[1]]);
    ip[22..24].copy_from_slice(&to.1.to_be_bytes());
    ip
}

/// A gateway that translates addresses, captured on both interfaces: what it forwards is used on the inner side only,
/// whoever begins, and what it sends itself is used.
#[test]
fn one_side_of_an_address_translator_is_used() {
    let (gateway, far) = ([9, 9], ([7, 7], 443));
    for inward in [false, true] {
        let mut all: Vec<(i64, Vec<u8>)> = Vec::new();
        let mut inner = Vec::new();
        for i in 0..6_000i64 {
            let (at, ident) = (1_000 * i, i as u16 + 1);
            let own = ([0, (i % 7) as u8], 5_000);
            let outer = (gateway, 6_000 + (i % 7) as u16);
            // Out: inside first. In: outside first. Each 60 us apart.
            let out = [between(ident, 64, own, far), between(ident, 63, outer, far)];
            let back = [
                between(!ident, 55, far, outer),
                between(!ident, 54, far, own),
            ];
            let [first, second] = if inward { [back, out] } else { [out, back] };
            for (start, pair) in [(at, first), (at + 300, second)] {
                let outward = inward == (start != at);
                inner.push(if outward { start } else { start + 60 });
                all.extend([start, start + 60].into_iter().zip(pair));
            }
            if i % 10 == 0 {
                inner.push(at + 700);
                all.push((at + 700, between(ident + 30_000, 64, (gateway, 123), far)));
            }
        }
        inner.sort_unstable();
        let (times, _, copied, codes) = read(&file(all));
        assert!(times == inner, "{inward}: {copied}");
        assert_eq!((copied, codes), (12_000, vec![Code::CapturedTwice]));
    }
}

/// Hosts that send alike packets to one server at the same time are several.
#[test]
fn hosts_that_send_alike_are_no_translation() {
    let all = (0..5_000i64).flat_map(|i| {
        (0..8u8).map(move |host| {
            // Each host counts its own packets, from a number of its own.
            let ident = (i as u16).wrapping_add(u16::from(host) * 7_919).max(1);
            let sent = between(ident, 64, ([0, host], 5_000), ([7, 7], 53));
            (1_000 * i + i64::from(host), sent)
        })
    });
    let (times, _, copied, codes) = read(&file(all));
    assert_eq!((times.len(), copied, codes.len()), (40_000, 0, 0));
}

/// A traffic generator gives all packets one identification, and no router lies between them.
#[test]
fn equal_identifications_are_no_translation() {
    let all = (0..5_000i64).flat_map(|i| {
        (0..8u8).map(move |host| {
            let sent = between(1, 64, ([0, host], 5_000 + i as u16), ([7, 7], 53));
            (1_000 * i + i64::from(host), sent)
        })
    });
    let (times, _, copied, codes) = read(&file(all));
    assert_eq!((times.len(), copied, codes.len()), (40_000, 0, 0));
}

/// Files of two interfaces that were merged have the outer packet first where stamps are equal.
#[test]
fn the_order_of_equal_stamps_does_not_matter() {
    let (gateway, own, far) = ([9, 9], ([0, 1], 5_000), ([7, 7], 443));
    let all = (0..6_000i64).flat_map(|i| {
        let (at, ident) = (1_000 * i, i as u16 + 1);
        let outer = (gateway, 6_000);
        let out = [between(ident, 63, outer, far), between(ident, 64, own, far)];
        let back = [
            between(!ident, 55, far, outer),
            between(!ident, 54, far, own),
        ];
        let each = out.into_iter().map(move |p| (at, p));
        each.chain(back.into_iter().map(move |p| (at + 300, p)))
    });
    let (times, _, copied, codes) = read(&file(all));
    assert_eq!((times.len(), copied), (12_000, 12_000));
    assert_eq!(codes, [Code::CapturedTwice]);
}
