//! Tests of flow records: messages built byte by byte, every file of the trace folder, and comparisons with other
//! programs' results for the same files.

mod exporters;
mod files;
mod messages;
mod meter;
mod nfdump;
mod oracle;
pub mod seeds;
mod walk;

use swell_capture::flow::{FlowCounts, FlowError, FlowReader, FlowRecord, Reverse};

/// The result of reading a file: records, counts, and the error that ended it, if any.
struct Read {
    records: Vec<FlowRecord>,
    counts: FlowCounts,
    error: Option<FlowError>,
}

fn drain(mut reader: FlowReader<'_>) -> Read {
    let mut records = Vec::new();
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    let counts = reader.counts().clone();
    check(&records, &counts);
    Read {
        records,
        counts,
        error,
    }
}

/// Checks invariants of all records and counts.
fn check(records: &[FlowRecord], counts: &FlowCounts) {
    assert_eq!(counts.records, records.len() as u64);
    let sum = |own: fn(&FlowRecord) -> u64, back: fn(&Reverse) -> u64| {
        let all = records
            .iter()
            .flat_map(|r| [own(r), r.reverse.as_ref().map_or(0, back)]);
        all.fold(0, u64::saturating_add)
    };
    assert_eq!(counts.packets, sum(|r| r.packets, |r| r.packets));
    assert_eq!(counts.bytes, sum(|r| r.bytes, |r| r.bytes));
    let biflows = records.iter().filter(|r| r.reverse.is_some()).count();
    assert_eq!(counts.biflows, biflows as u64);
    let sampled: u64 = counts.samplings().iter().map(|s| s.records).sum();
    assert!(counts.records == sampled || counts.samplings().len() == 64);
    for r in records {
        assert!(r.first <= r.last, "{r:?}");
        assert!(r.reverse.is_none_or(|b| b.first <= b.last), "{r:?}");
        assert_eq!(r.src.is_ipv4(), r.dst.is_ipv4(), "{r:?}");
        assert!(r.sampling.interval >= 1.0 && r.sampling.interval.is_finite());
        assert!(r.tcp_flags.is_none_or(|f| f != 0 && r.protocol == 6));
    }
}
