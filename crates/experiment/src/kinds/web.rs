//! Clients that fetch objects.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur};
use swell_workload::WebConfig;

use super::contract::{
    Fetches, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access,
    reads,
};
use super::defaults::one;
use super::{Active, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::measure::{COMPLETION_TIME, FAILURES, Measure, REQUEST_RATE};
use crate::simulate::transport::tcp;

/// Allowed number of clients of one part.
const CLIENTS: RangeInclusive<u32> = 1..=100_000;

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
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// The TCP that clients and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

fn request() -> Bytes {
    Bytes(300)
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

impl Keys for Web {
    reads!(name, active, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        if self.object.sizes().is_empty() {
            found.add(at.key("object"), "an empty list of sizes", "");
        }
        if self.object.sizes().contains(&Bytes(0)) {
            found.add(at.key("object"), "an object of 0 bytes never arrives", "");
        }
        if self.request == Bytes(0) {
            found.add(
                at.key("request"),
                "a request of 0 bytes asks for nothing",
                "",
            );
        }
        if !CLIENTS.contains(&self.clients) {
            found.add(
                at.key("clients"),
                format!("{} clients are out of range", self.clients),
                "write 1 to 100000",
            );
        }
        if self.count == Some(0) {
            found.add(
                at.key("count"),
                "0 requests are nothing to measure",
                "write 1 or more",
            );
        }
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("waits for its answers: it has no rate to match")
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.delay))
    }

    fn measures(&self) -> Vec<Measure> {
        vec![COMPLETION_TIME, REQUEST_RATE.never_alone(), FAILURES]
    }

    fn sizes(&self) -> &[Bytes] {
        self.object.sizes()
    }

    fn clients(&self) -> u32 {
        self.clients
    }

    fn describe(&self, _: Role) -> String {
        let all = self.object.sizes();
        let sizes: Vec<String> = all.iter().take(4).map(Bytes::to_string).collect();
        let more = if all.len() > 4 { ", …" } else { "" };
        let think = match self.think {
            Dur::ZERO => "back to back".to_owned(),
            think => format!("{think} apart"),
        };
        let connection = match self.connection {
            ConnectionUse::New => "a new connection each",
            ConnectionUse::Kept => "one kept connection",
        };
        let clients = if self.clients == 1 {
            "client"
        } else {
            "clients"
        };
        format!(
            "web: {} {clients}, objects of {}{more}, {think}, {connection}",
            self.clients,
            sizes.join(", ")
        )
    }
}

impl WithDelay<Web> {
    /// The clients, whose first requests are sent at `start`.
    fn clients(&self, start: Dur) -> swell_workload::Web {
        let (web, access) = (&self.keys, access(self.delay));
        swell_workload::Web::new(WebConfig {
            clients: web.clients,
            objects: web.object.sizes().to_vec(),
            request: web.request,
            server_think: Dur::ZERO,
            think: web.think,
            keep: web.connection == ConnectionUse::Kept,
            count: web.count.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            start,
            client: access,
            server: access,
        })
    }
}

impl Plays for WithDelay<Web> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let clients = match at.role {
            Role::Foreground => self.clients(at.warmup),
            Role::Background => self
                .clients(Dur::ZERO)
                .spread(self.keys.think, at.own_seed()),
        };
        Ok(Some((Box::new(clients), tcp(&self.keys.tcp))))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        Some((Box::new(self.clients(at.warmup)), tcp(&self.keys.tcp)))
    }

    fn class(&self, _: u32) -> String {
        "web".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn fetches(&self) -> Option<Fetches> {
        Some(Fetches {
            clients: self.keys.clients,
            sizes: self.keys.object.sizes().to_vec(),
            think: self.keys.think,
            count: self.keys.count,
        })
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let down = at.way.rates[1].bps() as f64;
        Plausible::of([down * 0.01, down * 0.5], 0.5)
    }
}
