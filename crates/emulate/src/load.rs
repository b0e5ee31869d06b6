//! Measures the loop's load, which decides how it waits and which priority it requests.
//!
//! Spinning helps an idle loop. A busy loop that spins takes processor time from the programs whose packets it
//! carries. With real-time priority the kernel even stops it for 50 ms of each second, if it leaves less than a
//! twentieth of the time to others (`sched_rt_runtime_us`, sched(7)). So a busy loop neither spins nor keeps its
//! priority.

use std::fs;

use swell_base::Dur;

/// Length of a measurement window.
const WINDOW: Dur = Dur::from_millis(20);
/// The loop may spin if its work takes less than this share of a window.
const IDLE: f64 = 0.4;
/// A loop that is awake for more than this share of its time gives up its real-time priority,
const BUSY: f64 = 0.85;
/// until the share falls below this.
const CALM: f64 = 0.6;
/// Weight of the last window in the moving average. The time constant is five windows, a tenth of a second.
const LAST: f64 = 0.2;

/// What the loop requests from the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Run as soon as something is due.
    #[default]
    Punctual,
    /// An ordinary share of a processor, because the load is higher than real-time priority allows.
    Fair,
}

/// How the loop spends its time.
#[derive(Debug)]
pub(super) struct Load {
    /// Start of the current window, in nanoseconds of the monotonic clock, like all instants here.
    begun: u64,
    slept: u64,
    spun: u64,
    spin: bool,
    /// Moving average of the share of time in which the loop did not sleep.
    awake: f64,
    urgency: Urgency,
    /// Nanoseconds without real-time priority.
    fair: u64,
}

impl Load {
    pub fn starting(now: u64) -> Load {
        Load {
            begun: now,
            slept: 0,
            spun: 0,
            spin: true,
            awake: 0.0,
            urgency: Urgency::Punctual,
            fair: 0,
        }
    }

    /// The loop slept for this many nanoseconds.
    pub fn slept(&mut self, nanos: u64) {
        self.slept += nanos;
    }

    /// The loop spun for this many nanoseconds.
    pub fn spun(&mut self, nanos: u64) {
        self.spun += nanos;
    }

    /// Whether the load leaves time to spin.
    pub fn may_spin(&self) -> bool {
        self.spin
    }

    /// How long the loop has run without real-time priority.
    pub fn gave_way(&self) -> Dur {
        Dur::from_nanos(self.fair)
    }

    /// Evaluates a window that is over. Returns the urgency to request if it changed.
    pub fn judge(&mut self, now: u64) -> Option<Urgency> {
        let span = now.saturating_sub(self.begun);
        if span < WINDOW.as_nanos() {
            return None;
        }
        let share = |part: u64| part as f64 / span as f64;
        let awake = 1.0 - share(self.slept).min(1.0);
        self.spin = awake - share(self.spun) < IDLE;
        // One stall is one window, however long: it shows that other threads were busy, not this loop.
        self.awake += LAST * (awake - self.awake);
        if self.urgency == Urgency::Fair {
            self.fair += span;
        }
        (self.begun, self.slept, self.spun) = (now, 0, 0);
        let wanted = match self.urgency {
            Urgency::Punctual if self.awake > BUSY => Urgency::Fair,
            Urgency::Fair if self.awake < CALM => Urgency::Punctual,
            _ => return None,
        };
        self.urgency = wanted;
        Some(wanted)
    }
}

/// How long the calling thread was runnable but waited for a processor (Documentation/scheduler/sched-stats.rst,
/// second number of `schedstat`). Zero if the kernel does not measure this.
pub(super) fn waited_for_processor() -> Dur {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    Dur::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `count` windows with these shares of sleeping and spinning.
    fn windows(load: &mut Load, now: &mut u64, count: u32, slept: f64, spun: f64) -> Vec<Urgency> {
        let window = WINDOW.as_nanos();
        let mut one = || {
            *now += window;
            load.slept((slept * window as f64) as u64);
            load.spun((spun * window as f64) as u64);
            load.judge(*now)
        };
        (0..count).filter_map(|_| one()).collect()
    }

    #[test]
    fn a_busy_loop_does_not_spin_and_gives_way_until_it_is_calm() {
        let mut now = 7;
        let mut load = Load::starting(now);
        // Ten thousand packets/s: a quarter of the time is work, the rest of the waking time is spinning. It may go
        // on spinning.
        assert_eq!(windows(&mut load, &mut now, 50, 0.2, 0.55), []);
        assert!(load.may_spin());
        // Half of the time is work: it stops spinning, which leaves time to sleep.
        assert_eq!(windows(&mut load, &mut now, 1, 0.05, 0.45), []);
        assert!(!load.may_spin());
        assert_eq!(windows(&mut load, &mut now, 50, 0.45, 0.0), []);
        // Work takes all the time: it gives up its priority within a second, before the kernel throttles it.
        assert_eq!(windows(&mut load, &mut now, 40, 0.0, 0.0), [Urgency::Fair]);
        assert_eq!(windows(&mut load, &mut now, 50, 0.3, 0.0), []);
        assert_eq!(
            windows(&mut load, &mut now, 50, 0.5, 0.0),
            [Urgency::Punctual]
        );
        assert!(
            load.gave_way() > Dur::from_secs_f64(1.0) && load.gave_way() < Dur::from_secs_f64(3.0)
        );
    }

    #[test]
    fn one_stall_does_not_make_it_give_way() {
        let mut now = 0;
        let mut load = Load::starting(now);
        windows(&mut load, &mut now, 10, 0.8, 0.0);
        now += 1_000_000_000;
        assert_eq!(load.judge(now), None);
        assert!(!load.may_spin());
        assert_eq!(windows(&mut load, &mut now, 1, 0.8, 0.0), []);
        assert!(load.may_spin());
    }
}
