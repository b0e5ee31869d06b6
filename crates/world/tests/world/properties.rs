//! Properties of random small networks.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use proptest::prelude::*;
use swell_base::{Bytes, Dur, Packet, QueueLimit, Rate, Tag, Time};
use swell_path::{LinkConfig, Loss};
use swell_tcp::Config;
use swell_workload::{
    Access, Law, Parametric, ParametricConfig, Record, Transport, Web, WebConfig,
};
use swell_world::{Delivery, Direction, Duplex, FastPath, Parties, Port, PortConfig, Tap, World};

/// A random link: both directions differ.
fn link() -> impl Strategy<Value = [LinkConfig; 2]> {
    let one = || {
        let lossy = prop_oneof![3 => Just(0.0), 1 => 0.0..0.2];
        (1_003u64..40_000_000, 0u64..30_000_000, 1u64..40, lossy).prop_map(
            |(bps, delay, packets, p)| LinkConfig {
                rate: Some(Rate::from_bps(bps * 8)),
                delay: Dur::from_nanos(delay),
                queue: QueueLimit::Packets(packets),
                loss: match p > 0.0 {
                    true => Loss::Independent { p },
                    false => Loss::None,
                },
                ..LinkConfig::default()
            },
        )
    };
    [one(), one()]
}

fn network() -> impl Strategy<Value = Vec<[LinkConfig; 2]>> {
    proptest::collection::vec(link(), 1..4)
}

fn access() -> impl Strategy<Value = Access> {
    let rate = || proptest::option::of((10_000u64..30_000_000).prop_map(Rate::from_bps));
    (0u64..20_000_000, rate(), rate()).prop_map(|(delay, up, down)| Access {
        delay: Dur::from_nanos(delay),
        up,
        down,
        ..Access::default()
    })
}

fn world(links: &[[LinkConfig; 2]], seed: u64) -> World {
    let named = links.iter().enumerate().map(|(i, directions)| Duplex {
        name: format!("link{i}"),
        directions: directions.clone(),
    });
    World::with_links(&named.collect::<Vec<_>>(), seed)
}

/// What a tap saw: when, whether it went from left to right, whether it left the link, and its size.
type Seen = (Time, bool, bool, u16);

struct Watch(Sender<Seen>);

impl Tap for Watch {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let up = parties.direction(to_server) == swell_base::Direction::Up;
        self.0.send((at, up, true, packet.size)).unwrap();
    }

    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let up = parties.direction(to_server) == swell_base::Direction::Up;
        self.0.send((at, up, false, packet.size)).unwrap();
    }
}

fn watch(world: &mut World, links: usize) -> Vec<Receiver<Seen>> {
    let each = (0..links).map(|i| {
        let (sender, receiver) = mpsc::channel();
        world.set_tap_on(i, Box::new(Watch(sender)));
        receiver
    });
    each.collect()
}

/// Time in transmission, rounded up as the links do.
fn transmit(rate: Option<Rate>, size: u16) -> Dur {
    rate.map_or(Dur::ZERO, |r| r.transmit(Bytes(u64::from(size))))
}

/// A link has as many packets as its tap saw arrive, lets pass as many as its tap saw leave, and sends one after the other.
/// `still`: nothing is on its way.
fn check_link(world: &World, links: &[[LinkConfig; 2]], i: usize, seen: &[Seen], still: bool) {
    for direction in Direction::BOTH {
        let up = direction == Direction::Up;
        let config = &links[i][direction as usize];
        let own: Vec<&Seen> = seen.iter().filter(|s| s.1 == up).collect();
        let ledger = world.link(i, direction).ledger();
        let left: Vec<&&Seen> = own.iter().filter(|s| s.2).collect();
        let arrived = own.len() - left.len();
        assert_eq!(ledger.arrived, arrived as u64, "link {i} {direction}");
        // What has left the transmitter may be on its way to the far end.
        assert!(ledger.departed >= left.len() as u64, "link {i} {direction}");
        assert!(ledger.departed + ledger.dropped_total() <= ledger.arrived);
        if still {
            assert_eq!(ledger.departed, left.len() as u64, "link {i} {direction}");
            assert_eq!(ledger.departed + ledger.dropped_total(), ledger.arrived);
        }
        for pair in left.windows(2) {
            // What is lost on the way takes its time on the line, too.
            let apart = pair[1].0.since(pair[0].0);
            let least = transmit(config.rate, pair[1].3);
            assert!(apart >= least, "link {i} {direction}: {apart} < {least}");
        }
    }
}

/// Packets of two ports: gaps before them, nanoseconds; whether from the right; sizes.
fn packets() -> impl Strategy<Value = Vec<(u64, bool, u16)>> {
    let gap = prop_oneof![Just(0), 0u64..5_000_000];
    proptest::collection::vec((gap, any::<bool>(), 40u16..1500), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every packet leaves once or is dropped once, in order, and no sooner than its way takes.
    #[test]
    fn packets_are_conserved_in_order_and_in_time(
        links in network(),
        ends in [access(), access()],
        sent in packets(),
        seed in 0u64..1_000,
    ) {
        let mut world = world(&links, seed);
        let taps = watch(&mut world, links.len());
        let ports: [Port; 2] = [0, 1].map(|i| world.add_port(&PortConfig {
            right: i == 1,
            access: ends[i],
            ..PortConfig::default()
        }));
        let flow = world.join(ports, Tag::Foreground).unwrap();
        let mut at = Time::ZERO;
        let mut injected = Vec::new();
        for (i, &(gap, back, size)) in sent.iter().enumerate() {
            at += Dur::from_nanos(gap);
            world.happen(at);
            world.inject(flow, back, size, 0, i as u64);
            injected.push(at);
        }
        // In the middle, what is inside is neither delivered nor dropped.
        let mut delivered: Vec<Delivery> = std::iter::from_fn(|| world.take_delivery()).collect();
        let mut dropped = Vec::new();
        world.take_drops(&mut |d| dropped.push(d.handle));
        prop_assert_eq!(world.inside() as usize, sent.len() - delivered.len() - dropped.len());
        world.advance(at + Dur::from_secs(3_600));
        delivered.extend(std::iter::from_fn(|| world.take_delivery()));
        world.take_drops(&mut |d| dropped.push(d.handle));
        prop_assert_eq!(world.inside(), 0);
        let out = delivered.iter().map(|d| d.handle);
        let mut all: Vec<u64> = out.chain(dropped.iter().copied()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..sent.len() as u64).collect::<Vec<_>>());
        for back in [false, true] {
            let way: Vec<&Delivery> =
                delivered.iter().filter(|d| sent[d.handle as usize].1 == back).collect();
            prop_assert!(way.windows(2).all(|w| w[0].handle < w[1].handle && w[0].at <= w[1].at));
            let [from, to] = [&ends[usize::from(back)], &ends[usize::from(!back)]];
            for d in way {
                prop_assert_eq!(d.port, ports[usize::from(!back)]);
                let size = sent[d.handle as usize].2;
                let mut least = from.delay + to.delay;
                least += transmit(from.up, size) + transmit(to.down, size);
                for directions in &links {
                    let hop = &directions[usize::from(back)];
                    least += hop.delay + transmit(hop.rate, size);
                }
                let took = d.at.since(injected[d.handle as usize]);
                prop_assert!(took >= least, "{} < {}", took, least);
            }
        }
        for (i, tap) in taps.iter().enumerate() {
            let seen: Vec<Seen> = tap.try_iter().collect();
            check_link(&world, &links, i, &seen, true);
        }
    }

    /// Fast paths change nothing but speed. (`PlainLinks` may change the order of events at one nanosecond, and with it which
    /// packet gets which random delay. The tests of phases have it.)
    #[test]
    fn fast_paths_change_no_result(
        links in network(),
        ends in [access(), access()],
        clients in 1u32..5,
        object in 200u64..200_000,
        rate in 20_000u64..2_000_000,
        seed in 0u64..1_000,
    ) {
        let run = |off: Option<FastPath>| {
            let mut world = world(&links, seed);
            off.into_iter().for_each(|path| world.switch_off(path));
            let taps = watch(&mut world, links.len());
            let tcp = Arc::new(Config::linux());
            let [client, server] = ends;
            let web = WebConfig {
                clients,
                objects: vec![Bytes(object)],
                request: Bytes(300),
                server_think: Dur::from_millis(1),
                think: Dur::from_millis(100),
                keep: seed % 2 == 0,
                count: None,
                start: Dur::ZERO,
                client,
                server,
            };
            let web = world.add(Box::new(Web::new(web)), Tag::Foreground, Arc::clone(&tcp));
            let poisson = ParametricConfig {
                law: Law::Poisson,
                transport: Transport::Udp,
                packet: 500,
                rate: [Rate::from_bps(rate); 2],
                sources: 3,
                left: Access::default(),
                right: Access::default(),
            };
            world.add(Box::new(Parametric::new(poisson, seed)), Tag::Background, tcp);
            world.advance(Time::from_secs_f64(4.0));
            let records: Vec<Record> = world.take_records(web);
            let seen: Vec<Vec<Seen>> = taps.iter().map(|tap| tap.try_iter().collect()).collect();
            for (i, one) in seen.iter().enumerate() {
                check_link(&world, &links, i, one, false);
            }
            (format!("{records:?}"), seen)
        };
        let (records, seen) = run(None);
        for path in [FastPath::LookAhead, FastPath::TimedWrites] {
            let other = run(Some(path));
            prop_assert_eq!(&records, &other.0, "{:?}", path);
            prop_assert!(seen == other.1, "{:?}", path);
        }
    }
}
