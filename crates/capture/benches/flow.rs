//! Flow records per second of processor time: `cargo bench -p swell-capture --bench flow`, or `scripts/bench-flows`.
//!
//! NetFlow v5 messages of 30 records are read from memory through the whole reader. If `nfdump` is installed and
//! `SWELL_NFCAPD` names an nfdump file, both programs also read that file in the same run. nfdump then uses its null
//! output, its fastest, so that neither program writes text. Times are user plus system time, averaged over
//! interleaved rounds.
#![expect(clippy::print_stdout, reason = "printing is what a bench does")]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Duration;

use swell_base::Stream;
use swell_capture::flow::FlowReader;

const MESSAGES: u32 = 40_000;
const RECORDS: u32 = 30;
const ROUNDS: u32 = 20;

fn main() {
    let file = messages();
    let records = u64::from(MESSAGES * RECORDS);
    let mut memory = Duration::ZERO;
    for _ in 0..ROUNDS {
        let begun = own();
        assert_eq!(
            black_box(read(FlowReader::new(black_box(&file[..])))),
            records
        );
        memory += own() - begun;
    }
    memory /= ROUNDS;
    print("NetFlow v5 from memory, swell", records, memory);
    let Ok(path) = std::env::var("SWELL_NFCAPD") else {
        println!("skipped: nfdump beside us (set SWELL_NFCAPD to a file of nfcapd's)");
        return;
    };
    let (mut ours, before) = (Duration::ZERO, children());
    let mut count = 0;
    for _ in 0..ROUNDS {
        let begun = own();
        count = read(FlowReader::open(&path));
        ours += own() - begun;
        let status = Command::new("nfdump")
            .args(["-r", &path, "-q", "-o", "null"])
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|s| s.success()) {
            println!("skipped: nfdump cannot read {path}");
            return;
        }
    }
    let [ours, theirs] = [ours, children() - before].map(|time| time / ROUNDS);
    print("the nfdump file, swell", count, ours);
    print("the nfdump file, nfdump", count, theirs);
    let ratio = |time: Duration| theirs.as_secs_f64() / time.as_secs_f64();
    println!("{:8.2} times nfdump: the same file", ratio(ours));
    if count == records {
        println!(
            "{:8.2} times nfdump: the same records as NetFlow v5",
            ratio(memory)
        );
    }
}

/// Processor time of this thread, the only one: the first number of `/proc/self/schedstat`, in nanoseconds.
fn own() -> Duration {
    Duration::from_nanos(field("/proc/self/schedstat", 0))
}

/// Processor time of terminated children: fields 16 and 17 of `/proc/self/stat` (proc(5)), in hundredths of a second
/// on Linux. Fields are counted from the end of the program's name, which may contain spaces.
fn children() -> Duration {
    let [user, system] = [13, 14].map(|i| field("/proc/self/stat", i));
    Duration::from_millis(10 * (user + system))
}

fn field(path: &str, index: usize) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let fields = text.rsplit(')').next().unwrap_or(&text);
    let field = fields.split_whitespace().nth(index);
    field
        .and_then(|f| f.parse().ok())
        .unwrap_or_else(|| panic!("{path} has no number {index}"))
}

fn print(what: &str, records: u64, time: Duration) {
    let rate = records as f64 / time.as_secs_f64() / 1e6;
    println!("{rate:8.2} M records/s  {what} ({records} records)");
}

/// Reads all records and uses them, so that nothing is optimised away.
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

/// A file of NetFlow v5 messages without sequence gaps.
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
