//! Rates, the loads that they refer to, and transport protocols.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, UnitError};

/// What a rate is the rate of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBasis {
    /// What its sources send into the network, whatever becomes of it.
    Offered,
    /// What leaves the bottleneck when the background is alone.
    Carried,
}

/// Which of another background's rates are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// The mean over all replications.
    #[default]
    Mean,
    /// Those of the replication with the same seed.
    PerSeed,
}

/// Default one-way access delay on each side of the bottleneck.
pub const ACCESS_DELAY: Dur = Dur::from_millis(5);

/// A rate, or the measured rate of another background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateSpec {
    /// This rate.
    Fixed(Rate),
    /// The measured mean rates of the background of this name.
    Match(String),
}

impl RateSpec {
    /// The rate if it is fixed; zero if it is that of another background.
    pub fn fixed(&self) -> Rate {
        match self {
            RateSpec::Fixed(rate) => *rate,
            RateSpec::Match(_) => Rate::default(),
        }
    }
}

impl FromStr for RateSpec {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<RateSpec, UnitError> {
        match s.trim().strip_prefix("match:") {
            Some(name) => Ok(RateSpec::Match(name.trim().into())),
            None => s.parse().map(RateSpec::Fixed),
        }
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateSpec::Fixed(rate) => rate.fmt(f),
            RateSpec::Match(name) => write!(f, "match:{name}"),
        }
    }
}

impl Serialize for RateSpec {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RateSpec {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<RateSpec, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for RateSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RateSpec".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A rate such as \"5Mbit\", or \"match:NAME\" for the measured mean rates of the background NAME.",
            "type": "string",
            "examples": ["5Mbit", "match:learnt"]
        })
    }
}
