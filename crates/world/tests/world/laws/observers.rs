//! Counters and taps observe a run and change nothing.

use super::*;
use swell_base::{Direction, Side};

#[test]
fn a_window_is_a_sawtooth() {
    let mut world = dumbbell("10Mbit", 20, "40pkt", 1);
    let tcp = Arc::new(Config {
        algorithm: Algorithm::NewReno,
        ..Config::linux()
    });
    let greedy = Greedy::new(GreedyConfig::default());
    assert_eq!(world.add(Box::new(greedy), Tag::Foreground, tcp), 0);
    let seen: Vec<_> = (1..=60_000)
        .map(|ms| {
            world.advance(Time::from_secs_f64(f64::from(ms) / 1e3));
            world.tcp_stats(0, Conn(0)).expect("it is open")[0]
        })
        .collect();
    let last = seen.last().expect("there are some");
    let rtt = last.srtt.expect("there are samples").as_secs_f64();
    // 40 ms of propagation and at most 40 packets of 1.2 ms in the queue.
    assert!((0.040..0.090).contains(&rtt), "{rtt}");
    assert!(last.retransmitted > 0);
    // The window after a halving is about half the window before it.
    let windows = seen[20_000..].iter().map(|s| s.cwnd);
    let (low, high) = windows.fold((u64::MAX, 0), |(l, h), w| (l.min(w), h.max(w)));
    let ratio = low as f64 / high as f64;
    assert!((0.35..0.6).contains(&ratio), "{low} to {high}");
}

#[test]
fn acknowledgements_behind_data_are_compressed_and_alone_are_not() {
    // ACK compression (Zhang, Shenker & Clark): data in the reverse direction makes ACKs leave in bunches.
    let compression = |both_ways: bool| {
        let mut world = dumbbell("10Mbit", 20, "50pkt", 1);
        world.take_census();
        let tcp = Arc::new(Config::linux());
        let greedy = |from_right| {
            Box::new(Greedy::new(GreedyConfig {
                from: Side::of(from_right),
                ..GreedyConfig::default()
            }))
        };
        let there = world.add(greedy(false), Tag::Foreground, tcp.clone());
        if both_ways {
            world.add(greedy(true), Tag::Background, tcp);
        }
        world.advance(Time::from_secs_f64(60.0));
        let back = world.bottleneck(Direction::Down).census().expect("taken");
        let tally = back.tally(there as u32);
        tally.compressed_acks as f64 / tally.acks as f64
    };
    let (alone, behind_data) = (compression(false), compression(true));
    assert!(alone < 0.01, "{alone}");
    assert!(behind_data > 0.3, "{behind_data}");
}

/// One observation: instant, arrival or crossing, direction, and the identity of a datagram.
type Sight = (Time, bool, usize, Option<(FlowId, End, u64)>);

/// Reports every observation of a tap.
struct Tells(mpsc::Sender<Sight>);

impl Tells {
    fn tell(&self, at: Time, arrives: bool, parties: &Parties, to_server: bool, packet: &Packet) {
        let direction = parties.direction(to_server).index();
        let datagram = (!parties.tcp).then_some((packet.flow, packet.from, packet.seg.seq));
        self.0.send((at, arrives, direction, datagram)).unwrap();
    }
}

impl Tap for Tells {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.tell(at, false, parties, to_server, packet);
    }

    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        self.tell(at, true, parties, to_server, packet);
    }
}

/// A tap sees everything that the ledgers count, and changes nothing.
#[test]
fn a_tap_sees_every_arrival_and_every_crossing_and_changes_nothing() {
    let run = |tap: Option<Tells>| {
        let mut world = dumbbell("5Mbit", 10, "10pkt", 1);
        if let Some(tap) = tap {
            world.set_tap(Box::new(tap));
        }
        let tcp = Arc::new(Config::linux());
        let w = world.add(
            Box::new(Web::new(web(50_000, 3, None))),
            Tag::Foreground,
            tcp.clone(),
        );
        world.add(
            Box::new(Parametric::new(udp(Law::Poisson, "3Mbit"), 4)),
            Tag::Background,
            tcp,
        );
        world.advance(Time::from_secs_f64(20.0));
        let ledgers = [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).ledger());
        (requests(&mut world, w), world.hops(), ledgers)
    };
    let (tells, told) = mpsc::channel();
    let watched = run(Some(Tells(tells)));
    assert!(watched == run(None));

    let ledgers = watched.2;
    let mut last = Time::ZERO;
    let (mut arrivals, mut crossings) = ([0; 2], [0; 2]);
    let mut waiting = BTreeMap::new();
    for (at, arrives, direction, datagram) in told {
        assert!(last <= at, "shown in the order of time");
        last = at;
        if arrives {
            arrivals[direction] += 1;
        } else {
            crossings[direction] += 1;
        }
        match datagram {
            None => {}
            Some(key) if arrives => {
                waiting.insert(key, at);
            }
            Some(key) => {
                let arrived = waiting.remove(&key).expect("it arrived before");
                assert!(arrived < at, "a packet takes time");
            }
        }
    }
    let dropped: u64 = ledgers[1].dropped.iter().sum();
    assert!(dropped > 100, "{dropped}");
    for (d, ledger) in ledgers.iter().enumerate() {
        assert_eq!(arrivals[d], ledger.arrived);
        // Ten packets may wait and one is being sent. 10 ms at 5 Mbit/s hold 120 packets of 52 bytes.
        let lost: u64 = ledger.dropped.iter().sum();
        let under_way = ledger.arrived - lost - crossings[d];
        assert!(under_way <= 131, "{under_way}");
    }
}
