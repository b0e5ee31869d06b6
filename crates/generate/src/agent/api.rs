//! What goes over the interface.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Warning};
use swell_traffic::flowlevel::{self, FlowModel, PlanError, Playback};

use crate::{Closed, Counts, Model, SharedPlan, Statistics};
use swell_host::Late;

/// How an agent stands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// `swell-agent`.
    pub program: String,
    /// Its version. Controller and agents must have the same.
    pub version: String,
    /// Which start of the program it is: another one knows nothing of the runs of the one before it.
    pub instance: String,
    /// Where it receives traffic, if that is configured; else where the controller reaches it, or the first
    /// address of its pool.
    pub address: Option<String>,
    /// Prefixes of addresses that its sockets may have; none: its host's own.
    pub pool: Vec<String>,
    /// What it does at most, whoever asks.
    pub limits: LimitsView,
    /// Threads that can run at once.
    pub processors: u64,
    /// Its runs.
    pub runs: Vec<RunView>,
}

/// What an agent does at most.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitsView {
    /// What it sends, all runs together, with headers; none: as much as it can.
    pub rate: Option<Rate>,
    /// Prefixes that traffic may come from and go to; none: any.
    pub peers: Vec<String>,
    /// Hours of the day (UTC) in which it plays; none: always.
    pub hours: Option<String>,
}

/// What every error is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// One sentence.
    pub error: String,
}

/// Asks for a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// A secret that all parties of the run share: 32 hexadecimal digits.
    pub key: String,
    /// The run ends when it has not been renewed for so many seconds: 0.5 to 60.
    pub lease_s: f64,
    /// Congestion controls that connections take turns in, by the kernel's names; none: its default.
    #[serde(default)]
    pub congestion: Vec<String>,
    /// Threads: 1 to 64.
    #[serde(default = "one")]
    pub threads: u16,
    /// Whether every transfer is logged, and not only counted.
    #[serde(default = "yes")]
    pub flows: bool,
    /// Seconds for which the others have played when this part joins them; 0: nobody has.
    #[serde(default)]
    pub elapsed_s: f64,
    /// The agent's part.
    pub part: Part,
}

fn yes() -> bool {
    true
}

fn one() -> u16 {
    1
}

/// An agent's part in a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Answer clients.
    Server(ServerPart),
    /// Play traffic to servers.
    Client(ClientPart),
}

/// The part of a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPart {
    /// Of each of the run's clients, prefixes that it may come from; none: where its lease comes from.
    pub clients: Vec<Vec<String>>,
    /// Prefixes at which it is sent traffic, all within its own pool; none: where clients reach it.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The port that it had before, if its clients know it already; 0: any.
    #[serde(default)]
    pub port: u16,
}

/// The part of a client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientPart {
    /// Which of the run's clients it is, from 0.
    pub index: u16,
    /// How many clients the run has.
    pub of: u16,
    /// Prefixes that its connections come from, all within its own pool; none: the kernel chooses.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The run's servers.
    pub servers: Vec<TargetPart>,
    /// What is played.
    pub traffic: TrafficPart,
    /// Connections stay open for the next transfer of their session between the same hosts.
    #[serde(default)]
    pub keep: bool,
    /// Code points (DSCP, 0 to 63) that connections take turns in; none: 0.
    #[serde(default)]
    pub dscp: Vec<u8>,
}

/// A server, as its clients know it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPart {
    /// Address and TCP port.
    pub address: String,
    /// UDP port.
    pub datagrams: u16,
    /// Prefixes at which it is sent traffic; none: its address.
    #[serde(default)]
    pub pool: Vec<String>,
}

/// What is played.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TrafficPart {
    /// A flow-level model.
    Model(ModelPart),
    /// Sessions that make the same transfer again and again, one after the other.
    Closed {
        /// Sessions: at most 1048576.
        sessions: u32,
        /// Bytes to the server.
        up: u64,
        /// Bytes to the client.
        down: u64,
    },
}

/// A flow-level model, and how it is played.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPart {
    /// The text of the model's file.
    pub model: String,
    /// Seed of all draws.
    #[serde(default)]
    pub seed: u64,
    /// Sessions and sources per one of the model's.
    #[serde(default = "unity")]
    pub load: f64,
    /// Intervals last so many times less than in the model.
    #[serde(default = "unity")]
    pub compression: f64,
    /// The interval to begin with.
    #[serde(default)]
    pub first: u32,
    /// After the last interval comes the first, for ever.
    #[serde(default)]
    pub cycle: bool,
}

fn unity() -> f64 {
    1.0
}

/// Changes a run. What is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The play begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
    /// Everything ends. What was counted and logged stays until the run is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
    /// Sessions and sources per one of the model's, from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Something else is played from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficPart>,
    /// The run ends when it is not renewed for so many seconds from now on: 0.5 to 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<f64>,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Its number.
    pub id: u64,
    /// `server` or `client`.
    pub part: String,
    /// Which start of the agent it belongs to.
    pub instance: String,
    /// `waiting` for its start, `playing`, `played` to its end, `stopped`, or `expired` because its lease was not
    /// renewed.
    pub state: String,
    /// TCP port of a server, else 0.
    pub port: u16,
    /// UDP port of a server, else 0.
    pub datagrams: u16,
    /// Seconds since it was started; of a part that joined later, since the others were, as far as it knows.
    pub elapsed_s: f64,
}

/// What a run counted so far.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatisticsView {
    /// The run.
    pub run: RunView,
    /// What happened how often.
    pub counts: Counts,
    /// Sessions that are active.
    pub sessions: u64,
    /// Connections that are open.
    pub open: u64,
    /// Other parties of the run that are there.
    pub parties: u64,
    /// By how much transfers and exchanges began later than they were due.
    pub late: LateView,
    /// Error numbers (errno(3)) of what failed, and how often.
    pub failures: BTreeMap<i32, u64>,
    /// Flows logged so far.
    pub flows: u64,
    /// What to know before trusting it.
    pub warnings: Vec<Doubt>,
}

/// Lateness, microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LateView {
    /// Transfers and exchanges begun.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The latest.
    pub max_us: f64,
}

/// A doubt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// Its name.
    pub code: String,
    /// One sentence.
    pub message: String,
}

impl From<Late> for LateView {
    fn from(late: Late) -> LateView {
        let us = |d: Dur| d.as_secs_f64() * 1e6;
        LateView {
            count: late.count,
            p50_us: us(late.p50),
            p99_us: us(late.p99),
            p999_us: us(late.p999),
            max_us: us(late.max),
        }
    }
}

impl LateView {
    /// Two parts together: how many began, and the quantiles of whichever was later.
    fn with(self, other: LateView) -> LateView {
        let later = if other.p99_us > self.p99_us {
            other
        } else {
            self
        };
        LateView {
            count: self.count + other.count,
            max_us: self.max_us.max(other.max_us),
            ..later
        }
    }
}

impl StatisticsView {
    /// With what an earlier part of the same agent counted.
    pub(super) fn after(mut self, earlier: &StatisticsView) -> StatisticsView {
        self.counts.add(&earlier.counts);
        self.late = self.late.with(earlier.late);
        for (&error, n) in &earlier.failures {
            *self.failures.entry(error).or_default() += n;
        }
        self.flows += earlier.flows;
        let known: Vec<String> = self.warnings.iter().map(|w| w.message.clone()).collect();
        let new = earlier.warnings.iter();
        let new = new.filter(|w| !known.contains(&w.message)).cloned();
        self.warnings.extend(new.collect::<Vec<_>>());
        self
    }

    pub(super) fn new(run: RunView, statistics: Statistics, flows: u64) -> StatisticsView {
        let doubt = |w: Warning| Doubt {
            code: w.code,
            message: w.message,
        };
        StatisticsView {
            run,
            counts: statistics.counts,
            sessions: statistics.sessions,
            open: statistics.open,
            parties: statistics.parties,
            late: statistics.late.into(),
            warnings: statistics.doubts().into_iter().map(doubt).collect(),
            failures: statistics.failures,
            flows,
        }
    }
}

/// Closed sessions at most, as many as a model may have: each takes memory.
const MOST_SESSIONS: u32 = 1 << 20;

/// A wrong request: why.
pub(super) type Wrong = String;

impl TrafficPart {
    /// The plan of it.
    pub(super) fn plan(&self) -> Result<SharedPlan, Wrong> {
        match self {
            TrafficPart::Closed { sessions, .. } if *sessions > MOST_SESSIONS => Err(format!(
                "closed: {sessions} sessions are more than {MOST_SESSIONS}"
            )),
            TrafficPart::Closed { sessions, up, down } => Ok(std::sync::Arc::new(Closed {
                sessions: u64::from(*sessions),
                up: *up,
                down: *down,
            })),
            TrafficPart::Model(part) => {
                let model = FlowModel::from_slice(part.model.as_bytes())
                    .map_err(|e| format!("the model: {e}"))?;
                let plan = part.plan(&model).map_err(|e| e.to_string())?;
                let seed = part.seed;
                Ok(std::sync::Arc::new(Model { plan, seed }))
            }
        }
    }

    /// The same with another load.
    pub(super) fn loaded(&self, load: f64) -> Result<TrafficPart, Wrong> {
        match self {
            TrafficPart::Model(part) => Ok(TrafficPart::Model(ModelPart {
                load,
                ..part.clone()
            })),
            TrafficPart::Closed { .. } => {
                Err("closed sessions have no load: send other traffic".into())
            }
        }
    }
}

impl ModelPart {
    /// How `model`, which is the one that its text says, is played.
    ///
    /// # Errors
    /// Where it cannot be played so.
    pub fn plan(&self, model: &FlowModel) -> Result<flowlevel::Plan, PlanError> {
        let playback = Playback {
            load: self.load,
            compression: self.compression,
            first: self.first as usize,
            cycle: self.cycle,
            ..Playback::default()
        };
        flowlevel::Plan::new(model, &playback)
    }
}
