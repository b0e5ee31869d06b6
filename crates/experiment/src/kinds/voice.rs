//! Voice calls: packets of talk spurts, rated by the E-model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Side, Stream, Time, derived};
use swell_workload::{
    Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Sample, Workload,
};

use super::contract::Offered;
use super::contract::{
    Asked, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access,
    reads,
};
use super::defaults::one;
use super::{Active, Traffic};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::measure::{Better, Failing, Measure};
use crate::simulate::transport::tcp;

/// Calls, each with a speaker at both ends. A speaker talks in spurts, of exponential lengths as the pauses between
/// them; silence is not sent. Each spurt is rated by the E-model (ITU-T G.107): its median and bad percentiles are
/// judged, and the share of its packets that come too late to be played or not at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Calls at the same time, all through the run.
    #[serde(default = "one")]
    pub calls: u32,
    /// The codec, with what the E-model knows of it.
    #[serde(default)]
    pub codec: Codec,
    /// Speech in a packet.
    #[serde(default = "frame")]
    pub frame: Dur,
    /// Mean length of a talk spurt.
    #[serde(default = "talk")]
    pub talk: Dur,
    /// Mean pause between two spurts of a speaker. 0s: each talks all the time, in spurts without pauses.
    #[serde(default = "pause")]
    pub pause: Dur,
    /// How long the first packet of a spurt waits before it is played: later ones may be late by so much.
    #[serde(default = "buffer")]
    pub buffer: Dur,
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

/// A codec of speech.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// 64 kbit/s, lost packets concealed (ITU-T G.711 appendix I).
    #[default]
    G711,
    /// 64 kbit/s, lost packets silent.
    G711Plain,
    /// 8 kbit/s (ITU-T G.729 annex A).
    G729a,
}

impl Codec {
    /// Rate of the speech, bits per second.
    fn bps(self) -> f64 {
        match self {
            Codec::G711 | Codec::G711Plain => 64_000.0,
            Codec::G729a => 8_000.0,
        }
    }

    /// Impairment by the codec itself and its robustness to loss (ITU-T G.113 appendix I).
    fn impairment(self) -> (f64, f64) {
        match self {
            Codec::G711 => (0.0, 25.1),
            Codec::G711Plain => (0.0, 4.3),
            Codec::G729a => (11.0, 19.0),
        }
    }
}

fn frame() -> Dur {
    Dur::from_millis(20)
}

/// Mean spurts and pauses of conversations (ITU-T P.59 table 1).
fn talk() -> Dur {
    Dur::from_millis(1004)
}

fn pause() -> Dur {
    Dur::from_millis(1587)
}

fn buffer() -> Dur {
    Dur::from_millis(60)
}

/// IPv4, UDP and RTP headers.
const HEADERS: u64 = 20 + 8 + 12;

/// Mean opinion score of speech with `delay` seconds from mouth to ear and a share `loss` that is not played. `bursts`
/// is the burst ratio: mean loss burst length relative to independent losses. Simplified E-model of ITU-T G.107 with
/// its defaults.
fn mos(codec: Codec, delay: f64, loss: f64, bursts: f64) -> f64 {
    let d = delay * 1e3;
    let late = if d > 177.3 { 0.11 * (d - 177.3) } else { 0.0 };
    let (own, robust) = codec.impairment();
    let lost = loss * 100.0;
    let equipment = own + (95.0 - own) * lost / (lost / bursts.max(1.0) + robust);
    let r = (93.2 - (0.024 * d + late) - equipment).clamp(0.0, 100.0);
    // For R below 6.5 the polynomial of annex B falls below 1.
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).clamp(1.0, 4.5)
}

/// Names of the measures.
const SCORE: &str = "MOS";
const UNHEARD: &str = "unplayed";

/// Quality of a talk spurt.
const MOS: Measure = Measure::sampled(SCORE, "", Better::Higher, 0.0);

/// Share of the packets of a run's spurts that are lost, or too late to be played. One hundredth is added before ratios
/// are taken.
const UNPLAYED: Measure = Measure::sampled(UNHEARD, "", Better::Lower, 0.01);

impl Voice {
    /// Network-layer size of a packet.
    fn packet(&self) -> u64 {
        (self.codec.bps() / 8.0 * self.frame.as_secs_f64()).round() as u64 + HEADERS
    }

    /// Mean rate of all calls in one direction, bits per second of network-layer bytes.
    fn bps(&self) -> f64 {
        let (talk, pause) = (self.talk.as_secs_f64(), self.pause.as_secs_f64());
        let active = talk / (talk + pause);
        let all = self.packet() as f64 * 8.0 / self.frame.as_secs_f64();
        all * active * f64::from(self.calls)
    }
}

impl Keys for Voice {
    reads!(name, active, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.within(
            at.key("calls"),
            1..=10_000,
            self.calls,
            format!("{} calls are out of range", self.calls),
            "write 1 to 10000",
        );
        found.within(
            at.key("frame"),
            Dur::from_millis(5)..=Dur::from_millis(120),
            self.frame,
            format!("frames of {} are out of range", self.frame),
            "write 5ms to 120ms; 20ms is usual",
        );
        if self.talk < self.frame {
            found.add(
                at.key("talk"),
                format!("a spurt of {} is less than a frame", self.talk),
                "1s is usual",
            );
        }
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("has the rate of its calls: there is none to match")
    }

    fn is_open_loop(&self) -> bool {
        true
    }

    fn is_unresponsive(&self) -> bool {
        true
    }

    fn asks(&self) -> Asked {
        let rate = swell_base::Rate::from_bps_f64(self.bps());
        [Some(("calls", rate)), Some(("calls", rate))]
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.delay))
    }

    fn measures(&self) -> Vec<Measure> {
        vec![MOS, UNPLAYED]
    }

    fn failing(&self) -> Vec<Failing> {
        // Below a MOS of 2, the mean opinion is worse than "poor" (ITU-T P.800).
        vec![
            Failing::Below(SCORE, "", 2.0),
            Failing::Above(UNHEARD, "", 0.1),
        ]
    }

    fn clients(&self) -> u32 {
        self.calls
    }

    fn describe(&self, _: Role) -> String {
        let calls = if self.calls == 1 { "call" } else { "calls" };
        format!(
            "{} voice {calls}, a packet of {} every {}, judged by the E-model",
            self.calls,
            Bytes(self.packet()),
            self.frame
        )
    }
}

impl WithDelay<Voice> {
    /// The calls, whose spurts are rated if they begin so long after the calls, or later.
    fn calls(&self, judged_from: Dur, at: &Setting<'_>) -> Machine {
        let calls = Calls::new(&self.keys, access(self.delay), judged_from, at.own_seed());
        (Box::new(calls), tcp(&TcpSettings::default()))
    }
}

impl Plays for WithDelay<Voice> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        // Spurts in the warm-up are not rated.
        let judged_from = match at.role {
            Role::Foreground => at.warmup,
            Role::Background => Dur::MAX,
        };
        Ok(Some(self.calls(judged_from, at)))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        Some(self.calls(at.warmup, at))
    }

    fn offered(&self, _: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        let rates = [self.keys.bps(); 2];
        Ok(Some(Offered {
            mean: rates,
            drawn: rates,
        }))
    }

    fn class(&self, _: u32) -> String {
        "voice".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of([self.keys.bps(); 2], 0.3)
    }
}

/// The workload: two lines for each call, one in each direction.
struct Calls {
    voice: Voice,
    path: Access,
    /// Spurts that begin earlier are not rated.
    judged_from: Dur,
    start: Time,
    lines: Vec<Line>,
    records: Vec<Record>,
    samples: Vec<Sample>,
}

/// One direction of a call: a speaker and a listener.
struct Line {
    rng: Stream,
    /// Number of packets sent so far, which is the number of the next one.
    sent: u64,
    /// Packets left in the current spurt.
    left: u32,
    /// Spurts that are not rated yet, by the number of their first packet.
    spurts: BTreeMap<u64, Spurt>,
}

/// Packets of one spurt.
#[derive(Default)]
struct Spurt {
    start: Time,
    /// Send time of each, and its delay if it arrived.
    packets: Vec<(Time, Option<Dur>)>,
}

// Timer tokens: the action that is due, combined with the number of the line.
const SPEAK: u64 = 0;
const JUDGE: u64 = 1 << 32;

/// Time to wait for packets after the end of a spurt, in addition to the buffer. No conversation is possible with
/// delays above two seconds.
const GRACE: Dur = Dur::from_secs(2);

impl Calls {
    fn new(voice: &Voice, path: Access, judged_from: Dur, seed: u64) -> Calls {
        let line = |i| Line {
            rng: Stream::new(derived(seed, i), "voice"),
            sent: 0,
            left: 0,
            spurts: BTreeMap::new(),
        };
        Calls {
            lines: (0..u64::from(voice.calls) * 2).map(line).collect(),
            voice: voice.clone(),
            path,
            judged_from,
            start: Time::ZERO,
            records: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.start = now;
        let (talk, pause) = (
            self.voice.talk.as_secs_f64(),
            self.voice.pause.as_secs_f64(),
        );
        for (i, line) in self.lines.iter_mut().enumerate() {
            let open = Open {
                client_side: Side::of(i % 2 == 1),
                client: self.path,
                server: self.path,
                ..Open::default()
            };
            actions.push(Action::Datagrams(Conn(i as u32), Box::new(open)));
            // Exponential durations are memoryless, so the stationary state needs no residual times.
            let wait = match line.rng.uniform() * (talk + pause) < talk {
                true => self.voice.frame.scale(line.rng.uniform()),
                false => Dur::from_secs_f64(line.rng.exponential(pause)),
            };
            actions.push(Action::Timer(wait, SPEAK | i as u64));
        }
    }

    /// Sends the next packet of a line, which may be the first of a spurt.
    fn speak(&mut self, i: usize, now: Time, actions: &mut Vec<Action>) {
        let (frame, pause) = (self.voice.frame, self.voice.pause.as_secs_f64());
        let payload = self.voice.packet() - u64::from(swell_base::UDP_HEADERS[0]);
        let Some(line) = self.lines.get_mut(i) else {
            return;
        };
        if line.left == 0 {
            let length = line.rng.exponential(self.voice.talk.as_secs_f64());
            line.left = ((length / frame.as_secs_f64()).round() as u32).max(1);
            let spurt = Spurt {
                start: now,
                packets: Vec::new(),
            };
            line.spurts.insert(line.sent, spurt);
        }
        let conn = Conn(i as u32);
        actions.push(Action::SendDatagram(conn, End::Client, payload as u32));
        if let Some(mut spurt) = line.spurts.last_entry() {
            spurt.get_mut().packets.push((now, None));
        }
        line.sent += 1;
        line.left -= 1;
        let mut next = frame;
        if line.left == 0 {
            actions.push(Action::Timer(self.voice.buffer + GRACE, JUDGE | i as u64));
            next += Dur::from_secs_f64(line.rng.exponential(pause));
        }
        actions.push(Action::Timer(next, SPEAK | i as u64));
    }

    fn hear(&mut self, i: usize, number: u64, now: Time) {
        let line = self.lines.get_mut(i);
        let spurt = line.and_then(|line| line.spurts.range_mut(..=number).next_back());
        if let Some((first, spurt)) = spurt
            && let Some((sent, took)) = spurt.packets.get_mut((number - first) as usize)
        {
            *took = Some(now.since(*sent));
        }
    }

    /// Rates the oldest spurt of a line.
    fn judge(&mut self, i: usize) {
        let Some((_, spurt)) = self.lines.get_mut(i).and_then(|l| l.spurts.pop_first()) else {
            return;
        };
        if spurt.start.since(self.start) < self.judged_from {
            return;
        }
        let (quality, unplayed) = rate(&self.voice, &spurt);
        for (measure, value) in [(SCORE, quality), (UNHEARD, unplayed)] {
            self.samples.push(Sample {
                measure,
                value,
                at: spurt.start,
            });
        }
    }
}

/// The opinion score of a spurt, and the share of its packets that is not played.
fn rate(voice: &Voice, spurt: &Spurt) -> (f64, f64) {
    let took = || spurt.packets.iter().map(|p| p.1);
    // The first packet to arrive sets the listener's play-out time.
    let playout = took().flatten().next().unwrap_or_default() + voice.buffer;
    let missing: Vec<bool> = took().map(|d| d.is_none_or(|d| d > playout)).collect();
    let lost = missing.iter().filter(|&&m| m).count() as f64;
    let bursts = missing.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    let share = lost / missing.len().max(1) as f64;
    // Independent losses come in bursts of 1 / (1 - share) on average.
    let ratio = match bursts {
        0 => 1.0,
        n => lost / n as f64 * (1.0 - share),
    };
    let delay = (voice.frame + playout).as_secs_f64();
    (mos(voice.codec, delay, share, ratio), share)
}

impl Workload for Calls {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => self.begin(now, actions),
            Event::Timer(token) if token & JUDGE != 0 => self.judge((token & !JUDGE) as usize),
            Event::Timer(token) => self.speak(token as usize, now, actions),
            Event::Datagram(conn, End::Server, _, Some(number)) => {
                self.hear(conn.0 as usize, number, now);
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for i in 0..self.lines.len() {
            let heard = info(Conn(i as u32)).received[1];
            let [up, down] = if i % 2 == 0 { [heard, 0] } else { [0, heard] };
            self.records.push(Record::Flow(FlowRecord {
                class: 0,
                start: self.start,
                end: None,
                up,
                down,
                min_rtt: None,
                retransmissions: 0,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.006, "{found}, not {wanted}");
    }

    /// Scores of the simplified E-model of ITU-T G.107, computed by hand from its formulas.
    #[test]
    fn scores_are_those_of_the_e_model() {
        for (delay, loss, wanted) in [
            (0.020, 0.0, 4.40),
            (0.020, 0.01, 3.81),
            (0.020, 0.03, 2.77),
            (0.020, 0.05, 2.15),
            (0.150, 0.0, 4.33),
            (0.150, 0.05, 1.99),
        ] {
            near(mos(Codec::G711Plain, delay, loss, 1.0), wanted);
        }
        for (loss, wanted) in [(0.0, 4.33), (0.01, 4.23), (0.03, 4.00), (0.05, 3.77)] {
            near(mos(Codec::G711, 0.150, loss, 1.0), wanted);
        }
        for (loss, wanted) in [(0.0, 3.97), (0.01, 3.80), (0.03, 3.46), (0.05, 3.16)] {
            near(mos(Codec::G729a, 0.150, loss, 1.0), wanted);
        }
    }

    fn spurt(delays: &[Option<u64>]) -> Spurt {
        let sent = |i: usize| Time::ZERO + Dur::from_millis(20) * i as u64;
        Spurt {
            start: Time::ZERO,
            packets: (delays.iter().enumerate())
                .map(|(i, d)| (sent(i), d.map(Dur::from_millis)))
                .collect(),
        }
    }

    fn voice() -> Voice {
        toml::from_str("name = \"v\"").expect("defaults")
    }

    #[test]
    fn late_packets_are_not_played_and_bursts_are_worse() {
        let unplayed = |delays: &[Option<u64>]| rate(&voice(), &spurt(delays)).1;
        assert_eq!(unplayed(&[Some(10), Some(70), Some(71), Some(10)]), 0.25);
        assert_eq!(unplayed(&[None, Some(10), Some(70), Some(10)]), 0.25);
        assert_eq!(unplayed(&[None, None]), 1.0);
        let score = |lost: [usize; 2]| {
            let mut delays = vec![Some(10); 20];
            lost.iter().for_each(|&i| delays[i] = None);
            rate(&voice(), &spurt(&delays)).0
        };
        assert!(score([5, 6]) < score([5, 12]) - 0.01);
        // With a constant additional delay all packets are played, and only the delay lowers the score.
        let (near_by, far) = ([Some(10); 20], [Some(400); 20]);
        let (fast, slow) = (
            rate(&voice(), &spurt(&near_by)),
            rate(&voice(), &spurt(&far)),
        );
        assert_eq!((fast.1, slow.1), (0.0, 0.0));
        assert!(slow.0 < fast.0 - 1.0, "{} and {}", slow.0, fast.0);
    }

    #[test]
    fn a_call_has_the_rate_that_its_keys_say() {
        // 160 + 40 bytes 50 times a second, 1004 of 2591 ms.
        let bps = voice().bps();
        assert!((bps - 80_000.0 * 1004.0 / 2591.0).abs() < 1.0, "{bps}");
    }
}
