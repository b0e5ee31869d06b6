//! The interface of everything that packets pass through.

use swell_base::{Packet, Time};

use crate::Ledger;

/// A stage of a path. The crate's front page lists its guarantees.
pub trait Element {
    /// A packet arrives; `at` never decreases from call to call.
    fn push(&mut self, at: Time, packet: Packet);

    /// When `pop` may next return a packet: never later than the next departure.
    fn poll_at(&self) -> Option<Time>;

    /// The next departure and its instant, if that is not later than `now`.
    fn pop(&mut self, now: Time) -> Option<(Time, Packet)>;

    /// Counts of packets that arrived, departed and were dropped.
    fn ledger(&self) -> Ledger;
}
