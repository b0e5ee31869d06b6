//! Delivery traces compared with a simple replay, millisecond by millisecond.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Stream, Time};
use swell_path::{Capacity, Change, Deliveries, Link, LinkConfig, mean_offered};

use super::{MS, out, packet};

/// Replays arrivals (nanoseconds, network-layer bytes) through a queue of `room` packets and returns departures
/// (nanoseconds, number). Each stamp of the repeating trace is an opportunity of 1504 bytes, and each packet counts
/// four bytes more than its size. The rest of an opportunity that finds the queue empty is lost; a packet that
/// exceeds an opportunity continues in the next. A packet leaves the queue when its first byte is sent.
fn replayed(stamps: &[u64], arrivals: &[(u64, u16)], room: usize) -> Vec<(u64, u64)> {
    let mut departures = Vec::new();
    let mut queue: VecDeque<(u64, u64)> = VecDeque::new();
    let mut sending: Option<(u64, u64)> = None;
    let mut coming = arrivals.iter().zip(0u64..).peekable();
    let mut round = 0;
    'rounds: loop {
        for stamp in stamps {
            let now = (round + stamp) * MS;
            while let Some(&(&(at, size), id)) = coming.peek()
                && at < now
            {
                if queue.len() < room {
                    queue.push_back((id, u64::from(size) + 4));
                }
                coming.next();
            }
            let mut bytes = 1504;
            while bytes > 0 {
                let Some((id, left)) = sending.take().or_else(|| queue.pop_front()) else {
                    break;
                };
                if left > bytes {
                    sending = Some((id, left - bytes));
                    break;
                }
                bytes -= left;
                departures.push((now, id));
            }
            if coming.peek().is_none() && queue.is_empty() && sending.is_none() {
                break 'rounds;
            }
        }
        round += stamps.last().unwrap();
    }
    departures
}

fn through(trace: &Arc<Deliveries>, arrivals: &[(u64, u16)], room: u64) -> Vec<(u64, u64)> {
    let config = LinkConfig {
        queue: QueueLimit::Packets(room),
        changes: vec![Change {
            capacity: Some(Capacity::Deliveries {
                trace: Arc::clone(trace),
                phase: Dur::ZERO,
            }),
            ..Change::default()
        }],
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config, 1, "cell");
    for (&(at, size), id) in arrivals.iter().zip(0..) {
        link.push(Time::from_nanos(at), packet(size, id));
    }
    let ledger = link.ledger();
    assert_eq!(ledger.arrived as usize, arrivals.len());
    out(&mut link)
}

/// Packets at random instants, some of them at whole milliseconds and some at the same instant.
fn arrivals(rng: &mut Stream, n: u64, gap: u64) -> Vec<(u64, u16)> {
    let mut at = 0;
    let mut next = || {
        at += match rng.below(4) {
            0 => 0,
            1 => MS - at % MS,
            _ => rng.below(2 * gap),
        };
        let size = [40, 1500, rng.below(1461) as u16 + 40][rng.below(3) as usize];
        (at, size)
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn small_traces() {
    let mut rng = Stream::new(4, "small");
    for i in 0..500 {
        let mut stamp = 0;
        let mut stamps: Vec<u64> = (0..rng.below(12))
            .map(|_| {
                stamp += rng.below(3);
                stamp
            })
            .collect();
        stamps.push(stamp + 1);
        let text: String = stamps.iter().map(|s| format!("{s}\n")).collect();
        let trace = Arc::new(Deliveries::read(text.as_bytes()).unwrap());
        let arrivals = arrivals(&mut rng, 200, MS);
        let room = rng.below(30) as usize;
        assert_eq!(
            through(&trace, &arrivals, room as u64),
            replayed(&stamps, &arrivals, room),
            "{i}: {stamps:?} {room}"
        );
    }
}

/// Every recorded trace, repeated, at moderate load and at overload.
#[test]
fn recorded_traces() {
    for name in [
        "Verizon-LTE-short.down",
        "TMobile-LTE-short.up",
        "ATT-LTE-driving-2016.up",
        "Verizon-EVDO-driving.down",
    ] {
        let Some(text) = recorded(name) else { return };
        let stamps: Vec<u64> = text.lines().map(|l| l.parse().unwrap()).collect();
        let trace = Arc::new(Deliveries::read(text.as_bytes()).unwrap());
        let mean = stamps.last().unwrap() * MS / stamps.len() as u64;
        let mut rng = Stream::new(8, name);
        for (share, room) in [(0.5, 100), (1.5, 60)] {
            let gap = (mean as f64 / share) as u64;
            let arrivals = arrivals(&mut rng, stamps.len() as u64, gap);
            let got = through(&trace, &arrivals, room);
            let expected = replayed(&stamps, &arrivals, room as usize);
            assert_eq!(got.len(), expected.len(), "{name}");
            let differ = got.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differ, None, "{name}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test reads its files")]
fn recorded(name: &str) -> Option<String> {
    let folder = std::env::var_os("SWELL_TRACES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        Into::into,
    );
    let path = folder.join("delivery").join(format!("{name}.gz"));
    let Ok(file) = std::fs::File::open(&path) else {
        let path = path.display();
        swell_needs::skip(format_args!("{path} is missing; set SWELL_TRACES"));
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    Some(text)
}

#[test]
fn a_phase_begins_within_the_trace() {
    let trace = Arc::new(Deliveries::read("3\n5\n10\n".as_bytes()).unwrap());
    let config = |phase| LinkConfig {
        changes: vec![Change {
            at: Time::from_nanos(100 * MS),
            capacity: Some(Capacity::Deliveries {
                trace: Arc::clone(&trace),
                phase: Dur::from_millis(phase),
            }),
            ..Change::default()
        }],
        ..LinkConfig::default()
    };
    let departures = |phase| {
        let mut link = Link::new(&config(phase), 1, "cell");
        for id in 0..4 {
            link.push(Time::from_nanos(100 * MS + 1), packet(1500, id));
        }
        out(&mut link)
            .into_iter()
            .map(|x| x.0 / MS)
            .collect::<Vec<_>>()
    };
    assert_eq!(departures(0), [103, 105, 110, 113]);
    assert_eq!(departures(4), [101, 106, 109, 111]);
    assert_eq!(departures(24), [101, 106, 109, 111]);
    let (from, to) = (Time::from_nanos(101 * MS), Time::from_nanos(1_101 * MS));
    assert_eq!(mean_offered(&config(0), from, to), trace.rate());
}
