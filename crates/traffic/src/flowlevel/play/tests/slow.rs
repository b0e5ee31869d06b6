//! Files that were slow in the records are played as slowly, and load the intervals that they loaded.

use swell_base::Stream;

use super::super::super::Record;
use super::*;

const SECOND: i64 = 1_000_000_000;

/// A connection from `first` to `last`, with `down` bytes from the server.
fn connection(number: u16, [first, last]: [f64; 2], down: u64) -> Record {
    let packets = down.div_ceil(1_448) + 2;
    let [first, last] = [first, last].map(|t| (t * SECOND as f64) as i64);
    Record {
        source: 1_000 + u128::from(number % 5),
        destination: u128::from(number % 120),
        source_port: 443,
        destination_port: 2_000 + number,
        protocol: 6,
        header: 40,
        forward: Uniflow {
            packets,
            bytes: down + 40 * packets,
            flags: Some(0x1b),
            first,
            last,
        },
        reverse: None,
        continues: false,
        sampling: 1.0,
    }
}

fn learnt(mut records: Vec<Record>) -> FlowModel {
    records.sort_by_key(|r| r.forward.last);
    configure(&records, options())
}

/// Twenty downloads of 36 MB, each at 0.5 Mbit/s for 580 s.
fn downloads() -> FlowModel {
    let one = |i| connection(i, [5.0, 585.0].map(|t| t + 0.2 * f64::from(i)), 36_250_000);
    learnt((0..20).map(one).collect())
}

/// The bytes that intervals carry if every file flows at its limit, or at once.
fn flown(plan: &Plan, played: &[Transfer], intervals: usize) -> Vec<f64> {
    let mut sums = vec![0.0; intervals];
    for t in played {
        let rate = t.limits[1].map_or(1e12, |r| r.bps() as f64 / 8.0);
        for (sum, bytes) in sums
            .iter_mut()
            .zip(carried(plan, &[*t], rate, intervals as u64))
        {
            *sum += bytes;
        }
    }
    sums
}

#[test]
fn long_downloads_are_limited_to_their_recorded_rates() {
    let model = downloads();
    for (load, sizes, compression) in [(1.0, 1.0, 1.0), (3.0, 1.0, 1.0), (1.0, 0.5, 2.0)] {
        let playback = Playback {
            load,
            sizes,
            compression,
            cycle: true,
            ..Playback::default()
        };
        let due = transfers(&all(&mut player(&model, playback, 1), seconds(500)));
        assert!(!due.is_empty());
        for t in due {
            let limit = t.limits[1].expect("a limit").as_mbit();
            assert!((limit - 0.5).abs() < 0.001, "{limit}");
        }
    }
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let due = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
    let sums = flown(&plan, &due, model.tcp.intervals.len());
    for (i, bytes) in sums.iter().enumerate().take(9).skip(1) {
        let ratio = bytes / model.tcp.intervals[i].bytes as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{i}: {ratio}");
    }
}

/// Three downloads of five minutes carry a half of what 6000 short ones do.
#[test]
fn a_few_long_downloads_among_short_ones_load_the_intervals_that_they_loaded() {
    let mut s = Stream::new(1, "short");
    let short = |i| {
        let at = 5.0 + 580.0 * s.uniform();
        let size = 400.0 * libm::pow(1.0 - s.uniform(), -1.0 / 1.2);
        connection(i, [at, at + 0.3], size.min(2e5) as u64)
    };
    let mut records: Vec<Record> = (0..6_000).map(short).collect();
    records.extend((0..3).map(|i| {
        let at = 5.0 + 100.0 * f64::from(i);
        connection(6_000 + i, [at, at + 300.0], 40_000_000)
    }));
    let model = learnt(records);
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    for seed in 0..5 {
        let due = transfers(&all(
            &mut player(&model, Playback::default(), seed),
            Time::MAX,
        ));
        let limited: Vec<f64> = due
            .iter()
            .filter_map(|t| t.limits[1])
            .map(|r| r.as_mbit())
            .collect();
        assert_eq!(limited.len(), 3, "{limited:?}");
        let real = |r: &f64| (1.06..1.07).contains(r);
        assert!(limited.iter().all(real), "{limited:?}");
        let sums = flown(&plan, &due, 9);
        for (i, bytes) in sums.iter().enumerate() {
            let want = model.tcp.intervals[i].bytes as f64;
            // A file that begins at another time in its interval is half of the difference.
            assert!((bytes - want).abs() < 8.5e6, "{i}: {bytes} {want}");
        }
        let all: f64 = sums.iter().sum();
        let wanted: f64 = model.tcp.intervals[..9]
            .iter()
            .map(|i| i.bytes as f64)
            .sum();
        assert!((all / wanted - 1.0).abs() < 0.1, "{all} {wanted}");
    }
}

/// What a round still sends after its end is sent in the next one, and counts there.
#[test]
fn a_run_that_begins_after_a_round_leaves_room_for_its_files() {
    let model = downloads();
    // The downloads take longer than the round.
    let playback = Playback {
        compression: 2.0,
        cycle: true,
        ..Playback::default()
    };
    let plan = Plan::new(&model, &playback).unwrap();
    assert!(plan.is_limited());
    let mut earlier = Player::new(plan.clone(), 2, Share::ALL);
    let left: f64 = earlier.files[1].as_ref().unwrap().next.iter().sum();
    assert!(left > 1e6, "{left}");
    let end = Time::ZERO + plan.round();
    while earlier.pop(end).is_some() {}
    let after = Player::after_round(plan, 1, Share::ALL, &earlier);
    let sent: f64 = after.before[1].iter().sum();
    assert_eq!(sent, left);
}

/// Both directions of a connection were in progress for all of its 100 s.
#[test]
fn files_of_one_connection_together_take_as_long_as_in_the_records() {
    for [up, down] in [
        [4_000_000, 36_000_000],
        [36_000_000, 4_000_000],
        [9_000_000; 2],
    ] {
        let one = |i: u16| {
            let first = 5.0 + 2.0 * f64::from(i);
            let mut record = connection(i, [first, first + 100.0], down);
            let packets = up / 1_448 + 2;
            record.reverse = Some(Uniflow {
                packets,
                bytes: up + 40 * packets,
                ..record.forward
            });
            record
        };
        let model = learnt((0..200).map(one).collect());
        let due = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
        assert!(due.len() > 100);
        for t in due {
            let takes = |i: usize| {
                let rate = t.limits[i].expect("a limit").bps() as f64 / 8.0;
                [t.up, t.down][i] as f64 / rate
            };
            let all = takes(0) + takes(1);
            assert!((all / 100.0 - 1.0).abs() < 0.01, "{all} s: {t:?}");
        }
        let longest = Plan::new(&model, &Playback::default()).unwrap().longest();
        assert!((100.0..200.0).contains(&longest), "{longest}");
    }
}

#[test]
fn files_that_were_fast_have_no_limit() {
    let plan = Plan::new(&model(), &Playback::default()).unwrap();
    assert!(!plan.is_limited());
}
