//! Traffic in a run, fully specified: [`Plays`], and what its methods take and give.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use swell_base::{Bytes, Dur, Warning, derived};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_workload::Workload;

use crate::error::RunError;
use crate::file::PathProperties;
use crate::kinds::Program;
use crate::observe::Observations;
use crate::role::Role;

/// A workload and its TCP configuration.
pub type Machine = (Box<dyn Workload>, Arc<Config>);

/// Fully specified traffic in a run, of any kind.
pub type Traffic = Arc<dyn Plays>;

/// Label of a foreground's seed where its streams have the same names as a background's.
const FOREGROUND: u64 = 1 << 40;

/// What a part must know about its run.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'r> {
    /// Its role.
    pub role: Role,
    /// Its name.
    pub name: &'r str,
    /// Replication number.
    pub replication: u32,
    /// Seed of its random streams.
    pub seed: u64,
    /// When foregrounds begin.
    pub warmup: Dur,
    /// Length of the run.
    pub duration: Dur,
    /// Properties of its path.
    pub way: PathProperties,
    /// The number of its first independent source; other parts have the lower numbers.
    pub first_source: u32,
}

impl Setting<'_> {
    /// From the end of the warm-up to the end of the run, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let counted = self.duration.saturating_sub(self.warmup);
        counted.as_secs_f64().max(1e-9)
    }

    /// The seed of a part whose streams have the same names in foreground and background.
    pub(crate) fn own_seed(&self) -> u64 {
        match self.role {
            Role::Foreground => derived(self.seed, FOREGROUND),
            Role::Background => self.seed,
        }
    }
}

/// The requests that made-up runs assume for a foreground.
#[derive(Clone, Debug)]
pub struct Fetches {
    /// Number of clients.
    pub clients: u32,
    /// Sizes of the objects, requested in turn.
    pub sizes: Vec<Bytes>,
    /// Pause between two requests of a client.
    pub think: Dur,
    /// Number of requests of a client; `None` if it requests until the run is over.
    pub count: Option<u64>,
}

/// Figures that made-up runs assume for a background.
#[derive(Clone, Copy, Debug)]
pub struct Plausible {
    /// Offered load up and down, bits per second.
    pub bps: [f64; 2],
    /// Burstiness.
    pub burst: f64,
    /// Factor by which its load was scaled.
    pub grown: f64,
}

impl Plausible {
    /// Figures for a load that is not scaled.
    pub fn of(bps: [f64; 2], burst: f64) -> Plausible {
        Plausible {
            bps,
            burst,
            grown: 1.0,
        }
    }
}

/// A link on the path towards a foreground's clients, and its other traffic.
#[derive(Debug)]
pub struct Crossed<'w> {
    /// Its capacity, bits per second; the mean after the warm-up if it changes.
    pub capacity: f64,
    /// The link with its changes, if it changes.
    pub changing: Option<LinkConfig>,
    /// Bytes that its link layer adds to each packet.
    pub overhead: f64,
    /// Link-layer bytes of other traffic that left it in each millisecond, from the start of the run.
    pub others: &'w [u32],
}

/// A kind of traffic in a run, fully specified.
pub trait Plays: Any + Debug + Send + Sync {
    /// Its workload; `None` if nothing is sent, or a real program sends.
    ///
    /// # Errors
    /// If it cannot be built.
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError>;

    /// Its workload over kernel sockets, as a foreground; `None` if only the simulator supports it.
    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        let _ = at;
        None
    }

    /// The load that it offers between the end of the warm-up and the end of the run, if known.
    ///
    /// # Errors
    /// If it cannot be built.
    fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let _ = at;
        Ok(None)
    }

    /// The contribution of one octave of a log-scale diagram to the variance of its bytes, over their squared mean. For
    /// Poisson packets this is one over their mean number. `None` if unknown.
    ///
    /// # Errors
    /// If it cannot be built.
    fn variance(&self, at: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let _ = (at, timescale);
        Ok(None)
    }

    /// Completes its observations as a foreground with facts that only the world knows. `path` are the links towards
    /// its clients.
    fn observed(&self, path: &[Crossed<'_>], observed: &mut Observations) {
        let _ = (path, observed);
    }

    /// Doubts about its description.
    fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        let _ = at;
        Vec::new()
    }

    /// Number of independent sources with numbered random streams.
    fn numbered_sources(&self) -> u32 {
        0
    }

    /// Name of the application class with this number.
    fn class(&self, index: u32) -> String;

    /// The server port of each class, and whether the class uses UDP.
    fn ports(&self) -> Vec<(u16, bool)> {
        Vec::new()
    }

    /// The program, if it is a real program.
    fn program(&self) -> Option<&Program> {
        None
    }

    /// One-way delay of its access path on the left, the longest of several.
    fn delay(&self) -> Dur {
        Dur::ZERO
    }

    /// Bytes of the handshake in the data of the client and of the server, at the beginning of each connection.
    fn hello(&self) -> [u64; 2] {
        [0; 2]
    }

    /// The requests that made-up runs assume for a foreground; `None` if it makes none.
    fn fetches(&self) -> Option<Fetches> {
        None
    }

    /// The figures that made-up runs assume for a background.
    fn plausible(&self, at: &Setting<'_>) -> Plausible;
}

/// The rate that a background offers, up and down, network-layer bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Mean over all draws.
    pub mean: [f64; 2],
    /// Rate of this draw between the end of the warm-up and the end of the run.
    pub drawn: [f64; 2],
}

impl Offered {
    /// The sum of both.
    pub fn with(self, other: Offered) -> Offered {
        let sum = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Offered {
            mean: sum(self.mean, other.mean),
            drawn: sum(self.drawn, other.drawn),
        }
    }
}

/// Keys of which nothing but the delay has to be resolved for a run.
#[derive(Clone, Debug)]
pub(crate) struct WithDelay<K> {
    /// The keys in the file.
    pub keys: K,
    /// One-way delay of the access path on each side.
    pub delay: Dur,
}

impl<K: Clone> WithDelay<K>
where
    WithDelay<K>: Plays,
{
    /// Traffic with these keys and this delay.
    pub fn traffic(keys: &K, delay: Dur) -> Traffic {
        let keys = keys.clone();
        Arc::new(WithDelay { keys, delay })
    }
}
