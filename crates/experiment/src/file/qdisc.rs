//! Queueing disciplines. `docs/queues.md` has a chapter on each, with the sources of the defaults.

mod red;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, QueueLimit};
use swell_path::{CoDelConfig, FqCoDelConfig, PieConfig};

use super::named::{Named, Short};
pub use red::{Red, RedSet};

/// A queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Qdisc {
    /// First in, first out; arrivals to a full queue are dropped.
    #[default]
    Fifo,
    /// Random early detection: arrivals are dropped, or marked, with a probability that grows with
    /// the average of the queue.
    Red(Red),
    /// Strict priority between the applications under study and the background, without preemption.
    Priority(Priority),
    /// Deficit round robin.
    Drr(Drr),
    /// Controlled delay (RFC 8289).
    Codel(CoDelConfig),
    /// A controlled-delay queue for each flow, served in turn (RFC 8290).
    FqCodel(FqCoDelConfig),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(PieConfig),
}

impl Qdisc {
    /// Its name in figures and reports.
    pub fn label(&self) -> &'static str {
        match self {
            Qdisc::Fifo => "FIFO",
            Qdisc::Red(_) => "RED",
            Qdisc::Priority(_) => "priority",
            Qdisc::Drr(_) => "DRR",
            Qdisc::Codel(_) => "CoDel",
            Qdisc::FqCodel(_) => "FQ-CoDel",
            Qdisc::Pie(_) => "PIE",
        }
    }

    /// The discipline's own limits, which must be resolved like the link's.
    pub(crate) fn limits_mut(&mut self) -> impl Iterator<Item = &mut QueueLimit> {
        let (list, pair): (&mut [QueueLimit], _) = match self {
            Qdisc::Priority(p) => (&mut p.limits, [None, None]),
            Qdisc::Red(r) => (&mut [], [r.min.as_mut(), r.max.as_mut()]),
            _ => (&mut [], [None, None]),
        };
        list.iter_mut().chain(pair.into_iter().flatten())
    }
}

/// Bands of first-in-first-out queues; a band is served only while those above it are empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// How many bands. Band 0 is served first.
    pub bands: u32,
    /// Band of the applications under study.
    pub foreground: u32,
    /// Band of the background.
    pub background: u32,
    /// How much each band holds, from band 0 on. Bands without an entry hold what `queue` says,
    /// each for itself.
    pub limits: Vec<QueueLimit>,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority {
            bands: 2,
            foreground: 0,
            background: 1,
            limits: Vec::new(),
        }
    }
}

/// Queues with packets take turns; at its turn a queue may send its quantum and what it left over
/// the turn before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drr {
    /// Which packets share a queue.
    pub by: DrrClasses,
    /// How many queues flows are hashed to. With `by = "traffic"` there are two.
    pub queues: u32,
    /// Bytes that a queue may send more in each round: at least the largest packet.
    pub quantum: Bytes,
    /// Quanta of single queues, from the first on; with `by = "traffic"` of the applications under
    /// study and of the background. Shares of the rate are in proportion to them.
    pub quanta: Vec<Bytes>,
}

impl Default for Drr {
    fn default() -> Drr {
        Drr {
            by: DrrClasses::Flow,
            queues: 1024,
            quantum: Bytes(1500),
            quanta: Vec::new(),
        }
    }
}

/// Which packets share a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DrrClasses {
    /// Those of a flow, by a hash: a few flows may meet in one queue.
    #[default]
    Flow,
    /// Those of the applications under study in one queue, those of the background in another.
    Traffic,
}

/// A discipline in a file: a name or a table.
pub type QdiscSpec = Named<Qdisc>;

impl Short for Qdisc {
    const SPEC: &'static str = "QdiscSpec";
    const KEY: &'static str = "kind";
    const WHAT: &'static str = "the name of a queueing discipline";
}
