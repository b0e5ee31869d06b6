//! What a running emulation answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use swell_emulate::Seen;

/// An answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The error, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the process.
    pub pid: u32,
    /// What it emulates.
    pub title: String,
    /// Seconds since the emulation began.
    pub at: f64,
    /// Bytes that have crossed the link, up and down: first those of programs, then those of the background.
    pub carried: [[u64; 2]; 2],
    /// Packets dropped at the link, up and down.
    pub dropped: [u64; 2],
    /// Open simulated connections.
    pub background_flows: usize,
    /// 99th percentile of lateness, microseconds.
    pub late_us: f64,
    /// Whether flows of programs are followed. Those that cross a bridge are not. Emulations of earlier versions, which
    /// do not say it, follow them.
    #[serde(default = "yes")]
    pub follows_flows: bool,
    /// Open flows of programs.
    pub flows: Vec<Flow>,
}

fn yes() -> bool {
    true
}

/// A flow of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// Protocol and both ends.
    pub name: String,
    /// Age in seconds.
    pub age: f64,
    /// Payload bytes that have arrived, up and down.
    pub bytes: [u64; 2],
    /// Retransmitted segments, up and down.
    pub retransmissions: [u32; 2],
}

impl Answer {
    /// The state that was seen.
    pub(super) fn of(seen: &Seen) -> Answer {
        let s = &seen.snapshot;
        let flows = seen.flows.iter().map(|f| Flow {
            // The port of an IPv6 address follows brackets.
            name: format!(
                "{} {} > {}",
                f.protocol,
                SocketAddr::from(f.client),
                SocketAddr::from(f.server)
            ),
            age: s.at.since(f.start).as_secs_f64(),
            bytes: f.bytes,
            retransmissions: f.retransmissions,
        });
        Answer {
            error: None,
            pid: std::process::id(),
            title: String::new(),
            at: s.at.as_secs_f64(),
            carried: s.carried,
            dropped: s.dropped,
            background_flows: s.flows,
            late_us: s.late.p99.as_secs_f64() * 1e6,
            follows_flows: true,
            flows: flows.collect(),
        }
    }
}

/// Payload bytes of each flow since the earlier answer, up and down. Flows are matched by name.
pub(crate) fn since(before: &Answer, now: &Answer) -> Vec<[u64; 2]> {
    let then: BTreeMap<&str, [u64; 2]> = (before.flows.iter())
        .map(|f| (f.name.as_str(), f.bytes))
        .collect();
    let new = |flow: &Flow| {
        let then = then.get(flow.name.as_str()).copied().unwrap_or_default();
        [0, 1].map(|way| flow.bytes[way].saturating_sub(then[way]))
    };
    now.flows.iter().map(new).collect()
}
