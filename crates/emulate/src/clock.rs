//! The wall clock, as a world sees it.

use swell_base::{Dur, Time};
use swell_host::clock::{epoch, monotonic};

/// No packet waits longer in the buffer of a socket.
const OLDEST: u64 = 1_000_000_000;

/// World time against `CLOCK_MONOTONIC`, which cannot be set. In *stretched* time a second of the
/// world takes longer than a second: rates are divided and delays multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds of the monotonic clock at which the world was at `start`.
    origin: u64,
    start: Time,
    stretch: f64,
}

impl Clock {
    /// The world is at `start` now; each of its seconds takes `stretch` seconds (at least one).
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

    /// The world's time when the wall's clock showed so many nanoseconds since the Unix epoch, a moment ago. The result is
    /// never far in the past, even if the clock was set in between.
    pub fn stamped(&self, epoch_nanos: u64) -> Time {
        let age = epoch().saturating_sub(epoch_nanos);
        let now = self.now();
        if age > OLDEST {
            return now;
        }
        let age = Dur::from_nanos(age).scale(1.0 / self.stretch);
        Time::ZERO + now.since(Time::ZERO).saturating_sub(age)
    }

    /// How much of the wall's time a span of the world's takes.
    pub fn outside(&self, span: Dur) -> Dur {
        if self.stretch > 1.0 {
            return span.scale(self.stretch);
        }
        span
    }
}
