//! How late an emulation was.

use hdrhistogram::Histogram;
use swell_base::{Dur, Warning};

/// ModelNet's bound (Vahdat et al., OSDI 2002): within a millisecond of the target.
const TOO_LATE: Dur = Dur::from_millis(1);

/// By how much packets left later than the world says, on the wall clock, and for how long the loop
/// was away.
#[derive(Clone, Debug)]
pub struct Lateness {
    departures: Histogram<u64>,
    stalls: u64,
    longest_stall: Dur,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let departures = Histogram::new_with_bounds(1, 60_000_000_000, 3);
        Lateness {
            departures: departures.expect("bounds that the histogram's documentation allows"),
            stalls: 0,
            longest_stall: Dur::ZERO,
        }
    }
}

/// Lateness in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Late {
    /// Packets that left.
    pub count: u64,
    /// Median.
    pub p50: Dur,
    /// 99th percentile.
    pub p99: Dur,
    /// 99.9th percentile.
    pub p999: Dur,
    /// The latest.
    pub max: Dur,
    /// Times that the loop was away for more than a millisecond: packets that came meanwhile were
    /// stamped late.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall: Dur,
}

impl Lateness {
    /// A packet left `by` too late.
    #[inline]
    pub fn add(&mut self, by: Dur) {
        self.departures.saturating_record(by.as_nanos().max(1));
    }

    /// The loop came back `by` later than it wanted to.
    #[inline]
    pub fn back(&mut self, by: Dur) {
        if by > TOO_LATE {
            self.stalls += 1;
            self.longest_stall = self.longest_stall.max(by);
        }
    }

    /// The numbers.
    pub fn late(&self) -> Late {
        let at = |q| Dur::from_nanos(self.departures.value_at_quantile(q));
        Late {
            count: self.departures.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Dur::from_nanos(self.departures.max()),
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
        if self.too_late() {
            doubts.push(Warning::warning(
                "emulator-late",
                "one packet in a hundred or more left over 1 ms after its time: the machine was too busy for this network; run fewer things beside it, or stretch time",
            ));
        }
        if self.stalls > 0 {
            doubts.push(Warning::note(
                "emulator-stalled",
                "the emulator was kept from running for more than 1 ms now and then; packets that came meanwhile were late by as much",
            ));
        }
        doubts
    }
}
