//! Fast paths that can be switched off, to see what they gain.

/// A way to be faster. The bench `ablation` measures what each gains; the figures here are from a busy machine with two
/// processors, and of two to six pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Asking for memory ahead of the events that need it. Results are the same without. Gains 1.9 to 2.4 times with
    /// 10 000 clients, and nothing to speak of with learnt traffic at 100 Mbit/s.
    LookAhead,
    /// Access links whose arrivals are known at once, instead of general links. Each takes and drops the same packets
    /// without, but events at the same nanosecond may come in another order. Gains 1.4 to 1.6 times with learnt traffic.
    PlainLinks,
    /// Sources that say what they write instead of a list of actions. Gains 1.4 to 1.5 times with ns-2's 60 clients, 1.0
    /// to 1.3 times with 10 000 of Linux, and nothing with learnt traffic. Without it the 60 clients are no longer eight
    /// times as fast as ns-2.
    TimedWrites,
}

/// Those that are switched off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Off(u8);

impl Off {
    pub fn add(&mut self, path: FastPath) {
        self.0 |= 1 << path as u8;
    }

    #[inline]
    pub fn has(self, path: FastPath) -> bool {
        self.0 >> (path as u8) & 1 != 0
    }
}
