//! Packets of one size, at intervals that do not depend on the network.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate};
use swell_workload::{Law, ParametricConfig, Sources, Transport, Workload};

use super::contract::Offered;
use super::contract::{
    Asked, Information, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, access,
    path,
};
use super::{Active, Energy, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{LoadBasis, Pairing, RateSpec, Route, TcpSettings};
use crate::measure::{DELAY, GOODPUT, LOSS, Measure};
use crate::simulate::transport::tcp;
use crate::store::Measured;

/// Packets of one size, both directions, at intervals that depend on nothing. As a foreground they flow from
/// the beginning of the run, and take no rate from a background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parametric {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    /// measured mean rates of that background, both directions.
    pub rate: RateSpec,
    /// With `match:NAME`: the mean rates of that background over all replications, or those of the
    /// replication with the same seed, so that runs make pairs of equal load.
    #[serde(
        default,
        rename = "match",
        skip_serializing_if = "crate::file::is_default"
    )]
    pub pairing: Pairing,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered, what is sent;
    /// over TCP carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Mean rate of the up direction. Default: none, or what `match:NAME` measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_up: Option<Rate>,
    /// What carries the packets.
    #[serde(default)]
    pub transport: Transport,
    /// Sources per direction, which take turns: over TCP, connections. The packets of all together
    /// have the rate and the intervals.
    #[serde(default = "sources")]
    pub sources: u32,
    /// Network-layer size of a packet.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Whether each source has intervals of its own, independent of the others', with an even share of
    /// the rate. Default: all follow one schedule and take turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent: bool,
    /// One-way delay of the access path on each side of the bottleneck. Default: the network's `access_delay`; of
    /// a foreground, what makes its `rtt`, if that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// One-way delay of the access path on the right, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_right: Option<Dur>,
    /// Capacity of every access path on the left, both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
    /// The TCP that carries the packets, where TCP does.
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

fn sources() -> u32 {
    10
}

fn packet() -> Bytes {
    Bytes(1000)
}

/// Packets of one size in a run, fully specified.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PacketsTraffic {
    /// Their intervals.
    pub process: Process,
    /// Their transport protocol.
    pub transport: Transport,
    /// Sources per direction.
    pub sources: u32,
    /// Network-layer size of a packet.
    pub packet: Bytes,
    /// Mean rate up and down, in network-layer bytes; a zero direction is silent.
    pub rates: [Rate; 2],
    /// Whether each source has intervals of its own.
    pub independent: bool,
    /// One-way delay of the access path on the left and on the right.
    pub delays: [Dur; 2],
    /// Capacity of every access path on the left; unlimited if `None`.
    pub access: Option<Rate>,
    /// TCP settings, if the transport is TCP.
    pub tcp: TcpSettings,
}

/// The intervals between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Equal.
    Cbr,
    /// Exponential.
    Poisson,
}

impl Process {
    /// Its name as a background, and the word for its intervals as a foreground.
    fn words(self) -> [&'static str; 2] {
        match self {
            Process::Cbr => ["CBR", "equal"],
            Process::Poisson => ["Poisson", "exponential"],
        }
    }
}

impl Parametric {
    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "packets as a foreground are simulated only",
            "write backend = \"simulated\", or make them the background",
            found,
        );
        found.no_match(at, Some(&self.rate));
        if let RateSpec::Fixed(rate) = self.rate
            && rate == Rate::default()
            && self.rate_up.unwrap_or_default() == Rate::default()
        {
            found.silent(at.key("rate"));
        }
        found.sources(at.key("sources"), self.sources);
        found.access(at.key("access"), self.access);
        found.packet(at.key("packet"), self.packet);
        found.tcp(&at.key("tcp"), &self.tcp);
        if self.pairing == Pairing::PerSeed && matches!(self.rate, RateSpec::Fixed(_)) {
            found.add(
                at.key("match"),
                "there is no other background whose rates could be matched",
                "write rate = \"match:NAME\", or leave `match` out",
            );
        }
    }

    /// Delays of the access paths on the left and on the right, if the file gives one of them. The left one may be
    /// `access`, the network's.
    fn delays(&self, access: Dur) -> Option<[Dur; 2]> {
        if self.delay.is_none() && self.delay_right.is_none() {
            return None;
        }
        let left = self.delay.unwrap_or(access);
        Some([left, self.delay_right.unwrap_or(left)])
    }

    fn asks(&self) -> Asked {
        if self.transport == Transport::Tcp {
            return [None, None];
        }
        let down = match self.rate {
            RateSpec::Fixed(rate) => Some(("rate", rate)),
            // A matched rate is not known yet. If it is that of another path, `Plan::to_measure` has it measured.
            RateSpec::Match(_) => None,
        };
        [self.rate_up.map(|rate| ("rate_up", rate)), down]
    }

    fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
        requested(&self.rate, self.rate_up, measured)
    }

    /// Mean rates up and down, with matched rates resolved.
    fn rates(
        &self,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
        pace: Option<f64>,
    ) -> [Rate; 2] {
        let [up, down] = match &self.rate {
            RateSpec::Fixed(rate) => [Rate::default(), *rate],
            RateSpec::Match(name) => measured.get(name).map_or([Rate::default(); 2], |m| {
                let own = match self.pairing {
                    Pairing::Mean => None,
                    Pairing::PerSeed => m.each(replication),
                };
                own.unwrap_or([m.up_bps, m.down_bps])
                    .map(Rate::from_bps_f64)
            }),
        };
        [self.rate_up.unwrap_or(up), down].map(|rate| times(rate, pace))
    }

    fn resolve(&self, process: Process, with: &Resolving<'_>) -> PacketsTraffic {
        PacketsTraffic {
            process,
            transport: self.transport,
            sources: self.sources,
            packet: self.packet,
            rates: self.rates(with.measured, with.replication, with.pace),
            independent: self.independent,
            delays: (self.delays(with.access_delay)).unwrap_or([with.default_delay(); 2]),
            access: self.access,
            tcp: self.tcp.clone(),
        }
    }

    fn describe(&self, process: Process, role: Role) -> String {
        let ([name, law], carrier) = (process.words(), self.transport.word());
        if role == Role::Foreground {
            return format!(
                "packets of {} at {law} intervals over {carrier}: see the flows and the bottleneck",
                self.packet
            );
        }
        let rate = match (&self.rate, self.pairing) {
            (RateSpec::Fixed(_), _) => String::new(),
            (RateSpec::Match(other), Pairing::Mean) => format!(", at the rate of {other}"),
            (RateSpec::Match(other), Pairing::PerSeed) => {
                format!(", at the rate of {other} with the same seed")
            }
        };
        format!("{name} over {carrier}{rate}")
    }
}

/// `rate` multiplied by `pace`.
pub(super) fn times(rate: Rate, pace: Option<f64>) -> Rate {
    pace.map_or(rate, |k| Rate::from_bps_f64(rate.bps() as f64 * k))
}

/// Defines a kind of packets. All have the same keys, but different intervals.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $information:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Parametric);

        // Inline, because the schema of a kind must contain its keys, not a reference to them.
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                Parametric::json_schema(generator)
            }
        }

        impl Deref for $name {
            type Target = Parametric;
            fn deref(&self) -> &Parametric {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Parametric {
                &mut self.0
            }
        }

        impl Keys for $name {
            fn label() -> Option<&'static str> {
                Some(Process::$name.words()[0])
            }

            fn substitute() -> Option<Information> {
                Some(Information::$information)
            }

            fn load_keys() -> &'static [&'static str] {
                &["rate_up", "load"]
            }

            fn name(&self) -> &str {
                &self.0.name
            }

            fn check(&self, at: &Slot<'_>, found: &mut Findings) {
                self.0.check(at, found);
            }

            fn rate(&self) -> Option<&RateSpec> {
                Some(&self.0.rate)
            }

            fn load(&self) -> Option<LoadBasis> {
                self.0.load
            }

            fn is_per_seed(&self) -> bool {
                self.0.pairing == Pairing::PerSeed
            }

            fn is_open_loop(&self) -> bool {
                self.0.transport == Transport::Udp
            }

            fn route(&self) -> Route {
                self.0.route.clone()
            }

            fn active(&self) -> Option<Active> {
                self.0.active
            }

            fn energy(&self) -> Option<Energy> {
                self.0.energy
            }

            fn asks(&self) -> Asked {
                self.0.asks()
            }

            fn is_unresponsive(&self) -> bool {
                true
            }

            fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
                self.0.fixed_bps(measured)
            }

            // On average: a round trip crosses both sides twice.
            fn delay(&self, access: Dur) -> Option<Dur> {
                let [left, right] = self.0.delays(access)?;
                Some((left + right).scale(0.5))
            }

            fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
                let traffic = self.0.resolve(Process::$name, with);
                Some(Arc::new(traffic))
            }

            fn measures(&self) -> Vec<Measure> {
                measures_of_packets()
            }

            fn sends(&self) -> Option<[bool; 2]> {
                let rates = [self.0.rate_up.unwrap_or_default(), self.0.rate.fixed()];
                Some(rates.map(|rate| rate != Rate::default()))
            }

            fn clients(&self) -> u32 {
                self.0.sources
            }

            fn describe(&self, role: Role) -> String {
                self.0.describe(Process::$name, role)
            }
        }
    };
}

kind!(
    /// Packets at exponential intervals.
    Poisson, Gaps
);
kind!(
    /// Packets at equal intervals.
    Cbr, Rate
);

/// The measures of a foreground of packets at given times. Goodput and loss alone do not tell how late they arrive.
pub(super) fn measures_of_packets() -> Vec<Measure> {
    vec![GOODPUT, LOSS, DELAY]
}

/// The rates that a part with these keys is to have, up and down, bits per second; `None` while those that it matches are
/// not known.
pub(super) fn requested(
    rate: &RateSpec,
    rate_up: Option<Rate>,
    measured: &BTreeMap<String, Measured>,
) -> Option<[f64; 2]> {
    let [up, down] = match rate {
        RateSpec::Fixed(rate) => [0.0, rate.bps() as f64],
        RateSpec::Match(name) => {
            let matched = measured.get(name)?;
            [matched.up_bps, matched.down_bps]
        }
    };
    Some([rate_up.map_or(up, |r| r.bps() as f64), down])
}

impl Plays for PacketsTraffic {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let config = ParametricConfig {
            law: match self.process {
                Process::Cbr => Law::Constant,
                Process::Poisson => Law::Poisson,
            },
            transport: self.transport,
            packet: u32::try_from(self.packet.0).unwrap_or(u32::MAX),
            rate: self.rates,
            sources: self.sources,
            left: path(self.delays[0], self.access),
            right: access(self.delays[1]),
        };
        let machine: Box<dyn Workload> = if self.independent {
            Box::new(Sources::new(&config, at.first_source, at.seed))
        } else {
            Box::new(swell_workload::Parametric::new(config, at.own_seed()))
        };
        Ok(Some((machine, tcp(&self.tcp))))
    }

    fn offered(&self, _: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let rates = self.rates.map(|r| r.bps() as f64);
        Ok(Some(Offered {
            mean: rates,
            drawn: rates,
        }))
    }

    fn numbered_sources(&self) -> u32 {
        if self.independent { self.sources } else { 0 }
    }

    fn variance(&self, _: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let busier = self.rates[0].max(self.rates[1]).bps() as f64;
        let packets = busier / 8.0 / self.packet.0 as f64 * timescale.as_secs_f64();
        // Equal intervals have almost no energy that could be raised.
        Ok((self.process == Process::Poisson).then_some(1.0 / packets))
    }

    fn class(&self, _: u32) -> String {
        "parametric".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delays[0]
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of(self.rates.map(|r| r.bps() as f64), 0.1)
    }
}
