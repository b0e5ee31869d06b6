//! Names of the measures of a probe, and what its tool estimates.

pub(super) const ESTIMATE: &str = "estimate";
pub(super) const ERROR: &str = "error";
pub(super) const LOW: &str = "low";
pub(super) const HIGH: &str = "high";
pub(super) const BYTES: &str = "probe bytes";
pub(super) const PACKETS: &str = "probe packets";
pub(super) const DURATION: &str = "probe duration";
pub(super) const AVAILABLE: &str = "available";

/// What a tool estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// What other traffic leaves free.
    Available,
    /// What the narrowest link can carry, whatever the other traffic.
    Capacity,
}
