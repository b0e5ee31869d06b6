//! Hosts that are told of acknowledgements late: nobody sees a difference.

mod scene;
mod wild;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, FlowId, Packet, QueueLimit, Rate, Stream, Tag, Time};
use swell_path::{Ledger, LinkConfig, Loss};
use swell_tcp::{Algorithm, Config, Stats};
use swell_workload::{Access, Conn, End, Greedy, GreedyConfig, Open, Parametric, Record};
use swell_world::{Casualty, Delivery, Direction, Parties, PortConfig, Sample, Tap, World};

use scene::{Scene, scene};
use wild::{Line, Meddling, Talk, Told, Wild, one};

/// Whether it arrives at the bottleneck, when, whose, which way, what.
type Sight = (bool, Time, u32, bool, Packet);

/// Every packet at both ends of the bottleneck.
struct Log(Sender<Sight>);

impl Tap for Log {
    fn packet(&mut self, at: Time, who: &Parties, to_server: bool, packet: &Packet) {
        let sight = (false, at, who.workload, to_server, *packet);
        self.0.send(sight).expect("the test listens");
    }
    fn arrival(&mut self, at: Time, who: &Parties, to_server: bool, packet: &Packet) {
        let sight = (true, at, who.workload, to_server, *packet);
        self.0.send(sight).expect("the test listens");
    }
}

/// How it is run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    punctual: bool,
    tap: bool,
    cuts: Cuts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cuts {
    No,
    Advance,
    Happen,
}

/// What a run shows.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    told: Vec<Told>,
    sights: Vec<Sight>,
    deliveries: Vec<Delivery>,
    casualties: Vec<Casualty>,
    ledgers: [Ledger; 2],
    marked: [u64; 2],
    hops: u64,
    packets: u64,
    links: usize,
    stats: Vec<Option<[Stats; 2]>>,
    records: Vec<Record>,
    samples: Vec<Sample>,
}

fn run(scene: &Scene, way: Way) -> (Outcome, usize) {
    let mut world = World::new(&scene.trunks, scene.seed);
    if way.punctual {
        world.be_punctual();
    }
    let (log, seen) = channel();
    if way.tap {
        world.set_tap(Box::new(Log(log)));
    }
    let (tell, told) = channel();
    if scene.probed {
        world.probe(0, Conn(0), End::Client);
    }
    for (number, (tcp, lines, meddling)) in scene.wild.iter().enumerate() {
        let machine = Wild {
            number,
            lines: lines.clone(),
            meddling: *meddling,
            told: tell.clone(),
            turns: vec![(0, 0, 0); lines.len()],
        };
        world.add(Box::new(machine), Tag::Background, Arc::new(tcp.clone()));
    }
    if let Some((tcp, config)) = &scene.greedy {
        let machine = Box::new(Greedy::new(config.clone()));
        world.add(machine, Tag::Background, Arc::new(tcp.clone()));
    }
    if let Some((tcp, config)) = &scene.parametric {
        let machine = Box::new(Parametric::new(config.clone(), scene.seed));
        world.add(machine, Tag::Background, Arc::new(tcp.clone()));
    }
    let mut out = Outcome::default();
    let mut pooled = 0;
    let mut injector = scene.ports.map(|gap| Injector::new(&mut world, gap));
    let mut rng = Stream::new(scene.seed, "cuts");
    let end = Time::ZERO + scene.until;
    // Looked at without a change, so that it is known whether anybody was late.
    let mut look = Dur::from_millis(50);
    while world.now() < end {
        let gap = one(&mut rng, &[1_000, 77_777, 1_000_000, 1_000_000, 40_000_000]);
        let stop = match way.cuts {
            Cuts::No => end,
            _ => world.now() + Dur::from_nanos(1 + rng.below(gap)),
        };
        let stop = stop.min(end).min(Time::ZERO + look);
        let stop = injector.as_ref().map_or(stop, |i| stop.min(i.at));
        match way.cuts {
            Cuts::Advance => world.advance(stop),
            _ => world.happen(stop),
        }
        if stop == Time::ZERO + look {
            pooled += world.pooled();
            look += Dur::from_millis(50);
        }
        if let Some(injector) = &mut injector {
            injector.inject(&mut world);
            out.deliveries
                .extend(std::iter::from_fn(|| world.take_delivery()));
        }
    }
    if way.cuts == Cuts::Happen {
        world.finish(); // nobody has brought it up to date
    }
    world.advance(end);
    let workloads = scene.wild.len() + 2;
    for i in 0..workloads {
        out.stats
            .extend((0..4).map(|c| world.tcp_stats(i, Conn(c))));
    }
    for trunk in [Direction::Up, Direction::Down] {
        out.ledgers[trunk as usize] = world.bottleneck(trunk).ledger();
        out.marked[trunk as usize] = world.bottleneck(trunk).marked();
    }
    world.take_casualties(&mut |c| out.casualties.push(c));
    out.hops = world.hops();
    out.packets = world.packets();
    out.links = world.links();
    out.samples = world
        .probes()
        .iter()
        .flat_map(|p| p.samples.clone())
        .collect();
    if way.cuts != Cuts::Happen {
        world.finish();
    }
    let number = scene.wild.len() + usize::from(scene.greedy.is_some());
    for i in 0..number + usize::from(scene.parametric.is_some()) {
        out.records.extend(world.take_records(i));
    }
    out.told = told.try_iter().collect();
    out.sights = seen.try_iter().collect();
    (out, pooled)
}

/// Puts packets in by ports.
struct Injector {
    at: Time,
    gap: Dur,
    count: u64,
    flow: FlowId,
}

impl Injector {
    fn new(world: &mut World, gap: Dur) -> Injector {
        let port = |right| PortConfig {
            right,
            access: Access {
                delay: Dur::from_millis(3),
                ..Access::default()
            },
        };
        let ports = [world.add_port(&port(false)), world.add_port(&port(true))];
        Injector {
            at: Time::ZERO + gap,
            gap,
            count: 0,
            flow: world.join(ports, Tag::Foreground).expect("two sides"),
        }
    }

    fn inject(&mut self, world: &mut World) {
        while self.at <= world.now() {
            self.count += 1;
            self.at += self.gap;
            world.inject(self.flow, self.count.is_multiple_of(3), 1000, 0, self.count);
        }
    }
}

/// The first thing that two runs show differently.
fn difference(a: &Outcome, b: &Outcome) -> Option<String> {
    fn first<T: PartialEq + std::fmt::Debug>(what: &str, a: &[T], b: &[T]) -> Option<String> {
        let i = (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i))?;
        Some(format!("{what} {i}: {:?} / {:?}", a.get(i), b.get(i)))
    }
    if a == b {
        return None;
    }
    first("event", &a.told, &b.told)
        .or_else(|| first("sight", &a.sights, &b.sights))
        .or_else(|| first("delivery", &a.deliveries, &b.deliveries))
        .or_else(|| first("ledger", &a.ledgers, &b.ledgers))
        .or_else(|| first("stats", &a.stats, &b.stats))
        .or_else(|| first("record", &a.records, &b.records))
        .or_else(|| first("sample", &a.samples, &b.samples))
        .or_else(|| Some(format!("hops or such: {} / {}", a.hops, b.hops)))
}

/// Runs a scene in all ways; what differs, and whether anybody was late.
fn compare(scene: &Scene) -> (Option<String>, bool) {
    let way = |punctual, tap, cuts| Way {
        punctual,
        tap,
        cuts,
    };
    let (mut found, mut late) = (None, false);
    let mut without: Option<Outcome> = None;
    for tap in [false, true] {
        let (oracle, many) = run(scene, way(true, tap, Cuts::No));
        let mut check = |want: &Outcome, cuts| {
            let (outcome, fewer) = run(scene, way(false, tap, cuts));
            late |= fewer < many;
            let differs = difference(want, &outcome);
            found = found
                .take()
                .or(differs.map(|d| format!("tap {tap}, {cuts:?}: {d}")));
        };
        check(&oracle, Cuts::No);
        if !tap {
            check(&oracle, Cuts::Happen);
            // Bringing the bottleneck up to date may change which of two packets comes first.
            check(&run(scene, way(true, tap, Cuts::Advance)).0, Cuts::Advance);
        }
        let bare = Outcome {
            sights: Vec::new(),
            ..oracle
        };
        match &without {
            None => without = Some(bare),
            Some(other) => assert_eq!(difference(other, &bare), None, "the tap"),
        }
    }
    (found, late)
}

#[test]
fn nobody_sees_that_hosts_are_late() {
    let mut late = 0;
    for seed in 0..300 {
        let (found, was_late) = compare(&scene(seed));
        assert_eq!(found, None, "seed {seed}");
        late += usize::from(was_late);
    }
    assert!(late > 150, "{late}");
}

/// One bottleneck and nothing else.
fn plain(until: Dur) -> Scene {
    let trunk = LinkConfig {
        rate: Some(Rate::from_bps(8_000_000)),
        delay: Dur::from_millis(5),
        queue: QueueLimit::Packets(20),
        ..LinkConfig::default()
    };
    Scene {
        seed: 1,
        trunks: [trunk.clone(), trunk],
        wild: Vec::new(),
        greedy: None,
        parametric: None,
        ports: None,
        probed: false,
        until,
    }
}

/// A client that has much to send, so far from the bottleneck.
fn bulk(delay: Dur) -> Line {
    Line {
        start: Dur::from_millis(1),
        open: Open {
            client: Access {
                delay,
                ..Access::default()
            },
            ..Open::default()
        },
        talk: Talk::Bulk(End::Client, 1 << 40),
        close: None,
        abort: None,
    }
}

#[track_caller]
fn assert_same(scene: &Scene) {
    assert_eq!(compare(scene), (None, true));
}

/// While one host catches up, what was done to another before waits.
#[test]
fn several_things_done_at_once_are_done_at_once() {
    for (asks, writes) in [(true, 0), (false, 1000), (true, 1000)] {
        let meddling = Meddling {
            every: Dur::from_micros(7_001),
            asks,
            writes,
        };
        let lines = [13, 40, 5].map(|ms| bulk(Dur::from_millis(ms)));
        let scene = Scene {
            wild: vec![(Config::classic(), lines.to_vec(), Some(meddling))],
            ..plain(Dur::from_secs(1))
        };
        assert_same(&scene);
    }
}

/// Paced at the rate of the bottleneck, a timer is due at the very instant when an acknowledgement arrives.
#[test]
fn timers_that_are_due_when_acknowledgements_arrive() {
    let bbr = Config {
        algorithm: Algorithm::Bbr,
        ..Config::linux()
    };
    for base in [
        &bbr,
        &Config {
            delayed_ack: false,
            ..bbr.clone()
        },
    ] {
        let path = |ms| Access {
            delay: Dur::from_millis(ms),
            up: Some(Rate::from_bps(100_000_000)),
            ..Access::default()
        };
        let greedy = GreedyConfig {
            connections: 2,
            from_right: false,
            start: Dur::ZERO,
            stagger: Dur::ZERO,
            sender: path(20),
            receiver: path(3),
        };
        assert_same(&Scene {
            greedy: Some((base.clone(), greedy)),
            ..plain(Dur::from_secs(10))
        });
    }
}

/// A host so far away that nothing is queued for a long time, and what one acknowledgement brings about comes before the
/// next.
#[test]
fn alone_and_far_away() {
    for delay in [5, 50, 300] {
        for algorithm in [Algorithm::Reno, Algorithm::Bbr, Algorithm::Cubic] {
            let base = [Config::linux(), Config::classic()];
            let profiles = base.map(|base| Config { algorithm, ..base });
            for (seed, tcp) in (0..4).flat_map(|seed| profiles.iter().map(move |p| (seed, p))) {
                let scene = Scene {
                    seed,
                    wild: vec![(tcp.clone(), vec![bulk(Dur::from_millis(delay))], None)],
                    ..plain(Dur::from_secs(3))
                };
                let (found, _) = compare(&scene);
                assert_eq!(found, None, "{algorithm:?} at {delay} ms, seed {seed}");
            }
        }
    }
}

/// Constant writes, some while data waits, at instants when acknowledgements arrive: a byte takes a microsecond.
#[test]
fn writes_when_acknowledgements_arrive() {
    for nagle in [false, true] {
        for pause in [500, 1000, 1500, 1540] {
            let pulses = Line {
                talk: Talk::Pulses(End::Client, 999, Dur::from_micros(pause)),
                ..bulk(Dur::from_millis(10))
            };
            let tcp = Config {
                nagle,
                ..Config::classic()
            };
            assert_same(&Scene {
                wild: vec![(tcp, vec![pulses.clone(), pulses], None)],
                ..plain(Dur::from_secs(3))
            });
        }
    }
}

/// Without rates all that happens is on a grid of milliseconds: acknowledgements, data, timers and writes coincide.
#[test]
fn everything_at_the_same_instants() {
    let trunk = LinkConfig {
        delay: Dur::from_millis(5),
        loss: Loss::Independent { p: 0.05 },
        ..LinkConfig::default()
    };
    let classic = |algorithm, delayed_ack, nagle| Config {
        algorithm,
        delayed_ack,
        nagle,
        ack_delay: Dur::from_millis(20),
        min_rto: Dur::from_millis(50),
        ..Config::classic()
    };
    let profiles = [
        classic(Algorithm::Reno, false, false),
        classic(Algorithm::NewReno, true, false),
        classic(Algorithm::Bbr, true, true),
        Config::linux(),
        Config::ns2_modern(),
    ];
    for (seed, tcp) in (0..8).flat_map(|seed| profiles.iter().map(move |tcp| (seed, tcp))) {
        let line = |talk, ms| Line {
            talk,
            ..bulk(Dur::from_millis(ms))
        };
        let pulses = |end, pause| Talk::Pulses(end, 999 + 700 * seed, Dur::from_millis(pause));
        let both = Line {
            open: Open {
                server: Access {
                    delay: Dur::from_millis(10),
                    ..Access::default()
                },
                ..bulk(Dur::from_millis(10)).open
            },
            ..line(Talk::Both(1 << 40, 1 << 40), 10)
        };
        let mut scene = Scene {
            seed,
            trunks: [trunk.clone(), trunk.clone()],
            wild: vec![(
                tcp.clone(),
                vec![
                    line(pulses(End::Client, 1), 10),
                    line(pulses(End::Client, 5), 20),
                    line(Talk::Feed(End::Client, 1460, Dur::from_millis(1)), 10),
                ],
                None,
            )],
            ..plain(Dur::from_millis(700))
        };
        assert_same(&scene);
        // Without a rate more and more is sent.
        let tcp = Config {
            send_window: Some(6 + seed as u32),
            recv_buffer: 20_000,
            recv_tuning: false,
            ..tcp.clone()
        };
        let meddling = Meddling {
            every: Dur::from_millis(1),
            asks: true,
            writes: 100,
        };
        scene.wild = vec![(tcp, vec![both.clone(), both], Some(meddling))];
        assert_same(&scene);
    }
}

/// The path is longer than the route of a connection is kept that is over.
#[test]
fn what_is_on_the_way_when_a_connection_is_forgotten() {
    let lines = [6, 15, 15].map(|s| Line {
        abort: Some(Dur::from_secs(5 * s + 1)),
        ..bulk(Dur::from_secs(s))
    });
    let scene = Scene {
        wild: vec![(
            Config {
                initial_rto: Dur::from_secs(60),
                initial_window: 10,
                ..Config::classic()
            },
            lines.to_vec(),
            None,
        )],
        ..plain(Dur::from_secs(200))
    };
    assert_same(&scene);
    let way = Way {
        punctual: false,
        tap: false,
        cuts: Cuts::No,
    };
    assert_eq!(run(&scene, way).0.links, 2);
}
