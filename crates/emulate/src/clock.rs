//! The wall clock in terms of world time.

use swell_base::{Dur, Time};
use swell_host::clock::{epoch, monotonic};

/// Time stamps older than this are taken for the result of a clock change: no packet waits this long in a socket
/// buffer.
const OLDEST: u64 = 1_000_000_000;

/// Maps `CLOCK_MONOTONIC`, which cannot be set, to world time. In *stretched* time a second of the world takes longer
/// than a wall-clock second: rates are divided and delays multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds of the monotonic clock when the world's time was `start`.
    origin: u64,
    start: Time,
    stretch: f64,
}

impl Clock {
    /// Starts a clock at world time `start`. Each second of the world takes `stretch` wall-clock seconds (at least
    /// one).
    pub fn starting_at(start: Time, stretch: f64) -> Clock {
        Clock {
            origin: monotonic(),
            start,
            stretch: stretch.max(1.0),
        }
    }

    /// The world's time.
    pub fn now(&self) -> Time {
        let gone = Dur::from_nanos(monotonic().saturating_sub(self.origin));
        if self.stretch > 1.0 {
            return self.start + gone.scale(1.0 / self.stretch);
        }
        self.start + gone
    }

    /// Converts a recent real-time stamp, in nanoseconds since the Unix epoch, to world time. A stamp older than a
    /// second gives the present, because the real-time clock was probably set in between.
    pub fn stamped(&self, epoch_nanos: u64) -> Time {
        let age = epoch().saturating_sub(epoch_nanos);
        let now = self.now();
        if age > OLDEST {
            return now;
        }
        let age = Dur::from_nanos(age).scale(1.0 / self.stretch);
        Time::ZERO + now.since(Time::ZERO).saturating_sub(age)
    }

    /// The wall-clock time that a span of world time takes.
    pub fn outside(&self, span: Dur) -> Dur {
        if self.stretch > 1.0 {
            return span.scale(self.stretch);
        }
        span
    }
}
