//! Properties of worlds with several links.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, QueueLimit, Rate, Side, Stream, Tag, Time};
use swell_path::{Discipline, FqCoDelConfig, LinkConfig, Loss};
use swell_tcp::Config;
use swell_workload::{
    Access, Action, Conn, End, Event, Greedy, GreedyConfig, Info, Law, Open, Parametric,
    ParametricConfig, Record, Transport, Workload,
};
use swell_world::{Direction, Duplex, Hop, PathId, PortConfig, World};

const UDP_HEADERS: u32 = 28;

fn link(mbps: u64, delay: Dur) -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(mbps * 1_000_000)),
        delay,
        queue: QueueLimit::Packets(u64::MAX),
        ..LinkConfig::default()
    }
}

/// A link with the same configuration in both directions.
fn duplex(name: usize, both: &LinkConfig) -> Duplex {
    Duplex {
        name: format!("link {name}"),
        directions: [both.clone(), both.clone()],
    }
}

fn chain(links: &[LinkConfig], seed: u64) -> World {
    let links: Vec<Duplex> = (links.iter().enumerate())
        .map(|(i, link)| duplex(i, link))
        .collect();
    World::with_links(&links, seed)
}

fn hop(link: usize) -> Hop {
    Hop {
        link,
        reversed: false,
    }
}

/// Sends datagrams of one size at given instants, and reports when each was sent and arrived.
struct Datagrams {
    at: Vec<Time>,
    next: usize,
    received: usize,
    bytes: u32,
    from_right: bool,
    told: Sender<(Time, Time)>,
}

impl Datagrams {
    fn wait(&self, now: Time, actions: &mut Vec<Action>) {
        if let Some(at) = self.at.get(self.next) {
            actions.push(Action::Timer(at.since(now), 0));
        }
    }
}

impl Workload for Datagrams {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let open = Open {
                    client_side: Side::of(self.from_right),
                    ..Open::default()
                };
                actions.push(Action::Datagrams(Conn(0), Box::new(open)));
                self.wait(now, actions);
            }
            Event::Timer(_) => {
                let payload = self.bytes - UDP_HEADERS;
                actions.push(Action::SendDatagram(Conn(0), End::Client, payload));
                self.next += 1;
                self.wait(now, actions);
            }
            Event::Datagram(..) => {
                let sent = self.at[self.received];
                self.received += 1;
                self.told.send((sent, now)).expect("the test listens");
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// Transit times of datagrams of a given size over a path, sent at the given instants.
fn crossings(
    world: &mut World,
    path: PathId,
    from_right: bool,
    at: Vec<Time>,
    bytes: u32,
) -> Vec<Dur> {
    let (told, hears) = channel();
    let count = at.len();
    let end = at.last().copied().unwrap_or_default() + Dur::from_secs(100);
    let machine = Datagrams {
        at,
        next: 0,
        received: 0,
        bytes,
        from_right,
        told,
    };
    let tcp = Arc::new(Config::linux());
    world.add_on(path, Box::new(machine), Tag::Foreground, tcp);
    world.advance(end);
    let took: Vec<Dur> = hears
        .try_iter()
        .map(|(sent, got)| got.since(sent))
        .collect();
    assert_eq!(took.len(), count, "nothing is lost");
    took
}

/// Delays and transmission times add up to the nanosecond over 1, 2, 10 and 100 links, in both directions, and over a
/// reversed link.
#[test]
fn delays_add_up() {
    for links in [1, 2, 10, 100] {
        let configs: Vec<[LinkConfig; 2]> = (0..links)
            .map(|i| {
                let delay = |d: u64| Dur::from_micros(100 + 7 * i + d);
                [link(10, delay(0)), link(100, delay(50))]
            })
            .collect();
        let named: Vec<Duplex> = (configs.iter().enumerate())
            .map(|(i, directions)| Duplex {
                name: format!("link {i}"),
                directions: directions.clone(),
            })
            .collect();
        for reversed in [false, true] {
            for from_right in [false, true] {
                let mut world = World::with_links(&named, 1);
                let turned: Vec<Hop> = (0..links as usize)
                    .map(|link| Hop { link, reversed })
                    .collect();
                let path = world.add_path(&turned).expect("a path");
                let at = vec![Time::from_secs_f64(1.0)];
                let took = crossings(&mut world, path, from_right, at, 1000);
                let crossed = configs
                    .iter()
                    .map(|both| &both[usize::from(reversed != from_right)]);
                let want = crossed
                    .map(|c| c.delay + c.rate.expect("a rate").transmit(swell_base::Bytes(1000)))
                    .fold(Dur::ZERO, |sum, d| sum + d);
                assert_eq!(took, [want], "{links} links, {reversed}, {from_right}");
                assert_eq!(world.hops(), links);
            }
        }
    }
}

/// Poisson arrivals of 1000 bytes, 1 ms apart on average at rate 1.
fn poisson(load: f64, count: usize) -> Vec<Time> {
    let mut rng = Stream::new(3, "poisson");
    let mut at = Time::from_secs_f64(1.0);
    let mut next = || {
        at += Dur::from_nanos(rng.exponential(1e6 / load) as u64);
        at
    };
    (0..count).map(|_| next()).collect()
}

/// A chain of M/D/1 queues. A packet that waits at one queue does not wait at a later queue of at least the same
/// rate. The total time of each packet does not depend on the order of the links (Friedman, Operations Research
/// 1965). The mean wait is that of Pollaczek and Khinchine for the slowest link.
#[test]
fn a_chain_of_md1_queues_waits_as_its_slowest() {
    let packets = 40_000;
    let load = 0.7;
    // 8, 16 and 32 Mbit/s: 1, 0.5 and 0.25 ms per packet.
    let waits = |order: &[u64]| {
        let links: Vec<LinkConfig> = order.iter().map(|&m| link(m, Dur::ZERO)).collect();
        let mut world = chain(&links, 1);
        let arrivals = poisson(load, packets);
        let took = crossings(&mut world, PathId::default(), false, arrivals, 1000);
        let service: u64 = order.iter().map(|m| 8_000_000 / m).sum();
        took.into_iter()
            .map(|took| took - Dur::from_nanos(service))
            .collect::<Vec<Dur>>()
    };
    let alone = waits(&[8]);
    for order in [
        &[8, 8, 8][..],
        &[8, 16, 32],
        &[32, 8, 16],
        &[16, 32, 8],
        &[32, 16, 8],
    ] {
        assert!(waits(order) == alone, "{order:?}");
    }
    let total = alone.iter().fold(Dur::ZERO, |sum, w| sum + *w);
    let mean = total.as_secs_f64() / packets as f64;
    let law = 1e-3 * load / (2.0 * (1.0 - load));
    assert!((mean / law - 1.0).abs() < 0.05, "{mean} s, {law} s");
}

fn greedy(connections: u32, from_right: bool, host: Access) -> Box<Greedy> {
    Box::new(Greedy::new(GreedyConfig {
        connections,
        from: Side::of(from_right),
        stagger: Dur::from_millis(50),
        sender: host,
        receiver: host,
        ..GreedyConfig::default()
    }))
}

/// A greedy flow fills the slowest link, at any position in the chain, and packets are dropped only there.
#[test]
fn the_slowest_link_is_the_bottleneck() {
    let queue = QueueLimit::Packets(50);
    let limited = |mbps| LinkConfig {
        queue,
        ..link(mbps, Dur::from_millis(5))
    };
    for slowest in 0..3 {
        let configs: Vec<LinkConfig> = (0..3)
            .map(|i| limited(if i == slowest { 10 } else { 100 }))
            .collect();
        let mut world = chain(&configs, 1);
        let tcp = Arc::new(Config::linux());
        world.add(greedy(4, false, Access::default()), Tag::Background, tcp);
        let from = Time::from_secs_f64(5.0);
        world.advance(from);
        world.meter(Dur::from_millis(10), Dur::from_secs(1));
        let before = world.link(slowest, Direction::Up).ledger();
        world.advance(from + Dur::from_secs(20));
        let after = world.link(slowest, Direction::Up).ledger();
        let packets = (after.departed - before.departed) as f64;
        let share = packets * 1500.0 * 8.0 / 20.0 / 10e6;
        assert!(
            (0.97..1.001).contains(&share),
            "{share} of the slowest link"
        );
        for i in 0..3 {
            let dropped = world.link(i, Direction::Up).ledger().dropped_total();
            assert_eq!(dropped > 0, i == slowest, "link {i} dropped {dropped}");
        }
    }
}

/// Random traffic over random paths. On each link and in each direction, every packet that arrived has departed, was
/// dropped or is still there. At the end none is left. Another run with other time steps gives the same counts.
#[test]
fn what_enters_a_link_leaves_it_or_is_accounted_for() {
    let run = |seed: u64, step: Dur| {
        let mut rng = Stream::new(seed, "chains");
        let links = 2 + rng.below(4) as usize;
        let configs: Vec<LinkConfig> = (0..links)
            .map(|_| LinkConfig {
                queue: QueueLimit::Packets(5 + rng.below(30)),
                loss: match rng.below(2) {
                    0 => Loss::None,
                    _ => Loss::Independent { p: 0.01 },
                },
                discipline: match rng.below(3) {
                    0 => Discipline::FqCoDel(FqCoDelConfig::default()),
                    _ => Discipline::Fifo,
                },
                ..link(2 + rng.below(10), Dur::from_millis(1 + rng.below(10)))
            })
            .collect();
        let mut world = chain(&configs, seed);
        let tcp = Arc::new(Config::linux());
        for i in 0..6 {
            let mut hops = Vec::new();
            for link in 0..links {
                let reversed = rng.chance(0.3);
                if rng.chance(0.6) {
                    hops.push(Hop { link, reversed });
                }
            }
            if rng.chance(0.5) {
                hops.reverse();
            }
            let path = world.add_path(&hops).unwrap_or_default();
            let host = Access {
                delay: Dur::from_millis(rng.below(3)),
                loss_up: 0.002,
                up: Some(Rate::from_bps(20_000_000)),
                key: 1,
                ..Access::default()
            };
            let machine: Box<dyn Workload> = if i % 2 == 0 {
                greedy(2, rng.chance(0.5), host)
            } else {
                Box::new(Parametric::new(
                    ParametricConfig {
                        law: Law::Poisson,
                        transport: Transport::Udp,
                        packet: 700,
                        rate: [Rate::from_bps(1_500_000), Rate::from_bps(500_000)],
                        sources: 2,
                        left: host,
                        right: Access::default(),
                    },
                    i,
                ))
            };
            world.add_on(path, machine, Tag::Background, Arc::clone(&tcp));
        }
        let mut seen = Vec::new();
        let end = Time::from_secs_f64(4.0);
        while world.now() < end {
            let to = (world.now() + step).min(end);
            world.advance(to);
            let mut held = 0;
            for i in 0..links {
                for direction in Direction::BOTH {
                    let ledger = world.link(i, direction).ledger();
                    assert!(ledger.arrived >= ledger.departed + ledger.dropped_total());
                    held += ledger.held();
                }
            }
            assert!(
                held > 0 || to < Time::from_secs_f64(1.0),
                "links are in use"
            );
        }
        for i in 0..links {
            seen.extend(Direction::BOTH.map(|d| world.link(i, d).ledger()));
        }
        (seen, world.hops(), world.packets())
    };
    for seed in 0..12 {
        let whole = run(seed, Dur::from_secs(4));
        assert!(whole.1 > 3_000, "{} hops", whole.1);
        assert_eq!(run(seed, Dur::from_millis(37)), whole, "seed {seed}");
    }
}

/// Links that a path does not use have no effect: the result is the same as in a world with only the links of the path.
#[test]
fn a_link_that_a_path_does_not_use_changes_nothing() {
    let config = LinkConfig {
        queue: QueueLimit::Packets(20),
        loss: Loss::Independent { p: 0.003 },
        ..link(10, Dur::from_millis(4))
    };
    let run = |links: &[usize], own: usize| {
        let named: Vec<Duplex> = links.iter().map(|&i| duplex(i, &config)).collect();
        let mut world = World::with_links(&named, 7);
        let path = world.add_path(&[hop(own)]).expect("a path");
        let tcp = Arc::new(Config::linux());
        let host = Access {
            delay: Dur::from_millis(2),
            loss_down: 0.01,
            key: 9,
            ..Access::default()
        };
        let here = world.add_on(
            path,
            greedy(3, true, host),
            Tag::Background,
            Arc::clone(&tcp),
        );
        if links.len() > 1 {
            let beside = world.add_path(&[hop(1 - own)]).expect("a path");
            let machine = greedy(2, false, Access::default());
            world.add_on(beside, machine, Tag::Background, tcp);
        }
        world.advance(Time::from_secs_f64(10.0));
        let ledgers = Direction::BOTH.map(|d| world.link(own, d).ledger());
        (ledgers, world.tcp_stats(here, Conn(2)))
    };
    let alone = run(&[5], 0);
    assert!(alone.0[1].departed > 5_000, "{:?}", alone.0);
    assert_eq!(run(&[5, 3], 0), alone);
    assert_eq!(run(&[3, 5], 1), alone);
}

/// Ports at the two ends of a chain. `ports_due` announces each departure in time, and ports of different paths
/// cannot be joined.
#[test]
fn ports_reach_one_another_over_a_chain() {
    let same = link(8, Dur::from_millis(3));
    let mut world = chain(&[same.clone(), same.clone(), same], 1);
    let other = world.add_path(&[hop(1)]).expect("a path");
    let mut port = |path, right| {
        world.add_port(&PortConfig {
            path,
            right,
            access: Access::default(),
        })
    };
    let all = PathId::default();
    let (left, right, far) = (port(all, false), port(all, true), port(other, true));
    assert_eq!(world.join([left, far], Tag::Foreground), None);
    let flow = world.join([left, right], Tag::Foreground);
    let flow = flow.expect("two ends of a path");
    for (handle, back) in [(1, false), (2, true)] {
        world.inject(flow, back, 1000, 0, handle);
    }
    // Three times the delay and the transmission time of 1 ms.
    let leaves = world.now() + Dur::from_millis(12);
    let mut steps = 0;
    while let Some(due) = world.ports_due() {
        assert!(due <= leaves, "{due:?} is too late");
        world.happen(due);
        let mut delivered = Vec::new();
        while let Some(delivery) = world.take_delivery() {
            assert_eq!(delivery.at, leaves);
            delivered.push(delivery.handle);
        }
        assert!(delivered.is_empty() || delivered.len() == 2);
        steps += 1;
        assert!(steps < 20, "nothing is delivered");
    }
    assert_eq!(world.inside(), 0);
}
