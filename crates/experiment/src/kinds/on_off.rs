//! Packets of many on/off sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate, Stream};
use swell_workload::{Packets, ReplayConfig};

use super::contract::Offered;
use super::contract::{
    Asked, Information, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, path,
    reads, trimmed,
};
use super::energy::variance;
use super::packets::{measures_of_packets, requested, times};
use super::replay::until;
use super::{Active, Energy, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{ACCESS_DELAY, LoadBasis, RateSpec, Route, TcpSettings};
use crate::measure::Measure;
use crate::simulate::transport::tcp;
use crate::store::Measured;

/// Maximum number of packets in one direction of a run. They are drawn before the run, and take 16 bytes each.
const PACKETS: f64 = 2e7;

/// Maximum number of on and off periods of all sources in one direction. Drawing them takes a few seconds.
const PERIODS: f64 = 5e7;

/// Packets of many on/off sources, both directions, whatever happens to them. Their on and off times have a
/// heavy tail, so that all together are self-similar, with a Hurst parameter of (3 - `shape`) / 2 (Willinger,
/// Taqqu, Sherman and Wilson 1997). While a source is on its packets have exponential intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the measured mean rates of
    /// that background, both directions.
    pub rate: RateSpec,
    /// Mean rate of the up direction. Default: none, or what `match:NAME` measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_up: Option<Rate>,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Sources per direction.
    #[serde(default = "sources")]
    pub sources: u32,
    /// Mean time for which a source is on.
    #[serde(default = "on")]
    pub on: Dur,
    /// Mean time for which it is off. 0s: never; then all packets have exponential intervals.
    #[serde(default = "off")]
    pub off: Dur,
    /// Shape of the Pareto law of both times, above 1.
    #[serde(default = "shape")]
    pub shape: f64,
    /// Network-layer sizes of packets, each drawn by itself.
    #[serde(default = "sizes")]
    pub sizes: Vec<Size>,
    /// Seeds of the up and of the down direction: every run then has the same packets, those that
    /// Python's generator gives with these seeds. Each source then begins with a whole period. Default: drawn anew by
    /// every seed of the run, in steady state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<[u64; 2]>,
    /// One-way delay of the access path on each side of the bottleneck. Default: the network's `access_delay`; of
    /// a foreground, what makes its `rtt`, if that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Capacity of the access path on each side, both directions. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Rate>,
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

/// A size of packets and how many have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Network-layer bytes.
    pub packet: Bytes,
    /// Share of the packets.
    pub share: f64,
}
fn sources() -> u32 {
    50
}

fn on() -> Dur {
    Dur::from_millis(500)
}

fn off() -> Dur {
    Dur::from_secs(2)
}

fn shape() -> f64 {
    1.4
}

/// ACKs, segments of hosts without path MTU discovery, and full Ethernet frames: the three peaks of packet sizes on
/// backbones of the time (Thompson, Miller & Wilder, IEEE Network 11(6), 1997).
fn sizes() -> Vec<Size> {
    let size = |packet, share| Size {
        packet: Bytes(packet),
        share,
    };
    vec![size(40, 0.5), size(552, 0.4), size(1500, 0.1)]
}

impl OnOff {
    /// Mean rate of the up direction, with its default.
    fn up(&self) -> Rate {
        self.rate_up.unwrap_or_default()
    }

    /// Rejects sources that switch too often to be drawn. No period is shorter than the minimum of the Pareto
    /// distribution, which is the mean times (shape - 1) / shape. With a shape near 1 most periods are hardly longer.
    fn check_periods(&self, at: &Slot<'_>, found: &mut Findings) {
        if self.off == Dur::ZERO || self.shape.is_nan() || self.shape <= 1.0 {
            return;
        }
        let both =
            (self.on.as_secs_f64() + self.off.as_secs_f64()) * (self.shape - 1.0) / self.shape;
        let most = 2.0 * f64::from(self.sources) * at.duration.as_secs_f64() / both;
        if most > PERIODS {
            found.add(
                at.key("on"),
                format!("{most:.2e} times on and off in a run are more than {PERIODS:.0e}"),
                "write longer `on` and `off`, fewer `sources`, a `shape` further above 1 or a shorter run",
            );
        }
    }

    fn check_sizes(&self, at: &Slot<'_>, found: &mut Findings) {
        let shares = self.sizes.iter().map(|size| size.share);
        found.shares(at.key("sizes"), shares, "packets");
        for (i, size) in self.sizes.iter().enumerate() {
            found.packet(at.key(&format!("sizes[{i}].packet")), size.packet);
        }
    }

    /// The packets of a run, up and down.
    fn packets(&self, at: &Setting<'_>) -> Result<[Packets; 2], RunError> {
        let (duration, seed) = (at.duration, at.own_seed());
        let seeds = (self.seeds).unwrap_or_else(|| {
            let draw = |name| Stream::new(seed, name).below(u64::MAX);
            ["on-off/up", "on-off/down"].map(draw)
        });
        let way = |rate: Rate, own| {
            let sources = swell_workload::OnOff {
                rate: rate.bps() as f64,
                sizes: (self.sizes.iter())
                    .map(|s| (u32::try_from(s.packet.0).unwrap_or(u32::MAX), s.share))
                    .collect(),
                sources: self.sources,
                on: self.on,
                off: self.off,
                shape: self.shape,
                // With `seeds` the packets are those of the Python script.
                steady: self.seeds.is_none(),
            };
            match rate == Rate::default() {
                true => Ok(Packets::default()),
                false => (sources.packets(own, duration)).map_err(|e| {
                    RunError::Failed(format!("{} `{}`: {e}", at.role.word(), self.name).into())
                }),
            }
        };
        Ok([way(self.up(), seeds[0])?, way(self.rate.fixed(), seeds[1])?])
    }
}

impl Keys for OnOff {
    reads!(name, load, active, energy, route, delay);

    fn substitute() -> Option<Information> {
        Some(Information::Bursts)
    }

    fn load_keys() -> &'static [&'static str] {
        &["rate_up", "load"]
    }

    fn is_of_its_draws(&self) -> bool {
        self.seeds.is_some()
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "packets as a foreground are simulated only",
            "write backend = \"simulated\", or make them the background",
            found,
        );
        found.no_match(at, Some(&self.rate));
        if self.rate == RateSpec::Fixed(Rate::default()) && self.up() == Rate::default() {
            found.silent(at.key("rate"));
        }
        found.sources(at.key("sources"), self.sources);
        if self.on < Dur::from_micros(1) {
            found.add(
                at.key("on"),
                format!("a source that is on for {} sends nothing", self.on),
                "500ms is usual; off = \"0s\" makes sources that are always on",
            );
        }
        if !(self.shape > 1.0 && self.shape <= 100.0) {
            found.add(
                at.key("shape"),
                format!("a Pareto law of shape {} has no mean", self.shape),
                "write more than 1 and at most 100; below 2 is self-similar",
            );
        }
        self.check_periods(at, found);
        self.check_sizes(at, found);
        let mean: f64 = (self.sizes.iter())
            .map(|s| s.packet.0 as f64 * s.share)
            .sum();
        let rate = self.rate.fixed().bps().max(self.up().bps()) as f64;
        let packets = rate / 8.0 / mean * at.duration.as_secs_f64();
        if packets > PACKETS {
            found.add(
                at.key("rate"),
                format!("{packets:.0} packets in a run are more than {PACKETS:.0}"),
                "write a lower rate, larger packets or a shorter run",
            );
        }
        found.access(at.key("access"), self.access);
    }

    fn rate(&self) -> Option<&RateSpec> {
        Some(&self.rate)
    }

    fn is_open_loop(&self) -> bool {
        true
    }

    fn is_bursty(&self) -> bool {
        true
    }

    fn asks(&self) -> Asked {
        [
            self.rate_up.map(|rate| ("rate_up", rate)),
            Some(("rate", self.rate.fixed())),
        ]
    }

    fn is_unresponsive(&self) -> bool {
        true
    }

    fn fixed_bps(&self, measured: &BTreeMap<String, Measured>) -> Option<[f64; 2]> {
        requested(&self.rate, self.rate_up, measured)
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let [up, rate] = match &self.rate {
            RateSpec::Fixed(rate) => [Rate::default(), *rate],
            RateSpec::Match(name) => with.measured.get(name).map_or([Rate::default(); 2], |m| {
                [m.up_bps, m.down_bps].map(Rate::from_bps_f64)
            }),
        };
        let up = self.rate_up.unwrap_or(up);
        Some(Arc::new(OnOff {
            rate: RateSpec::Fixed(times(rate, with.pace)),
            rate_up: Some(times(up, with.pace)),
            delay: self.delay.or(Some(with.default_delay())),
            ..self.clone()
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        measures_of_packets()
    }

    fn describe(&self, _: Role) -> String {
        format!(
            "{} on/off sources of shape {}",
            self.sources,
            trimmed(self.shape)
        )
    }
}

impl Plays for OnOff {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let config = ReplayConfig {
            left: path(Plays::delay(self), self.access),
            right: path(Plays::delay(self), self.access),
            ..ReplayConfig::exact(self.packets(at)?)
        };
        let machine = swell_workload::Replay::new(config);
        Ok(Some((Box::new(machine), tcp(&TcpSettings::default()))))
    }

    fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let (from, to) = (at.warmup, at.duration);
        let ways = self.packets(at)?;
        let drawn =
            ways.map(|way| (until(&way, to, None) - until(&way, from, None)) * 8.0 / at.seconds());
        let mean = [self.up(), self.rate.fixed()].map(|r| r.bps() as f64);
        Ok(Some(Offered { mean, drawn }))
    }

    fn variance(&self, at: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let [up, down] = self.packets(at)?;
        let busier = if self.up() > self.rate.fixed() {
            up
        } else {
            down
        };
        Ok(variance(&busier, at.duration, timescale))
    }

    fn class(&self, _: u32) -> String {
        "on-off".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay.unwrap_or(ACCESS_DELAY)
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        let rates = [self.up(), self.rate.fixed()];
        Plausible::of(rates.map(|r| r.bps() as f64), 1.0)
    }
}
