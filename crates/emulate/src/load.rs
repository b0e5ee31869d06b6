//! How busy the loop is, and so how it waits and which priority it asks for.
//!
//! Spinning helps an idle loop. A busy loop that spins takes the processor from the programs whose packets it carries.
//! With a real-time priority it is even stopped for 50 ms of each second, if it leaves less than a twentieth of the time
//! to others (`sched_rt_runtime_us`, sched(7)). So a busy loop neither spins nor keeps its priority.

use std::fs;

use swell_base::Dur;

/// Length of a window of measurement.
const WINDOW: Dur = Dur::from_millis(20);
/// Work below this share of a window leaves room to spin.
const IDLE: f64 = 0.4;
/// A loop that does not sleep for more than this share of its time gives way,
const BUSY: f64 = 0.85;
/// until that share is below this.
const CALM: f64 = 0.6;
/// Of the average share, what the last window counts: five windows are a tenth of a second.
const LAST: f64 = 0.2;

/// What the loop needs from the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// To run as soon as something is due.
    #[default]
    Punctual,
    /// An ordinary share of a processor: it has more work than real-time priority allows.
    Fair,
}

/// Where the loop's time went.
#[derive(Debug)]
pub(super) struct Load {
    /// When this window began; nanoseconds of the monotonic clock, as all instants here.
    begun: u64,
    slept: u64,
    spun: u64,
    spin: bool,
    /// Average share of the time in which it did not sleep.
    awake: f64,
    urgency: Urgency,
    /// How long it has given way.
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

    /// It slept for so many nanoseconds.
    pub fn slept(&mut self, nanos: u64) {
        self.slept += nanos;
    }

    /// It watched the clock for so many nanoseconds.
    pub fn spun(&mut self, nanos: u64) {
        self.spun += nanos;
    }

    /// Whether there is time to spin.
    pub fn may_spin(&self) -> bool {
        self.spin
    }

    /// How long it has given way to others.
    pub fn gave_way(&self) -> Dur {
        Dur::from_nanos(self.fair)
    }

    /// Judges what has passed; says what is wanted of the scheduler where that is new.
    pub fn judge(&mut self, now: u64) -> Option<Urgency> {
        let span = now.saturating_sub(self.begun);
        if span < WINDOW.as_nanos() {
            return None;
        }
        let share = |part: u64| part as f64 / span as f64;
        let awake = 1.0 - share(self.slept).min(1.0);
        self.spin = awake - share(self.spun) < IDLE;
        // One stall is one window, however long: it shows that others were busy, not this loop.
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

/// For how long the calling thread has waited for a processor while it could have run
/// (Documentation/scheduler/sched-stats.rst, second number of `schedstat`); zero where the kernel does not count.
pub(super) fn waited_for_processor() -> Dur {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    Dur::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows in which so much of the time is slept and spun.
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
        // Ten thousand packets a second: a quarter work, the rest watched away. It may go on.
        assert_eq!(windows(&mut load, &mut now, 50, 0.2, 0.55), []);
        assert!(load.may_spin());
        // Half of it is work: no spinning, which leaves time to sleep.
        assert_eq!(windows(&mut load, &mut now, 1, 0.05, 0.45), []);
        assert!(!load.may_spin());
        assert_eq!(windows(&mut load, &mut now, 50, 0.45, 0.0), []);
        // Nothing but work: it gives way before a second is over, whatever the throttle of the kernel.
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
