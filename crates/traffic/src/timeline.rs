//! When what happens in a session, if nothing but its own paths slows it down.
//!
//! A run begins in the middle of sessions, and a model's mean rate is known before anything runs. Both
//! need the times and sizes that a replay would show over a network of known round trip and rate. They are
//! a fluid estimate: slow start from ten segments, then the lowest of the rates of the access paths, the
//! receive window, the loss on the way and the [`Network`] between; and the time-outs that loss is expected
//! to cost. Queues are not in it.

use swell_base::{Dur, Rate};

use crate::{Connection, Datagrams, Exchange, Model, Session, Turn, Unit, Write};

/// The network between the access paths, as far as it decides how long an exchange takes. The default
/// takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// Round-trip propagation delay.
    pub rtt: Dur,
    /// What one transfer can expect left to right and right to left; `None`: no limit.
    pub rates: [Option<Rate>; 2],
}

/// Data that one end sends in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// From the connection's start to the first byte's leaving.
    pub from: Dur,
    /// To the last byte's arrival.
    pub to: Dur,
    /// 0 = from the client, 1 = from the server.
    pub end: usize,
    /// Which turn, or unit of that end, it belongs to.
    pub unit: usize,
    /// Application bytes; a scaled number where only a part of a datagram flow was kept.
    pub bytes: u64,
}

/// A connection's course.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timeline {
    /// In order of their beginnings for each end.
    pub spans: Vec<Span>,
    /// When the exchange is over, since the connection's start.
    pub end: Dur,
    /// Round trip from end to end.
    pub rtt: Dur,
}

/// Payload of a full segment where the model does not say.
pub(crate) const FULL: u64 = 1448;
/// Segments of the initial window (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// After its last SYN, an attempt lasts so much longer than a round trip.
const GIVEN_UP: Dur = Dur::from_secs(1);

/// Payload of a full segment of an end.
pub(crate) fn full(connection: &Connection, end: usize) -> u64 {
    match connection.wire.ends[end].mss {
        0 => FULL,
        mss => u64::from(mss),
    }
}

/// Linux's shortest time-out above the round trip, seconds (`TCP_RTO_MIN`), and the first of a SYN (RFC 6298).
const RTO_MIN: f64 = 0.2;
const SYN_RTO: f64 = 1.0;

/// How fast the two ends of a connection send.
struct Pace {
    /// Round trip, seconds.
    rtt: f64,
    /// The handshake, with the SYNs that are expected to be lost, seconds.
    handshake: f64,
    /// Share of the segments that are lost on the way, from the client and from the server.
    loss: [f64; 2],
    /// Payload of their segments.
    segment: [u64; 2],
    /// Bytes per second from the client and from the server.
    rate: [f64; 2],
    /// Congestion windows, bytes.
    window: [f64; 2],
}

impl Pace {
    fn new(model: &Model, session: &Session, connection: &Connection, network: &Network) -> Pace {
        let client = model.client_paths.get(session.client as usize);
        let server = model.server_paths.get(connection.server as usize);
        let rtt = [client, server]
            .into_iter()
            .flatten()
            .fold(network.rtt, |sum, path| sum + path.rtt)
            .as_secs_f64();
        let capacity = |rate: Option<Rate>| match rate {
            Some(rate) if rate.bps() > 0 => rate.bps() as f64 / 8.0,
            _ => f64::INFINITY,
        };
        let loss = [(client, server), (server, client)].map(|(sender, receiver)| {
            let delivered = sender.map_or(1.0, |p| 1.0 - p.loss_up)
                * receiver.map_or(1.0, |p| 1.0 - p.loss_down);
            (1.0 - delivered).min(MOST_LOSS)
        });
        let of = |end: usize| {
            let (sender, receiver) = match end {
                0 => (client, server),
                _ => (server, client),
            };
            let link = network.rates[usize::from((end == 1) != session.outside)];
            let window = match [connection.server_window, connection.client_window][end] {
                0 => f64::INFINITY,
                bytes => f64::from(bytes) / rtt,
            };
            capacity(sender.and_then(|p| p.up))
                .min(capacity(receiver.and_then(|p| p.down)))
                .min(capacity(link))
                .min(window)
                .min(under_loss(full(connection, end), rtt, loss[end]))
        };
        let syns = 1.0 - (1.0 - loss[0]) * (1.0 - loss[1]);
        Pace {
            rtt,
            handshake: rtt + syns * SYN_RTO,
            loss,
            segment: [0, 1].map(|end| full(connection, end)),
            rate: [of(0), of(1)],
            window: [0, 1].map(|end| (INITIAL_WINDOW * full(connection, end)) as f64),
        }
    }

    /// Seconds from the first byte's leaving to the last one's arrival.
    fn transfer(&mut self, end: usize, bytes: u64) -> f64 {
        let (mut left, mut time) = (bytes as f64, 0.0);
        let window = &mut self.window[end];
        while left > *window && *window < self.rate[end] * self.rtt {
            left -= *window;
            time += self.rtt;
            *window *= 2.0;
        }
        // A path without limit and without delay takes no time.
        let steady = if self.rate[end].is_finite() {
            left / self.rate[end]
        } else {
            0.0
        };
        time + steady + self.rtt / 2.0 + self.stalls(end, bytes)
    }

    /// Seconds of time-outs that a transfer is expected to have: a loss ends in one where fewer than three
    /// segments follow in the window, and those that follow are longer (Padhye et al., SIGCOMM 1998, eq. 29).
    fn stalls(&self, end: usize, bytes: u64) -> f64 {
        let (p, segment) = (self.loss[end], self.segment[end].max(1));
        if p <= 0.0 {
            return 0.0;
        }
        let segments = bytes.div_ceil(segment) as f64;
        let window = (self.rate[end] * self.rtt / segment as f64).max(1.0);
        let ends_so = (3.0 / window.min(segments)).min(1.0);
        segments * p * ends_so * (1.0 + 32.0 * p * p) * (self.rtt + RTO_MIN)
    }
}

/// More loss than this is taken for this: nothing would ever arrive.
const MOST_LOSS: f64 = 0.5;

/// What TCP gets through independent loss, bytes per second: the larger of Reno's mean window, the square
/// root of 3/(2p) segments (Mathis et al., CCR 27(3), 1997), and CUBIC's (RFC 9438, section 5.1).
fn under_loss(segment: u64, rtt: f64, loss: f64) -> f64 {
    if loss <= 0.0 || rtt <= 0.0 {
        return f64::INFINITY;
    }
    let reno = (1.5 / loss).sqrt();
    // 1.054 (rtt / p)^(3/4) segments.
    let root = (rtt / loss).sqrt();
    let cubic = 1.054 * root * root.sqrt();
    segment as f64 * reno.max(cubic) / rtt
}

/// Where an end is in its list of writes.
#[derive(Default)]
struct Pen {
    place: usize,
    since: u64,
}

impl Pen {
    /// The pieces in which `bytes` are written: time since the first, bytes.
    fn pieces(&mut self, bytes: u64, writes: &[Write]) -> Vec<(Dur, u64)> {
        // A place between this unit and the one before is no pause inside it.
        if writes
            .get(self.place)
            .is_some_and(|w| self.since >= w.after)
        {
            self.place += 1;
            self.since = 0;
        }
        let (mut left, mut at, mut pieces) = (bytes, Dur::ZERO, Vec::new());
        while left > 0 {
            let write = writes.get(self.place);
            let piece = write.map_or(u64::MAX, |w| w.after.saturating_sub(self.since).max(1));
            let piece = piece.min(left);
            pieces.push((at, piece));
            left -= piece;
            self.since = self.since.saturating_add(piece);
            if left > 0 {
                self.place += 1;
                self.since = 0;
                at += write.map_or(Dur::ZERO, |w| w.gap);
            }
        }
        pieces
    }
}

struct Course<'m> {
    pace: Pace,
    pens: [Pen; 2],
    writes: &'m [Vec<Write>; 2],
    spans: Vec<Span>,
}

impl Course<'_> {
    /// `end` sends a unit from `from` on: when the last byte arrives.
    fn send(&mut self, end: usize, unit: usize, bytes: u64, from: Dur) -> Dur {
        if bytes == 0 {
            return from;
        }
        let pieces = self.pens[end].pieces(bytes, &self.writes[end]);
        let whole = Dur::from_secs_f64(self.pace.transfer(end, bytes));
        let last = pieces.last().map_or(Dur::ZERO, |p| p.0);
        if pieces.len() == 1 || whole > last {
            self.spans.push(Span {
                from,
                to: from + whole,
                end,
                unit,
                bytes,
            });
            return from + whole;
        }
        let mut arrived = from;
        for (i, &(at, piece)) in pieces.iter().enumerate() {
            let takes = Dur::from_secs_f64(self.pace.transfer(end, piece));
            let until = pieces.get(i + 1).map_or(Dur::MAX, |next| next.0 - at);
            arrived = from + at + takes.min(until);
            self.spans.push(Span {
                from: from + at,
                to: arrived,
                end,
                unit,
                bytes: piece,
            });
        }
        arrived
    }

    fn turns(&mut self, turns: &[Turn]) -> Dur {
        let mut at = Dur::from_secs_f64(self.pace.handshake);
        for (i, turn) in turns.iter().enumerate() {
            at = self.send(0, i, turn.request, at);
            if turn.response > 0 {
                at = self.send(1, i, turn.response, at + turn.server_think);
            }
            if i + 1 < turns.len() {
                at += turn.client_think;
            }
        }
        at
    }

    /// Both ends at once: each unit is sent when what it waits for has happened.
    fn both(&mut self, chains: [&[Unit]; 2]) -> Dur {
        let begun = Dur::from_secs_f64(self.pace.handshake);
        let half = Dur::from_secs_f64(self.pace.rtt) / 2;
        let mut next = [0usize; 2];
        // When the last unit was sent, and when each has arrived.
        let mut sent = [begun; 2];
        let mut arrived = [Vec::new(), Vec::new()];
        loop {
            let mut moved = false;
            for end in 0..2 {
                while let Some(unit) = chains[end].get(next[end]) {
                    let before = next[end].checked_sub(1).map_or(0, |i| chains[end][i].after);
                    let heard = match unit.after as usize {
                        after if unit.after > before => arrived[1 - end].get(after - 1).copied(),
                        _ => Some(Dur::ZERO),
                    };
                    let Some(heard) = heard else { break };
                    let from = sent[end].max(heard) + unit.pause;
                    let to = self.send(end, next[end], unit.bytes, from);
                    sent[end] = if unit.bytes > 0 { to - half } else { from };
                    arrived[end].push(to);
                    next[end] += 1;
                    moved = true;
                }
            }
            if !moved {
                let last = |a: &Vec<Dur>| a.iter().copied().max().unwrap_or(begun);
                return last(&arrived[0]).max(last(&arrived[1]));
            }
        }
    }
}

fn datagrams(d: &Datagrams) -> (Vec<Span>, Dur) {
    let mut at = Dur::ZERO;
    let mut next = [0; 2];
    let spans = d.iter().map(|(gap, client, bytes)| {
        at += gap;
        let end = usize::from(!client);
        let unit = next[end];
        next[end] += 1;
        Span {
            from: at,
            to: at,
            end,
            unit,
            bytes: u64::from(bytes),
        }
    });
    let spans: Vec<Span> = spans.collect();
    (spans, at)
}

impl Timeline {
    /// The course of `connection` of `session` over `network`.
    pub fn of(
        model: &Model,
        session: &Session,
        connection: &Connection,
        network: &Network,
    ) -> Timeline {
        let pace = Pace::new(model, session, connection, network);
        let rtt = Dur::from_secs_f64(pace.rtt);
        let mut course = Course {
            pace,
            pens: Default::default(),
            writes: &connection.writes,
            spans: Vec::new(),
        };
        let (spans, end) = match &connection.exchange {
            Exchange::Sequential(turns) => {
                let end = course.turns(turns);
                (course.spans, end)
            }
            Exchange::Concurrent { up, down } => {
                let end = course.both([up, down]);
                (course.spans, end)
            }
            Exchange::Attempt { retries, .. } => {
                let mut at = Dur::ZERO;
                let syns = std::iter::once(&Dur::ZERO).chain(retries).enumerate();
                let spans = syns.map(|(unit, &pause)| {
                    at += pause;
                    Span {
                        from: at,
                        to: at,
                        end: 0,
                        unit,
                        bytes: 0,
                    }
                });
                let spans: Vec<Span> = spans.collect();
                (spans, at + rtt + GIVEN_UP)
            }
            Exchange::Datagrams(d) => datagrams(d),
        };
        Timeline { spans, end, rtt }
    }
}

impl Timeline {
    /// When the session's next group stops waiting for this connection.
    pub fn awaited(&self, connection: &Connection) -> Dur {
        let Some(units) = connection.overlap else {
            return self.end;
        };
        let passed = |s: &&Span| s.unit < units[s.end] as usize;
        let passed = self.spans.iter().filter(passed).map(|s| s.to);
        passed.max().unwrap_or(Dur::ZERO)
    }
}

/// The course of a session: of each group when it begins and ends, since the session's start, and when
/// each of its connections starts and is over.
pub(crate) struct Groups {
    pub groups: Vec<GroupTimes>,
    /// When the last of its connections is over.
    pub end: Dur,
}

/// The course of a group.
pub(crate) struct GroupTimes {
    pub begins: Dur,
    /// When the pause before the next group begins; connections may go on.
    pub ends: Dur,
    /// Start and end of each connection.
    pub connections: Vec<(Dur, Dur)>,
}

impl Groups {
    /// The course of `session` over `network`.
    pub fn of(model: &Model, session: &Session, network: &Network) -> Groups {
        let mut at = Dur::ZERO;
        let mut last = Dur::ZERO;
        let groups = session.groups.iter().map(|group| {
            at += group.think;
            let begins = at;
            let mut start = begins;
            let connections: Vec<(Dur, Dur)> = group
                .connections
                .iter()
                .map(|c| {
                    start += c.gap;
                    let course = Timeline::of(model, session, c, network);
                    at = at.max(start + course.awaited(c));
                    let end = start + course.end;
                    last = last.max(end);
                    (start, end)
                })
                .collect();
            GroupTimes {
                begins,
                ends: at,
                connections,
            }
        });
        let groups: Vec<GroupTimes> = groups.collect();
        Groups {
            end: at.max(last),
            groups,
        }
    }
}
