#![expect(
    clippy::shadow_unrelated,
    reason = "one name for what is measured again after each change"
)]

use super::*;
use crate::testing::{model, session};
use crate::*;
use proptest::collection::vec;
use proptest::prelude::*;
use swell_base::Rate;

fn micros() -> impl Strategy<Value = Dur> {
    prop_oneof![Just(0), 0..10_000_000u64].prop_map(Dur::from_micros)
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 1..3_000u64, 1..3_000_000u64]
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let turn = (size(), micros(), size(), micros()).prop_map(
        |(request, server_think, response, client_think)| Turn {
            request,
            server_think,
            response,
            client_think,
        },
    );
    // Each unit waits at most for units of the other end that precede it, so there are no cycles.
    let chains = (
        vec((micros(), 1..100_000u64, any::<bool>()), 0..5),
        vec((micros(), 1..100_000u64), 0..5),
    )
        .prop_map(|(up, down)| {
            let mut heard = 0;
            let up = up.into_iter().map(|(pause, bytes, waits)| {
                if waits && heard < down.len() as u32 {
                    heard += 1;
                }
                Unit {
                    pause,
                    bytes,
                    after: heard,
                }
            });
            let up = up.collect();
            let down = down.iter().map(|&(pause, bytes)| Unit {
                pause,
                bytes,
                after: 0,
            });
            Exchange::Concurrent {
                up,
                down: down.collect(),
            }
        });
    let packets = vec((micros(), any::<bool>(), 0..1_500u32), 1..20).prop_map(|packets| {
        Exchange::Datagrams(Datagrams {
            packets,
            ..Datagrams::default()
        })
    });
    prop_oneof![
        vec(turn, 1..5).prop_map(Exchange::Sequential),
        chains,
        packets,
    ]
}

fn connection() -> impl Strategy<Value = Connection> {
    let writes = || {
        vec((1..200_000u64, 0..3_000_000u64), 0..4).prop_map(|w| {
            let write = |(after, us)| Write {
                after,
                gap: Dur::from_micros(us),
            };
            w.into_iter().map(write).collect::<Vec<Write>>()
        })
    };
    (micros(), exchange(), [writes(), writes()]).prop_map(|(gap, exchange, writes)| Connection {
        gap,
        exchange,
        writes,
        ..session(0, Dur::ZERO, 0).groups[0].connections[0].clone()
    })
}

fn any_session() -> impl Strategy<Value = Session> {
    let group = (micros(), vec(connection(), 1..4))
        .prop_map(|(think, connections)| Group { think, connections });
    vec(group, 1..4).prop_map(|groups| Session {
        groups,
        ..session(0, Dur::ZERO, 0)
    })
}

/// The rest of a session's group as a group of a model.
fn copied(m: &Model, e: &Entered) -> Option<Group> {
    let connections = e.rest.as_ref()?.iter().map(|rest| {
        let part = rest.part(&m.sessions[0]).unwrap();
        Connection {
            gap: rest.gap,
            ..owned(part)
        }
    });
    Some(Group {
        think: Dur::ZERO,
        connections: connections.collect(),
    })
}

/// A part as a connection of a model.
fn owned(part: ConnectionView<'_>) -> Connection {
    let exchange = match part.data() {
        Data::Sequential(turns) => Exchange::Sequential(turns.iter().collect()),
        Data::Concurrent(chains) => {
            let [up, down] = chains.map(|c| c.iter().collect());
            Exchange::Concurrent { up, down }
        }
        Data::Attempt { retries, refused } => Exchange::Attempt {
            retries: retries.iter().collect(),
            refused,
        },
        Data::Datagrams(flow) => {
            let [packets, runs] = match &part.connection.exchange {
                Exchange::Datagrams(d) if d.is_whole() => [true, false],
                _ => [false, true],
            };
            let mut cursor = Cursor::default();
            let listed = std::iter::from_fn(|| flow.step(&mut cursor)).filter(|_| packets);
            Exchange::Datagrams(Datagrams {
                packets: listed.collect(),
                runs: flow
                    .runs()
                    .map(|list| list.iter().filter(|_| runs).collect()),
            })
        }
    };
    let turns = exchange.units()[0] as u32;
    let opening = part.opening().into_iter();
    let waits = opening.chain((1..turns).filter_map(|turn| part.wait(turn)));
    Connection {
        exchange,
        writes: [0, 1].map(|end| part.writes(end).iter().collect()),
        waits: waits.collect(),
        overlap: part.overlap(),
        ..part.connection.clone()
    }
}

/// The rest of a session as a session.
fn left(m: &Model, e: &Entered) -> Session {
    let whole = &m.sessions[0];
    let mut groups: Vec<Group> = copied(m, e).into_iter().collect();
    groups.extend_from_slice(&whole.groups[e.group as usize..]);
    if e.rest.is_none() {
        groups[0].think = e.pause;
    }
    Session {
        groups,
        ..whole.clone()
    }
}

proptest! {
    #[test]
    fn what_is_left_takes_the_time_and_the_bytes_that_are_left(
        s in any_session(),
        share in 0.0..1.0f64,
        slow: bool,
    ) {
        let mut m = model(Dur::from_secs(100), vec![s]);
        m.client_paths[0].rtt = Dur::from_millis(1);
        m.server_paths[0].rtt = Dur::from_millis(1);
        if slow {
            m.client_paths[0].down = Some(Rate::from_bps(1_000_000));
        }
        let network = Network::default();
        let times = Groups::of(&m, &m.sessions[0], &network);
        let age = times.end.scale(share);
        let found = at(&m, &times, 7, age);
        // The session, and connections that nobody waits for.
        prop_assert!(found.len() <= 2);
        if found.is_empty() {
            // All data have arrived, though the last answer to them may be on its way.
            for (group, at) in m.sessions[0].groups.iter().zip(&times.groups) {
                for (c, &(start, _)) in group.connections.iter().zip(&at.connections) {
                    let course = Timeline::of(&m, &m.sessions[0], c, &network);
                    prop_assert!(course.spans.iter().all(|s| start + s.to <= age));
                }
            }
            return Ok(());
        }
        for e in &found {
            prop_assert_eq!((e.session, e.copy, e.age), (0, 7, age));
        }
        let rests: Vec<Session> = found.iter().map(|e| left(&m, e)).collect();
        // The bytes that have been sent and the bytes that are left sum to the whole.
        let begun = |c: &Connection, start: Dur| {
            let course = Timeline::of(&m, &m.sessions[0], c, &network);
            let tcp = !matches!(c.exchange, Exchange::Datagrams(_));
            let mut bytes = [0u64; 2];
            for span in &course.spans {
                let age = age.saturating_sub(start);
                // Datagrams are sent at once; a connection in its handshake starts again.
                if span.from <= age && !(tcp && age < course.rtt) {
                    bytes[span.end] += sent(span, age);
                }
            }
            bytes
        };
        let mut passed = [0u64; 2];
        for (group, at) in m.sessions[0].groups.iter().zip(&times.groups) {
            for (c, &(start, _)) in group.connections.iter().zip(&at.connections) {
                if start <= age {
                    let bytes = begun(c, start);
                    (0..2).for_each(|d| passed[d] += bytes[d]);
                }
            }
        }
        let all = m.sessions[0].bytes();
        for d in 0..2 {
            let remain: u64 = rests.iter().map(|rest| rest.bytes()[d]).sum();
            prop_assert_eq!(passed[d] + remain, all[d], "{}", d);
        }
        for rest in &rests {
            // It ends no later than the whole would have. The tolerance covers new handshakes and slow starts,
            // and writes and pauses without a successor. It also covers a delayed ACK per end, because the
            // rest may be an odd number of segments.
            let played = Groups::of(&m, rest, &network);
            let end = times.end - age;
            let written = rest.connections().flat_map(|c| c.writes.iter().flatten().map(|w| w.gap));
            let each = Dur::from_millis(20 + 2 * 40);
            let tolerance = each * (rest.connections().count() as u64 + 1) + written.sum::<Dur>();
            prop_assert!(played.end <= end + tolerance, "{} of {}", played.end, end);
            // It satisfies the file format.
            for c in rest.connections() {
                if let Exchange::Datagrams(d) = &c.exchange {
                    prop_assert!(d.is_whole() && !d.packets.is_empty());
                }
            }
        }
    }

    #[test]
    fn less_is_left_later(s in any_session(), a in 0.0..1.0f64, b in 0.0..1.0f64) {
        let m = model(Dur::from_secs(100), vec![s]);
        let network = Network::default();
        let times = Groups::of(&m, &m.sessions[0], &network);
        let left_at = |share: f64| {
            let found = at(&m, &times, 0, times.end.scale(share));
            let bytes: Vec<[u64; 2]> = found.iter().map(|e| left(&m, e).bytes()).collect();
            (!bytes.is_empty()).then(|| [0, 1].map(|d| bytes.iter().map(|b| b[d]).sum::<u64>()))
        };
        if let (Some(early), Some(late)) = (left_at(a.min(b)), left_at(a.max(b))) {
            prop_assert!(late[0] <= early[0] && late[1] <= early[1], "{early:?} {late:?}");
        }
    }
}

/// The first session at `age`.
fn at(m: &Model, times: &Groups, copy: u32, age: Dur) -> Vec<Entered> {
    let network = Network::default();
    let entering = SessionInProgress::new(m, (0, times), &network).unwrap();
    entering.at(copy, age)
}

/// The rest of the group of the first session at `age`.
fn rest_at(m: &Model, age: Dur) -> Group {
    copied(m, &entered(m, age)).unwrap()
}

fn long(bytes: u64) -> Model {
    // A megabyte per second.
    let mut m = model(Dur::from_secs(100), vec![session(0, Dur::ZERO, bytes)]);
    m.client_paths[0].down = Some(Rate::from_bps(8_000_000));
    m
}

fn entered(m: &Model, age: Dur) -> Entered {
    let network = Network::default();
    let times = Groups::of(m, &m.sessions[0], &network);
    at(m, &times, 0, age).remove(0)
}

#[test]
fn a_transfer_goes_on_with_what_remains() {
    let m = long(10_000_000);
    let e = entered(&m, Dur::from_secs(4));
    let rest = copied(&m, &e).unwrap();
    let Exchange::Sequential(turns) = &rest.connections[0].exchange else {
        panic!("{rest:?}")
    };
    let [turn] = turns[..] else {
        panic!("{turns:?}")
    };
    assert_eq!((turn.request, turn.server_think), (0, Dur::ZERO));
    let remain = turn.response as f64;
    // Four seconds minus the handshake and the request; 52 bytes of 1500 are headers.
    let passed = (4.0 - 0.05) * 1e6 * 1448.0 / 1500.0;
    assert!((remain / (10e6 - passed) - 1.0).abs() < 0.01, "{remain}");
    assert_eq!((e.group, e.pause), (1, Dur::ZERO));
}

#[test]
fn pauses_go_on_with_what_remains() {
    let mut m = long(1_000);
    let mut second = m.sessions[0].groups[0].clone();
    second.think = Dur::from_secs(30);
    m.sessions[0].groups.push(second);
    // Handshake, request, 20 ms, response; then the user thinks.
    let e = entered(&m, Dur::from_secs(10));
    assert_eq!((e.group, e.rest.is_none()), (1, true));
    assert!((e.pause.as_secs_f64() - 20.06).abs() < 0.02, "{}", e.pause);

    // Inside a connection: a thinking server, then a thinking client. The new handshake is subtracted.
    let think = Turn {
        request: 300,
        server_think: Dur::from_secs(5),
        response: 1_000,
        client_think: Dur::from_secs(20),
    };
    m.sessions[0].groups[0].connections[0].exchange = Exchange::Sequential(vec![think; 2]);
    let first = |age: u64| {
        let rest = rest_at(&m, Dur::from_secs(age));
        match &rest.connections[0].exchange {
            Exchange::Sequential(turns) => turns.clone(),
            other => panic!("{other:?}"),
        }
    };
    let turns = first(2);
    assert_eq!(turns.len(), 2);
    assert_eq!((turns[0].request, turns[0].response), (0, 1_000));
    assert!(
        (turns[0].server_think.as_secs_f64() - 3.01).abs() < 0.03,
        "{turns:?}"
    );
    let turns = first(15);
    assert_eq!(turns.len(), 2);
    assert_eq!((turns[0].request, turns[0].response), (0, 0));
    assert!(
        (turns[0].client_think.as_secs_f64() - 10.02).abs() < 0.05,
        "{turns:?}"
    );
    assert_eq!(turns[1], think);
}

#[test]
fn connections_that_come_keep_their_places() {
    let mut m = long(20_000_000);
    let later = |secs: u64| Connection {
        gap: Dur::from_secs(secs),
        ..m.sessions[0].groups[0].connections[0].clone()
    };
    let (second, third) = (later(5), later(3));
    m.sessions[0].groups[0].connections.extend([second, third]);
    let rest = rest_at(&m, Dur::from_secs(4));
    let gaps: Vec<Dur> = rest.connections.iter().map(|c| c.gap).collect();
    assert_eq!(gaps, [Dur::ZERO, Dur::from_secs(1), Dur::from_secs(3)]);
    let whole = |c: &Connection| c.exchange.bytes()[1] == 20_000_000;
    assert_eq!(
        rest.connections.iter().map(whole).collect::<Vec<_>>(),
        [false, true, true]
    );
}

#[test]
fn datagrams_and_attempts_go_on_at_their_times() {
    let mut m = long(0);
    let packet = |secs: u64, n: u32| (Dur::from_secs(secs), true, n);
    m.sessions[0].groups[0].connections[0].exchange = Exchange::Datagrams(Datagrams {
        packets: vec![packet(0, 1), packet(3, 2), packet(3, 3)],
        ..Datagrams::default()
    });
    let rest = rest_at(&m, Dur::from_secs(2));
    let Exchange::Datagrams(d) = &rest.connections[0].exchange else {
        panic!("{rest:?}")
    };
    assert_eq!(d.packets, [packet(1, 2), packet(3, 3)]);

    // Runs: the second of three datagrams is due 2 s later; the other direction's has passed.
    let run = |pause: u64| Run {
        pause: Dur::from_secs(pause),
        span: Dur::from_secs(4),
        packets: 3,
        bytes: 300,
        sizes: [100, 100],
    };
    m.sessions[0].groups[0].connections[0].exchange = Exchange::Datagrams(Datagrams {
        runs: [vec![run(1), run(2)], Vec::new()],
        ..Datagrams::default()
    });
    let rest = rest_at(&m, Dur::from_secs(2));
    let Exchange::Datagrams(d) = &rest.connections[0].exchange else {
        panic!("{rest:?}")
    };
    let first = Run {
        span: Dur::from_secs(2),
        packets: 2,
        bytes: 200,
        ..run(1)
    };
    assert_eq!(d.runs, [vec![first, run(2)], Vec::new()]);

    m.sessions[0].groups[0].connections[0].exchange = Exchange::Attempt {
        retries: vec![Dur::from_secs(1), Dur::from_secs(2), Dur::from_secs(4)],
        refused: true,
    };
    let rest = rest_at(&m, Dur::from_secs(2));
    let c = &rest.connections[0];
    assert_eq!(c.gap, Dur::from_secs(1));
    let retries = vec![Dur::from_secs(4)];
    assert_eq!(
        c.exchange,
        Exchange::Attempt {
            retries,
            refused: true
        }
    );
}

#[test]
fn writes_go_on_at_their_places() {
    let mut m = long(3_000);
    m.sessions[0].groups[0].connections[0].writes[1] = vec![
        Write {
            after: 1_000,
            gap: Dur::from_secs(10),
        },
        Write {
            after: 1_000,
            gap: Dur::from_secs(10),
        },
    ];
    // 50 ms until the response begins; 4 s later a thousand bytes have arrived and two thousand follow.
    let rest = rest_at(&m, Dur::from_millis(4_050));
    let c = &rest.connections[0];
    assert_eq!(c.exchange.bytes()[1], 2_000);
    let Exchange::Sequential(turns) = &c.exchange else {
        panic!("{c:?}")
    };
    assert!(
        (turns[0].server_think.as_secs_f64() - 5.98).abs() < 0.1,
        "{turns:?}"
    );
    assert_eq!(
        c.writes[1],
        [Write {
            after: 1_000,
            gap: Dur::from_secs(10)
        }]
    );
}

#[test]
fn what_goes_on_beside_later_groups_is_entered_too() {
    let mut m = long(20_000_000);
    // The next group waits only for the request; its own transfer is short.
    m.sessions[0].groups[0].connections[0].overlap = Some([1, 0]);
    let mut second = session(0, Dur::ZERO, 1_000).groups.remove(0);
    second.think = Dur::from_secs(5);
    m.sessions[0].groups.push(second);
    let network = Network::default();
    let times = Groups::of(&m, &m.sessions[0], &network);
    let at = |secs: u64| at(&m, &times, 0, Dur::from_secs(secs));
    let [beside, main] = &at(2)[..] else {
        panic!("{:?}", at(2))
    };
    assert_eq!(
        (beside.group, main.group, main.rest.is_none()),
        (2, 1, true)
    );
    assert!(
        (main.pause.as_secs_f64() - 3.03).abs() < 0.01,
        "{}",
        main.pause
    );
    let left = copied(&m, beside).unwrap().connections[0].exchange.bytes();
    assert!((left[1] as f64 / 18e6 - 1.0).abs() < 0.02, "{left:?}");
    // The second group ends long before the transfer.
    assert_eq!(at(10).len(), 1);
    assert_eq!(at(10)[0].group, 2);
    assert!(at(21).is_empty());
}

/// Turns that have not begun still wait for other connections; the one that is next does not.
#[test]
fn later_turns_still_wait_for_other_connections() {
    let wait = |turn, page| Wait {
        turn,
        page,
        pause: Dur::from_secs(1),
    };
    let mut c = long(0).sessions[0].groups[0].connections[0].clone();
    c.waits = vec![wait(0, 1), wait(2, 3), wait(4, 5), wait(5, 7)];
    c.exchange = Exchange::Sequential(vec![Turn::default(); 6]);
    let left = |of: &Connection, first: usize, then| {
        let first = vec![Turn::default(); first].into();
        let cut = CutPoint {
            data: CutData::Sequential(CutList { first, then }),
            writes: [0, 1].map(|_| CutList::from(0)),
            overlap: None,
        };
        owned(ConnectionView::of(of, Some(&cut))).waits
    };
    // Turn 2 is under way: it is the first of four.
    assert_eq!(left(&c, 1, 3), [Wait::default(), wait(2, 5), wait(3, 7)]);
    // The pause before turn 2 is a turn of its own.
    assert_eq!(left(&c, 2, 3), [Wait::default(), wait(3, 5), wait(4, 7)]);
    assert_eq!(left(&c, 1, 6), [Wait::default()]);
    c.waits.clear();
    assert!(left(&c, 1, 4).is_empty());
}

proptest! {
    /// A part reads as the same connection would if it were copied.
    #[test]
    fn a_part_is_as_its_copy(s in any_session(), share in 0.0..1.0f64, passed in any::<Option<[u8; 2]>>()) {
        let mut m = model(Dur::from_secs(100), vec![s]);
        for group in &mut m.sessions[0].groups {
            for c in &mut group.connections {
                c.overlap = passed.map(|units| units.map(|n| u32::from(n % 5)));
            }
        }
        let times = Groups::of(&m, &m.sessions[0], &Network::default());
        for e in at(&m, &times, 0, times.end.scale(share)) {
            for rest in e.rest.iter().flat_map(|rest| rest.iter()) {
                let part = rest.part(&m.sessions[0]).unwrap();
                let copy = owned(part);
                let whole = ConnectionView::whole(&copy);
                prop_assert_eq!(part.units(), copy.exchange.units());
                prop_assert_eq!(part.awaited(), copy.awaited());
                for i in 0..9 {
                    for end in 0..2 {
                        prop_assert_eq!(part.writes(end).get(i), whole.writes(end).get(i));
                    }
                    match (part.data(), whole.data()) {
                        (Data::Sequential(a), Data::Sequential(b)) => {
                            prop_assert_eq!(a.get(i), b.get(i));
                        }
                        (Data::Concurrent(a), Data::Concurrent(b)) => {
                            for end in 0..2 {
                                prop_assert_eq!(a[end].get(i), b[end].get(i));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
