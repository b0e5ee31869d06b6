//! The machine's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};
use swell_base::Dur;

/// Nanoseconds of `CLOCK_MONOTONIC`, which cannot be set.
pub fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds since the Unix epoch.
pub fn epoch() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

fn nanos(t: Timespec) -> u64 {
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// A duration as the kernel's `timespec`.
pub fn timespec(span: Dur) -> Timespec {
    let ns = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}
