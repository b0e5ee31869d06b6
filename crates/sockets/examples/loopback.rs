//! Speed of the carrier of workloads over kernel sockets on the loopback network: connections per second, bytes per
//! second, memory per open connection, lateness of timers. Each is measured for a few seconds; use a quiet machine
//! and repeat it.
//!
//! `cargo run --release -p swell-sockets --example loopback [SECONDS] [CONNECTIONS]`
//!
//! For comparison on the same machine: `iperf3 -c` against `iperf3 -s` with 128 KB writes, and nginx with `wrk -H
//! 'Connection: close'`. Those use two processors, this one.

#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use swell_base::{Bytes, Dur, Rate, Time};
use swell_sockets::{Carrier, CarrierConfig, Report};
use swell_tcp::Config;
use swell_workload::{
    Access, Action, Conn, Event, Greedy, GreedyConfig, Info, Law, Parametric, ParametricConfig,
    Record, Transport, Web, WebConfig, Workload,
};

/// Opens 20 connections each millisecond and holds them.
struct Hold {
    connections: u32,
    opened: u32,
}

impl Workload for Hold {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        if !matches!(event, Event::Start | Event::Timer(_)) {
            return;
        }
        for _ in 0..20.min(self.connections - self.opened) {
            let conn = Conn(self.opened);
            self.opened += 1;
            actions.push(Action::Connect(conn, Box::default()));
        }
        if self.opened < self.connections {
            actions.push(Action::Timer(Dur::from_millis(1), 0));
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }

    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

fn web(clients: u32, keep: bool, object: u64) -> Web {
    Web::new(WebConfig {
        clients,
        objects: vec![Bytes(object)],
        request: Bytes(100),
        server_think: Dur::ZERO,
        think: Dur::ZERO,
        keep,
        count: None,
        start: Dur::ZERO,
        client: Access::default(),
        server: Access::default(),
    })
}

/// A workload's records, wall-clock seconds, CPU seconds, and the report.
type Ran = (Vec<Record>, f64, f64, Report);

/// Runs a workload.
fn run(machine: impl Workload + 'static, seconds: f64) -> Result<Ran, Box<dyn Error>> {
    let mut carrier = Carrier::new(CarrierConfig::default())?;
    carrier.add(Box::new(machine), &Arc::new(Config::linux()))?;
    let (begin, cpu) = (Instant::now(), processor()?);
    carrier.run(Time::from_secs_f64(seconds), &AtomicBool::new(false))?;
    let (took, used) = (begin.elapsed().as_secs_f64(), processor()? - cpu);
    carrier.finish();
    Ok((carrier.take_records(0), took, used, carrier.report()))
}

/// CPU seconds that this process has used.
fn processor() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15 (proc(5)) in units of 10 ms; the second field is the name in parentheses.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2);
    Ok(ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// A value in KiB from a file of `Name: value kB` lines.
fn kib(file: &str, name: &str) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    let value = line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok());
    Ok(value.unwrap_or(0.0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args.next().map_or(Ok(3.0), |a| a.parse())?;
    let connections: u32 = args.next().map_or(Ok(9_000), |a| a.parse())?;

    for (keep, what) in [
        (false, "connections"),
        (true, "requests on kept connections"),
    ] {
        let (records, took, used, _) = run(web(64, keep, 100), seconds)?;
        let n = records.len() as f64;
        println!(
            "{:9.0} {what}/s (64 clients, 100 bytes; {:.0} % of a processor, {:.1} us each)",
            n / took,
            used / took * 100.0,
            used / n * 1e6
        );
    }
    for n in [1, 10] {
        let greedy = Greedy::new(GreedyConfig {
            connections: n,
            ..GreedyConfig::default()
        });
        let (_, took, used, report) = run(greedy, seconds)?;
        let gbit = report.counts.bytes as f64 * 8e-9;
        println!(
            "{:9.2} Gbit/s over {n} connections ({:.0} % of a processor, {:.1} Gbit per processor second)",
            gbit / took,
            used / took * 100.0,
            gbit / used
        );
    }
    let constant = ParametricConfig {
        law: Law::Constant,
        transport: Transport::Udp,
        packet: 1000,
        rate: [Rate::from_bps(100_000_000), Rate::from_bps(0)],
        sources: 10,
        left: Access::default(),
        right: Access::default(),
    };
    let (_, took, used, report) = run(Parametric::new(constant, 1), seconds)?;
    let late = report.late;
    println!(
        "{:9.2} Mbit/s of UDP for 100 asked ({:.0} % of a processor); timers late by {} p50, {} p99, \
         {} p99.9, {} max",
        report.counts.datagrams_sent as f64 * 8e-3 / took,
        used / took * 100.0,
        late.p50,
        late.p99,
        late.p999,
        late.max
    );

    let memory = || {
        Ok::<_, Box<dyn Error>>((
            kib("/proc/self/status", "VmRSS")?,
            kib("/proc/meminfo", "Slab")?,
        ))
    };
    let mut carrier = Carrier::new(CarrierConfig::default())?;
    let hold = Hold {
        connections,
        opened: 0,
    };
    carrier.add(Box::new(hold), &Arc::new(Config::linux()))?;
    let before = memory()?;
    let time = f64::from(connections) / 10_000.0 + 1.0;
    carrier.run(Time::from_secs_f64(time), &AtomicBool::new(false))?;
    let after = memory()?;
    let open = carrier.open_flows() as f64;
    println!(
        "{open:9.0} connections open: {:.0} bytes each in the process, {:.1} KiB each in the kernel",
        (after.0 - before.0) / open * 1024.0,
        (after.1 - before.1) / open
    );
    for warning in carrier.report().warnings {
        println!("{}: {}", warning.code, warning.message);
    }
    Ok(())
}
