//! CPU time of an endpoint's calls on the common path: `cargo bench -p swell-tcp`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads the clock and talks"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use swell_base::{Dur, Time};
use swell_tcp::{Config, Endpoint};

/// A greedy transfer with a window of 20 segments, in which every `drop`-th data segment is lost. Returns (data
/// segments, acknowledgements, seconds).
fn run(cfg: Config, segments: u64, drop: u64) -> (u64, u64, f64) {
    let cfg = Arc::new(Config {
        handshake: false,
        ..cfg
    });
    let mut a = Endpoint::client(cfg.clone());
    let mut b = Endpoint::server(cfg);
    a.send(u64::MAX / 4);
    let mut now = Time::ZERO;
    let (mut data, mut acks) = (0, 0);
    let (mut out, mut back) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while data < segments {
        now += Dur::from_millis(1);
        for (seg, sacks) in back.drain(..) {
            a.handle_segment(now, &seg, &sacks);
            while let Some(s) = a.poll_transmit(now) {
                out.push(s);
            }
        }
        if a.poll_timeout().is_some_and(|t| t <= now) {
            a.handle_timeout(now);
        }
        while let Some(s) = a.poll_transmit(now) {
            out.push(s);
        }
        for (seg, sacks) in out.drain(..) {
            data += 1;
            if data % drop == 0 {
                continue;
            }
            b.handle_segment(now, &seg, &sacks);
            while b.poll().is_some() {}
            while let Some(s) = b.poll_transmit(now) {
                acks += 1;
                back.push(s);
            }
        }
        if b.poll_timeout().is_some_and(|t| t <= now) {
            b.handle_timeout(now);
            while let Some(s) = b.poll_transmit(now) {
                acks += 1;
                back.push(s);
            }
        }
        black_box(a.poll_timeout());
    }
    (data, acks, start.elapsed().as_secs_f64())
}

fn main() {
    println!("endpoint: {} bytes", size_of::<Endpoint>());
    let linux = Config {
        recv_buffer: 20 * 1448,
        ..Config::linux()
    };
    for (name, cfg, drop) in [
        ("classic, no loss", Config::classic(), u64::MAX),
        ("linux, no loss", linux.clone(), u64::MAX),
        ("classic, 1 % loss", Config::classic(), 100),
        ("linux, 1 % loss", linux, 100),
        ("linux, large window, 0.1 % loss", Config::linux(), 1000),
    ] {
        run(cfg.clone(), 10_000, drop);
        let (data, acks, s) = run(cfg, 3_000_000, drop);
        println!(
            "{name}: {:.1} ns per segment handled and sent (both ends, {acks} acknowledgements)",
            s * 1e9 / (data + acks) as f64
        );
    }
}
