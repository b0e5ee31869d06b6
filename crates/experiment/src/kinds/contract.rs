//! What a kind of traffic says of itself: as keys of a file ([`Keys`]), and in a run, everything said ([`Plays`]).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use swell_base::{Dur, Rate, Warning};
use swell_tcp::Config;
use swell_traffic::Model;
use swell_traffic::flowlevel::FlowModel;
use swell_workload::{Access, Object, Workload};

use super::{Active, Energy, Program, Trace, Traffic};
use crate::backend::{Offered, RunError};
use crate::exporter::{Exported, Exporter};
use crate::file::check::Findings;
use crate::file::{BackendKind, LoadBasis, RateSpec, Route};
use crate::measure::Measure;
use crate::observe::Observations;
use crate::plan::{Capture, Traces};
use crate::store::{Measured, ModelFacts};

/// A workload, and the TCP it asks for.
pub type Machine = (Box<dyn Workload>, Arc<Config>);

/// What a part of an experiment is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is studied.
    Foreground,
    /// It is what the foregrounds meet.
    Background,
}

impl Role {
    /// As sentences name it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Foreground => "foreground",
            Role::Background => "background",
        }
    }
}

/// How pictures show a background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What others are compared with.
    Reference,
    /// Traffic as it was measured.
    Learnt,
    /// Anything else.
    Other,
}

/// What calibration changes until a background has its rate, with what the file says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// The number of its sessions, as a multiple of the model's.
    Sessions(f64),
    /// The speed at which its packets follow one another.
    Speed(f64),
    /// The rate that the file gives, which is exact already unless the network's share of it counts.
    Factor,
}

impl Pace {
    /// What the file says.
    pub fn given(self) -> Option<f64> {
        match self {
            Pace::Sessions(given) | Pace::Speed(given) => Some(given),
            Pace::Factor => None,
        }
    }

    /// Where calibration writes what it found.
    pub fn place(self, measured: &mut Measured) -> &mut Option<f64> {
        match self {
            Pace::Sessions(_) => &mut measured.sessions,
            Pace::Speed(_) => &mut measured.speed,
            Pace::Factor => &mut measured.factor,
        }
    }
}

/// What a part asks of the link up and down: the key of the file that says so, and the rate.
pub(crate) type Asked = [Option<(&'static str, Rate)>; 2];

/// Where a part stands in a file that is checked.
pub(crate) struct Slot<'f> {
    /// What it is there for.
    pub role: Role,
    /// What runs the experiment.
    pub backend: BackendKind,
    /// Length of a run.
    pub duration: Dur,
    /// The full key of one of its own keys.
    pub key: &'f dyn Fn(&str) -> String,
}

impl Slot<'_> {
    /// The full key of `name`.
    pub fn key(&self, name: &str) -> String {
        (self.key)(name)
    }

    /// Refuses a foreground that only the simulator can play.
    pub fn simulated_only(&self, what: &str, hint: &str, found: &mut Findings) {
        if self.role == Role::Foreground && self.backend != BackendKind::Simulated {
            found.add(self.key("kind"), what, hint);
        }
    }
}

/// What is wrong with a model or a capture, and what helps.
pub(crate) type Complaint = (String, Option<String>);

/// Where a part finds its files.
pub(crate) struct Files<'p> {
    /// What the run directory's copy of a model begins with.
    pub prefix: String,
    /// Paths are relative to this.
    pub base: &'p Path,
    /// What was read already.
    pub known: &'p Traces,
    /// The seed of the first run.
    pub seed: u64,
}

impl Files<'_> {
    /// Where the run directory has a copy of a file of this name. A run directory's own file, resolved there,
    /// names the same place.
    pub fn copy(&self, name: &str) -> String {
        let name = name.strip_prefix(&self.prefix).unwrap_or(name);
        format!("models/{}{name}", self.prefix)
    }
}

/// What a part has read.
#[derive(Clone, Debug)]
pub struct Input {
    /// It.
    pub data: Data,
    /// What the manifest says of it.
    pub facts: ModelFacts,
    /// Its file, to be put into the run directory under this name; `None` for what is bundled, and for captures,
    /// which may be large and private.
    pub copy: Option<(String, Vec<u8>)>,
}

/// A model or a trace.
#[derive(Clone, Debug)]
pub enum Data {
    /// A traffic model.
    Model(Arc<Model>),
    /// A flow-level model.
    Flows(Arc<FlowModel>),
    /// Packets.
    Trace(Arc<Trace>),
    /// Objects of a page.
    Page(Arc<Vec<Object>>),
}

impl Data {
    /// As messages name it.
    pub fn word(&self) -> &'static str {
        match self {
            Data::Model(_) | Data::Flows(_) => "model",
            Data::Trace(_) => "trace",
            Data::Page(_) => "page",
        }
    }
}

/// What is known when a part of a run is given its last numbers.
pub(crate) struct Resolving<'p> {
    /// What it is there for.
    pub role: Role,
    /// What it has read.
    pub input: Option<&'p Data>,
    /// What calibration found, by background.
    pub measured: &'p BTreeMap<String, Measured>,
    /// Which replication.
    pub replication: usize,
    /// What calibration wants, in the unit of its [`Pace`]; `None` leaves what the file says.
    pub pace: Option<f64>,
    /// One-way delay of an access path where the file gives none.
    pub delay: Dur,
}

/// What one background has to see of another.
#[derive(Clone, Copy)]
pub(crate) enum Source<'k> {
    /// Its flow records, exported so.
    Records(&'k Exporter),
    /// Its packets, as they come to the slowest link.
    Packets,
}

/// What it has seen.
pub(crate) enum Seen<'r> {
    /// Flow records.
    Records(&'r Exported),
    /// Packets.
    Packets(Capture),
}

/// A kind of traffic as a file says it.
pub(crate) trait Keys {
    /// The name it goes by in tables and pictures.
    fn name(&self) -> &str;

    /// Refuses impossible values.
    fn check(&self, at: &Slot<'_>, found: &mut Findings);

    /// The rate of the down direction, where the file says one.
    fn rate(&self) -> Option<&RateSpec> {
        None
    }

    /// What the file says its rate is the rate of.
    fn load(&self) -> Option<LoadBasis> {
        None
    }

    /// Why there is no rate that another background could take; `None` where there is one.
    fn rateless(&self) -> Option<&'static str> {
        None
    }

    /// Whether it sends what it sends whatever happens to it.
    fn is_open_loop(&self) -> bool {
        false
    }

    /// Whether it may lose packets with the network to itself, at less than its rate.
    fn is_bursty(&self) -> bool {
        false
    }

    /// Whether what it offers is known before it runs.
    fn foretells(&self) -> bool {
        true
    }

    /// What calibration changes.
    fn pace(&self) -> Pace {
        Pace::Factor
    }

    /// When it sends, where that is not always.
    fn active(&self) -> Option<Active> {
        None
    }

    /// More energy at one timescale, where the file asks for it.
    fn energy(&self) -> Option<Energy> {
        None
    }

    /// Which links it crosses.
    fn route(&self) -> Route {
        Route::default()
    }

    /// The backgrounds that it consists of; none where it is one itself.
    fn parts(&self) -> &[String] {
        &[]
    }

    /// What it asks of the link.
    fn asks(&self) -> Asked {
        // What is matched fits.
        [None, self.rate().map(|rate| ("rate", rate.fixed()))]
    }

    /// Whether nothing makes it slow down, where it asks for something.
    fn is_unresponsive(&self) -> bool {
        false
    }

    /// What it is to offer up and down, where the file or a background that it matches says it exactly.
    fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
        let _ = measured;
        None
    }

    /// One-way delay of its access paths, on average over both sides, where the file gives one.
    fn delay(&self) -> Option<Dur> {
        None
    }

    /// What it reads, as messages name it; `None` where it reads nothing.
    fn reads(&self) -> Option<&'static str> {
        None
    }

    /// Reads what it names, and names it anew for the run directory. What is wrong comes with its key.
    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        let _ = from;
        Ok(None)
    }

    /// The background that it learns from, and what it has to see of that one.
    fn imitates(&self) -> Option<(&str, Source<'_>)> {
        None
    }

    /// What it has learnt of that.
    fn learn(&self, seen: Seen<'_>) -> Result<Input, String> {
        let _ = seen;
        Err("it learns from no other background".into())
    }

    /// The mean rate in the down direction that it has unscaled, bits per second; zero where it has none.
    fn native_bps(
        &self,
        input: Option<&Data>,
        measured: &BTreeMap<String, Measured>,
        seed: u64,
    ) -> f64 {
        let _ = (input, seed);
        match self.rate() {
            Some(RateSpec::Fixed(rate)) => rate.bps() as f64,
            Some(RateSpec::Match(other)) => measured.get(other).map_or(0.0, |m| m.down_bps),
            None => 0.0,
        }
    }

    /// It in one run; `None` where what it needs is not there.
    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic>;

    /// What is measured of it as a foreground, the most telling first. `waits`: the experiment keeps waits.
    fn measures(&self, waits: bool) -> Vec<Measure>;

    /// The program, where it is a real one.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// How many clients, connections or sources it has as a foreground.
    fn clients(&self) -> u32 {
        1
    }

    /// It in a few words, for the report.
    fn describe(&self, role: Role) -> String;

    /// How pictures show it as a background.
    fn shown(&self) -> Shown {
        Shown::Other
    }
}

/// Methods of [`Keys`] that read the key of their name.
macro_rules! reads {
    ($($key:ident),+) => { $(reads!(@ $key);)+ };
    (@ name) => {
        fn name(&self) -> &str {
            &self.name
        }
    };
    (@ rate) => {
        fn rate(&self) -> Option<&$crate::file::RateSpec> {
            self.rate.as_ref()
        }
    };
    (@ load) => {
        fn load(&self) -> Option<$crate::file::LoadBasis> {
            self.load
        }
    };
    (@ active) => {
        fn active(&self) -> Option<$crate::kinds::Active> {
            self.active
        }
    };
    (@ energy) => {
        fn energy(&self) -> Option<$crate::kinds::Energy> {
            self.energy
        }
    };
    (@ route) => {
        fn route(&self) -> $crate::file::Route {
            self.route.clone()
        }
    };
    (@ delay) => {
        fn delay(&self) -> Option<swell_base::Dur> {
            self.delay
        }
    };
}
pub(crate) use reads;

/// What a part must know of its run.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'r> {
    /// What it is there for.
    pub role: Role,
    /// Its name.
    pub name: &'r str,
    /// Which replication.
    pub replication: u32,
    /// Where its random streams come from.
    pub seed: u64,
    /// When foregrounds begin.
    pub warmup: Dur,
    /// Length of the run.
    pub duration: Dur,
    /// What it meets on its way.
    pub way: Way,
    /// The number of its first independent source: others have those before.
    pub first_source: u32,
}

/// The links that a part crosses, as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Lowest rates, from its clients and to them.
    pub rates: [Rate; 2],
    /// Propagation there and back, without access paths.
    pub round_trip: Dur,
}

impl Setting<'_> {
    /// From the end of the warm-up to the end of the run, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let counted = self.duration.saturating_sub(self.warmup);
        counted.as_secs_f64().max(1e-9)
    }
}

/// A foreground as one that fetches objects: what made-up runs need.
pub(crate) struct Fetches {
    pub clients: u32,
    pub sizes: Vec<swell_base::Bytes>,
    pub think: Dur,
    pub count: Option<u64>,
}

/// Plausible figures that are made up.
pub(crate) struct Plausible {
    /// What it offers up and down, bits per second.
    pub bps: [f64; 2],
    /// How bursty.
    pub burst: f64,
    /// What its load was scaled by.
    pub grown: f64,
}

impl Plausible {
    /// Of a load that is not scaled.
    pub fn of(bps: [f64; 2], burst: f64) -> Plausible {
        Plausible {
            bps,
            burst,
            grown: 1.0,
        }
    }
}

/// A link on the way to a foreground's clients, and what it sent for others.
pub(crate) struct Crossed<'w> {
    /// Its capacity, bits per second.
    pub capacity: f64,
    /// Bytes of the background that left it, in each millisecond from the start of the run on.
    pub others: &'w [u32],
}

/// A kind of traffic in a run, everything said.
pub(crate) trait Plays {
    /// Its machine; `None` where nothing is sent, or by a real program.
    ///
    /// # Errors
    /// Where it cannot be built.
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError>;

    /// Its machine over kernel sockets, as a foreground whose first request comes at `start`; `None` where only the
    /// simulator has it.
    fn over_sockets(&self, start: Dur) -> Option<Machine> {
        let _ = start;
        None
    }

    /// What it offers between the end of the warm-up and the end of the run, where that is known.
    ///
    /// # Errors
    /// Where it cannot be built.
    fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let _ = at;
        Ok(None)
    }

    /// The variance of its bytes at a timescale, over their squared mean: as far as that octave of a log-scale diagram
    /// goes; for Poisson packets one over their mean number. `None` where it is not known.
    ///
    /// # Errors
    /// Where it cannot be built.
    fn variance(&self, at: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let _ = (at, timescale);
        Ok(None)
    }

    /// Adds to what was observed of it as a foreground what it cannot know itself. `path` are the links on the way to its
    /// clients.
    fn observed(&self, path: &[Crossed<'_>], observed: &mut Observations) {
        let _ = (path, observed);
    }

    /// Doubts that its description raises.
    fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        let _ = at;
        Vec::new()
    }

    /// Independent sources whose streams are numbered.
    fn numbered_sources(&self) -> u32 {
        0
    }

    /// Name of the application class with this number.
    fn class(&self, index: u32) -> String;

    /// The server port of each class, and whether the class uses UDP.
    fn ports(&self) -> Vec<(u16, bool)> {
        Vec::new()
    }

    /// The program, where it is a real one.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// One-way delay of its access path on the left, the longest of several.
    fn delay(&self) -> Dur {
        Dur::ZERO
    }

    /// What made-up runs take a foreground for; `None` where it makes no requests.
    fn fetches(&self) -> Option<Fetches> {
        None
    }

    /// What made-up runs take a background for.
    fn plausible(&self, at: &Setting<'_>) -> Plausible;
}

/// An access path with this delay.
pub(crate) fn access(delay: Dur) -> Access {
    path(delay, None)
}

/// An access path with this delay and capacity.
pub(crate) fn path(delay: Dur, capacity: Option<Rate>) -> Access {
    Access {
        delay,
        up: capacity,
        down: capacity,
        ..Access::default()
    }
}

/// A number as descriptions write it: up to six decimals, without trailing zeros.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
