//! A foreground: viewers of media streams, sent as datagrams at playback speed.

mod config;
mod repair;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use swell_base::{Dur, Time};

use crate::{Action, Conn, End, Event, FlowRecord, Info, Open, Record, Sample, Workload};

/// Measures of a stream, as [`Sample`]s: first per packet, then per second, then per stream.
pub mod measures {
    /// Time between consecutive arrivals of packets, seconds.
    pub const GAP: &str = "inter-arrival";
    /// Interarrival jitter of RFC 3550 section 6.4.1, sampled for every second of media, seconds.
    pub const JITTER: &str = "jitter";
    /// Share of frames that became complete after their playback time.
    pub const LATE: &str = "late frame share";
    /// Share of frames that did not become complete.
    pub const LOST: &str = "lost frame share";
    /// Number of times playback stopped because no frame was left to play.
    pub const STALLS: &str = "stall count";
    /// Total time for which playback was stopped, seconds.
    pub const STALLED: &str = "stall time";
    /// From the request to the first frame played, seconds.
    pub const STARTUP: &str = "start-up";
    /// Payload that the server retransmitted, bytes.
    pub const AGAIN: &str = "retransmitted";
    /// Share of seconds in which the full media rate arrived, to within a frame. A stream that is sent in less than a
    /// second counts as one.
    pub const FULL: &str = "full rate";
}

pub use config::StreamConfig;
use repair::Missing;

/// Timeout after which a request without a response is repeated.
const PATIENCE: Dur = Dur::from_secs(1);
/// Wait for the rest of a stream of which more than the last frame lacks: an outage may be holding it back.
const OUTAGE: Dur = Dur::from_millis(1_500);
/// Payload of a request.
const ASK: u32 = 100;

/// Viewers of media streams.
///
/// The server sends at playback speed, and faster until the viewer's buffer is full. The viewer starts playback when
/// the buffer is full. A frame that is incomplete at its playback time is skipped if a later frame is complete, or
/// the stream has ended. Otherwise playback stops until the buffer is full again, or the stream has ended. A gap in
/// the packet numbers is requested at once, and again after a round trip and a frame time. If the packet is needed
/// within two round trips, it is requested again after a frame time. Each further wait is twice as long, up to eight
/// times the first: RFC 4588 section 6.3 bases the wait on the round trip and lets it grow with every request for the
/// same packet.
///
/// A viewer does not know whether the end of a stream is lost or late. It requests the end when it should have come at
/// the pace of the media, counted from the latest arrival, so not while packets arrive late but in order. The stream
/// has ended when its media time is over and the viewer has waited in vain: if it requests missing packets, for the answer to a request and its
/// repetition; if more than the last frame lacks, for as long as an outage may last.
///
/// A viewing lasts for a fixed time, so that packets which a bad network does not deliver in time have an effect.
#[derive(Debug)]
pub struct Stream {
    config: StreamConfig,
    viewings: Vec<Viewing>,
    records: Vec<Record>,
    samples: Vec<Sample>,
}

/// Content of a datagram.
#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Ask,
    Nack(Vec<u32>),
    Media { packet: u32, again: bool },
}

/// State of a stream, at both ends.
#[derive(Debug)]
struct Viewing {
    asked: Time,
    over: bool,
    /// Datagrams of both ends, by number.
    sent: Vec<Sent>,
    // Server state.
    begun: Option<Time>,
    /// When each packet was first sent.
    sent_at: Vec<Time>,
    again: u64,
    // Viewer state.
    got: Vec<bool>,
    /// Number of missing packets in each frame.
    lacks: Vec<u32>,
    /// Packets below this number have been checked for gaps.
    seen: u32,
    missing: BTreeMap<u32, Missing>,
    repair_at: Time,
    round_trip: Dur,
    first: Option<Time>,
    last: Time,
    received: u64,
    /// Media bytes per second since the first arrival.
    seconds: Vec<u64>,
    /// Transit time of the last packet, seconds.
    transit: Option<f64>,
    jitter: f64,
    jittered: u32,
    /// When the media time was over, and the end of the stream was first requested.
    due_by: Option<Time>,
    /// The media time is over, and nothing arrives any more.
    ended: bool,
    // Player state.
    /// The latest complete frame, plus one.
    top: u32,
    /// The next frame to play.
    next: u32,
    /// A frame and its playback time, from which other playback times follow; `None` while playback is stopped.
    clock: Option<(u32, Time)>,
    stopped: Option<Time>,
    stalls: u32,
    stalled: Dur,
    started: Option<Time>,
    /// Skipped frames.
    left_out: Vec<u32>,
}

// Timer tokens: the event, and the viewer or stream.
const BEGIN: u64 = 0;
const RETRY: u64 = 1 << 32;
const SEND: u64 = 2 << 32;
const PLAY: u64 = 3 << 32;
const REPAIR: u64 = 4 << 32;
const TAIL: u64 = 5 << 32;
const OVER: u64 = 6 << 32;

impl Stream {
    /// Viewers with the given configuration.
    pub fn new(config: StreamConfig) -> Stream {
        Stream {
            config,
            viewings: Vec::new(),
            records: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn begin(&mut self, now: Time, viewer: u64, actions: &mut Vec<Action>) {
        let config = &self.config;
        let conn = self.viewings.len() as u64;
        let open = Open {
            client: config.client,
            server: config.server,
            hosts: [viewer + 1, 1],
            ..Open::default()
        };
        actions.push(Action::Datagrams(Conn(conn as u32), Box::new(open)));
        let (n, (per_frame, _)) = (config.count(), config.cut());
        self.viewings.push(Viewing {
            asked: now,
            over: false,
            sent: Vec::new(),
            begun: None,
            sent_at: Vec::new(),
            again: 0,
            got: vec![false; (n * per_frame) as usize],
            lacks: vec![per_frame; n as usize],
            seen: 0,
            missing: BTreeMap::new(),
            repair_at: Time::MAX,
            round_trip: PATIENCE,
            first: None,
            last: now,
            received: 0,
            seconds: vec![0; (config.offset(n * per_frame).as_secs_f64() as usize).max(1)],
            transit: None,
            jitter: 0.0,
            jittered: 0,
            due_by: None,
            ended: false,
            top: 0,
            next: 0,
            clock: None,
            stopped: None,
            stalls: 0,
            stalled: Dur::ZERO,
            started: None,
            left_out: Vec::new(),
        });
        let watched = config.watched();
        actions.push(Action::Timer(watched, OVER | conn));
        let again = config.every.unwrap_or(watched);
        actions.push(Action::Timer(again, BEGIN | viewer));
        self.ask(conn, actions);
    }

    fn ask(&mut self, conn: u64, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        if viewing.first.is_none() {
            viewing.sent.push(Sent::Ask);
            actions.push(Action::SendDatagram(Conn(conn as u32), End::Client, ASK));
            actions.push(Action::Timer(PATIENCE, RETRY | conn));
        }
    }

    /// The server sends the next packet.
    fn send(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        let Some(begun) = viewing.begun else { return };
        let packet = viewing.sent_at.len() as u32;
        let media = Sent::Media {
            packet,
            again: false,
        };
        viewing.sent.push(media);
        viewing.sent_at.push(now);
        let payload = self.config.payload();
        actions.push(Action::SendDatagram(
            Conn(conn as u32),
            End::Server,
            payload,
        ));
        if viewing.sent_at.len() < viewing.got.len() {
            let due = begun + self.config.offset(packet + 1);
            actions.push(Action::Timer(due.since(now), SEND | conn));
        }
    }

    fn serve(&mut self, now: Time, conn: u64, number: u64, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        match viewing.sent.get(number as usize).cloned() {
            Some(Sent::Ask) if viewing.begun.is_none() => {
                viewing.begun = Some(now);
                self.send(now, conn, actions);
            }
            Some(Sent::Nack(packets)) => {
                let payload = self.config.payload();
                for packet in packets {
                    if (packet as usize) < viewing.sent_at.len() {
                        let again = true;
                        viewing.sent.push(Sent::Media { packet, again });
                        viewing.again += u64::from(payload);
                        actions.push(Action::SendDatagram(
                            Conn(conn as u32),
                            End::Server,
                            payload,
                        ));
                    }
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, now: Time, conn: u64, number: u64, actions: &mut Vec<Action>) {
        let (per_frame, payload) = self.config.cut();
        let viewing = &mut self.viewings[conn as usize];
        let Some(&Sent::Media { packet, again }) = viewing.sent.get(number as usize) else {
            return;
        };
        let mut sample = |measure, value| {
            self.samples.push(Sample {
                measure,
                value,
                at: now,
            });
        };
        viewing.received += u64::from(payload);
        match viewing.first {
            Some(_) => sample(measures::GAP, now.since(viewing.last).as_secs_f64()),
            None => {
                viewing.first = Some(now);
                viewing.round_trip = now.since(viewing.asked).min(PATIENCE);
                let (last, frame) = (viewing.got.len() as u32, self.config.frame_time());
                let wait = self.config.offset(last) + viewing.round_trip + frame;
                actions.push(Action::Timer(wait, TAIL | conn));
            }
        }
        viewing.last = now;
        if !again && let Some(sent) = viewing.sent_at.get(packet as usize) {
            let transit = now.since(*sent).as_secs_f64();
            let moved = viewing.transit.map_or(0.0, |t| (transit - t).abs());
            viewing.transit = Some(transit);
            viewing.jitter += (moved - viewing.jitter) / 16.0;
            viewing.jittered += 1;
            if viewing
                .jittered
                .is_multiple_of(per_frame * self.config.frames)
            {
                sample(measures::JITTER, viewing.jitter);
            }
        }
        let got = &mut viewing.got[packet as usize];
        if std::mem::replace(got, true) {
            return;
        }
        let second = now.since(viewing.first.unwrap_or(now)).as_secs_f64() as usize;
        if let Some(bytes) = viewing.seconds.get_mut(second) {
            *bytes += u64::from(payload);
        }
        viewing.repaired(packet, now);
        viewing.look_for(packet + 1, now);
        if self.config.repair {
            self.ask_again(now, conn, actions);
        }
        self.whole(now, conn, packet / per_frame, actions);
    }

    /// A packet of a frame arrives for the first time.
    fn whole(&mut self, now: Time, conn: u64, frame: u32, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        let lacks = &mut viewing.lacks[frame as usize];
        *lacks -= 1;
        if *lacks > 0 {
            return;
        }
        viewing.top = viewing.top.max(frame + 1);
        self.start(now, conn, actions);
    }

    /// Starts playback if it is stopped and there is nothing to wait for.
    fn start(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        let n = viewing.lacks.len() as u32;
        let buffer = self.config.buffer.as_secs_f64() * f64::from(self.config.frames);
        let wanted = (buffer.round() as u32).max(1).min(n - viewing.next);
        let enough = viewing.ended || viewing.top >= viewing.next + wanted;
        if viewing.clock.is_none() && viewing.next < n && enough {
            let wait = self.config.frame_time();
            viewing.clock = Some((viewing.next, now + wait));
            if let Some(stopped) = viewing.stopped.take() {
                viewing.stalled += (now + wait).since(stopped);
            }
            actions.push(Action::Timer(wait, PLAY | conn));
        }
    }

    /// The media time is over: the stream has ended when nothing has come for a while. Until then, a full queue may
    /// have delayed the rest, an outage may hold it back, or a request may bring it.
    fn await_end(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let frame = self.config.frame_time();
        let viewing = &mut self.viewings[conn as usize];
        let due_by = *viewing.due_by.get_or_insert(now);
        let answer = viewing.round_trip + frame;
        // No frame from `top` on is complete.
        let many = viewing.lacks.len() as u32 - viewing.top > 1;
        let quiet = match (self.config.repair, many) {
            (false, false) => viewing.last + answer,
            (true, false) => viewing.last.max(due_by) + answer * 2,
            (false, true) => viewing.last.max(due_by) + answer.max(OUTAGE),
            (true, true) => viewing.last.max(due_by) + (answer * 2).max(OUTAGE),
        };
        if quiet > now {
            return actions.push(Action::Timer(quiet.since(now), TAIL | conn));
        }
        viewing.ended = true;
        self.start(now, conn, actions);
    }

    /// The next frame is due for playback.
    fn play(&mut self, now: Time, conn: u64, actions: &mut Vec<Action>) {
        let viewing = &mut self.viewings[conn as usize];
        let (Some((frame, at)), next) = (viewing.clock, viewing.next) else {
            return;
        };
        if viewing.lacks[next as usize] == 0 {
            viewing.started.get_or_insert(now);
        } else if viewing.top > next || viewing.ended {
            viewing.left_out.push(next);
        } else {
            viewing.stalls += 1;
            viewing.stopped = Some(now);
            viewing.clock = None;
            return;
        }
        viewing.next += 1;
        if viewing.next == viewing.lacks.len() as u32 {
            viewing.clock = None;
            return;
        }
        let ahead = f64::from(viewing.next - frame) / f64::from(self.config.frames);
        let due = at + Dur::from_secs_f64(ahead);
        actions.push(Action::Timer(due.since(now), PLAY | conn));
    }

    /// The viewing ends.
    fn over(&mut self, now: Time, conn: u64) {
        let viewing = &mut self.viewings[conn as usize];
        viewing.over = true;
        let n = viewing.lacks.len() as f64;
        let is_lost = |lacks: &&u32| **lacks > 0;
        let lost = viewing.lacks.iter().filter(is_lost).count() as f64;
        let came = |frame: &&u32| viewing.lacks[**frame as usize] == 0;
        let late = viewing.left_out.iter().filter(came).count() as f64;
        let waits = viewing.stopped.map_or(Dur::ZERO, |at| now.since(at));
        let started = viewing.started.unwrap_or(now);
        let second = self.config.rate.bps() as f64 / 8.0;
        let span = self.config.length.as_secs_f64().min(1.0);
        let enough = second * (span - 1.0 / f64::from(self.config.frames));
        let full = viewing.seconds.iter().filter(|&&b| b as f64 >= enough);
        let share = full.count() as f64 / viewing.seconds.len() as f64;
        for (measure, value) in [
            (measures::LATE, late / n),
            (measures::LOST, lost / n),
            (measures::STALLS, f64::from(viewing.stalls)),
            (measures::STALLED, (viewing.stalled + waits).as_secs_f64()),
            (
                measures::STARTUP,
                started.since(viewing.asked).as_secs_f64(),
            ),
            (measures::AGAIN, viewing.again as f64),
            (measures::FULL, share),
        ] {
            self.samples.push(Sample {
                measure,
                value,
                at: viewing.asked,
            });
        }
        self.record(conn, Some(now));
    }

    fn record(&mut self, conn: u64, end: Option<Time>) {
        let viewing = &mut self.viewings[conn as usize];
        self.records.push(Record::Flow(FlowRecord {
            class: 0,
            start: viewing.asked,
            end,
            up: 0,
            down: viewing.received,
            min_rtt: None,
            retransmissions: 0,
        }));
        // The state of packets and frames is not needed any more.
        viewing.sent = Vec::new();
        viewing.sent_at = Vec::new();
        viewing.got = Vec::new();
        viewing.missing.clear();
        viewing.lacks = Vec::new();
        viewing.left_out = Vec::new();
        viewing.seconds = Vec::new();
    }

    fn due(&mut self, now: Time, token: u64, actions: &mut Vec<Action>) {
        let (what, conn) = (token & !u64::from(u32::MAX), token & u64::from(u32::MAX));
        if what == BEGIN {
            return self.begin(now, conn, actions);
        }
        if self.viewings[conn as usize].over {
            return;
        }
        match what {
            RETRY => self.ask(conn, actions),
            SEND => self.send(now, conn, actions),
            PLAY => self.play(now, conn, actions),
            REPAIR => self.ask_again(now, conn, actions),
            TAIL => self.tail(now, conn, actions),
            _ => {
                self.over(now, conn);
                actions.push(Action::Abort(Conn(conn as u32)));
            }
        }
    }
}

impl Workload for Stream {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                // Spreads the viewers over the time between two streams of a viewer.
                let config = &self.config;
                let span = config.every.unwrap_or_else(|| config.watched());
                for viewer in 0..u64::from(config.viewers) {
                    let share = viewer as f64 / f64::from(config.viewers);
                    let wait = config.start + span.scale(share);
                    actions.push(Action::Timer(wait, BEGIN | viewer));
                }
            }
            Event::Timer(token) => self.due(now, token, actions),
            Event::Datagram(conn, end, _, Some(number)) => {
                let viewing = self.viewings.get(conn.0 as usize);
                if viewing.is_none_or(|viewing| viewing.over) {
                    return;
                }
                match end {
                    End::Server => self.serve(now, u64::from(conn.0), number, actions),
                    End::Client => self.take(now, u64::from(conn.0), number, actions),
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
        for conn in 0..self.viewings.len() {
            if !self.viewings[conn].over {
                self.record(conn as u64, None);
            }
        }
    }
}
