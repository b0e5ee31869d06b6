//! The network of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, QueueLimit, Rate};
use swell_path::Loss;

use super::change::{Change, Deliveries, DeliveriesSpec};
use super::preset::PresetSpec;
use super::qdisc::{Qdisc, QdiscSpec};
use super::rate::ACCESS_DELAY;

/// The network of an experiment: one link, the links of a preset, or, with `[[links]]`, what holds for all of them.
/// Foreground clients and background users are on the left, servers on the right. "Up" is left to right, "down" right
/// to left: towards the clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Several links at once, by the name of a common topology or as a table with `kind` and parameters. Keys of a link
    /// beside it change its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetSpec>,
    /// Round-trip propagation delay of the foreground's paths, end to end; what BDP counts with.
    /// Default: the longest that the foregrounds' access delays make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Dur>,
    /// One-way delay of the access path on each side, where neither a part nor `rtt` says otherwise. Learnt
    /// traffic and the peers of a swarm have their own. Default 5ms; in the preset `leaf-spine` 5us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_delay: Option<Dur>,
    /// The link, if there is only one: the bottleneck.
    #[serde(flatten)]
    pub link: LinkKeys,
}

impl Network {
    /// One-way delay of the access path on each side, where neither a part nor `rtt` says otherwise.
    pub fn access_delay(&self) -> Dur {
        self.own_access_delay().unwrap_or(ACCESS_DELAY)
    }

    /// The same, if the file or its preset says so.
    pub(super) fn own_access_delay(&self) -> Option<Dur> {
        let preset = self.preset.as_ref();
        self.access_delay.or_else(|| preset?.0.access_delay())
    }
}

/// A link of a network of several. Its left end is towards the clients of a path that names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedLink {
    /// The name by which paths and tables know it. Random losses are drawn under it.
    pub name: String,
    /// The link itself.
    #[serde(flatten)]
    pub keys: LinkKeys,
}

/// A link in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkKeys {
    /// Rate of the link, both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A packet-delivery trace instead of a rate, both directions. A `rate` beside it is what limits
    /// in time and BDP count with; default: the trace's mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<DeliveriesSpec>,
    /// One-way propagation delay of the link, both directions. Default 10ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// How much the queue holds, both directions: packets, bytes, time at the link's rate, or
    /// multiples of the bandwidth-delay product (rate times `rtt`). Default 1BDP, and at least ten
    /// packets of 1500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Queueing discipline, both directions: its name, or a table with `kind` and parameters.
    /// Default fifo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<QdiscSpec>,
    /// Random loss on the link, both directions. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Link-layer bytes per packet that the rate counts on top of the network-layer bytes.
    /// Default 0B: the rate counts network-layer bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bytes>,
    /// What differs in the up direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<LinkOverrides>,
    /// What differs in the down direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<LinkOverrides>,
    /// What changes during a run, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<Change>,
}

/// Minimum size of a default queue, bytes: ten packets of 1500.
pub(crate) const LEAST_QUEUE: u64 = 15_000;

impl LinkKeys {
    /// Whether the file gives the limit of the queue, up and down.
    pub(crate) fn queues_given(&self) -> [bool; 2] {
        let own = |side: &Option<LinkOverrides>| side.as_ref().is_some_and(|o| o.queue.is_some());
        [&self.up, &self.down].map(|side| own(side) || self.queue.is_some())
    }
}

/// What differs in one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkOverrides {
    /// Rate in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A packet-delivery trace instead of a rate in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<DeliveriesSpec>,
    /// One-way propagation delay in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// How much the queue holds in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// Queueing discipline in this direction: its name, or a table with `kind` and parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<QdiscSpec>,
    /// Random loss in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Link-layer bytes per packet that the rate counts in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bytes>,
}

/// One direction of a link, fully specified.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Rate. With `deliveries`, the rate that applies to queue limits in time and BDP.
    pub rate: Rate,
    /// A packet-delivery trace instead of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
    /// One-way propagation delay.
    pub delay: Dur,
    /// Limit of the queue. After resolution it is never [`QueueLimit::Bdp`], and neither are limits in `qdisc`.
    pub queue: QueueLimit,
    /// Queueing discipline.
    pub qdisc: Qdisc,
    /// Random loss.
    pub loss: Loss,
    /// Link-layer bytes per packet that the rate counts on top of the network-layer bytes.
    pub overhead: Bytes,
}

/// Default one-way propagation delay.
const DELAY: Dur = Dur::from_millis(10);

impl LinkKeys {
    /// The up and the down direction, in this order, at the start of a run. A missing rate is zero here. The check of
    /// the file rejects it, unless there is a delivery trace, whose mean rate is filled in by the plan.
    pub fn directions(&self) -> [Link; 2] {
        // A direction's own rate replaces a common trace, and its own trace replaces a common rate.
        let carries = |side: Option<&'_ LinkOverrides>| {
            let own = side.map(|o| (o.rate, o.deliveries.clone()));
            let common = || (self.rate, self.deliveries.clone());
            own.filter(|o| *o != (None, None)).unwrap_or_else(common)
        };
        [self.up.as_ref(), self.down.as_ref()].map(|side| Link {
            rate: carries(side).0.unwrap_or_default(),
            deliveries: carries(side).1.map(|spec| spec.0),
            delay: side.and_then(|o| o.delay).or(self.delay).unwrap_or(DELAY),
            queue: side
                .and_then(|o| o.queue)
                .or(self.queue)
                .unwrap_or(QueueLimit::Bdp(1.0)),
            qdisc: side
                .and_then(|o| o.qdisc.as_ref())
                .or(self.qdisc.as_ref())
                .map_or_else(Qdisc::default, |spec| spec.0.clone()),
            loss: side.and_then(|o| o.loss).or(self.loss).unwrap_or_default(),
            overhead: side
                .and_then(|o| o.overhead)
                .or(self.overhead)
                .unwrap_or_default(),
        })
    }
}
