//! Runs over the loopback.

#![expect(
    clippy::shadow_unrelated,
    reason = "each step of a test has its own run, traffic and answers"
)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use swell_base::{Dur, Stream, Time};
use swell_traffic::flowlevel::{
    self, Burst, Configurator, Direction, Due, FlowModel, Options, Playback, Record, Share,
    Transfer, UdpKind, UdpSource,
};

use super::wire::{Message, Request};
use super::*;

const KEY: Key = Key::new([7; 16]);

fn config(role: Role) -> Config {
    Config {
        key: KEY,
        lease: Dur::from_secs(2),
        congestion: Vec::new(),
        threads: 1,
        room: 1 << 20,
        role,
    }
}

fn pool(text: &str) -> Addresses {
    Addresses::parse(&[text]).unwrap()
}

/// A server for one client that comes from anywhere on the loopback.
fn server() -> Run {
    serving(1, config(Role::Server(Server::default())))
}

fn serving(clients: usize, config: Config) -> Run {
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.0/8"); clients],
        ..Server::default()
    });
    Run::new(Config { role, ..config }).unwrap()
}

fn target(server: &Run) -> Target {
    Target {
        address: ([127, 0, 0, 1], server.port()).into(),
        datagrams: server.datagram_port(),
        pool: Addresses::default(),
    }
}

fn client_of(servers: Vec<Target>, plan: impl Plan + 'static, play: Play) -> Client {
    Client {
        index: 0,
        of: 1,
        pool: Addresses::default(),
        servers,
        plan: Arc::new(plan),
        play,
    }
}

fn client(server: &Run, plan: impl Plan + 'static, play: Play) -> Run {
    let role = Role::Client(client_of(vec![target(server)], plan, play));
    Run::new(config(role)).unwrap()
}

/// Waits for something that must happen; nothing but a hang ends it.
fn until(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happened"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn agreed(run: &Run) {
    until(|| run.statistics().parties > 0);
}

/// Starts a client and waits until all is over.
fn play(client: &Run) -> (Counts, Vec<Flow>) {
    agreed(client);
    client.start();
    until(|| client.is_played());
    let counts = client.stop().counts;
    (counts, client.flows(0, usize::MAX).flows)
}

/// Transfers and sources written down, each with its time. They belong to whoever has the first share.
#[derive(Clone)]
struct Script(Vec<Due>);

struct Reading(VecDeque<Due>);

fn at(due: &Due) -> Time {
    match due {
        Due::Transfer(t) => t.at,
        Due::Datagrams(s) => s.at,
    }
}

impl Plan for Script {
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic> {
        let session = |due: &Due| match due {
            Due::Transfer(t) => t.session,
            Due::Datagrams(s) => s.number,
        };
        let own = |due: &&Due| session(due) % u64::from(share.of) == u64::from(share.index);
        let later = self.0.iter().filter(own).filter(|due| at(due) >= now);
        let mut all: Vec<Due> = later.copied().collect();
        all.sort_by_key(at);
        Box::new(Reading(all.into()))
    }
}

impl Traffic for Reading {
    fn poll_at(&self) -> Option<Time> {
        self.0.front().map(at)
    }
    fn pop(&mut self, now: Time) -> Option<Due> {
        if self.0.front().is_some_and(|due| at(due) <= now) {
            return self.0.pop_front();
        }
        None
    }
    fn active(&self) -> u64 {
        self.0.len() as u64
    }
}

fn after(span: Dur) -> Time {
    Time::ZERO + span
}

/// Sessions of so many transfers each, of sizes by number.
fn transfers(sessions: u64, each: u64, gap: Dur, sizes: fn(u64) -> (u64, u64)) -> Script {
    let all = (0..sessions).flat_map(|session| (0..each).map(move |n| (session, n)));
    let due = all.map(|(session, n)| {
        let (up, down) = sizes(session * each + n);
        Due::Transfer(Transfer {
            at: after(gap * (n + 1)),
            session,
            source: session,
            destination: n,
            up,
            down,
            kept: false,
        })
    });
    Script(due.collect())
}

/// A source of exchanges, from the beginning on.
fn source(kind: UdpKind, spacing: Dur, until: Dur, up: Burst, down: Burst) -> Due {
    Due::Datagrams(UdpSource {
        kind,
        at: Time::ZERO,
        until: after(until),
        number: 0,
        source: 0,
        destination: 0,
        spacing,
        exchanges: None,
        up,
        down,
    })
}

fn burst(datagrams: f64, payload: u32) -> Burst {
    Burst { datagrams, payload }
}

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
        // The end of an upload on a connection that stays is one byte.
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

/// A flow-level model: one session in each of three intervals, a transfer every 10 ms; then none.
fn model(sessions: [u64; 4]) -> FlowModel {
    let mut c = Configurator::new(Options {
        interval: Dur::from_secs(1),
        ..Options::default()
    });
    for i in 0..300i64 {
        let seen = Direction {
            packets: 4,
            bytes: 4_160,
            flags: Some(0x1b),
            first: i * 10_000_000,
            last: i * 10_000_000 + 1,
        };
        c.add(&Record {
            source: 1,
            destination: 2,
            source_port: 80,
            destination_port: 2_000 + i as u16,
            protocol: 6,
            header: 40,
            forward: seen,
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    let mut model = c.finish("test", Default::default()).unwrap();
    let intervals = &mut model.tcp.intervals;
    intervals.resize(4, Default::default());
    for (interval, n) in intervals.iter_mut().zip(sessions) {
        interval.sessions = n;
    }
    model
}

fn plan(model: &FlowModel, playback: Playback) -> Arc<Model> {
    let plan = flowlevel::Plan::new(model, &playback).unwrap();
    Arc::new(Model { plan, seed: 1 })
}

#[test]
fn a_model_is_played_interval_by_interval_and_faster_when_compressed() {
    let server = server();
    let model = model([3, 0, 7, 1]);
    let playback = Playback {
        compression: 4.0,
        ..Playback::default()
    };
    let role = Role::Client(Client {
        plan: plan(&model, playback),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let (counts, flows) = play(&Run::new(config(role)).unwrap());
    assert_eq!((counts.failed, counts.withheld), (0, 0));
    // Gaps stay: 25 transfers of each session in a quarter of a second, within one.
    let in_interval = |k: u64| flows.iter().filter(|f| f.due / 250_000_000 == k).count();
    for (k, sessions) in [(0, 3), (1, 0), (2, 7), (3, 1)] {
        let n = in_interval(k);
        assert!((24 * sessions..=26 * sessions).contains(&n), "{k}: {n}");
    }
    assert!(
        flows
            .iter()
            .all(|f| f.down >= 3_990 && f.outcome == Outcome::Done)
    );
}

#[test]
fn load_changes_and_other_traffic_take_effect_while_it_runs() {
    let server = server();
    let model = model([10; 4]);
    let loaded = |load| {
        plan(
            &model,
            Playback {
                load,
                cycle: true,
                ..Playback::default()
            },
        )
    };
    let role = Role::Client(Client {
        plan: loaded(1.0),
        ..client_of(vec![target(&server)], Script(Vec::new()), Play::default())
    });
    let client = Run::new(config(role)).unwrap();
    agreed(&client);
    assert_eq!(client.statistics().sessions, 0, "not before the start");
    client.start();
    for (load, sessions) in [(1.0, 10), (2.5, 25), (0.3, 3), (1.0, 10)] {
        client.set_plan(loaded(load));
        until(|| client.statistics().sessions == sessions);
    }
    client.set_plan(Arc::new(Script(Vec::new())));
    until(|| client.is_played() && client.statistics().sessions == 0);
    let done = client.statistics().counts.done;
    assert!(done > 0);
    client.set_plan(loaded(1.0));
    until(|| client.statistics().counts.done > done);
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
fn datagrams_keep_their_rate_and_are_answered() {
    let server = server();
    // 20 Mbit/s of 1250 bytes: 2000 a second; and as much back.
    let gap = Dur::from_micros(500);
    let both = burst(1.0, 1_250);
    let script = Script(vec![source(
        UdpKind::ConstantRate,
        gap,
        Dur::from_secs(1),
        both,
        both,
    )]);
    let client = client(&server, script, Play::default());
    let (counts, flows) = play(&client);
    // From a random phase on.
    assert_eq!(counts.datagrams_sent, 2_000);
    assert_eq!(counts.datagram_bytes_sent, 2_500_000);
    assert_eq!(counts.datagrams_refused, 0);
    let theirs = server.stop().counts;
    assert_eq!(theirs.datagrams_received, 2_000);
    assert_eq!(
        (theirs.datagrams_sent, theirs.datagram_bytes_sent),
        (2_000, 2_500_000)
    );
    assert_eq!(flows.len(), 1);
    assert!(flows[0].datagrams && flows[0].up == counts.datagram_bytes_sent);
    assert_eq!((flows[0].down, flows[0].again), (2_500_000, 2_000));
}

#[test]
fn a_servers_datagrams_are_asked_for() {
    let server = server();
    let (gap, span) = (Dur::from_millis(5), Dur::from_millis(500));
    let down = burst(130.0, 500);
    let script = Script(vec![source(
        UdpKind::Periodic,
        gap,
        span,
        burst(0.0, 0),
        down,
    )]);
    let (counts, _) = play(&client(&server, script, Play::default()));
    // A hundred exchanges, each asked for by as many datagrams as it takes.
    assert_eq!(counts.datagrams_sent, 300);
    assert_eq!(counts.datagrams_received, 13_000);
    assert_eq!(counts.datagram_bytes_received, 13_000 * 500);
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

/// What a stranger gets: how many bytes until the end.
fn probe(port: u16, bytes: &[u8]) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut back = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut back);
    back.len()
}

#[test]
fn strangers_get_nothing_and_are_counted() {
    let server = server();
    let port = server.port();
    let request = Message::Request(Request {
        client: 0,
        keep: false,
        dscp: 0,
        congestion: 0,
        up: 0,
        down: 1_000,
    });
    // Something else; another key; the right key but no leash; a client that the run does not have.
    assert_eq!(
        probe(
            port,
            b"GET / HTTP/1.0\r\nHost: x\r\nUser-Agent: somebody\r\n\r\n"
        ),
        0
    );
    assert_eq!(probe(port, &request.encode(&Key::new([8; 16]))), 0);
    assert_eq!(probe(port, &request.encode(&KEY)), 0);
    let hello = Message::Hello {
        client: 9,
        nonce: [1; 16],
    };
    assert_eq!(probe(port, &hello.encode(&KEY)), 0);
    // A client's question without the key: it is answered, but what follows shows that it has none.
    let mut talk = Message::Hello {
        client: 0,
        nonce: [1; 16],
    }
    .encode(&KEY)
    .to_vec();
    talk.extend(Message::Proof([0; 16]).encode(&KEY));
    assert_eq!(probe(port, &talk), 48);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .send_to(&[0; 100], ("127.0.0.1", server.datagram_port()))
        .unwrap();
    until(|| server.statistics().counts.strangers == 6);
    let statistics = server.statistics();
    assert_eq!(
        (statistics.counts.begun, statistics.counts.datagrams_sent),
        (0, 0)
    );
    assert_eq!(statistics.parties, 0);

    // From an address that is nobody's.
    let role = Role::Server(Server {
        clients: vec![pool("127.3.0.0/16")],
        ..Server::default()
    });
    let server = Run::new(config(role)).unwrap();
    assert_eq!(probe(server.port(), &request.encode(&KEY)), 0);
    until(|| server.statistics().counts.strangers == 1);
}

#[test]
fn a_client_sends_nothing_to_who_has_not_agreed() {
    // A listener that is no server of the run: it answers, but not with what only the key can give.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 48];
        stream.read_exact(&mut hello).unwrap();
        let forged = Message::Welcome {
            nonce: [1; 16],
            proof: [2; 16],
        };
        stream.write_all(&forged.encode(&KEY)).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest.len()
    });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Target {
        address,
        datagrams: socket.local_addr().unwrap().port(),
        pool: Addresses::default(),
    };
    let mut traffic = transfers(2, 49, Dur::from_millis(10), |_| (1_000, 0));
    let (gap, span) = (Dur::from_millis(10), Dur::from_millis(500));
    let (up, down) = (burst(1.0, 1_000), burst(0.0, 0));
    traffic
        .0
        .push(source(UdpKind::Periodic, gap, span, up, down));
    let role = Role::Client(client_of(vec![server], traffic, Play::default()));
    let client = Run::new(config(role)).unwrap();
    client.start();
    until(|| client.is_played());
    assert_eq!(
        heard.join().unwrap(),
        0,
        "not a byte after a forged welcome"
    );
    let counts = client.stop().counts;
    assert_eq!((counts.begun, counts.datagrams_sent), (0, 0));
    assert_eq!((counts.withheld, counts.strangers), (2 * 49 + 50, 1));
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 10]).is_err());
}

#[test]
fn who_agreed_to_other_addresses_is_not_sent_traffic() {
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.0/8")],
        pool: pool("127.9.0.0/16"),
        port: 0,
    });
    let server = Run::new(config(role)).unwrap();
    let role = Role::Client(client_of(
        vec![Target {
            pool: pool("127.8.0.0/16"),
            ..target(&server)
        }],
        transfers(1, 10, Dur::from_millis(10), |_| (100, 100)),
        Play::default(),
    ));
    let client = Run::new(config(role)).unwrap();
    client.start();
    until(|| client.is_played());
    let counts = client.stop().counts;
    assert_eq!((counts.begun, counts.withheld), (0, 10));
    assert_eq!(server.stop().counts.begun, 0);
}

#[test]
fn what_nobody_renews_ends() {
    let server = server();
    let endless = Closed {
        sessions: 2,
        up: 100,
        down: 100,
    };
    let client = client(&server, endless, Play::default());
    agreed(&client);
    client.start();
    for _ in 0..30 {
        client.renew(Dur::from_secs(2));
        server.renew(Dur::from_secs(2));
        std::thread::sleep(Duration::from_millis(100));
    }
    // Three seconds, with a lease of two.
    assert!(client.is_running() && server.is_running());
    until(|| !client.is_running() && !server.is_running());
    assert!(client.is_expired() && server.is_expired());
    let counts = client.statistics().counts;
    let flows = client.flows(0, usize::MAX).flows.len() as u64;
    assert!(counts.done > 0 && flows == counts.done + counts.failed + counts.unfinished);
}

#[test]
fn when_one_side_goes_the_other_stops() {
    let big = |_| (48, 1 << 40);
    for gone in ["client", "server"] {
        let server = server();
        let traffic = transfers(3, 1, Dur::from_millis(10), big);
        let client = client(&server, traffic, Play::default());
        agreed(&client);
        client.start();
        until(|| client.statistics().counts.received_bytes > 1 << 20);
        if gone == "client" {
            drop(client);
            until(|| server.statistics().open == 0);
            let counts = server.statistics().counts;
            assert_eq!((counts.failed, counts.lost_parties), (3, 0), "it said so");
        } else {
            drop(server);
            // The leash itself is tried again and again.
            until(|| client.statistics().counts.failed == 3 && client.statistics().open <= 1);
            let statistics = client.statistics();
            assert_eq!((statistics.parties, statistics.counts.lost_parties), (0, 0));
            assert!(
                statistics
                    .doubts()
                    .iter()
                    .any(|d| d.code == "transfers-failed")
            );
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let wrong = |role| Run::new(config(role)).err().map(|e| e.to_string());
    assert!(wrong(Role::Server(Server::default())).is_some());
    let traffic = || transfers(1, 1, Dur::ZERO, |_| (1, 1));
    let good = client_of(vec![target(&server())], traffic(), Play::default());
    let no_server = Client {
        servers: Vec::new(),
        ..good.clone()
    };
    let six = Client {
        pool: pool("fd00::/64"),
        ..good.clone()
    };
    let clients = [
        no_server,
        six,
        Client {
            index: 1,
            ..good.clone()
        },
    ];
    for client in clients {
        assert!(wrong(Role::Client(client)).is_some());
    }
    let taken = server();
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.1")],
        port: 1,
        ..Server::default()
    });
    // Port 1 is somebody else's, or needs a privilege, or is free: never a panic.
    drop(Run::new(config(role)));
    drop(taken);
}
