//! Counts of what was read from a file.

use std::collections::BTreeMap;
use std::fmt;

use swell_capture::flow::{FlowCounts, FlowSkip, Protocol};
use swell_capture::{Counts, Skip};

/// Counts of what was read from a file. `Display` gives a sentence.
#[derive(Clone, Debug)]
pub struct FileCounts {
    /// The path as given, or the address of a collector.
    pub file: String,
    /// The file's format.
    pub format: &'static str,
    /// What was in it.
    pub counts: Counted,
}

/// What was in a file.
#[derive(Clone, Debug)]
pub enum Counted {
    /// Packets.
    Packets(Counts),
    /// Flow records, possibly metered from packets.
    Flows(Box<FlowCounts>),
}

impl fmt::Display for FileCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.file, self.format)?;
        match &self.counts {
            Counted::Packets(c) => packets(f, c),
            Counted::Flows(c) => flows(f, c),
        }
    }
}

fn packets(f: &mut fmt::Formatter<'_>, c: &Counts) -> fmt::Result {
    write!(
        f,
        "{} records, {} packets ({} TCP, {} UDP, {} ICMP, {} other), {} on the wire",
        c.records,
        c.packets,
        c.tcp,
        c.udp,
        c.icmp,
        c.packets - (c.tcp + c.udp + c.icmp).min(c.packets),
        size(c.wire_bytes)
    )?;
    for skip in Skip::ALL {
        let n = c.skipped(skip);
        if n > 0 {
            write!(f, "; {n} skipped: {}", skip.text())?;
        }
    }
    Ok(())
}

/// Bytes in megabytes, or in kilobytes where these are few.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn flows(f: &mut fmt::Formatter<'_>, c: &FlowCounts) -> fmt::Result {
    write!(
        f,
        "{} flow records, {} packets, {:.1} MB",
        c.records,
        c.packets,
        c.bytes as f64 / 1e6
    )?;
    for protocol in Protocol::ALL {
        let n = c.messages(protocol);
        if n > 0 {
            write!(f, "; {n} messages of {}", protocol.name())?;
        }
    }
    for seen in c.samplings() {
        if seen.sampling.interval > 1.0 {
            write!(
                f,
                "; {} records of packets sampled 1 in {} ({})",
                seen.records,
                seen.sampling.interval,
                seen.sampling.source.text()
            )?;
        }
    }
    for skip in FlowSkip::ALL {
        let n = c.skipped(skip).times;
        if n > 0 {
            write!(f, "; {n} skipped: {}", skip.text())?;
        }
    }
    Ok(())
}

impl FileCounts {
    /// As `swell learn --json` prints it.
    pub fn to_json(&self) -> serde_json::Value {
        let FileCounts { file, format, .. } = self;
        match &self.counts {
            Counted::Packets(c) => {
                let skipped: BTreeMap<&str, u64> = Skip::ALL
                    .iter()
                    .map(|s| (s.text(), c.skipped(*s)))
                    .filter(|s| s.1 > 0)
                    .collect();
                serde_json::json!({
                    "file": file, "format": format, "records": c.records, "packets": c.packets,
                    "wire_bytes": c.wire_bytes, "captured_bytes": c.captured_bytes, "cut": c.cut,
                    "tcp": c.tcp, "udp": c.udp, "icmp": c.icmp, "fragments": c.fragments, "other": c.other,
                    "skipped": skipped,
                })
            }
            Counted::Flows(c) => {
                let skipped: BTreeMap<&str, u64> = FlowSkip::ALL
                    .iter()
                    .map(|s| (s.text(), c.skipped(*s).times))
                    .filter(|s| s.1 > 0)
                    .collect();
                let sampling = |s: &swell_capture::flow::SamplingSeen| {
                    serde_json::json!({
                        "interval": s.sampling.interval, "found": s.sampling.source.text(),
                        "records": s.records,
                    })
                };
                let samplings: Vec<_> = c.samplings().iter().map(sampling).collect();
                serde_json::json!({
                    "file": file, "format": format, "flow_records": c.records, "packets": c.packets,
                    "bytes": c.bytes, "messages": c.messages_total(), "samplings": samplings,
                    "templates": c.templates, "sets_late": c.sets_late, "sequence_gaps": c.gaps,
                    "missing": c.missing, "skipped": skipped,
                })
            }
        }
    }
}
