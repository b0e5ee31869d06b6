//! Fast paths that can be switched off to measure their gain. That of the next segment in order cannot:
//! `take_expected` of the TCP endpoint, and `on_expected` of its receiver.

/// A fast path. The bench `ablation` measures the speedup of each in packets per second of processor time. The
/// figures below come from two to six pairs of runs on a busy machine with two processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Prefetches memory for upcoming events. Results do not change without it. Speedup: 1.9 to 2.4 with 10 000
    /// clients; hardly any with learnt traffic at 100 Mbit/s.
    LookAhead,
    /// Access links that compute each arrival at once, instead of general links. General links carry and drop the
    /// same packets, but may order events at the same nanosecond differently. Speedup: 1.4 to 1.6 with learnt
    /// traffic.
    PlainLinks,
    /// Sources that announce timed writes instead of returning a list of actions. Speedup: 1.4 to 1.5 with ns-2's 60
    /// clients, 1.0 to 1.3 with 10 000 Linux clients, none with learnt traffic. Without this fast path the 60 clients
    /// are no longer eight times as fast as ns-2.
    TimedWrites,
}

/// The fast paths that are switched off.
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
