//! Transfers over TCP: every byte arrives, from the right addresses, distributed over hosts.

use std::net::SocketAddr;

use swell_base::{Rate, Stream};

use super::*;
use crate::connect::Marks;
use crate::playing::Playing;

const SIZES: [(u64, u64); 7] = [
    (0, 0),
    (48, 1),
    (49, 0),
    (300, 100_000),
    (3_000_000, 200),
    (5_000_000, 7_000_000),
    (300, 60_000),
];

#[test]
fn every_byte_arrives_and_every_transfer_is_told() {
    for keep in [false, true] {
        let server = server();
        let sizes = |n: u64| SIZES[n as usize % SIZES.len()];
        let traffic = transfers(5, 14, Dur::from_millis(20), sizes);
        let how = Play {
            keep,
            ..Play::default()
        };
        let (counts, flows) = play(&client(&server, traffic, how));
        assert_eq!((counts.begun, counts.done, counts.failed), (70, 70, 0));
        assert_eq!(flows.len(), 70);
        let up: u64 = flows.iter().map(|f| f.up).sum();
        let expected: u64 = SIZES.iter().map(|s| s.0.max(48)).sum();
        assert_eq!(up, 10 * expected);
        let down: u64 = flows.iter().map(|f| f.down).sum();
        // On a kept connection, one byte marks the end of an upload.
        let least = u64::from(keep);
        let expected: u64 = SIZES.iter().map(|s| s.1.max(least)).sum();
        assert_eq!(down, 10 * expected);
        for f in &flows {
            assert_eq!(f.outcome, Outcome::Done);
            assert!(
                f.due <= f.begun && f.begun <= f.connected && f.connected <= f.end,
                "{f:?}"
            );
            assert!(
                f.down == 0 || f.connected <= f.first && f.first <= f.end,
                "{f:?}"
            );
        }
        assert_eq!(flows.iter().any(|f| f.reused), keep);
        let theirs = server.stop().counts;
        assert_eq!((theirs.begun, theirs.done, theirs.failed), (70, 70, 0));
        assert_eq!((theirs.received_bytes, theirs.sent_bytes), (up, down));
        assert_eq!((theirs.strangers, theirs.unfinished), (0, 0));
        if !keep {
            assert_eq!((counts.connections, theirs.connections), (70, 70));
        } else {
            assert!(counts.connections < 70 && counts.connections == theirs.connections);
        }
    }
}

/// 200 kB at 400 kB/s up and down, and the other direction without a limit.
#[test]
fn a_transfer_with_a_limit_is_no_faster() {
    for keep in [false, true] {
        let server = server();
        let limit = Some(Rate::from_bps(3_200_000));
        let sizes = |n: u64| [(200_000, 300), (300, 200_000)][n as usize % 2];
        let mut traffic = transfers(2, 2, Dur::from_millis(20), sizes);
        for due in &mut traffic.0 {
            if let Due::Transfer(t) = due {
                t.limits = if t.up > t.down {
                    [limit, None]
                } else {
                    [None, limit]
                };
            }
        }
        let how = Play {
            keep,
            ..Play::default()
        };
        let (counts, flows) = play(&client(&server, traffic, how));
        assert_eq!((counts.done, counts.failed), (4, 0));
        for f in &flows {
            let lasted = (f.end - f.connected) as f64 / 1e9;
            assert!((0.46..3.0).contains(&lasted), "{f:?}");
        }
    }
}

/// At a byte per second the header of 48 bytes would take longer than a connection may stand still.
#[test]
fn the_header_of_a_very_slow_file_leaves_at_once() {
    let server = server();
    let mut traffic = transfers(1, 1, Dur::from_millis(20), |_| (50, 100));
    for due in &mut traffic.0 {
        if let Due::Transfer(t) = due {
            t.limits = [Some(Rate::from_bps(8)), None];
        }
    }
    let (counts, flows) = play(&client(&server, traffic, Play::default()));
    assert_eq!((counts.done, counts.failed), (1, 0));
    let lasted = (flows[0].end - flows[0].connected) as f64 / 1e9;
    assert!(lasted < 10.0, "{lasted}");
}

#[test]
fn several_clients_servers_and_threads_share_the_sessions_without_loss() {
    let threads = |role| Config {
        threads: 3,
        ..config(role)
    };
    let servers = [0, 1].map(|_| serving(2, threads(Role::Server(Server::default()))));
    let targets: Vec<Target> = servers.iter().map(target).collect();
    let clients: Vec<Run> = [0, 1]
        .iter()
        .map(|&index| {
            let traffic = transfers(20, 10, Dur::from_millis(10), |_| (100, 1_000));
            Run::new(threads(Role::Client(Client {
                index,
                of: 2,
                ..client_of(targets.clone(), traffic, Play::default())
            })))
            .unwrap()
        })
        .collect();
    for client in &clients {
        until(|| client.statistics().parties == 2);
        client.start();
    }
    let mut done = 0;
    for client in &clients {
        until(|| client.is_played());
        let counts = client.stop().counts;
        assert_eq!((counts.begun, counts.failed), (100, 0), "each has half");
        done += counts.done;
    }
    assert_eq!(done, 200);
    for server in &servers {
        assert_eq!(server.stop().counts.done, 100, "destinations take turns");
    }
}

#[test]
fn sources_and_destinations_are_the_pools_and_code_points_are_set() {
    let role = Role::Server(Server {
        clients: vec![pool("127.7.0.0/16")],
        pool: pool("127.9.0.0/16"),
        port: 0,
    });
    let server = Run::new(config(role)).unwrap();
    let role = Role::Client(Client {
        pool: pool("127.7.0.0/16"),
        servers: vec![Target {
            pool: pool("127.9.0.0/16"),
            ..target(&server)
        }],
        ..client_of(
            Vec::new(),
            transfers(3, 4, Dur::from_millis(5), |_| (100, 1_000)),
            Play {
                dscp: vec![46, 0],
                ..Play::default()
            },
        )
    });
    let config = Config {
        congestion: vec!["reno".into(), "cubic".into()],
        ..config(role)
    };
    let (counts, flows) = play(&Run::new(config).unwrap());
    assert_eq!((counts.done, counts.congestion_refused), (12, 0));
    let mut sources: Vec<_> = flows.iter().map(|f| f.source.to_string()).collect();
    sources.sort();
    sources.dedup();
    assert_eq!(sources, ["127.7.0.1", "127.7.0.2", "127.7.0.3"]);
    let mut to: Vec<_> = flows.iter().map(|f| f.destination.to_string()).collect();
    to.sort();
    to.dedup();
    assert_eq!(to, ["127.9.0.1", "127.9.0.2", "127.9.0.3", "127.9.0.4"]);
}

#[test]
fn both_families_of_addresses_work() {
    let role = Role::Server(Server {
        clients: vec![Addresses::parse(&["127.0.0.1", "::1"]).unwrap()],
        ..Server::default()
    });
    let server = Run::new(config(role)).unwrap();
    let mut both = transfers(1, 20, Dur::from_millis(10), |_| (60, 70));
    let span = Dur::from_millis(200);
    let step = Dur::from_millis(10);
    both.0.push(source(
        UdpKind::Periodic,
        step,
        span,
        burst(1.0, 60),
        burst(1.0, 70),
    ));
    let address: SocketAddr = ("::1".parse::<std::net::IpAddr>().unwrap(), server.port()).into();
    let role = Role::Client(client_of(
        vec![Target {
            address,
            ..target(&server)
        }],
        both,
        Play::default(),
    ));
    let (counts, flows) = play(&Run::new(config(role)).unwrap());
    assert_eq!((counts.failed, counts.datagrams_refused), (0, 0));
    assert_eq!((counts.done, counts.datagrams_received), (20, 20));
    assert!(flows.iter().all(|f| f.destination.to_string() == "::1"));
}

/// A kept connection leads to one server. Another server at the same address needs its own.
#[test]
fn servers_that_share_an_address_share_no_connections() {
    let servers = [server(), server()];
    let how = Play {
        keep: true,
        ..Play::default()
    };
    // One session; its destinations are those of the two servers in turn.
    let traffic = transfers(1, 20, Dur::from_millis(20), |_| (100, 1_000));
    let role = Role::Client(client_of(
        servers.iter().map(target).collect(),
        traffic,
        how,
    ));
    let client = Run::new(config(role)).unwrap();
    until(|| client.statistics().parties == 2);
    let (counts, _) = play(&client);
    assert_eq!((counts.done, counts.failed), (20, 0));
    assert_eq!(servers.map(|s| s.stop().counts.done), [10, 10]);
}

#[test]
fn closed_sessions_make_one_transfer_at_a_time() {
    let server = server();
    let how = Play {
        keep: true,
        ..Play::default()
    };
    let closed = Closed {
        sessions: 2,
        up: 48,
        down: 10_000,
    };
    let client = client(&server, closed, how);
    agreed(&client);
    client.start();
    until(|| client.statistics().counts.done > 400);
    let counts = client.stop().counts;
    assert_eq!((counts.connections, counts.failed), (2, 0));
    let flows = client.flows(0, usize::MAX).flows;
    for session in [0, 1] {
        let mut own: Vec<&Flow> = flows.iter().filter(|f| f.session == session).collect();
        own.sort_by_key(|f| f.begun);
        assert!(own.windows(2).all(|w| w[0].end <= w[1].begun));
    }
}

#[test]
fn what_is_due_is_what_was_planned_to_the_nanosecond() {
    let server = server();
    let mut random = Stream::new(5, "gaps");
    let mut now = Time::ZERO;
    let mut script = transfers(1, 300, Dur::ZERO, |_| (48, 1));
    for due in &mut script.0 {
        now += Dur::from_secs_f64(random.exponential(0.003));
        if let Due::Transfer(t) = due {
            t.at = now;
        }
    }
    let (_, mut flows) = play(&client(&server, script.clone(), Play::default()));
    flows.sort_by_key(|f| f.due);
    let planned: Vec<u64> = script.0.iter().map(|due| at(due).as_nanos()).collect();
    let played: Vec<u64> = flows.iter().map(|f| f.due).collect();
    assert_eq!(planned, played);
}

#[test]
fn every_code_point_meets_every_congestion_control() {
    let play = Play {
        dscp: vec![0, 10, 46, 8],
        ..Play::default()
    };
    let nothing = Script(Vec::new());
    let mut playing = Playing::new(&client_of(Vec::new(), nothing, play));
    // Two and four have a common factor, so two independent rotations would only produce some of the pairs.
    let mut met: Vec<(u8, u8)> = (0..8)
        .map(|_| playing.marks(2))
        .map(|m| (m.dscp, m.congestion))
        .collect();
    met.sort_unstable();
    met.dedup();
    assert_eq!(met.len(), 8, "{met:?}");
    let mut plain = Playing::new(&client_of(Vec::new(), Script(Vec::new()), Play::default()));
    assert!((0..5).all(|_| plain.marks(0) == Marks::default()));
}

#[test]
fn a_server_at_any_port_finds_one_that_is_free_for_udp_too() {
    // The first server raises the limit of open files.
    let mut servers = vec![server()];
    let taken: Vec<_> = (0..3000)
        .map_while(|_| std::net::UdpSocket::bind("[::]:0").ok())
        .collect();
    assert!(taken.len() > 500, "{}", taken.len());
    servers.extend((0..40).map(|_| server()));
    assert!(servers.iter().all(|s| s.port() == s.datagram_port()));
}
