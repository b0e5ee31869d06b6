//! Media in segments over TCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate};
use swell_workload::{DashConfig, Rule, dash_measures as measures};

use super::contract::{
    Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access, reads,
};
use super::defaults::one;
use super::{Active, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::measure::{Better, Failing, Measure};
use crate::simulate::transport::tcp;

/// Viewers who fetch segments of media over a kept TCP connection, each at a bitrate that the player chooses
/// (MPEG-DASH, HLS). The bitrate that they get, stalls, changes of the bitrate and the time until the first segment are
/// judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dash {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// How the player chooses the next bitrate.
    #[serde(default)]
    pub rule: Choice,
    /// Bitrates of the media, in ascending order.
    #[serde(default = "ladder")]
    pub ladder: Vec<Rate>,
    /// Media in a segment.
    #[serde(default = "segment")]
    pub segment: Dur,
    /// Media that the player's buffer holds at most.
    #[serde(default = "buffer")]
    pub buffer: Dur,
    /// How long what is watched plays.
    #[serde(default = "length")]
    pub length: Dur,
    /// Bytes of a request.
    #[serde(default = "request")]
    pub request: Bytes,
    /// Viewers, each on its own access path.
    #[serde(default = "one")]
    pub viewers: u32,
    /// From the beginning of what a viewer watches to the beginning of the next. Default: the next begins when one is
    /// over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Dur>,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// The TCP that viewers and servers run.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// How a player chooses bitrates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// By how much is buffered: BBA-0 (Huang et al., SIGCOMM 2014).
    #[default]
    Bba,
    /// By how much is buffered: BOLA (Spiteri et al., INFOCOM 2016).
    Bola,
    /// By how fast the last segments came (Jiang et al., CoNEXT 2012).
    Throughput,
}

/// Bitrates of Netflix, as of 2014 (Huang et al., SIGCOMM 2014).
fn ladder() -> Vec<Rate> {
    let kbit = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];
    kbit.map(|k| Rate::from_bps(k * 1000)).to_vec()
}

fn segment() -> Dur {
    Dur::from_secs(4)
}

fn buffer() -> Dur {
    Dur::from_secs(30)
}

fn length() -> Dur {
    Dur::from_secs(60)
}

fn request() -> Bytes {
    Bytes(300)
}

impl Dash {
    fn config(&self, delay: Dur, start: Dur) -> DashConfig {
        DashConfig {
            ladder: self.ladder.clone(),
            segment: self.segment,
            buffer: self.buffer,
            rule: match self.rule {
                Choice::Bba => Rule::Bba,
                Choice::Bola => Rule::Bola,
                Choice::Throughput => Rule::Throughput,
            },
            length: self.length,
            request: self.request,
            viewers: self.viewers,
            every: self.every,
            start,
            client: access(delay),
            server: access(delay),
        }
    }
}

impl Keys for Dash {
    reads!(name, active, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        let ascending = self.ladder.is_sorted_by(|a, b| a < b);
        if self.ladder.is_empty() || !ascending || self.ladder.contains(&Rate::default()) {
            found.add(
                at.key("ladder"),
                "bitrates are to be above 0 and in ascending order",
                "such as [\"235kbit\", \"1Mbit\", \"3Mbit\"]",
            );
        }
        found.within(
            at.key("segment"),
            Dur::from_millis(100)..=Dur::from_secs(60),
            self.segment,
            format!("segments of {} are out of range", self.segment),
            "write 100ms to 60s; 4s is usual",
        );
        if self.buffer < self.segment * 2 {
            found.add(
                at.key("buffer"),
                format!("a buffer of {} holds less than two segments", self.buffer),
                "30s is usual",
            );
        }
        if self.length < self.segment {
            found.add(at.key("length"), "is less than a segment", "");
        }
        let watched = self.config(Dur::ZERO, Dur::ZERO).watched();
        if watched > at.measured {
            found.add(
                at.key("length"),
                format!(
                    "it is watched for {watched}, and a run has {} for it",
                    at.measured
                ),
                "make it shorter, or run.duration longer: that includes the warm-up",
            );
        }
        if self.every.is_some_and(|every| every < Dur::from_secs(1)) {
            found.add(
                at.key("every"),
                "a viewer cannot begin more than once a second",
                "write 1s or more",
            );
        }
        found.within(
            at.key("viewers"),
            1..=10_000,
            self.viewers,
            format!("{} viewers are out of range", self.viewers),
            "write 1 to 10000",
        );
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("takes what the network gives: it has no rate to match")
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.delay))
    }

    fn measures(&self) -> Vec<Measure> {
        let lower = |name, unit, floor| Measure::sampled(name, unit, Better::Lower, floor);
        // If nothing arrives, the rate is zero.
        let higher = |name| Measure::sampled(name, "bit/s", Better::Higher, 1000.0);
        vec![
            higher(measures::RATE).primary(),
            lower(measures::STALLED, "s", 1.0).primary(),
            lower(measures::STALLS, "", 1.0),
            lower(measures::STARTUP, "s", 1.0),
            lower(measures::SWITCHES, "", 5.0),
            higher(measures::SPEED).beside(),
        ]
    }

    fn failing(&self) -> Vec<Failing> {
        let length = self.length.as_secs_f64();
        vec![
            Failing::Above(measures::STALLED, "s", 0.1 * length),
            // Playback that never starts does not stop either.
            Failing::Above(measures::STARTUP, "s", length),
        ]
    }

    fn clients(&self) -> u32 {
        self.viewers
    }

    fn describe(&self, _: Role) -> String {
        let viewers = if self.viewers == 1 {
            "viewer"
        } else {
            "viewers"
        };
        let rule = match self.rule {
            Choice::Bba => "BBA",
            Choice::Bola => "BOLA",
            Choice::Throughput => "throughput",
        };
        format!(
            "{} {viewers} of segments of {}, {} of them with a buffer of {}, at bitrates by {rule}",
            self.viewers, self.segment, self.length, self.buffer
        )
    }
}

impl Plays for WithDelay<Dash> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        Ok(self.over_sockets(at))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        let machine = swell_workload::Dash::new(self.keys.config(self.delay, at.warmup));
        Some((Box::new(machine), tcp(&self.keys.tcp)))
    }

    fn class(&self, _: u32) -> String {
        "dash".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let down = at.way.rates[1].bps() as f64;
        let top = self.keys.ladder.last().map_or(0.0, |r| r.bps() as f64);
        let rate = f64::min(top * f64::from(self.keys.viewers), down * 0.5);
        Plausible::of([rate * 0.02, rate], 0.5)
    }
}
