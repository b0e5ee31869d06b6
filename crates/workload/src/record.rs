//! Records of workloads for the result tables.

use swell_base::{Dur, Time};

/// A finished or interrupted unit of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A request of a foreground workload.
    Request(RequestRecord),
    /// A connection or datagram flow.
    Flow(FlowRecord),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every byte arrived.
    Done,
    /// The run ended first.
    Unfinished,
    /// The connection was reset or gave up.
    Failed,
}

/// A request of a foreground.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRecord {
    /// Number of the client.
    pub client: u32,
    /// Number of the request at that client, from 0.
    pub index: u32,
    /// When the client issued the request.
    pub start: Time,
    /// When the connection was established; equal to `start` on a reused connection.
    pub connected: Option<Time>,
    /// When the first byte of the response arrived.
    pub first_byte: Option<Time>,
    /// When the last byte of the response arrived.
    pub last_byte: Option<Time>,
    /// Response bytes received.
    pub bytes: u64,
    /// Segments that the server retransmitted during the request.
    pub retransmissions: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When observation of the request ended, if that was before the end of the run.
    pub watched_until: Option<Time>,
}

/// A connection or datagram flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Index of its class in the model; 0 for a parametric background.
    pub class: u32,
    /// When it was opened.
    pub start: Time,
    /// Last byte of its last exchange, or when it was reset before that; `None` if the run ended first.
    pub end: Option<Time>,
    /// Application bytes received by the server.
    pub up: u64,
    /// Application bytes received by the client.
    pub down: u64,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Dur>,
    /// Segments retransmitted by both ends.
    pub retransmissions: u32,
}

/// A value of a measure that a workload took itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name of the measure.
    pub measure: &'static str,
    /// The value, in the unit of the measure.
    pub value: f64,
    /// The instant to which the value belongs.
    pub at: Time,
}
