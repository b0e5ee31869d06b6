//! A player that joins later plays what one from the beginning would have played from then on.

use super::super::super::super::{Histogram, Record};
use super::*;

/// Calls of ten minutes, streams with silences, and sources of no known kind that last minutes.
fn model() -> FlowModel {
    let mut s = Stream::new(5, "joining");
    let mut records = Vec::new();
    for client in 0..6 {
        records.push(datagrams(
            client,
            5_004,
            0.01 * client as f64,
            29_998,
            599.94,
        ));
    }
    for client in 10..30 {
        let mut at = s.exponential(40.0);
        while at < 580.0 {
            let on = s.exponential(20.0).clamp(1.2, 599.0 - at);
            records.push(datagrams(client, 6_000, at, (on * 50.0) as u64 + 1, on));
            at += on + s.exponential(40.0);
        }
    }
    for client in 100..200 {
        let lasts = if client % 2 == 0 { 300.0 } else { 20.0 };
        let begin = (600.0 - lasts) * s.uniform();
        for (half, packets) in [(0.0, 50), (0.5, 150)] {
            let at = begin + half * lasts;
            records.push(datagrams(client, 7_000, at, packets, 0.499 * lasts));
        }
    }
    records.sort_by_key(|r: &Record| r.forward.last);
    let model = configure(&records, options());
    let mut kinds: Vec<_> = model.udp.iter().map(|u| u.kind).collect();
    kinds.dedup();
    let all = [UdpKind::ConstantRate, UdpKind::OnOff, UdpKind::Other];
    assert!(all.iter().all(|k| kinds.contains(k)), "{kinds:?}");
    model
}

/// The sources until `end`.
fn sources(mut player: Player, end: Time) -> Vec<UdpSource> {
    let due = std::iter::from_fn(|| player.pop(end));
    let sources = due.filter_map(|due| match due {
        Due::Datagrams(source) => Some(source),
        Due::Transfer(_) => None,
    });
    sources.collect()
}

/// What is left of a source at `now`, apart from its number and phase. Sources of no known kind are their exchanges.
fn left(s: &UdpSource, now: Time) -> Option<(UdpSource, u64)> {
    let exchanges = match s.kind {
        UdpKind::Other => s.pace(1).filter(|e| e.at >= now).count() as u64,
        // A stream ends one spacing after its last datagram.
        _ => u64::from(s.until > now + s.spacing),
    };
    let alike = UdpSource {
        at: if s.at > now { s.at } else { now },
        number: 0,
        spacing: if s.kind == UdpKind::Other {
            Dur::ZERO
        } else {
            s.spacing
        },
        exchanges: None,
        ..*s
    };
    (exchanges > 0).then_some((alike, exchanges))
}

#[test]
fn who_joins_later_plays_the_rest_of_the_sources_in_progress() {
    let model = model();
    for (cycle, at) in [
        (false, 1.0),
        (false, 200.0),
        (false, 590.0),
        (true, 50.0),
        (true, 750.0),
    ] {
        let playback = Playback {
            cycle,
            ..Playback::default()
        };
        let plan = Plan::new(&model, &playback).unwrap();
        let (now, end) = (Time::from_secs_f64(at), Time::from_secs_f64(at + 9.0));
        let from_the_start = sources(Player::new(plan.clone(), 3, Share::ALL), end);
        let joined = (0..2).flat_map(|index| {
            let share = Share { index, of: 2 };
            sources(Player::joining(plan.clone(), 3, share, now), end)
        });
        let joined: Vec<UdpSource> = joined.collect();
        let is_cut = |s: &UdpSource| !cycle && s.until > Time::from_secs_f64(599.9);
        let of = |all: &[UdpSource]| -> Vec<String> {
            let mut all: Vec<_> = all.iter().filter_map(|s| left(s, now)).collect();
            // A source of no known kind that joins begins with its next exchange. The exchanges before a cut by the end of the
            // model are spread over the time until then.
            for (s, exchanges) in all.iter_mut().filter(|s| s.0.kind == UdpKind::Other) {
                s.at = now;
                if is_cut(s) {
                    *exchanges = 1;
                }
            }
            let mut texts: Vec<String> = all.iter().map(|s| format!("{s:?}")).collect();
            texts.sort();
            texts
        };
        let (a, b) = (of(&from_the_start), of(&joined));
        for kind in ["ConstantRate", "OnOff", "Other"] {
            assert!(a.iter().any(|s| s.contains(kind)), "{at}: no {kind}");
        }
        assert_eq!(a, b, "{cycle} {at}");
        // No other exchange is moved.
        let times = |all: &[UdpSource]| {
            let own = all.iter().filter(|s| s.kind == UdpKind::Other);
            let whole = own.filter(|s| !is_cut(s));
            let mut times: Vec<Time> = whole
                .flat_map(|s| s.pace(1))
                .map(|e| e.at)
                .filter(|&t| t >= now)
                .collect();
            times.sort();
            times
        };
        let (planned, played) = (times(&from_the_start), times(&joined));
        assert_eq!(planned.len(), played.len(), "{cycle} {at}");
        let moved = |(one, other): (&Time, &Time)| one.since(*other).max(other.since(*one));
        let mut pairs = planned.iter().zip(&played);
        assert!(pairs.all(|pair| moved(pair) < Dur::from_micros(1)));
    }
}

/// The rest of a source sends the exchanges that are still to come, when they were to come.
#[test]
fn the_rest_of_a_source_begins_with_its_next_exchange() {
    let whole = UdpSource {
        kind: UdpKind::Other,
        at: seconds(10),
        until: seconds(20),
        number: 0,
        source: 0,
        destination: 0,
        spacing: Dur::from_secs(2),
        lasts: Dur::ZERO,
        exchanges: Some(5),
        up: Burst::default(),
        down: Burst::default(),
    };
    let times = |s: Option<UdpSource>| -> Vec<u64> {
        let all = s.iter().flat_map(|s| s.pace(1));
        all.map(|e| e.at.as_nanos() / 1_000_000_000).collect()
    };
    assert_eq!(times(whole.rest(seconds(3))), [10, 12, 14, 16, 18]);
    assert_eq!(times(whole.rest(seconds(13))), [14, 16, 18]);
    assert_eq!(times(whole.rest(seconds(14))), [14, 16, 18]);
    assert_eq!(whole.rest(seconds(19)), None);
}

/// Streams and silences of a microsecond: 300 million of them before the join would take half a minute for each source.
#[test]
fn who_joins_after_very_many_streams_finds_the_next_one() {
    let mut model = model();
    model.udp.retain(|u| u.kind == UdpKind::OnOff);
    for u in &mut model.udp {
        let mut instant = Histogram::default();
        instant.add_many(1, 100);
        u.durations = instant.clone();
        u.pauses = instant;
        // As many datagrams as it takes for the same number of sources.
        u.bytes *= 10_000_000;
    }
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let now = seconds(300);
    let mut player = Player::joining(plan, 3, Share::ALL, now);
    let soon = now + Dur::from_micros(2);
    let Some(Due::Datagrams(source)) = player.pop(soon) else {
        panic!("no source is in progress")
    };
    assert!(source.at >= now && source.at <= soon, "{source:?}");
}
