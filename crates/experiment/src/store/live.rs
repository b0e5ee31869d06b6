//! The tables of traffic between real hosts: the same as a simulation's, with what only hosts have.

use std::path::Path;

use super::StoreError;
use super::rows::column;
use super::table::{self, Column, Columns, Kind, Row};
use crate::observe::{Cell, Flow};

use Kind::{F64, OptionalF64, Text, U32, U64};

/// A transfer between two hosts, or a source of datagrams: a row of `flows`.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveFlow {
    /// What a simulation has of it too. `retransmissions` and `rtt` are the client's.
    pub flow: Flow,
    /// Agent of the client.
    pub client: String,
    /// Address of the client; empty where its kernel chose.
    pub source: String,
    /// Address of the server.
    pub destination: String,
    /// Number of its session.
    pub session: u32,
    /// When it was due, seconds since the start.
    pub due: f64,
    /// When the connection was there; NaN: never.
    pub connected: f64,
    /// When the first byte came back; NaN: never.
    pub first_byte: f64,
    /// `done`, `unfinished` or `failed`.
    pub outcome: String,
}

/// How an agent stood at an instant: a row of `agents`.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// Seconds since the start.
    pub time: f64,
    /// The agent.
    pub agent: String,
    /// `client` or `server`.
    pub part: String,
    /// Sessions active.
    pub sessions: u64,
    /// Connections open.
    pub open: u64,
    /// Transfers begun, done and failed so far.
    pub transfers: [u64; 3],
    /// Payload bytes sent and received so far, TCP and UDP.
    pub bytes: [u64; 2],
    /// Datagrams sent and received so far.
    pub datagrams: [u64; 2],
    /// Starts were so late, 99th percentile so far, seconds.
    pub late: f64,
}

impl Row for LiveFlow {
    const TABLE: &'static str = "flows";
    const COLUMNS: &'static [Column] = &concat_columns::<15>(
        Flow::COLUMNS,
        &[
            column("client", Text, "", "Agent of the client."),
            column(
                "source",
                Text,
                "",
                "Address of the client; empty where its kernel chose.",
            ),
            column("destination", Text, "", "Address of the server."),
            column("session", U32, "", "Number of its session."),
            column(
                "due_s",
                F64,
                "s",
                "When it was due; `start_s` is when it was begun.",
            ),
            column(
                "connected_s",
                OptionalF64,
                "s",
                "Connection established; null if it never was, and of datagrams.",
            ),
            column(
                "first_byte_s",
                OptionalF64,
                "s",
                "First byte that came back.",
            ),
            column("outcome", Text, "", "`done`, `unfinished` or `failed`."),
        ],
    );

    fn put(&self, values: &mut Columns) {
        self.flow.put(values);
        values.text(&self.client);
        values.text(&self.source);
        values.text(&self.destination);
        values.u32(self.session);
        values.f64(self.due);
        values.f64(self.connected);
        values.f64(self.first_byte);
        values.text(&self.outcome);
    }

    fn take(values: &mut Columns) -> Option<LiveFlow> {
        Some(LiveFlow {
            flow: Flow::take(values)?,
            client: values.take_text(),
            source: values.take_text(),
            destination: values.take_text(),
            session: values.take_u32(),
            due: values.take_f64(),
            connected: values.take_f64(),
            first_byte: values.take_f64(),
            outcome: values.take_text(),
        })
    }
}

/// Two lists of columns, one behind the other; together `N`.
const fn concat_columns<const N: usize>(front: &[Column], back: &[Column]) -> [Column; N] {
    assert!(front.len() + back.len() == N, "the number of columns");
    let mut all = [front[0]; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < front.len() {
            front[i]
        } else {
            back[i - front.len()]
        };
        i += 1;
    }
    all
}

impl Row for AgentRow {
    const TABLE: &'static str = "agents";
    const COLUMNS: &'static [Column] = &[
        column("time_s", F64, "s", "When it was asked, since the start."),
        column("agent", Text, "", "The agent."),
        column("part", Text, "", "`client` or `server`."),
        column("sessions", U64, "", "Sessions active."),
        column("open", U64, "", "Connections open."),
        column("begun", U64, "", "Transfers begun so far."),
        column("done", U64, "", "Transfers done so far."),
        column("failed", U64, "", "Transfers failed so far."),
        column(
            "sent_bytes",
            U64,
            "B",
            "Payload handed to the kernel so far, TCP and UDP.",
        ),
        column(
            "received_bytes",
            U64,
            "B",
            "Payload that arrived so far, TCP and UDP.",
        ),
        column("datagrams_sent", U64, "", "Datagrams sent so far."),
        column("datagrams_received", U64, "", "Datagrams received so far."),
        column(
            "late_p99_s",
            F64,
            "s",
            "By how much starts were later than due: 99th percentile so far.",
        ),
    ];

    fn put(&self, values: &mut Columns) {
        values.f64(self.time);
        values.text(&self.agent);
        values.text(&self.part);
        values.u64(self.sessions);
        values.u64(self.open);
        self.transfers.iter().for_each(|&n| values.u64(n));
        self.bytes.iter().for_each(|&n| values.u64(n));
        self.datagrams.iter().for_each(|&n| values.u64(n));
        values.f64(self.late);
    }

    fn take(values: &mut Columns) -> Option<AgentRow> {
        Some(AgentRow {
            time: values.take_f64(),
            agent: values.take_text(),
            part: values.take_text(),
            sessions: values.take_u64(),
            open: values.take_u64(),
            transfers: [values.take_u64(), values.take_u64(), values.take_u64()],
            bytes: [values.take_u64(), values.take_u64()],
            datagrams: [values.take_u64(), values.take_u64()],
            late: values.take_f64(),
        })
    }
}

/// Which run rows belong to: `traffic` is the background, in front of which there was nothing.
fn cell(traffic: &str) -> Cell {
    Cell {
        foreground: String::new(),
        background: traffic.into(),
        replication: 0,
        seed: 0,
    }
}

/// Writes flows of `traffic` to a file.
///
/// # Errors
/// Those of the file system.
pub fn write_live_flows(path: &Path, traffic: &str, rows: &[LiveFlow]) -> Result<(), StoreError> {
    let cell = cell(traffic);
    table::write(path, rows.iter().map(|row| (&cell, row)))
}

/// Writes how agents stood to a file.
///
/// # Errors
/// Those of the file system.
pub fn write_agents(path: &Path, traffic: &str, rows: &[AgentRow]) -> Result<(), StoreError> {
    let cell = cell(traffic);
    table::write(path, rows.iter().map(|row| (&cell, row)))
}

/// Reads flows back.
///
/// # Errors
/// Where a file is no such table.
pub fn read_live_flows(path: &Path) -> Result<Vec<LiveFlow>, StoreError> {
    let mut rows = Vec::new();
    table::read(path, |_, row| rows.push(row))?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u32) -> LiveFlow {
        LiveFlow {
            flow: Flow {
                class: "tcp".into(),
                start: f64::from(n),
                end: f64::from(n) + 1.0,
                up: 1 << 40,
                down: 7,
                rtt: 0.01,
                retransmissions: n,
            },
            client: "a:1".into(),
            source: String::new(),
            destination: "fd01::1".into(),
            session: n,
            due: 0.5,
            connected: 1.25,
            first_byte: 1.5,
            outcome: "done".into(),
        }
    }

    #[test]
    fn live_flows_read_back_also_as_a_simulations() {
        let dir = std::env::temp_dir().join(format!("swell-live-flows-{}", std::process::id()));
        let rows: Vec<LiveFlow> = (0..5).map(row).collect();
        write_live_flows(&dir, "web", &rows).unwrap();
        assert_eq!(read_live_flows(&dir).unwrap(), rows);
        let mut simulated = Vec::new();
        table::read(&dir, |key, flow: Flow| simulated.push((key, flow))).unwrap();
        assert_eq!(simulated.len(), 5);
        assert_eq!(simulated[3].0.background, "web");
        assert_eq!(simulated[3].1, rows[3].flow);
        std::fs::remove_file(&dir).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let failed = write_live_flows(full, "web", &[row(1)]);
        assert!(failed.is_err());
    }
}
