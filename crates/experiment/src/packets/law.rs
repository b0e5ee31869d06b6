//! Tests that learning from the packet file of a run recovers the original model, field by field.

use std::path::Path;
use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_capture::Reader;
use swell_learn::{Learner, Options, server_port};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{
    Connection, Exchange, Group, Knobs, Model, Network, Path as HostPath, Schedule, Session, Turn,
    Wire, WireEnd,
};
use swell_workload::Structural;
use swell_world::World;

use super::{Recorder, SharedHeaders, Source};
use crate::test_support;

mod quic;

pub(super) const USERS: u32 = 60;

/// Receive windows of both ends: below and above the 16-bit limit, equal and unequal.
const WINDOWS: [[u32; 2]; 6] = [
    [8_000, 65_535],
    [65_535, 65_535],
    [65_535, 200_000],
    [1 << 20, 30_000],
    [64_240, 4 << 20],
    [131_072, 262_144],
];
const SEGMENTS: [u16; 4] = [1448, 536, 1220, 1380];

/// A model in which every user has its own host, server and connection. The size of the first request identifies it.
pub(super) fn world() -> Model {
    let model = Model::from_slice(test_support::model(1_000_000).as_bytes()).unwrap();
    let path = |ms: u32| HostPath {
        rtt: Dur::from_millis(u64::from(ms)),
        up: None,
        down: None,
        loss_up: 0.0,
        loss_down: 0.0,
        ..model.client_paths[0]
    };
    let client_paths = (0..USERS).map(|i| path(2 + i % 7)).collect();
    let server_paths = (0..USERS).map(|i| path(10 + 3 * (i % 11))).collect();
    let session = |i: u32| {
        let [client_window, server_window] = WINDOWS[i as usize % WINDOWS.len()];
        let mss = SEGMENTS[i as usize / 6 % SEGMENTS.len()];
        let end = WireEnd {
            mss,
            ..WireEnd::default()
        };
        let turn = |n: u32| Turn {
            request: u64::from(if n == 0 { 200 + i } else { 150 }),
            server_think: Dur::from_millis(u64::from(40 + i)),
            // The last response fills the client's window more than once.
            response: match n {
                2 => 5 * u64::from(client_window),
                _ => u64::from(20_000 + 100 * i + n),
            },
            client_think: Dur::from_millis(u64::from(if n == 2 { 0 } else { 300 + i })),
        };
        Session {
            class: 0,
            start: Dur::from_millis(u64::from(100 + 700 * i)),
            weight: 1.0,
            client: i,
            outside: i % 4 == 3,
            lasted: None,
            groups: vec![Group {
                think: Dur::ZERO,
                connections: vec![Connection {
                    gap: Dur::ZERO,
                    server: i,
                    exchange: Exchange::Sequential((0..3).map(turn).collect()),
                    client_window,
                    server_window,
                    wire: Wire {
                        ipv6: i.is_multiple_of(5),
                        timestamps: Some(!i.is_multiple_of(3)),
                        sack: Some(!i.is_multiple_of(7)),
                        ends: [end; 2],
                    },
                    writes: Default::default(),
                    waits: Vec::new(),
                    left_censored: false,
                    right_censored: false,
                    overlap: None,
                }],
            }],
        }
    };
    Model {
        client_paths,
        server_paths,
        sessions: (0..USERS).map(session).collect(),
        ..model
    }
}

/// A link so fast that the queueing of bursts, which delays answers after the tap, is below the tolerance.
fn fast() -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(10_000_000_000)),
        queue: QueueLimit::Packets(u64::MAX),
        ..LinkConfig::default()
    }
}

/// The learnt model, the schedule of sessions, and the number of packets that the link dropped, up and down.
pub(super) struct Found {
    pub model: Model,
    schedule: Schedule,
    pub dropped: [u64; 2],
}

/// Runs `model` over a link, writes its packets to a file, and learns from the file.
pub(super) fn learnt_again(model: &Model, tcp: Config, link: LinkConfig, path: &Path) -> Found {
    let tcp = Arc::new(tcp);
    let knobs = Knobs {
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let classes = model.classes.iter();
    let source = Source {
        tcp: Arc::clone(&tcp),
        classes: classes.map(|c| (server_port(&c.name), c.udp)).collect(),
        port: 5001,
    };
    let recorder =
        Recorder::create(path, "bottleneck", SharedHeaders::new(vec![source], 1)).unwrap();
    world.set_tap(recorder.tap());
    // The test covers complete connections only.
    let schedule = Schedule::cold(model, &knobs, 1, model.duration, &Network::default()).unwrap();
    let machine = Structural::new(Arc::new(model.clone()), &schedule);
    world.add(Box::new(machine), Tag::Background, tcp);
    world.advance(Time::ZERO + model.duration);
    recorder.finish().unwrap();
    // There is only one link.
    let dropped = crate::stage::ledgers(&world)[0]
        .each_ref()
        .map(|l| l.dropped_total());

    let mut learner = Learner::new(Options::default());
    let mut reader = Reader::open(path).unwrap();
    while let Some(packet) = reader.next_packet().unwrap() {
        learner.push(&packet);
    }
    Found {
        model: learner.finish(),
        schedule,
        dropped,
    }
}

/// The only connection of a session, and its turns.
pub(super) fn only(session: &Session) -> (&Connection, &[Turn]) {
    let connection = session.connections().next().unwrap();
    match &connection.exchange {
        Exchange::Sequential(turns) => (connection, turns),
        other => panic!("{other:?}"),
    }
}

fn near(what: &str, found: Dur, truth: Dur, error: Dur) {
    let off = found.saturating_sub(truth).max(truth.saturating_sub(found));
    assert!(off <= error, "{what}: {found} for {truth}");
}

#[test]
fn what_is_learnt_from_a_packet_file_is_what_was_played() {
    let scratch = tempfile::tempdir().unwrap();
    let model = world();
    for (name, tcp) in [("linux", Config::linux()), ("classic", Config::classic())] {
        // The workload's own profile limits the windows of its connections.
        let largest = tcp.recv_buffer;
        let every = tcp.window_scaling;
        let permits = tcp.sack;
        let reach = tcp.send_window.map(|segments| 536 * segments);
        let file = scratch.path().join(name);
        let Found {
            model: found,
            schedule,
            dropped,
        } = learnt_again(&model, tcp, fast(), &file);
        assert_eq!(dropped, [0, 0], "{name}");
        assert_eq!(found.sessions.len(), USERS as usize, "{name}");
        assert_eq!(found.client_paths.len(), USERS as usize, "{name}");
        let (mut known, mut server) = (0, Vec::new());
        for s in &found.sessions {
            let (connection, turns) = only(s);
            let i = turns[0].request as usize - 200;
            let truth = &model.sessions[i];
            let (wanted, asked) = only(truth);
            let of = format!("{name}, user {i}");
            assert_eq!(s.outside, truth.outside, "{of}");

            // Window scaling needs an offer from both ends.
            let windows = [wanted.client_window, wanted.server_window];
            let scaled = every || windows.iter().all(|&w| w > 0xffff);
            let most = if scaled { largest } else { 0xffff };
            let windows = windows.map(|w| w.min(most));
            let seen = [connection.client_window, connection.server_window];
            // Requests never fill a server's window, and neither does a sender with a limit of its own. Then only a
            // lower bound of the window can be tested.
            let filled = [reach.is_none_or(|bytes| bytes > 2 * windows[0]), false];
            for end in [0, 1] {
                if filled[end] {
                    assert_eq!(seen[end], windows[end], "{of}");
                } else {
                    assert!(seen[end] >= windows[end], "{of}");
                    assert!(seen[end] < 2 * windows[end].max(0x1_0000), "{of}");
                }
            }

            assert_eq!(connection.wire.ipv6, wanted.wire.ipv6, "{of}");
            assert_eq!(connection.wire.timestamps, wanted.wire.timestamps, "{of}");
            let sack = wanted.wire.sack.map(|sack| sack && permits);
            assert_eq!(connection.wire.sack, sack, "{of}");
            // Requests are shorter than a segment; responses are not.
            let sends = connection.wire.ends[1].mss;
            assert_eq!(sends, wanted.wire.ends[1].mss, "{of}");

            // Hosts have no access links, so the learner must not infer any from packet spacings.
            let near_client = &found.client_paths[s.client as usize];
            let near_server = &found.server_paths[connection.server as usize];
            for path in [near_client, near_server] {
                let slow = |rate: Option<Rate>| rate.filter(|r| r.bps() < 300_000_000);
                assert_eq!([path.up, path.down].map(slow), [None; 2], "{of}");
            }
            assert_eq!(turns.len(), asked.len(), "{of}");
            for (a, b) in turns.iter().zip(asked) {
                assert_eq!((a.request, a.response), (b.request, b.response), "{of}");
                let error = Dur::from_millis(1);
                near(&of, a.server_think, b.server_think, error);
                near(&of, a.client_think, b.client_think, error);
            }
            let rtt = |m: &Model, session: &Session| {
                let place = only(session).0.server as usize;
                [
                    &m.client_paths[session.client as usize],
                    &m.server_paths[place],
                ]
                .map(|p| p.rtt)
            };
            for (a, b) in rtt(&found, s).into_iter().zip(rtt(&model, truth)) {
                near(&of, a, b, Dur::from_micros(50));
            }
            // Times in a trace are relative to its first packet.
            let started = |session: usize| {
                let mut all = schedule.starts.iter();
                let start = all.find(|start| start.session as usize == session);
                start.unwrap().at.since(schedule.starts[0].at)
            };
            near(&of, s.start, started(i), Dur::from_millis(10));
            known += 1;
            server.push(connection.server);
        }
        server.sort_unstable();
        server.dedup();
        assert_eq!((known, server.len()), (USERS, USERS as usize), "{name}");
    }
}
