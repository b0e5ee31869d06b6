//! Probes: packets that measure the available bandwidth or the capacity of a path. Each tool has its own file.

mod chirp;
mod estimator;
mod igi;
mod names;
mod pair;
mod pathload;
mod spruce;
#[cfg(test)]
mod tests;
mod truth;

use estimator::{Estimator, Heard};

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Rate, Stream, Time, UDP_HEADERS};
use swell_workload::{
    Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Sample, Workload,
};

use super::Traffic;
use super::contract::{
    Crossed, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, access,
};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{Route, TcpSettings};
use crate::kinds::contract::Offered;
use crate::measure::{Better, Measure, Source};
use crate::observe::Observations;
use crate::simulate::transport::tcp;
use names::{BYTES, DURATION, ERROR, ESTIMATE, HIGH, LOW, PACKETS, Target};

/// A tool that estimates the available bandwidth of its path down, or its capacity, again and again. Each estimate is
/// compared with what the links had free meanwhile, or could carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// The tool.
    pub tool: Tool,
    /// The capacity of the path, which `spruce`, `igi` and `ptr` have to be told. Default: that of its narrowest link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Rate>,
    /// Pause between two estimates.
    #[serde(default = "pause")]
    pub pause: Dur,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// How the available bandwidth, or the capacity, is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Streams whose delay rises or does not (Jain and Dovrolis, ToN 11(4), 2003), by the tests and thresholds of the
    /// released tool, version 1.3.
    Pathload,
    /// The same by the tests and thresholds of the paper.
    PathloadPaper,
    /// Chirps, of packets that come ever faster (Ribeiro et al., PAM 2003).
    Pathchirp,
    /// Pairs at Poisson times, as far apart as the capacity lets them leave (Strauss et al., IMC 2003).
    Spruce,
    /// Trains with the gap at which it stays what it was, and how gaps grow (Hu and Steenkiste, JSAC 21(6), 2003).
    Igi,
    /// The same trains, and the rate at which they leave.
    Ptr,
    /// Pairs back to back: the median of what they leave with. What it estimates is the capacity (Keshav, SIGCOMM
    /// 1991).
    PacketPair,
}

fn pause() -> Dur {
    Dur::from_secs(1)
}

/// The judged measure: difference between the estimate, the middle of its range, and the actual value of what the tool
/// estimates, over the capacity.
const OFF: Measure = Measure {
    name: Cow::Borrowed(ERROR),
    unit: Cow::Borrowed(""),
    better: Better::Lower,
    censored: false,
    floor: 0.05,
    source: Source::Samples,
    sufficient: true,
    primary: false,
    beside: false,
};

impl Tool {
    fn target(self) -> Target {
        match self {
            Tool::Pathload
            | Tool::PathloadPaper
            | Tool::Pathchirp
            | Tool::Spruce
            | Tool::Igi
            | Tool::Ptr => Target::Available,
            Tool::PacketPair => Target::Capacity,
        }
    }
}

impl Probe {
    fn estimator(&self, capacity: f64) -> Box<dyn Estimator> {
        match self.tool {
            Tool::Pathload => Box::new(pathload::Pathload::new(pathload::RELEASED)),
            Tool::PathloadPaper => Box::new(pathload::Pathload::new(pathload::PUBLISHED)),
            Tool::Pathchirp => Box::new(chirp::Pathchirp::new()),
            Tool::Spruce => Box::new(spruce::Spruce::new(capacity)),
            Tool::Igi => Box::new(igi::Trains::new(capacity, true)),
            Tool::Ptr => Box::new(igi::Trains::new(capacity, false)),
            Tool::PacketPair => Box::new(pair::Pairs::default()),
        }
    }
}

impl Keys for Probe {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        if self.capacity == Some(Rate::default()) {
            found.add(
                at.key("capacity"),
                "a path of no capacity",
                "leave it out, or write a rate",
            );
        }
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("is a probe: it has no rate to match")
    }

    fn delay(&self, _: Dur) -> Option<Dur> {
        self.delay
    }

    fn route(&self) -> Route {
        self.route.clone()
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(WithDelay::traffic(self, with.delay))
    }

    fn measures(&self) -> Vec<Measure> {
        vec![OFF]
    }

    fn silent(&self) -> Option<&'static str> {
        Some(
            "the run ended before an estimate did, or all packets of each train arrived at one instant",
        )
    }

    fn describe(&self, _: Role) -> String {
        let tool = match self.tool {
            Tool::Pathload => "pathload",
            Tool::PathloadPaper => "pathload as published",
            Tool::Pathchirp => "pathChirp",
            Tool::Spruce => "Spruce",
            Tool::Igi => "IGI",
            Tool::Ptr => "PTR",
            Tool::PacketPair => "packet pair",
        };
        let what = match self.tool.target() {
            Target::Available => "available bandwidth",
            Target::Capacity => "capacity",
        };
        format!("{tool}: estimates of the {what} down")
    }
}

impl Plays for WithDelay<Probe> {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        Ok(self.over_sockets(at))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        let capacity = self.keys.capacity.unwrap_or(at.way.rates[1]).bps() as f64;
        let machine = Prober {
            estimator: self.keys.estimator(capacity),
            rng: Stream::new(at.own_seed(), "probe"),
            path: access(self.delay),
            pause: self.keys.pause,
            after: at.warmup,
            train: Vec::new(),
            first: 0,
            sent: 0,
            began: Time::ZERO,
            heard: Vec::new(),
            since: None,
            bytes: 0,
            packets: 0,
            records: Vec::new(),
            samples: Vec::new(),
            rest: Dur::ZERO,
            round: 0,
        };
        Some((Box::new(machine), tcp(&TcpSettings::default())))
    }

    fn offered(&self, _: &Setting<'_>) -> Result<Option<Offered>, RunError> {
        Ok(None)
    }

    fn observed(&self, path: &[Crossed<'_>], observed: &mut Observations) {
        truth::add(path, self.keys.tool.target(), observed);
    }

    fn class(&self, _: u32) -> String {
        "probe".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of([0.0, 1e6], 1.0)
    }
}

/// The workload: one train after another, from the server to the client.
struct Prober {
    estimator: Box<dyn Estimator>,
    rng: Stream,
    path: Access,
    /// Pause between estimates.
    pause: Dur,
    /// From the beginning of the run to the first train.
    after: Dur,
    /// The current train: time since its first packet, and size.
    train: Vec<(Dur, u32)>,
    /// Number of its first packet.
    first: u64,
    /// Number of its packets sent so far.
    sent: usize,
    began: Time,
    heard: Vec<Heard>,
    /// When the current estimate began.
    since: Option<Time>,
    bytes: u64,
    packets: u64,
    records: Vec<Record>,
    samples: Vec<Sample>,
    /// Pause before the next train.
    rest: Dur,
    /// Number of the current train; timers of earlier ones are ignored.
    round: u64,
}

// Timer tokens.
const SEND: u64 = 0;
const NEXT: u64 = 1;
/// The remaining packets of a train are lost. The token includes the train's number.
const LOST: u64 = 2;

/// Packets that have not arrived this long after the last one was sent are lost.
const GRACE: Dur = Dur::from_secs(1);

impl Prober {
    fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        let train = self.estimator.next(&mut self.rng);
        self.first += self.train.len() as u64;
        self.train = train.packets;
        self.rest = train.pause;
        self.sent = 0;
        self.began = now;
        self.heard = self.train.iter().map(|p| (now + p.0, None)).collect();
        self.since.get_or_insert(now);
        self.round += 1;
        self.send(now, actions);
    }

    /// Sends the packets that are due.
    fn send(&mut self, now: Time, actions: &mut Vec<Action>) {
        while let Some(&(at, size)) = self.train.get(self.sent) {
            let due = self.began + at;
            if due > now {
                return actions.push(Action::Timer(due.since(now), SEND));
            }
            actions.push(Action::SendDatagram(
                Conn(0),
                End::Server,
                size - UDP_HEADERS[0],
            ));
            self.bytes += u64::from(size);
            self.packets += 1;
            self.sent += 1;
        }
        actions.push(Action::Timer(GRACE, LOST + self.round));
    }

    fn hear(&mut self, number: u64, now: Time, actions: &mut Vec<Action>) {
        let Some(place) = number.checked_sub(self.first) else {
            return;
        };
        if let Some(own) = self.heard.get_mut(place as usize) {
            own.1 = Some(now);
        }
        if place as usize + 1 == self.heard.len() {
            self.conclude(now, actions);
        }
    }

    fn conclude(&mut self, now: Time, actions: &mut Vec<Action>) {
        let heard = std::mem::take(&mut self.heard);
        if heard.is_empty() {
            return;
        }
        let mut rest = self.rest;
        if let Some((low, high)) = self.estimator.heard(&heard) {
            let since = self.since.take().unwrap_or(now);
            let took = now.since(since).as_secs_f64();
            for (measure, value) in [
                (ESTIMATE, (low + high) / 2.0),
                (LOW, low),
                (HIGH, high),
                (BYTES, self.bytes as f64),
                (PACKETS, self.packets as f64),
                (DURATION, took),
            ] {
                self.samples.push(Sample {
                    measure,
                    value,
                    at: now,
                });
            }
            (self.bytes, self.packets) = (0, 0);
            rest = self.pause;
        }
        actions.push(Action::Timer(rest, NEXT));
    }
}

impl Workload for Prober {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let open = Open {
                    client: self.path,
                    server: self.path,
                    ..Open::default()
                };
                actions.push(Action::Datagrams(Conn(0), Box::new(open)));
                actions.push(Action::Timer(self.after, NEXT));
            }
            Event::Timer(SEND) => self.send(now, actions),
            Event::Timer(NEXT) => self.begin(now, actions),
            Event::Timer(token) if token == LOST + self.round => self.conclude(now, actions),
            Event::Datagram(_, End::Client, _, Some(number)) => self.hear(number, now, actions),
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
        let [up, down] = info(Conn(0)).received;
        self.records.push(Record::Flow(FlowRecord {
            class: 0,
            start: Time::ZERO,
            end: None,
            up: down,
            down: up,
            min_rtt: None,
            retransmissions: 0,
        }));
    }
}
