//! Flow records per second: `cargo bench -p swell-capture --bench flow`.
//!
//! NetFlow v5 messages of 30 records, in memory, through the whole reader. Where `nfdump` is
//! installed and `SWELL_NFCAPD` names a file of nfdump's, both read that file in the same run:
//! nfdump with `-I`-like work only (`-s proto`, one aggregate), so that neither writes text.
//! Times are the least of nine interleaved rounds: noise only ever adds.
#![expect(clippy::print_stdout, reason = "printing is what a bench does")]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use swell_base::Stream;
use swell_capture::flow::FlowReader;

const MESSAGES: u32 = 40_000;
const RECORDS: u32 = 30;
const ROUNDS: usize = 9;

fn main() {
    let file = messages();
    let records = u64::from(MESSAGES * RECORDS);
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        assert_eq!(
            black_box(read(FlowReader::new(black_box(&file[..])))),
            records
        );
        least = least.min(begun.elapsed());
    }
    print("NetFlow v5 from memory, swell", records, least);
    let Ok(path) = std::env::var("SWELL_NFCAPD") else {
        println!("skipped: nfdump beside us (set SWELL_NFCAPD to a file of nfcapd's)");
        return;
    };
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    let mut count = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        count = read(FlowReader::open(&path));
        ours = ours.min(begun.elapsed());
        let started = Instant::now();
        let status = Command::new("nfdump")
            .args(["-r", &path, "-q", "-s", "proto"])
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|s| s.success()) {
            println!("skipped: nfdump cannot read {path}");
            return;
        }
        theirs = theirs.min(started.elapsed());
    }
    print("the nfdump file, swell", count, ours);
    print("the nfdump file, nfdump", count, theirs);
}

fn print(what: &str, records: u64, time: Duration) {
    let rate = records as f64 / time.as_secs_f64() / 1e6;
    println!("{rate:8.2} M records/s  {what} ({records} records)");
}

/// Reads everything, and looks at it, so that nothing is optimised away.
fn read(opened: Result<FlowReader<'_>, swell_capture::flow::FlowError>) -> u64 {
    let mut reader = opened.unwrap_or_else(|e| panic!("{e}"));
    let (mut records, mut sum) = (0, 0u64);
    loop {
        let some = reader.next_records().unwrap_or_else(|e| panic!("{e}"));
        if some.is_empty() {
            break;
        }
        records += some.len() as u64;
        for r in some {
            sum = sum.wrapping_add(r.bytes ^ r.first as u64);
        }
    }
    black_box(sum);
    records
}

/// A file of NetFlow v5 messages without gaps.
fn messages() -> Vec<u8> {
    let mut rng = Stream::new(1, "flow bench");
    let mut file = Vec::new();
    for message in 0..MESSAGES {
        file.extend([0, 5, 0, RECORDS as u8]);
        for word in [
            message + 60_000,
            1_700_000_000 + message / 1000,
            0,
            message * RECORDS,
            0,
        ] {
            file.extend(word.to_be_bytes());
        }
        for _ in 0..RECORDS {
            file.extend(rng.bits().to_be_bytes());
            file.extend([0; 8]);
            let packets = rng.below(100) as u32 + 1;
            let first = message + rng.below(50_000) as u32;
            for word in [
                packets,
                packets * 700,
                first,
                first + rng.below(9000) as u32,
            ] {
                file.extend(word.to_be_bytes());
            }
            file.extend((rng.bits() as u32).to_be_bytes());
            file.extend([0, 0x1b, 6, 0]);
            file.extend([0; 8]);
        }
    }
    file
}
