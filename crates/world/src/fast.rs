//! Fast paths that can be switched off, to see what they gain and that they change nothing.

/// A way to be faster that changes no result. The bench `ablation` says what each gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Asking for memory ahead of the events that need it.
    LookAhead,
    /// Access links whose arrivals are known at once, instead of general links.
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
