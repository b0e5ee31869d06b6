//! Lateness of events that had a due time.

use hdrhistogram::Histogram;
use swell_base::{Code, Dur, Warning};

/// A loop that is delayed by more than this has stalled.
const STALL: Dur = Dur::from_millis(1);

/// ModelNet's bound (Vahdat et al., OSDI 2002): within a millisecond of the due time.
const TOO_LATE: Dur = Dur::from_millis(1);

/// Statistics of lateness: how much later than due events happened on the wall clock, and for how long the event loop
/// was delayed.
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

/// Statistics of lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Late {
    /// Number of events: packets sent, transfers started, timers run.
    pub count: u64,
    /// Median.
    pub p50: Dur,
    /// 99th percentile.
    pub p99: Dur,
    /// 99.9th percentile.
    pub p999: Dur,
    /// Maximum.
    pub max: Dur,
    /// Number of times that the loop was delayed by more than a millisecond, if that is measured.
    pub stalls: u64,
    /// The longest stall.
    pub longest_stall: Dur,
}

impl Lateness {
    /// Records an event that happened `by` later than it was due.
    #[inline]
    pub fn add(&mut self, by: Dur) {
        self.by.saturating_record(by.as_nanos().max(1));
    }

    /// Records that the loop resumed `by` later than planned. Returns whether that is a stall.
    #[inline]
    pub fn back(&mut self, by: Dur) -> bool {
        let stalled = by > STALL;
        if stalled {
            self.stalls += 1;
            self.longest_stall = self.longest_stall.max(by);
        }
        stalled
    }

    /// The statistics so far.
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
    /// Whether the network that programs saw may have differed from the configured one. Its time passes more slowly
    /// than the wall clock's by the factor `stretch`.
    pub fn too_late(&self, stretch: f64) -> bool {
        self.p99 > TOO_LATE.scale(stretch)
    }

    /// Warnings for readers of the result. The wording is the same for all runs, so that a report can print it once
    /// together with the number of runs.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        if self.stalls > 0 {
            doubts.push(Warning::note(
                Code::EmulatorStalled,
                "the emulator was kept from running for more than 1 ms now and then; packets that came meanwhile were late by as much",
            ));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where time is stretched, a millisecond of the network takes longer.
    #[test]
    fn the_bound_is_a_time_of_the_network() {
        let late = Late {
            p99: Dur::from_millis(3),
            ..Late::default()
        };
        assert_eq!(
            [1.0, 2.0, 4.0].map(|s| late.too_late(s)),
            [true, true, false]
        );
    }
}
