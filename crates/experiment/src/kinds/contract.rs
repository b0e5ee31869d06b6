//! The interface of a kind of traffic: as keys of a file ([`Keys`]), and as fully specified traffic in a run
//! ([`Plays`]).

mod plays;

use std::collections::BTreeMap;
use std::path::Path;

use swell_base::{Bytes, Dur, Rate};
use swell_traffic::Dependency;
use swell_workload::Access;

pub use super::input::{Data, Input};
pub use super::pace::Pace;
pub(crate) use plays::WithDelay;
pub use plays::{Crossed, Fetches, Machine, Offered, Plausible, Plays, Setting, Traffic};

use super::{Active, Energy, Program};
use crate::captures::Capture;
use crate::exporter::{Exported, Exporter};
use crate::file::findings::Findings;
pub use crate::file::findings::Slot;
use crate::file::{LoadBasis, RateSpec, Route};
use crate::measure::{Failing, Measure};
use crate::plan::traces::Traces;
pub use crate::role::Role;
use crate::store::Measured;

/// How figures show a background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The reference for comparisons.
    Reference,
    /// Traffic derived from measurements.
    Learnt,
    /// Anything else.
    Other,
}

/// The rates that a part requires of the link, up and down, each with its key in the file.
pub type Asked = [Option<(&'static str, Rate)>; 2];

/// A problem with a model or a capture, and a hint.
pub type Complaint = (String, Option<String>);

/// Where a part finds its files.
pub struct Files<'p> {
    /// Prefix for the name of a model's copy in the run directory.
    pub prefix: String,
    /// Paths are relative to this.
    pub base: &'p Path,
    /// Cache of files already read.
    pub known: &'p Traces,
    /// The seed of the first run.
    pub seed: u64,
}

impl Files<'_> {
    /// The path in the run directory for a copy of a file with this name. If the experiment file of a run directory is
    /// resolved again, the path stays the same.
    pub fn copy(&self, name: &str) -> String {
        let name = name.strip_prefix(&self.prefix).unwrap_or(name);
        format!("models/{}{name}", self.prefix)
    }
}

/// The context for the full specification of a part in a run.
pub struct Resolving<'p> {
    /// Its role.
    pub role: Role,
    /// Its input.
    pub input: Option<&'p Data>,
    /// Results of the calibration, by background.
    pub measured: &'p BTreeMap<String, Measured>,
    /// Replication number.
    pub replication: usize,
    /// The value found by calibration, in the unit of its [`Pace`]; `None` keeps that of the file.
    pub pace: Option<f64>,
    /// Default one-way delay of an access path.
    pub delay: Dur,
    /// That of the network, where it has no `rtt`.
    pub access_delay: Dur,
}

impl Resolving<'_> {
    /// The one-way delay of an access path of packets or transfers, where the file gives none. The network's `rtt` is
    /// that of foregrounds.
    pub fn default_delay(&self) -> Dur {
        match self.role {
            Role::Foreground => self.delay,
            Role::Background => self.access_delay,
        }
    }
}

/// What the mean rate of a part follows from.
pub struct Native<'p> {
    /// Its input.
    pub input: Option<&'p Data>,
    /// Results of the calibration, by background.
    pub measured: &'p BTreeMap<String, Measured>,
    /// The seed of the first run.
    pub seed: u64,
    /// The end of the warm-up and the end of a run.
    pub counted: [Dur; 2],
}

/// The observations of another background that an imitation needs.
#[derive(Clone, Copy)]
pub enum Source<'k> {
    /// Its flow records, from an exporter with these settings.
    Records(&'k Exporter),
    /// Its packets, as they arrive at the slowest link.
    Packets,
}

/// Observations of another background.
pub enum Seen<'r> {
    /// Flow records.
    Records(&'r Exported),
    /// Packets.
    Packets(Capture),
}

/// What must be known of real traffic to generate a background in its place, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Information {
    /// Nothing.
    Nothing,
    /// Its mean rate.
    Rate,
    /// Its mean rate, and that gaps between packets vary.
    Gaps,
    /// Its mean rate, and the distribution of its bursts.
    Bursts,
    /// Its packets, in an input file.
    Packets,
}

/// A kind of traffic as keys of a file.
pub trait Keys {
    /// Its name in sentences, if that is not the name in files.
    fn label() -> Option<&'static str>
    where
        Self: Sized,
    {
        None
    }

    /// If a suite compares it with a learnt background: what must be known to generate it.
    fn substitute() -> Option<Information>
    where
        Self: Sized,
    {
        None
    }

    /// The keys besides `rate` that determine its load.
    fn load_keys() -> &'static [&'static str]
    where
        Self: Sized,
    {
        &[]
    }

    /// Its name in tables and figures.
    fn name(&self) -> &str;

    /// Rejects impossible values.
    fn check(&self, at: &Slot<'_>, found: &mut Findings);

    /// Whether there is no traffic.
    fn is_none(&self) -> bool {
        false
    }

    /// Whether it stands for real traffic: learnt from it, or its packets. Parametric backgrounds of the same rate are
    /// compared with it.
    fn is_real(&self) -> bool {
        false
    }

    /// If it is a model of real traffic whose dependencies may be dropped: those that the file drops.
    fn dropped(&self) -> Option<&[Dependency]> {
        None
    }

    /// The rate of the down direction, if the file gives one.
    fn rate(&self) -> Option<&RateSpec> {
        None
    }

    /// Whether its rate means the offered or the carried load, if the file says so.
    fn load(&self) -> Option<LoadBasis> {
        None
    }

    /// Why it has no rate that another background could take; `None` if it has one.
    fn rateless(&self) -> Option<&'static str> {
        None
    }

    /// Whether each replication has the rate of the matched background's replication of the same seed.
    fn is_per_seed(&self) -> bool {
        false
    }

    /// Whether it is open-loop: what it sends does not depend on the network.
    fn is_open_loop(&self) -> bool {
        false
    }

    /// Whether it may lose packets even alone on a link that is faster than its mean rate.
    fn is_bursty(&self) -> bool {
        false
    }

    /// Whether its offered load is known before a run.
    fn foretells(&self) -> bool {
        true
    }

    /// The parameter that calibration changes.
    fn pace(&self) -> Pace {
        Pace::Factor
    }

    /// Whether its mean rate is that of the draws of its runs. The mean over all draws does not hold if all runs have the
    /// same draw or the same part of a trace, because the file says which, or if each begins without its sessions.
    fn is_of_its_draws(&self) -> bool {
        false
    }

    /// The time windows in which it sends; `None` if it always sends.
    fn active(&self) -> Option<Active> {
        None
    }

    /// Additional energy at one timescale, if the file requests it.
    fn energy(&self) -> Option<Energy> {
        None
    }

    /// The links that it crosses.
    fn route(&self) -> Route {
        Route::default()
    }

    /// The names of the backgrounds in a mix; empty for other kinds.
    fn parts(&self) -> &[String] {
        &[]
    }

    /// The rates that it requires of the link.
    fn asks(&self) -> Asked {
        // A matched rate is zero here: it is not known yet. If it is that of another path, `Plan::to_measure` has it
        // measured.
        [None, self.rate().map(|rate| ("rate", rate.fixed()))]
    }

    /// Whether it has a required rate and never slows down.
    fn is_unresponsive(&self) -> bool {
        false
    }

    /// The rate that it is to offer, up and down, if the file or a matched background determines it exactly.
    fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
        let _ = measured;
        None
    }

    /// One-way delay of its access paths, the mean over both sides, if the file gives one. A side without one has
    /// `access`, the network's.
    fn delay(&self, access: Dur) -> Option<Dur> {
        let _ = access;
        None
    }

    /// Name of its input in messages; `None` if it reads nothing.
    fn reads(&self) -> Option<&'static str> {
        None
    }

    /// The path of its input file in the resolved file, if it is that of the user's machine: the input is not copied to
    /// the run directory.
    fn elsewhere(&mut self) -> Option<&mut String> {
        None
    }

    /// Reads its input file, and replaces the file's name by that in the run directory. An error comes with its key.
    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        let _ = from;
        Ok(None)
    }

    /// The background that it imitates, and the observations that it needs.
    fn imitates(&self) -> Option<(&str, Source<'_>)> {
        None
    }

    /// Learns from observations of that background.
    fn learn(&self, seen: Seen<'_>) -> Result<Input, String> {
        let _ = seen;
        Err("it learns from no other background".into())
    }

    /// Its unscaled mean rate in the down direction, bits per second; zero if it has none. If its rate varies along the
    /// runs, all of them alike, that between the two times of `counted`: the end of the warm-up and the end of a run.
    fn native_bps(&self, of: &Native<'_>) -> f64 {
        match self.rate() {
            Some(RateSpec::Fixed(rate)) => rate.bps() as f64,
            Some(RateSpec::Match(other)) => of.measured.get(other).map_or(0.0, |m| m.down_bps),
            None => 0.0,
        }
    }

    /// Its traffic in a run; `None` if it sends nothing or its input is missing.
    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic>;

    /// Its measures as a foreground, the most informative first.
    fn measures(&self) -> Vec<Measure>;

    /// Why a run may have no value of its measures, if it is known what may be the cause.
    fn silent(&self) -> Option<&'static str> {
        None
    }

    /// What shows that it does not work, apart from requests that fail.
    fn failing(&self) -> Vec<Failing> {
        Vec::new()
    }

    /// The directions in which it sends data as a foreground, up and down, if its keys say so.
    fn sends(&self) -> Option<[bool; 2]> {
        None
    }

    /// The sizes of the objects that its clients request in turn; empty if they are no such list.
    fn sizes(&self) -> &[Bytes] {
        &[]
    }

    /// The program, if it is a real program.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// Number of clients, connections or sources that it has as a foreground.
    fn clients(&self) -> u32 {
        1
    }

    /// A short description for the report.
    fn describe(&self, role: Role) -> String;

    /// How figures show it as a background.
    fn shown(&self) -> Shown {
        Shown::Other
    }
}

/// Implements methods of [`Keys`] that return the field of the same name.
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
        fn delay(&self, _: swell_base::Dur) -> Option<swell_base::Dur> {
            self.delay
        }
    };
}
pub(crate) use reads;

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

/// Formats a number for descriptions: up to six decimals, without trailing zeros.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
