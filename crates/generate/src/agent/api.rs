//! The messages of an agent's HTTP interface. Their comments appear in its OpenAPI description.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Code, Dur, Rate, Warning};
use swell_traffic::flowlevel::{self, FlowModel, PlanError, Playback};

use crate::{Closed, Counts, Model, SharedPlan, Statistics};
use swell_host::Late;

/// The state of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// `swell-agent`.
    pub program: String,
    /// Its version. Controller and agents must have the same.
    pub version: String,
    /// Identifies this start of the program. After a restart, the agent does not know its earlier runs.
    pub instance: String,
    /// Where it receives traffic, if configured. Otherwise the address that the controller connects to, or the first
    /// address of its pool.
    pub address: Option<String>,
    /// Prefixes of the addresses that its sockets may use; if empty, the host's own addresses.
    pub pool: Vec<String>,
    /// Limits that apply to every controller.
    pub limits: LimitsView,
    /// Number of threads that can run at the same time.
    pub processors: u64,
    /// Its runs.
    pub runs: Vec<RunView>,
}

/// The limits of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitsView {
    /// Sending rate of all runs together, headers included; none means unlimited.
    pub rate: Option<Rate>,
    /// Prefixes that traffic may come from and go to; if empty, any.
    pub peers: Vec<String>,
    /// Hours of the day (UTC) in which it generates traffic; none means always.
    pub hours: Option<String>,
}

/// The body of every error response.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// One sentence.
    pub error: String,
}

/// A request for a new run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// A secret that all parties of the run share: 32 hexadecimal digits.
    pub key: String,
    /// Seconds without a renewal after which the run ends: 0.5 to 60.
    pub lease_s: f64,
    /// Congestion controls that connections use in rotation, by their kernel names; if empty, the kernel's default.
    #[serde(default)]
    pub congestion: Vec<String>,
    /// Number of threads: 1 to 64.
    #[serde(default = "one")]
    pub threads: u16,
    /// Whether every transfer is logged, in addition to being counted.
    #[serde(default = "yes")]
    pub flows: bool,
    /// Seconds for which the other parties have already been sending when this part joins; 0 in a new run.
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
    /// Answers clients.
    Server(ServerPart),
    /// Sends traffic to servers.
    Client(ClientPart),
}

/// The configuration of a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPart {
    /// For each of the run's clients, the prefixes that it may connect from; if empty, the address that its lease
    /// comes from.
    pub clients: Vec<Vec<String>>,
    /// Prefixes at which it accepts traffic, all within its own pool; if empty, the address at which clients reach
    /// it.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The port to listen on, if clients already know it from an earlier part; 0 for any.
    #[serde(default)]
    pub port: u16,
}

/// The configuration of a client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientPart {
    /// Index of this client among the run's clients, from 0.
    pub index: u16,
    /// Number of clients in the run.
    pub of: u16,
    /// Prefixes of the source addresses of its connections, all within its own pool; if empty, the kernel chooses.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The run's servers.
    pub servers: Vec<TargetPart>,
    /// The traffic.
    pub traffic: TrafficPart,
    /// Whether connections stay open for the next transfer of their session between the same hosts.
    #[serde(default)]
    pub keep: bool,
    /// DSCPs (0 to 63) that connections use in rotation; if empty, 0.
    #[serde(default)]
    pub dscp: Vec<u8>,
}

/// A server as its clients see it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPart {
    /// Address and TCP port.
    pub address: String,
    /// UDP port.
    pub datagrams: u16,
    /// Prefixes at which it accepts traffic; if empty, its address.
    #[serde(default)]
    pub pool: Vec<String>,
}

/// The traffic that a client generates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TrafficPart {
    /// A flow-level model.
    Model(ModelPart),
    /// Sessions that repeat the same transfer, each as soon as the previous one has ended.
    Closed {
        /// Number of sessions, 1 to 1048576.
        sessions: u32,
        /// Bytes to the server.
        up: u64,
        /// Bytes to the client.
        down: u64,
    },
}

/// A flow-level model and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPart {
    /// The text of the model's file.
    pub model: String,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Factor on the model's numbers of sessions and sources.
    #[serde(default = "unity")]
    pub load: f64,
    /// Factor by which the model's intervals are shortened.
    #[serde(default = "unity")]
    pub compression: f64,
    /// Index of the first interval.
    #[serde(default)]
    pub first: u32,
    /// Whether the first interval follows the last one, without end.
    #[serde(default)]
    pub cycle: bool,
}

fn unity() -> f64 {
    1.0
}

/// A change of a run. Absent fields leave their values unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Starts the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<bool>,
    /// Stops everything. Counters and logged flows remain until the run is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
    /// New factor on the model's numbers of sessions and sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// New traffic, which replaces the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficPart>,
    /// New lease: seconds without a renewal after which the run ends, 0.5 to 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<f64>,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Its number. The first number after a start of the agent is random.
    pub id: u64,
    /// `server` or `client`.
    pub part: String,
    /// The start of the agent that it belongs to.
    pub instance: String,
    /// `waiting` for its start, `playing`, `played` to its end, `stopped`, or `expired` because its lease was not
    /// renewed.
    pub state: String,
    /// TCP port of a server; otherwise 0.
    pub port: u16,
    /// UDP port of a server; otherwise 0.
    pub datagrams: u16,
    /// Seconds since its start. For a part that joined later: seconds since the start of the others, as far as it
    /// knows.
    pub elapsed_s: f64,
}

/// Statistics of a run so far.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatisticsView {
    /// The run.
    pub run: RunView,
    /// Event counters.
    pub counts: Counts,
    /// Active sessions.
    pub sessions: u64,
    /// Open connections.
    pub open: u64,
    /// Other parties of the run with a valid lease.
    pub parties: u64,
    /// Indices of up to 16 other parties without one.
    pub absent: Vec<u16>,
    /// Why connections to a server were refused because of their addresses; the last eight different reasons.
    pub refused: Vec<String>,
    /// How late transfers and exchanges began.
    pub late: LateView,
    /// Error numbers (errno(3)) of failed transfers, with their counts.
    pub failures: BTreeMap<i32, u64>,
    /// Error numbers (errno(3)) of datagram sources that failed because of an error, with their counts.
    pub source_failures: BTreeMap<i32, u64>,
    /// Flows logged so far.
    pub flows: u64,
    /// Warnings about the results.
    pub warnings: Vec<Doubt>,
}

/// Lateness in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LateView {
    /// Number of transfers and exchanges.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// A warning.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// Its identifier.
    #[schemars(with = "String")]
    pub code: Code,
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
    /// Combines two parts: the sum of the counts, the larger maximum, and the quantiles of the part with the larger 99th
    /// percentile.
    fn with(self, other: LateView) -> LateView {
        let worse = if other.p99_us > self.p99_us {
            other
        } else {
            self
        };
        LateView {
            count: self.count + other.count,
            max_us: self.max_us.max(other.max_us),
            ..worse
        }
    }
}

impl StatisticsView {
    /// Adds what an earlier part of the same agent counted.
    pub(super) fn after(mut self, earlier: &StatisticsView) -> StatisticsView {
        self.counts.add(&earlier.counts);
        self.late = self.late.with(earlier.late);
        for (&error, n) in &earlier.failures {
            *self.failures.entry(error).or_default() += n;
        }
        for (&error, n) in &earlier.source_failures {
            *self.source_failures.entry(error).or_default() += n;
        }
        self.flows += earlier.flows;
        for old in &earlier.warnings {
            self.warn(old);
        }
        self
    }

    /// Adds a warning of an earlier part. What both parts counted is one warning with the sum.
    fn warn(&mut self, old: &Doubt) {
        let same =
            |w: &&mut Doubt| w.code == old.code && counted(&w.message).1 == counted(&old.message).1;
        let Some(known) = self.warnings.iter_mut().find(same) else {
            self.warnings.push(old.clone());
            return;
        };
        if let ((Some(n), rest), (Some(m), _)) = (counted(&known.message), counted(&old.message)) {
            known.message = format!("{} {rest}", n.saturating_add(m));
        }
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
            absent: statistics.absent.clone(),
            refused: statistics.refused.clone(),
            late: statistics.late.into(),
            warnings: statistics.doubts().into_iter().map(doubt).collect(),
            failures: statistics.failures,
            source_failures: statistics.source_failures,
            flows,
        }
    }
}

/// The number with which a message begins, and the rest of it.
fn counted(message: &str) -> (Option<u64>, &str) {
    let number = message
        .split_once(' ')
        .and_then(|(n, rest)| Some((n.parse().ok()?, rest)));
    number.map_or((None, message), |(n, rest)| (Some(n), rest))
}

/// Most sessions of a closed workload, as many as a model may have, because each takes memory.
const MOST_SESSIONS: u32 = 1 << 20;

/// The reason why a request is invalid.
pub(super) type Wrong = String;

impl TrafficPart {
    /// Its plan.
    pub(super) fn plan(&self) -> Result<SharedPlan, Wrong> {
        match self {
            TrafficPart::Closed { sessions, .. } if *sessions > MOST_SESSIONS => Err(format!(
                "closed: {sessions} sessions are more than {MOST_SESSIONS}"
            )),
            TrafficPart::Closed { sessions: 0, .. } => Err("closed: at least one session".into()),
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

    /// Whether `other` is the same model, with the same settings except for the load.
    pub(super) fn is_load_of(&self, other: &TrafficPart) -> bool {
        match other {
            TrafficPart::Model(part) => self.loaded(part.load).is_ok_and(|same| same == *other),
            TrafficPart::Closed { .. } => false,
        }
    }

    /// The same traffic with another load.
    pub(super) fn loaded(&self, load: f64) -> Result<TrafficPart, Wrong> {
        match self {
            TrafficPart::Model(part) => Ok(TrafficPart::Model(ModelPart {
                load,
                ..part.clone()
            })),
            TrafficPart::Closed { .. } => Err("closed sessions have no load".into()),
        }
    }
}

impl ModelPart {
    /// The plan for `model`, which must be the parsed text of this part.
    ///
    /// # Errors
    /// If the parameters do not fit the model.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_parts_of_an_agent_counted_is_one_warning() {
        let part = |texts: &[&str]| {
            let run = RunView {
                id: 1,
                part: "client".into(),
                instance: String::new(),
                state: "playing".into(),
                port: 0,
                datagrams: 0,
                elapsed_s: 0.0,
            };
            let mut view = StatisticsView::new(run, Statistics::default(), 0);
            view.warnings.extend(texts.iter().map(|&text| Doubt {
                code: Code::AgentLimit,
                message: text.into(),
            }));
            view
        };
        let both = part(&["12 times sending waited", "it was late"]).after(&part(&[
            "30 times sending waited",
            "it was late",
            "5 others",
        ]));
        let texts: Vec<&str> = both.warnings.iter().map(|w| &*w.message).collect();
        assert_eq!(
            texts,
            ["42 times sending waited", "it was late", "5 others"]
        );
    }
}
