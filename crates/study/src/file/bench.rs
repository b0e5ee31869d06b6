//! Runs on real hosts: a bench file (`bench = ...`) takes the place of an experiment file.
//!
//! This crate does not perform these runs, because they need real time and a kernel. A [`Bencher`] performs them and
//! returns their numbers. Measures read the numbers as `seen`.

use std::path::Path;
use std::sync::Arc;

use rhai::{Array, Dynamic, Map};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use swell_base::{Dur, Rate};
use swell_experiment::file;
use swell_experiment::run::grid::{Grid, GridError, GridOutcome, Options, Progress, Task};

use super::cells::{self, FileCell};
use super::compiled::{Compiled, scope};
use super::error::StudyError;
use super::facade::FileStudy;
use super::group::Group;
use super::reference::Numbers;
use super::results::Views;
use super::script::Trouble;
use super::template;

/// A run on real hosts, as a bench file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "bench", rename_all = "kebab-case")]
pub enum Bench {
    /// A router under load: the kernel's forwarding between a host that sends and one that receives.
    Router(RouterBench),
    /// The generator itself: one process at each end, driven by a third.
    Agents(AgentsBench),
}

/// A router under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Sizes of datagrams, network-layer headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// All of so many bytes.
    Bytes(u16),
    /// Several sizes.
    Mix(Mix),
}

/// Mixes of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// 61 % of 40 bytes, 17 % of 576, 22 % of 1500.
    Trimodal,
}

/// The generator itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// The fields of `seen` for a router: first the numbers, then the lists with one number per interval.
pub const ROUTER: [&[&str]; 2] = [
    &[
        "after_loss",
        "busy",
        "busy_sd",
        "every",
        "forwarded",
        "forwarded_sd",
        "late",
        "loss",
        "loss_sd",
        "lost",
        "not_taken",
        "offered",
        "offered_sd",
        "packets",
        "run_max",
        "run_mean",
        "short",
        "sink_missed",
        "us_per_packet",
    ],
    &["busies", "losses", "rates"],
];

/// The fields of `seen` for agents.
pub const AGENTS: &[&str] = &[
    "active",
    "bulk",
    "done",
    "failed",
    "idle_client",
    "idle_server",
    "late",
    "memory_client",
    "memory_server",
    "reloaded_from",
    "reloaded_to",
    "stopped",
];

/// Performs runs on real hosts.
pub trait Bencher: Sync {
    /// Performs one run with the random numbers of `seed`. The result is an object with the fields of [`ROUTER`] or
    /// [`AGENTS`]; a missing number is null.
    ///
    /// # Errors
    /// A sentence that says why the run failed.
    fn play(&self, bench: &Bench, seed: u64) -> Result<Value, String>;
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
        match &bench {
            Bench::Router(r) if r.warmup >= r.duration || r.every == Dur::ZERO => {
                Err("a router is looked at more often than never, after the warm-up".into())
            }
            Bench::Router(r) if !(1_000_000..=10_000_000_000).contains(&r.line.bps()) => {
                Err(format!("line {} is not between 1Mbit and 10Gbit", r.line))
            }
            _ => Ok(Some(bench)),
        }
    }

    /// Approximate duration of a run in seconds.
    pub(super) fn seconds(&self) -> f64 {
        match self {
            Bench::Router(r) => r.duration.as_secs_f64(),
            Bench::Agents(a) => 2.0 * a.duration.as_secs_f64(),
        }
    }

    /// Made-up numbers of the right shape, for the rehearsal.
    fn made_up(&self) -> Value {
        let (numbers, lists) = match self {
            Bench::Router(_) => (ROUTER[0], ROUTER[1]),
            Bench::Agents(_) => (AGENTS, &[][..]),
        };
        let numbers = numbers.iter().map(|n| (*n, Value::from(1.0)));
        let lists = lists.iter().map(|n| (*n, Value::from(vec![1.0; 4])));
        let each = numbers.chain(lists);
        Value::Object(each.map(|(n, v)| (n.to_owned(), v)).collect())
    }
}

/// Converts the numbers of a run into values for expressions.
fn known(value: &Value) -> Dynamic {
    match value {
        Value::Array(all) => all.iter().map(known).collect::<Array>().into(),
        Value::Object(all) => {
            let each = all.iter().map(|(name, v)| (name.as_str().into(), known(v)));
            each.collect::<Map>().into()
        }
        Value::Bool(b) => f64::from(u8::from(*b)).into(),
        other => other.as_f64().unwrap_or(f64::NAN).into(),
    }
}

/// The measures of a run with the numbers `seen`, or the index of the measure that failed and the reason.
fn measures(compiled: &Compiled, group: &Group, seen: &Value) -> Result<Vec<f64>, (usize, String)> {
    let mut all = scope(&compiled.file, (group.column, group.line), &group.axes);
    all.push_dynamic("seen", known(seen));
    all.push("seconds", group.seconds);
    cells::measures(compiled, group, all)
}

/// Evaluates the measures with made-up numbers.
pub(super) fn rehearse(
    compiled: &Compiled,
    group: &Group,
    bench: &Bench,
) -> Result<Vec<f64>, (usize, String)> {
    measures(compiled, group, &bench.made_up())
}

/// A combination with the `late` keys of its line set. They may use the results of other lines.
pub(super) fn late(
    compiled: &Compiled,
    numbers: &Numbers,
    group: &Group,
) -> Result<Group, StudyError> {
    let list = &compiled.file.line[group.line].late;
    let mut engine = compiled.asker();
    Views::of(compiled, numbers).register(group.column, &mut engine);
    let mut known = scope(&compiled.file, (group.column, group.line), &group.axes);
    let mut set = Vec::new();
    for (i, text) in list.iter().enumerate() {
        let filled = template::filled(&engine, text, &mut known);
        set.push(
            filled.map_err(|(Trouble::NotThere(why) | Trouble::Wrong(why))| {
                let place = compiled.place(format!("line[{}].late", group.line));
                place.item(i, &why)
            })?,
        );
    }
    let wrong = |problem| StudyError::Experiment {
        runs: group.name.clone(),
        problem,
    };
    let text = file::override_keys(&group.text, &set).map_err(wrong)?;
    let mut own = group.clone();
    own.bench = Bench::read(&text).map_err(wrong)?;
    own.hash = text.clone();
    own.text = text;
    own.assignments.extend(set);
    Ok(own)
}

/// A run on real hosts.
struct BenchCell<'a> {
    cell: FileCell,
    compiled: &'a Compiled,
    group: Arc<Group>,
    seed: u64,
    bencher: &'a dyn Bencher,
}

impl Task for BenchCell<'_> {
    fn key(&self) -> Vec<String> {
        self.cell.key()
    }

    fn settings(&self) -> String {
        self.cell.settings()
    }

    fn cost(&self) -> f64 {
        self.cell.cost()
    }

    fn run(&self) -> Result<Vec<f64>, String> {
        let none = || "it is not of a bench".to_owned();
        let bench = self.group.bench.as_ref().ok_or_else(none)?;
        let seen = self.bencher.play(bench, self.seed)?;
        measures(self.compiled, &self.group, &seen).map_err(|(_, why)| why)
    }
}

impl FileStudy {
    /// Whether its runs are on real hosts. [`FileStudy::play`] performs such runs.
    pub fn is_of_hosts(&self) -> bool {
        self.groups.iter().any(|g| g.bench.is_some())
    }

    /// As [`FileStudy::run`], on real hosts, one run at a time. Lines with `late` keys run after all others.
    ///
    /// # Errors
    /// As [`FileStudy::run`], and if a run fails.
    pub fn play(
        &self,
        bencher: &dyn Bencher,
        options: &Options,
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        let compiled = &*self.compiled;
        let is_late = |g: &&Arc<Group>| !compiled.file.line[g.line].late.is_empty();
        let (later, first): (Vec<&Arc<Group>>, Vec<_>) = self.groups.iter().partition(is_late);
        // Concurrent runs would disturb each other.
        let alone = Options {
            jobs: 1,
            ..options.clone()
        };
        let seeds = usize::from(self.seeds);
        let run = |groups: &[Arc<Group>], with: &Options| {
            let each = groups
                .iter()
                .flat_map(|group| self.cells_of(group, bencher));
            let cells: Vec<BenchCell<'_>> = each.collect();
            Grid::open(cells::columns(&compiled.file), with)?.run(&cells, progress, stop)
        };
        let first: Vec<Arc<Group>> = first.into_iter().cloned().collect();
        let found = match run(&first, &alone)? {
            GridOutcome::Complete(numbers) => numbers,
            other => return Ok(other),
        };
        let ours = Numbers::ours(compiled, &first, seeds, &found);
        let resolved = later.iter().map(|group| {
            let own = late(compiled, &ours, group).map_err(|e| GridError::Run {
                key: group.name.clone(),
                reason: e.to_string(),
            });
            own.map(Arc::new)
        });
        let resolved: Vec<Arc<Group>> = resolved.collect::<Result<_, _>>()?;
        if resolved.is_empty() {
            return Ok(GridOutcome::Complete(found));
        }
        // The second pass has all lines, so that their plan is whole. The results of the first are in the table.
        let more = Options {
            fresh: false,
            ..alone
        };
        let mut resolved = resolved.into_iter();
        let all = self.groups.iter().filter_map(|group| {
            if is_late(&group) {
                resolved.next()
            } else {
                Some(Arc::clone(group))
            }
        });
        run(&all.collect::<Vec<_>>(), &more)
    }

    /// The runs of a combination, one per seed.
    fn cells_of<'a>(
        &'a self,
        group: &Arc<Group>,
        bencher: &'a dyn Bencher,
    ) -> impl Iterator<Item = BenchCell<'a>> + use<'a> {
        let group = Arc::clone(group);
        (0..u64::from(self.seeds)).map(move |i| {
            let seed = group.seed.wrapping_add(i);
            BenchCell {
                cell: FileCell::new(&self.compiled, &group, seed),
                compiled: &self.compiled,
                group: Arc::clone(&group),
                seed,
                bencher,
            }
        })
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
