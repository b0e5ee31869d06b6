//! Packet hops per CPU second on the scenario of Tinnakornsrisuphap, Feng & Philp (table 1). M clients at 10 Mbit/s
//! and 25 ms each submit 1500-byte packets over Reno, with exponential gaps of 10 ms on average. They share a gateway
//! of 50 Mbit/s, 25 ms and 50 packets, which is scaled by M/60 above 60 clients.
//!
//! A packet hop is one packet completely received at the far end of one link. Run with `cargo bench -p swell-world
//! --bench hops -- [M] [seconds] [greedy]`; `scripts/bench-peers` runs the same scenario in ns-2 for comparison. With
//! `greedy` the clients always have data to send, for peers whose TCP takes no packets from an application.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "a bench has arguments and reads the clock of its process"
)]

use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_workload::{
    Access, Greedy, GreedyConfig, Law, Parametric, ParametricConfig, Transport, Workload,
};
use swell_world::{Direction, World};

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let clients = numbers.first().copied().unwrap_or(60);
    let seconds = numbers.get(1).copied().unwrap_or(200);
    let greedy = std::env::args().any(|a| a == "greedy");
    let scale = (clients.max(60)) as f64 / 60.0;

    let gateway = LinkConfig {
        rate: Some(Rate::from_bps(50_000_000).scale(scale)),
        delay: Dur::from_millis(25),
        queue: QueueLimit::Packets((50.0 * scale) as u64),
        ..LinkConfig::default()
    };
    let back = LinkConfig {
        queue: QueueLimit::Packets(u64::MAX),
        ..gateway.clone()
    };
    let mut world = World::new(&[gateway, back], 1);
    let tcp = Arc::new(Config {
        algorithm: Algorithm::Reno,
        mss: 1460,
        send_window: Some(20),
        handshake: false,
        packets: true,
        ..Config::classic()
    });
    for i in 0..clients {
        let client = Access {
            delay: Dur::from_millis(25),
            up: Some(Rate::from_bps(10_000_000)),
            down: Some(Rate::from_bps(10_000_000)),
            ..Access::default()
        };
        let source = ParametricConfig {
            law: Law::Poisson,
            transport: Transport::Tcp,
            packet: 1512,
            rate: [Rate::from_bps(1_512 * 800), Rate::from_bps(0)],
            sources: 1,
            left: client,
            right: Access::default(),
        };
        let endless = GreedyConfig {
            sender: client,
            start: Dur::from_micros(97) * i, // not all at one instant
            ..GreedyConfig::default()
        };
        let machine: Box<dyn Workload> = if greedy {
            Box::new(Greedy::new(endless))
        } else {
            Box::new(Parametric::new(source, i))
        };
        world.add(machine, Tag::Background, Arc::clone(&tcp));
    }
    let before = cpu_seconds();
    world.advance(Time::from_secs_f64(seconds as f64));
    let process = cpu_seconds();
    let cpu = process - before;
    let ledger = world.bottleneck(Direction::Up).ledger();
    println!(
        "clients {clients}  seconds {seconds}  arrivals {}  dropped {} ({:.2} %)  hops {}  cpu {cpu:.4} s  process {process:.4} s  {:.2} M hops/CPU-s",
        ledger.arrived,
        ledger.dropped_total(),
        100.0 * ledger.dropped_total() as f64 / ledger.arrived as f64,
        world.hops(),
        world.hops() as f64 / cpu / 1e6,
    );
}

/// User and system time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
