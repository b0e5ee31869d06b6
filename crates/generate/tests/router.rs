//! Tests of a router between two hosts, on the running kernel. Like `host.rs` this is a program of its own: it needs
//! root or user namespaces, and a process that has no threads when it starts.
#![expect(clippy::print_stdout, reason = "a test program reports on stdout")]

use std::process::ExitCode;
use std::sync::Arc;

use swell_base::{Dur, Rate};
use swell_generate::Closed;
use swell_generate::router::{Load, Pattern, Seen, Settings, bench};
use swell_host::{Rights, TokenBucket, helper_main};

type Test = fn(&Rights);

const TESTS: &[(&str, Test)] = &[
    ("below_the_limit_everything_is_forwarded", below_the_limit),
    (
        "a_burst_longer_than_the_queue_loses_its_end",
        a_burst_too_long,
    ),
    (
        "what_a_limit_drops_of_tcp_is_what_does_not_come_out",
        tcp_losses,
    ),
];

fn main() -> ExitCode {
    if let Some(code) = helper_main() {
        return code;
    }
    let rights = match Rights::obtain() {
        Ok(rights) => rights,
        Err(e) => {
            swell_needs::skip(format_args!("all tests of routers: {e}"));
            return ExitCode::SUCCESS;
        }
    };
    let wanted = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    for (name, test) in TESTS {
        if wanted.as_ref().is_none_or(|w| name.contains(w.as_str())) {
            // A failing test panics, which ends the program with a failure.
            test(&rights);
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

const MBIT: u64 = 1_000_000;

fn settings(routes: u32, rate: u64, packets: u32) -> Settings {
    Settings {
        routes,
        limit: Some(TokenBucket {
            rate: rate / 8,
            burst: 3_100,
            queue: packets * 1_514,
        }),
        window_scaling: true,
        span: Dur::from_millis(1_200),
        every: Dur::from_millis(300),
    }
}

fn pattern(load: u64) -> Pattern {
    Pattern {
        sizes: vec![1500],
        burst: 1,
        sources: 2,
        line: Rate::from_bps(10 * MBIT),
        load: Rate::from_bps(load),
    }
}

fn run(rights: &Rights, settings: &Settings, load: &Load) -> Seen {
    let seen = bench(rights, settings, load, &|| false).expect("a router can be made here");
    println!("  {:?}", seen.end);
    for doubt in &seen.doubts {
        println!("  {}", doubt.message);
    }
    seen
}

fn below_the_limit(rights: &Rights) {
    for sizes in [vec![1500], vec![40, 576, 1500, 40]] {
        let pattern = Pattern {
            sizes,
            ..pattern(6 * MBIT)
        };
        let seen = run(
            rights,
            &settings(1_024, 10 * MBIT, 50),
            &Load::Constant(pattern),
        );
        // A stall of the machine may bunch the spaced packets. Fifty of them fit into the queue, which holds 12 ms of
        // traffic.
        let end = &seen.end;
        assert_eq!(lost(&seen), end.dropped() + end.sink_missed);
        if seen.late.max < Dur::from_millis(10) {
            assert_eq!((lost(&seen), seen.short), (0, 0.0));
        }
        // After the end no packets are waiting. Before that, the counters are inconsistent because they are read one
        // after the other.
        assert_eq!(end.forwarded + end.dropped(), end.offered);
        assert_eq!(
            seen.lost.len() as u64,
            end.offered - seen.samples[0].offered
        );
    }
}

fn lost(seen: &Seen) -> u64 {
    seen.lost.iter().filter(|l| **l).count() as u64
}

fn a_burst_too_long(rights: &Rights) {
    // Two lines of 10 Mbit/s lead into one: of 2 x 60 packets half have to wait, and the queue holds 20.
    let bursty = Pattern {
        burst: 60,
        ..pattern(8 * MBIT)
    };
    let seen = run(
        rights,
        &settings(32, 10 * MBIT, 20),
        &Load::Constant(bursty),
    );
    let last = seen.samples.last().unwrap();
    assert!(last.queue_drops > 0 && seen.lost.iter().any(|l| *l));
    // The first packets of a burst find the queue empty.
    for burst in seen.lost.chunks(120) {
        assert!(!burst.iter().take(20).any(|l| *l), "{burst:?}");
    }
}

fn tcp_losses(rights: &Rights) {
    let plan = Closed {
        sessions: 4,
        up: 200,
        down: 2_000_000,
    };
    let seen = run(
        rights,
        &settings(65_536, 20 * MBIT, 30),
        &Load::Sessions {
            plan: Arc::new(plan),
            congestion: vec!["reno".into()],
        },
    );
    let last = seen.samples.last().unwrap();
    // The line was full most of the time, and nothing larger than a frame crossed it.
    let seconds = last.at.as_secs_f64();
    let rate = last.forwarded_bytes as f64 * 8.0 / seconds;
    assert!(rate < 20.5e6 && last.forwarded > 500, "{rate}");
    assert!(last.forwarded_bytes <= last.forwarded * 1_514);
    assert!(
        last.queue_drops > 0,
        "four senders overrun a queue of thirty packets"
    );
    assert_eq!(lost(&seen), seen.end.dropped() + seen.end.sink_missed);
    assert!(seen.lost.len() as u64 >= last.offered - seen.samples[0].offered);
}
