//! Prints a summary of traces: `cargo run --release -p swell-capture --example counts -- TRACE...`
#![expect(clippy::print_stdout, reason = "printing is all an example does")]

use swell_capture::Reader;

fn main() {
    for path in std::env::args().skip(1) {
        let mut reader = match Reader::open(&path) {
            Ok(reader) => reader,
            Err(e) => {
                println!("{e}");
                continue;
            }
        };
        loop {
            match reader.next_packet() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(e) => {
                    println!("{e}");
                    break;
                }
            }
        }
        println!(
            "{path}: {}, {}",
            reader.format().name(),
            reader.compression().name()
        );
        println!("{:#?}", reader.counts());
    }
}
