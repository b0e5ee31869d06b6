//! The program to run, the link before it, and where the run is kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swell_base::{Dur, Rate};
use swell_experiment::file::LinkKeys;
use swell_experiment::measure::Reported;

use crate::learn::stem;

/// Names of the backgrounds that a comparison adds.
pub(super) const NONE: &str = "none";
pub(super) const POISSON: &str = "poisson";

/// The name of the background in tables.
pub(super) fn title(background: &str) -> String {
    let name = name(background);
    match name.as_str() {
        // A file of such a name is no other background.
        NONE | POISSON if background != NONE => format!("{name}-model"),
        _ => name,
    }
}

/// The link and its background traffic.
#[derive(Clone, Debug)]
pub struct Link {
    /// The background: a bundled model, a model file, a packet trace (learnt on the spot), or `none`.
    pub background: String,
    /// The link. Without rate and trace it carries 20 Mbit/s. Changes count from the start of the program.
    pub network: LinkKeys,
    /// Mean rate of the background towards the client. Default: six tenths of the link's.
    pub load: Option<Rate>,
    /// Seed of the background.
    pub seed: u64,
    /// How long the background runs before the program starts; this time is simulated.
    pub warmup: Option<Dur>,
}

impl Link {
    /// A link with these properties and this background.
    pub fn new(background: impl Into<String>, network: LinkKeys) -> Link {
        Link {
            background: background.into(),
            network,
            load: None,
            seed: 1,
            warmup: None,
        }
    }

    /// The name of the background in tables.
    pub fn title(&self) -> String {
        title(&self.background)
    }
}

/// The program to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The link.
    pub link: Link,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables in addition to this process's.
    pub environment: BTreeMap<String, String>,
    /// Maximum duration.
    pub duration: Dur,
    /// MTU of both hosts in bytes (network layer).
    pub mtu: Option<u16>,
    /// Whether both hosts' kernels request ECN in TCP.
    pub ecn: bool,
    /// Congestion control of both hosts' kernels.
    pub congestion_control: String,
    /// The server.
    pub server: Option<Server>,
    /// Run the program without background, with Poisson packets and with the background in turn, this many times each.
    pub compare: Option<u32>,
    /// Whether a single run of the program uses this process's standard input and output. Otherwise its output is kept
    /// in the run directory, as that of comparisons always is.
    pub terminal: bool,
    /// Measures that the program itself reports.
    pub measures: Vec<Reported>,
    /// Where the run is kept.
    pub keep: Keep,
}

impl Options {
    /// A program behind this link, for two minutes at most.
    pub fn new(link: Link, command: Vec<String>) -> Options {
        Options {
            link,
            command,
            environment: BTreeMap::new(),
            duration: Dur::from_secs(120),
            mtu: None,
            ecn: false,
            congestion_control: "cubic".into(),
            server: None,
            compare: None,
            terminal: true,
            measures: Vec::new(),
            keep: Keep::default(),
        }
    }
}

/// A command that the shell runs on the server's side.
#[derive(Clone, Debug)]
pub struct Server {
    /// The command.
    pub command: String,
    /// The TCP or UDP port on which it listens once it is ready, and the maximum time until then.
    pub ready: Option<(u16, Dur)>,
}

/// Where a run is kept.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// The directory. Default: a new one below `runs`, or none.
    pub output: Option<PathBuf>,
    /// Delete what another command left there, or the complete comparison of this one.
    pub fresh: bool,
    /// Keep the runs of an interrupted comparison of the same command, in its directory. The caller knows that the
    /// program, its input and its surroundings are the same: of these, nothing is recorded.
    pub resume: bool,
    /// Keep the run even without a named directory. Comparisons are always kept.
    pub always: bool,
}

/// The last component of a path without its extension.
pub(super) fn name(path: &str) -> String {
    let name = stem(Path::new(path));
    if name.is_empty() {
        "program".into()
    } else {
        name
    }
}
