//! What a direction of a connection is told about a segment beside its header.

/// The segment that carried an ACK.
pub(super) struct By {
    /// Whether it carried nothing else.
    pub(super) pure: bool,
    /// Payload of a full segment of the acknowledged direction.
    pub(super) full: u32,
    /// Smallest payload of the acknowledged direction whose spacing indicates a capacity.
    pub(super) least: u32,
    /// Its timestamp.
    pub(super) stamp: Option<u32>,
    /// What it acknowledges selectively: sequence numbers.
    pub(super) sack: [Option<(u32, u32)>; 4],
    /// RTT between the tap and its sender, nanoseconds.
    pub(super) round_trip: u64,
    /// Shortest spacing that the capture's clock can resolve, nanoseconds.
    pub(super) least_gap: u64,
}

/// State of the connection and the capture around a segment.
pub(super) struct Around {
    /// End-to-end RTT, nanoseconds.
    pub(super) round_trip: u64,
    /// RTT between the tap and its sender, nanoseconds; 0 if the handshake did not tell it.
    pub(super) back: u64,
    /// Whether the handshake told it, and what echoes tell otherwise.
    pub(super) timed: bool,
    pub(super) echo: Option<u64>,
    /// RTT between the tap and its receiver, nanoseconds.
    pub(super) forth: u64,
    /// Whether both ends permit selective ACKs.
    pub(super) sack: bool,
    /// MSS option of the other end.
    pub(super) allowed: Option<u16>,
    /// Shortest spacing that the capture's clock can resolve, nanoseconds.
    pub(super) least_gap: u64,
    /// Packets that have passed from its sender and to its receiver, of all connections.
    pub(super) passed: [u32; 2],
    /// The latest RTTs to its sender and to its receiver, nanoseconds.
    pub(super) waited: [Option<u64>; 2],
}
