//! Packets of real programs: every packet that enters by a port leaves by one or is accounted for.

use std::collections::BTreeMap;
use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Side, Stream, Tag, Time};
use swell_path::{Capacity, Change, Discipline, FqCoDelConfig, LinkConfig, Loss, NewQueue, Outage};
use swell_tcp::Config;
use swell_workload::{Access, Greedy, GreedyConfig, Law, Parametric, ParametricConfig, Transport};
use swell_world::{Delivery, Direction, LinkSetting, PacketDrop, Port, PortConfig, World};

fn bottleneck(discipline: Discipline, loss: Loss) -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        delay: Dur::from_millis(7),
        queue: "30packets".parse().unwrap(),
        discipline,
        loss,
        ..LinkConfig::default()
    }
}

fn ports(world: &mut World) -> [Port; 2] {
    let port = |right, delay| PortConfig {
        right,
        access: Access {
            delay: Dur::from_millis(delay),
            up: Some(Rate::from_bps(1_000_000_000)),
            ..Access::default()
        },
        ..PortConfig::default()
    };
    [
        world.add_port(&port(false, 2)),
        world.add_port(&port(true, 0)),
    ]
}

/// A world with constant-rate packets and greedy TCP in addition to the ports.
fn busy(discipline: Discipline, loss: Loss) -> (World, [Port; 2]) {
    let both = bottleneck(discipline, loss);
    let mut world = World::new(&[both.clone(), both], 11);
    let tcp = Arc::new(Config::linux());
    let constant = ParametricConfig {
        law: Law::Constant,
        transport: Transport::Udp,
        packet: 500,
        rate: [Rate::from_bps(2_000_000); 2],
        sources: 3,
        left: Access::default(),
        right: Access::default(),
    };
    let constant = Parametric::new(constant, 4);
    world.add(Box::new(constant), Tag::Background, Arc::clone(&tcp));
    let greedy = GreedyConfig {
        connections: 3,
        from: Side::Left,
        start: Dur::ZERO,
        stagger: Dur::from_millis(100),
        sender: Access::default(),
        receiver: Access::default(),
        ..GreedyConfig::default()
    };
    world.add(Box::new(Greedy::new(greedy)), Tag::Background, tcp);
    let ports = ports(&mut world);
    (world, ports)
}

/// Arrivals at the ports: instant, direction, size. They come in bursts, as from real hosts.
fn arrivals(seed: u64) -> Vec<(Time, bool, u16)> {
    let mut rng = Stream::new(seed, "arrivals");
    let mut at = Time::ZERO;
    let mut list = Vec::new();
    for _ in 0..400 {
        at += Dur::from_secs_f64(rng.uniform() * 0.02);
        let back = rng.chance(0.4);
        for _ in 0..1 + rng.below(20) {
            list.push((at, back, 40 + rng.below(1461) as u16));
        }
    }
    list
}

/// Injects the arrivals. `until` says up to which instants the world is advanced before each.
fn play(
    (mut world, ports): (World, [Port; 2]),
    list: &[(Time, bool, u16)],
    until: &mut dyn FnMut(&mut World, Time),
) -> (Vec<Delivery>, Vec<PacketDrop>) {
    let flow = world.join(ports, Tag::Foreground).expect("two sides");
    let (mut out, mut lost) = (Vec::new(), Vec::new());
    let end = Time::from_secs_f64(8.0);
    for (i, &(at, back, size)) in list.iter().chain([&(end, false, 0)]).enumerate() {
        until(&mut world, at);
        world.happen(at);
        if size > 0 {
            world.inject(flow, back, size, 2, i as u64);
        }
        out.extend(std::iter::from_fn(|| world.take_delivery()));
        world.take_drops(&mut |c| lost.push(c));
    }
    assert_eq!(world.inside(), 0, "everything has left");
    lost.sort_by_key(|c| (c.at, c.handle));
    (out, lost)
}

#[test]
fn every_packet_comes_out_once_or_is_accounted_for() {
    let lossy = Loss::Independent { p: 0.03 };
    for discipline in [
        Discipline::Fifo,
        Discipline::CoDel(Default::default()),
        Discipline::FqCoDel(Default::default()),
    ] {
        let list = arrivals(1);
        let (out, lost) = play(busy(discipline, lossy), &list, &mut |_, _| {});
        let mut seen = BTreeMap::new();
        for handle in out
            .iter()
            .map(|d| d.handle)
            .chain(lost.iter().map(|c| c.handle))
        {
            *seen.entry(handle).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), list.len());
        assert!(seen.values().all(|&n| n == 1));
        assert!(
            lost.len() > 50 && out.len() > 1000,
            "{} {}",
            lost.len(),
            out.len()
        );
        for d in &out {
            let (at, back, _) = list[d.handle as usize];
            assert_eq!(d.port, Port(u32::from(!back)));
            assert!(d.at >= at + Dur::from_millis(9));
        }
    }
}

#[test]
fn however_time_is_cut_the_same_packets_leave_at_the_same_instants() {
    let list = arrivals(2);
    let mut rng = Stream::new(3, "cuts");
    for discipline in [Discipline::Fifo, Discipline::FqCoDel(Default::default())] {
        let world = || busy(discipline.clone(), Loss::Independent { p: 0.02 });
        let whole = play(world(), &list, &mut |_, _| {});
        let often = play(world(), &list, &mut |w, at| {
            while w.now() + Dur::from_millis(1) < at {
                w.happen(w.now() + Dur::from_secs_f64(rng.uniform() * 0.001));
            }
        });
        assert_eq!(whole, often);
    }
}

/// Nothing leaves before `ports_due`, so a caller that sleeps until then misses nothing.
#[test]
fn nothing_leaves_before_it_is_due() {
    let list = arrivals(5);
    let (mut world, ports) = busy(Discipline::Fifo, Loss::None);
    let flow = world.join(ports, Tag::Foreground).expect("two sides");
    let (mut waits, mut out) = (0, 0);
    for (i, &(at, back, size)) in list.iter().enumerate() {
        while let Some(due) = world.ports_due().filter(|&due| due <= at) {
            assert!(due >= world.now());
            if due > world.now() {
                world.happen(Time::from_nanos(due.as_nanos() - 1));
                assert_eq!(world.take_delivery(), None, "left before it was due");
            }
            world.happen(due);
            waits += 1;
            out += std::iter::from_fn(|| world.take_delivery()).count();
        }
        world.happen(at);
        assert_eq!(world.take_delivery(), None, "left before it was due");
        world.inject(flow, back, size, 0, i as u64);
        world.take_drops(&mut |_| {});
    }
    assert!(out > 1000);
    // One wake-up per packet that leaves, and few without effect.
    assert!(waits < 2 * out, "{waits} wake-ups for {out} packets");
}

#[test]
fn a_port_alone_sees_serialization_and_delay() {
    let both = bottleneck(Discipline::Fifo, Loss::None);
    let mut world = World::new(&[both.clone(), both], 1);
    let ports = ports(&mut world);
    let flow = world.join(ports, Tag::Foreground).unwrap();
    world.happen(Time::from_secs_f64(1.0));
    world.inject(flow, false, 1500, 0, 7);
    world.inject(flow, false, 1500, 0, 8);
    // 12 us and 2 ms on the access link, 1.2 ms and 7 ms on the bottleneck.
    let first = Time::from_nanos(1_000_000_000 + 12_000 + 2_000_000 + 1_200_000 + 7_000_000);
    world.happen(Time::from_secs_f64(2.0));
    let d = world.take_delivery().unwrap();
    assert_eq!((d.at, d.handle, d.port), (first, 7, ports[1]));
    let next = world.take_delivery().unwrap();
    assert_eq!((next.at, next.handle), (first + Dur::from_micros(1200), 8));
    assert_eq!(world.take_delivery(), None);
    assert_eq!(world.ports_due(), None);
    // Ports at the same end cannot be joined.
    assert_eq!(world.join([ports[0], ports[0]], Tag::Foreground), None);
    assert_eq!(world.inside(), 0);
}

/// A queue that is set during a run counts time at the rate that the link has then.
#[test]
fn a_limit_in_time_holds_at_the_rate_of_its_time() {
    let slower = Change {
        at: Time::from_secs_f64(1.0),
        capacity: Some(Capacity::Rate(Rate::from_bps(1_000_000))),
        ..Change::default()
    };
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        changes: vec![slower],
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let ends = [false, true].map(|right| {
        world.add_port(&PortConfig {
            right,
            ..PortConfig::default()
        })
    });
    let flow = world.join(ends, Tag::Foreground).expect("one path");
    let then = Time::from_secs_f64(2.0);
    world.advance(then);
    let queue = LinkSetting {
        queue: Some("80ms".parse().unwrap()),
        ..LinkSetting::default()
    };
    assert_eq!(world.set_link(0, Direction::Up, &queue), Some(then));
    for handle in 0..100 {
        world.inject(flow, false, 1000, 0, handle);
    }
    world.advance(Time::from_secs_f64(10.0));
    // One in transmission, and ten that wait for 8 ms each.
    let left = std::iter::from_fn(|| world.take_delivery());
    assert_eq!(left.count(), 11);
}

/// A link whose queue is set at 2 s: how many of so many packets of a flow that come at each instant are delivered,
/// and when the setting took effect.
fn delivered(change: Change, limit: &str, come: &[(f64, u64)]) -> (usize, Option<Time>) {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        changes: vec![change],
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let ends = [false, true].map(|right| {
        world.add_port(&PortConfig {
            right,
            ..PortConfig::default()
        })
    });
    let flow = world.join(ends, Tag::Foreground).expect("one path");
    let queue = LinkSetting {
        queue: Some(limit.parse().unwrap()),
        ..LinkSetting::default()
    };
    let (mut set, mut handle) = (None, 0);
    for &(at, packets) in come {
        if at > 2.0 && set.is_none() {
            world.advance(Time::from_secs_f64(2.0));
            set = world.set_link(0, Direction::Up, &queue);
        }
        world.advance(Time::from_secs_f64(at));
        for _ in 0..packets {
            world.inject(flow, false, 1000, 0, handle);
            handle += 1;
        }
    }
    world.advance(Time::from_secs_f64(20.0));
    let left = std::iter::from_fn(|| world.take_delivery());
    (left.count(), set)
}

/// FQ-CoDel drops half of a queue that exceeds its limit, and drop tail a single packet.
#[test]
fn a_limit_keeps_the_discipline_of_its_time() {
    let fair = Change {
        at: Time::from_secs_f64(1.0),
        queue: Some(NewQueue {
            discipline: Discipline::FqCoDel(FqCoDelConfig::default()),
            limit: QueueLimit::Packets(1000),
            rate: Some(Rate::from_bps(10_000_000)),
        }),
        ..Change::default()
    };
    // One in transmission, and six of the eleven others are dropped.
    let seen = delivered(fair, "10pkt", &[(3.0, 12)]);
    assert_eq!(seen, (6, Some(Time::from_secs_f64(2.0))));
}

#[test]
fn a_limit_holds_at_once_during_an_outage() {
    let outage = Change {
        at: Time::from_secs_f64(1.0),
        outage: Some(Outage {
            length: Dur::from_secs(5),
            lossy: false,
        }),
        ..Change::default()
    };
    let seen = delivered(outage, "5pkt", &[(1.5, 1), (3.0, 10)]);
    assert_eq!(seen, (5, Some(Time::from_secs_f64(2.0))));
}
