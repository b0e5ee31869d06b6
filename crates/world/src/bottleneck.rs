//! Counters of a link.

use swell_path::{Census, Ledger, Link, Meter};

/// Read access to one direction of a shared link. It does not offer the link's next deadline: use
/// [`World::poll_at`](crate::World::poll_at), because the packets of all links share one pool.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck<'a>(pub(crate) &'a Link);

impl<'a> Bottleneck<'a> {
    /// Counts of packets that arrived, left and were dropped.
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

    /// Number of packets that the queue has marked instead of dropping.
    pub fn marked(self) -> u64 {
        self.0.marked()
    }
}
