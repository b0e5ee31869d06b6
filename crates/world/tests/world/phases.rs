//! Phase effects: which of several long flows meet a full drop-tail queue.
//!
//! Without noise, packets of a flow always arrive at the same phase of the transmissions before them. The phase then
//! decides who loses (S. Floyd, V. Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992). A random
//! host delay of up to one transmission time removes the effect. The oracle is ns-2 with its `overhead_`.
//! `benches/peers/phases.tcl` is the scenario, `phases.csv` holds its results.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, Packet, QueueLimit, Rate, Stream, Tag, Time};
use swell_path::{LinkConfig, PHASES};
use swell_tcp::{Config, Jitter};
use swell_workload::{Access, Conn, Greedy, GreedyConfig};
use swell_world::{Direction, FastPath, Parties, Tap, World};

const SECONDS: u64 = 120;

/// Two groups of long flows over one link.
struct Scene {
    rate: u64,
    packets: u64,
    /// One-way delays of both groups on each side, ms.
    delays: [u64; 2],
    flows: u64,
}

/// Five flows with a round trip of 40 ms, five with 160 ms; a packet takes 1.2 ms.
const ROUND: Scene = Scene {
    rate: 10_000_000,
    packets: 50,
    delays: [10, 40],
    flows: 10,
};

impl Scene {
    fn run(&self, tcp: &Config, seed: u64, seconds: u64) -> (World, Vec<usize>) {
        let link = LinkConfig {
            rate: Some(Rate::from_bps(self.rate)),
            queue: QueueLimit::Packets(self.packets),
            ..LinkConfig::default()
        };
        let mut world = World::new(&[link.clone(), link], seed);
        world.meter(Dur::from_millis(10), Dur::from_secs(1));
        let tcp = Arc::new(tcp.clone());
        let mut starts = Stream::new(seed, "starts");
        let mut flow = |i: u64| {
            let host = Access {
                delay: Dur::from_millis(self.delays[i as usize % 2]),
                ..Access::default()
            };
            let greedy = Greedy::new(GreedyConfig {
                start: Dur::from_secs(1).scale(starts.uniform()),
                sender: host,
                receiver: host,
                ..GreedyConfig::default()
            });
            world.add(Box::new(greedy), Tag::Background, Arc::clone(&tcp))
        };
        let flows = (0..self.flows).map(&mut flow).collect();
        world.advance(Time::ZERO + Dur::from_secs(seconds));
        (world, flows)
    }

    /// Goodput of the group with the longer delay, Mbit/s.
    fn far(&self, tcp: &Config, seed: u64) -> f64 {
        let (world, flows) = self.run(tcp, seed, SECONDS);
        let acked = |&flow: &usize| world.tcp_stats(flow, Conn(0)).expect("it is open")[0].acked;
        let far: u64 = flows.iter().skip(1).step_by(2).map(acked).sum();
        far as f64 * 8.0 / SECONDS as f64 / 1e6
    }

    /// Smallest and largest goodput of that group over several seeds.
    fn range(&self, tcp: &Config) -> (f64, f64) {
        let all: Vec<f64> = (0..6).map(|seed| self.far(tcp, seed)).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        (all.iter().copied().fold(f64::INFINITY, f64::min), most)
    }
}

fn without(tcp: &Config) -> Config {
    Config {
        jitter: Jitter::Off,
        ..tcp.clone()
    }
}

/// Asserts that seeds differ by less than a quarter with the default delay, and by more than `factor` without it.
fn seeds_agree(scene: &Scene, tcp: &Config, factor: f64) {
    let (least, most) = scene.range(&without(tcp));
    assert!(most > factor * least, "locked: {least:.2} to {most:.2}");
    let (low, high) = scene.range(tcp);
    assert!(high < 1.25 * low, "by default: {low:.2} to {high:.2}");
}

#[test]
fn seeds_agree_where_hosts_take_their_time_and_do_not_where_phases_are_locked() {
    seeds_agree(&ROUND, &Config::classic(), 5.0);
    // Another rate, other round trips, and Linux TCP with an algorithm other than Reno.
    let other = Scene {
        rate: 4_000_000,
        packets: 25,
        delays: [15, 45],
        flows: 6,
    };
    seeds_agree(&other, &Config::linux(), 1.4);
}

#[test]
fn far_flows_get_what_ns2_with_overhead_gives_them() {
    let table = include_str!("../../../../benches/peers/phases.csv");
    let far = |packets: u64| {
        let row = |line: &str| {
            let cells: Vec<f64> = line
                .split(',')
                .map(|c| c.parse().expect("a number"))
                .collect();
            (cells[1] as u64 == packets && cells[2] > 0.0).then_some(cells[4])
        };
        let rows: Vec<f64> = table.lines().skip(1).filter_map(row).collect();
        assert_eq!(rows.len(), 10);
        rows.iter().sum::<f64>() / rows.len() as f64
    };
    let ns2 = Config {
        jitter: Jitter::UpTo(Dur::from_micros(1200)),
        ..Config::ns2_modern()
    };
    for packets in [20, 50, 100] {
        let scene = Scene { packets, ..ROUND };
        let mine = (0..5).map(|seed| scene.far(&ns2, seed)).sum::<f64>() / 5.0;
        let ratio = mine / far(packets);
        assert!(
            (ratio - 1.0).abs() < 0.05,
            "{packets} packets: {ratio:.3} of ns-2's"
        );
    }
}

/// Purpose of [`swell_path::Meter::phases`]: it shows a phase of the transmission at which segments are lost much
/// more often.
#[test]
fn losses_show_locked_phases() {
    let excess = |tcp: &Config| {
        let (world, _) = ROUND.run(tcp, 1, 60);
        let meter = world.bottleneck(Direction::Up).meter().expect("metered");
        let losses = f64::from(meter.phases.iter().sum::<u32>());
        let all: u64 = meter.bins.iter().map(|b| u64::from(b.dropped[1])).sum();
        // A SYN may be lost as well.
        assert!(losses as u64 <= all && losses > 0.9 * all as f64);
        let fair = losses / PHASES as f64;
        let squares = meter.phases.iter().map(|&n| (f64::from(n) - fair).powi(2));
        squares.sum::<f64>() / fair / losses
    };
    for tcp in [Config::classic(), Config::linux()] {
        let (locked, free) = (excess(&without(&tcp)), excess(&tcp));
        assert!(locked > 4.0 && free < 1.0, "{locked:.2}, then {free:.2}");
    }
}

#[test]
fn plain_links_and_others_draw_and_keep_the_same() {
    let run = |off: bool| {
        let link = LinkConfig {
            rate: Some(Rate::from_bps(10_000_000)),
            queue: QueueLimit::Packets(20),
            ..LinkConfig::default()
        };
        let mut world = World::new(&[link.clone(), link], 7);
        if off {
            world.switch_off(FastPath::PlainLinks);
        }
        let flow = |i: u64, up: Option<u64>| {
            let host = Access {
                delay: Dur::from_micros(10_013 * i),
                up: up.map(Rate::from_bps),
                ..Access::default()
            };
            let config = GreedyConfig {
                start: Dur::from_millis(77 * i),
                sender: host,
                receiver: host,
                ..GreedyConfig::default()
            };
            Box::new(Greedy::new(config))
        };
        // No access link; no rate; a rate whose packet time is not a whole number of nanoseconds; a rate that the
        // flow fills.
        let ups = [None, None, Some(33_000_001), Some(2_000_000)];
        let flows: Vec<usize> = (0..4)
            .map(|i| {
                let tcp = Config {
                    jitter: Jitter::UpTo(Dur::from_micros(700 * (i + 1))),
                    ..Config::linux()
                };
                let flow = flow(i, ups[i as usize]);
                world.add(flow, Tag::Background, Arc::new(tcp))
            })
            .collect();
        world.advance(Time::ZERO + Dur::from_secs(20));
        let stats = |&index: &usize| world.tcp_stats(index, Conn(0)).expect("it is open");
        flows.iter().map(stats).collect::<Vec<_>>()
    };
    let plain = run(false);
    assert!(plain.iter().all(|s| s[0].acked > 100_000));
    assert_eq!(plain, run(true));
}

/// Reports the sequence numbers of one flow's segments in order of arrival at the link.
struct Order(Sender<u64>);

impl Tap for Order {
    fn packet(&mut self, _: Time, _: &Parties, _: bool, _: &Packet) {}

    fn arrival(&mut self, _: Time, _: &Parties, to_server: bool, packet: &Packet) {
        if to_server && packet.seg.len > 0 {
            self.0.send(packet.seg.seq).expect("somebody listens");
        }
    }
}

/// A host with random delays sends in order, with or without an access link.
#[test]
fn a_host_that_takes_its_time_keeps_the_order() {
    for (delay, up) in [(0, None), (1, None), (1, Some(20_000_000))] {
        let link = LinkConfig {
            rate: Some(Rate::from_bps(10_000_000)),
            delay: Dur::from_millis(10),
            ..LinkConfig::default()
        };
        let mut world = World::new(&[link.clone(), link], 3);
        let (tell, seen) = channel();
        world.set_tap(Box::new(Order(tell)));
        let host = Access {
            delay: Dur::from_millis(delay),
            up: up.map(Rate::from_bps),
            ..Access::default()
        };
        let tcp = Config {
            jitter: Jitter::UpTo(Dur::from_millis(15)),
            recv_buffer: 100_000,
            ..Config::linux()
        };
        let greedy = Greedy::new(GreedyConfig {
            sender: host,
            receiver: host,
            ..GreedyConfig::default()
        });
        let flow = world.add(Box::new(greedy), Tag::Background, Arc::new(tcp));
        world.advance(Time::ZERO + Dur::from_secs(5));
        let stats = world.tcp_stats(flow, Conn(0)).expect("it is open")[0];
        assert_eq!(stats.retransmitted, 0);
        if delay == 0 {
            // The only hop of a packet is the one over the link.
            let departed = Direction::BOTH.map(|d| world.bottleneck(d).ledger().departed);
            assert_eq!(world.hops(), departed.iter().sum::<u64>());
        }
        let seen: Vec<u64> = seen.try_iter().collect();
        assert!(seen.len() > 1000 && seen.is_sorted(), "{}", seen.len());
    }
}

/// Hosts add no delay if nothing queues: with one segment in flight, the result equals that without jitter.
#[test]
fn an_idle_path_is_exact() {
    let stats = |jitter| {
        let tcp = Config {
            jitter,
            recv_buffer: 1448,
            recv_tuning: false,
            delayed_ack: false,
            ..Config::linux()
        };
        let scene = Scene { flows: 1, ..ROUND };
        let (world, flows) = scene.run(&tcp, 5, 10);
        world.tcp_stats(flows[0], Conn(0)).expect("it is open")
    };
    let exact = stats(Jitter::Off);
    assert!(exact[0].acked > 100_000);
    assert_eq!(stats(Jitter::Queueing), exact);
    assert_ne!(stats(Jitter::UpTo(Dur::from_millis(1))), exact);
}
