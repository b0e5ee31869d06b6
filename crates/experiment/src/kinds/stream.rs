//! Media streams over datagrams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Rate, UDP_HEADERS};
use swell_workload::{StreamConfig, stream_measures as measures};

use super::contract::{
    Asked, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access,
    reads,
};
use super::defaults::{one, yes};
use super::{Active, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::measure::{Better, Failing, Measure};
use crate::simulate::transport::tcp;

/// Viewers of a media stream, sent in datagrams at the pace at which it is played. A viewer plays once it has its
/// buffer, asks for packets that are missing, and leaves out what comes too late. Late and lost frames, stalls and the
/// time until the first frame are judged; what the network does to packets is shown beside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaStream {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Rate of the media, without headers.
    #[serde(default = "rate")]
    pub rate: Rate,
    /// Frames per second.
    #[serde(default = "frames")]
    pub frames: u32,
    /// How long a stream plays.
    #[serde(default = "length")]
    pub length: Dur,
    /// Media that a viewer waits for before it plays, and after it has stopped. 0s: it plays the first frame a frame's
    /// time after it came.
    #[serde(default = "buffer")]
    pub buffer: Dur,
    /// How many times faster than it plays the server sends until it has sent the buffer.
    #[serde(default = "preroll")]
    pub preroll: f64,
    /// The most media in a packet. Frames are cut into equal packets, which are sent at equal intervals.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// Whether a viewer asks for missing packets.
    #[serde(default = "yes")]
    pub repair: bool,
    /// Viewers, each on its own access path.
    #[serde(default = "one")]
    pub viewers: u32,
    /// From the beginning of a viewer's stream to the beginning of the next. Default: the next begins when one is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Dur>,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

// The stream of Vishwanath & Vahdat (USENIX ATC 2008), section 4.3.
fn rate() -> Rate {
    Rate::from_bps(450_000)
}

fn frames() -> u32 {
    30
}

fn length() -> Dur {
    Dur::from_secs(62)
}

fn buffer() -> Dur {
    Dur::from_secs(10)
}

fn preroll() -> f64 {
    2.0
}

fn packet() -> Bytes {
    Bytes(1400)
}

impl MediaStream {
    fn config(&self, delay: Dur, start: Dur) -> StreamConfig {
        StreamConfig {
            rate: self.rate,
            frames: self.frames,
            length: self.length,
            buffer: self.buffer,
            preroll: self.preroll,
            packet: self.packet,
            repair: self.repair,
            viewers: self.viewers,
            every: self.every,
            start,
            client: access(delay),
            server: access(delay),
        }
    }

    /// Rate of the packets of all viewers at normal play-out speed, in network-layer bytes.
    fn carried(&self) -> Rate {
        let config = self.config(Dur::ZERO, Dur::ZERO);
        let packet = f64::from((config.payload() + UDP_HEADERS[0]) * 8);
        Rate::from_bps_f64(packet * config.packets_per_second() * f64::from(self.viewers))
    }
}

impl Keys for MediaStream {
    reads!(name, active, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.within(
            at.key("viewers"),
            1..=1000,
            self.viewers,
            format!("{} viewers are out of range", self.viewers),
            "write 1 to 1000",
        );
        found.within(
            at.key("frames"),
            1..=240,
            self.frames,
            format!("{} frames a second are out of range", self.frames),
            "write 1 to 240; 30 is usual",
        );
        found.within(
            at.key("preroll"),
            1.0..=100.0,
            self.preroll,
            format!("a preroll of {} is out of range", self.preroll),
            "write 1 to 100; players take 1.5 to 2",
        );
        found.within(
            at.key("packet"),
            Bytes(64)..=Bytes(1452),
            self.packet,
            format!("packets of {} are out of range", self.packet),
            "write 64B to 1452B, which fits a packet of 1500 bytes with headers",
        );
        found.within(
            at.key("rate"),
            Rate::from_bps(8000)..=Rate::from_bps(1_000_000_000),
            self.rate,
            format!("a stream of {} is out of range", self.rate),
            "write 8kbit to 1Gbit",
        );
        if self.length < Dur::from_secs(1) {
            found.add(
                at.key("length"),
                format!("a stream of {} is too short to be rated", self.length),
                "write 1s or more",
            );
            return;
        }
        let watched = self.config(Dur::ZERO, Dur::ZERO).watched();
        if watched > at.measured {
            found.add(
                at.key("length"),
                format!(
                    "a stream is watched for {watched}, and a run has {} for it",
                    at.measured
                ),
                "make it shorter, or run.duration longer: that includes the warm-up",
            );
        }
        if self.every.is_some_and(|every| every < Dur::from_secs(1)) {
            found.add(
                at.key("every"),
                "a viewer cannot begin more than one stream a second",
                "write 1s or more",
            );
        }
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("has the rate of its media: there is none to match")
    }

    fn is_open_loop(&self) -> bool {
        true
    }

    fn is_unresponsive(&self) -> bool {
        true
    }

    fn asks(&self) -> Asked {
        [None, Some(("rate", self.carried()))]
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.delay))
    }

    fn measures(&self) -> Vec<Measure> {
        let lower = |name, unit, floor| Measure::sampled(name, unit, Better::Lower, floor);
        // The floor for retransmissions is one hundredth of the stream's bytes.
        let sent = self.rate.bps() as f64 / 8.0 * self.length.as_secs_f64();
        vec![
            lower(measures::LATE, "", 0.01).primary(),
            lower(measures::LOST, "", 0.01).primary(),
            lower(measures::STALLED, "s", 1.0).primary(),
            lower(measures::STALLS, "", 1.0),
            lower(measures::STARTUP, "s", 1.0),
            Measure::sampled(measures::FULL, "", Better::Higher, 0.01).beside(),
            lower(measures::AGAIN, "B", 0.01 * sent).beside(),
            lower(measures::JITTER, "s", 0.001).beside(),
            lower(measures::GAP, "s", 0.001).beside(),
        ]
    }

    fn failing(&self) -> Vec<Failing> {
        vec![
            Failing::Above(measures::LATE, "", 0.1),
            Failing::Above(measures::LOST, "", 0.1),
            Failing::Above(measures::STALLED, "s", 0.1 * self.length.as_secs_f64()),
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
        format!(
            "{} {viewers} of a stream of {}, {} frames a second for {}, with a buffer of {}",
            self.viewers, self.rate, self.frames, self.length, self.buffer
        )
    }
}

impl Plays for WithDelay<MediaStream> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        Ok(self.over_sockets(at))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        let machine = swell_workload::Stream::new(self.keys.config(self.delay, at.warmup));
        Some((Box::new(machine), tcp(&TcpSettings::default())))
    }

    fn class(&self, _: u32) -> String {
        "stream".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of([0.0, self.keys.carried().bps() as f64], 0.1)
    }
}
