//! Kinds of traffic, one file each: its keys, its checks, what it reads, how it is built, what it offers, its
//! classes and its measures.
//!
//! A kind is two types: what a file says of it, which implements [`Keys`], and what a run makes of it, which
//! implements [`Plays`]. The list below joins them. Nothing else in the workspace tells kinds apart: what must be
//! known of one is a method of these traits.

mod active;
mod contract;
mod dash;
mod energy;
mod greedy;
mod har;
mod imitation;
mod learnt;
mod mix;
mod none;
mod on_off;
mod packets;
mod page;
mod probe;
mod program;
mod replay;
mod sessions;
mod stream;
mod voice;
mod web;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Warning};

pub use active::Active;
pub(crate) use contract::{
    Asked, Complaint, Crossed, Fetches, Files, Keys, Pace, Plausible, Plays, Resolving, Seen, Slot,
    Source,
};
pub use contract::{Data, Input, Machine, Role, Setting, Shown, Way};
pub use dash::{Choice, Dash, DashTraffic};
pub use energy::Energy;
pub use greedy::{Delays, Direction, Greedy};
pub use imitation::Imitation;
pub use learnt::{Learnt, LearntTraffic, MOST_COPIES};
pub use mix::Mix;
pub use none::Nothing;
pub use on_off::{OnOff, Size};
pub use packets::{Cbr, PacketsTraffic, Parametric, Poisson, Process};
pub use page::{Page, PageTraffic, Protocol};
pub use probe::{Probe, ProbeTraffic, Tool};
pub use program::{Client, CommandLine, Measure, Peer, Place, Program, ProgramTraffic, Server};
pub use replay::{Replay, ReplayTraffic, Trace};
pub use sessions::{Sessions, SessionsTraffic};
pub use stream::{MediaStream, StreamTraffic};
pub use voice::{Codec, Voice, VoiceTraffic};
pub use web::{ConnectionUse, Objects, Web, WebTraffic};

use crate::backend::{Offered, RunError};
use crate::file::{Hop, LoadBasis, RateSpec, Route};
use crate::observe::Observations;
use crate::store::Measured;

/// The list of kinds: the name in files, what it may be, its keys, and what a run makes of them.
macro_rules! kinds {
    (@as $value:ident, $traffic:ty) => { $value };
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $roles:ident, $keys:ty $(=> $traffic:ty)?;)*) => {
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

            fn keys(&self) -> &dyn Keys {
                match self {
                    $(Part::$variant(keys) => keys,)*
                }
            }

            fn keys_mut(&mut self) -> &mut dyn Keys {
                match self {
                    $(Part::$variant(keys) => keys,)*
                }
            }
        }

        /// Traffic in a run, everything said.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Traffic {
            $($(
                #[doc = concat!("Of kind `", $name, "`.")]
                $variant($traffic),
            )?)*
        }

        impl Traffic {
            fn plays(&self) -> &dyn Plays {
                match self {
                    $($(Traffic::$variant(traffic) => kinds!(@as traffic, $traffic),)?)*
                }
            }
        }

        /// Every kind, and what it may be.
        const KINDS: &[(&str, Roles)] = &[$(($name, Roles::$roles)),*];
    };
}

/// What a kind may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roles {
    Either,
    Foreground,
    Background,
}

kinds! {
    /// Clients that fetch objects from a server, one after the other.
    Web = "web", Either, Web => WebTraffic;
    /// A real program.
    Program = "program", Foreground, Program => ProgramTraffic;
    /// No traffic: as a background what slowdowns are measured against, as a foreground what shows the background by
    /// itself.
    None = "none", Either, Nothing;
    /// Traffic from a learnt model: users who wait for what they asked for.
    Learnt = "learnt", Background, Learnt => LearntTraffic;
    /// Packets of one size at exponential intervals.
    Poisson = "poisson", Either, Poisson => PacketsTraffic;
    /// Packets of one size at equal intervals.
    Cbr = "cbr", Either, Cbr => PacketsTraffic;
    /// Sessions of files, from a flow-level model.
    Sessions = "sessions", Background, Sessions => SessionsTraffic;
    /// Sessions learnt from the flow records of another background, as a router would export them.
    Imitation = "imitation", Background, Imitation;
    /// The packets of a capture at their own times.
    Replay = "replay", Either, Replay => ReplayTraffic;
    /// Endless connections.
    Greedy = "greedy", Either, Greedy => Greedy;
    /// Packets of many on/off sources: self-similar together.
    OnOff = "on-off", Either, OnOff => OnOff;
    /// Voice calls, rated by the E-model.
    Voice = "voice", Either, Voice => VoiceTraffic;
    /// Media streams, each watched with a play-out buffer.
    Stream = "stream", Foreground, MediaStream => StreamTraffic;
    /// Media in segments over TCP, at bitrates that the player chooses.
    Dash = "dash", Foreground, Dash => DashTraffic;
    /// Browsers that load pages of many objects.
    Page = "page", Either, Page => PageTraffic;
    /// A tool that estimates how much of its path is free.
    Probe = "probe", Foreground, Probe => ProbeTraffic;
    /// Several backgrounds at once.
    Mix = "mix", Background, Mix;
}

impl Part {
    /// The name it goes by in tables and pictures.
    pub fn name(&self) -> &str {
        self.keys().name()
    }

    /// The backgrounds that it consists of; none where it is one itself.
    pub fn parts(&self) -> &[String] {
        self.keys().parts()
    }

    /// When it sends, where that is not always.
    pub fn active(&self) -> Option<Active> {
        self.keys().active()
    }

    /// More energy at one timescale, where the file asks for it.
    pub fn energy(&self) -> Option<Energy> {
        self.keys().energy()
    }

    /// Which links it crosses.
    pub fn route(&self) -> Route {
        self.keys().route()
    }

    /// The share of the time from `from` to `to` in which it sends.
    pub(crate) fn share(&self, from: Dur, to: Dur) -> f64 {
        self.active().map_or(1.0, |active| active.share(from, to))
    }

    /// Whether there is no traffic.
    pub fn is_none(&self) -> bool {
        matches!(self, Part::None(_))
    }

    /// The rate of the down direction, where the file says one: fixed, or another background's.
    pub fn rate(&self) -> Option<&RateSpec> {
        self.keys().rate()
    }

    /// The name of the background whose measured rates this one takes, if it does.
    pub fn matches(&self) -> Option<&str> {
        match self.rate()? {
            RateSpec::Match(name) => Some(name),
            RateSpec::Fixed(_) => None,
        }
    }

    /// The other backgrounds that a run of it rests on: its parts, and the one whose rate it takes.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &String> {
        let taken = match self.rate() {
            Some(RateSpec::Match(name)) => Some(name),
            _ => None,
        };
        self.keys().parts().iter().chain(taken)
    }

    /// Whether its sessions, its speed or its packets are scaled until it has its rate.
    pub fn is_scaled(&self) -> bool {
        let exact = self.keys().pace() == Pace::Factor;
        self.rate().is_some() && (!exact || self.load() == LoadBasis::Carried)
    }

    /// Whether it sends what it sends whatever happens to it.
    pub fn is_open_loop(&self) -> bool {
        self.keys().is_open_loop()
    }

    /// What its rate is the rate of.
    pub fn load(&self) -> LoadBasis {
        self.keys().load().unwrap_or(match self.is_open_loop() {
            true => LoadBasis::Offered,
            false => LoadBasis::Carried,
        })
    }

    /// Whether it has to be measured alone although nothing matches it and it is not scaled: bursts may lose packets.
    pub(crate) fn may_lose(&self) -> bool {
        self.keys().is_bursty() && self.is_open_loop()
    }

    /// Whether it stands for real traffic, which parametric backgrounds of the same rate are compared with.
    pub(crate) fn is_model(&self) -> bool {
        matches!(self, Part::Learnt(_))
    }

    /// Whether it has a rate of its own, that another background could take.
    pub(crate) fn has_rate(&self) -> bool {
        self.matches().is_none() && self.keys().rateless().is_none()
    }

    /// One-way delay of the access path on each side, where the file gives one.
    pub fn delay(&self) -> Option<Dur> {
        self.keys().delay()
    }

    /// What is measured of it as a foreground, the most telling first. `waits`: the experiment keeps waits.
    pub fn measures(&self, waits: bool) -> Vec<crate::measure::Measure> {
        self.keys().measures(waits)
    }

    /// The program, where it is a real one.
    pub fn program(&self) -> Option<&Program> {
        self.keys().program()
    }

    /// How many clients, connections or sources it has as a foreground.
    pub fn clients(&self) -> u32 {
        self.keys().clients()
    }

    /// What it reads, as messages name it; `None` where it reads nothing.
    pub fn reads(&self) -> Option<&'static str> {
        self.keys().reads()
    }

    /// How pictures show it as a background.
    pub fn shown(&self) -> Shown {
        self.keys().shown()
    }

    /// What it is to offer up and down, bits per second, where the file or a background that it matches says it
    /// exactly.
    pub fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
        self.keys().fixed_bps(measured)
    }

    /// What a file says of it.
    pub(crate) fn as_keys(&self) -> &dyn Keys {
        self.keys()
    }

    /// The same, to be named anew.
    pub(crate) fn as_keys_mut(&mut self) -> &mut dyn Keys {
        self.keys_mut()
    }
}

impl Traffic {
    /// Its machine; `None` where nothing is sent, or by a real program.
    ///
    /// # Errors
    /// Where it cannot be built.
    pub fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        self.plays().machine(at)
    }

    /// Its machine over kernel sockets, as a foreground whose first request comes at `start`; `None` where only the
    /// simulator has it.
    pub fn over_sockets(&self, start: Dur) -> Option<Machine> {
        self.plays().over_sockets(start)
    }

    /// What it offers between the end of the warm-up and the end of the run, where that is known.
    ///
    /// # Errors
    /// Where it cannot be built.
    pub fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        self.plays().offered(at)
    }

    /// Adds to what was observed of it as a foreground what it cannot know itself. `path` are the links on the way to its
    /// clients.
    pub(crate) fn observed(&self, path: &[Crossed<'_>], observed: &mut Observations) {
        self.plays().observed(path, observed);
    }

    /// Doubts that its description raises.
    pub fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        self.plays().doubts(at)
    }

    /// Independent sources whose streams are numbered.
    pub(crate) fn numbered_sources(&self) -> u32 {
        self.plays().numbered_sources()
    }

    /// Name of the application class with this number.
    pub fn class(&self, index: u32) -> String {
        self.plays().class(index)
    }

    /// The server port of each class, and whether the class uses UDP.
    pub(crate) fn ports(&self) -> Vec<(u16, bool)> {
        self.plays().ports()
    }

    /// The program, where it is a real one.
    pub fn program(&self) -> Option<&Program> {
        self.plays().program()
    }

    /// One-way delay of its access path on the left, the longest of several.
    pub fn delay(&self) -> Dur {
        self.plays().delay()
    }

    /// What made-up runs take a foreground for.
    pub(crate) fn fetches(&self) -> Option<Fetches> {
        self.plays().fetches()
    }

    /// What made-up runs take a background for.
    pub(crate) fn plausible(&self, at: &Setting<'_>) -> Plausible {
        self.plays().plausible(at)
    }
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Playing {
    /// Its name.
    pub name: String,
    /// What it sends.
    pub traffic: Traffic,
    /// When, where that is not always.
    pub active: Option<Active>,
    /// More energy at one timescale.
    pub energy: Option<Energy>,
    /// The links that it crosses, from its clients to its servers.
    pub path: Vec<Hop>,
}

impl Deref for Playing {
    type Target = Traffic;
    fn deref(&self) -> &Traffic {
        &self.traffic
    }
}

impl Playing {
    /// Its machine; `None` where nothing is sent, or by a real program.
    ///
    /// # Errors
    /// Where it cannot be built.
    pub fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let made = match self.active {
            Some(active) => active.machine(&self.traffic, at),
            None => self.traffic.machine(at),
        }?;
        match (made, self.energy) {
            (Some(machine), Some(energy)) => energy.machine(machine, &self.traffic, at).map(Some),
            (made, _) => Ok(made),
        }
    }

    /// What it offers between the end of the warm-up and the end of the run, where that is known.
    ///
    /// # Errors
    /// Where it cannot be built.
    pub fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        match self.active {
            Some(active) => active.offered(&self.traffic, at),
            None => self.traffic.offered(at),
        }
    }
}

/// Wraps a part for a role: the schema has the kinds that the role may have.
macro_rules! role {
    ($(#[$doc:meta])* $name:ident, $role:ident, $text:literal, $key:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Part);

        impl $name {
            /// It in a few words, for the report.
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

/// The schema of parts without the kinds that a role cannot have.
fn of_role(mut schema: Schema, role: Roles, description: &str) -> Schema {
    let may = |kind: &str| {
        let found = KINDS.iter().find(|(name, _)| *name == kind);
        found.is_some_and(|(_, roles)| *roles == Roles::Either || *roles == role)
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
