//! A background that is measured, and what is needed to run it.

use swell_base::Dur;

use super::search::Search;
use crate::backend::{Backend, Offered, RunSpec};
use crate::kinds::Part;
use crate::plan::Plan;
use crate::run::directory::Directory;
use crate::run::options::{Event, Rates};

/// A background of the file with its search.
pub(super) struct Job<'p> {
    /// Its index in the file.
    pub index: usize,
    pub background: &'p Part,
    /// Whether it does not slow down, or most of its bytes do not.
    pub unyielding: bool,
    /// Whether the network shapes its traffic. Then whole runs are measured.
    pub shaped: bool,
    /// How many whole runs are measured.
    pub runs: usize,
    /// What the draw of each replication offers in a whole run, by the pace.
    pub offers: Vec<(Option<f64>, Vec<Option<Offered>>)>,
    pub search: Search,
}

impl Job<'_> {
    /// What the draw of each replication offers at this pace, if it was drawn.
    pub fn offered(&self, pace: Option<f64>) -> &[Option<Offered>] {
        let found = self.offers.iter().find(|(at, _)| *at == pace);
        found.map_or(&[], |(_, offers)| offers)
    }

    /// The mean rates that are to be carried at the present pace: over all draws, or over the runs' own ones where there
    /// are no others. With per-seed rates, the means of the replications differ. `None` where a rate is unknown.
    pub fn mean(&self) -> Option<[f64; 2]> {
        let own = self.background.keys().is_of_its_draws();
        let rates = |o: Offered| if own { o.drawn } else { o.mean };
        let all = self.offered(self.search.pace).iter();
        let all: Vec<[f64; 2]> = all.map(|o| o.map(rates)).collect::<Option<_>>()?;
        Some([0, 1].map(|d| all.iter().map(|r| r[d]).sum::<f64>() / all.len().max(1) as f64))
    }
}

/// The context in which pieces run.
pub(super) struct Site<'s> {
    pub plan: &'s Plan,
    pub backend: &'s dyn Backend,
    pub dir: &'s Directory<'s>,
    pub threads: usize,
    pub events: &'s (dyn Fn(Event<'_>) + Sync),
    pub cancelled: &'s (dyn Fn() -> bool + Sync),
    /// The pieces of a search in a round: how many, the warm-up of each, and the length of each.
    pub pieces: (u32, Dur, Dur),
    /// Rates from earlier stages, which backgrounds of this stage may match.
    pub known: &'s Rates,
}

impl Site<'_> {
    pub fn alone(&self, background: &Part, replication: u32, pace: Option<f64>) -> RunSpec {
        (self.plan).alone(background, replication, pace, self.known)
    }
}
