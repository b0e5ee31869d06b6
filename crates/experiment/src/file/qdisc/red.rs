//! RED's parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, QueueLimit};
use swell_path::{RedAdaptive, RedMeasure, RedSpacing, RedVictim, RedWeight};

/// Random early detection: a named set of parameters, and what differs from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// The set of parameters everything else starts from.
    #[serde(default)]
    pub set: RedSet,
    /// Average queue from which on packets are dropped now and then: packets of mean size, bytes,
    /// time at the link's rate, or BDP. Together with `max`. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<QueueLimit>,
    /// Average queue at which the drop probability has reached `max_p`. Together with `min`.
    /// Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<QueueLimit>,
    /// Instead of `min` and `max`: the delay to aim at. `min` is then half of what the link sends in
    /// this time, at least 5 packets, and `max` three times that. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Dur>,
    /// Drop probability as the average reaches `max`. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_p: Option<f64>,
    /// Weight of the newest sample in the average: a number above 0 and up to 1, or a rule. Default:
    /// the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<RedWeight>,
    /// Size of a mean packet: what thresholds and idle times are counted in. Default 500B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_packet: Option<Bytes>,
    /// What is averaged. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<RedMeasure>,
    /// Whether a packet is dropped in proportion to its size. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_size: Option<bool>,
    /// How drops are spread out. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<RedSpacing>,
    /// Whether the probability goes on to 1 at twice `max` instead of jumping there. Default: the
    /// set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gentle: Option<bool>,
    /// Let `max_p` adapt so that the average stays in the middle: how. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<RedAdaptive>,
    /// Mark packets of senders that understand ECN instead of dropping them.
    #[serde(default)]
    pub ecn: bool,
    /// Above this probability packets are dropped all the same; 1 for never. Default: the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_below: Option<f64>,
    /// Which packet goes when the queue is full or its average too long. Default: the one that
    /// arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim: Option<RedVictim>,
}

/// A named set of RED's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedSet {
    /// Floyd and Jacobson 1993: thresholds 5pkt and 15pkt, probability 0.02, weight 0.002.
    #[default]
    Classic,
    /// Floyd, Gummadi and Shenker 2001: thresholds for 5ms, gentle, adapting its probability.
    Adaptive,
    /// ns-2 of 1999 and 2000: thresholds 5pkt and 15pkt, probability 0.1, weight 0.002.
    Ns2Era,
    /// ns-2.35 as released: thresholds and weight from the link, gentle, in bytes.
    Ns2Modern,
}
