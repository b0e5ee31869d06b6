//! Compares the file formats with `pcap-parser`, an independent reader: it must find the same records in the same
//! order, for every capture of the trace folder.

use crate::folder::{ARCHIVES, made, manifest, plain, traces, untar};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use swell_capture::{Format, Frame, Reader};

/// A record: time, length on the wire, and captured bytes; `None` if a reader does not report a value.
#[derive(Debug)]
struct Record {
    nanos: Option<i64>,
    wire_len: Option<u32>,
    captured: Option<u32>,
}

impl Record {
    /// Whether two readers agree in all values that the other one reports.
    fn agrees(&self, other: &Record) -> bool {
        (other.nanos.is_none() || self.nanos == other.nanos)
            && (other.wire_len.is_none() || self.wire_len == other.wire_len)
            && (other.captured.is_none() || self.captured == other.captured)
    }
}

/// Captures that the two readers treat differently, and why.
const OTHERWISE: [(&str, &str); 5] = [
    (
        "tcp-analysis/bad_ack_code.dmp.gz",
        "version 2.2: lengths swapped",
    ),
    (
        "tcp-analysis/pcap_v2.2.dmp.gz",
        "version 2.2: lengths swapped",
    ),
    (
        "malformed/ndpi-fuzz-2021-10-13.pcap",
        "version 2.0: lengths swapped",
    ),
    (
        "be/test901.pcapng",
        "section version 2.0, which pcap-parser does not look at",
    ),
    (
        "le/test901.pcapng",
        "section version 2.0, which pcap-parser does not look at",
    ),
];

/// Records according to `pcap-parser`, up to the end or its first error.
fn theirs(bytes: &[u8]) -> Option<Vec<Record>> {
    let mut reader = create_reader(1 << 20, bytes).ok()?;
    let mut records = Vec::new();
    let mut unit = 1000;
    // For each interface: nanoseconds per tick as a fraction, and the offset in seconds.
    let mut clocks: Vec<(u128, u128, i64)> = Vec::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(h) => {
                        unit = if h.is_nanosecond_precision() { 1 } else { 1000 };
                    }
                    PcapBlockOwned::Legacy(b) => records.push(Record {
                        nanos: Some(
                            i64::from(b.ts_sec) * 1_000_000_000 + i64::from(b.ts_usec) * unit,
                        ),
                        wire_len: Some(b.origlen),
                        captured: Some(b.caplen),
                    }),
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => clocks.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                        let exponent = u32::from(i.if_tsresol & 0x7f);
                        let base: u128 = if i.if_tsresol & 0x80 == 0 { 10 } else { 2 };
                        clocks.push((1_000_000_000, base.pow(exponent), i.if_tsoffset));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(p)) => {
                        let (num, den, offset) = clocks[p.if_id as usize];
                        let ticks = u128::from(p.ts_high) << 32 | u128::from(p.ts_low);
                        let nanos = i64::try_from(ticks * num / den).expect("the years 1970-2262");
                        records.push(Record {
                            nanos: Some(nanos + offset * 1_000_000_000),
                            wire_len: Some(p.origlen),
                            captured: Some(p.caplen),
                        });
                    }
                    // It has no time, and pcap-parser does not compute its captured length.
                    PcapBlockOwned::NG(Block::SimplePacket(p)) => records.push(Record {
                        nanos: None,
                        wire_len: Some(p.origlen),
                        captured: None,
                    }),
                    // pcap-parser delimits obsolete packet blocks but does not decode them.
                    PcapBlockOwned::NG(Block::Unknown(b)) if b.block_type == 2 => {
                        records.push(Record {
                            nanos: None,
                            wire_len: None,
                            captured: None,
                        });
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(used);
            }
            Err(PcapError::Incomplete(_)) => reader.refill().ok()?,
            Err(_) => return Some(records),
        }
    }
}

/// Records according to this crate, including those that are skipped.
fn ours(bytes: &[u8]) -> Option<Vec<Record>> {
    let mut reader = Reader::new(bytes).ok()?;
    if reader.format() == Format::Snoop {
        return None;
    }
    let mut records = Vec::new();
    let record = |frame: &Frame<'_>| Record {
        nanos: Some(frame.time),
        wire_len: Some(frame.wire_len),
        captured: Some(frame.data.len() as u32),
    };
    while let Ok(Some(next)) = reader.next_frame(record) {
        records.push(next);
    }
    Some(records)
}

#[test]
fn records_are_those_of_pcap_parser() {
    let Some(folder) = traces() else { return };
    let mut captures: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in manifest(&folder) {
        let bytes = plain(&folder.join(&entry.file));
        if ARCHIVES.iter().any(|(archive, _)| *archive == entry.file) {
            captures.extend(untar(&bytes));
        } else {
            captures.push((entry.file, bytes));
        }
    }
    let mut compared = 0;
    for (name, bytes) in &captures {
        let (Some(ours), Some(theirs)) = (ours(bytes), theirs(bytes)) else {
            continue;
        };
        let agree =
            ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| a.agrees(b));
        let expected = OTHERWISE.iter().all(|(other, _)| other != name);
        assert_eq!(
            agree,
            expected,
            "{name}: {} and {} records",
            ours.len(),
            theirs.len()
        );
        compared += 1;
    }
    let least = if made(&folder) { 6 } else { 1001 };
    assert!(compared >= least, "only {compared} captures compared");
}
