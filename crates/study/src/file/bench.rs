//! Runs on real hosts: a bench file (`bench = ...`) takes the place of an experiment file.
//!
//! This crate does not perform these runs, because they need real time and a kernel. A [`Bencher`] performs them.

use std::path::Path;

use serde::Deserialize;
use swell_base::{Dur, Rate};
use swell_experiment::observe::Observations;

/// A run on real hosts, as a bench file says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "bench", rename_all = "kebab-case")]
pub enum Bench {
    /// A router under load: the kernel's forwarding between a host that sends and one that receives.
    Router(RouterBench),
    /// The generator itself: one process at each end, driven by a third.
    Agents(AgentsBench),
}

/// A router under load.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterBench {
    /// Entries of its table that lead to the receiver: a power of two, 1 to 65536.
    pub routes: u32,
    /// Rate of the output line; headers of the link layer count.
    pub line: Rate,
    /// Whether the line limits. Otherwise it is as fast as the machine.
    #[serde(default = "yes")]
    pub limited: bool,
    /// Packets of 1500 bytes that wait for the line.
    pub queue: u32,
    /// Receive windows beyond 64 KB, as the kernel has them by default.
    #[serde(default = "yes")]
    pub window_scaling: bool,
    /// How long packets are sent.
    pub duration: Dur,
    /// What of it does not count: queues and connections begin empty.
    pub warmup: Dur,
    /// Between two looks at the counters.
    pub every: Dur,
    /// What is sent.
    pub load: Load,
}

/// What is sent through a router.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Sessions over TCP, learnt from the flow records of the Harpoon study.
    Sessions {
        /// The structural model whose users' records are learnt from.
        model: String,
        /// The share of the line that they are to offer.
        share: f64,
        /// Congestion controls by the kernel's names. Default: the kernel's.
        #[serde(default)]
        congestion: Vec<String>,
    },
    /// Datagrams with constant spacing.
    Constant {
        /// How large they are.
        size: Size,
        /// How many leave back to back.
        #[serde(default = "one")]
        burst: u32,
        /// What they offer; headers of the link layer count.
        rate: Rate,
    },
}

/// Sizes of datagrams in bytes, network-layer headers included.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// All have the same size.
    All(u16),
    /// They have these sizes in turn.
    Each(Vec<u16>),
}

impl Size {
    /// The sizes that come in turn.
    pub fn in_turn(&self) -> &[u16] {
        match self {
            Size::All(size) => std::slice::from_ref(size),
            Size::Each(sizes) => sizes,
        }
    }
}

/// The generator itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsBench {
    /// The structural model whose users' records sessions are learnt from.
    pub model: String,
    /// Sessions at a time, after the load was doubled.
    pub sessions: u64,
    /// How long each part is looked at.
    pub duration: Dur,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// The smallest datagram of a packet generator in bytes: headers of IPv4 and UDP, and a number of eight bytes.
const SMALLEST: u16 = 36;

/// Performs runs on real hosts.
pub trait Bencher: Sync {
    /// Performs one run with the random numbers of `seed`. Its numbers are rows of the table `measures`, those that were
    /// seen again and again with the time of each.
    ///
    /// # Errors
    /// A sentence that says why the run failed.
    fn play(&self, bench: &Bench, seed: u64) -> Result<Observations, String>;
}

impl Bench {
    /// Reads a bench file; `None` if the text has no key `bench`.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(super) fn read(text: &str) -> Result<Option<Bench>, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        if !table.contains_key("bench") {
            return Ok(None);
        }
        let bench: Bench = table.try_into().map_err(|e| e.to_string())?;
        if let Bench::Router(router) = &bench {
            router.check()?;
        }
        Ok(Some(bench))
    }

    /// What of the run does not count.
    pub(super) fn warmup(&self) -> Dur {
        match self {
            Bench::Router(r) => r.warmup,
            Bench::Agents(_) => Dur::ZERO,
        }
    }

    /// Approximate duration of a run.
    pub(super) fn duration(&self) -> Dur {
        match self {
            Bench::Router(r) => r.duration,
            Bench::Agents(a) => a.duration * 2,
        }
    }
}

impl RouterBench {
    fn check(&self) -> Result<(), String> {
        // The counters are read at multiples of `every`. An interval begins at the first of them after the warm-up.
        let every = self.every.as_nanos().max(1);
        let first = self.warmup.as_nanos().div_ceil(every);
        if self.every == Dur::ZERO || first >= self.duration.as_nanos() / every {
            return Err("no interval of `every` begins and ends after the warm-up".into());
        }
        if !(1_000_000..=10_000_000_000).contains(&self.line.bps()) {
            return Err(format!(
                "line {} is not between 1Mbit and 10Gbit",
                self.line
            ));
        }
        if !self.routes.is_power_of_two() || self.routes > 1 << 16 {
            let routes = self.routes;
            return Err(format!(
                "{routes} routes do not divide 65536 addresses evenly"
            ));
        }
        if let Load::Constant { size, burst, rate } = &self.load {
            let sizes = size.in_turn();
            let fit = !sizes.is_empty() && sizes.iter().all(|s| *s >= SMALLEST);
            if !fit || *burst == 0 || rate.bps() == 0 {
                return Err(format!(
                    "a packet generator needs a burst, a rate and packets of at least {SMALLEST} bytes"
                ));
            }
        }
        Ok(())
    }
}

/// Whether the experiment that a study file names is a bench; false if either file cannot be read.
pub fn is_named_in(study: &Path) -> bool {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .ok()?
            .parse::<toml::Table>()
            .ok()
    };
    let named = read(study).and_then(|t| Some(t.get("experiment")?.as_str()?.to_owned()));
    let path = named.map(|name| study.with_file_name(name));
    path.and_then(|p| read(&p))
        .is_some_and(|t| t.contains_key("bench"))
}
