//! Datagram sources meet volumes, rates and times, with or without compression.

use super::super::super::tests::{configure, datagrams, options};
use super::super::super::{Due, Plan, Player, Share};
use super::*;

mod joining;
mod streams;

fn seconds(s: u64) -> Time {
    Time::from_secs_f64(s as f64)
}

/// All sources of a playback, in single steps; it ends after the plan's length.
fn played(model: &FlowModel, playback: Playback, seed: u64) -> Vec<UdpSource> {
    let plan = Plan::new(model, &playback).unwrap();
    let end = plan.length().map_or(seconds(3_600), |l| Time::ZERO + l);
    let mut player = Player::new(plan, seed, Share::ALL);
    let mut sources = Vec::new();
    while let Some(at) = player.poll_at().filter(|&at| at <= end) {
        if let Some(Due::Datagrams(source)) = player.pop(at) {
            sources.push(source);
        }
    }
    if !playback.cycle {
        assert_eq!(player.poll_at(), None, "something is due after the end");
    }
    sources
}

/// Sources of every kind over ten minutes.
fn udp_model() -> FlowModel {
    let mut s = Stream::new(1, "udp");
    let mut records = Vec::new();
    for client in 0..200 {
        let mut exponential = 0.0;
        while exponential < 590.0 {
            records.push(datagrams(client, 53, exponential, 1, 0.0));
            exponential += s.exponential(5.0);
        }
        for i in 0..59 {
            records.push(datagrams(
                client,
                123,
                f64::from(i) * 10.0 + s.uniform(),
                2,
                0.01,
            ));
        }
        let begin = 500.0 * s.uniform();
        let n = 500 + s.below(3_000);
        records.push(datagrams(client, 5_004, begin, n + 1, n as f64 * 0.02));
        records.push(datagrams(
            client,
            7_000,
            begin,
            1 + s.below(9),
            5.0 * s.uniform(),
        ));
    }
    records.sort_by_key(|r| r.forward.last);
    configure(&records, options())
}

#[test]
fn datagram_sources_meet_their_volume_by_kind() {
    let model = udp_model();
    let due = played(&model, Playback::default(), 1);
    for u in &model.udp {
        let (mut bytes, mut datagrams, mut sources) = (0, 0, 0);
        for d in &due {
            let s = d;
            if s.kind == u.kind {
                sources += 1;
                for e in s.pace(1) {
                    assert!(s.at <= e.at && e.at < s.until);
                    bytes += u64::from(e.up * s.up.payload) + u64::from(e.down * s.down.payload);
                    datagrams += u64::from(e.up) + u64::from(e.down);
                }
            }
        }
        let ratio = [(bytes, u.bytes), (datagrams, u.packets)].map(|(a, b)| a as f64 / b as f64);
        // Draws are stratified or spread over all slots, so only rounding errors remain.
        let bar = 0.03;
        assert!(
            ratio.iter().all(|r| (r - 1.0).abs() < bar),
            "{:?}: {ratio:?} {sources}",
            u.kind
        );
    }
    assert_eq!(model.udp.len(), 4, "a kind is missing");
}

#[test]
fn sources_pace_as_their_kind_says() {
    let source = |kind| UdpSource {
        kind,
        at: seconds(1),
        until: seconds(1_001),
        number: 3,
        source: 0,
        destination: 0,
        spacing: Dur::from_millis(100),
        lasts: Dur::ZERO,
        exchanges: None,
        up: Burst {
            datagrams: 1.25,
            payload: 100,
        },
        down: Burst {
            datagrams: 1.0,
            payload: 200,
        },
    };
    let gaps = |kind| {
        let times: Vec<Time> = source(kind).pace(5).map(|e| e.at).collect();
        times
            .windows(2)
            .map(|w| w[1].since(w[0]).as_secs_f64())
            .collect::<Vec<f64>>()
    };
    for kind in [UdpKind::ConstantRate, UdpKind::Periodic] {
        assert!(gaps(kind).iter().all(|&g| g == 0.1) && gaps(kind).len() == 9_999);
    }
    // Kolmogorov and Smirnov: 1.95 / sqrt(n) is the one-in-a-thousand point.
    let mut g = gaps(UdpKind::Exponential);
    g.sort_by(f64::total_cmp);
    let n = g.len() as f64;
    let d = g.iter().enumerate().map(|(i, x)| {
        let below = 1.0 - libm::exp(-x / 0.1);
        (below - i as f64 / n)
            .abs()
            .max((below - (i + 1) as f64 / n).abs())
    });
    assert!(d.fold(0.0, f64::max) < 1.95 / n.sqrt());
    let datagrams: u32 = source(UdpKind::Periodic).pace(5).map(|e| e.up).sum();
    // Ten thousand trials of probability one quarter: three standard errors are 130.
    assert!((12_370..12_630).contains(&datagrams), "{datagrams}");
}

/// Bytes of the sources' exchanges in each tenth of a playback.
fn tenths(sources: &[UdpSource], length: Dur) -> [f64; 10] {
    let mut tenths = [0.0; 10];
    for s in sources {
        for e in s.pace(1) {
            let part = e.at.as_secs_f64() / length.as_secs_f64();
            let bytes = u64::from(e.up * s.up.payload) + u64::from(e.down * s.down.payload);
            tenths[((part * 10.0) as usize).min(9)] += bytes as f64;
        }
    }
    tenths
}

/// An hour of sources of kind `other`: short ones, minutes long, and some that send nearly all the time.
fn hour_of_others() -> FlowModel {
    let mut s = Stream::new(2, "others");
    let mut records = Vec::new();
    for client in 0..3_000 {
        let lasts = match client % 10 {
            0 => 3_590.0,
            1..4 => 600.0,
            _ => 5.0,
        };
        let begin = (3_600.0 - lasts) * s.uniform();
        // Two records of different rates do not form a constant-rate stream.
        for (half, packets) in [(0.0, 50), (0.5, 150)] {
            let at = begin + half * lasts;
            records.push(datagrams(client, 7_000, at, packets, 0.499 * lasts));
        }
    }
    records.sort_by_key(|r| r.forward.last);
    let model = configure(&records, options());
    assert!(model.udp.iter().all(|u| u.kind == UdpKind::Other));
    model
}

/// Compression keeps the rate. With sixty times less time there are sixty times fewer bytes, at the same
/// rate of every source, from the first moment to the last.
#[test]
fn sources_of_no_known_kind_keep_their_rate_however_time_is_compressed() {
    let model = hour_of_others();
    let bytes: u64 = model.udp.iter().map(|u| u.bytes).sum();
    let fastest = 200.0 * model.udp[0].datagrams.sum() as f64 / model.udp[0].sources as f64 / 5.0;
    for compression in [1.0, 6.0, 60.0] {
        let playback = Playback {
            compression,
            ..Playback::default()
        };
        let length = Plan::new(&model, &playback).unwrap().length().unwrap();
        let mut sum = [0.0; 10];
        for seed in 1..=10 {
            let sources = played(&model, playback, seed);
            let tenths = tenths(&sources, length);
            let all: f64 = tenths.iter().sum();
            let ratio = all * compression / bytes as f64;
            assert!((ratio - 1.0).abs() < 0.03, "{compression}: {ratio}");
            sum.iter_mut().zip(tenths).for_each(|(s, t)| *s += t);
        }
        let all: f64 = sum.iter().sum();
        // The records themselves have a fifth less at both ends.
        for tenth in sum {
            let share = tenth * 10.0 / all;
            assert!((share - 1.0).abs() < 0.3, "{compression}: {sum:?}");
        }
        for s in &played(&model, playback, 1) {
            assert!(s.until <= Time::ZERO + length);
            let sent: u64 = s
                .pace(1)
                .map(|e| u64::from(e.up * s.up.payload + e.down * s.down.payload))
                .sum();
            let rate = sent as f64 / s.until.since(s.at).as_secs_f64().max(1e-3);
            // One exchange is at most a hundredth of a source, and a source cut to a few exchanges rounds
            // up.
            let exchange = f64::from(s.up.payload) / s.until.since(s.at).as_secs_f64().max(1e-3);
            assert!(
                rate <= 1.05 * fastest + exchange,
                "{compression}: {rate} {s:?}"
            );
        }
    }
}

/// The load is the same in every round, and no source is cut.
#[test]
fn rounds_go_on_without_a_seam() {
    let model = hour_of_others();
    let playback = Playback {
        compression: 60.0,
        cycle: true,
        ..Playback::default()
    };
    let round = Dur::from_secs(60);
    let sources = played(&model, playback, 3);
    let mut rounds = [0.0; 20];
    for s in &sources {
        for e in s.pace(1) {
            let index = (e.at.as_secs_f64() / round.as_secs_f64()) as usize;
            if let Some(to) = rounds.get_mut(index) {
                *to += f64::from(e.up * s.up.payload);
            }
        }
    }
    let mean = rounds.iter().sum::<f64>() / 20.0;
    for (i, bytes) in rounds.iter().enumerate() {
        assert!((bytes / mean - 1.0).abs() < 0.1, "round {i}: {rounds:?}");
    }
}

/// Sources do not depend on the player: those of all shares together are those of the whole.
#[test]
fn shares_of_sources_that_come_by_themselves_are_the_whole() {
    let model = hour_of_others();
    let playback = Playback {
        compression: 60.0,
        ..Playback::default()
    };
    let plan = Plan::new(&model, &playback).unwrap();
    let of = |index, of| {
        let mut player = Player::new(plan.clone(), 5, Share { index, of });
        let mut all = Vec::new();
        while let Some(due) = player.pop(seconds(100)) {
            if let Due::Datagrams(s) = due {
                all.push((s.at, s.until, s.exchanges, s.up.payload));
            }
        }
        all
    };
    let mut whole = of(0, 1);
    let mut parts: Vec<_> = (0..3).flat_map(|i| of(i, 3)).collect();
    whole.sort();
    parts.sort();
    assert_eq!(whole, parts);
}

/// Ten thousand exchanges per second, learnt and played again: the schedule has the same distribution and
/// the same rate.
#[test]
fn an_exponential_source_keeps_its_law_at_ten_thousand_a_second() {
    let mut s = Stream::new(4, "fast");
    let (mut at, mut records) = (0.0, Vec::new());
    for _ in 0..100_000 {
        records.push(datagrams(1, 53, at, 1, 0.0));
        at += s.exponential(1e-4);
    }
    let model = configure(&records, options());
    assert_eq!(model.udp[0].kind, UdpKind::Exponential);
    let sources = played(&model, Playback::default(), 1);
    let mut gaps: Vec<f64> = Vec::new();
    for source in &sources {
        let times: Vec<Time> = source.pace(1).map(|e| e.at).collect();
        gaps.extend(times.windows(2).map(|w| w[1].since(w[0]).as_secs_f64()));
    }
    let n = gaps.len() as f64;
    // One source, for as long as it was observed: a standard error of 0.3 %, and half a microsecond of
    // rounding.
    let rate = n / model.duration().as_secs_f64();
    assert!((rate / 1e4 - 1.0).abs() < 0.02, "{rate}");
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / n;
    // Kolmogorov and Smirnov: 1.95 / sqrt(n) is the one-in-a-thousand point.
    let farthest = gaps.iter().enumerate().map(|(i, x)| {
        let below = 1.0 - libm::exp(-x / mean);
        let [a, b] = [i, i + 1].map(|i| (below - i as f64 / n).abs());
        a.max(b)
    });
    let distance = farthest.fold(0.0, f64::max);
    assert!(distance < 1.95 / n.sqrt(), "{distance} of {n}");
}
