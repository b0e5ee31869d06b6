//! Measures the gain of the engine's fast paths on typical user scenarios and on the scenario used to compare peers.
//!
//! | scenario | what |
//! |---|---|
//! | `learnt` | the bundled model `access-link` at about 60 % of 100 Mbit/s: lossy access links, flows that open and close |
//! | `learnt-1g` | the same model at 60 % of 1 Gbit/s |
//! | `learnt-over` | the same model at 1.5 times the capacity of 100 Mbit/s |
//! | `linux` | 10 000 clients of the scenario of [`hops`](../hops.rs), with Linux TCP |
//! | `ns2` | 60 of these clients, with ns-2's Reno; `scripts/bench-peers` runs this one |
//! | `chain` | `ns2` across four links, the first of which is the link of `ns2` |
//!
//! ```text
//! cargo bench -p swell-world --bench ablation                          every scenario, each fast path switched off in turn
//! cargo bench -p swell-world --bench ablation -- SCENARIO [SECONDS [WARM-UP]] [without=PATH[,PATH]]
//! ```
//!
//! One run prints the packets that arrived at the bottleneck per CPU second of the measured part. It also prints the
//! flows that were open at the end and the memory in use then.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(
    clippy::disallowed_methods,
    reason = "a bench has arguments, reads a model file and the clock of its process"
)]

use std::process::Command;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_traffic::{Knobs, Model, Network, Schedule};
use swell_workload::{
    Access, Law, Parametric, ParametricConfig, Structural, Transport, Workload as _,
};
use swell_world::{Direction, Duplex, FastPath, World};

/// Scenarios with the measured seconds and the warm-up seconds before them.
const SCENARIOS: [(&str, u64, u64); 6] = [
    ("learnt", 60, 120),
    ("learnt-1g", 10, 60),
    ("learnt-over", 30, 60),
    ("linux", 3, 2),
    ("ns2", 200, 0),
    ("chain", 200, 0),
];
/// Number of runs of each kind. The kinds alternate.
const ROUNDS: usize = 3;

fn main() {
    // Cargo adds `--bench` to the arguments.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let without: Vec<&str> = (arguments.iter())
        .filter_map(|a| a.strip_prefix("without="))
        .flat_map(|list| list.split(','))
        .collect();
    let named = |a: &&String| SCENARIOS.iter().find(|s| s.0 == a.as_str());
    let Some(&(name, seconds, warm_up)) = arguments.first().as_ref().and_then(named) else {
        return compare();
    };
    let numbers: Vec<u64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let seconds = numbers.first().copied().unwrap_or(seconds);
    let warm_up = numbers.get(1).copied().unwrap_or(warm_up);
    run(name, seconds, warm_up, &without);
}

/// Runs every scenario with all fast paths, and without each one in turn. Each run is a process of its own.
fn compare() {
    let me = std::env::current_exe().expect("the bench has a path");
    let speed = |scenario: &str, without: Option<&str>| {
        let mut command = Command::new(&me);
        command.arg(scenario);
        command.args(without.map(|path| format!("without={path}")));
        let output = command.output().expect("the bench starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = text.split_whitespace();
        words.find(|&w| w == "speed");
        let speed = words.next().and_then(|w| w.parse().ok());
        speed.unwrap_or_else(|| panic!("{scenario} failed: {text}"))
    };
    let paths = FAST_PATHS.map(|(name, _)| Some(name));
    for (scenario, ..) in SCENARIOS {
        let mut all: Vec<f64> = Vec::new();
        let mut off = vec![Vec::new(); paths.len()];
        for _ in 0..ROUNDS {
            all.push(speed(scenario, None));
            for (path, speeds) in paths.iter().zip(&mut off) {
                speeds.push(speed(scenario, *path));
            }
        }
        let with = median(&mut all);
        println!("{scenario}: {with:.3} M packets/CPU-s");
        for ((path, _), mut speeds) in FAST_PATHS.iter().zip(off) {
            let gain = with / median(&mut speeds);
            println!("    {path} gains {gain:.2} x");
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(name: &str, seconds: u64, warm_up: u64, without: &[&str]) {
    let end = Dur::from_secs(warm_up + seconds);
    let mut world = match name {
        "learnt" => learnt(76.0, 100, end, without),
        "learnt-1g" => learnt(760.0, 1000, end, without),
        "learnt-over" => learnt(190.0, 100, end, without),
        "linux" => clients(10_000, 1, &Config::linux(), without),
        "chain" => clients(60, 4, &reno(), without),
        _ => clients(60, 1, &reno(), without),
    };
    world.advance(Time::ZERO + Dur::from_secs(warm_up));
    let (arrived, hops, before) = (arrivals(&world), world.hops(), cpu_seconds());
    world.advance(Time::ZERO + end);
    let cpu = cpu_seconds() - before;
    let packets = arrivals(&world) - arrived;
    let drops: u64 = [Direction::Up, Direction::Down]
        .map(|d| world.bottleneck(d).ledger().dropped_total())
        .iter()
        .sum();
    println!(
        "{name} speed {:.4} M packets/CPU-s  packets {packets}  cpu {cpu:.3} s  dropped {drops}  hops {}  ns/hop {:.1}  open {}  memory {:.1} MB  peak {:.1} MB",
        packets as f64 / cpu / 1e6,
        world.hops(),
        cpu * 1e9 / (world.hops() - hops) as f64,
        world.open_flows(),
        memory("VmRSS:"),
        memory("VmHWM:"),
    );
}

fn arrivals(world: &World) -> u64 {
    let of = |d| world.bottleneck(d).ledger().arrived;
    of(Direction::Up) + of(Direction::Down)
}

/// The bundled model with `sessions` times its sessions, on a link of `mbps` Mbit/s.
fn learnt(sessions: f64, mbps: u64, duration: Dur, without: &[&str]) -> World {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../models/access-link.json.zst"
    );
    let file = std::fs::read(path).expect("the bundled model");
    let model = Model::from_slice(&file).expect("a model");
    let knobs = Knobs {
        sessions,
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let model = model.varied(&knobs, 1);
    let schedule =
        Schedule::cold(&model, &knobs, 1, duration, &Network::default()).expect("a schedule");
    let link = LinkConfig {
        rate: Some(Rate::from_bps(mbps * 1_000_000)),
        delay: Dur::from_millis(10),
        queue: QueueLimit::Packets(3 * mbps),
        ..LinkConfig::default()
    };
    let mut world = without_some(World::new(&[link.clone(), link], 1), without);
    let mut machine = Structural::new(Arc::new(model), &schedule);
    machine.keep_records(false);
    let tcp = Arc::new(Config::linux());
    world.add(Box::new(machine), Tag::Background, tcp);
    world
}

fn reno() -> Config {
    Config {
        algorithm: Algorithm::Reno,
        mss: 1460,
        send_window: Some(20),
        handshake: false,
        packets: true,
        ..Config::classic()
    }
}

/// The scenario of `hops`: Poisson sources over TCP. More links of the same rate may follow the gateway's link.
fn clients(count: u64, links: usize, tcp: &Config, without: &[&str]) -> World {
    let scale = count as f64 / 60.0;
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
    let link = |i| Duplex {
        name: format!("link {i}"),
        directions: [gateway.clone(), back.clone()],
    };
    let links: Vec<Duplex> = (0..links).map(link).collect();
    let mut world = without_some(World::with_links(&links, 1), without);
    let tcp = Arc::new(tcp.clone());
    for i in 0..count {
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
        let machine = Box::new(Parametric::new(source, i));
        world.add(machine, Tag::Background, Arc::clone(&tcp));
    }
    world
}

/// Fast paths that this bench can switch off.
const FAST_PATHS: [(&str, FastPath); 3] = [
    ("look-ahead", FastPath::LookAhead),
    ("plain-links", FastPath::PlainLinks),
    ("timed-writes", FastPath::TimedWrites),
];

fn without_some(mut world: World, without: &[&str]) -> World {
    for name in without {
        let path = FAST_PATHS.iter().find(|p| p.0 == *name);
        let (_, path) = path.unwrap_or_else(|| panic!("there is no fast path `{name}`"));
        world.switch_off(*path);
    }
    world
}

/// User and system time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A line of this process's status file, in megabytes; zero if the file or the line does not exist.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line));
    let kib = found.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
