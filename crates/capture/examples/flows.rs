//! Prints the contents of files with flow records:
//! `cargo run --release -p swell-capture --example flows -- FILE...`
#![expect(clippy::print_stdout, reason = "printing is all an example does")]

use swell_capture::flow::{FlowReader, FlowSkip};

fn main() {
    for path in std::env::args().skip(1) {
        let mut reader = match FlowReader::open(&path) {
            Ok(reader) => reader,
            Err(e) => {
                println!("{e}");
                continue;
            }
        };
        loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(e) => {
                    println!("{e}");
                    break;
                }
            }
        }
        let c = reader.counts();
        println!(
            "{path}: {}: {} records, {} packets, {} bytes",
            reader.format().name(),
            c.records,
            c.packets,
            c.bytes
        );
        for seen in c.samplings() {
            let s = seen.sampling;
            let said = s.source.text();
            println!("  sampling 1 in {} ({said}): {}", s.interval, seen.records);
        }
        for reason in FlowSkip::ALL {
            let skipped = c.skipped(reason);
            if skipped.times > 0 {
                let (times, at) = (skipped.times, skipped.first_at);
                println!("  {times} {}, first at byte {at}", reason.text());
            }
        }
        for exporter in reader.exporters() {
            println!("  {exporter:?}");
        }
    }
}
