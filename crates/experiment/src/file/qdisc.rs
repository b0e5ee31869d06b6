//! Queueing disciplines. `docs/queues.md` has a chapter on each, with the sources of the defaults.
//!
//! Their keys, checks and construction are in `swell-path`, in the file of each.

pub use swell_path::DisciplineKeys as Qdisc;

use super::named::{Named, Short};

/// A discipline in a file: a name or a table.
pub type QdiscSpec = Named<Qdisc>;

impl Short for Qdisc {
    const SPEC: &'static str = "QdiscSpec";
    const KEY: &'static str = "kind";
    const WHAT: &'static str = "the name of a queueing discipline";
}
