//! Sessions learnt from the flow records of another background.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate};
use swell_learn::FlowLearner;
use swell_traffic::flowlevel::{Options, Playback, Profile};

use super::contract::{
    Data, Input, Keys, Native, Resolving, Role, Seen, Shown, Slot, Source, reads,
};
use super::defaults::unscaled;
use super::sessions::SessionsTraffic;
use super::{Active, Traffic};
use crate::exporter::Exporter;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings, is_default};
use crate::measure::Measure;
use crate::packets::hosts::LEFT_NETWORKS;
use crate::store::ModelFacts;

/// Sessions learnt from the flow records of another background, which a simulated run of that one exports (after
/// Sommers & Barford, "Self-configuring network traffic generation", IMC 2004).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Imitation {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// The background that is imitated: it is simulated alone, for as long as a run, with the seed of the first run.
    pub of: String,
    /// How its flow records are exported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub records: Exporter,
    /// Length of the intervals whose volumes are learnt.
    #[serde(default = "interval")]
    pub interval: Dur,
    /// Whose arithmetic learns.
    #[serde(default, skip_serializing_if = "is_default")]
    pub profile: Profile,
    /// One-way delay of the access path on each side of the bottleneck. Default: the network's `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Rate of each host's access path. Default: not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// How long transfers take, as a multiple of those that were recorded. It decides which intervals a large file is
    /// expected to load.
    #[serde(default = "unscaled")]
    pub durations: f64,
    /// Whether a run begins with no session in progress. Default: in steady state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cold: bool,
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

/// The interval in the paper.
fn interval() -> Dur {
    Dur::from_secs(300)
}

impl Keys for Imitation {
    reads!(name, active, route, delay);

    fn is_real(&self) -> bool {
        true
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.access(at.key("access"), self.access);
        found.factor(at.key("durations"), self.durations, false);
        found.tcp(&at.key("tcp"), &self.tcp);
        let key = |name: &str| at.key(&format!("records.{name}"));
        self.records.check(key, found);
        if self.interval == Dur::ZERO {
            found.add(
                at.key("interval"),
                "intervals of no length",
                "5min is usual",
            );
        }
    }

    /// Flow records give the sizes of files, but not the overhead of the transport.
    fn foretells(&self) -> bool {
        false
    }

    fn imitates(&self) -> Option<(&str, Source<'_>)> {
        Some((&self.of, Source::Records(&self.records)))
    }

    fn learn(&self, seen: Seen<'_>) -> Result<Input, String> {
        let Seen::Records(exported) = seen else {
            return Err("it learns from flow records".into());
        };
        let mut learner = FlowLearner::new(Options {
            profile: self.profile,
            interval: self.interval,
            clients: Some(LEFT_NETWORKS.map(|(address, bits)| swell_learn::network(address, bits))),
            ..Options::default()
        });
        exported.records.iter().for_each(|r| learner.push(r));
        let learnt = learner.finish(&self.of, Default::default());
        let model = learnt.map_err(|e| e.to_string())?;
        Ok(Input {
            facts: ModelFacts {
                name: self.name.clone(),
                source: format!("flow records of background {}", self.of),
                hash: String::new(),
                note: String::new(),
                warnings: model.warnings.clone(),
            },
            data: Data::Flows(Arc::new(model)),
            copy: None,
        })
    }

    fn native_bps(&self, of: &Native<'_>) -> f64 {
        match of.input {
            Some(Data::Flows(model)) => model.payload_rates()[1],
            _ => 0.0,
        }
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let Some(Data::Flows(model)) = with.input else {
            return None;
        };
        Some(Arc::new(SessionsTraffic {
            model: Arc::clone(model),
            playback: Playback {
                durations: self.durations,
                cycle: true,
                ..Playback::default()
            },
            delay: self.delay.unwrap_or_else(|| with.default_delay()),
            access: self.access,
            cold: self.cold,
            tcp: self.tcp.clone(),
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    fn describe(&self, _: Role) -> String {
        format!("sessions learnt from flow records of {}", self.of)
    }

    fn shown(&self) -> Shown {
        Shown::Learnt
    }
}
