//! What is counted at a link.

use swell_path::{Census, Element, Ledger, Link, Meter};

/// A shared link in a direction, to be looked at. When something happens on it the world knows
/// ([`World::poll_at`](crate::World::poll_at)); the link alone does not, for its packets lie with those of all links.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck<'a>(pub(crate) &'a Link);

impl<'a> Bottleneck<'a> {
    /// What came in, went out and was dropped.
    pub fn ledger(self) -> Ledger {
        self.0.ledger()
    }

    /// The meter, if there is one ([`World::meter`](crate::World::meter)).
    pub fn meter(self) -> Option<&'a Meter> {
        self.0.meter()
    }

    /// The census, if one is taken ([`World::take_census`](crate::World::take_census)).
    pub fn census(self) -> Option<&'a Census> {
        self.0.census()
    }

    /// Packets that the queue marked instead of dropping them, so far.
    pub fn marked(self) -> u64 {
        self.0.marked()
    }
}
