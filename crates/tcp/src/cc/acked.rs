//! What congestion controls are told of an acknowledgement.

use swell_base::{Dur, Time};

/// The inputs that an acknowledgement gives to a congestion control.
pub(crate) struct Acked {
    pub(crate) now: Time,
    /// Bytes newly delivered, and bytes newly considered lost.
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Smoothed RTT; zero before the first sample.
    pub(crate) srtt: Dur,
    /// The remaining fields are for algorithms that use more than losses. RTT of the segment sent last among those
    /// acknowledged, if it was sent once, and the smallest RTT so far.
    pub(crate) rtt: Option<Dur>,
    pub(crate) min_rtt: Dur,
    /// The peer may have delayed the acknowledgement: it is for a lone segment that is not full (Linux
    /// `FLAG_ACK_MAYBE_DELAYED`).
    pub(crate) delayed: bool,
    /// One-way delay of the acknowledged segment.
    pub(crate) one_way: Option<Dur>,
    /// The window was fully used, so it may grow (RFC 7661).
    pub(crate) limited: bool,
    /// Bytes in flight now, and SND.UNA and SND.NXT.
    pub(crate) flight: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
}
