//! Kinds of traffic, one file for each: keys, checks, input files, workload, offered load, application classes and
//! measures.
//!
//! A kind consists of two types: its keys in a file, which implement [`Keys`], and its form in a run, which
//! implements [`Plays`]. The list below names all keys. Other code knows kinds by the methods of these traits.

mod active;
mod contract;
mod dash;
mod defaults;
mod energy;
mod greedy;
mod har;
mod imitation;
mod input;
mod learnt;
mod mix;
mod none;
mod on_off;
mod pace;
mod packets;
mod page;
mod playing;
mod probe;
mod program;
mod replay;
mod sessions;
mod stream;
mod swarm;
mod voice;
mod web;

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use swell_base::Dur;

pub use crate::captures::Trace;
pub use crate::file::PathProperties;
pub(crate) use crate::file::findings::Slot;
pub use crate::role::Role;
pub use active::Active;
pub(crate) use contract::{
    Asked, Complaint, Files, Information, Native, Pace, Resolving, Seen, Source,
};
pub use contract::{
    Crossed, Fetches, Keys, Machine, Offered, Plausible, Plays, Setting, Shown, Traffic,
};
pub use dash::{Choice, Dash};
pub use energy::Energy;
pub use greedy::{Delays, Greedy};
pub use imitation::Imitation;
pub use input::{Data, Input};
pub use learnt::{Learnt, MOST_COPIES};
pub use mix::Mix;
pub use none::Nothing;
pub use on_off::{OnOff, Size};
#[cfg(test)]
pub(crate) use packets::PacketsTraffic;
pub use packets::{Cbr, Parametric, Poisson, Process};
pub use page::{Page, Protocol};
pub use playing::Playing;
pub use probe::{Probe, Tool};
pub use program::keys::{Client, CommandLine, Measure, Peer, Program, Server};
pub use replay::Replay;
pub(crate) use replay::significant;
pub use sessions::{Sessions, SessionsTraffic};
pub use stream::MediaStream;
pub use swarm::{PeerLink, Swarm};
pub use voice::{Codec, Voice};
pub use web::{ConnectionUse, Objects, Web};

use crate::file::{LoadBasis, RateSpec};

/// Defines the kinds. Each entry has the name in files, the possible roles and the keys.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $roles:ident, $keys:ty;)*) => {
        /// Traffic, as a file says it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Part {
            $($(#[$doc])* $variant($keys),)*
        }

        impl Part {
            /// The kind, as the file writes it.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Part::$variant(_) => $name,)*
                }
            }

            /// Its keys.
            pub(crate) fn keys(&self) -> &(dyn Keys + 'static) {
                match self {
                    $(Part::$variant(keys) => keys,)*
                }
            }

            /// Its keys, for changes.
            pub(crate) fn keys_mut(&mut self) -> &mut dyn Keys {
                match self {
                    $(Part::$variant(keys) => keys,)*
                }
            }
        }

        /// Every kind.
        fn all() -> impl Iterator<Item = Kind> {
            [$(Kind {
                name: $name,
                roles: Roles::$roles,
                label: <$keys>::label().unwrap_or($name),
                substitute: <$keys>::substitute(),
                load_keys: <$keys>::load_keys(),
            }),*].into_iter()
        }
    };
}

/// The roles that a kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roles {
    Either,
    Foreground,
    Background,
}

/// Properties of a kind that do not depend on its keys.
pub(crate) struct Kind {
    /// Its name in files.
    pub name: &'static str,
    roles: Roles,
    label: &'static str,
    substitute: Option<Information>,
    /// The keys besides `rate` that determine its load.
    pub load_keys: &'static [&'static str],
}

/// The name in sentences of the kind that files call `kind`.
pub fn label(kind: &str) -> &str {
    all().find(|k| k.name == kind).map_or(kind, |k| k.label)
}

/// The keys besides `rate` that determine the load of the kind that files call `kind`.
pub(crate) fn load_keys(kind: &str) -> &'static [&'static str] {
    all().find(|k| k.name == kind).map_or(&[], |k| k.load_keys)
}

/// The kinds that a suite compares with a learnt background, with what must be known to generate each. Those for which
/// least must be known come first.
pub(crate) fn substitutes() -> Vec<(Information, Kind)> {
    let mut found: Vec<_> = all().filter_map(|k| Some((k.substitute?, k))).collect();
    found.sort_by_key(|&(information, _)| information);
    found
}

kinds! {
    /// Clients that fetch objects from a server, one after the other.
    Web = "web", Either, Web;
    /// A real program.
    Program = "program", Foreground, Program;
    /// No traffic: as a background what slowdowns are measured against, as a foreground what shows the background by
    /// itself.
    None = "none", Either, Nothing;
    /// Traffic from a learnt model: users who wait for what they asked for.
    Learnt = "learnt", Background, Learnt;
    /// Packets of one size at exponential intervals.
    Poisson = "poisson", Either, Poisson;
    /// Packets of one size at equal intervals.
    Cbr = "cbr", Either, Cbr;
    /// Sessions of files, from a flow-level model.
    Sessions = "sessions", Background, Sessions;
    /// Sessions learnt from the flow records of another background, as a router would export them.
    Imitation = "imitation", Background, Imitation;
    /// The packets of a capture at their own times.
    Replay = "replay", Either, Replay;
    /// Endless connections.
    Greedy = "greedy", Either, Greedy;
    /// A client of a file-sharing swarm, and its peers: blocks both ways.
    Swarm = "swarm", Either, Swarm;
    /// Packets of many on/off sources: self-similar together.
    OnOff = "on-off", Either, OnOff;
    /// Voice calls, rated by the E-model.
    Voice = "voice", Either, Voice;
    /// Media streams, each watched with a play-out buffer.
    Stream = "stream", Foreground, MediaStream;
    /// Media in segments over TCP, at bitrates that the player chooses.
    Dash = "dash", Foreground, Dash;
    /// Browsers that load pages of many objects.
    Page = "page", Either, Page;
    /// A tool that estimates how much of its path is free.
    Probe = "probe", Foreground, Probe;
    /// Several backgrounds at once.
    Mix = "mix", Background, Mix;
}

impl Deref for Part {
    type Target = dyn Keys;
    fn deref(&self) -> &(dyn Keys + 'static) {
        self.keys()
    }
}

impl Part {
    /// The share of the time from `from` to `to` in which it sends.
    pub fn share(&self, from: Dur, to: Dur) -> f64 {
        self.active().map_or(1.0, |active| active.share(from, to))
    }

    /// The name of the background whose measured rates this one takes, if it does.
    pub fn matches(&self) -> Option<&str> {
        match self.rate()? {
            RateSpec::Match(name) => Some(name),
            RateSpec::Fixed(_) => None,
        }
    }

    /// The other backgrounds that it depends on: its parts, and the one whose rate it takes.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &String> {
        let taken = match self.rate() {
            Some(RateSpec::Match(name)) => Some(name),
            _ => None,
        };
        self.keys().parts().iter().chain(taken)
    }

    /// Whether calibration scales its sessions, its speed or its packets to reach its rate.
    pub fn is_scaled(&self) -> bool {
        let exact = self.keys().pace() == Pace::Factor;
        self.rate().is_some() && (!exact || self.load() == LoadBasis::Carried)
    }

    /// Whether its rate means the offered or the carried load.
    pub fn load(&self) -> LoadBasis {
        self.keys().load().unwrap_or(match self.is_open_loop() {
            true => LoadBasis::Offered,
            false => LoadBasis::Carried,
        })
    }

    /// Whether it must be measured alone even if nothing matches it and it is not scaled, because its bursts may lose
    /// packets.
    pub(crate) fn may_lose(&self) -> bool {
        self.keys().is_bursty() && self.is_open_loop()
    }

    /// Whether it is a model of real traffic, whose dependencies may be dropped one by one.
    pub fn is_model(&self) -> bool {
        self.dropped().is_some()
    }

    /// Whether it has its own rate, which another background could take.
    pub(crate) fn has_rate(&self) -> bool {
        self.matches().is_none() && self.keys().rateless().is_none()
    }

    /// One-way delay of the access path on each side, if the file gives one; the mean of two that differ.
    pub fn delay(&self, network: &crate::file::Network) -> Option<Dur> {
        self.keys().delay(network.access_delay())
    }
}

/// Defines a wrapper of `Part` for a role. Its schema has only the kinds with this role.
macro_rules! role {
    ($(#[$doc:meta])* $name:ident, $role:ident, $text:literal, $key:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Part);

        impl $name {
            /// A short description for the report.
            pub fn describe(&self) -> String {
                self.0.keys().describe(Role::$role)
            }
        }

        impl Deref for $name {
            type Target = Part;
            fn deref(&self) -> &Part {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Part {
                &mut self.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $key.into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                of_role(Part::json_schema(generator), Roles::$role, $text)
            }
        }
    };
}

role!(
    /// An application under study.
    Foreground, Foreground, "An application under study.", "Foreground"
);
role!(
    /// Background traffic.
    Background, Background, "Background traffic.", "Background"
);

/// The schema of parts, restricted to the kinds with this role.
fn of_role(mut schema: Schema, role: Roles, description: &str) -> Schema {
    let may = |kind: &str| {
        let found = all().find(|k| k.name == kind);
        found.is_some_and(|k| k.roles == Roles::Either || k.roles == role)
    };
    if let Some(all) = schema.get_mut("oneOf").and_then(|v| v.as_array_mut()) {
        all.retain(|one| {
            let kind = one["properties"]["kind"]["const"].as_str();
            kind.is_some_and(may)
        });
    }
    schema.insert("description".into(), description.into());
    schema
}
