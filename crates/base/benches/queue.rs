//! Time per queue event (one event popped and one pushed): `cargo bench -p swell-base -- [pending]...`.
//!
//! Every event is followed by one 25 or 50 ms later, give or take a millisecond, as with packets. The bench measures
//! the queue alone, and the queue with eight cache lines of other memory read per event. The second case models
//! thousands of flows that pass between filling a bucket and its turn, so that the bucket is no longer in any cache.
//! With `once` each case runs only once, for counting instructions.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench has arguments, reads the clock and talks"
)]

use std::hint::black_box;
use std::time::Instant;

use swell_base::{Dur, EventQueue, Ranked, Stream, Time};

/// Eight-byte words of other memory: 64 MiB.
const OTHER: usize = 1 << 23;
const LINE: usize = 8;
/// Number of gaps drawn before the clock starts.
const GAPS: usize = 1 << 16;
const EVENTS: usize = 250_000;

/// An event of rank 0. The rank is computed from its bits, as in the engine.
#[derive(Clone, Copy)]
struct Event(u64);

impl Ranked for Event {
    #[inline]
    fn rank(&self) -> u32 {
        (self.0 >> 36) as u32
    }
}

fn main() {
    let once = std::env::args().any(|a| a == "once");
    let mut stream = Stream::new(1, "bench");
    let mut other = vec![0; if once { 0 } else { OTHER }];
    other.fill_with(|| stream.below(1 << 40));
    let gaps: Vec<Dur> = (0..GAPS)
        .map(|_| {
            Dur::from_millis(24 + 25 * stream.below(2)) + Dur::from_nanos(stream.below(2_000_000))
        })
        .collect();
    let asked: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let usual = [100, 10_000, 100_000];
    for &pending in if asked.is_empty() { &usual[..] } else { &asked } {
        if once {
            run(pending, &gaps, &[]);
            continue;
        }
        let alone = best(pending, &gaps, &[]);
        let crowded = best(pending, &gaps, &other);
        println!("{pending} pending: {alone:.1} ns alone, {crowded:.1} ns beside other memory");
    }
}

/// Nanoseconds per event, the shortest of twenty runs: the cost of the code without interference.
fn best(pending: usize, gaps: &[Dur], other: &[u64]) -> f64 {
    (0..20)
        .map(|_| run(pending, gaps, other))
        .fold(f64::INFINITY, f64::min)
}

fn run(pending: usize, gaps: &[Dur], other: &[u64]) -> f64 {
    let mut queue = EventQueue::new();
    for event in 0..pending as u64 {
        queue.push(Time::ZERO + gaps[event as usize % GAPS], Event(event));
    }
    let mut start = Instant::now();
    let mut seen = 0;
    for i in 0..2 * EVENTS {
        // By now all initial events, which were pushed at once, have been popped.
        if i == EVENTS {
            start = Instant::now();
        }
        if queue.ahead().len() >= 8 {
            queue.look_on();
        }
        let Some((now, event)) = queue.pop_until(Time::MAX) else {
            break;
        };
        for line in 0..8 {
            let place = (event.0 as usize * 8 + line) * LINE;
            seen ^= other.get(place % OTHER).copied().unwrap_or(0);
        }
        queue.push(now + gaps[i % GAPS], event);
    }
    black_box(seen);
    start.elapsed().as_secs_f64() * 1e9 / EVENTS as f64
}
