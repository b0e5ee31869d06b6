//! Checks properties of exchanges against their course over a network without delay, and volumes of
//! schedules against counting.

use proptest::collection::vec;
use proptest::prelude::*;
use swell_base::{Dur, Time};

use super::tests::{datagrams, one};
use crate::schedule::Start;
use crate::testing::{PATH, model};
use crate::timeline::Timeline;
use crate::*;

fn pause() -> impl Strategy<Value = Dur> {
    prop_oneof![Just(0), 0..5_000u64].prop_map(Dur::from_millis)
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let turn = (1..9_000u64, pause(), 1..90_000u64, pause()).prop_map(
        |(request, server_think, response, client_think)| Turn {
            request,
            server_think,
            response,
            client_think,
        },
    );
    let chain = || {
        let unit = (pause(), 1..9_000u64).prop_map(|(pause, bytes)| Unit {
            pause,
            bytes,
            after: 0,
        });
        vec(unit, 0..6)
    };
    prop_oneof![
        vec(turn, 1..6).prop_map(Exchange::Sequential),
        (chain(), chain()).prop_map(|(up, down)| Exchange::Concurrent { up, down }),
        vec((0..3_000u64, any::<bool>(), 0..1_400u32), 1..9).prop_map(|p| datagrams(&p)),
    ]
}

/// A model with one session of one exchange, without any delay, and its course.
fn at_once(exchange: Exchange) -> (Model, Timeline) {
    let nothing = Path {
        rtt: Dur::ZERO,
        ..PATH
    };
    let mut m = model(Dur::from_secs(10), vec![one(exchange)]);
    (m.client_paths, m.server_paths) = (vec![nothing], vec![nothing]);
    let s = &m.sessions[0];
    let course = Timeline::of(&m, s, &s.groups[0].connections[0], &Network::default());
    (m, course)
}

proptest! {
    /// An exchange over a network without delay lasts as long as its pauses; its spans match its units and
    /// bytes.
    #[test]
    fn an_exchange_lasts_its_pauses(any in exchange()) {
        let (m, course) = at_once(any);
        let exchange = &m.sessions[0].groups[0].connections[0].exchange;
        // The client think time after the last response does not count.
        let after = match exchange {
            Exchange::Sequential(turns) => turns[turns.len() - 1].client_think,
            _ => Dur::ZERO,
        };
        prop_assert_eq!(course.end + after, exchange.pauses());
        for end in 0..2 {
            let own = course.spans.iter().filter(|s| s.end == end);
            prop_assert_eq!(own.clone().count(), exchange.units()[end]);
            prop_assert_eq!(own.map(|s| s.bytes).sum::<u64>(), exchange.bytes()[end]);
        }
    }

    /// A session's next group waits for the course up to the recorded progress.
    #[test]
    fn a_group_waits_for_what_had_passed(exchange in exchange(), share in 0.0..=1.0f64, odd: bool) {
        let (mut m, course) = at_once(exchange);
        let c = &mut m.sessions[0].groups[0].connections[0];
        let units = c.exchange.units().map(|n| n as u32);
        let part = |n: u32| (f64::from(n) * share).round() as u32;
        let passed = match &c.exchange {
            // A response passes after its request, and the next request may have passed, too.
            Exchange::Sequential(_) => {
                let down = part(units[1]);
                [(down + u32::from(odd)).min(units[0]), down]
            }
            Exchange::Datagrams(d) => {
                let n = part(units[0] + units[1]) as usize;
                let up = d.packets[..n].iter().filter(|p| p.1).count();
                [up as u32, (n - up) as u32]
            }
            _ => units.map(part),
        };
        c.overlap = Some(passed);
        prop_assert_eq!(c.awaited_pauses(), course.awaited(c));
        c.overlap = None;
        match c.awaited() {
            Some(_) => prop_assert_eq!(c.awaited_pauses(), course.awaited(c)),
            None => prop_assert_eq!(c.awaited_pauses(), c.exchange.pauses()),
        }
    }

    /// Datagrams pass at single instants, so a window counts exactly those inside it.
    #[test]
    fn a_window_holds_what_passes_in_it(
        packets in vec((0..400u64, any::<bool>(), 0..1_400u32), 1..12),
        starts in vec(0..3_000u64, 1..4),
        edges in (0..4_000u64, 0..4_000u64),
        outside: bool,
    ) {
        let (mut m, _) = at_once(datagrams(&packets));
        m.sessions[0].outside = outside;
        let schedule = Schedule {
            starts: starts.iter().map(|&ms| Start {
                at: Time::ZERO + Dur::from_millis(ms),
                session: 0,
                copy: 0,
            }).collect(),
            ..Schedule::default()
        };
        let (from, to) = (edges.0.min(edges.1), edges.0.max(edges.1));
        let mut expected = [0u64; 2];
        for &start in &starts {
            let mut at = start;
            for &(gap, client, bytes) in &packets {
                at += gap;
                if (from..to).contains(&at) {
                    expected[usize::from(client == outside)] += u64::from(bytes) + 28;
                }
            }
        }
        let [a, b] = [from, to].map(Dur::from_millis);
        // Times in seconds round by a part in 10^16. Only packets exactly on an edge may be counted
        // differently; those are exact if times are whole milliseconds of the run.
        let found = schedule.volume(&m, &Network::default(), a, b);
        let near = (0..2).all(|d| (found[d] - expected[d] as f64).abs() < 1e-6);
        let edge = |x: u64| starts.iter().any(|&s| {
            let mut at = s;
            packets.iter().any(|p| { at += p.0; at == x })
        });
        prop_assert!(near || edge(from) || edge(to), "{found:?} {expected:?}");
    }
}

/// Consecutive windows sum to the whole, and a transfer passes evenly: half of the time holds half of the
/// bytes.
#[test]
fn windows_add_up() {
    let turns = vec![Turn {
        request: 100,
        server_think: Dur::from_millis(500),
        response: 1_448_000,
        client_think: Dur::ZERO,
    }];
    let mut m = model(Dur::from_secs(10), vec![one(Exchange::Sequential(turns))]);
    m.client_paths[0].down = Some(swell_base::Rate::from_bps(1_500_000));
    let schedule = Schedule {
        starts: vec![Start {
            at: Time::ZERO + Dur::from_secs(2),
            session: 0,
            copy: 0,
        }],
        ..Schedule::default()
    };
    let volume = |from: u64, to: u64| {
        let [a, b] = [from, to].map(Dur::from_millis);
        schedule.volume(&m, &Network::default(), a, b)
    };
    let whole = volume(0, 60_000);
    let offered = m.rates().map(|bps| bps * 10.0 / 8.0);
    for d in 0..2 {
        assert!((whole[d] / offered[d] - 1.0).abs() < 1e-9);
        let parts: f64 = (0..600).map(|i| volume(100 * i, 100 * i + 100)[d]).sum();
        assert!((parts / whole[d] - 1.0).abs() < 1e-9);
    }
    // 1 500 000 bits per second: 125 segments of 1500 bytes.
    for from in [3_000, 4_500, 9_000] {
        let second = volume(from, from + 1_000)[1];
        assert!((second / 187_500.0 - 1.0).abs() < 0.01, "{second}");
        assert!((volume(from, from + 500)[1] / second - 0.5).abs() < 1e-9);
    }
    assert_eq!(volume(0, 2_000), [0.0, 0.0]);
    assert_eq!(volume(30_000, 60_000), [0.0, 0.0]);
}

/// Bytes, units and items of every kind.
#[test]
fn attempts_are_their_syns() {
    let retries = vec![Dur::from_secs(1), Dur::from_secs(2), Dur::from_secs(4)];
    let attempt = Exchange::Attempt {
        retries,
        refused: true,
    };
    assert_eq!(attempt.units(), [4, 0]);
    assert_eq!(attempt.pauses(), Dur::from_secs(7));
    let mut c = one(attempt).groups[0].connections[0].clone();
    for (passed, seconds) in [(0, 0), (1, 0), (2, 1), (3, 3), (4, 7)] {
        c.overlap = Some([passed, 0]);
        assert_eq!(c.awaited_pauses(), Dur::from_secs(seconds), "{passed}");
    }
    let run = |packets| Run {
        packets,
        bytes: u64::from(packets) * 100,
        sizes: [100; 2],
        ..Run::default()
    };
    let long = Exchange::Datagrams(Datagrams {
        packets: Vec::new(),
        runs: [vec![run(5), run(6)], vec![run(7)]],
    });
    assert_eq!((long.items(), long.units()), (6, [11, 7]));
    assert_eq!(long.bytes(), [1_100, 700]);
}
