//! RED's keys in files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Findings, QueueLimit, Rate, Stream};

use super::super::Outlet;
use super::super::keys::{self, Keys};
use super::{
    Red, RedAdaptive, RedConfig, RedMeasure, RedSpacing, RedThresholds, RedVictim, RedWeight,
};

/// Random early detection: a named set of parameters, and what differs from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Red")]
pub struct RedKeys {
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

impl Keys for RedKeys {
    type Config = RedConfig;
    type Queue = Red;
    const LABEL: &'static str = "RED";

    fn check(&self, at: &str, found: &mut Findings) {
        let key = |name: &str| format!("{at}.{name}");
        self.check_thresholds(&key, found);
        for (name, p) in [("max_p", self.max_p), ("mark_below", self.mark_below)] {
            if let Some(p) = p {
                found.probability(key(name), p);
            }
        }
        if let Some(RedWeight::Fixed(w)) = self.weight
            && !(w > 0.0 && w <= 1.0)
        {
            found.add(
                key("weight"),
                format!("{w} is no weight"),
                "write a number above 0 and up to 1, \"one-second\" or \"ten-round-trips\"",
            );
        }
        if let Some(size) = self.mean_packet {
            keys::packet(key("mean_packet"), size, found);
        }
        if let Some(a) = self.adaptive {
            check_adaptation(&|name| key(&format!("adaptive.{name}")), a, found);
        }
    }

    fn limits_mut(&mut self) -> Vec<&mut QueueLimit> {
        self.min.iter_mut().chain(&mut self.max).collect()
    }

    fn config(&self, rate: Rate) -> RedConfig {
        let set = match self.set {
            RedSet::Classic => RedConfig::classic(),
            RedSet::Adaptive => RedConfig::adaptive(),
            RedSet::Ns2Era => RedConfig::ns2_era(),
            RedSet::Ns2Modern => RedConfig::ns2_modern(),
        };
        let mean_packet = self.mean_packet.map_or(set.mean_packet, keys::small);
        let packets = |limit| keys::packets(limit, rate, f64::from(mean_packet.max(1)));
        RedConfig {
            thresholds: match (self.min, self.max, self.target_delay) {
                (Some(min), Some(max), _) => RedThresholds::Packets {
                    min: packets(min),
                    max: packets(max),
                },
                (_, _, Some(delay)) => RedThresholds::Delay(delay),
                _ => set.thresholds,
            },
            max_p: self.max_p.unwrap_or(set.max_p),
            weight: self.weight.unwrap_or(set.weight),
            mean_packet,
            measure: self.measure.unwrap_or(set.measure),
            by_size: self.by_size.unwrap_or(set.by_size),
            spacing: self.spacing.unwrap_or(set.spacing),
            gentle: self.gentle.unwrap_or(set.gentle),
            adaptive: self.adaptive.or(set.adaptive),
            ecn: self.ecn,
            mark_below: self.mark_below.or(set.mark_below),
            victim: self.victim.unwrap_or(set.victim),
            dialect: set.dialect,
        }
    }

    fn queue(config: &RedConfig, outlet: &Outlet, rng: Stream) -> Red {
        Red::new(config, outlet, rng)
    }
}

impl RedKeys {
    fn check_thresholds(&self, key: &dyn Fn(&str) -> String, found: &mut Findings) {
        match (self.min, self.max) {
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                let (here, other) = if self.min.is_some() {
                    ("min", "max")
                } else {
                    ("max", "min")
                };
                found.add(
                    key(here),
                    format!("`{here}` without `{other}`"),
                    "give both thresholds, or `target_delay`",
                );
            }
            (Some(min), Some(max)) => {
                keys::thresholds(key, min, max, found);
                if self.target_delay.is_some() {
                    found.add(
                        key("target_delay"),
                        "`target_delay` and `min` both set the thresholds",
                        "give one of the two",
                    );
                }
            }
        }
        if self.target_delay == Some(Dur::ZERO) {
            found.add(key("target_delay"), "no delay is no target", "5ms is usual");
        }
    }
}

fn check_adaptation(key: &dyn Fn(&str) -> String, a: RedAdaptive, found: &mut Findings) {
    let floor = a.floor.unwrap_or_default();
    if a.interval == Dur::ZERO {
        found.add(
            key("interval"),
            "an interval of no length",
            "500ms is usual",
        );
    }
    for (name, p) in [
        ("increase", a.increase),
        ("decrease", a.decrease),
        ("ceiling", a.ceiling),
        ("floor", floor),
    ] {
        found.probability(key(name), p);
    }
    if floor > a.ceiling {
        found.add(
            key("floor"),
            format!("the floor ({}) is above the ceiling ({})", floor, a.ceiling),
            "",
        );
    }
}
