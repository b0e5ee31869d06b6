//! Flow records per second of CPU time, from export messages to a model: `cargo bench -p swell-learn
//! --bench flows`. `scripts/bench-flows` also provides a file of nfdump's (`SWELL_NFCAPD`), and compares
//! with nfdump's own aggregation of it.
//!
//! Two sets of NetFlow v5 records in memory. The first is an hour of connections of two records each,
//! between hosts of varying popularity. The second has records without a common key, the worst case for
//! tables.
#![expect(clippy::print_stdout, reason = "printing is what a bench does")]
#![expect(
    clippy::disallowed_methods,
    reason = "a bench looks at its own times, and at another program"
)]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Duration;

use swell_base::Stream;
use swell_capture::flow::{FlowError, FlowReader};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{FlowModel, Options};

const RECORDS: usize = 1_200_000;
const ROUNDS: u32 = 7;

fn main() {
    for (what, records) in [("connections", connections()), ("strangers", strangers())] {
        let file = messages(&records);
        let mut times = Vec::new();
        let mut model = None;
        for _ in 0..ROUNDS {
            let begun = own();
            model = Some(learn(FlowReader::new(black_box(&file[..]))));
            times.push(own() - begun);
        }
        let model = model.expect("there are rounds");
        assert_eq!(model.totals.evicted, 0);
        print(
            &format!("NetFlow v5 to a model, {what}"),
            RECORDS,
            &mut times,
        );
        let files = model.tcp.down.count();
        println!("{:8.1} MB at most so far, {files} connections", peak());
    }
    let Ok(path) = std::env::var("SWELL_NFCAPD") else {
        println!("skipped: nfdump beside us (set SWELL_NFCAPD to a file of nfcapd's)");
        return;
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut records = 0;
    for _ in 0..ROUNDS {
        let begun = own();
        records = learn(FlowReader::open(&path)).totals.records as usize;
        ours.push(own() - begun);
        let before = children();
        // Aggregation by addresses, ports and protocol, both directions together: the closest to
        // connections.
        let status = Command::new("nfdump")
            .args(["-r", &path, "-q", "-b", "-o", "null"])
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|s| s.success()) {
            println!("skipped: nfdump cannot read {path}");
            return;
        }
        theirs.push(children() - before);
    }
    let own_rate = print("nfdump's file to a model", records, &mut ours);
    let rate = print("nfdump -b, aggregation alone", records, &mut theirs);
    println!("{:8.2} times nfdump", own_rate / rate);
}

fn learn(opened: Result<FlowReader<'_>, FlowError>) -> FlowModel {
    let mut reader = opened.unwrap_or_else(|e| panic!("{e}"));
    let mut learner = FlowLearner::new(Options::default());
    loop {
        let some = reader.next_records().unwrap_or_else(|e| panic!("{e}"));
        if some.is_empty() {
            break;
        }
        some.iter().for_each(|r| learner.push(r));
    }
    let model = learner.finish("bench", Provenance::default());
    black_box(model.unwrap_or_else(|e| panic!("{e}")))
}

/// Contents of a NetFlow v5 record: addresses, ports, packets, bytes, first and last uptime.
struct V5 {
    ends: [(u32, u16); 2],
    packets: u32,
    bytes: u32,
    times: [u32; 2],
}

/// An hour of 600,000 connections, exported when they end.
fn connections() -> Vec<V5> {
    let mut rng = Stream::new(1, "connections");
    let mut records = Vec::with_capacity(RECORDS);
    for i in 0..RECORDS / 2 {
        let begin = (3_600_000.0 * rng.uniform()) as u32;
        let last = begin + rng.exponential(4_000.0).min(60_000.0) as u32;
        let popular = |n: f64, u: f64| n.powf(u) as u32;
        let client = (
            10 << 24 | popular(60_000.0, rng.uniform()),
            1_024 + (i % 60_000) as u16,
        );
        let server = (11 << 24 | popular(5_000.0, rng.uniform()), 443);
        let segments = (1.0 - rng.uniform()).powf(-1.0 / 1.2).min(1e4) as u32;
        let record = |ends, packets, payload| V5 {
            ends,
            packets,
            bytes: 40 * packets + payload,
            times: [begin, last],
        };
        records.push(record([client, server], 4 + segments / 2, 500));
        records.push(record([server, client], 2 + segments, 1_460 * segments));
    }
    records.sort_by_key(|r| r.times[1]);
    records
}

/// Each record has its own pair of hosts.
fn strangers() -> Vec<V5> {
    let mut rng = Stream::new(2, "strangers");
    let one = |i: usize| {
        let packets = rng.below(100) as u32 + 1;
        let first = (i / 30) as u32 + rng.below(50_000) as u32;
        let port = |n: u64| (n >> 48) as u16;
        let (a, b) = (rng.bits(), rng.bits());
        V5 {
            ends: [(a as u32, port(a)), (b as u32, port(b))],
            packets,
            bytes: 700 * packets,
            times: [first, first + rng.below(9_000) as u32],
        }
    };
    (0..RECORDS).map(one).collect()
}

/// Messages of 30 records without gaps.
fn messages(records: &[V5]) -> Vec<u8> {
    let mut file = Vec::new();
    for (i, some) in records.chunks(30).enumerate() {
        file.extend([0, 5, 0, some.len() as u8]);
        let uptime = some.iter().map(|r| r.times[1]).max().unwrap_or(0);
        let seconds = 1_700_000_000 + uptime / 1_000;
        let rest = uptime % 1_000 * 1_000_000;
        for word in [uptime, seconds, rest, 30 * i as u32, 0] {
            file.extend(word.to_be_bytes());
        }
        for r in some {
            r.ends.iter().for_each(|e| file.extend(e.0.to_be_bytes()));
            file.extend([0; 8]);
            for word in [r.packets, r.bytes, r.times[0], r.times[1]] {
                file.extend(word.to_be_bytes());
            }
            r.ends.iter().for_each(|e| file.extend(e.1.to_be_bytes()));
            file.extend([0, 0x1b, 6, 0]);
            file.extend([0; 8]);
        }
    }
    file
}

/// Prints and returns the median rate of the rounds, in millions of records per second of CPU time.
fn print(what: &str, records: usize, times: &mut [Duration]) -> f64 {
    times.sort();
    let rate = |time: Duration| records as f64 / time.as_secs_f64() / 1e6;
    let median = rate(times[times.len() / 2]);
    let [worst, best] = [times[times.len() - 1], times[0]].map(rate);
    println!("{median:8.2} M records/s  {what} ({records} records; {worst:.2} to {best:.2})");
    median
}

/// CPU time of this thread, the only one: the first number of `/proc/self/schedstat`, nanoseconds.
fn own() -> Duration {
    Duration::from_nanos(field("/proc/self/schedstat", 0))
}

/// CPU time of terminated children: fields 16 and 17 of `/proc/self/stat` (proc(5)), in hundredths of a
/// second on every Linux.
fn children() -> Duration {
    let [user, system] = [13, 14].map(|i| field("/proc/self/stat", i));
    Duration::from_millis(10 * (user + system))
}

/// Peak memory of this process, megabytes (`VmHWM`, proc(5)).
fn peak() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1e3
}

fn field(path: &str, index: usize) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let fields = text.rsplit(')').next().unwrap_or(&text);
    let field = fields.split_whitespace().nth(index);
    field
        .and_then(|f| f.parse().ok())
        .unwrap_or_else(|| panic!("{path} has no number {index}"))
}
