//! A line that limits the hosts of a side together.

use swell_base::Rate;

use crate::together::Together;

/// Capacities within this factor of the link's are the link's.
const ALIKE: f64 = 1.15;

/// A line that limits all hosts of a side together, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) rate: Rate,
    /// Whether it is known to be that of several hosts, and not that of one.
    pub(super) shared: bool,
    /// Whether it was full at times.
    pub(super) filled: bool,
    /// Whether packets wait for it all the time.
    pub(super) always: bool,
    /// Whether its rate was given.
    pub(super) given: bool,
    pub(super) by: &'t Together,
}

impl Line<'_> {
    /// Whether a capacity is this line's.
    pub(super) fn is(&self, capacity: Rate) -> bool {
        capacity.bps() as f64 * ALIKE >= self.rate.bps() as f64
    }

    /// Whether it was full for so many packets around a time in milliseconds.
    pub(super) fn busy(&self, packets: u64, at: u32) -> bool {
        self.by.busy(self.rate, packets, at)
    }
}

/// Takes a capacity away if it is that of a line that hosts share.
pub(super) fn take(capacity: &mut Option<Rate>, line: Option<&Line<'_>>) -> Option<Rate> {
    let line = line.filter(|line| line.shared)?;
    capacity.take_if(|own| line.is(*own))
}
