//! What a packet tells beyond the state of its own connection.

/// Information from a packet beyond the connection's own state.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Observed {
    /// RTT sample between the tap and the host at end 0 (client) or 1 (server): (end, whether from the
    /// handshake, nanoseconds).
    pub(crate) rtt: Option<(usize, bool, u64)>,
    /// Capacity from the sender of this packet, kbit/s.
    pub(crate) up: Option<u64>,
    /// Capacity to the sender of this packet, kbit/s.
    pub(crate) down: Option<u64>,
    /// Whether it moved data that the tap had not seen and that the user's next group may have waited for, or was
    /// another SYN of an attempt, or the SYN/ACK.
    pub(crate) active: bool,
    /// Number of data packets (0 or 1), and number of losses that it revealed: of its sender before the
    /// tap, and of the other end beyond the tap.
    pub(crate) sent: u64,
    pub(crate) lost: [u64; 2],
    /// RTTs between the tap and the end on whose side packets were lost, when they were, nanoseconds; and when that was.
    pub(crate) waited: [Option<(u64, u64)>; 2],
    /// Bytes that this packet newly acknowledged, selectively or not. Those that arrived at an unknown time do not count.
    pub(crate) delivered: u64,
    /// RTT between the tap and the sender of this ACK in the midst of a transfer, nanoseconds, and for how many samples it
    /// counts.
    pub(crate) bulk: Option<(u64, u64)>,
    /// RTT between the tap and the sender of this data packet, nanoseconds, once it has lost data.
    pub(crate) sending: Option<u64>,
}

impl Observed {
    /// How long an answer of the client has taken that this packet is, nanoseconds. `from`: its sender.
    pub(crate) fn answered(&self, from: usize) -> Option<u64> {
        let rtt = self.rtt.map(|rtt| rtt.2);
        rtt.or(self.bulk.map(|bulk| bulk.0)).filter(|_| from == 0)
    }
}

/// A copy of the previous segment within this time is an artefact of the capture (both ports of a mirror).
pub(crate) const DUPLICATE: u64 = 500_000;
