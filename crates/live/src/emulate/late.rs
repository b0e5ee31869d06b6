//! What lateness means for an emulation.

use swell_base::{Dur, Warning};

use crate::lateness::Late;

/// ModelNet's bound (Vahdat et al., OSDI 2002): within a millisecond of the target.
const TOO_LATE: Dur = Dur::from_millis(1);

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
