use std::sync::Arc;

use swell_capture::InOrder;

use super::*;

/// A packet of a test: milliseconds, identification, and whether it is an answer.
type Sent = (i64, u16, bool);

/// A file of datagrams in the format pcap, nanoseconds.
fn file(packets: &[Sent]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for &(ms, ident, back) in packets {
        let mut packet = vec![0x45, 0, 0, 100];
        packet.extend(ident.to_be_bytes());
        packet.extend([0, 0, 64, 17, 0, 0]);
        let (mut hosts, mut ports) = ([[10, 0, 0, 1], [192, 0, 2, 1]], [4_000u16, 53]);
        if back {
            hosts.reverse();
            ports.reverse();
        }
        packet.extend(hosts.concat());
        ports.iter().for_each(|p| packet.extend(p.to_be_bytes()));
        packet.extend([0, 80, 0, 0]);
        packet.resize(100, 0);
        let (seconds, rest) = (ms.div_euclid(1000), ms.rem_euclid(1000));
        for word in [seconds as u32, rest as u32 * 1_000_000, 100, 100] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// What is read of these files: milliseconds and interfaces by stretch, and all notes.
fn read(files: &[Vec<u8>]) -> (Vec<Vec<(i64, u32)>>, Vec<Warning>) {
    let scratch = swell_host::scratch::Scratch::new().unwrap();
    let paths: Vec<PathBuf> = (0..files.len())
        .map(|i| scratch.path().join(i.to_string()))
        .collect();
    for (path, bytes) in paths.iter().zip(files) {
        std::fs::write(path, bytes).unwrap();
    }
    let progress: Progress = Arc::new(|_| ());
    let first = Opened::new(&paths[0], &progress).unwrap();
    let mut merged = Merged::new(first, &paths[1..], &progress).unwrap();
    let (mut all, mut doubts, mut ended) = (Vec::new(), Vec::new(), 0);
    while merged.begin().unwrap() {
        let mut stretch = Vec::new();
        let mut ordered = InOrder::new(&mut merged);
        while let Some(packet) = ordered.next_packet().unwrap() {
            stretch.push((packet.time / 1_000_000, packet.interface));
        }
        doubts.extend(ordered.doubts());
        doubts.extend(merged.doubt());
        let read = merged.ended();
        ended += read.len();
        doubts.extend(read.into_iter().flat_map(|f| f.doubts));
        all.push(stretch);
    }
    assert_eq!(ended, files.len());
    (all, doubts)
}

fn codes(doubts: &[Warning]) -> Vec<Code> {
    doubts.iter().map(|w| w.code.clone()).collect()
}

const DAY: i64 = 86_400_000;

/// Requests in one file and answers in another: both are read at once, whichever is named first.
#[test]
fn files_of_one_direction_each_are_merged() {
    let of = |back: bool| -> Vec<Sent> {
        let at = |i: u16| DAY + 100 * i64::from(i) + if back { 30 } else { 0 };
        (0..2_000).map(|i| (at(i), i + 1, back)).collect()
    };
    let [up, down] = [of(false), of(true)].map(|packets| file(&packets));
    let named = [up.clone(), down.clone()];
    for (files, begins) in [(named, "0, 1 overlap"), ([down, up], "1, 0 overlap")] {
        let (all, doubts) = read(&files);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(one.len(), 4_000);
        for (i, pair) in (0..).zip(one.chunks(2)) {
            let at = DAY + 100 * i;
            // The file that begins first is the first interface.
            assert_eq!(pair, [(at, 0), (at + 30, 1)]);
        }
        assert_eq!(codes(&doubts), [Code::PutInOrder]);
        assert!(doubts[0].message.starts_with(begins), "{doubts:?}");
    }
}

/// Files that follow each other have one set of interfaces, and no note, in any order.
#[test]
fn files_that_follow_each_other_are_read_in_the_order_of_their_times() {
    let of = |hour: i64| -> Vec<Sent> {
        let at = |i: u16| DAY + 3_600_000 * hour + i64::from(i);
        (0..100).map(|i| (at(i), i + 1, false)).collect()
    };
    let files = [2, 0, 1].map(|hour| file(&of(hour)));
    let (all, doubts) = read(&files);
    assert_eq!((all.len(), doubts.len()), (3, 0));
    for (hour, stretch) in (0..).zip(&all) {
        let times: Vec<(i64, u32)> = of(hour).iter().map(|p| (p.0, 0)).collect();
        assert_eq!(stretch, &times);
    }
}

/// Both files hold all packets: they count once.
#[test]
fn what_two_files_hold_counts_once() {
    let all: Vec<Sent> = (0..20_000)
        .map(|i| (DAY + 10 * i64::from(i), i + 1, i % 3 == 0))
        .collect();
    let (read, doubts) = read(&[file(&all), file(&all)]);
    assert_eq!(read[0].len(), 20_000);
    let codes = codes(&doubts);
    assert!(codes.contains(&Code::CapturedTwice), "{codes:?}");
}

/// A stamp far ahead does not open the files that follow before their time.
#[test]
fn a_wrong_stamp_does_not_mix_files() {
    let of = |from: i64| -> Vec<Sent> {
        (0..1_000)
            .map(|i| (from + 10 * i64::from(i), i + 1, false))
            .collect()
    };
    let mut first = of(DAY);
    first[500].0 = 9 * DAY;
    let (all, doubts) = read(&[file(&first), file(&of(2 * DAY))]);
    assert_eq!((all.len(), all[0].len(), all[1].len()), (2, 1_000, 1_000));
    assert_eq!(codes(&doubts), []);
}

/// A file that is cut short ends there, and the other one goes on.
#[test]
fn damage_ends_one_file() {
    let of = |back: bool| -> Vec<Sent> {
        (0..1_000)
            .map(|i| (DAY + 10 * i64::from(i), i + 1, back))
            .collect()
    };
    let mut cut = file(&of(false));
    cut.truncate(cut.len() / 2);
    let (all, doubts) = read(&[cut, file(&of(true))]);
    let read = |interface| all[0].iter().filter(|p| p.1 == interface).count();
    assert!((490..500).contains(&read(0)), "{}", read(0));
    assert_eq!(read(1), 1_000);
    let codes = codes(&doubts);
    assert_eq!(codes, [Code::PutInOrder, Code::TraceDamaged]);
}

/// Rotated files whose ends are batches of packets that overlap are those of one interface.
#[test]
fn files_that_overlap_by_a_batch_keep_their_interfaces() {
    let of = |minute: i64| -> Vec<Sent> {
        let at = |i: u16| DAY + 60_000 * minute + 60 * i64::from(i);
        let last = (at(1_000) + 5, 1_001, false);
        (0..1_000)
            .map(|i| (at(i), i + 1, false))
            .chain([last])
            .collect()
    };
    let files = [0, 1, 2, 5].map(|minute| file(&of(minute)));
    let (all, doubts) = read(&files);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [3_003, 1_001]);
    assert!(all.concat().iter().all(|p| p.1 == 0));
    assert_eq!(codes(&doubts), []);
}
