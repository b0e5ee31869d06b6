//! Fast paths that can be switched off, to see what they gain.

/// A way to be faster. The bench `ablation` says what each gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Asking for memory ahead of the events that need it. Results are the same without.
    LookAhead,
    /// Access links whose arrivals are known at once, instead of general links. Each takes and drops the same packets
    /// without, but events at the same nanosecond may come in another order.
    PlainLinks,
    /// Sources that say what they write instead of a list of actions.
    Beats,
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
