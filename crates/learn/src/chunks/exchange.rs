//! Converts chunks to the model's exchanges.

use swell_base::{Bytes, Dur, Rate};
use swell_traffic::{Exchange, Turn, UNASKED, Unit, Write};

use super::{Begins, Chunk, Chunks};

/// Shorter pauses between the handshake and the first request are caused by the host's scheduling.
const OPENING_PAUSE: Dur = Dur::from_millis(1);

/// How long an answer takes to pass the tap that the server or the client gives at once, microseconds: for the pauses of a
/// turn. 0 if unknown.
pub(crate) type Dues = [u32; 2];

/// Such a delay from nanoseconds.
pub(crate) fn micros(due: u64) -> u32 {
    u32::try_from(due / 1_000).unwrap_or(u32::MAX)
}

pub(crate) fn wait(micros: u32) -> Dur {
    Dur::from_micros(u64::from(micros))
}

/// When a turn with a request was under way, at the tap, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) turn: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Chunks {
    /// The exchange, and where writes begin inside the units of turns. Pauses are as the tap saw them;
    /// [`correct`] subtracts the path delays. `opened` is when the handshake was complete.
    pub(crate) fn exchange(&self, opened: u64) -> (Exchange, [Vec<Write>; 2]) {
        if self.concurrent {
            let [up, down] = [self.units(false), self.units(true)];
            let exchange = Exchange::Concurrent {
                up: chain(&up, &down, opened),
                down: chain(&down, &up, opened),
            };
            return (exchange, Default::default());
        }
        let turns = Exchange::Sequential(self.turns(opened).0);
        (turns, [self.writes(false), self.writes(true)])
    }

    /// The delays in the pauses of the turns, if any is known.
    pub(crate) fn dues(&self, opened: u64) -> Vec<Dues> {
        match self.concurrent || self.list.iter().all(|c| c.due == 0) {
            true => Vec::new(),
            false => self.turns(opened).1,
        }
    }

    /// The units of one direction of a concurrent exchange. Each write is a unit, because each may wait
    /// for different data.
    fn units(&self, down: bool) -> Vec<Chunk> {
        let mut units: Vec<Chunk> = Vec::new();
        for &c in self.list.iter().filter(|c| c.down == down) {
            match units.last_mut() {
                Some(unit) if c.begins == Begins::Nothing => {
                    unit.bytes = unit.bytes.saturating_add(c.bytes);
                    unit.last = c.last;
                }
                _ => units.push(c),
            }
        }
        units
    }

    /// When something was under way: from the first byte of each request to the last byte of its answer. The first
    /// begins with the connection, at `start`. Empty where both ends sent at once.
    ///
    /// The client learns of that later by the RTT, and later still if data wait in a queue. As all of a session are compared
    /// by the RTT, the rest counts as part of the answer. `rtt`: to the client, nanoseconds; 0 if unknown.
    pub(crate) fn spans(&self, start: u64, opened: u64, rtt: u64) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        if self.concurrent {
            return spans;
        }
        let mut turns = 0;
        let mut last = (opened, None);
        // Data that nobody asked for and nobody waits for.
        let mut unasked = false;
        for c in &self.list {
            let pause = c.first.saturating_sub(last.0);
            let continues = last.1 == Some(c.down) && c.begins != Begins::Unit;
            let answers = c.down && last.1 == Some(false);
            if !continues && !answers {
                let waited = last.1.is_none() && !c.down && pause >= OPENING_PAUSE.as_nanos();
                if waited {
                    turns += 1;
                }
                if turns > 0 && spans.is_empty() {
                    spans.push(Span {
                        turn: 0,
                        first: start,
                        last: opened,
                    });
                }
                unasked = c.down && last.1.is_some() && pause > UNASKED.as_nanos();
                if !c.down || turns == 0 {
                    spans.push(Span {
                        turn: turns,
                        first: if turns == 0 { start } else { c.first },
                        last: c.last,
                    });
                }
                turns += 1;
            }
            if let Some(span) = spans.last_mut().filter(|_| !unasked) {
                let queued = match c.down && rtt > 0 {
                    true => c.due.saturating_sub(rtt),
                    false => 0,
                };
                span.last = span.last.max(c.last + queued);
            }
            last = (c.last, Some(c.down));
        }
        spans
    }

    fn turns(&self, opened: u64) -> (Vec<Turn>, Vec<Dues>) {
        let mut turns: Vec<Turn> = Vec::new();
        let mut dues: Vec<Dues> = Vec::new();
        // End time and direction of the previous chunk.
        let mut last = (opened, None);
        let mut earlier = 0;
        for c in &self.list {
            let due = std::mem::replace(&mut earlier, micros(c.due));
            let pause = Dur::from_nanos(c.first.saturating_sub(last.0));
            match (c.down, last.1) {
                // More of the same unit.
                (down, Some(was_down)) if down == was_down && c.begins != Begins::Unit => {
                    if let Some(turn) = turns.last_mut() {
                        let bytes = if down {
                            &mut turn.response
                        } else {
                            &mut turn.request
                        };
                        *bytes = bytes.saturating_add(c.bytes);
                    }
                }
                // A response to the previous request.
                (true, Some(false)) => {
                    if let Some(turn) = turns.last_mut() {
                        turn.server_think = pause;
                        turn.response = c.bytes;
                    }
                    if let Some(own) = dues.last_mut() {
                        own[0] = due;
                    }
                }
                // The server sends another unit, or speaks first.
                (true, _) => turns.push(Turn {
                    server_think: pause,
                    response: c.bytes,
                    ..Turn::default()
                }),
                (false, previous) => {
                    if let Some(turn) = turns.last_mut() {
                        turn.client_think = pause;
                        if let Some(own) = dues.last_mut() {
                            own[1] = due;
                        }
                    } else if previous.is_none() && pause >= OPENING_PAUSE {
                        // The client connected, then waited before its first request.
                        turns.push(Turn {
                            client_think: pause,
                            ..Turn::default()
                        });
                    }
                    turns.push(Turn {
                        request: c.bytes,
                        ..Turn::default()
                    });
                }
            }
            last = (c.last, Some(c.down));
            dues.resize(turns.len(), [0; 2]);
        }
        (turns, dues)
    }

    /// Where writes of one direction begin inside the units of turns.
    fn writes(&self, down: bool) -> Vec<Write> {
        let mut places = Vec::new();
        let mut after = 0u64;
        let mut before: Option<&Chunk> = None;
        for c in &self.list {
            if c.down == down {
                if c.begins != Begins::Unit
                    && let Some(before) = before.filter(|b| b.down == down)
                {
                    places.push(Write {
                        after: std::mem::take(&mut after),
                        gap: Dur::from_nanos(c.first.saturating_sub(before.first)),
                    });
                }
                after = after.saturating_add(c.bytes);
            }
            before = Some(c);
        }
        places.retain(|w| w.after > 0);
        places
    }
}

/// Builds the chain of one end's units. Each records how many of the `other` end's units it waited for.
fn chain(own: &[Chunk], other: &[Chunk], opened: u64) -> Vec<Unit> {
    let mut arrived = 0;
    let mut arrived_bytes = 0u64;
    let mut last = opened;
    own.iter()
        .map(|c| {
            let before = arrived;
            while let Some(o) = other.get(arrived)
                && arrived_bytes.saturating_add(o.bytes) <= c.after
            {
                arrived_bytes = arrived_bytes.saturating_add(o.bytes);
                arrived += 1;
            }
            let since = if arrived > before {
                other[arrived - 1].last
            } else {
                last
            };
            last = c.last;
            Unit {
                pause: Dur::from_nanos(c.first.saturating_sub(since)),
                bytes: c.bytes,
                after: arrived as u32,
            }
        })
        .collect()
}

/// The path between the tap and a host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) rtt: Dur,
    /// Capacity from and to the host.
    pub(crate) up: Option<Rate>,
    pub(crate) down: Option<Rate>,
    /// Payload of full segments that the host sends and receives.
    pub(crate) sends: u64,
    pub(crate) gets: u64,
    /// Header bytes of each segment.
    pub(crate) headers: u64,
}

impl Line {
    /// Time between the last segment of unit `before` and the first of unit `after` at the tap, if the
    /// host answers at once.
    fn turnaround(&self, before: u64, after: u64) -> Dur {
        let time = |rate: Option<Rate>, payload: u64| {
            rate.map_or(Dur::ZERO, |r| r.transmit(Bytes(payload + self.headers)))
        };
        let tail = match before % self.gets.max(1) {
            0 => self.gets,
            part => part,
        };
        let head = after.min(self.sends);
        self.rtt + time(self.down, tail) + time(self.up, head)
    }
}

/// Subtracts the RTTs between the tap and the hosts from pauses seen at the tap.
///
/// The first segment of a response passes the tap one server-side RTT plus the server's think time after
/// the last segment of the request. A request follows the response after one client-side RTT plus the
/// user's think time. The transmission time of these segments on the host's access link is subtracted,
/// too. A pause inside one direction needs no correction, because both ends of it took the same path.
///
/// Both are longer while packets wait in queues. `dues` tells by how much, where the trace does.
pub(crate) fn correct(exchange: &mut Exchange, dues: &[Dues], client: &Line, server: &Line) {
    let turns = match exchange {
        Exchange::Sequential(turns) => turns,
        Exchange::Concurrent { up, down } => {
            let bytes = |units: &[Unit]| units.iter().map(|u| u.bytes).collect::<Vec<_>>();
            let [sent_up, sent_down] = [bytes(up), bytes(down)];
            for (units, other, line) in [(up, sent_down, client), (down, sent_up, server)] {
                let mut before = 0;
                for unit in units {
                    if unit.after > before {
                        let heard = other[unit.after as usize - 1];
                        unit.pause -= line.turnaround(heard, unit.bytes);
                    }
                    before = unit.after;
                }
            }
            return;
        }
        _ => return,
    };
    for i in 0..turns.len() {
        let next_request = turns.get(i + 1).map_or(0, |t| t.request);
        let t = &mut turns[i];
        let [to_server, to_client] = dues.get(i).copied().unwrap_or_default().map(wait);
        if t.response > 0 && (t.request > 0 || i == 0) {
            t.server_think -= server.turnaround(t.request, t.response).max(to_server);
        }
        if t.response > 0 && next_request > 0 {
            t.client_think -= client.turnaround(t.response, next_request).max(to_client);
        }
    }
}
