//! Sizes of a model, and the load that it puts on a link.

use std::collections::BTreeMap;
use std::ops::Range;

use swell_base::{Dur, Time};

use crate::schedule::{Lasting, Schedule};
use crate::timeline::{Groups, IPV6_MORE, Network, Timeline, full, header};
use crate::view::{ConnectionView, Data};
use crate::{Connection, Exchange, Model, Session, Unit};

/// Headers of IPv4 and UDP, bytes.
const UDP_HEADERS: f64 = 28.0;
/// Bytes of SYN options other than timestamps, as Linux sends them: MSS, SACK permitted and window scale,
/// padded.
const SYN_OPTIONS: f64 = 8.0;
/// Minimum probability of arrival. With less, retransmissions would be unbounded.
const LEAST: f64 = 0.05;
/// Network-layer bytes of an unanswered SYN, and of a RST.
const ATTEMPT: [f64; 2] = [60.0, 40.0];

/// An initial window: ten segments (RFC 6928), bytes.
pub const SENT_AT_ONCE: u64 = 14_600;

/// Items of a run ([`Exchange::items`]): it takes twice the space of a packet.
pub const RUN_ITEMS: usize = 2;
/// Items of a session itself, and of its paths: its line in the file, and that of each path, take the space
/// of several turns.
const SESSION_ITEMS: usize = 2;

impl Exchange {
    /// Application bytes from the client and from the server.
    pub fn bytes(&self) -> [u64; 2] {
        match self {
            Exchange::Sequential(turns) => turns.iter().fold([0, 0], |[up, down], t| {
                [
                    up.saturating_add(t.request),
                    down.saturating_add(t.response),
                ]
            }),
            Exchange::Concurrent { up, down } => {
                let sum = |c: &[Unit]| c.iter().fold(0u64, |s, u| s.saturating_add(u.bytes));
                [sum(up), sum(down)]
            }
            Exchange::Attempt { .. } => [0, 0],
            Exchange::Datagrams(d) => d.bytes(),
        }
    }

    /// Number of turns, units, SYN retries or datagrams that the model keeps of it. Its size in memory and
    /// in the file is proportional to this.
    pub fn items(&self) -> usize {
        match self {
            Exchange::Sequential(turns) => turns.len(),
            Exchange::Concurrent { up, down } => up.len() + down.len(),
            Exchange::Attempt { retries, .. } => retries.len(),
            Exchange::Datagrams(d) => {
                d.packets.len() + RUN_ITEMS * d.runs.iter().map(Vec::len).sum::<usize>()
            }
        }
    }

    /// Units of the client and of the server: turns (requests and responses), units of chains, SYNs,
    /// datagrams.
    pub fn units(&self) -> [usize; 2] {
        match self {
            Exchange::Sequential(turns) => [turns.len(); 2],
            Exchange::Concurrent { up, down } => [up.len(), down.len()],
            Exchange::Attempt { retries, .. } => [retries.len() + 1, 0],
            Exchange::Datagrams(d) => d.count().map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        }
    }

    /// The pauses inside it: its minimum duration, over a network without delay.
    pub fn pauses(&self) -> Dur {
        match self {
            Exchange::Sequential(turns) => {
                turns.iter().map(|t| t.server_think + t.client_think).sum()
            }
            Exchange::Concurrent { up, down } => {
                let sum = |c: &[Unit]| c.iter().map(|u| u.pause).sum::<Dur>();
                sum(up).max(sum(down))
            }
            Exchange::Attempt { retries, .. } => retries.iter().copied().sum(),
            Exchange::Datagrams(d) => d.lasts(),
        }
    }
}

fn sum(sizes: impl Iterator<Item = u64>, of: Range<usize>) -> u64 {
    let some = sizes.take(of.end).skip(of.start);
    some.fold(0, u64::saturating_add)
}

/// Data of a server that nobody has asked for, after a longer pause than this, are not what a user waits for. They are
/// those of a server that gives up an idle connection, say.
pub const UNASKED: Dur = Dur::from_millis(500);

impl Connection {
    /// Number of its items ([`Exchange::items`], writes and waits), and one for itself.
    pub fn items(&self) -> usize {
        self.exchange.items()
            + self.writes.iter().map(Vec::len).sum::<usize>()
            + self.waits.len()
            + 1
    }

    /// What the session's next group waits for: units of the client and of the server, as in
    /// [`Connection::overlap`]; `None`: all of them. A user waits for what the server sent and for a long upload. Short
    /// data of the client that the server did not answer, as at the end of TLS, leave at once and make nobody wait.
    pub fn awaited(&self) -> Option<[u32; 2]> {
        ConnectionView::whole(self).awaited()
    }

    /// The pauses inside it that the session's next group waited for: all of them, unless the connection
    /// continued beside that group.
    pub fn awaited_pauses(&self) -> Dur {
        let Some(units) = self.awaited() else {
            return self.exchange.pauses();
        };
        let [up, down] = units.map(|n| n as usize);
        match &self.exchange {
            Exchange::Sequential(turns) => {
                let server = turns.iter().take(down).map(|t| t.server_think).sum::<Dur>();
                let asked = up.max(down).saturating_sub(1);
                let client = turns
                    .iter()
                    .take(asked)
                    .map(|t| t.client_think)
                    .sum::<Dur>();
                server + client
            }
            Exchange::Concurrent {
                up: ups,
                down: downs,
            } => {
                let sum = |c: &[Unit], n| c.iter().take(n).map(|u| u.pause).sum::<Dur>();
                sum(ups, up).max(sum(downs, down))
            }
            Exchange::Attempt { retries, .. } => {
                retries.iter().take(up.saturating_sub(1)).copied().sum()
            }
            Exchange::Datagrams(d) => d.gone(units),
        }
    }
}

impl ConnectionView<'_> {
    /// As [`Connection::awaited`].
    pub fn awaited(&self) -> Option<[u32; 2]> {
        let overlap = self.overlap();
        // The units of the client that the server had heard before it sent its last one, and the bytes of the rest.
        let [up, mut down] =
            overlap.map_or_else(|| self.units(), |units| units.map(|n| n as usize));
        let (heard, rest) = match self.data() {
            Data::Sequential(turns) => {
                let answers = turns.iter().take(down).enumerate();
                let answered = answers.filter(|(_, t)| t.response > 0).last();
                let heard = answered.map_or(0, |(i, _)| i + 1);
                down = heard;
                (heard, sum(turns.iter().map(|t| t.request), heard..up))
            }
            Data::Concurrent([ups, downs]) => {
                let last = down.min(downs.len()).checked_sub(1);
                let last = last.and_then(|i| downs.get(i));
                let heard = last.map_or(0, |unit| unit.after as usize);
                (heard, sum(ups.iter().map(|u| u.bytes), heard..up))
            }
            // An attempt is over with its last SYN.
            Data::Attempt { .. } => return Some([up as u32, 0]),
            Data::Datagrams(_) => return overlap,
        };
        match rest {
            1..=SENT_AT_ONCE => Some([heard.min(up) as u32, down as u32]),
            _ => overlap,
        }
    }
}

impl Session {
    /// Its connections, in order.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.groups.iter().flat_map(|g| &g.connections)
    }

    /// Application bytes from the client and from the servers.
    pub fn bytes(&self) -> [u64; 2] {
        self.connections().fold([0, 0], |[up, down], c| {
            let [u, d] = c.exchange.bytes();
            [up.saturating_add(u), down.saturating_add(d)]
        })
    }

    /// Number of its items ([`Connection::items`]), and two for the session and its paths.
    pub fn items(&self) -> usize {
        self.connections().map(Connection::items).sum::<usize>() + SESSION_ITEMS
    }
}

/// Network-layer bytes of a part of a connection, from the client and from the server, spread evenly over
/// an interval since the connection's start.
pub(crate) struct Piece {
    from: Dur,
    to: Dur,
    bytes: [f64; 2],
    /// Number of instants at which equal parts of the bytes pass, evenly spaced from `from` to `to`; 0: the
    /// bytes pass all the time.
    instants: u32,
}

/// The load of `connection` on the link between the access paths: segments with their headers, ACKs,
/// handshake and end. Packets lost before the link do not reach it. Packets lost behind it pass it again
/// when they are retransmitted.
pub(crate) fn on_the_link(
    model: &Model,
    session: &Session,
    connection: &Connection,
    network: &Network,
) -> Vec<Piece> {
    let course = Timeline::of(model, session, connection, network);
    let v6 = if connection.wire.ipv6 { IPV6_MORE } else { 0.0 };
    let paths = [
        model.client_paths.get(session.client as usize),
        model.server_paths.get(connection.server as usize),
    ];
    let lost = |end: usize| {
        [
            paths[end].map_or(0.0, |p| p.loss_up),
            paths[1 - end].map_or(0.0, |p| p.loss_down),
        ]
    };
    match &connection.exchange {
        Exchange::Datagrams(d) => {
            let mut pieces: Vec<Piece> = Vec::with_capacity(course.spans.len());
            let mut put = |end: usize, from: Dur, to: Dur, payload: u64, packets: u32| {
                let mut bytes = [0.0; 2];
                let size = payload as f64 + f64::from(packets) * (UDP_HEADERS + v6);
                bytes[end] = size * (1.0 - lost(end)[0]);
                pieces.push(Piece {
                    from,
                    to,
                    bytes,
                    instants: packets,
                });
            };
            for s in &course.spans {
                put(s.end, s.from, s.to, s.bytes, 1);
            }
            for (end, runs) in d.runs.iter().enumerate() {
                let mut ended = Dur::ZERO;
                for run in runs {
                    let from = ended + run.pause;
                    ended = from + run.span;
                    put(end, from, ended, run.bytes, run.packets);
                }
            }
            pieces
        }
        Exchange::Attempt { refused, .. } => {
            let answer = if *refused { ATTEMPT[1] + v6 } else { 0.0 };
            let attempts = course.spans.iter().map(|s| Piece {
                from: s.from,
                to: s.from,
                bytes: [ATTEMPT[0] + v6, answer],
                instants: 1,
            });
            attempts.collect()
        }
        Exchange::Sequential(_) | Exchange::Concurrent { .. } => {
            segments(connection, &course, [lost(0), lost(1)])
        }
    }
}

fn segments(c: &Connection, course: &Timeline, lost: [[f64; 2]; 2]) -> Vec<Piece> {
    let header = header(c);
    let syn = header + SYN_OPTIONS;
    let passes = lost.map(|[before, _]| 1.0 - before);
    let arrives = lost.map(|[before, behind]| ((1.0 - before) * (1.0 - behind)).max(LEAST));
    // A SYN is sent until its answer arrives, and each SYN that arrives is answered.
    let again = [1.0 / (arrives[0] * arrives[1]), 1.0 / arrives[1]];
    // Handshake: SYN and ACK, SYN/ACK. End: the client's FIN, the server's FIN, which acknowledges it, and
    // an ACK.
    let mut pieces = vec![
        Piece {
            from: Dur::ZERO,
            to: course.rtt,
            bytes: [
                (syn * again[0] + header) * passes[0],
                syn * again[1] * passes[1],
            ],
            instants: 0,
        },
        Piece {
            // At one instant, because a session ends with its connections and nothing may follow.
            from: course.end,
            to: course.end,
            bytes: [
                (again[0] + 1.0) * header * passes[0],
                again[1] * header * passes[1],
            ],
            instants: 0,
        },
    ];
    for s in &course.spans {
        let full = full(c, s.end).max(1);
        let segments = s.bytes.div_ceil(full) as f64;
        // Each segment is sent until it arrives; a share of those that pass the link is lost behind it.
        // The last segment is also retransmitted if its ACK is lost.
        let times = passes[s.end] / arrives[s.end];
        let last = (s.bytes as f64).min(full as f64) + header;
        let in_vain = 1.0 / arrives[1 - s.end] - 1.0;
        let all = s.bytes as f64 + segments * header;
        let mut bytes = [0.0; 2];
        bytes[s.end] = all * times + last * in_vain * passes[s.end];
        pieces.push(Piece {
            from: s.from,
            to: s.to,
            bytes,
            instants: 0,
        });
    }
    // An ACK reaches the link if its segment arrived and the ACK is not lost before the link.
    pieces.extend(acks::of(c, course).into_iter().map(|a| {
        let mut bytes = [0.0; 2];
        bytes[a.end] = a.count * header * (1.0 - lost[a.end][0]);
        Piece {
            from: a.from,
            to: a.to.min(course.end),
            bytes,
            instants: 0,
        }
    }));
    pieces
}

impl Piece {
    /// Its bytes between two times relative to its connection's start, which may be negative.
    fn between(&self, from: f64, to: f64) -> [f64; 2] {
        let (a, b) = (self.from.as_secs_f64(), self.to.as_secs_f64());
        let share = match b > a {
            true if self.instants > 1 => {
                let gaps = f64::from(self.instants) - 1.0;
                let before = |t: f64| ((t - a) / (b - a) * gaps).ceil().clamp(0.0, gaps + 1.0);
                ((before(to) - before(from)) / (gaps + 1.0)).max(0.0)
            }
            true => ((b.min(to) - a.max(from)) / (b - a)).max(0.0),
            false => f64::from(u8::from(from <= a && a < to)),
        };
        self.bytes.map(|bytes| bytes * share)
    }
}

impl Model {
    /// Mean rates on a link between the access paths, in bits per second of network-layer bytes, left to
    /// right and right to left. They are the bytes of all sessions, once each, divided by the duration of
    /// the recording. A slower network delays sessions but does not shorten them. So these are the offered
    /// rates wherever it does not slow lasting sessions ([`Schedule::rates`]). Zero if it has no duration ([`Model::has_duration`]).
    pub fn rates(&self) -> [f64; 2] {
        self.rates_of(|_, _| 1.0)
    }

    /// The same, where each session is played this share of its times.
    pub(crate) fn rates_of(&self, share: impl Fn(usize, &Session) -> f64) -> [f64; 2] {
        let mut sum = [0.0; 2];
        for (i, s) in self.sessions.iter().enumerate() {
            let often = s.weight * share(i, s);
            if often == 0.0 {
                continue;
            }
            let bytes = s.load(self);
            (0..2).for_each(|d| sum[d] += often * bytes[d]);
        }
        let seconds = self.duration.as_secs_f64();
        sum.map(|bytes| match self.has_duration() {
            true => bytes * 8.0 / seconds,
            false => 0.0,
        })
    }

    /// Whether it lasts longer than one tick of its file, a microsecond. That long is a model of a single packet, which
    /// has no rate.
    pub fn has_duration(&self) -> bool {
        self.duration > Dur::from_micros(1)
    }
}

impl Session {
    /// Network-layer bytes that it puts on the link, left to right and right to left.
    pub(crate) fn load(&self, model: &Model) -> [f64; 2] {
        let pieces = self.pieces(model, &Network::default());
        between(&pieces, f64::NEG_INFINITY, f64::INFINITY)
    }

    /// Its load on the link, by the estimated times over `network`. Each entry has a connection's start
    /// since the session's, in seconds, and a part of that connection, left to right and right to left.
    fn pieces(&self, model: &Model, network: &Network) -> Vec<(f64, Piece)> {
        let times = Groups::of(model, self, network);
        let mut pieces = Vec::new();
        for (group, at) in self.groups.iter().zip(&times.groups) {
            for (c, &(start, _)) in group.connections.iter().zip(&at.connections) {
                let start = start.as_secs_f64();
                for mut piece in on_the_link(model, self, c, network) {
                    if self.outside {
                        piece.bytes.reverse();
                    }
                    pieces.push((start, piece));
                }
            }
        }
        pieces
    }
}

/// Bytes of pieces between two times since their session's start, seconds.
fn between(pieces: &[(f64, Piece)], from: f64, to: f64) -> [f64; 2] {
    pieces.iter().fold([0.0; 2], |sum, (start, piece)| {
        let bytes = piece.between(from - start, to - start);
        [sum[0] + bytes[0], sum[1] + bytes[1]]
    })
}

impl Schedule {
    /// Network-layer bytes that this schedule of `model` puts on the link between two times of the run,
    /// left to right and right to left. Times are estimated over `network`.
    pub fn volume(&self, model: &Model, network: &Network, from: Dur, to: Dur) -> [f64; 2] {
        self.volumes(model, network, &[(from, to)])[0]
    }

    /// [`Schedule::volume`] of several intervals, for the price of one.
    pub fn volumes(
        &self,
        model: &Model,
        network: &Network,
        intervals: &[(Dur, Dur)],
    ) -> Vec<[f64; 2]> {
        let last = intervals.iter().map(|i| i.1).max().unwrap_or_default();
        let starts = self.begun(model, network, last);
        let starts = starts.iter().map(|&(s, at)| (s, at.as_secs_f64()));
        // A session may be entered twice: once for connections that continue beside later groups.
        let mut entered: Vec<(u32, u32, Dur)> = (self.entered.iter())
            .map(|e| (e.session, e.copy, e.age))
            .collect();
        entered.dedup();
        let entered = entered.iter().map(|e| (e.0, -e.2.as_secs_f64()));
        let mut known: Vec<Option<Vec<(f64, Piece)>>> = Vec::new();
        known.resize_with(model.sessions.len(), || None);
        let mut sums = vec![[0.0; 2]; intervals.len()];
        for (session, at) in starts.chain(entered) {
            let (Some(session), Some(pieces)) = (
                model.sessions.get(session as usize),
                known.get_mut(session as usize),
            ) else {
                continue;
            };
            let pieces = pieces.get_or_insert_with(|| session.pieces(model, network));
            for (sum, (from, to)) in sums.iter_mut().zip(intervals) {
                let bytes = between(pieces, from.as_secs_f64() - at, to.as_secs_f64() - at);
                (0..2).for_each(|d| sum[d] += bytes[d]);
            }
        }
        sums
    }

    /// Mean rates over all draws of `model` like this one, for each of its sessions once: those of [`Model::rates`], but
    /// lasting sessions are played less often where the assumed network stretches them, and more often where it is faster
    /// than the recorded one.
    pub fn rates(&self, model: &Model) -> [f64; 2] {
        model.rates_of(|i, _| match self.lasting.get(i) {
            Some(Some(Lasting { cycle, .. })) => {
                model.duration.as_secs_f64() / cycle.as_secs_f64().max(f64::MIN_POSITIVE)
            }
            _ => 1.0,
        })
    }

    /// Sessions that start before `end`, and when: lasting ones after the estimated end of their predecessor.
    fn begun(&self, model: &Model, network: &Network, end: Dur) -> Vec<(u32, Dur)> {
        let mut entered: BTreeMap<(u32, u32), Dur> = BTreeMap::new();
        for e in &self.entered {
            if let Some(Some(Lasting { rest, .. })) = self.lasting.get(e.session as usize)
                && let Some(session) = model.sessions.get(e.session as usize)
            {
                let course = Groups::of(model, session, network).end;
                let next = course.saturating_sub(e.age) + *rest;
                entered.insert((e.session, e.copy), next);
            }
        }
        let mut begun = Vec::with_capacity(self.starts.len());
        for s in &self.starts {
            let mut at = s.at.since(Time::ZERO);
            match self.lasting.get(s.session as usize) {
                Some(Some(Lasting { cycle, .. })) => {
                    let free = entered.get(&(s.session, s.copy));
                    at = at.max(free.copied().unwrap_or_default());
                    while at < end {
                        begun.push((s.session, at));
                        at += *cycle;
                    }
                }
                _ => begun.push((s.session, at)),
            }
        }
        begun
    }
}

mod acks;
mod in_step;
pub use in_step::InStep;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
