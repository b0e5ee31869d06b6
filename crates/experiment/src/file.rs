//! The experiment file.
//!
//! The types here define the file, key by key. Their doc comments are the descriptions in the JSON
//! schema. [`read`] converts text to a checked [`File`], or returns every [`Problem`] found.

mod backend;
mod change;
mod check;
pub(crate) mod findings;
mod named;
pub(crate) mod names;
mod network;
mod paths;
mod preset;
mod problem;
pub mod qdisc;
mod rate;
mod read;
mod route;
mod shape;
mod taken;
mod tcp;
mod topology;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Dur;

pub use crate::exporter::Exporter;
pub use crate::kinds::{
    Active, Background, Client, CommandLine, ConnectionUse, Delays, Energy, Foreground, Greedy,
    Learnt, Measure, Mix, Nothing, Objects, OnOff, Parametric, Part, Peer, Program, Replay, Server,
    Sessions, Size, Web,
};
pub use backend::{BackendKind, Stack};
pub use change::{Change, Deliveries, DeliveriesSpec, Directions, OutagePackets};
pub use named::Named;
pub(crate) use named::is_default;
pub use names::{suggest, unknown_name};
pub(crate) use network::LEAST_QUEUE;
pub use network::{Link, LinkKeys, LinkOverrides, NamedLink, Network};
pub use preset::{Preset, PresetSpec};
pub use problem::{Problem, Problems};
pub use qdisc::{Qdisc, QdiscSpec};
pub use rate::ACCESS_DELAY;
pub use rate::{LoadBasis, Pairing, RateSpec};
pub use read::{override_keys, problem, read, read_as, schema, schema_of};
pub use route::{Bottleneck, Hop, PathProperties, Queue, Route, narrowest, queues};
pub use swell_path::Loss;
pub use tcp::{TcpProfile, TcpSettings};

/// An experiment: applications under study, crossed with background traffic, on one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Name of the experiment; the run directory is called after it.
    pub name: String,
    /// What the experiment is about, in free text; printed in the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What runs it.
    #[serde(default)]
    pub backend: BackendKind,
    /// The network: one bottleneck, shared by everybody, or what holds for all `[[links]]`.
    #[serde(default)]
    pub network: Network,
    /// The links, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<NamedLink>,
    /// The applications under study. Each is run against each background.
    pub foreground: Vec<Foreground>,
    /// The background traffic. Slowdowns are given against the background of kind `none`.
    pub background: Vec<Background>,
    /// How long and how often.
    #[serde(default)]
    pub run: Run,
}

/// How long and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Runs of each foreground against each background, with different seeds.
    pub replications: u32,
    /// The first part of a run: background alone, counted in no total. The foreground starts
    /// when it is over.
    pub warmup: Dur,
    /// Length of a run, warm-up included.
    pub duration: Dur,
    /// Whether all foregrounds run at once, beside each background. Default: each by itself. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub together: bool,
    /// Replication r has seed + r, equal in every foreground and background.
    pub seed: u64,
    /// Bin width of the time series. A run has at most 1000000 bins.
    pub bins: Dur,
    /// Whose TCP the background runs on, if `backend = "emulated"`. In the simulator there is no
    /// choice.
    #[serde(skip_serializing_if = "is_default")]
    pub background_stack: Stack,
    /// The background that the others are to stand in for. They are listed with the cheapest first, and the verdict
    /// names the first that is sufficient. `swell run --suite` writes such a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Which large results to keep.
    pub keep: Keep,
}

/// Which large results to keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// Table `flows`: a row per background connection.
    pub flows: bool,
    /// Table `waits`: how long packets of foreground and background waited at the bottleneck. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub waits: bool,
    /// Table `synchrony`: whether connections lose together at the bottleneck, in a bin of `run.bins`, and whether
    /// acknowledgements are compressed. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub synchrony: bool,
    /// Table `waterfall`: what the time of each request of a `web` or `page` foreground was spent on. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub waterfall: bool,
    /// Table `rtts`: the round trip of each packet of the foreground's connections, at its sender. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub rtts: bool,
    /// Table `gaps`: how long senders of the foreground were idle between two windows. Simulated only.
    #[serde(skip_serializing_if = "is_default")]
    pub gaps: bool,
    /// Directory `records`: flow records (IPFIX) per run, as a router on the link would export them. Simulated only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Exporter>,
    /// Directory `packets`: a pcapng file per run with the headers of every packet that arrives at
    /// the bottleneck.
    pub packets: bool,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            replications: 10,
            warmup: Dur::from_secs(10),
            duration: Dur::from_secs(120),
            together: false,
            seed: 1,
            bins: Dur::from_millis(100),
            background_stack: Stack::default(),
            suite: None,
            keep: Keep::default(),
        }
    }
}

impl Keep {
    /// Nothing.
    pub const NOTHING: Keep = Keep {
        flows: false,
        waits: false,
        synchrony: false,
        waterfall: false,
        rtts: false,
        gaps: false,
        records: None,
        packets: false,
    };
}

impl Default for Keep {
    fn default() -> Keep {
        Keep {
            flows: true,
            ..Keep::NOTHING
        }
    }
}

impl File {
    /// The leaves of a background: for a mix all its parts, resolved recursively and sorted by name, else itself.
    pub fn leaves<'f>(&'f self, background: &'f Part) -> Vec<&'f Part> {
        if background.parts().is_empty() {
            return vec![background];
        }
        let mut named: BTreeMap<&str, &Part> = BTreeMap::new();
        for other in &self.background {
            named.entry(other.name()).or_insert(other);
        }
        let mut leaves: Vec<&Part> = Vec::new();
        // A mix that is a part of itself, or twice in another, is refused, but must not be followed again until then.
        let mut mixes: BTreeSet<&str> = BTreeSet::new();
        let mut left = vec![background];
        while let Some(part) = left.pop() {
            if part.parts().is_empty() {
                leaves.push(part);
            } else if mixes.insert(part.name()) {
                let parts = part.parts().iter();
                left.extend(parts.filter_map(|name| named.get(name.as_str())));
            }
        }
        leaves.sort_by_key(|part| part.name());
        leaves
    }

    /// The file as TOML with all defaults written out, as stored in the run directory.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self)
            .expect("every type of the file serialises to TOML: strings, numbers, tables of them")
    }
}

#[cfg(test)]
mod tests;
