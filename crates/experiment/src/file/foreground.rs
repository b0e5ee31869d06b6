//! The applications under study.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur};

use super::{Greedy, Nothing, Parametric, Program, TcpSettings};

/// An application under study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Foreground {
    /// Clients that fetch objects from a server, one after the other.
    Web(Web),
    /// A real program.
    Program(Program),
    /// Packets of one size at exponential intervals, whose throughput and loss are studied.
    Poisson(Parametric),
    /// Packets of one size at equal intervals.
    Cbr(Parametric),
    /// Endless connections: what they take, and what they do to the background, is studied.
    Greedy(Greedy),
    /// No foreground: what the background is like by itself.
    None(Nothing),
}

impl Foreground {
    /// The name it goes by in tables and pictures.
    pub fn name(&self) -> &str {
        match self {
            Foreground::Web(web) => &web.name,
            Foreground::Program(program) => &program.name,
            Foreground::Poisson(packets) | Foreground::Cbr(packets) => &packets.name,
            Foreground::Greedy(greedy) => &greedy.name,
            Foreground::None(nothing) => &nothing.name,
        }
    }
    /// One-way delay of the access path on each side, where the file gives one.
    pub fn delay(&self) -> Option<Dur> {
        match self {
            Foreground::Web(web) => web.delay,
            Foreground::Program(program) => program.delay,
            Foreground::Greedy(greedy) => Some(greedy.delay.longest()),
            Foreground::None(_) => None,
            // On average: a round trip crosses both sides twice.
            Foreground::Poisson(p) | Foreground::Cbr(p) => {
                Some((p.delay + p.delay_right.unwrap_or(p.delay)).scale(0.5))
            }
        }
    }
}

/// Clients that fetch objects from a server, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Size of the objects; of several, each request takes the next in turn.
    pub object: Objects,
    /// Bytes of a request.
    #[serde(default = "request")]
    pub request: Bytes,
    /// Clients, each on its own access path.
    #[serde(default = "one")]
    pub clients: u32,
    /// Pause between the end of one object and the next request.
    #[serde(default)]
    pub think: Dur,
    /// Whether each request opens a connection.
    #[serde(default)]
    pub connection: ConnectionUse,
    /// Requests per client. Default: as many as fit into the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or 5ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// The TCP that clients and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
}

fn request() -> Bytes {
    Bytes(300)
}

fn one() -> u32 {
    1
}

/// Whether each request opens a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionUse {
    /// A new connection per request.
    #[default]
    New,
    /// One connection per client, kept.
    Kept,
}

/// Object sizes: one, or several taken in turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Objects {
    /// Every object has this size.
    One(Bytes),
    /// Each request takes the next size, round and round.
    Several(Vec<Bytes>),
}

impl Objects {
    /// The sizes, in turn.
    pub fn sizes(&self) -> &[Bytes] {
        match self {
            Objects::One(size) => std::slice::from_ref(size),
            Objects::Several(sizes) => sizes,
        }
    }
}

impl<'de> Deserialize<'de> for Objects {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Objects, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Objects;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"1MB\", or a list of sizes")
            }
            fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Objects, E> {
                s.parse().map(Objects::One).map_err(E::custom)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Objects, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq))
                    .map(Objects::Several)
            }
        }
        d.deserialize_any(Visitor)
    }
}

impl JsonSchema for Objects {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Objects".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<Bytes>();
        schemars::json_schema!({
            "description": "A size such as \"1MB\", or a list of sizes taken in turn.",
            "anyOf": [size, {"type": "array", "items": size}]
        })
    }
}
