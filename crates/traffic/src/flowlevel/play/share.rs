//! Several players for one plan.

/// The part of the sessions that a player has: those whose number modulo `of` is `index`. The players of
/// all shares together play the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of the share, below `of`.
    pub index: u32,
    /// Number of shares, not zero.
    pub of: u32,
}

impl Share {
    /// The only share.
    pub const ALL: Share = Share { index: 0, of: 1 };

    /// How many of `all` are in this share.
    pub(super) fn part(self, all: u64) -> u64 {
        let of = u64::from(self.of.max(1));
        (all + of - 1).saturating_sub(u64::from(self.index)) / of
    }

    /// Whether item `number` is in this share.
    pub(super) fn holds(self, number: u64) -> bool {
        number % u64::from(self.of.max(1)) == u64::from(self.index)
    }

    pub(super) fn number(self, place: u64) -> u64 {
        place * u64::from(self.of.max(1)) + u64::from(self.index)
    }
}
