//! The behaviour of one connection: an exchange of the model as a small state machine.

use std::sync::Arc;

use swell_base::{Dur, Rate, Time};
use swell_traffic::{
    Chain, Connection, ConnectionView, Cursor, CutPoint, Data, Exchange, Model, UNASKED, Wait,
};

use crate::End;

use heard::Heard;
use paced::PacedWrite;

mod heard;
mod paced;

/// Position of an exchange in the model: session, group, connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeIndex {
    pub session: u32,
    pub group: u32,
    pub connection: u32,
}

impl ExchangeIndex {
    pub fn connection(self, model: &Model) -> &Connection {
        let group = &model.sessions[self.session as usize].groups[self.group as usize];
        &group.connections[self.connection as usize]
    }

    /// The connection, or what is left of it if it is cut.
    pub fn part<'m>(self, model: &'m Model, cut: Option<&'m CutPoint>) -> ConnectionView<'m> {
        ConnectionView::of(self.connection(model), cut)
    }
}

/// What a script follows.
#[derive(Clone, Debug)]
pub(super) struct Source {
    model: Arc<Model>,
    place: ExchangeIndex,
    /// For a connection that was in progress when the run began: what is left of it.
    cut: Option<Arc<CutPoint>>,
}

impl Source {
    pub fn new(model: Arc<Model>, place: ExchangeIndex, cut: Option<Arc<CutPoint>>) -> Source {
        Source { model, place, cut }
    }

    fn part(&self) -> ConnectionView<'_> {
        self.place.part(&self.model, self.cut.as_deref())
    }

    fn data(&self) -> Data<'_> {
        self.part().data()
    }

    fn exchange(&self) -> &Exchange {
        &self.place.connection(&self.model).exchange
    }
}

/// An operation that the script requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Send(End, u64),
    Datagram(End, u32),
    /// Call [`Script::unsent`] with the bytes that this end has written and not sent yet.
    Unsent(End),
    /// Call [`Script::timer`] with this token after this long.
    Wait(Dur, u8),
    /// Call [`Script::timer`] for the next turn when its busy period has begun. The time is the pause in the trace.
    Await(Wait, Dur),
    Finished,
}

/// An exchange in progress.
#[derive(Debug)]
pub(super) struct Script {
    source: Source,
    /// The time of the event that the script reacts to.
    now: Time,
    /// Round-trip times from the link where pauses were observed to the client and to the server.
    rtt: [Dur; 2],
    /// Rates of the client's and the server's access paths in the sending direction.
    up: [Option<Rate>; 2],
    /// Next turn, unit or SYN; by end if both ends act independently.
    next: [u32; 2],
    /// The next datagram of a flow, and the position in the flow.
    packet: Option<(End, u32)>,
    cursor: Cursor,
    /// Bytes received so far and bytes that the script waits for, by receiving end.
    received: [u64; 2],
    awaited: [u64; 2],
    /// When data last arrived, by receiving end.
    arrived: [Time; 2],
    /// Writes in progress of the client and the server.
    writes: [PacedWrite; 2],
    /// Whether the pause before an end's next unit is running.
    pausing: [bool; 2],
    /// Units received from the other end, by receiving end.
    heard: [Heard; 2],
    state: State,
    /// Whether the server is in a long pause before data that nobody asked for.
    resting: bool,
    /// Datagrams sent, including SYNs.
    sent: u64,
    /// Condition for the session's next group: bytes at the client and at the server of a TCP connection, or
    /// datagrams sent. `None`: the exchange must be complete.
    awaited_by_next: Option<Awaited>,
    /// Whether the client sent the last datagram, and how late that was in nanoseconds.
    from_client: bool,
    late: i64,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    Bytes([u64; 2]),
    Sent(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Nothing is in progress, or a timer is running.
    Idle,
    /// The server is receiving the request.
    Request,
    /// The client is receiving the response.
    Response,
    /// The end waits until its data is acknowledged, then continues without input from the other end.
    Drain(End),
    /// Both ends act independently.
    Both,
}

const ANSWER: u8 = 0;
pub(super) const NEXT_TURN: u8 = 1;
const CHUNK_UP: u8 = 2;
const CHUNK_DOWN: u8 = 3;
const PACKET: u8 = 4;
const WRITE_UP: u8 = 5;
const WRITE_DOWN: u8 = 6;
const LEFT_UP: u8 = 7;
const LEFT_DOWN: u8 = 8;

/// Payload of the datagram that represents a SYN. With 28 bytes of headers it has the 60 bytes of a SYN with Linux's
/// options.
const SYN: u32 = 32;
/// Payload of the datagram that represents a bare RST of 40 bytes.
const RST: u32 = 12;

impl Script {
    pub fn new(source: Source, rtt: [Dur; 2], up: [Option<Rate>; 2]) -> Script {
        Script {
            awaited_by_next: awaited(source.part()),
            source,
            now: Time::ZERO,
            rtt,
            up,
            next: [0; 2],
            received: [0; 2],
            awaited: [0; 2],
            arrived: [Time::ZERO; 2],
            writes: Default::default(),
            pausing: [false; 2],
            heard: Default::default(),
            state: State::Idle,
            resting: false,
            packet: None,
            cursor: Cursor::default(),
            sent: 0,
            from_client: true,
            late: 0,
        }
    }

    /// End-to-end round-trip time without queueing.
    fn rtt(&self) -> Dur {
        self.rtt[0] + self.rtt[1]
    }

    /// Whether the exchange has progressed as far as it had when the session's next group began.
    pub fn passed(&self) -> bool {
        match self.awaited_by_next {
            None => false,
            Some(Awaited::Bytes(bytes)) => (0..2).all(|i| self.received[i] >= bytes[i]),
            Some(Awaited::Sent(datagrams)) => self.sent >= datagrams,
        }
    }

    /// The wait of its opening, if it takes part in the busy periods of its session.
    pub fn opening(&self) -> Option<Wait> {
        self.source.part().opening()
    }

    /// Whether the server is in a long pause before data that nobody asked for. Nobody waits for these.
    pub fn resting(&self) -> bool {
        self.resting
    }

    pub fn is_tcp(&self) -> bool {
        matches!(
            self.source.exchange(),
            Exchange::Sequential(_) | Exchange::Concurrent { .. }
        )
    }

    /// What follows happens at `now`.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// The connection is established.
    pub fn begin(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        match source.data() {
            Data::Sequential(_) => self.turn(steps),
            Data::Concurrent([up, down]) => {
                self.state = State::Both;
                self.awaited = [total(&down), total(&up)];
                self.next_unit(End::Client, Some(Dur::ZERO), steps);
                // Pauses count from the instant when the client's ACK passes the link. The client considers the
                // connection established half its round-trip time before that, and the server's data takes half of
                // the server's own to reach the link.
                if let Some(unit) = down.get(0).filter(|u| u.after == 0) {
                    let pause = unit.pause + self.rtt[0] / 2 - self.rtt[1] / 2;
                    steps.push(Step::Wait(pause, CHUNK_DOWN));
                    self.pausing[End::Server as usize] = true;
                }
                self.check_both(steps);
            }
            Data::Attempt { .. } => self.syn(steps),
            Data::Datagrams(_) => self.await_packet(steps),
        }
    }

    pub fn timer(&mut self, what: u8, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        match (source.data(), what) {
            (Data::Sequential(_) | Data::Concurrent(_), WRITE_UP) => {
                self.write_some(End::Client, steps);
            }
            (Data::Sequential(_) | Data::Concurrent(_), WRITE_DOWN) => {
                self.write_some(End::Server, steps);
            }
            (Data::Sequential(_) | Data::Concurrent(_), LEFT_UP) => {
                steps.push(Step::Unsent(End::Client));
            }
            (Data::Sequential(_) | Data::Concurrent(_), LEFT_DOWN) => {
                steps.push(Step::Unsent(End::Server));
            }
            (Data::Sequential(turns), ANSWER) => {
                self.resting = false;
                let Some(turn) = turns.get(self.next[0] as usize) else {
                    return;
                };
                let awaited = &mut self.awaited[End::Client as usize];
                *awaited = awaited.saturating_add(turn.response);
                self.state = State::Response;
                self.write(End::Server, turn.response, steps);
            }
            (Data::Sequential(_), _) => {
                self.next[0] += 1;
                self.turn(steps);
            }
            (Data::Concurrent([up, _]), CHUNK_UP) => self.send_unit(&up, End::Client, steps),
            (Data::Concurrent([_, down]), _) => self.send_unit(&down, End::Server, steps),
            (Data::Attempt { .. }, _) => self.syn(steps),
            (Data::Datagrams(_), _) => {
                if let Some((end, bytes)) = self.packet.take() {
                    steps.push(Step::Datagram(end, bytes));
                    self.sent += 1;
                }
                self.await_packet(steps);
            }
        }
    }

    pub fn received(&mut self, end: End, n: u64, steps: &mut Vec<Step>) {
        self.arrived[end] = self.now;
        self.received[end] += n;
        self.unblock(end.other(), steps);
        self.ask_again(end.other(), steps);
        if self.state == State::Both {
            self.next_unit(end, None, steps);
        }
        if self.received[end] < self.awaited[end] {
            return;
        }
        match (self.state, end) {
            (State::Request, End::Server) => self.answer(steps),
            (State::Response, End::Client) => self.after_response(steps),
            (State::Both, _) => self.check_both(steps),
            _ => {}
        }
    }

    pub fn drained(&mut self, end: End, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        // The pause was observed on the link and starts when the last data passes there, half a round-trip time
        // before `end` could see it arrive. If the acknowledgement was delayed, the pause has been running for that
        // time, too.
        if self.writes[end].left > 0 {
            return;
        }
        self.writes[end].leaving = Dur::ZERO;
        self.writes[end].asks = None;
        let waited = self.since_arrival(end);
        match (source.data(), self.state) {
            (Data::Sequential(turns), State::Drain(waiting)) if waiting == end => {
                self.state = State::Idle;
                let turn = turns.get(self.next[0] as usize).unwrap_or_default();
                match end {
                    // A request without a response: the client continues.
                    End::Client => self.pause_client(turn.client_think - waited, steps),
                    // The server continues without another request.
                    End::Server => {
                        self.next[0] += 1;
                        let pause = turns
                            .get(self.next[0] as usize)
                            .map_or(Dur::ZERO, |t| turn.client_think + t.server_think);
                        self.resting = pause > UNASKED;
                        steps.push(Step::Wait(pause - waited, ANSWER));
                    }
                }
            }
            (Data::Concurrent(_), _) => self.next_unit(end, Some(waited), steps),
            _ => {}
        }
    }

    pub fn datagram(&mut self, end: End, steps: &mut Vec<Step>) {
        if let Exchange::Attempt { refused: true, .. } = self.source.exchange()
            && end == End::Server
        {
            steps.push(Step::Datagram(End::Server, RST));
        }
    }

    /// Begins the next turn.
    fn turn(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Sequential(turns) = source.data() else {
            return;
        };
        self.state = State::Idle;
        let Some(turn) = turns.get(self.next[0] as usize) else {
            steps.push(Step::Finished);
            return;
        };
        if turn.request > 0 {
            let awaited = &mut self.awaited[End::Server as usize];
            *awaited = awaited.saturating_add(turn.request);
            self.state = State::Request;
            self.write(End::Client, turn.request, steps);
        } else {
            self.answer(steps);
        }
    }

    /// The request, if any, has arrived at the server.
    fn answer(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Sequential(turns) = source.data() else {
            return;
        };
        let Some(turn) = turns.get(self.next[0] as usize) else {
            return;
        };
        self.state = State::Idle;
        if turn.response > 0 {
            steps.push(Step::Wait(turn.server_think, ANSWER));
        } else if self.next[0] as usize + 1 == turns.len() {
            steps.push(Step::Finished);
        } else if turn.request > 0 {
            self.state = State::Drain(End::Client);
        } else {
            self.pause_client(turn.client_think, steps);
        }
    }

    /// The client pauses before the next turn, for itself or until nothing is under way on other connections.
    fn pause_client(&self, think: Dur, steps: &mut Vec<Step>) {
        steps.push(match self.source.part().wait(self.next[0] + 1) {
            Some(wait) => Step::Await(wait, think),
            None => Step::Wait(think, NEXT_TURN),
        });
    }

    /// The response has arrived at the client.
    fn after_response(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Sequential(turns) = source.data() else {
            return;
        };
        let here = self.next[0] as usize;
        self.state = State::Idle;
        match (turns.get(here), turns.get(here + 1)) {
            (_, None) => steps.push(Step::Finished),
            (Some(turn), Some(next)) if next.request > 0 || next.response == 0 => {
                self.pause_client(turn.client_think, steps);
            }
            // The server continues without another request. The ACK tells it that its data has arrived.
            _ => self.state = State::Drain(End::Server),
        }
    }

    /// Starts the pause before the next unit of `end`, if its condition holds. Either the units of the other end that
    /// it follows have arrived. Or it follows no new unit, and the end's previous unit was sent `sent` ago.
    fn next_unit(&mut self, end: End, sent: Option<Dur>, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Concurrent([up, down]) = source.data() else {
            return;
        };
        let (e, (own, other, what)) = match end {
            End::Client => (0, (up, down, CHUNK_UP)),
            End::Server => (1, (down, up, CHUNK_DOWN)),
        };
        let Some(unit) = own.get(self.next[e] as usize) else {
            return;
        };
        let before = self.next[e].checked_sub(1);
        let before = before
            .and_then(|i| own.get(i as usize))
            .map_or(0, |previous| previous.after);
        let heard = &mut self.heard[e];
        heard.count(&other, self.received[e], self.now, before);
        if self.pausing[e] || self.writes[e].left > 0 || heard.units < unit.after {
            return;
        }
        let pause = match sent {
            // That unit may have arrived before this end's previous unit was due.
            _ if unit.after > before => {
                unit.pause - self.now.since(heard.when(unit.after, self.now))
            }
            Some(sent) => unit.pause + self.writes[e].leaving - sent,
            None => return,
        };
        self.pausing[e] = true;
        steps.push(Step::Wait(pause, what));
    }

    fn send_unit(&mut self, chain: &Chain<'_>, end: End, steps: &mut Vec<Step>) {
        self.pausing[end] = false;
        if let Some(unit) = chain.get(self.next[end] as usize) {
            self.next[end] += 1;
            if unit.bytes > 0 {
                self.write(end, unit.bytes, steps);
            } else {
                self.next_unit(end, Some(Dur::ZERO), steps);
                // No data will arrive to trigger the other end, so check it here.
                self.next_unit(end.other(), None, steps);
            }
        }
    }

    fn check_both(&mut self, steps: &mut Vec<Step>) {
        if self.received[0] >= self.awaited[0] && self.received[1] >= self.awaited[1] {
            self.state = State::Idle;
            steps.push(Step::Finished);
        }
    }

    fn syn(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Attempt { retries, .. } = source.data() else {
            return;
        };
        self.sent += 1;
        steps.push(Step::Datagram(End::Client, SYN));
        match retries.get(self.next[0] as usize) {
            Some(pause) => {
                self.next[0] += 1;
                steps.push(Step::Wait(pause, PACKET));
            }
            // A refusal arrives, or is lost, within a round trip.
            None if self.state == State::Idle => {
                self.state = State::Both;
                steps.push(Step::Wait(self.rtt() + Dur::from_secs(1), PACKET));
            }
            None => {
                self.sent -= 1;
                steps.pop();
                steps.push(Step::Finished);
            }
        }
    }

    /// The pause after which a datagram must be sent to pass the link `gap` after the previous one. The ends may have
    /// different delays to the link. If the pause would be negative, later gaps make up for it.
    fn at_link(&mut self, gap: Dur, client: bool) -> Dur {
        let way = |clients: bool| signed(self.rtt[usize::from(!clients)]) / 2;
        let pause = signed(gap) + way(self.from_client) - way(client) - self.late;
        self.from_client = client;
        self.late = (-pause).max(0);
        Dur::from_nanos(pause.max(0).unsigned_abs())
    }

    /// Sets the timer for the next packet of a datagram flow.
    fn await_packet(&mut self, steps: &mut Vec<Step>) {
        let source = self.source.clone();
        let Data::Datagrams(d) = source.data() else {
            return;
        };
        let Some((gap, client, bytes)) = d.step(&mut self.cursor) else {
            steps.push(Step::Finished);
            return;
        };
        self.packet = Some((if client { End::Client } else { End::Server }, bytes));
        let pause = self.at_link(gap, client);
        // Simultaneous packets of a burst also go through the timer, one after another, so that a long flow never
        // recurses.
        steps.push(Step::Wait(pause.max(Dur::from_nanos(1)), PACKET));
    }
}

/// Nanoseconds, signed.
fn signed(d: Dur) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX / 4)
}

/// The condition for the session's next group.
fn awaited(part: ConnectionView<'_>) -> Option<Awaited> {
    let overlap = part.awaited().map(|o| o.map(|n| n as usize));
    match (part.data(), overlap) {
        (_, None) => None,
        (Data::Sequential(turns), Some([up, down])) => Some(Awaited::Bytes([
            saturating(turns.iter().take(down).map(|t| t.response)),
            saturating(turns.iter().take(up).map(|t| t.request)),
        ])),
        (Data::Concurrent([ups, downs]), Some([up, down])) => Some(Awaited::Bytes([
            saturating(downs.iter().take(down).map(|u| u.bytes)),
            saturating(ups.iter().take(up).map(|u| u.bytes)),
        ])),
        (Data::Attempt { .. } | Data::Datagrams(_), Some([up, down])) => {
            Some(Awaited::Sent((up + down) as u64))
        }
    }
}

/// Bytes of a chain. A model file may hold any sizes.
fn total(chain: &Chain<'_>) -> u64 {
    saturating(chain.iter().map(|u| u.bytes))
}

fn saturating(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_into_a_sum_saturate() {
        assert_eq!(saturating([3, 4].into_iter()), 7);
        assert_eq!(saturating([u64::MAX, 4].into_iter()), u64::MAX);
    }
}
