//! Sessions of files and datagram sources from a flow-level model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Code, Dur, Rate, Warning};
use swell_traffic::Network;
use swell_traffic::flowlevel::{FlowModel, Plan, Playback, Player, Share};
use swell_workload::SessionsConfig;

use super::contract::{
    Complaint, Data, Files, Input, Keys, Machine, Native, Pace, Plausible, Plays, Resolving, Role,
    Setting, Shown, Slot, path, reads, trimmed,
};
use super::defaults::unscaled;
use super::learnt::LESS;
use super::replay::significant;
use super::{Active, Traffic};
use crate::bundled;
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{LoadBasis, RateSpec, Route, TcpSettings};
use crate::hash::Hash;
use crate::measure::Measure;
use crate::simulate::before::steady;
use crate::simulate::transport::tcp;
use crate::store::ModelFacts;

/// Sessions of files and sources of datagrams from a flow-level model, after Harpoon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// The path of a flow-level model (`swell learn` of flow records), relative to the experiment file.
    pub model: String,
    /// Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    /// `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what sessions offer or what the network carries of it. Default: carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sessions, as a multiple of the model's. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<f64>,
    /// How many times faster the model's intervals follow one another; the rate stays.
    #[serde(default = "unscaled")]
    pub compression: f64,
    /// File sizes, as a multiple of the model's.
    #[serde(default = "unscaled")]
    pub sizes: f64,
    /// Waits from one file to the next, as a multiple of the model's.
    #[serde(default = "unscaled")]
    pub gaps: f64,
    /// The model's interval to begin with, from 0; after the last comes this one again. Those before it are not
    /// played.
    #[serde(default)]
    pub first: u32,
    /// One-way delay of the access path on each side of the bottleneck. Default: the network's `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// The TCP that clients and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// A flow-level model in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionsTraffic {
    /// The model as read.
    pub model: Arc<FlowModel>,
    /// Playback parameters; `load` is the result of the calibration.
    pub playback: Playback,
    /// One-way delay of the access path on each side of the bottleneck.
    pub delay: Dur,
    /// Rate of each host's access path.
    pub access: Option<Rate>,
    /// Whether a run begins without sessions in progress.
    pub cold: bool,
    /// The TCP that clients and servers run.
    pub tcp: TcpSettings,
}

impl Sessions {
    /// Playback parameters at this load.
    fn playback(&self, load: f64) -> Playback {
        Playback {
            load,
            compression: self.compression,
            sizes: self.sizes,
            gaps: self.gaps,
            first: self.first as usize,
            cycle: true,
            ..Playback::default()
        }
    }

    /// Reads the model and checks that it can generate traffic.
    fn load(&self, base: &Path) -> Result<Input, Complaint> {
        let name = &self.model;
        let (path, bytes) = match bundled::flow_model(name) {
            Some(bytes) => (PathBuf::from(format!("{name}.json.zst")), bytes.to_vec()),
            None => {
                let path = base.join(name);
                let bytes = std::fs::read(&path).map_err(|e| {
                    let known: Vec<&str> = bundled::flow_models().collect();
                    let hint = format!(
                        "`swell learn FLOWFILE` makes a flow-level model; bundled: {}",
                        known.join(", ")
                    );
                    (format!("{}: {e}", path.display()), Some(hint))
                })?;
                (path, bytes)
            }
        };
        let model = FlowModel::from_slice(&bytes).map_err(|e| {
            let hint = "a model learnt from packets is played by kind = \"learnt\"";
            (format!("model `{name}`: {e}"), Some(hint.into()))
        })?;
        Plan::new(&model, &self.playback(self.sessions.unwrap_or(1.0)))
            .map_err(|e| (format!("model `{name}`: {e}"), None))?;
        let facts = ModelFacts {
            name: model.name.clone(),
            source: match bundled::flow_model(name) {
                Some(_) => format!("bundled {name}"),
                None => path.display().to_string(),
            },
            hash: Hash::new().part(&bytes).hex(),
            note: model.provenance.note.clone(),
            warnings: model.warnings.clone(),
        };
        let file_name = path.file_name().map_or_else(PathBuf::new, PathBuf::from);
        Ok(Input {
            data: Data::Flows(Arc::new(model)),
            facts,
            copy: Some((file_name.display().to_string(), bytes)),
        })
    }
}

impl Keys for Sessions {
    reads!(name, rate, load, active, route, delay);

    fn load_keys() -> &'static [&'static str] {
        &["sessions", "load"]
    }

    fn is_real(&self) -> bool {
        true
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.scaled(at, self.rate.as_ref(), "sessions", self.sessions.is_some());
        if let Some(k) = self.sessions {
            found.factor(at.key("sessions"), k, false);
        }
        found.factor(at.key("compression"), self.compression, false);
        found.factor(at.key("sizes"), self.sizes, false);
        found.factor(at.key("gaps"), self.gaps, false);
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    /// A flow-level model gives the sizes of files, but not the overhead of the transport.
    fn foretells(&self) -> bool {
        false
    }

    fn pace(&self) -> Pace {
        Pace::Sessions(self.sessions.unwrap_or(1.0))
    }

    fn reads(&self) -> Option<&'static str> {
        Some("model")
    }

    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        let read = Sessions::load(self, from.base);
        let mut input = read.map_err(|complaint| ("model", complaint))?;
        if let Some((name, _)) = &mut input.copy {
            *name = from.copy(name);
            self.model.clone_from(name);
        }
        Ok(Some(input))
    }

    /// A run plays the first intervals only.
    fn native_bps(&self, of: &Native<'_>) -> f64 {
        match of.input {
            Some(Data::Flows(model)) => {
                let [from, to] = of.counted;
                model.played_rates_between(&self.playback(1.0), from, to)[1]
            }
            _ => 0.0,
        }
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let Some(Data::Flows(model)) = with.input else {
            return None;
        };
        Some(Arc::new(SessionsTraffic {
            model: Arc::clone(model),
            playback: self.playback(with.pace.or(self.sessions).unwrap_or(1.0)),
            delay: self.delay.unwrap_or_else(|| with.default_delay()),
            access: None,
            cold: false,
            tcp: self.tcp.clone(),
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    fn describe(&self, _: Role) -> String {
        let mut what = format!("sessions: {}", self.model);
        for (name, k) in [
            ("sizes", self.sizes),
            ("gaps", self.gaps),
            ("time", 1.0 / self.compression),
        ] {
            if k != 1.0 {
                what.push_str(&format!(", {name} × {}", trimmed(k)));
            }
        }
        what
    }

    fn shown(&self) -> Shown {
        Shown::Learnt
    }
}

impl Plays for SessionsTraffic {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let plan =
            Plan::new(&self.model, &self.playback).map_err(|e| RunError::Failed(e.into()))?;
        let (seed, access) = (at.seed, path(self.delay, self.access));
        let offered = (self.model).played_rates_between(&self.playback, Dur::ZERO, at.duration);
        let mut network = Network::shared(at.way.round_trip, at.way.bps(), offered);
        network.rtt += self.delay * 4;
        let (player, under_way) = match self.cold {
            true => (Player::new(plan, seed, Share::ALL), Vec::new()),
            false => steady(plan, seed, &network),
        };
        let machine = swell_workload::Sessions::new(SessionsConfig {
            under_way,
            ..SessionsConfig::alike(player, seed, access)
        });
        Ok(Some((Box::new(machine), tcp(&self.tcp))))
    }

    fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        let once = Playback {
            cycle: false,
            ..self.playback
        };
        let Ok(plan) = Plan::new(&self.model, &once) else {
            return Vec::new();
        };
        let few = plan.few().filter(|_| self.playback.compression > 1.0);
        let mut doubts: Vec<Warning> = few.into_iter().collect();
        let Some(length) = plan.length().filter(|&length| at.duration > length) else {
            return doubts;
        };
        doubts.push(Warning::note(
            Code::ModelRepeats,
            format!(
                "a run is longer than the {} s of {} `{}`: its intervals come again",
                significant(length.as_secs_f64()),
                at.role.word(),
                at.name
            ),
        ));
        doubts
    }

    fn class(&self, index: u32) -> String {
        ["file", "datagrams"][(index as usize).min(1)].to_owned()
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let load = self.playback.load;
        let one = Playback {
            load: 1.0,
            ..self.playback
        };
        let rates = (self.model).played_rates_between(&one, at.warmup, at.duration);
        Plausible {
            bps: rates.map(|r| r * load.powf(LESS)),
            burst: 1.0,
            grown: load.powf(1.0 - LESS),
        }
    }
}
