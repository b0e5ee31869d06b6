//! A foreground: viewers who fetch media segments over TCP, each at a bitrate that the player chooses.

mod rules;

use swell_base::{Bytes, Dur, Rate, Time};

pub use rules::{Known, Rule};

use crate::{Access, Action, Conn, End, Event, FlowRecord, Info, Open, Record, Sample, Workload};

/// Measures of a viewing, as [`Sample`]s. [`SPEED`](measures::SPEED) is taken for each segment.
pub mod measures {
    /// From the request to the start of playback, seconds.
    pub const STARTUP: &str = "start-up";
    /// Number of times playback stopped because the buffer was empty.
    pub const STALLS: &str = "stall count";
    /// Total time for which playback was stopped, seconds.
    pub const STALLED: &str = "stall time";
    /// Mean bitrate of the segments received, bits per second.
    pub const RATE: &str = "mean rate";
    /// Number of bitrate changes between consecutive segments.
    pub const SWITCHES: &str = "switch count";
    /// Throughput of a segment, from its request to its last byte, bits per second.
    pub const SPEED: &str = "throughput";
}

/// Media, player and viewers.
#[derive(Clone, Debug, PartialEq)]
pub struct DashConfig {
    /// Available bitrates, in ascending order.
    pub ladder: Vec<Rate>,
    /// Media time per segment.
    pub segment: Dur,
    /// Largest amount of media in the buffer.
    pub buffer: Dur,
    /// Rule that chooses the next bitrate.
    pub rule: Rule,
    /// Media time of a video.
    pub length: Dur,
    /// Request size.
    pub request: Bytes,
    /// Number of viewers, each with its own path.
    pub viewers: u32,
    /// Time between the starts of a viewer's successive viewings; `None`: a viewing starts when the previous one is
    /// over.
    pub every: Option<Dur>,
    /// When the first segments are requested.
    pub start: Dur,
    /// Path of every viewer.
    pub client: Access,
    /// Path of the server.
    pub server: Access,
}

/// Time beyond the length of the media after which a viewing ends.
const GRACE: Dur = Dur::from_secs(10);
/// Pause before a connection that was reset is reopened.
const PAUSE: Dur = Dur::from_secs(1);

impl DashConfig {
    /// Duration of a viewing, from the first request.
    pub fn watched(&self) -> Dur {
        self.length + GRACE
    }

    /// Number of segments in a video.
    fn count(&self) -> usize {
        (self.length.as_secs_f64() / self.segment.as_secs_f64()).round() as usize
    }

    /// Size of a segment, bytes.
    fn size(&self, rung: usize) -> u64 {
        let rate = self.ladder.get(rung).copied().unwrap_or_default();
        rate.carried_in(self.segment).0.max(1)
    }
}

/// Viewers who fetch segments, each over one persistent connection, and play them as they arrive. A viewer pauses
/// fetching while the buffer has no space for a segment. A viewing lasts for a fixed time, so that segments which a
/// bad network does not deliver in time have an effect.
#[derive(Debug)]
pub struct Dash {
    config: DashConfig,
    viewings: Vec<Viewing>,
    /// Viewing of each connection, indexed by connection number.
    owner: Vec<u32>,
    records: Vec<Record>,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Viewing {
    viewer: u32,
    asked: Time,
    over: bool,
    conn: Option<Conn>,
    fetch: Option<Fetch>,
    received: u64,
    /// Bitrates of the segments received, as indices into the ladder.
    rungs: Vec<usize>,
    speeds: Vec<f64>,
    started: Option<Time>,
    /// When the buffer runs empty.
    empty: Time,
    stalls: u32,
    stalled: Dur,
}

#[derive(Clone, Copy, Debug)]
struct Fetch {
    start: Time,
    rung: usize,
    requested: u64,
    received: u64,
}

// Timer tokens: the event, and the viewer or viewing.
const BEGIN: u64 = 0;
const NEXT: u64 = 1 << 32;
const OVER: u64 = 2 << 32;

impl Dash {
    /// Viewers with the given configuration.
    pub fn new(config: DashConfig) -> Dash {
        Dash {
            config,
            viewings: Vec::new(),
            owner: Vec::new(),
            records: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn begin(&mut self, now: Time, viewer: u32, actions: &mut Vec<Action>) {
        let (v, watched) = (self.viewings.len() as u32, self.config.watched());
        self.viewings.push(Viewing {
            viewer,
            asked: now,
            over: false,
            conn: None,
            fetch: None,
            received: 0,
            rungs: Vec::new(),
            speeds: Vec::new(),
            started: None,
            empty: now,
            stalls: 0,
            stalled: Dur::ZERO,
        });
        actions.push(Action::Timer(watched, OVER | u64::from(v)));
        let again = self.config.every.unwrap_or(watched);
        actions.push(Action::Timer(again, BEGIN | u64::from(viewer)));
        self.next(now, v, actions);
    }

    /// Requests the next segment, or waits until the buffer has space for it.
    fn next(&mut self, now: Time, v: u32, actions: &mut Vec<Action>) {
        let config = &self.config;
        let viewing = &mut self.viewings[v as usize];
        if viewing.over || viewing.fetch.is_some() || viewing.rungs.len() >= config.count() {
            return;
        }
        let level = viewing.empty.since(now);
        let full = (level + config.segment).saturating_sub(config.buffer);
        if full > Dur::ZERO {
            return actions.push(Action::Timer(full, NEXT | u64::from(v)));
        }
        let rung = config.rule.choose(&Known {
            ladder: &config.ladder,
            segment: config.segment,
            buffer: config.buffer,
            level,
            before: viewing.rungs.last().copied(),
            speeds: &viewing.speeds,
        });
        let conn = *viewing.conn.get_or_insert_with(|| {
            let conn = Conn(self.owner.len() as u32);
            self.owner.push(v);
            let open = Open {
                client: config.client,
                server: config.server,
                hosts: [u64::from(viewing.viewer) + 1, 1],
                ..Open::default()
            };
            actions.push(Action::Connect(conn, Box::new(open)));
            conn
        });
        viewing.fetch = Some(Fetch {
            start: now,
            rung,
            requested: 0,
            received: 0,
        });
        actions.push(Action::Send(conn, End::Client, config.request.0.max(1)));
    }

    /// Bytes of a segment arrive.
    fn receive(&mut self, now: Time, conn: Conn, n: u64, actions: &mut Vec<Action>) {
        let config = &self.config;
        let Some((v, viewing)) = of(&self.owner, &mut self.viewings, conn) else {
            return;
        };
        viewing.received += n;
        let Some(fetch) = &mut viewing.fetch else {
            return;
        };
        fetch.received += n;
        let size = config.size(fetch.rung);
        if fetch.received < size {
            return;
        }
        let took = now.since(fetch.start).as_secs_f64().max(1e-9);
        let speed = size as f64 * 8.0 / took;
        viewing.rungs.push(fetch.rung);
        viewing.speeds.push(speed);
        viewing.fetch = None;
        if viewing.started.is_none() {
            viewing.started = Some(now);
            viewing.empty = now;
        } else if now > viewing.empty {
            viewing.stalls += 1;
            viewing.stalled += now.since(viewing.empty);
            viewing.empty = now;
        }
        viewing.empty += config.segment;
        self.samples.push(Sample {
            measure: measures::SPEED,
            value: speed,
            at: now,
        });
        self.next(now, v, actions);
    }

    fn over(&mut self, now: Time, v: u32, actions: &mut Vec<Action>) {
        let count = self.config.count();
        let viewing = &mut self.viewings[v as usize];
        if viewing.started.is_some() && viewing.rungs.len() < count && now > viewing.empty {
            viewing.stalls += 1;
            viewing.stalled += now.since(viewing.empty);
        }
        let bps = |rung: &usize| {
            self.config
                .ladder
                .get(*rung)
                .map_or(0.0, |r| r.bps() as f64)
        };
        let rates: f64 = viewing.rungs.iter().map(bps).sum();
        let switches = viewing.rungs.windows(2).filter(|w| w[0] != w[1]).count();
        let started = viewing.started.unwrap_or(now);
        for (measure, value) in [
            (
                measures::STARTUP,
                started.since(viewing.asked).as_secs_f64(),
            ),
            (measures::STALLS, f64::from(viewing.stalls)),
            (measures::STALLED, viewing.stalled.as_secs_f64()),
            (measures::RATE, rates / viewing.rungs.len().max(1) as f64),
            (measures::SWITCHES, switches as f64),
        ] {
            self.samples.push(Sample {
                measure,
                value,
                at: viewing.asked,
            });
        }
        if let Some(conn) = viewing.conn {
            actions.push(Action::Abort(conn));
        }
        self.record(v, Some(now));
    }

    fn record(&mut self, v: u32, end: Option<Time>) {
        let viewing = &mut self.viewings[v as usize];
        viewing.over = true;
        self.records.push(Record::Flow(FlowRecord {
            class: 0,
            start: viewing.asked,
            end,
            up: 0,
            down: viewing.received,
            min_rtt: None,
            retransmissions: 0,
        }));
    }
}

/// The viewing that currently uses this connection.
fn of<'v>(
    owner: &[u32],
    viewings: &'v mut [Viewing],
    conn: Conn,
) -> Option<(u32, &'v mut Viewing)> {
    let v = *owner.get(conn.0 as usize)?;
    let viewing = &mut viewings[v as usize];
    (viewing.conn == Some(conn) && !viewing.over).then_some((v, viewing))
}

impl Workload for Dash {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                // Spreads the viewers over the time between two viewings.
                let config = &self.config;
                let span = config.every.unwrap_or_else(|| config.watched());
                for viewer in 0..config.viewers {
                    let share = f64::from(viewer) / f64::from(config.viewers);
                    let wait = config.start + span.scale(share);
                    actions.push(Action::Timer(wait, BEGIN | u64::from(viewer)));
                }
            }
            Event::Timer(token) if token >= OVER => self.over(now, token as u32, actions),
            Event::Timer(token) if token >= NEXT => self.next(now, token as u32, actions),
            Event::Timer(token) => self.begin(now, token as u32, actions),
            Event::Received(conn, End::Server, n) => {
                if let Some((_, viewing)) = of(&self.owner, &mut self.viewings, conn)
                    && let Some(fetch) = &mut viewing.fetch
                {
                    fetch.requested += n;
                    if fetch.requested == self.config.request.0.max(1) {
                        let size = self.config.size(fetch.rung);
                        actions.push(Action::Send(conn, End::Server, size));
                    }
                }
            }
            Event::Received(conn, End::Client, n) => self.receive(now, conn, n, actions),
            Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
            Event::Reset(conn, _) => {
                if let Some((v, viewing)) = of(&self.owner, &mut self.viewings, conn) {
                    viewing.conn = None;
                    viewing.fetch = None;
                    actions.push(Action::Timer(PAUSE, NEXT | u64::from(v)));
                }
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

    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {
        for v in 0..self.viewings.len() {
            if !self.viewings[v].over {
                self.record(v as u32, None);
            }
        }
    }
}
