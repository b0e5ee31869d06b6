//! The structural background over an ideal network does exactly what its model specifies.

use std::sync::Arc;

use crate::common::Ideal;
use swell_base::{Dur, Rate, Time};
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Load, Model, Parameters, Path, Provenance, Run,
    Schedule, Session, Start, Totals, Turn, Unit, Wait, Wire, Write,
};
use swell_workload::{Action, Conn, End, Event, FlowRecord, Record, Structural, Workload as _};

pub(crate) const MS: Dur = Dur::from_millis(1);
pub(crate) const DELAY: Dur = Dur::from_millis(10);

pub(crate) fn connection(gap: Dur, exchange: Exchange) -> Connection {
    Connection {
        gap,
        server: 0,
        exchange,
        client_window: 0,
        server_window: 0,
        wire: Wire::default(),
        writes: Default::default(),
        waits: Vec::new(),
        left_censored: false,
        right_censored: false,
        overlap: None,
    }
}

pub(crate) fn unit(pause: u64, bytes: u64, after: u32) -> Unit {
    Unit {
        pause: MS * pause,
        bytes,
        after,
    }
}

pub(crate) fn turn(request: u64, server_think: u64, response: u64, client_think: u64) -> Turn {
    Turn {
        request,
        server_think: MS * server_think,
        response,
        client_think: MS * client_think,
    }
}

/// A model of one session. Its path has the round-trip time of the ideal network.
pub(crate) fn model(groups: Vec<Group>) -> Model {
    let path = Path {
        rtt: DELAY,
        up: None,
        down: Some(Rate::from_bps(1_000_000)),
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 9,
        capacity_samples: 0,
        loss_samples: 0,
    };
    Model {
        name: "one".into(),
        provenance: Provenance::default(),
        warnings: vec![],
        duration: Dur::from_secs(100),
        parameters: Parameters {
            group_timeout: Dur::from_secs(30),
            session_timeout: Dur::from_secs(300),
            quiet: MS * 500,
        },
        totals: Totals::default(),
        load: Load::default(),
        classes: vec![Class {
            name: "http".into(),
            udp: false,
        }],
        client_paths: vec![path],
        server_paths: vec![path],
        sessions: vec![Session {
            class: 0,
            start: Dur::ZERO,
            weight: 1.0,
            client: 0,
            outside: false,
            lasted: None,
            groups,
        }],
    }
}

pub(crate) fn play(groups: Vec<Group>) -> (Vec<FlowRecord>, Vec<(Time, Action)>) {
    run(model(groups))
}

fn run(model: Model) -> (Vec<FlowRecord>, Vec<(Time, Action)>) {
    run_keeping(model, true)
}

fn run_keeping(model: Model, records: bool) -> (Vec<FlowRecord>, Vec<(Time, Action)>) {
    let at = Time::ZERO + Dur::from_secs(1);
    let schedule = Schedule {
        starts: vec![Start {
            at,
            session: 0,
            copy: 0,
        }],
        ..Schedule::default()
    };
    let mut machine = Structural::new(Arc::new(model), &schedule);
    machine.keep_records(records);
    let mut net = Ideal::new(machine, DELAY);
    let flows = net
        .run(Dur::from_secs(1000))
        .into_iter()
        .map(|r| match r {
            Record::Flow(f) => f,
            Record::Request(r) => panic!("a background left a request: {r:?}"),
        })
        .collect();
    (flows, net.log)
}

pub(crate) fn ms(t: Time) -> u64 {
    t.as_nanos() / 1_000_000
}

pub(crate) fn sends(log: &[(Time, Action)]) -> Vec<(u64, u64)> {
    log.iter()
        .filter_map(|(t, a)| match a {
            Action::Send(_, _, n) => Some((ms(*t), *n)),
            _ => None,
        })
        .collect()
}

/// Keeping records does not change what the workload does.
#[test]
fn records_are_left_only_where_they_are_wanted() {
    let exchange = Exchange::Sequential(vec![turn(100, 5, 1000, 7), turn(200, 5, 2000, 0)]);
    let groups = || {
        vec![Group {
            think: Dur::ZERO,
            connections: vec![connection(Dur::ZERO, exchange.clone())],
        }]
    };
    let (wanted, log) = play(groups());
    let (unwanted, same) = run_keeping(model(groups()), false);
    assert_eq!((wanted.len(), unwanted.len()), (1, 0));
    assert_eq!(log, same);
}

#[test]
fn turns_wait_for_each_other() {
    let turns = vec![turn(300, 50, 5000, 200), turn(400, 0, 6000, 0)];
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, Exchange::Sequential(turns))],
    };
    let (flows, log) = play(vec![group]);
    // Open at 1000; connected at 1020; the request arrives at 1030. 50 ms of server think time; the response is sent
    // at 1080 and arrives at 1090. 200 ms of client think time; the request is sent at 1290 and arrives at 1300;
    // response at 1300.
    assert_eq!(
        sends(&log),
        [(1020, 300), (1080, 5000), (1290, 400), (1300, 6000)]
    );
    assert_eq!((flows[0].up, flows[0].down), (700, 11_000));
    assert_eq!(ms(flows[0].end.unwrap()), 1310);
}

#[test]
fn a_response_that_goes_on_by_itself_waits_from_the_acknowledgement() {
    let turns = vec![turn(300, 0, 5000, 0), turn(0, 700, 800, 0)];
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, Exchange::Sequential(turns))],
    };
    let (flows, log) = play(vec![group]);
    // Sent at 1030, acknowledged at 1050. That is one round trip of the 700 ms.
    assert_eq!(sends(&log), [(1020, 300), (1030, 5000), (1730, 800)]);
    assert_eq!(flows[0].down, 5800);
}

#[test]
fn groups_wait_for_the_last_connection_and_the_user() {
    let one = |n| Exchange::Sequential(vec![turn(100, 0, n, 0)]);
    let first = Group {
        think: Dur::ZERO,
        connections: vec![
            connection(Dur::ZERO, one(1000)),
            connection(MS * 5, one(2000)),
        ],
    };
    let second = Group {
        think: MS * 4000,
        connections: vec![connection(Dur::ZERO, one(3000))],
    };
    let (flows, log) = play(vec![first, second]);
    let opened: Vec<_> = log
        .iter()
        .filter(|a| matches!(a.1, Action::Connect(..)))
        .map(|a| ms(a.0))
        .collect();
    // The second connection finishes at 1005 + 40, and the user thinks for 4 s.
    assert_eq!(opened, [1000, 1005, 5045]);
    assert_eq!(flows.len(), 3);
}

/// Two kept connections of one user: `longer` is how long the second one's first answer takes beyond the first one's.
fn kept(longer: u64) -> Vec<Connection> {
    let wait = |turn, page, pause| Wait {
        turn,
        page,
        pause: MS * pause,
    };
    let exchange =
        |first| Exchange::Sequential(vec![turn(100, first, 1000, 300), turn(200, 0, 2000, 0)]);
    let mut html = connection(Dur::ZERO, exchange(0));
    html.waits = vec![wait(0, 0, 0), wait(1, 1, 500)];
    let mut object = connection(Dur::ZERO, exchange(longer));
    object.waits = vec![wait(0, 0, 0), wait(1, 1, 510)];
    let mut late = connection(MS * 77, Exchange::Sequential(vec![turn(300, 0, 3000, 0)]));
    late.waits = vec![wait(0, 2, 5)];
    vec![html, object, late]
}

fn one_group(connections: Vec<Connection>) -> Vec<Group> {
    vec![Group {
        think: Dur::ZERO,
        connections,
    }]
}

#[test]
fn connections_of_a_user_wait_for_each_other() {
    for longer in [0, 2_000, 59_000] {
        let (flows, log) = play(one_group(kept(longer)));
        assert_eq!(flows.len(), 3);
        // The first answers are there at 1040, and at 1040 + `longer`. The pauses count from the later. The third
        // connection is opened 5 ms after the last answer, and asks 20 ms later.
        let quiet = 1040 + longer;
        let asked: Vec<u64> = (sends(&log).iter())
            .filter(|s| [200, 300].contains(&s.1))
            .map(|s| s.0)
            .collect();
        assert_eq!(asked, [quiet + 500, quiet + 510, quiet + 530 + 25]);
    }
}

/// An answer that does not come for minutes holds up the others for a minute, and not for ever.
#[test]
fn nothing_waits_for_ever() {
    for longer in [70_000, 10_000_000] {
        let (_, log) = play(one_group(kept(longer)));
        let asked: Vec<u64> = (sends(&log).iter())
            .filter(|s| [200, 300].contains(&s.1) && s.0 < 70_000)
            .map(|s| s.0)
            .collect();
        // The connection that is to be opened has waited since 1000, the next request since 1040.
        assert_eq!(asked, [61_020, 61_040], "{longer}");
    }
}

/// A user who paused for long in the trace may wait for longer.
#[test]
fn the_longest_wait_is_relative_to_that_of_the_trace() {
    let mut connections = kept(200_000);
    connections.truncate(2);
    let Exchange::Sequential(turns) = &mut connections[0].exchange else {
        unreachable!()
    };
    turns[0].client_think = MS * 25_000;
    let (_, log) = play(one_group(connections));
    let asked: Vec<u64> = (sends(&log).iter())
        .filter(|s| s.1 == 200)
        .map(|s| s.0)
        .collect();
    assert_eq!(asked, [201_540, 201_550]);
}

/// Where what others wait for is reset, they go on.
#[test]
fn a_connection_that_fails_holds_up_nobody() {
    let schedule = Schedule {
        starts: vec![Start {
            at: Time::ZERO,
            session: 0,
            copy: 0,
        }],
        ..Schedule::default()
    };
    let mut connections = kept(10_000_000);
    connections.truncate(2);
    let machine = Structural::new(Arc::new(model(one_group(connections))), &schedule);
    let mut net = Ideal::new(machine, DELAY);
    net.run(Dur::from_secs(5));
    let mut actions = Vec::new();
    let at = Time::ZERO + Dur::from_secs(5);
    let reset = Event::Reset(Conn(1), End::Client);
    net.workload.handle(at, reset, &mut actions);
    let pauses: Vec<Dur> = (actions.iter())
        .filter_map(|a| match a {
            Action::Timer(pause, _) => Some(*pause),
            _ => None,
        })
        .collect();
    assert_eq!(pauses, [MS * 500]);
}

/// What waits at the end of the last group is played, too.
#[test]
fn a_connection_that_waits_outlasts_the_groups() {
    let mut connections = kept(2_000);
    connections.truncate(2);
    for c in &mut connections {
        c.overlap = Some([1, 1]);
    }
    let mut groups = one_group(connections);
    groups.push(Group {
        think: MS * 10,
        connections: vec![connection(
            Dur::ZERO,
            Exchange::Sequential(vec![turn(9, 0, 9, 0)]),
        )],
    });
    let (flows, log) = play(groups);
    assert_eq!(flows.len(), 3);
    assert_eq!(sends(&log).iter().filter(|s| s.1 == 2000).count(), 2);
}

/// A heartbeat each minute keeps a connection open, while the user continues in parallel.
#[test]
fn a_group_waits_for_no_more_than_it_did() {
    let beats = vec![turn(10, 0, 20, 60_000); 5];
    let mut kept = connection(Dur::ZERO, Exchange::Sequential(beats));
    kept.overlap = Some([1, 1]);
    let one = |n| connection(MS * 5, Exchange::Sequential(vec![turn(100, 0, n, 0)]));
    let first = Group {
        think: Dur::ZERO,
        connections: vec![kept, one(1000)],
    };
    let next = |n| Group {
        think: MS * 40_000,
        connections: vec![one(n)],
    };
    let (flows, log) = play(vec![first, next(2000), next(3000)]);
    let opened: Vec<_> = log
        .iter()
        .filter(|a| matches!(a.1, Action::Connect(..)))
        .map(|a| ms(a.0))
        .collect();
    // The first beat is answered at 1040, and the parallel connection is over at 1045. Then follow 40 s and the gap
    // of 5 ms before each connection.
    assert_eq!(opened, [1000, 1005, 41_050, 81_095]);
    assert_eq!(flows.len(), 4);
    let last = flows.iter().map(|f| ms(f.end.unwrap())).max();
    assert_eq!(last, Some(1_000 + 40 + 4 * 60_020));
}

/// The same for chains, SYNs and datagrams.
#[test]
fn every_kind_of_exchange_may_go_on_beside_the_next_group() {
    let both = Exchange::Concurrent {
        up: vec![unit(0, 100, 0), unit(50_000, 100, 0)],
        down: vec![unit(0, 100, 0), unit(70_000, 100, 0)],
    };
    let attempt = Exchange::Attempt {
        retries: vec![MS * 1_000, MS * 90_000],
        refused: false,
    };
    let d = Datagrams {
        packets: vec![
            (Dur::ZERO, true, 40),
            (MS * 20, false, 40),
            (MS * 60_000, true, 40),
        ],
        ..Datagrams::default()
    };
    for (exchange, overlap, passed) in [
        (both, [1, 1], 1030),
        (attempt, [2, 0], 2000),
        (Exchange::Datagrams(d), [1, 1], 1020),
    ] {
        let mut kept = connection(Dur::ZERO, exchange);
        kept.overlap = Some(overlap);
        let next = connection(Dur::ZERO, Exchange::Sequential(vec![turn(1, 0, 1, 0)]));
        let group = |think, c| Group {
            think,
            connections: vec![c],
        };
        let (_, log) = play(vec![group(Dur::ZERO, kept), group(MS * 30_000, next)]);
        let opened: Vec<_> = log
            .iter()
            .filter(|a| matches!(a.1, Action::Connect(..) | Action::Datagrams(..)))
            .map(|a| ms(a.0))
            .collect();
        assert_eq!(opened, [1000, passed + 30_000]);
    }
}

#[test]
fn units_are_written_in_pieces() {
    let mut c = connection(
        Dur::ZERO,
        Exchange::Sequential(vec![turn(100, 20, 5_000, 300), turn(60, 0, 90, 0)]),
    );
    let place = |after, gap| Write {
        after,
        gap: MS * gap,
    };
    // Write boundaries: inside the first request; inside the first response, before the second, and beyond all data.
    c.writes = [
        vec![place(40, 7)],
        vec![place(1_000, 9), place(4_000, 50), place(1_000, 3)],
    ];
    let group = Group {
        think: Dur::ZERO,
        connections: vec![c],
    };
    let (flows, log) = play(vec![group]);
    assert_eq!(
        sends(&log),
        [
            (1020, 40),
            (1027, 60),
            // The server waits for the whole request, the client for the whole response.
            (1057, 1_000),
            (1066, 4_000),
            (1376, 60),
            (1386, 90),
        ]
    );
    assert_eq!((flows[0].up, flows[0].down), (160, 5_090));
}

#[test]
fn datagrams_keep_their_own_times() {
    let packets = vec![
        (Dur::ZERO, true, 40),
        (MS * 20, false, 400),
        (MS * 5, true, 41),
    ];
    let d = Datagrams {
        packets,
        ..Datagrams::default()
    };
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, Exchange::Datagrams(d))],
    };
    let (_, log) = play(vec![group]);
    let sent: Vec<_> = log
        .iter()
        .filter_map(|(t, a)| match a {
            Action::SendDatagram(_, _, n) => Some((ms(*t), *n)),
            _ => None,
        })
        .collect();
    assert_eq!(sent, [(1000, 40), (1020, 400), (1025, 41)]);
}

/// Bursts of 1 Mbyte during one second in ten, with reports in between: every burst keeps its position and order.
#[test]
fn a_long_datagram_flow_keeps_its_bursts() {
    let burst = |n: u64| Run {
        pause: MS * if n == 0 { 0 } else { 9_000 },
        span: MS * 1_000,
        packets: 1_001,
        bytes: 1_001_000 + n,
        sizes: [900, 1_200],
    };
    let reports = Run {
        pause: MS * 500,
        span: MS * 30_000,
        packets: 61,
        bytes: 61 * 40,
        sizes: [40, 40],
    };
    let d = Datagrams {
        packets: vec![],
        runs: [vec![reports], (0..4).map(burst).collect()],
    };
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, Exchange::Datagrams(d))],
    };
    let (flows, log) = play(vec![group]);
    let mut sent = [0u64; 41];
    let mut ups = Vec::new();
    for (t, a) in &log {
        match a {
            Action::SendDatagram(_, End::Server, n) => {
                sent[((ms(*t) - 1_000) / 1_000) as usize] += u64::from(*n);
            }
            Action::SendDatagram(_, End::Client, _) => ups.push(ms(*t) - 1_000),
            _ => {}
        }
    }
    let want = |s: usize| match s {
        0 | 10 | 20 | 30 => 1_001_000 + s as u64 / 10,
        _ => 0,
    };
    for s in 0..31 {
        // The last packet of a burst is due at its end.
        let at_edge = if s % 10 == 0 {
            sent[s] + sent[s + 1]
        } else {
            0
        };
        assert_eq!(at_edge, want(s), "second {s}");
    }
    assert_eq!(ups.len(), 61);
    assert_eq!((ups[0], ups[1], ups[60]), (500, 1_000, 30_500));
    assert_eq!(sent.iter().sum::<u64>(), 4_004_006);
    // The record is written when the last datagram is sent, so datagrams in flight then are not counted.
    assert_eq!(
        (flows[0].up, flows[0].down),
        (2_440, 4_004_006 - 10 * 1_020)
    );
}

#[test]
fn a_refused_attempt_sends_its_syns_and_gets_its_resets() {
    let exchange = Exchange::Attempt {
        retries: vec![MS * 500, MS * 500],
        refused: true,
    };
    let group = Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, exchange)],
    };
    let (flows, log) = play(vec![group]);
    let sent: Vec<_> = log
        .iter()
        .filter_map(|(t, a)| match a {
            Action::SendDatagram(_, end, n) => Some((ms(*t), *end as u8, *n)),
            _ => None,
        })
        .collect();
    assert_eq!(
        sent,
        [
            (1000, 0, 32),
            (1010, 1, 12),
            (1500, 0, 32),
            (1510, 1, 12),
            (2000, 0, 32),
            (2010, 1, 12)
        ]
    );
    assert_eq!(flows.len(), 1);
}

/// Loss and capacity apply to one direction on one side only.
#[test]
fn paths_are_played_as_they_are() {
    let exchange = Exchange::Sequential(vec![turn(100, 0, 100, 0)]);
    let mut m = model(vec![Group {
        think: Dur::ZERO,
        connections: vec![connection(Dur::ZERO, exchange)],
    }]);
    let rate = |mbit: u64| Some(Rate::from_bps(mbit * 1_000_000));
    let path = |rtt, up, down, losses: [f64; 2]| Path {
        rtt: MS * rtt,
        up,
        down,
        loss_up: losses[0],
        loss_down: losses[1],
        ..m.client_paths[0]
    };
    let client = path(6, rate(2), rate(16), [0.01, 0.02]);
    let server = path(80, None, rate(5), [0.03, 0.04]);
    (m.client_paths, m.server_paths) = (vec![client], vec![server]);
    let log = run(m).1;
    let open = log.iter().find_map(|(_, a)| match a {
        Action::Connect(_, open) => Some(open.clone()),
        _ => None,
    });
    let open = open.expect("a connection");
    for (access, own) in [(&open.client, client), (&open.server, server)] {
        assert_eq!(access.delay, own.rtt / 2);
        assert_eq!((access.up, access.down), (own.up, own.down));
        assert_eq!(
            (access.loss_up, access.loss_down),
            (own.loss_up, own.loss_down)
        );
    }
}
