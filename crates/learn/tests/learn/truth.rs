//! Traffic with known truth: the learnt model must match the input.

use crate::synth::{self, Exchanges, Host, Tap};
use swell_base::{Code, Dur};
use swell_learn::{Learner, Options};
use swell_traffic::{Exchange, Marginals, Model, Quantity, Session};

fn learn(tap: Tap) -> Model {
    let mut learner = Learner::new(Options::default());
    for p in tap.packets() {
        learner.push(&p);
    }
    let model = learner.finish();
    model.check().expect("a learnt model holds together");
    model
}

fn ms(n: u64) -> Dur {
    Dur::from_millis(n)
}

/// Users with two think times, servers at other distances: everything is recovered exactly.
#[test]
fn sizes_thinks_and_round_trips_are_recovered() {
    let mut tap = Tap::new();
    // Segments take practically no transmission time.
    let server = Host::server(1, ms(40)).at(100_000_000_000);
    for user in 0..20u8 {
        let client = Host::client(user, ms(2 + u64::from(user)));
        for visit in 0..3u64 {
            // A minute between visits: one session of three groups.
            tap.connection(
                Dur::from_secs(60) * visit + ms(u64::from(user) * 7),
                client,
                server,
                &Exchanges {
                    turns: vec![(300, ms(15), 5_000, ms(700)), (400, ms(25), 20_000, ms(0))],
                    ..Exchanges::default()
                },
            );
        }
    }
    let m = learn(tap);
    assert_eq!(m.totals.tcp_connections, 60);
    assert_eq!(m.totals.tcp_handshakes, 60);
    assert_eq!(m.sessions.len(), 20);
    for (i, s) in (0u64..).zip(&m.sessions) {
        assert!(!s.outside);
        assert_eq!(m.client_paths[s.client as usize].rtt, ms(2 + i));
        assert_eq!(s.groups.len(), 3);
        for c in s.connections() {
            assert_eq!(m.server_paths[c.server as usize].rtt, ms(40));
            assert!(!c.left_censored && !c.right_censored);
            let Exchange::Sequential(turns) = &c.exchange else {
                panic!("{:?} is not sequential", c.exchange);
            };
            let got: Vec<_> = turns
                .iter()
                .map(|t| (t.request, t.server_think, t.response, t.client_think))
                .collect();
            assert_eq!(
                got,
                [(300, ms(15), 5_000, ms(700)), (400, ms(25), 20_000, ms(0))]
            );
        }
    }
    assert_eq!(
        m.totals.bytes.iter().sum::<u64>(),
        m.load.bytes.iter().flatten().sum::<u64>()
    );
}

/// A user with a connection that carries a heartbeat every minute, and short connections beside it. Each
/// group records the progress of the long connection when the next group began.
#[test]
fn a_kept_connection_does_not_hold_its_user_back() {
    let mut tap = Tap::new();
    let server = Host::server(1, ms(40)).at(100_000_000_000);
    let client = Host::client(1, ms(2));
    let beats = Exchanges {
        turns: vec![(50, ms(1), 60, ms(60_000 - 43)); 6],
        ..Exchanges::default()
    };
    let page = Exchanges {
        turns: vec![(300, ms(15), 5_000, ms(0))],
        ..Exchanges::default()
    };
    tap.connection(Dur::ZERO, client, server, &beats);
    for at in [40u64, 100, 101, 190, 250] {
        tap.connection(Dur::from_secs(at), client, server, &page);
    }
    let m = learn(tap);
    assert_eq!(m.sessions.len(), 1);
    let groups = &m.sessions[0].groups;
    let counts: Vec<_> = groups.iter().map(|g| g.connections.len()).collect();
    // The page at 101 s began when the one at 100 s was over.
    assert_eq!(counts, [1; 6]);
    // Two units per minute: the first heartbeat had been answered when the user began again after 40 s.
    assert_eq!(groups[0].connections[0].overlap, Some([1, 1]));
    assert!(
        groups[1..]
            .iter()
            .flat_map(|g| &g.connections)
            .all(|c| c.overlap.is_none())
    );
    // The think time runs from the last activity: 40 s minus the time of the first heartbeat.
    let first = groups[1].think.as_secs_f64();
    assert!((first - 39.91).abs() < 0.05, "{first}");
    let second = groups[2].think.as_secs_f64();
    assert!((second - 59.9).abs() < 0.05, "{second}");
}

/// Who sends a last message without an answer, as TLS does, does not wait until the server has it. Neither does who
/// resets a connection as soon as it is open. The next pause runs from what the user had heard.
#[test]
fn pauses_run_from_what_the_user_had_heard() {
    let mut tap = Tap::new();
    let (client, server) = (Host::client(1, ms(20)), Host::server(1, ms(80)));
    let page = Exchanges {
        turns: vec![(300, ms(15), 5_000, ms(4)), (31, ms(0), 0, ms(0))],
        ..Exchanges::default()
    };
    for at in [0u64, 1, 2] {
        tap.connection(Dur::from_secs(at), client, server, &page);
    }
    let m = learn(tap);
    let groups = &m.sessions[0].groups;
    assert_eq!(groups.len(), 3);
    for g in &groups[1..] {
        // Handshake, request and response take two round trips of 100 ms and the server's 15 ms.
        let think = g.think.as_secs_f64();
        assert!((think - 0.785).abs() < 0.015, "{think}");
        assert_eq!(g.connections[0].awaited().unwrap_or([1, 1]), [1, 1]);
    }
}

/// The same for repeated SYNs, and for datagrams.
#[test]
fn attempts_and_flows_go_on_beside_the_next_group() {
    let mut tap = Tap::new();
    let (client, server) = (Host::client(1, ms(2)), Host::server(1, ms(40)));
    for at in [0u64, 1, 3, 45] {
        tap.syn(Dur::from_secs(at), client, server, 9);
    }
    tap.syn(Dur::from_secs(40), client, server, 10);
    for at in [0u64, 1, 50, 51] {
        tap.datagram(Dur::from_secs(at), client, server, 50_000, 100);
    }
    tap.datagram(Dur::from_secs(45), client, server, 50_001, 100);
    let m = learn(tap);
    let of = |udp| {
        let class = |s: &&swell_traffic::Session| m.classes[s.class as usize].udp == udp;
        let s = m.sessions.iter().find(class).expect("a session");
        let overlap = s.groups[0].connections[0].overlap;
        (s.groups.len(), overlap, s.groups[1].think.as_secs_f64())
    };
    // SYNs are activity: the pause runs from the third.
    assert_eq!(of(false), (2, Some([3, 0]), 37.0));
    assert_eq!(of(true), (2, Some([2, 0]), 44.0));
}

/// Access links of 1 to 50 Mbit/s before the tap, and receivers that acknowledge every second segment.
/// Packet pairs recover the capacities within 2 %.
#[test]
fn capacities_of_senders_are_recovered() {
    for mbit in [1u64, 5, 20, 50] {
        let mut tap = Tap::new();
        let server = Host::server(1, ms(30)).at(mbit * 1_000_000);
        for i in 0..10u8 {
            tap.connection(
                ms(u64::from(i) * 1_500),
                Host::client(i, ms(3)),
                server,
                &Exchanges {
                    turns: vec![(300, ms(5), 120_000, ms(0))],
                    ..Exchanges::default()
                },
            );
        }
        let m = learn(tap);
        let path = m.server_paths[0];
        let got = path.up.expect("pairs were seen").bps() as f64 / 1e6;
        assert!(
            (got / mbit as f64 - 1.0).abs() < 0.02,
            "{got} for {mbit} Mbit/s"
        );
        assert!(path.capacity_samples >= 100);
    }
}

/// A server of one connection at a time has the rate of its packets for a capacity, which all its connections share. One
/// that serves several at that rate each paces them: each has the rate for itself.
#[test]
fn the_pace_of_a_connection_is_no_capacity_of_its_host() {
    for (at_once, paths) in [(1, 1), (2, 20)] {
        let mut tap = Tap::new();
        let server = Host::server(1, ms(1)).at(8_000_000);
        for i in 0..20u8 {
            tap.connection(
                ms(u64::from(i) * 2_000 / at_once),
                Host::client(i, ms(3)),
                server,
                &Exchanges {
                    turns: vec![(300, ms(5), 1_200_000, ms(0))],
                    ..Exchanges::default()
                },
            );
        }
        let m = learn(tap);
        assert_eq!(m.server_paths.len(), paths, "{at_once} at once");
        for path in &m.server_paths {
            let up = path.up.expect("pairs were seen").bps() as f64;
            assert!((up / 8e6 - 1.0).abs() < 0.02, "{up} bit/s");
        }
    }
}

/// Loss ratios on either side of the tap, 400 packets of 5000 each: counted one by one.
#[test]
fn losses_are_counted_on_their_side() {
    for (before, beyond) in [(0, 0), (20, 0), (0, 20), (20, 30)] {
        let mut tap = Tap::new();
        for i in 0..10u8 {
            tap.connection(
                Dur::from_secs(u64::from(i) * 20),
                Host::client(i, ms(3)),
                Host::server(1, ms(30)),
                &Exchanges {
                    turns: vec![(300, ms(5), 1_460 * 400, ms(0))],
                    lose_before: before,
                    lose_beyond: beyond,
                },
            );
        }
        let m = learn(tap);
        let path = m.server_paths[0];
        // Every packet lost beyond the tap passes it twice.
        let passed = 400.0 + f64::from(beyond);
        let want = [f64::from(before), f64::from(beyond)].map(|n| n / passed);
        assert!((path.loss_up - want[0]).abs() < 1e-3, "{path:?} {want:?}");
        let client = m.client_paths[0];
        let got = client.loss_down;
        assert!(
            (got - f64::from(beyond) / passed).abs() < 1e-3,
            "{client:?}"
        );
        let bytes = Marginals::of(&m);
        let response = bytes.get("http", Quantity::Response).expect("responses");
        assert_eq!(response.quantile(0.5), Some(1_460.0 * 400.0));
    }
}

#[test]
fn equal_packets_give_equal_bytes() {
    let json = |seed| {
        let mut tap = Tap::new();
        for i in 0..50u8 {
            tap.connection(
                ms(u64::from(i) * 13 * seed),
                Host::client(i % 7, ms(3)),
                Host::server(i % 5, ms(30)),
                &Exchanges {
                    turns: vec![(300, ms(5), 1_460 * 40, ms(0))],
                    ..Exchanges::default()
                },
            );
        }
        learn(tap).to_json()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

fn sum_of_connections(m: &Model) -> f64 {
    let of = |s: &Session| s.weight * s.connections().count() as f64;
    m.sessions.iter().map(of).sum()
}

/// With more sessions than the budget, the model has fewer of them and the same volume.
#[test]
fn a_small_budget_thins_and_keeps_the_volume() {
    let mut tap = Tap::new();
    for i in 0..250u64 {
        tap.connection(
            ms(i * 40),
            Host::client(i as u8, ms(3)),
            Host::server((i % 9) as u8, ms(30)),
            &Exchanges {
                turns: vec![(300, ms(5), 1_000 + i as u32 * 400, ms(0))],
                ..Exchanges::default()
            },
        );
    }
    let packets = tap.packets();
    let volume = |budget| {
        let mut learner = Learner::new(Options {
            budget,
            ..Options::default()
        });
        packets.iter().for_each(|p| learner.push(p));
        let m = learner.finish();
        let sum = |of: &dyn Fn(&swell_traffic::Session) -> f64| -> f64 {
            m.sessions.iter().map(|s| s.weight * of(s)).sum()
        };
        (
            m.sessions.len(),
            sum(&|_| 1.0),
            sum(&|s| s.bytes()[1] as f64),
            m,
        )
    };
    let (all, count, bytes, _) = volume(40_000);
    assert_eq!((all, count), (250, 250.0));
    let (kept, estimate, estimated, m) = volume(200);
    assert!(kept <= 100, "{kept}");
    let thinned = m.warnings.iter().find(|w| w.code == Code::Thinned);
    let stand = sum_of_connections(&m);
    let text = format!("stand for {stand:.0} of 250 connections");
    assert!(
        thinned.expect("a warning").message.contains(&text),
        "{text}"
    );
    // Priority sampling of 100 of 250 by size: sums of sizes have a relative standard error below
    // 1/sqrt(99) (Szegedy 2006); three of them.
    assert!((estimated / bytes - 1.0).abs() < 0.3, "{estimated} {bytes}");
    assert!((estimate / count - 1.0).abs() < 0.4, "{estimate}");
}

fn one(tap: &mut Tap, at: Dur, client: Host, server: Host, response: u32) {
    let what = Exchanges {
        turns: vec![(300, ms(5), response, ms(0))],
        ..Exchanges::default()
    };
    tap.connection(at, client, server, &what);
}

/// Fifteen packet pairs give a capacity, fourteen do not.
#[test]
fn fifteen_pairs_are_enough() {
    // Flights of ten packets have nine pairs; the sixth packet of the second flight is its fifth pair.
    for (packets, known) in [(16, false), (17, true)] {
        let mut tap = Tap::new();
        let server = Host::server(1, ms(30)).at(10_000_000);
        one(
            &mut tap,
            ms(0),
            Host::client(1, ms(3)),
            server,
            packets * synth::MSS,
        );
        let path = learn(tap).server_paths[0];
        assert_eq!(path.capacity_samples, if known { 15 } else { 14 });
        assert_eq!(path.up.is_some(), known, "{path:?}");
    }
}

/// Four connections alternate on one link of 10 Mbit/s. Packets of one connection are four packet times
/// apart, which is not the link's rate, so no capacity is given. If one connection later has the link
/// alone, the capacity is found.
#[test]
fn connections_that_share_a_line_do_not_divide_it() {
    for alone in [false, true] {
        let mut tap = Tap::new();
        let client = Host::client(1, ms(3));
        let quarter = Host::server(1, ms(30)).at(2_500_000);
        for i in 0..4 {
            let at = Dur::from_micros(1_200) * i;
            one(&mut tap, at, client, quarter, 100 * synth::MSS);
        }
        if alone {
            let whole = Host::server(1, ms(30)).at(10_000_000);
            one(&mut tap, ms(5_000), client, whole, 100 * synth::MSS);
        }
        let up = learn(tap).server_paths[0].up;
        let mbit = up.map(|rate| rate.bps() as f64 / 1e6);
        assert_eq!(mbit.is_some(), alone, "{mbit:?}");
        assert!(mbit.is_none_or(|m| (m - 10.0).abs() < 0.1), "{mbit:?}");
    }
}

/// A host with ten packets, one of them lost, beside a busy one that loses nothing. Its loss ratio is
/// shrunk towards the side's; its capacity is not taken from the other host.
#[test]
fn a_small_host_beside_a_busy_one() {
    let mut tap = Tap::new();
    let client = Host::client(1, ms(3));
    one(
        &mut tap,
        ms(0),
        client,
        Host::server(1, ms(30)).at(10_000_000),
        400 * synth::MSS,
    );
    let what = Exchanges {
        turns: vec![(300, ms(5), 10 * synth::MSS, ms(0))],
        lose_before: 1,
        ..Exchanges::default()
    };
    tap.connection(Dur::from_secs(20), client, Host::server(2, ms(70)), &what);
    let m = learn(tap);
    let [busy, small] = [m.server_paths[0], m.server_paths[1]];
    assert_eq!((busy.loss_samples, small.loss_samples), (401, 11));
    // Each counts as at most ten packets in the side's ratio: 1 lost of 20. Each host's estimate adds ten
    // packets at that ratio.
    assert!((small.loss_up - 1.5 / 20.0).abs() < 1e-6, "{small:?}");
    assert!((busy.loss_up - 0.5 / 410.0).abs() < 1e-6, "{busy:?}");
    assert_eq!((small.rtt, small.rtt_samples), (ms(70), 1));
    assert!(busy.up.is_some() && small.up.is_none());
}

/// Hosts without RTT samples get the RTT of a host of their class.
#[test]
fn hosts_without_a_round_trip_borrow_one() {
    let mut tap = Tap::new();
    let client = Host::client(1, ms(2));
    for i in 0..5u8 {
        let server = Host::server(i, ms(40 + 10 * u64::from(i)));
        one(
            &mut tap,
            Dur::from_secs(u64::from(i)),
            client,
            server,
            1_000,
        );
    }
    for i in 100..130u8 {
        // Unanswered SYNs.
        tap.syn(
            Dur::from_secs(6),
            client,
            Host::server(i, ms(7)),
            u16::from(i),
        );
    }
    let m = learn(tap);
    let (own, borrowed): (Vec<swell_traffic::Path>, Vec<swell_traffic::Path>) = m
        .server_paths
        .iter()
        .copied()
        .partition(|p| p.rtt_samples > 0);
    assert_eq!((own.len(), borrowed.len()), (5, 30));
    let donors: Vec<_> = own.iter().map(|p| p.rtt).collect();
    assert!(donors.iter().all(|&rtt| rtt >= ms(39)));
    assert!(borrowed.iter().all(|p| donors.contains(&p.rtt)));
    // They do not all borrow from the same host.
    let mut different: Vec<_> = borrowed.iter().map(|p| p.rtt).collect();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() >= 3, "{different:?}");
}

/// A group ends with its connections and a session after 5 min without activity, counted from the last data, however
/// late in the group they passed.
#[test]
fn time_outs_count_from_the_last_data() {
    let client = Host::client(1, ms(2));
    let server = Host::server(1, ms(40));
    for (silence, groups, sessions) in [
        (100, vec![1, 1], 1),
        (30_100, vec![1, 1], 1),
        (299_900, vec![1, 1], 1),
        (300_100, vec![1], 2),
    ] {
        let mut tap = Tap::new();
        // Its last response passes the tap at about 20.1 s.
        let what = Exchanges {
            turns: vec![(300, ms(5), 100, ms(20_000)), (300, ms(5), 100, ms(0))],
            ..Exchanges::default()
        };
        tap.connection(Dur::ZERO, client, server, &what);
        let last = ms(42 + 45 + 2 + 20_000 + 45);
        one(&mut tap, last + ms(silence), client, server, 1_000);
        let m = learn(tap);
        let counts: Vec<_> = m.sessions[0]
            .groups
            .iter()
            .map(|g| g.connections.len())
            .collect();
        assert_eq!(
            (m.sessions.len(), counts),
            (sessions, groups),
            "{silence} ms"
        );
    }
}

/// The propagation delay of the tapped link is given as an option and appears in no path. Half of it is
/// subtracted on either side of the tap. If the hosts on one side are next to the tap, all of it is
/// subtracted on the other. Pauses are unchanged.
#[test]
fn the_links_own_length_is_taken_out() {
    let learnt = |client: Dur, server: Dur, link: Dur| {
        let mut tap = Tap::new();
        let page = Exchanges {
            turns: vec![(300, ms(15), 5_000, ms(700)), (400, ms(25), 20_000, ms(0))],
            ..Exchanges::default()
        };
        for i in 1..6 {
            let at = Dur::from_secs(10 * u64::from(i));
            let further = Dur::from_millis(u64::from(i) - 1);
            tap.connection(
                at,
                Host::client(i, client + further),
                Host::server(i, server),
                &page,
            );
        }
        let mut learner = Learner::new(Options {
            link_rtt: link,
            ..Options::default()
        });
        tap.packets().iter().for_each(|p| learner.push(p));
        learner.finish()
    };
    let near = |a: Dur, b: Dur| (a.as_secs_f64() - b.as_secs_f64()).abs() < 0.001;
    for (client, server, left, right) in [(12, 50, 2, 40), (1, 50, 0, 31)] {
        let m = learnt(ms(client), ms(server), ms(20));
        let (c, s) = (m.client_paths[0].rtt, m.server_paths[0].rtt);
        assert!(near(c, ms(left)) && near(s, ms(right)), "{c} {s}");
        let plain = learnt(ms(client), ms(server), ms(0));
        let exchanges = |of: &Model| -> Vec<Exchange> {
            of.sessions
                .iter()
                .flat_map(Session::connections)
                .map(|x| x.exchange.clone())
                .collect()
        };
        assert_eq!(exchanges(&m), exchanges(&plain));
        let warns = |of: &Model| of.warnings.iter().any(|w| w.code == Code::LinkRtt);
        assert!(!warns(&m) && !warns(&plain));
        // Longer than the nearest hosts are apart.
        let long = learnt(ms(client), ms(server), ms(client + server + 5));
        assert!(warns(&long), "{:?}", long.warnings);
    }
}
