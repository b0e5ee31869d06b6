//! The same workload does the same things in the same order in a simulated world and over kernel sockets.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use swell_base::{Bytes, Dur, Rate, Side, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Load, Model, Parameters, Path, Provenance,
    Schedule, Session, Start, Totals, Turn, Unit, Wire,
};
use swell_workload::{
    Access, Action, Conn, Event, Greedy, GreedyConfig, Info, Law, Open, Parametric,
    ParametricConfig, Record, Structural, Transport, Web, WebConfig, Workload,
};
use swell_world::World;

use super::common::MS;
use crate::{Carrier, CarrierConfig};

/// An event or action of a connection, without its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Open(bool, Box<OpenKey>),
    Send(usize, u64),
    Datagram(usize, u32),
    Close(usize),
    Abort,
}

/// The properties that tell connections apart: direction, class, keys, segment sizes.
type OpenKey = (Side, u32, u64, u64, bool);

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Story {
    actions: Vec<Step>,
    /// Bytes reported to each receiving end.
    received: [u64; 2],
    /// Datagrams reported to each receiving end.
    datagrams: [Vec<u32>; 2],
    /// Number of events per end: connected, end of data, reset. Then the number of `Closed` events.
    told: [(u32, u32, u32); 2],
    closed: u32,
}

#[derive(Default)]
struct Book {
    stories: BTreeMap<Conn, Story>,
    /// Timers that fired, with their instants and tokens.
    timers: Vec<(Time, u64)>,
    /// Sends and datagrams, with the instants at which they were requested.
    sent: Vec<(Time, Conn, u64)>,
}

/// Records everything that passes between a workload and its carrier.
struct Observed {
    machine: Box<dyn Workload>,
    book: Arc<Mutex<Book>>,
}

impl Workload for Observed {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let mut book = self.book.lock().unwrap();
        let mut story = |conn: Conn| std::mem::take(book.stories.entry(conn).or_default());
        let (conn, after) = match event {
            Event::Connected(c, e) => {
                let mut s = story(c);
                s.told[e as usize].0 += 1;
                (Some(c), s)
            }
            Event::Received(c, e, n) => {
                let mut s = story(c);
                assert_eq!(s.told[e as usize].0, 1, "data before the handshake");
                assert_eq!(s.told[e as usize].1, 0, "data after its end");
                s.received[e as usize] += n;
                (Some(c), s)
            }
            Event::Datagram(c, e, n, _) => {
                let mut s = story(c);
                s.datagrams[e as usize].push(n);
                (Some(c), s)
            }
            Event::Eof(c, e) => {
                let mut s = story(c);
                s.told[e as usize].1 += 1;
                (Some(c), s)
            }
            Event::Reset(c, e) => {
                let mut s = story(c);
                s.told[e as usize].2 += 1;
                (Some(c), s)
            }
            Event::Closed(c, info) => {
                let mut s = story(c);
                s.closed += 1;
                assert_eq!(info.received, s.received, "{s:?}");
                (Some(c), s)
            }
            Event::Timer(token) => {
                book.timers.push((now, token));
                (None, Story::default())
            }
            Event::Start
            | Event::Drained(..)
            | Event::Info(..)
            | Event::Early(..)
            | Event::Unsent(..) => (None, Story::default()),
        };
        if let Some(conn) = conn {
            book.stories.insert(conn, after);
        }
        let before = actions.len();
        self.machine.handle(now, event, actions);
        for action in &actions[before..] {
            let opened = |tcp, o: &Open| {
                let key = (o.client_side, o.class, o.client.key, o.server.key, o.silent);
                Step::Open(tcp, Box::new(key))
            };
            let (on, step) = match action {
                Action::Connect(c, open) => (*c, opened(true, open)),
                Action::Datagrams(c, open) => (*c, opened(false, open)),
                Action::Send(c, e, n) => {
                    book.sent.push((now, *c, *n));
                    (*c, Step::Send(*e as usize, *n))
                }
                Action::SendDatagram(c, e, n) => {
                    book.sent.push((now, *c, u64::from(*n)));
                    (*c, Step::Datagram(*e as usize, *n))
                }
                Action::Close(c, e) => (*c, Step::Close(*e as usize)),
                Action::Abort(c) => (*c, Step::Abort),
                Action::Timer(..) | Action::Ask(_) | Action::Unsent(..) => continue,
            };
            book.stories.entry(on).or_default().actions.push(step);
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        self.machine.take_records()
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.machine.finish(info);
    }
}

fn observed(machine: impl Workload + 'static) -> (Box<Observed>, Arc<Mutex<Book>>) {
    let book = Arc::new(Mutex::new(Book::default()));
    let observed = Observed {
        machine: Box::new(machine),
        book: Arc::clone(&book),
    };
    (Box::new(observed), book)
}

/// Runs the workload of `make` in a world like the loopback network, and over the loopback network. `done` ends the
/// run over sockets before `until`, if the workload ends by itself.
fn both<W: Workload + 'static>(
    make: impl Fn() -> W,
    until: Dur,
    done: impl Fn(&Book) -> bool,
) -> [(Book, Vec<Record>); 2] {
    let tcp = Arc::new(Config::linux());
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000_000)),
        delay: Dur::from_micros(20),
        queue: "10MB".parse().unwrap(),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let (machine, simulated) = observed(make());
    world.add(machine, Tag::default(), Arc::clone(&tcp));
    world.advance(Time::ZERO + until);
    world.finish();
    let there = world.take_records(0);
    drop(world);

    let (again, real) = observed(make());
    let mut carrier = Carrier::new(CarrierConfig::default()).unwrap();
    carrier.add(again, &tcp).unwrap();
    let stop = AtomicBool::new(false);
    let mut at = Time::ZERO;
    while at < Time::ZERO + until && !done(&real.lock().unwrap()) {
        at = (at + Dur::from_millis(10)).min(Time::ZERO + until);
        carrier.run(at, &stop).unwrap();
    }
    carrier.finish();
    let here = carrier.take_records(0);
    assert_eq!(carrier.report().counts.resets, 0, "{:?}", carrier.report());
    drop(carrier);
    let book = |book: Arc<Mutex<Book>>| {
        let inner = Arc::try_unwrap(book).ok().expect("its workload is gone");
        inner.into_inner().unwrap()
    };
    [(book(simulated), there), (book(real), here)]
}

/// The stories without connection numbers, because either of two clients may be first.
fn sorted(book: &Book) -> Vec<Story> {
    let mut stories: Vec<Story> = book.stories.values().cloned().collect();
    for story in &mut stories {
        if story.actions.contains(&ON_ITS_OWN) {
            // The two ends do not wait for each other; each does the same in the same order.
            story.actions.sort_by_key(|step| match step {
                Step::Send(end, _) | Step::Close(end) | Step::Datagram(end, _) => *end,
                Step::Open(..) | Step::Abort => 0,
            });
        }
    }
    stories.sort();
    stories
}

fn all_closed(book: &Book, connections: usize) -> bool {
    let over = |s: &&Story| s.closed > 0 || s.actions.contains(&Step::Abort);
    book.stories.values().filter(over).count() == connections
}

fn web(clients: u32, keep: bool) -> WebConfig {
    WebConfig {
        clients,
        objects: [4_000, 1_000_000, 1, 70_000].map(Bytes).to_vec(),
        request: Bytes(300),
        server_think: MS,
        think: MS * 2,
        keep,
        count: Some(6),
        start: MS,
        client: Access::default(),
        server: Access::default(),
    }
}

#[test]
fn web_clients() {
    for (clients, keep, connections) in [(1, false, 6), (7, true, 7), (7, false, 42)] {
        let [simulated, real] = both(
            || Web::new(web(clients, keep)),
            Dur::from_secs(60),
            |book| all_closed(book, connections),
        );
        assert_eq!(simulated.0.stories.len(), connections);
        assert_eq!(sorted(&simulated.0), sorted(&real.0));
        if clients == 1 {
            assert_eq!(simulated.0.stories, real.0.stories);
        }
        let told = |records: &[Record]| {
            let mut told: Vec<_> = records
                .iter()
                .map(|r| match r {
                    Record::Request(r) => (r.client, r.index, r.bytes, r.outcome as u32),
                    Record::Flow(_) => panic!("a foreground's"),
                })
                .collect();
            told.sort_unstable();
            told
        };
        assert_eq!(told(&simulated.1).len(), clients as usize * 6);
        assert_eq!(told(&simulated.1), told(&real.1));
    }
}

#[test]
fn greedy_connections() {
    let config = GreedyConfig {
        connections: 4,
        start: MS * 3,
        stagger: MS * 10,
        ..GreedyConfig::default()
    };
    let until = MS * 150;
    let make = || Greedy::new(config.clone());
    let [simulated, real] = both(make, until, |_| false);
    assert_eq!(simulated.0.timers, real.0.timers);
    assert_eq!(simulated.0.sent, real.0.sent);
    let actions = |book: &Book| -> Vec<Vec<Step>> {
        book.stories.values().map(|s| s.actions.clone()).collect()
    };
    assert_eq!(actions(&simulated.0), actions(&real.0));
    for record in &real.1 {
        let Record::Flow(flow) = record else {
            panic!("a background's");
        };
        assert!(flow.up > 0 && flow.down == 0 && flow.min_rtt.is_some());
    }
    assert_eq!(real.1.len(), 4);
}

#[test]
fn parametric_sources() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for law in [Law::Constant, Law::Poisson] {
            let config = ParametricConfig {
                law,
                transport,
                packet: 1000,
                rate: ["4Mbit", "8Mbit"].map(|r| r.parse().unwrap()),
                sources: 3,
                left: Access::default(),
                right: Access::default(),
            };
            let make = || Parametric::new(config.clone(), 7);
            let [simulated, real] = both(make, MS * 300, |_| false);
            // Exactly the same submissions, each at its own instant to the nanosecond.
            assert!(simulated.0.sent.len() > 300);
            assert_eq!(simulated.0.sent, real.0.sent);
            assert_eq!(simulated.0.timers, real.0.timers);
            let bytes: u64 = real.0.sent.iter().map(|s| s.2).sum();
            let arrived: u64 = real
                .1
                .iter()
                .map(|r| match r {
                    Record::Flow(f) => f.up + f.down,
                    Record::Request(_) => panic!("a background's"),
                })
                .sum();
            assert!(arrived > 0 && arrived <= bytes, "{arrived} of {bytes}");
        }
    }
}

fn turn(request: u64, server_think: u64, response: u64, client_think: u64) -> Turn {
    Turn {
        request,
        server_think: MS * server_think,
        response,
        client_think: MS * client_think,
    }
}

fn unit(pause: u64, bytes: u64, after: u32) -> Unit {
    Unit {
        pause: MS * pause,
        bytes,
        after,
    }
}

/// What a server sends that continues without a request.
const ON_ITS_OWN: Step = Step::Send(1, 700);

/// Sessions with every kind of exchange. All connections differ.
fn model() -> Model {
    let connection = |server, exchange| Connection {
        gap: MS * 2,
        server,
        exchange,
        client_window: 0,
        server_window: 0,
        wire: Wire::default(),
        writes: Default::default(),
        waits: Vec::new(),
        left_censored: false,
        right_censored: false,
        overlap: None,
    };
    let session = |n: u64| {
        let turns = vec![
            turn(300 + n, 5, 20_000 + n, 10),
            turn(200, 0, 400_000, 3),
            // No response, then a response that continues without a request.
            turn(1000, 0, 0, 4),
            turn(50, 1, 3000, 2),
            turn(0, 2, 9000, 0),
        ];
        let concurrent = Exchange::Concurrent {
            up: vec![unit(1, 5_000 + n, 0), unit(4, 100, 1), unit(2, 3000, 1)],
            down: vec![unit(2, 40_000 + n, 0), unit(5, 700, 1)],
        };
        let datagrams = Exchange::Datagrams(Datagrams {
            packets: vec![(Dur::ZERO, true, 40 + n as u32), (MS * 5, false, 1200)],
            ..Datagrams::default()
        });
        let attempt = Exchange::Attempt {
            retries: vec![MS * (10 + n)],
            refused: n.is_multiple_of(2),
        };
        Session {
            class: (n % 2) as u32,
            start: MS * 10 * n,
            weight: 1.0,
            client: (n % 3) as u32,
            outside: n % 4 == 3,
            lasted: None,
            groups: vec![
                Group {
                    think: Dur::ZERO,
                    connections: vec![
                        connection(0, Exchange::Sequential(turns)),
                        connection(1, concurrent),
                    ],
                },
                Group {
                    think: MS * 15,
                    connections: vec![connection(0, datagrams), connection(1, attempt)],
                },
            ],
        }
    };
    let path = Path {
        rtt: Dur::ZERO,
        up: None,
        down: None,
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 9,
        capacity_samples: 0,
        loss_samples: 0,
    };
    Model {
        name: "every kind".into(),
        provenance: Provenance::default(),
        warnings: vec![],
        duration: Dur::from_secs(10),
        parameters: Parameters {
            group_timeout: Dur::from_secs(30),
            session_timeout: Dur::from_secs(300),
            quiet: MS * 500,
        },
        totals: Totals::default(),
        load: Load::default(),
        classes: [("http", false), ("dns", true)]
            .map(|(name, udp)| Class {
                name: name.into(),
                udp,
            })
            .into(),
        client_paths: vec![path; 3],
        server_paths: vec![path; 2],
        sessions: (0..12).map(session).collect(),
    }
}

#[test]
fn structural_sessions() {
    let model = Arc::new(model());
    let starts = model.sessions.iter().enumerate().map(|(i, s)| Start {
        at: Time::ZERO + s.start,
        session: i as u32,
        copy: 0,
    });
    let schedule = Schedule {
        starts: starts.collect(),
        ..Schedule::default()
    };
    let make = || Structural::new(Arc::clone(&model), &schedule);
    let [simulated, real] = both(make, Dur::from_secs(60), |book| all_closed(book, 48));
    assert_eq!(simulated.0.stories.len(), 48);
    let [there, here] = [sorted(&simulated.0), sorted(&real.0)];
    for (a, b) in there.iter().zip(&here) {
        assert_eq!(a, b);
    }
    // Sessions (token 0) start at the instants of the schedule, to the nanosecond.
    let begun = |book: &Book| -> Vec<(Time, u64)> {
        book.timers.iter().copied().filter(|t| t.1 == 0).collect()
    };
    assert_eq!(begun(&simulated.0).len(), 12);
    assert_eq!(begun(&simulated.0), begun(&real.0));
    let sums = |records: &[Record]| {
        let mut sums: Vec<_> = records
            .iter()
            .map(|r| match r {
                Record::Flow(f) => (f.class, f.up, f.down, f.end.is_some()),
                Record::Request(_) => panic!("a background's"),
            })
            .collect();
        sums.sort_unstable();
        sums
    };
    assert_eq!(sums(&simulated.1), sums(&real.1));
}
