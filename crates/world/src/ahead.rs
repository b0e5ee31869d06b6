//! Progress of prefetching: see `world/look.rs`.

use swell_base::End;

/// Number of events between two steps of the same event: long enough for a memory access to complete.
pub(crate) const APART: usize = 2;
/// Number of steps for a packet that arrives directly from a shared link.
pub(crate) const ROW_STEPS: usize = 6;

/// Progress of the look-ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Number of pending events in the current bucket at the previous call.
    pub events: usize,
    /// One bit per event looked at, the latest in the lowest bit: set if the event has more than one step.
    pub long: u32,
    /// For each queue: number of packets looked at, and the flows that the latest of these packets reach.
    pub rows: Vec<(usize, [Next; ROOM])>,
}

/// Enough entries for the packets between their first and their last step.
pub(crate) const ROOM: usize = (ROW_STEPS * APART).next_power_of_two();

/// An upcoming event of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub flow: u32,
    pub end: End,
    /// The endpoint may send data; otherwise it receives and acknowledges.
    pub sends: bool,
}
