//! Packets that enter later than they arrived, and what this can have changed.

use swell_base::{Dur, Time};

use super::{Emulation, Inside};
use crate::pool::Lift;

impl Emulation {
    /// How much later than it arrived a packet enters at `at`.
    ///
    /// If links dropped packets meanwhile, this packet may have been spared instead of them, or the reverse.
    pub(super) fn lift(&mut self, at: Time, arrived: Time) -> Lift {
        let inside = &mut self.inside;
        let lift = Lift {
            by: at.since(arrived),
            overtaken: arrived < self.world.last_event().max(inside.entered_last),
        };
        if lift.overtaken && arrived < inside.losses.1 {
            inside.tracker.misplaced(at);
        }
        lift
    }

    /// Notes whether links have dropped packets in this turn.
    pub(super) fn count_losses(&mut self) {
        let all = self.world.dropped();
        if all != self.inside.losses.0 {
            self.inside.losses = (all, self.world.now());
        }
    }
}

impl Inside {
    /// A packet that had entered late was dropped at `at`. `lifted` is its delay in wall-clock time.
    pub(super) fn lost(&mut self, at: Time, lifted: Dur, lift: Lift) {
        if lift.by == Dur::ZERO {
            return;
        }
        self.lateness.add(lifted);
        if lift.overtaken {
            // In its place it might have been spared, or another one dropped.
            self.tracker.misplaced(at);
        }
    }
}
