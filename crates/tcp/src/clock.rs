//! The clocks of an endpoint: times in 32 bits that wrap.

use swell_base::Time;

/// Clock for receive-buffer tuning.
pub(crate) fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32 // wraps, as the stamps do
}

/// Clock for timestamps (Linux `tcp_time_stamp_ms`).
pub(crate) fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32 // wraps
}
