//! Estimates the times of a session's events, if only its own paths and a given network slow it down.
//!
//! A run begins in the middle of sessions, and a model's mean rate is needed before anything runs. Both
//! require the times and sizes of a replay over a network with known RTT and rate. This is a fluid
//! estimate: slow start from ten segments, then the minimum of four limits. These are the rates of the
//! access paths, the receive window, loss, and the [`Network`] in between. Expected retransmission
//! time-outs are added. Queueing delay is not included.

use swell_base::Dur;

use crate::{Connection, Datagrams, Exchange, Model, Session, Turn, Unit, Write};

pub(crate) use network::LEAST;
pub use network::Network;
use pace::Pace;
pub(crate) use pace::{ACK_DELAY, INITIAL_WINDOW, IPV6_MORE, ack_every, full, header, quick_acks};

mod network;
mod pace;

/// A sequence of data that one end sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// When the first byte leaves, since the connection's start.
    pub from: Dur,
    /// When the last byte arrives.
    pub to: Dur,
    /// When the last byte of the unit leaves its host; of all but the last span of a unit, when they begin.
    pub left: Dur,
    /// 0 = from the client, 1 = from the server.
    pub end: usize,
    /// Index of the turn, or of the unit of that end.
    pub unit: usize,
    /// Application bytes; scaled if only a part of a datagram flow was kept.
    pub bytes: u64,
}

/// Estimated course of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timeline {
    /// Ordered by start for each end. Runs of datagrams have none.
    pub spans: Vec<Span>,
    /// When the exchange is over, since the connection's start.
    pub end: Dur,
    /// End-to-end RTT.
    pub rtt: Dur,
    /// Seconds between full segments of the client, and of the server, at the narrowest link.
    pub gaps: [f64; 2],
    /// Bytes that the client, and the server, may have in flight before it must wait for ACKs.
    pub at_once: [u64; 2],
}

/// An attempt ends one RTT plus this after its last SYN.
const GIVEN_UP: Dur = Dur::from_secs(1);

/// Position of an end in its list of writes.
#[derive(Default)]
struct Pen {
    place: usize,
    since: u64,
}

impl Pen {
    /// The pieces in which `bytes` are written: time since the first, bytes.
    fn pieces(&mut self, bytes: u64, writes: &[Write]) -> Vec<(Dur, u64)> {
        // A write boundary between two units is no pause inside the unit.
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
    connection: &'m Connection,
    pens: [Pen; 2],
    /// Segments sent.
    segments: [f64; 2],
    /// Data in flight: arrival time and bytes.
    under_way: [Vec<(Dur, u64)>; 2],
    spans: Vec<Span>,
}

/// A unit that was sent.
#[derive(Clone, Copy)]
struct Sent {
    /// When its last write was made, and when its last byte arrives.
    written: Dur,
    arrived: Dur,
    /// When its last byte leaves. A pause of the same end that waits for no answer starts then.
    left: Dur,
    /// When it is acknowledged.
    acked: Dur,
}

impl Course<'_> {
    /// Sends a unit of `end` from time `from` on.
    fn send(&mut self, end: usize, unit: usize, bytes: u64, from: Dur) -> Sent {
        if bytes == 0 {
            return Sent {
                written: from,
                arrived: from,
                left: from,
                acked: from,
            };
        }
        let pieces = self.pens[end].pieces(bytes, &self.connection.writes[end]);
        let start = from.as_secs_f64();
        let is_one = pieces.len() == 1;
        // Only what is written in pieces may be sent in two ways.
        let one = match is_one {
            true => self.pace.transfer(end, bytes, start),
            false => self.pace.clone().transfer(end, bytes, start),
        };
        let whole = Dur::from_secs_f64(one);
        let (last, last_bytes) = pieces.last().map_or((Dur::ZERO, bytes), |p| *p);
        let written = from + last;
        self.under_way[end].retain(|u| u.0 > written);
        let mut arrived = from;
        if is_one || whole > last {
            if !is_one {
                self.pace.transfer(end, bytes, start);
            }
            arrived = from + whole;
            self.spans.push(Span {
                from,
                to: arrived,
                left: from,
                end,
                unit,
                bytes,
            });
            let share = 1.0 - last.as_secs_f64() / one.max(f64::MIN_POSITIVE);
            self.under_way[end].push((arrived, (bytes as f64 * share) as u64));
        } else {
            for (i, &(at, piece)) in pieces.iter().enumerate() {
                let takes = self.pace.transfer(end, piece, start + at.as_secs_f64());
                let until = pieces.get(i + 1).map_or(Dur::MAX, |next| next.0 - at);
                arrived = from + at + Dur::from_secs_f64(takes).min(until);
                self.spans.push(Span {
                    from: from + at,
                    to: arrived,
                    left: from + at,
                    end,
                    unit,
                    bytes: piece,
                });
                if arrived > written {
                    self.under_way[end].push((arrived, piece));
                }
            }
        }
        let full = full(self.connection, end);
        let segments = bytes.div_ceil(full) as f64;
        self.segments[end] += segments;
        let receiver = 1 - end;
        let odd = segments % ack_every(self.connection, receiver) != 0.0;
        let held = odd && self.segments[end] > quick_acks(self.connection, receiver);
        let under_way = self.under_way[end].iter().map(|u| u.1);
        let under_way = under_way.fold(0, u64::saturating_add);
        let at_once = last_bytes <= full || under_way <= self.pace.at_once[end];
        let back = self.pace.rtt / 2.0 + if held { ACK_DELAY } else { 0.0 };
        let left = match at_once {
            true => written + Dur::from_secs_f64(self.pace.leaves(end, last_bytes)),
            // ACKs let the last of it leave.
            false => written.max(arrived - Dur::from_secs_f64(self.pace.rtt / 2.0)),
        };
        if let Some(span) = self.spans.last_mut() {
            span.left = left;
        }
        Sent {
            written,
            arrived,
            left,
            acked: arrived + Dur::from_secs_f64(back),
        }
    }

    /// When an end that pauses after a unit continues when its data are acknowledged.
    fn acknowledged(&self, sent: Sent, pause: Dur) -> Dur {
        let own = Dur::from_secs_f64(self.pace.own_rtt / 2.0);
        sent.acked.max(sent.arrived + pause - own)
    }

    fn turns(&mut self, turns: &[Turn]) -> Dur {
        let mut at = Dur::from_secs_f64(self.pace.handshake);
        let mut end = at;
        // When the server continues without a request.
        let mut continues = None;
        for (i, turn) in turns.iter().enumerate() {
            let next = turns.get(i + 1);
            let mut request = None;
            if turn.request > 0 {
                let sent = self.send(0, i, turn.request, at);
                at = sent.arrived;
                request = Some(sent);
            }
            if turn.response > 0 {
                let from = continues.take().unwrap_or(at + turn.server_think);
                let sent = self.send(1, i, turn.response, from);
                at = sent.arrived;
                match next {
                    Some(n) if n.request == 0 && n.response > 0 => {
                        let pause = turn.client_think + n.server_think;
                        continues = Some(sent.left + pause);
                    }
                    Some(_) => at += turn.client_think,
                    None => {}
                }
            } else if let Some(n) = next {
                at = match request {
                    Some(sent) if n.request > 0 => sent.left + turn.client_think,
                    Some(sent) => self.acknowledged(sent, turn.client_think),
                    None => at + turn.client_think,
                };
            }
            end = end.max(at);
        }
        end
    }

    /// Both ends at once: each unit is sent when the event that it waits for has happened.
    fn both(&mut self, chains: [&[Unit]; 2]) -> Dur {
        let begun = Dur::from_secs_f64(self.pace.handshake);
        let none = Sent {
            written: begun,
            arrived: begun,
            left: begun,
            acked: begun,
        };
        let mut next = [0usize; 2];
        // The last unit of each end, and the arrival times of all units.
        let mut sent = [none; 2];
        let mut arrived = [Vec::new(), Vec::new()];
        loop {
            let mut moved = false;
            for end in 0..2 {
                while let Some(unit) = chains[end].get(next[end]) {
                    let before = next[end].checked_sub(1).map_or(0, |i| chains[end][i].after);
                    let from = match unit.after as usize {
                        after if unit.after > before => {
                            let heard = arrived[1 - end].get(after - 1).copied();
                            let Some(heard) = heard else { break };
                            sent[end].written.max(heard + unit.pause)
                        }
                        _ => sent[end].left + unit.pause,
                    };
                    let now = self.send(end, next[end], unit.bytes, from);
                    // Bytes arrive in order.
                    let last = arrived[end].last().copied().unwrap_or(begun);
                    arrived[end].push(now.arrived.max(last));
                    sent[end] = now;
                    next[end] += 1;
                    moved = true;
                }
            }
            if !moved {
                let last = |a: &Vec<Dur>| a.last().copied().unwrap_or(begun);
                return last(&arrived[0]).max(last(&arrived[1]));
            }
        }
    }
}

/// A span for each datagram that is listed. Runs have none: a run names billions of datagrams in a few bytes.
fn datagrams(d: &Datagrams) -> Vec<Span> {
    let mut at = Dur::ZERO;
    let mut next = [0; 2];
    let spans = d.packets.iter().map(|&(gap, client, bytes)| {
        at += gap;
        let end = usize::from(!client);
        let unit = next[end];
        next[end] += 1;
        Span {
            from: at,
            to: at,
            left: at,
            end,
            unit,
            bytes: u64::from(bytes),
        }
    });
    spans.collect()
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
        let gaps = [0, 1].map(|end| full(connection, end) as f64 / pace.path[end]);
        let at_once = pace.at_once;
        let mut course = Course {
            pace,
            connection,
            pens: Default::default(),
            segments: [0.0; 2],
            under_way: Default::default(),
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
                        left: at,
                        end: 0,
                        unit,
                        bytes: 0,
                    }
                });
                let spans: Vec<Span> = spans.collect();
                (spans, at + rtt + GIVEN_UP)
            }
            Exchange::Datagrams(d) => (datagrams(d), d.lasts()),
        };
        Timeline {
            spans,
            end,
            rtt,
            gaps,
            at_once,
        }
    }
}

impl Timeline {
    /// When the session's next group stops waiting for this connection.
    pub fn awaited(&self, connection: &Connection) -> Dur {
        let Some(units) = connection.awaited() else {
            return self.end;
        };
        if let Exchange::Datagrams(d) = &connection.exchange {
            return d.gone(units);
        }
        let passed = |s: &&Span| s.unit < units[s.end] as usize;
        let passed = self.spans.iter().filter(passed).map(|s| s.to);
        // At least the handshake.
        passed.max().unwrap_or(self.rtt)
    }
}

/// The course of a session: when each group begins and ends, and when each of its connections starts and
/// is over, since the session's start.
pub(crate) struct Groups {
    pub groups: Vec<GroupTimes>,
    /// When the last connection is over.
    pub end: Dur,
}

/// The course of a group.
pub(crate) struct GroupTimes {
    pub begins: Dur,
    /// When the pause before the next group begins; connections may continue.
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
