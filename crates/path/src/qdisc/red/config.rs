//! RED's parameters and named parameter sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate};

/// Random early detection. Named parameter sets: [`RedConfig::classic`] (the default), [`RedConfig::adaptive`],
/// [`RedConfig::ns2_era`], [`RedConfig::ns2_modern`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Thresholds of the average between which the drop probability grows.
    pub thresholds: RedThresholds,
    /// Drop probability when the average reaches the upper threshold, 0..=1.
    pub max_p: f64,
    /// Weight of the newest sample in the average.
    pub weight: RedWeight,
    /// Mean packet size in bytes, the unit of thresholds and idle times.
    pub mean_packet: u16,
    /// Unit of the average (ns-2 `queue_in_bytes_`).
    pub measure: RedMeasure,
    /// Whether the drop probability is proportional to packet size over mean packet size (ns-2 `bytes_`).
    pub by_size: bool,
    /// Spacing of drops.
    pub spacing: RedSpacing,
    /// Whether the probability rises to 1 at twice the upper threshold, instead of jumping there at the threshold.
    pub gentle: bool,
    /// Adaptation of `max_p`, if any; `max_p` is then the initial value.
    pub adaptive: Option<RedAdaptive>,
    /// Mark packets of ECN-capable senders instead of dropping them (RFC 3168), unless the drop is forced.
    pub ecn: bool,
    /// Mark only while the probability by the average is at most this value (ns-2 `mark_p_`). `None`: mark at any
    /// probability below the upper threshold, where drops are forced (ns-2 `use_mark_p_` off).
    pub mark_below: Option<f64>,
    /// Which packet is dropped when a drop is forced.
    pub victim: RedVictim,
    /// Which description of the algorithm applies.
    pub dialect: RedDialect,
}

impl RedConfig {
    /// Floyd & Jacobson 1993, with the parameters of its simulations: thresholds 5 and 15, `max_p`
    /// 1/50, weight 0.002.
    pub fn classic() -> RedConfig {
        RedConfig {
            thresholds: RedThresholds::Packets {
                min: 5.0,
                max: 15.0,
            },
            max_p: 0.02,
            weight: RedWeight::Fixed(0.002),
            mean_packet: 500,
            measure: RedMeasure::Packets,
            by_size: false,
            spacing: RedSpacing::Uniform,
            gentle: false,
            adaptive: None,
            ecn: false,
            mark_below: None,
            victim: RedVictim::Arriving,
            dialect: RedDialect::Paper,
        }
    }

    /// Floyd, Gummadi & Shenker 2001: thresholds from a target delay of 5 ms, a weight with a time constant of one
    /// second, gentle, `max_p` between 0.01 and 0.5.
    pub fn adaptive() -> RedConfig {
        RedConfig {
            thresholds: RedThresholds::Delay(Dur::from_millis(5)),
            max_p: 0.1,
            weight: RedWeight::Rule(RedWeightRule::OneSecond),
            gentle: true,
            adaptive: Some(RedAdaptive::default()),
            ..RedConfig::classic()
        }
    }

    /// ns-2 as of 1999-2000, re-created with the switches of ns-2.35: thresholds 5 and 15 packets, weight 0.002, not
    /// gentle, in packets.
    pub fn ns2_era() -> RedConfig {
        RedConfig {
            max_p: 0.1, // linterm_ 10
            spacing: RedSpacing::Wait,
            dialect: RedDialect::Ns2,
            ..RedConfig::classic()
        }
    }

    /// ns-2.35 as released: automatic thresholds and weight, gentle, in bytes.
    pub fn ns2_modern() -> RedConfig {
        RedConfig {
            thresholds: RedThresholds::Delay(Dur::from_millis(5)), // targetdelay_
            weight: RedWeight::Rule(RedWeightRule::TenRoundTrips), // q_weight_ -1
            measure: RedMeasure::Bytes,
            by_size: true,
            gentle: true,
            mark_below: Some(0.1),
            ..RedConfig::ns2_era()
        }
    }
}

impl Default for RedConfig {
    fn default() -> Self {
        RedConfig::classic()
    }
}

/// RED's two thresholds of the average queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedThresholds {
    /// In packets of mean size, `min <= max`.
    Packets {
        /// No packet is dropped below this average.
        min: f64,
        /// Every packet is dropped from this average on, unless gentle.
        max: f64,
    },
    /// The lower threshold is half of what the link sends in this time, at least 5 packets. The upper one is three
    /// times the lower one (Floyd, Gummadi & Shenker 2001; ns-2 with `thresh_` 0).
    Delay(Dur),
}

impl RedThresholds {
    /// Both thresholds in packets, for a link that sends `packet_rate` mean packets per second.
    pub(super) fn packets(self, packet_rate: f64) -> (f64, f64) {
        match self {
            RedThresholds::Packets { min, max } => (min, max),
            RedThresholds::Delay(target) => {
                let min = (target.as_secs_f64() * packet_rate / 2.0).max(5.0);
                (min, 3.0 * min)
            }
        }
    }
}

/// Weight of the newest sample in the average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Weight")]
pub enum RedWeight {
    /// This number.
    Fixed(f64),
    /// What a rule makes of the link.
    Rule(RedWeightRule),
}

/// How the weight follows from the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WeightRule")]
pub enum RedWeightRule {
    /// The average looks back over a second.
    // 1 - exp(-1/C), where C is the link's rate in mean packets per second (Floyd, Gummadi & Shenker 2001; ns-2
    // `q_weight_` 0).
    OneSecond,
    /// The average looks back over ten round trips of three link delays, at least 100ms each.
    // A round trip also has three transmissions (ns-2 `q_weight_` -1).
    TenRoundTrips,
}

impl RedWeight {
    /// The weight for a link with `packet_rate` mean packets per second and propagation delay `delay`.
    pub(super) fn value(self, packet_rate: f64, delay: Dur) -> f64 {
        let samples = match self {
            RedWeight::Fixed(w) => return w,
            RedWeight::Rule(RedWeightRule::OneSecond) => packet_rate,
            RedWeight::Rule(RedWeightRule::TenRoundTrips) => {
                let round_trip = (3.0 * (delay.as_secs_f64() + 1.0 / packet_rate)).max(0.1);
                10.0 * round_trip * packet_rate
            }
        };
        1.0 - libm::exp(-1.0 / samples)
    }
}

/// What RED averages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Measure")]
pub enum RedMeasure {
    /// Packets waiting.
    #[default]
    Packets,
    /// Bytes waiting.
    Bytes,
}

/// How RED spaces its drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Spacing")]
pub enum RedSpacing {
    /// Independent drops: gaps are geometric (Floyd & Jacobson 1993, section 7, method 1).
    Geometric,
    /// Uniform gaps (method 2, the paper's choice).
    #[default]
    Uniform,
    /// No drop within 1/p packets of the last one, then uniform gaps (ns-2 `wait_`).
    Wait,
}

/// Which packet RED drops when the queue is full or the average is too high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Victim")]
pub enum RedVictim {
    /// The arriving packet.
    #[default]
    Arriving,
    /// The second packet in the queue (ns-2 `drop_front_`).
    Front,
    /// A random packet (ns-2 `drop_rand_`).
    Random,
}

/// The description that RED follows. The two count packets since the last drop from different starting values. They
/// also use sizes and idle times differently, and only ns-2 spares a queue of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedDialect {
    /// Floyd & Jacobson 1993, figure 2.
    #[default]
    Paper,
    /// ns-2.35, queue/red.cc.
    Ns2,
}

/// How adaptive RED moves its probability.
// Floyd, Gummadi & Shenker 2001.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Adaptation")]
pub struct RedAdaptive {
    /// How often it is looked at.
    pub interval: Dur,
    /// Added where the average is too long, but no more than a quarter of the probability.
    pub increase: f64,
    /// Factor where the average is too short.
    pub decrease: f64,
    /// Greatest probability.
    pub ceiling: f64,
    /// Least probability.
    // `None`, which no file says, = 0.01 or, on fast links, 80 kbit/s over the link's rate (ns-2 `bottom_` 0). A
    // connection that sends one 1000-byte packet per round trip of 100 ms has that rate.
    #[schemars(with = "f64")]
    pub floor: Option<f64>,
}

impl Default for RedAdaptive {
    fn default() -> Self {
        RedAdaptive {
            interval: Dur::from_millis(500),
            increase: 0.01,
            decrease: 0.9,
            ceiling: 0.5,
            floor: Some(0.01),
        }
    }
}

impl RedAdaptive {
    pub(super) fn floor(&self, rate: Rate) -> f64 {
        self.floor
            .unwrap_or_else(|| (80_000.0 / rate.bps() as f64).min(0.01))
    }
}
