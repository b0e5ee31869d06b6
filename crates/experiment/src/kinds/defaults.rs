//! Defaults of keys that several kinds have.

/// Of a number of clients, sources or connections.
pub(super) fn one() -> u32 {
    1
}

/// Of a factor.
pub(super) fn unscaled() -> f64 {
    1.0
}

/// Of a switch that is on.
pub(super) fn yes() -> bool {
    true
}
