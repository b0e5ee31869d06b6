//! Traffic from a learnt model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Code, Dur, Rate, Warning};
use swell_traffic::{Dependency, Knobs, Model, Network, Schedule};
use swell_workload::Structural;

use super::contract::Offered;
use super::contract::{
    Complaint, Data, Files, Input, Keys, Machine, Native, Pace, Plausible, Plays, Resolving, Role,
    Setting, Shown, Slot, reads, trimmed,
};
use super::defaults::unscaled;
use super::energy::of_octave;
use super::input::LearntModel;
use super::replay::significant;
use super::{Active, Energy, Traffic};
use crate::bundled;
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::names::suggest;
use crate::file::{LoadBasis, RateSpec, Route, TcpSettings, is_default};
use crate::hash::Hash;
use crate::measure::Measure;
use crate::simulate::transport::tcp;
use crate::store::ModelFacts;

/// Traffic from a learnt model: users who wait for what they asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// A bundled model by name (`swell models` lists them), or the path of a model file, relative
    /// to the experiment file.
    pub model: String,
    /// Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    /// `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what sessions offer or what the network carries of it. Default: carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sessions per second, as a multiple of the model's. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<f64>,
    /// Response sizes, as a multiple of the model's.
    #[serde(default = "unscaled")]
    pub response: f64,
    /// Request sizes, as a multiple of the model's.
    #[serde(default = "unscaled")]
    pub request: f64,
    /// Think times, as a multiple of the model's; 0 for users that never pause.
    #[serde(default = "unscaled")]
    pub think: f64,
    /// Round-trip propagation delay of every path. Default: the model's, host by host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Dur>,
    /// Access capacity of every client and every server, both directions. Default: the model's, host by host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// Where in the model's trace a run starts. Default: drawn anew by every seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Dur>,
    /// Dependencies of the model to break, to see what they do.
    #[serde(default)]
    pub independent: Vec<Dependency>,
    /// Whether a run begins with no session in progress. Default: in steady state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cold: bool,
    /// The TCP that users and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// More energy at one timescale. Default: what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// A learnt model in a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearntTraffic {
    /// The model as read, before the parameters in `knobs` are applied.
    pub learnt: Arc<LearntModel>,
    /// Parameters; `sessions` is the result of the calibration.
    pub knobs: Knobs,
    /// Whether a run begins with no session in progress.
    pub cold: bool,
    /// The TCP that users and servers run.
    pub tcp: TcpSettings,
}

impl Learnt {
    fn knobs(&self, sessions: Option<f64>) -> Knobs {
        Knobs {
            sessions: sessions.or(self.sessions).unwrap_or(1.0),
            response: self.response,
            request: self.request,
            think: self.think,
            rtt: self.rtt,
            access: self.access,
            phase: self.phase,
            independent: self.independent.clone(),
        }
    }

    /// The mean rate of `model` in the down direction with these keys, bits per second.
    fn native(&self, model: &LearntModel, seed: u64) -> f64 {
        model.rates(&self.knobs(Some(1.0)), seed)[1]
    }

    /// Rejects a rate for which a model is too small.
    fn too_small(&self, learnt: &LearntModel, seed: u64) -> Option<Complaint> {
        let (rate, model) = (self.rate.as_ref()?, &learnt.model);
        let own = self.native(learnt, seed);
        if !model.has_duration() {
            let message = format!(
                "`{}` lasts no time, for all packets of its trace have one time stamp: no number of its sessions has a rate",
                self.model
            );
            return Some((message, Some("learn from a longer trace".to_owned())));
        }
        if own <= 0.0 {
            let what = match model.sessions.is_empty() {
                true => "has no sessions",
                false => "has no sessions that send anything down",
            };
            let hint = "learn from a trace with traffic towards its clients; kind \"replay\" sends packets as they are";
            let message = format!("`{}` {what}: no number of them has a rate", self.model);
            return Some((message, Some(hint.to_owned())));
        }
        let RateSpec::Fixed(rate) = rate else {
            return None;
        };
        let rate = rate.bps() as f64;
        let copies = rate / own;
        let sessions = model.sessions.len();
        (copies > MOST_COPIES).then(|| {
            (
                format!(
                    "`{}` is too small for {} Mbit/s: its {sessions} sessions are {} Mbit/s down, and {copies:.0} copies of them would be needed",
                    self.model,
                    significant(rate / 1e6),
                    significant(own / 1e6)
                ),
                Some(format!(
                    "learn from a busier link; at most {MOST_COPIES} copies are made, or as many as `sessions` says"
                )),
            )
        })
    }
}

/// Maximum number of copies of a model's sessions. More copies would only repeat a few sessions, and not resemble
/// traffic of that rate.
pub const MOST_COPIES: f64 = 100.0;

/// A model by its bundled name or by its path.
fn load(name: &str, base: &Path) -> Result<Input, Complaint> {
    let path = base.join(name);
    let (bytes, source, copy) = match bundled::model(name) {
        Some(bytes) => (bytes.to_vec(), "bundled".to_owned(), None),
        None if path.is_file() => {
            let bytes =
                std::fs::read(&path).map_err(|e| (format!("{}: {e}", path.display()), None))?;
            let file_name = path.file_name().map_or_else(PathBuf::new, PathBuf::from);
            let copy = (file_name.display().to_string(), bytes.clone());
            (bytes, path.display().to_string(), Some(copy))
        }
        None => {
            let known: Vec<&str> = bundled::models().collect();
            let hint = suggest(name, &known, "bundled models");
            let message = format!("no bundled model and no file is called `{name}`");
            return Err((message, Some(hint)));
        }
    };
    let model = Model::from_slice(&bytes).map_err(|e| (format!("model `{name}`: {e}"), None))?;
    let facts = ModelFacts {
        name: model.name.clone(),
        source,
        hash: Hash::new().part(&bytes).hex(),
        note: model.provenance.note.clone(),
        warnings: model.warnings.clone(),
    };
    Ok(Input {
        data: Data::Model(Arc::new(LearntModel::new(model))),
        facts,
        copy,
    })
}

impl Keys for Learnt {
    reads!(name, rate, load, active, energy, route);

    fn load_keys() -> &'static [&'static str] {
        &["sessions", "load"]
    }

    fn is_real(&self) -> bool {
        true
    }

    fn dropped(&self) -> Option<&[Dependency]> {
        Some(&self.independent)
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.scaled(at, self.rate.as_ref(), "sessions", self.sessions.is_some());
        if let Some(k) = self.sessions {
            found.factor(at.key("sessions"), k, false);
        }
        found.factor(at.key("response"), self.response, false);
        found.factor(at.key("request"), self.request, false);
        found.factor(at.key("think"), self.think, true);
        found.access(at.key("access"), self.access);
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn pace(&self) -> Pace {
        Pace::Sessions(self.sessions.unwrap_or(1.0))
    }

    // A cold run has no session that began before it, so its draws offer less than the model's mean.
    fn is_of_its_draws(&self) -> bool {
        self.phase.is_some() || self.cold
    }

    fn reads(&self) -> Option<&'static str> {
        Some("model")
    }

    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        let path = from.base.join(&self.model);
        let read = from.known.model(path, || load(&self.model, from.base));
        let mut input = read.map_err(|complaint| ("model", complaint))?;
        if let Data::Model(model) = &input.data
            && let Some(complaint) = self.too_small(model, from.seed)
        {
            return Err(("rate", complaint));
        }
        if let Some((name, _)) = &mut input.copy {
            *name = from.copy(name);
            self.model.clone_from(name);
        }
        Ok(Some(input))
    }

    fn native_bps(&self, of: &Native<'_>) -> f64 {
        match of.input {
            Some(Data::Model(model)) => self.native(model, of.seed),
            _ => 0.0,
        }
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let Some(Data::Model(model)) = with.input else {
            return None;
        };
        Some(Arc::new(LearntTraffic {
            learnt: Arc::clone(model),
            knobs: self.knobs(with.pace),
            cold: self.cold,
            tcp: self.tcp.clone(),
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    fn describe(&self, _: Role) -> String {
        let mut what = format!("learnt: {}", self.model);
        for (name, k) in [("responses", self.response), ("thinking", self.think)] {
            if k != 1.0 {
                what.push_str(&format!(", {name} × {}", trimmed(k)));
            }
        }
        if !self.independent.is_empty() {
            let dropped: Vec<&str> = self.independent.iter().map(|i| i.name()).collect();
            let all = Dependency::ALL
                .iter()
                .all(|d| self.independent.contains(&d.0));
            what.push_str(&match all {
                true => ", without any dependency".to_owned(),
                false => format!(", without {}", dropped.join(", ")),
            });
        }
        what
    }

    fn shown(&self) -> Shown {
        Shown::Learnt
    }
}

/// The warm-up that queues and congestion windows need on the paths of most models.
const WARM_UP: Dur = Dur::from_secs(5);

/// Exponent below one of the made-up rate over the number of sessions, so that calibration has some work to do.
pub(super) const LESS: f64 = 0.9;

impl LearntTraffic {
    /// The model with its parameters applied, its schedule, and the network that the schedule assumes.
    fn schedule(&self, at: &Setting<'_>) -> Result<(Arc<Model>, Schedule, Network), RunError> {
        let played = self.learnt.varied(&self.knobs, at.seed);
        let network = Network::met(&played, &self.knobs, at.way.round_trip, at.way.bps());
        let draw = match self.cold {
            true => Schedule::cold,
            false => Schedule::draw,
        };
        let schedule = draw(&played, &self.knobs, at.seed, at.duration, &network)
            .map_err(|e| RunError::Failed(e.into()))?;
        Ok((played, schedule, network))
    }
}

/// A doubt if an access capacity is below the mean rate of a host of the model: it then carries less, for a server of
/// many clients much less.
fn narrow(traffic: &LearntTraffic, at: &Setting<'_>) -> Option<Warning> {
    let (model, knobs) = (&traffic.learnt.model, &traffic.knobs);
    let access = knobs.access?;
    let mut clients = vec![[0.0; 2]; model.client_paths.len()];
    let mut servers = vec![[0.0; 2]; model.server_paths.len()];
    for session in &model.sessions {
        for connection in session.connections() {
            let [up, down] = connection.exchange.bytes().map(|bytes| bytes as f64);
            let bytes = [up * knobs.request, down * knobs.response];
            let hosts = [
                clients.get_mut(session.client as usize),
                servers.get_mut(connection.server as usize),
            ];
            for host in hosts.into_iter().flatten() {
                (0..2).for_each(|d| host[d] += session.weight * bytes[d]);
            }
        }
    }
    let most = access.bps() as f64 / 8.0 * model.duration.as_secs_f64();
    let slow = |hosts: &[[f64; 2]]| hosts.iter().filter(|h| h[0].max(h[1]) > most).count();
    let [slow_clients, slow_servers] = [slow(&clients), slow(&servers)];
    (slow_clients + slow_servers > 0).then(|| {
        Warning::warning(
            Code::NarrowAccess,
            format!(
                "{} `{}`: access = {access} is below the mean rate of {slow_clients} of {} clients and {slow_servers} of {} servers of the model: they carry less than the model says",
                at.role.word(),
                at.name,
                clients.len(),
                servers.len()
            ),
        )
    })
}

impl Plays for LearntTraffic {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let (played, schedule, _) = self.schedule(at)?;
        let machine = Structural::new(played, &schedule);
        Ok(Some((Box::new(machine), tcp(&self.tcp))))
    }

    fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let (played, schedule, network) = self.schedule(at)?;
        let volume = schedule.volume(&played, &network, at.warmup, at.duration);
        Ok(Some(Offered {
            mean: schedule.rates(&played).map(|bps| bps * self.knobs.sessions),
            drawn: volume.map(|bytes| bytes * 8.0 / at.seconds()),
        }))
    }

    fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        let (role, name) = (at.role.word(), at.name);
        let mut doubts = Vec::new();
        if at.warmup < WARM_UP {
            doubts.push(Warning::warning(
                Code::ShortWarmUp,
                format!(
                    "{role} `{name}` begins with its sessions in progress, but with an empty queue and small windows; the warm-up of {} is less than {WARM_UP}",
                    at.warmup
                ),
            ));
        }
        doubts.extend(narrow(self, at));
        if self.knobs.phase.is_some() && at.replication > 0 {
            doubts.push(Warning::note(
                Code::SamePhase,
                format!(
                    "every replication of {role} `{name}` begins at the same place of the model's trace: intervals do not cover other times of the trace"
                ),
            ));
        }
        if at.duration > self.learnt.model.duration {
            doubts.push(Warning::note(
                Code::ModelRepeats,
                format!(
                    "a run is longer than the {} s behind {role} `{name}`: its sessions come again, in another order",
                    significant(self.learnt.model.duration.as_secs_f64())
                ),
            ));
        }
        doubts
    }

    fn variance(&self, _: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let load = &self.learnt.model.load;
        let bytes = load.bytes.each_ref().map(|way| way.iter().sum::<u64>());
        let busier = usize::from(bytes[0] <= bytes[1]);
        let bins = self.learnt.model.duration.as_secs_f64() / load.lsd_bin.as_secs_f64();
        let j = (timescale.as_nanos() / load.lsd_bin.as_nanos().max(1)).checked_ilog2();
        let of_model = j.and_then(|j| {
            let level = load.lsd[busier].get(j.checked_sub(1)? as usize)?;
            of_octave(level.exp2(), j, bytes[busier] as f64 / bins)
        });
        // The copies of sessions are independent, so the relative variance falls with their number.
        Ok(of_model.map(|v| v / self.knobs.sessions))
    }

    fn class(&self, index: u32) -> String {
        let class = self.learnt.model.classes.get(index as usize);
        class.map_or_else(String::new, |c| c.name.clone())
    }

    fn ports(&self) -> Vec<(u16, bool)> {
        let class = |c: &swell_traffic::Class| (swell_learn::server_port(&c.name), c.udp);
        self.learnt.model.classes.iter().map(class).collect()
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let rates = self.learnt.rates(&self.knobs, at.seed);
        Plausible {
            bps: rates.map(|r| r * self.knobs.sessions.powf(LESS)),
            burst: 1.5,
            grown: self.knobs.sessions.powf(1.0 - LESS),
        }
    }
}
