//! What workloads leave for the tables.

use swell_base::{Dur, Time};

/// A finished (or cut off) piece of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A request of a foreground.
    Request(RequestRecord),
    /// A connection or datagram flow of a background.
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
    /// Which client.
    pub client: u32,
    /// Which request of that client, from 0.
    pub index: u32,
    /// When the client wanted it.
    pub start: Time,
    /// Connection established (equal to `start` on a kept connection).
    pub connected: Option<Time>,
    /// First byte of the response.
    pub first_byte: Option<Time>,
    /// Last byte of the response.
    pub last_byte: Option<Time>,
    /// Response bytes received.
    pub bytes: u64,
    /// Segments that the server retransmitted meanwhile.
    pub retransmissions: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Until when it was watched, where that was over before the run was.
    pub watched_until: Option<Time>,
}

/// A connection or datagram flow of a background.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Index of its class in the model; 0 for a parametric background.
    pub class: u32,
    /// Opened.
    pub start: Time,
    /// Last byte of its last exchange; none if the run ended first.
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
    /// Of when it is.
    pub at: Time,
}
