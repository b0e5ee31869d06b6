//! Streams keep their rate, their silences and their directions.

use super::super::super::super::Record;
use super::*;

/// A record of `seconds` from `at` on: datagrams of 400 bytes from port 5004 to a client's, 20 ms apart.
fn stream(client: u128, at: f64, seconds: f64) -> Record {
    let mut r = datagrams(client, 6_000, at, (seconds * 50.0) as u64 + 1, seconds);
    (r.source, r.destination) = (9 + 1_000 * client, client);
    r.source_port = 5_004;
    r.forward.bytes = r.forward.packets * 428;
    r
}

/// The other direction of a record.
fn back(r: &Record) -> Record {
    let mut back = *r;
    (back.source, back.destination) = (r.destination, r.source);
    (back.source_port, back.destination_port) = (r.destination_port, r.source_port);
    back
}

fn learn(mut records: Vec<Record>) -> FlowModel {
    records.sort_by_key(|r| r.forward.last);
    configure(&records, options())
}

/// Bytes up and down of each exchange of a playback, and their times.
fn sent(model: &FlowModel, seed: u64) -> Vec<(u64, Time, [u64; 2])> {
    let mut all = Vec::new();
    for s in played(model, Playback::default(), seed) {
        let of = |n: u32, b: Burst| u64::from(n) * u64::from(b.payload);
        all.extend(
            s.pace(seed)
                .map(|e| (s.source, e.at, [of(e.up, s.up), of(e.down, s.down)])),
        );
    }
    all.sort_by_key(|e| e.1);
    all
}

fn sums(sent: &[(u64, Time, [u64; 2])]) -> [f64; 2] {
    [0, 1].map(|d| sent.iter().map(|e| e.2[d] as f64).sum())
}

/// Twenty sources, on for 20 s and off for 40 s on average, and a request of each before each stream.
fn on_and_off(seed: u64) -> FlowModel {
    let mut s = Stream::new(seed, "on and off");
    let mut records = Vec::new();
    for client in 0..20 {
        let mut at = s.exponential(40.0);
        while at < 1_780.0 {
            let on = s.exponential(20.0).clamp(1.2, 1_799.0 - at);
            let answer = stream(client, at + 0.001, on);
            let mut asks = back(&answer);
            asks.forward.packets = 1;
            asks.forward.bytes = 68;
            asks.forward.first -= 1_000_000;
            asks.forward.last = asks.forward.first;
            records.extend([answer, asks]);
            at += on + s.exponential(40.0);
        }
    }
    learn(records)
}

/// The rate of each source while it is on is that of its records, and so are volumes. No datagrams come in a burst.
#[test]
fn on_off_sources_keep_rate_and_volume_and_never_burst() {
    for trace in 1..=2 {
        let model = on_and_off(trace);
        let [on_off] = &model.udp[..] else {
            panic!("{:?}", model.udp)
        };
        assert_eq!((on_off.kind, on_off.sources), (UdpKind::OnOff, 20));
        let mut ratios = Vec::new();
        for seed in 1..=10 {
            let sent = sent(&model, seed);
            ratios.push(sums(&sent)[1] / on_off.answer_bytes as f64);
            // Twenty sources send at most twenty datagrams in 20 ms.
            for some in
                sent.chunk_by(|a, b| a.1.as_nanos() / 20_000_000 == b.1.as_nanos() / 20_000_000)
            {
                let downs = some.iter().filter(|e| e.2[1] > 0).count();
                assert!(downs <= 25, "{downs} datagrams at {}", some[0].1);
            }
        }
        // Some 600 streams and silences: a standard error of 5 % for each playback.
        let mean = ratios.iter().sum::<f64>() / 10.0;
        assert!((mean - 1.0).abs() < 0.05, "{trace}: {ratios:?}");
        assert!(ratios.iter().all(|r| (r - 1.0).abs() < 0.2), "{ratios:?}");
    }
}

/// Sources that wait for their next stream follow a new load.
#[test]
fn a_new_load_changes_the_streams_of_sources_that_have_begun() {
    let model = on_and_off(1);
    let plan = |load| {
        let playback = Playback {
            load,
            ..Playback::default()
        };
        Plan::new(&model, &playback).unwrap()
    };
    let streams = |factor: f64, seed| {
        let mut player = Player::new(plan(1.0), seed, Share::ALL);
        let before = std::iter::from_fn(|| player.pop(seconds(900))).count();
        assert_eq!(player.change(plan(factor), seconds(900)), factor);
        let after = std::iter::from_fn(|| player.pop(seconds(1_700))).count();
        [before as f64, after as f64]
    };
    let all = |load| {
        let each = (1..=30).map(|seed| streams(load, seed));
        each.fold([0.0, 0.0], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    };
    let [_, same] = all(1.0);
    // About 20 sources in each of 30 playbacks: a standard error of 7 % at a quarter of them.
    for load in [0.25, 2.5] {
        let [before, after] = all(load);
        let ratio = after / same / load;
        assert!((ratio - 1.0).abs() < 0.2, "{load}: {before} {same} {after}");
    }
}

/// The copies of sources that a higher load makes go their own ways.
#[test]
fn copies_of_sources_are_not_in_step() {
    let model = on_and_off(1);
    let plan = |load| {
        let playback = Playback {
            load,
            ..Playback::default()
        };
        Plan::new(&model, &playback).unwrap()
    };
    let (mut all, mut together) = (0, 0);
    for seed in 1..=10 {
        let mut player = Player::new(plan(1.0), seed, Share::ALL);
        while player.pop(seconds(900)).is_some() {}
        player.change(plan(2.0), seconds(900));
        let due = std::iter::from_fn(|| player.pop(seconds(1_700)));
        let starts = due.filter_map(|due| match due {
            Due::Datagrams(source) => Some(source.at),
            Due::Transfer(_) => None,
        });
        let mut starts: Vec<Time> = starts.collect();
        starts.sort();
        all += starts.len();
        together += starts.windows(2).filter(|w| w[0] == w[1]).count();
    }
    // Only the first stream of a copy begins with that of its source.
    assert!(10 * together < all, "{together} of {all}");
}

/// 15 s on and 15 s off: so it is played, whatever the interval.
#[test]
fn a_source_that_is_on_half_of_the_time_is_silent_the_other_half() {
    let records = (0..10).map(|i| stream(1, f64::from(i) * 30.0, 15.0));
    let records: Vec<Record> = records.collect();
    for interval in [60, 300] {
        let model = configure(
            &records,
            super::super::super::super::Options {
                interval: Dur::from_secs(interval),
                ..Default::default()
            },
        );
        assert_eq!(model.udp[0].kind, UdpKind::OnOff);
        for seed in 1..=5 {
            let sent = sent(&model, seed);
            let bytes = sums(&sent)[1];
            assert!(
                (bytes / model.udp[0].bytes as f64 - 1.0).abs() < 0.03,
                "{bytes}"
            );
            let mut busy: Vec<u64> = sent
                .iter()
                .map(|e| e.1.as_nanos() / 1_000_000_000)
                .collect();
            busy.dedup();
            // 150 of 285 s, and up to a second more at each end of a stream.
            assert!((150..=172).contains(&busy.len()), "{}", busy.len());
        }
    }
}

/// Both directions of a call are played, with any seed.
#[test]
fn a_call_goes_both_ways() {
    for calls in [1u128, 2, 7] {
        let mut records = Vec::new();
        for call in 0..calls {
            let mut there = datagrams(call, 30_000, 0.01 * call as f64, 29_990, 599.78);
            there.source_port = 16_384;
            there.forward.bytes = there.forward.packets * 200;
            let mut back = back(&there);
            back.forward.first += 7_000_000;
            back.forward.last += 7_000_000;
            records.extend([there, back]);
        }
        let model = learn(records);
        let [both] = &model.udp[..] else {
            panic!("{:?}", model.udp)
        };
        assert_eq!(both.kind, UdpKind::ConstantRate);
        assert_eq!(
            (both.answers * 2, both.flows as u128),
            (both.packets, calls)
        );
        for seed in 1..=10 {
            for bytes in sums(&sent(&model, seed)) {
                let truth = both.bytes as f64 / 2.0;
                assert!(
                    (bytes / truth - 1.0).abs() < 0.01,
                    "{calls} {seed}: {bytes}"
                );
            }
        }
    }
}

/// A call that takes a part of the hour takes the same part of a minute, at its rate: no single source is more than
/// it was, or nothing.
#[test]
fn a_single_call_is_no_longer_for_compression() {
    for part in [0.2, 0.5, 0.9] {
        let records = (0..60).map(|i| datagrams(500 + i, 53, 60.0 * i as f64, 1, 0.0));
        let mut call = stream(1, 100.0, 3_600.0 * part);
        call.destination_port = 7_000;
        let model = learn(records.chain([call]).collect());
        let of = |kind: UdpKind| model.udp.iter().filter(move |u| u.kind == kind);
        let bytes: u64 = of(UdpKind::ConstantRate).map(|u| u.bytes).sum();
        assert!(
            bytes as f64 > 0.9 * 400.0 * 50.0 * 3_600.0 * part,
            "{bytes}"
        );
        let playback = Playback {
            compression: 60.0,
            cycle: true,
            ..Playback::default()
        };
        let mut sum = 0.0;
        for seed in 1..=20 {
            for s in played(&model, playback, seed) {
                if s.kind != UdpKind::ConstantRate {
                    continue;
                }
                assert_eq!(s.spacing, Dur::from_millis(20));
                let own = s.pace(seed).filter(|e| e.at < seconds(60));
                sum += own
                    .map(|e| f64::from(e.up * s.up.payload + e.down * s.down.payload))
                    .sum::<f64>();
            }
        }
        let ratio = sum / 20.0 * 60.0 / bytes as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{part}: {ratio}");
    }
}

/// Calls and one-way streams are not mixed to streams that go mostly one way.
#[test]
fn sources_of_different_directions_stay_apart() {
    let mut records = Vec::new();
    for client in 0..6 {
        let one = stream(client, 1.0, 500.0);
        records.push(one);
        if client < 3 {
            records.push(back(&one));
        }
    }
    let model = learn(records);
    let shares: Vec<_> = model
        .udp
        .iter()
        .map(|u| (u.sources, u.answers * 2 / u.packets))
        .collect();
    assert_eq!(shares, [(3, 1), (3, 2)]);
    let again = FlowModel::from_slice(model.to_json().as_bytes()).unwrap();
    assert_eq!(again, model);
    let mut twice = model.clone();
    twice.merge(&model).unwrap();
    assert_eq!(twice.udp.len(), 2);
    assert_eq!(twice.udp[0].sources, 6);
}

/// A flow of six datagrams over five seconds is no burst.
#[test]
fn datagrams_of_an_exchange_are_spread_over_its_duration() {
    let records = (0..20).map(|i| datagrams(1, 7_000, f64::from(i) * 60.0, 6, 5.0));
    let model = learn(records.collect());
    assert_eq!(model.udp[0].kind, UdpKind::Periodic);
    let sent = sent(&model, 1);
    let bytes = sums(&sent)[0];
    assert!(
        (bytes / model.udp[0].bytes as f64 - 1.0).abs() < 0.06,
        "{bytes}"
    );
    let apart = sent.windows(2).map(|w| w[1].1.since(w[0].1).as_secs_f64());
    assert!(
        apart.clone().all(|gap| gap > 0.9),
        "{:?}",
        apart.collect::<Vec<_>>()
    );
}

/// What servers send by a schedule of their own, and what they send as answers.
#[test]
fn few_requests_are_not_the_cause_of_many_answers() {
    let source = |kind, up, down| UdpSource {
        kind,
        up: Burst {
            datagrams: up,
            payload: 1,
        },
        down: Burst {
            datagrams: down,
            payload: 1,
        },
        at: Time::ZERO,
        until: seconds(1),
        number: 0,
        source: 0,
        destination: 0,
        spacing: Dur::from_millis(1),
        lasts: Dur::ZERO,
        exchanges: None,
    };
    assert!(source(UdpKind::Periodic, 1.0, 1.0).answers());
    assert!(!source(UdpKind::Other, 0.01, 1.0).answers());
    assert!(!source(UdpKind::OnOff, 1.0, 1.0).answers());
}

/// `seconds` of 50 datagrams a second from a port of client 1 to a server's port.
fn upload(port: u16, at: f64, packets: u64, seconds: f64) -> Record {
    let mut r = datagrams(1, 443, at, packets, seconds);
    r.source_port = port;
    r
}

/// A long stream in records of a minute, and short flows to the same server meanwhile. These end first.
#[test]
fn a_long_stream_beside_short_flows_keeps_its_rate() {
    let long = (0..29).map(|i| upload(50_000, 60.0 * f64::from(i), 3_000, 59.98));
    let short = (0..16u16).map(|i| upload(50_001 + i, 50.0 + 100.0 * f64::from(i), 50, 0.98));
    let model = learn(long.chain(short).collect());
    let [source] = &model.udp[..] else {
        panic!("{:?}", model.udp)
    };
    assert_eq!((source.kind, source.sources), (UdpKind::ConstantRate, 1));
    let spacing = source.spacing.sum() as f64 / source.spacing.count() as f64;
    assert!((spacing - 20_000.0).abs() < 500.0, "{spacing}");
}

/// A hundred sources that are on, off and on for ten seconds, and one with long silences.
#[test]
fn volumes_of_sources_with_unlike_silences_are_kept() {
    let short = (2..102u16).flat_map(|i| {
        let at = 16.0 * f64::from(i) + 20.0;
        [at, at + 20.0].map(|at| stream(i.into(), at, 10.0))
    });
    let long = (0..6).map(|k| stream(1, 20.0 + 348.0 * f64::from(k), 10.0));
    let model = learn(short.chain(long).collect());
    let bytes: u64 = model.udp.iter().map(|u| u.bytes).sum();
    let ratios: Vec<f64> = (1..=10)
        .map(|seed| sums(&sent(&model, seed)).iter().sum::<f64>() / bytes as f64)
        .collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.08, "{ratios:?}");
}
