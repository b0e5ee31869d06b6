//! When clients begin.

use swell_base::{Dur, Stream};

/// Begins of clients that do not know of each other: the same instant, or independent ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starts {
    over: Dur,
    seed: u64,
}

impl Starts {
    /// Uniform within a time of this length.
    pub(crate) fn spread(over: Dur, seed: u64) -> Starts {
        Starts { over, seed }
    }

    /// How much later than the first instant client `c` begins.
    pub(crate) fn of(&self, c: u64) -> Dur {
        match self.over {
            Dur::ZERO => Dur::ZERO,
            over => over.scale(Stream::indexed(self.seed, "starts", c).uniform()),
        }
    }
}
