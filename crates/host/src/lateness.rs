//! How late things were that had a time of their own.

use hdrhistogram::Histogram;
use swell_base::{Dur, Warning};

/// A loop that is away for longer has stalled.
const STALL: Dur = Dur::from_millis(1);

/// ModelNet's bound (Vahdat et al., OSDI 2002): within a millisecond of the target.
const TOO_LATE: Dur = Dur::from_millis(1);

/// By how much things happened later than they were due, on the wall clock, and for how long the loop that
/// sees to them was away.
#[derive(Clone, Debug)]
pub struct Lateness {
    by: Histogram<u64>,
    stalls: u64,
    longest_stall: Dur,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let by = Histogram::new_with_bounds(1, 60_000_000_000, 3);
        Lateness {
            by: by.expect("bounds that the histogram's documentation allows"),
            stalls: 0,
            longest_stall: Dur::ZERO,
        }
    }
}

/// Lateness in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Late {
    /// Events: packets that left, transfers that began, timers that ran.
    pub count: u64,
    /// Median.
    pub p50: Dur,
    /// 99th percentile.
    pub p99: Dur,
    /// 99.9th percentile.
    pub p999: Dur,
    /// The latest.
    pub max: Dur,
    /// Times that the loop was away for more than a millisecond, where that is measured.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall: Dur,
}

impl Lateness {
    /// Something happened `by` later than it was due.
    #[inline]
    pub fn add(&mut self, by: Dur) {
        self.by.saturating_record(by.as_nanos().max(1));
    }

    /// The loop came back `by` later than it wanted to. Returns whether that is a stall.
    #[inline]
    pub fn back(&mut self, by: Dur) -> bool {
        let stalled = by > STALL;
        if stalled {
            self.stalls += 1;
            self.longest_stall = self.longest_stall.max(by);
        }
        stalled
    }

    /// The numbers.
    pub fn late(&self) -> Late {
        let at = |q| Dur::from_nanos(self.by.value_at_quantile(q));
        Late {
            count: self.by.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Dur::from_nanos(self.by.max()),
            stalls: self.stalls,
            longest_stall: self.longest_stall,
        }
    }
}

impl Late {
    /// Whether the network that the programs saw could have been another than the world's.
    pub fn too_late(&self) -> bool {
        self.p99 > TOO_LATE
    }

    /// What a reader of the result must know. The words are the same for all runs, so that a report says
    /// them once and how many runs they are about.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        if self.stalls > 0 {
            doubts.push(Warning::note(
                "emulator-stalled",
                "the emulator was kept from running for more than 1 ms now and then; packets that came meanwhile were late by as much",
            ));
        }
        doubts
    }
}
