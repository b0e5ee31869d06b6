//! Scheduling precision of the calling thread.

use super::sys::devices as sys;
use std::fmt;
use std::num::NonZeroU64;

/// The scheduling that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// SCHED_FIFO: only the kernel delays the thread. Such a thread must sleep; one that spins is stopped for 50 ms
    /// of every second (`sched_rt_runtime_us`, sched(7)).
    RealTime {
        /// Its priority.
        priority: u32,
    },
    /// The fair scheduler with slices of this many nanoseconds (Linux 6.12 and later). A thread that mostly sleeps
    /// gets the processor soon, unless the processors are oversubscribed.
    ShortSlice {
        /// The slice.
        nanos: u64,
    },
    /// The default fair scheduler: the thread is milliseconds late whenever others need the processor.
    Fair,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::RealTime { priority } => write!(f, "real-time (FIFO {priority})"),
            Precision::ShortSlice { nanos } => write!(f, "fair, {} us slice", nanos / 1000),
            Precision::Fair => write!(f, "fair"),
        }
    }
}

/// The shortest slice that the kernel accepts (kernel/sched/syscalls.c: 100 us to 100 ms).
const SLICE: u64 = 100_000;
/// Above ordinary programs, below most other real-time priorities.
const PRIORITY: u32 = 10;

/// Makes the calling thread as punctual as the kernel permits and returns what was granted. Threads and programs
/// started from it do not inherit it.
pub fn be_punctual(real_time: bool) -> Precision {
    // Timers of ordinary threads may be up to 50 us late to save wake-ups (PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if real_time && sys::schedule_fifo(PRIORITY).is_ok() {
        return Precision::RealTime { priority: PRIORITY };
    }
    if sys::schedule_slice(SLICE).is_ok() && sys::slice() == Ok(SLICE) {
        return Precision::ShortSlice { nanos: SLICE };
    }
    Precision::Fair
}
