//! The background traffic.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate, UnitError};

use super::{Greedy, OnOff, Replay, TcpSettings};

/// Background traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Background {
    /// No background: what slowdowns are measured against.
    None(Nothing),
    /// Traffic from a learnt model: users who wait for what they asked for.
    Learnt(Learnt),
    /// Packets of one size at exponential intervals.
    Poisson(Parametric),
    /// Packets of one size at equal intervals.
    Cbr(Parametric),
    /// Sessions of files, from a flow-level model.
    Sessions(Sessions),
    /// The packets of a capture at their own times.
    Replay(Replay),
    /// Endless connections.
    Greedy(Greedy),
    /// Packets of many on/off sources: self-similar together.
    OnOff(OnOff),
}

impl Background {
    /// The name it goes by in tables and pictures.
    pub fn name(&self) -> &str {
        match self {
            Background::None(b) => &b.name,
            Background::Learnt(b) => &b.name,
            Background::Poisson(b) | Background::Cbr(b) => &b.name,
            Background::Sessions(b) => &b.name,
            Background::Replay(b) => &b.name,
            Background::Greedy(b) => &b.name,
            Background::OnOff(b) => &b.name,
        }
    }
    /// The kind, as the file writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Background::None(_) => "none",
            Background::Learnt(_) => "learnt",
            Background::Poisson(_) => "poisson",
            Background::Cbr(_) => "cbr",
            Background::Sessions(_) => "sessions",
            Background::Replay(_) => "replay",
            Background::Greedy(_) => "greedy",
            Background::OnOff(_) => "on-off",
        }
    }
    /// The name of the background whose measured rates this one takes, if it does.
    pub fn matches(&self) -> Option<&str> {
        match self.rate()? {
            RateSpec::Match(name) => Some(name),
            RateSpec::Fixed(_) => None,
        }
    }
    /// The rate of the down direction, where the file says one: fixed, or another background's.
    pub fn rate(&self) -> Option<&RateSpec> {
        match self {
            Background::Learnt(b) => b.rate.as_ref(),
            Background::Sessions(b) => b.rate.as_ref(),
            Background::Replay(b) => b.rate.as_ref(),
            Background::Poisson(b) | Background::Cbr(b) => Some(&b.rate),
            Background::OnOff(b) => Some(&b.rate),
            Background::None(_) | Background::Greedy(_) => None,
        }
    }
    /// Whether its sessions, its speed or its packets are scaled until it has its rate.
    pub fn is_scaled(&self) -> bool {
        let packets = matches!(
            self,
            Background::Poisson(_) | Background::Cbr(_) | Background::OnOff(_)
        );
        self.rate().is_some() && (!packets || self.load() == LoadBasis::Carried)
    }
    /// Whether it sends what it sends whatever happens to it.
    pub fn is_open_loop(&self) -> bool {
        match self {
            Background::None(_) | Background::Learnt(_) | Background::Sessions(_) => false,
            Background::Greedy(_) => false,
            Background::Poisson(b) | Background::Cbr(b) => b.transport == Transport::Udp,
            Background::Replay(b) => b.transport == Transport::Udp,
            Background::OnOff(_) => true,
        }
    }
    /// What its rate is the rate of.
    pub fn load(&self) -> LoadBasis {
        self.said().unwrap_or(match self.is_open_loop() {
            true => LoadBasis::Offered,
            false => LoadBasis::Carried,
        })
    }
    fn said(&self) -> Option<LoadBasis> {
        match self {
            Background::Learnt(b) => b.load,
            Background::Sessions(b) => b.load,
            Background::Replay(b) => b.load,
            Background::Poisson(b) | Background::Cbr(b) => b.load,
            Background::OnOff(b) => b.load,
            Background::None(_) | Background::Greedy(_) => None,
        }
    }
    /// Whether the file says what its rate is the rate of.
    pub(super) fn load_said(&self) -> bool {
        self.said().is_some()
    }
    /// Whether it has a rate of its own, that another background could take.
    pub(super) fn has_rate(&self) -> bool {
        self.matches().is_none() && !matches!(self, Background::None(_) | Background::Greedy(_))
    }
}

/// No background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {
    /// The name it goes by in tables and pictures.
    pub name: String,
}

/// Traffic from a learnt model: users who wait for what they asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// A bundled model by name (`swell models` lists them), or the path of a model file, relative
    /// to the experiment file.
    pub model: String,
    /// Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    /// `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what sessions offer or what the network carries of it. Default: carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sessions per second, as a multiple of the model's. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<f64>,
    /// Response sizes, as a multiple of the model's.
    #[serde(default = "one")]
    pub response: f64,
    /// Request sizes, as a multiple of the model's.
    #[serde(default = "one")]
    pub request: f64,
    /// Think times, as a multiple of the model's; 0 for users that never pause.
    #[serde(default = "one")]
    pub think: f64,
    /// Round-trip propagation delay of every path. Default: the model's, host by host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Dur>,
    /// Access capacity of every client, both directions. Default: the model's, host by host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// Where in the model's trace a run starts. Default: drawn anew by every seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Dur>,
    /// Dependencies of the model to break, to see what they do.
    #[serde(default)]
    pub independent: Vec<Independence>,
    /// The TCP that users and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
}

/// Sessions of files and sources of datagrams from a flow-level model, after Harpoon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// The path of a flow-level model (`swell learn` of flow records), relative to the experiment file.
    pub model: String,
    /// Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    /// `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what sessions offer or what the network carries of it. Default: carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sessions, as a multiple of the model's. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<f64>,
    /// How many times faster the model's intervals follow one another; the rate stays.
    #[serde(default = "one")]
    pub compression: f64,
    /// File sizes, as a multiple of the model's.
    #[serde(default = "one")]
    pub sizes: f64,
    /// Waits from one file to the next, as a multiple of the model's.
    #[serde(default = "one")]
    pub gaps: f64,
    /// The model's interval to begin with, from 0; after the last comes the first.
    #[serde(default)]
    pub first: u32,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// The TCP that clients and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
}

/// A dependency of the model that can be broken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Independence {
    /// Response size on request size: responses change places within their class.
    ResponseOnRequest,
    /// Sizes on class: (request, response) pairs change places across all TCP classes.
    SizeOnClass,
    /// Think times on sizes: they change places within their class.
    ThinkOnSize,
    /// Client path on user and server path on connection: paths change places.
    PathOnUser,
    /// What one session does on its connections: exchanges change places within their class.
    WithinSession,
    /// Path capacity and loss on round-trip time: they change places among the paths of a side.
    CapacityOnRtt,
}

/// Packets of one size, both directions, at intervals that depend on nothing. As a foreground they flow from
/// the beginning of the run, and take no rate from a background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parametric {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    /// measured mean rates of that background, both directions.
    pub rate: RateSpec,
    /// With `match:NAME`: the mean rates of that background over all replications, or those of the
    /// replication with the same seed, so that runs make pairs of equal load.
    #[serde(default, rename = "match", skip_serializing_if = "super::is_default")]
    pub pairing: Pairing,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered, what is sent;
    /// over TCP carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Mean rate of the up direction. Default: none, or what `match:NAME` measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_up: Option<Rate>,
    /// What carries the packets.
    #[serde(default)]
    pub transport: Transport,
    /// Sources per direction, which take turns: over TCP, connections. The packets of all together
    /// have the rate and the intervals.
    #[serde(default = "sources")]
    pub sources: u32,
    /// Network-layer size of a packet.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Whether each source has intervals of its own, independent of the others', with an even share of
    /// the rate. Default: all follow one schedule and take turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent: bool,
    /// One-way delay of the access path on each side of the bottleneck.
    #[serde(default = "delay")]
    pub delay: Dur,
    /// One-way delay of the access path on the right, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_right: Option<Dur>,
    /// Capacity of every access path on the left, both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// The TCP that carries the packets, where TCP does.
    #[serde(default)]
    pub tcp: TcpSettings,
}

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

fn one() -> f64 {
    1.0
}

fn sources() -> u32 {
    10
}

fn packet() -> Bytes {
    Bytes(1000)
}

/// One-way access delay on each side of the bottleneck where the file does not say.
pub(crate) const ACCESS_DELAY: Dur = Dur::from_millis(5);

pub(super) fn delay() -> Dur {
    ACCESS_DELAY
}

/// What carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Datagrams: nothing is repeated, nothing slows down.
    #[default]
    Udp,
    /// Long TCP connections, written to at the packets' instants.
    Tcp,
}

/// A rate, or the measured rate of another background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateSpec {
    /// This rate.
    Fixed(Rate),
    /// The measured mean rates of the background of this name.
    Match(String),
}

impl RateSpec {
    /// The rate, where it is a fixed one; zero where another background's is matched.
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
