//! Tables of traffic between real hosts: those of a simulation, with additional columns.

use std::path::Path;

use super::StoreError;
use super::rows::{column, rows};
use super::table::{self, Column, Columns, Kind, Row, Value};
use crate::observe::{Cell, Flow};

use Kind::{F64, OptionalF64, Text, U32, U64};

/// A transfer between two hosts, or a source of datagrams: a row of `flows`.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveFlow {
    /// The columns that a simulation has too. `retransmissions` and `rtt` are the client's.
    pub flow: Flow,
    /// Agent of the client.
    pub client: String,
    /// Address of the client; empty if its kernel chose it.
    pub source: String,
    /// Address of the server.
    pub destination: String,
    /// Number of its session.
    pub session: u32,
    /// When it was due, seconds since the start.
    pub due: f64,
    /// When the connection was established; NaN if it never was.
    pub connected: f64,
    /// When the first byte came back; NaN if none did.
    pub first_byte: f64,
    /// `done`, `unfinished` or `failed`.
    pub outcome: String,
}

/// The state of an agent at an instant: a row of `agents`.
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
    /// Transfers started, completed and failed so far.
    pub transfers: [u64; 3],
    /// Payload bytes sent and received so far, TCP and UDP.
    pub bytes: [u64; 2],
    /// Datagrams sent and received so far.
    pub datagrams: [u64; 2],
    /// Lateness of starts, 99th percentile so far, seconds.
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
        Row::put(&self.flow, values);
        self.client.put(values);
        self.source.put(values);
        self.destination.put(values);
        self.session.put(values);
        [self.due, self.connected, self.first_byte].put(values);
        self.outcome.put(values);
    }

    fn take(values: &mut Columns) -> Option<LiveFlow> {
        Some(LiveFlow {
            flow: Row::take(values)?,
            client: Value::take(values)?,
            source: Value::take(values)?,
            destination: Value::take(values)?,
            session: Value::take(values)?,
            due: Value::take(values)?,
            connected: Value::take(values)?,
            first_byte: Value::take(values)?,
            outcome: Value::take(values)?,
        })
    }
}

/// Concatenates two lists of columns, `N` in total.
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

rows! {
    AgentRow in "agents":
    time => column("time_s", F64, "s", "When it was asked, since the start.");
    agent => column("agent", Text, "", "The agent.");
    part => column("part", Text, "", "`client` or `server`.");
    sessions => column("sessions", U64, "", "Sessions active.");
    open => column("open", U64, "", "Connections open.");
    transfers =>
        column("begun", U64, "", "Transfers begun so far."),
        column("done", U64, "", "Transfers done so far."),
        column("failed", U64, "", "Transfers failed so far.");
    bytes =>
        column("sent_bytes", U64, "B", "Payload handed to the kernel so far, TCP and UDP."),
        column("received_bytes", U64, "B", "Payload that arrived so far, TCP and UDP.");
    datagrams =>
        column("datagrams_sent", U64, "", "Datagrams sent so far."),
        column("datagrams_received", U64, "", "Datagrams received so far.");
    late => column("late_p99_s", F64, "s", "By how much starts were later than due: 99th percentile so far.");
}

/// The run that rows belong to: `traffic` is the background, and there is no foreground.
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

/// Writes the states of agents to a file.
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
/// If the file is not such a table.
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
