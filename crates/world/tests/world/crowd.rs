//! Worlds that are large enough for look-ahead, in the event queue and along shared links.

#![expect(clippy::print_stdout, reason = "says how large it was")]

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_workload::{
    Access, Conn, Greedy, GreedyConfig, Law, Parametric, ParametricConfig, Transport, Workload,
};
use swell_world::{Direction, FastPath, World};

const CLIENTS: u64 = 3_000;

fn gateway() -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(50_000_000 * CLIENTS / 60)),
        delay: Dur::from_millis(25),
        queue: QueueLimit::Packets(50 * CLIENTS / 60),
        ..LinkConfig::default()
    }
}

/// Two of three clients have an access link whose packet time is not a whole number of nanoseconds. Datagram sources,
/// sources that write to several connections, senders on the right and greedy sources are mixed in.
fn workload(i: u64, tcp: &mut Config) -> Box<dyn Workload> {
    let rate = if i.is_multiple_of(3) {
        10_000_000
    } else {
        7_654_321
    };
    let client = Access {
        delay: Dur::from_millis(25),
        up: Some(Rate::from_bps(rate)),
        down: Some(Rate::from_bps(rate)),
        ..Access::default()
    };
    if i.is_multiple_of(11) {
        tcp.algorithm = Algorithm::Cubic;
        let config = GreedyConfig {
            sender: client,
            start: Dur::from_micros(97) * i,
            ..GreedyConfig::default()
        };
        return Box::new(Greedy::new(config));
    }
    let to_the_left = i.is_multiple_of(5);
    let config = ParametricConfig {
        law: Law::Poisson,
        transport: if i.is_multiple_of(7) {
            Transport::Udp
        } else {
            Transport::Tcp
        },
        packet: 1_512,
        rate: [false, true]
            .map(|left| Rate::from_bps(1_512 * 800 * u64::from(left == to_the_left))),
        sources: 1 + u32::from(i.is_multiple_of(13)),
        left: client,
        right: Access::default(),
    };
    Box::new(Parametric::new(config, i))
}

/// A text with all results of a run, and the largest number of packets in its pool.
fn run(look_ahead: bool, handshake: bool, cut: Dur) -> (String, usize) {
    let mut world = World::new(&[gateway(), gateway()], 1);
    if !look_ahead {
        world.switch_off(FastPath::LookAhead);
    }
    for i in 0..CLIENTS {
        let mut tcp = Config {
            algorithm: Algorithm::Reno,
            mss: 1460,
            send_window: Some(20),
            handshake,
            packets: true,
            ..Config::classic()
        };
        let machine = workload(i, &mut tcp);
        world.add(machine, Tag::Background, Arc::new(tcp));
    }
    let end = Time::from_secs_f64(1.2);
    let mut pooled = 0;
    while world.now() < end {
        world.advance((world.now() + cut).min(end));
        pooled = pooled.max(world.pooled());
    }
    let stats: Vec<_> = (0..CLIENTS as usize)
        .flat_map(|i| world.tcp_stats(i, Conn(0)))
        .collect();
    let ledgers = [Direction::Up, Direction::Down].map(|way| world.bottleneck(way).ledger());
    assert!(ledgers.iter().all(|l| l.dropped_total() > 0), "{ledgers:?}");
    let seen = (world.hops(), world.packets(), ledgers, stats);
    (format!("{seen:?}"), pooled)
}

/// Look-ahead changes nothing, and neither does advancing time in other steps.
#[test]
fn looking_ahead_changes_nothing() {
    for handshake in [false, true] {
        let (want, most) = run(false, handshake, Dur::from_millis(100));
        println!("{most} packets at once");
        assert!(most > 10_000, "{most} packets at once");
        for (look_ahead, cut) in [(true, 100), (true, 300), (false, 7)] {
            let (got, _) = run(look_ahead, handshake, Dur::from_millis(cut));
            assert!(got == want, "looking ahead {look_ahead}, cut {cut} ms");
        }
    }
}
