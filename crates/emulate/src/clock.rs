//! The wall clock in terms of world time.

use swell_base::{Dur, Time};
use swell_host::clock::{epoch, monotonic};

/// Time stamps older than this are taken for the result of a clock change: no packet waits this long in a socket
/// buffer.
const OLDEST: u64 = 1_000_000_000;

/// How close together both clocks must be read. If the thread lost its processor in between, the stamp would seem
/// later or earlier by as long.
const TOGETHER: u64 = 2_000;
/// Attempts to read them that close together.
const ATTEMPTS: u32 = 4;

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
        self.at(monotonic())
    }

    /// The world's time when the monotonic clock shows `nanos`.
    fn at(&self, nanos: u64) -> Time {
        let gone = Dur::from_nanos(nanos.saturating_sub(self.origin));
        if self.stretch > 1.0 {
            return self.start + gone.scale(1.0 / self.stretch);
        }
        self.start + gone
    }

    /// Converts a recent real-time stamp, in nanoseconds since the Unix epoch, to world time, not before the start of
    /// this clock. `None` for a stamp of the future or older than a second, because the real-time clock was probably
    /// set in between.
    pub fn stamped(&self, epoch_nanos: u64) -> Option<Time> {
        let (now, present) = together();
        let age = present.checked_sub(epoch_nanos)?;
        if age > OLDEST {
            return None;
        }
        let then = now.saturating_sub(age).max(self.origin);
        Some(self.at(then))
    }

    /// The wall-clock time that a span of world time takes.
    pub fn outside(&self, span: Dur) -> Dur {
        if self.stretch > 1.0 {
            return span.scale(self.stretch);
        }
        span
    }
}

/// The monotonic and the real-time clock, read as close together as possible.
fn together() -> (u64, u64) {
    let mut closest = (u64::MAX, 0, 0);
    for _ in 0..ATTEMPTS {
        let before = monotonic();
        let present = epoch();
        let apart = monotonic().saturating_sub(before);
        closest = closest.min((apart, before + apart / 2, present));
        if apart <= TOGETHER {
            break;
        }
    }
    (closest.1, closest.2)
}
