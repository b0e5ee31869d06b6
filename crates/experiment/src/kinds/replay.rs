//! The packets of a capture at their own times.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Code, Dur, Rate, Warning};
use swell_workload::{Packets, ReplayConfig, Transport};

use super::contract::Offered;
use super::contract::{
    Complaint, Data, Files, Information, Input, Keys, Machine, Native, Pace, Plausible, Plays,
    Resolving, Role, Seen, Setting, Slot, Source, path, reads, trimmed,
};
use super::energy::variance;
use super::packets::measures_of_packets;
use super::{Active, Energy, Traffic};
use crate::captures::{Capture, Trace};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{LoadBasis, RateSpec, Route, TcpSettings};
use crate::measure::Measure;
use crate::plan::traces::Traces;
use crate::simulate::transport::tcp;
use crate::store::ModelFacts;

/// Allowed stretch. Beyond this range the result would no longer resemble the trace.
const STRETCH: RangeInclusive<f64> = 0.001..=1000.0;

/// The packets of a capture at their own times, in both directions, whatever happens to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Path of a capture (pcap, pcapng, snoop; plain or compressed), relative to the experiment
    /// file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
    /// Instead of `trace`: the background whose packets are replayed, as they come to the slowest link. It is simulated
    /// alone, for as long as a run, with the seed of the first run; what came after the warm-up is the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What carries the packets: datagrams of their sizes, or one TCP connection per direction that
    /// is given them as writes at their times.
    #[serde(default)]
    pub transport: Transport,
    /// Mean rate of the down direction when the background is alone: the trace is stretched or
    /// compressed in time to this. No packet is left out. Or `match:NAME`, the rate of that background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// Whether `rate` is what is sent or what the network carries of it. Default: offered, what is sent;
    /// over TCP carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadBasis>,
    /// Times are multiplied by this: 2 is half as fast. Default 1. Not together with `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<f64>,
    /// Times are rounded up to multiples of this; 0s leaves them exact.
    #[serde(default)]
    pub grid: Dur,
    /// Where in the trace a run starts, in the trace's own time. Beyond its end it begins again.
    /// Default: drawn anew by every seed; with `once` its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Dur>,
    /// Whether the trace is over after its last packet. Default: it begins again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Networks (CIDR) that are inside, on the left of the tapped link; all others are outside. Default:
    /// what the capture says, by interfaces, directions and Ethernet addresses, or who talks to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// Let the trace's up direction flow down and the other way round.
    #[serde(default)]
    pub reversed: bool,
    /// One-way delay of the access path on each side of the bottleneck. Default: the network's `access_delay`; of
    /// a foreground, what makes its `rtt`, if that is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Capacity of the access path on each side, both directions. Default: unlimited.
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
    /// Names of the links that it crosses, as in other backgrounds. Default: all links in the order of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
}

/// A trace in a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplayTraffic {
    /// Its keys in the file; `stretch`, `rate` and `reversed` are resolved in the other fields.
    pub replay: Replay,
    /// The trace.
    pub trace: Arc<Trace>,
    /// Times are multiplied by this.
    pub stretch: f64,
    /// One-way delay of the access path on each side.
    pub delay: Dur,
}

impl Replay {
    /// Reads its trace. The error is the wrong key, and the reason.
    fn load(&self, base: &Path, traces: &Traces) -> Result<Input, (&'static str, Complaint)> {
        let name = &self.trace;
        let wrong = |message: String, hint: &str| {
            let hint = (!hint.is_empty()).then(|| hint.to_owned());
            ("trace", (message, hint))
        };
        let path = base.join(name);
        if !path.is_file() {
            return Err(wrong(
                format!("no file is called `{name}`"),
                "the path of a capture, relative to the experiment file",
            ));
        }
        let mut inside = Vec::new();
        for network in &self.inside {
            let network = network.parse().map_err(|e| ("inside", (e, None)))?;
            inside.push(network);
        }
        let capture = traces
            .read(&path, &inside)
            .map_err(|e| wrong(e.to_string(), ""))?;
        let source = std::fs::canonicalize(&path).unwrap_or(path);
        let name = source
            .file_name()
            .map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned());
        self.input(capture, name, source.display().to_string())
    }

    /// Converts a capture to the directions of the replay. The error is the wrong key, and the reason.
    fn input(
        &self,
        capture: Capture,
        name: String,
        source: String,
    ) -> Result<Input, (&'static str, Complaint)> {
        if capture.packets.iter().all(|way| way.is_empty()) {
            let message = format!("`{name}`: no packet leads from one side to the other");
            return Err(("trace", (message, None)));
        }
        let trace = capture.trace(self.reversed);
        let (period, length) = (capture.period, capture.length);
        let [up, down] = trace.bps().map(Rate::from_bps_f64);
        if self.rate.is_some() && down == Rate::default() {
            return Err((
                "rate",
                (
                    format!(
                        "`{name}` has no packets in the down direction: no stretch makes them a rate"
                    ),
                    Some("`reversed = true` exchanges the directions; or give `stretch`".into()),
                ),
            ));
        }
        if let Some(phase) = self.phase
            && phase >= period
        {
            return Err((
                "phase",
                (
                    format!("a phase of {phase} lies beyond the trace's {length}"),
                    None,
                ),
            ));
        }
        Ok(Input {
            facts: ModelFacts {
                name,
                source,
                hash: capture.hash,
                note: format!(
                    "{} packets up and {} down in {} s, {} and {} Mbit/s",
                    trace.packets[0].len(),
                    trace.packets[1].len(),
                    significant(length.as_secs_f64()),
                    significant(up.as_mbit()),
                    significant(down.as_mbit()),
                ),
                warnings: capture.doubts,
            },
            data: Data::Trace(Arc::new(trace)),
            copy: None,
        })
    }
}

impl Keys for Replay {
    reads!(name, rate, load, active, energy, delay);

    fn substitute() -> Option<Information> {
        Some(Information::Packets)
    }

    fn load_keys() -> &'static [&'static str] {
        &["stretch", "load"]
    }

    fn is_real(&self) -> bool {
        true
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "packets as a foreground are simulated only",
            "write backend = \"simulated\", or make them the background",
            found,
        );
        found.no_match(at, self.rate.as_ref());
        if self.trace.is_empty() == self.of.is_none() {
            found.add(
                at.key("trace"),
                "a replay needs a capture or another background, and not both",
                "write trace = \"FILE\" or of = \"BACKGROUND\"",
            );
        }
        found.scaled(at, self.rate.as_ref(), "stretch", self.stretch.is_some());
        if let Some(k) = self.stretch {
            found.within(
                at.key("stretch"),
                STRETCH,
                k,
                format!("a stretch of {k} is out of range"),
                "write 0.001 to 1000; 2 is half as fast",
            );
        }
        found.access(at.key("access"), self.access);
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn is_open_loop(&self) -> bool {
        self.transport == Transport::Udp
    }

    fn is_bursty(&self) -> bool {
        true
    }

    fn is_of_its_draws(&self) -> bool {
        self.phase.is_some() || self.once
    }

    fn pace(&self) -> Pace {
        Pace::Speed(1.0 / self.stretch.unwrap_or(1.0))
    }

    fn reads(&self) -> Option<&'static str> {
        Some("trace")
    }

    fn imitates(&self) -> Option<(&str, Source<'_>)> {
        Some((self.of.as_deref()?, Source::Packets))
    }

    fn learn(&self, seen: Seen<'_>) -> Result<Input, String> {
        let (Seen::Packets(capture), Some(of)) = (seen, &self.of) else {
            return Err("a replay is of packets".into());
        };
        let input = self.input(
            capture,
            self.name.clone(),
            format!("packets of background {of}"),
        );
        input.map_err(|(_, (why, _))| why)
    }

    fn elsewhere(&mut self) -> Option<&mut String> {
        Some(&mut self.trace)
    }

    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        if self.of.is_some() {
            return Ok(None);
        }
        let input = Replay::load(self, from.base, from.known)?;
        // Use the absolute path, because relative to the run directory it would name another file.
        self.trace.clone_from(&input.facts.source);
        Ok(Some(input))
    }

    fn native_bps(&self, of: &Native<'_>) -> f64 {
        match of.input {
            Some(Data::Trace(trace)) => trace.bps()[1],
            _ => 0.0,
        }
    }

    /// Its `reversed` swaps the directions of the trace, not of the path.
    fn route(&self) -> Route {
        Route {
            path: self.path.clone(),
            ..Route::default()
        }
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let Some(Data::Trace(trace)) = with.input else {
            return None;
        };
        // Calibration is only for backgrounds. The rate of a foreground is its offered load.
        let own = match (&self.rate, self.stretch) {
            (Some(RateSpec::Fixed(rate)), _) if with.role == Role::Foreground => {
                trace.bps()[1] / rate.bps() as f64
            }
            (_, stretch) => stretch.unwrap_or(1.0),
        };
        Some(Arc::new(ReplayTraffic {
            replay: self.clone(),
            trace: Arc::clone(trace),
            stretch: with.pace.map_or(own, |speed| 1.0 / speed),
            delay: self.delay.unwrap_or_else(|| with.default_delay()),
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        measures_of_packets()
    }

    fn describe(&self, _: Role) -> String {
        let trace = self.trace.rsplit(['/', '\\']).next();
        let what = self.of.as_deref().or(trace).unwrap_or(&self.trace);
        format!("replay of {what} over {}", self.transport.word())
    }
}

/// A trace that is stretched or compressed by more than this raises a doubt: its bursts and its round-trip reactions
/// have unrealistic durations.
const STRETCHED: f64 = 2.0;

impl ReplayTraffic {
    /// Where in the trace a run begins, if all begin there.
    fn given_phase(&self) -> Option<Dur> {
        let start = self.replay.once.then_some(Dur::ZERO);
        self.replay.phase.or(start)
    }

    /// Where in the trace this run begins.
    fn phase(&self, at: &Setting<'_>) -> Dur {
        let given = self.given_phase();
        given.unwrap_or_else(|| self.trace.phase(at.own_seed()))
    }
}

impl Plays for ReplayTraffic {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let (replay, trace) = (&self.replay, &self.trace);
        let config = ReplayConfig {
            transport: replay.transport,
            phase: self.phase(at),
            period: (!replay.once).then_some(trace.period),
            stretch: self.stretch,
            grid: replay.grid,
            left: path(self.delay, replay.access),
            right: path(self.delay, replay.access),
            ..ReplayConfig::exact(trace.packets.clone())
        };
        let machine = swell_workload::Replay::new(config);
        Ok(Some((Box::new(machine), tcp(&replay.tcp))))
    }

    fn offered(&self, at: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let (replay, trace) = (&self.replay, &self.trace);
        let phase = self.phase(at);
        let moment = |t: Dur| phase + t.scale(1.0 / self.stretch);
        let drawn = trace.packets.each_ref().map(|way| {
            let until = |t| until(way, t, (!replay.once).then_some(trace.period));
            (until(moment(at.duration)) - until(moment(at.warmup))) * 8.0 / at.seconds()
        });
        let mean = trace.bps().map(|bps| bps / self.stretch);
        Ok(Some(Offered { mean, drawn }))
    }

    fn doubts(&self, at: &Setting<'_>) -> Vec<Warning> {
        let (role, name) = (at.role.word(), &self.replay.name);
        let mut doubts = Vec::new();
        let length = self.trace.period.scale(self.stretch);
        if at.duration > length && !self.replay.once {
            doubts.push(Warning::note(
                Code::TraceRepeats,
                format!(
                    "a run is longer than the {} s of the trace behind {role} `{name}`: it begins again",
                    significant(length.as_secs_f64())
                ),
            ));
        }
        if self.given_phase().is_some() && at.replication > 0 {
            doubts.push(Warning::note(
                Code::SamePhase,
                format!(
                    "every replication of {role} `{name}` has the same packets at the same times: intervals do not cover other times of the trace"
                ),
            ));
        }
        if !(1.0 / STRETCHED..=STRETCHED).contains(&self.stretch) {
            doubts.push(Warning::warning(
                Code::Stretched,
                format!(
                    "the times of {role} `{name}` are multiplied by {}: bursts last as much longer or shorter than in the trace",
                    significant(self.stretch)
                ),
            ));
        }
        doubts
    }

    fn variance(&self, _: &Setting<'_>, timescale: Dur) -> Result<Option<f64>, RunError> {
        let [up, down] = self.trace.bps();
        let busier = &self.trace.packets[usize::from(up <= down)];
        let own = timescale.scale(1.0 / self.stretch);
        Ok(variance(busier, self.trace.period, own))
    }

    fn class(&self, _: u32) -> String {
        "replay".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of(self.trace.bps().map(|r| r / self.stretch), 1.0)
    }
}

/// Bytes of packets before `t`, when the packets repeat with `period`.
pub(super) fn until(packets: &Packets, t: Dur, period: Option<Dur>) -> f64 {
    let sum = |before: Dur| -> f64 {
        let of = packets.iter().take_while(|p| p.0 < before);
        of.map(|p| f64::from(p.1)).sum()
    };
    match period.map(Dur::as_nanos) {
        Some(ns) if ns > 0 => {
            let rounds = t.as_nanos() / ns;
            rounds as f64 * sum(Dur::from_nanos(ns)) + sum(Dur::from_nanos(t.as_nanos() % ns))
        }
        _ => sum(t),
    }
}

/// Formats a positive number for sentences: three significant digits, or all digits before the point. A fixed number of
/// decimals would show small ones as zero.
pub(crate) fn significant(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return trimmed(value);
    }
    let decimals = (2.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_not_shown_as_zero() {
        for (value, text) in [
            (0.000_421_6, "0.000422"),
            (0.5, "0.5"),
            (9.991, "9.99"),
            (120.0, "120"),
            (86_400.4, "86400"),
            (0.0, "0"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
