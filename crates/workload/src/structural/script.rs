//! What one connection does: the exchange of the model as a small state machine.

use std::sync::Arc;

use swell_base::{Dur, Rate, Time};
use swell_traffic::{Connection, Cursor, Exchange, Model, Unit};

use crate::End;

use paced::PacedWrite;

mod paced;

/// Where in the model an exchange is: session, group, connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub session: u32,
    pub group: u32,
    pub connection: u32,
}

/// What the script wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Send(End, u64),
    Datagram(End, u32),
    /// Call [`Script::timer`] with this token after this long.
    Wait(Dur, u8),
    Finished,
}

/// An exchange under way.
#[derive(Debug)]
pub(super) struct Script {
    model: Arc<Model>,
    place: Place,
    /// Round trips between the link where pauses were seen and the client, and the server.
    rtt: [Dur; 2],
    /// Capacities of the client's and the server's access paths away from them.
    up: [Option<Rate>; 2],
    /// Next turn, chunk or SYN, by end where both go on their own.
    next: [u32; 2],
    /// The next datagram of a flow, and how far the flow has been walked through.
    packet: Option<(End, u32)>,
    cursor: Cursor,
    /// Bytes received so far and bytes that the script waits for, by receiving end.
    received: [u64; 2],
    awaited: [u64; 2],
    /// When data last arrived, by receiving end.
    arrived: [Time; 2],
    /// What the client and the server are writing.
    writes: [PacedWrite; 2],
    /// The pause before an end's next unit runs.
    pausing: [bool; 2],
    /// Units of the other end that arrived completely, and their bytes, by receiving end.
    heard: [(u32, u64); 2],
    state: State,
    /// Datagrams sent, SYNs among them.
    sent: u64,
    /// What the session's next group waits for: bytes at the client and at the server of a TCP
    /// connection, or datagrams sent; none: until all is over.
    awaited_by_next: Option<Awaited>,
    /// Whether the last datagram was the client's, and nanoseconds it was late.
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
    /// Nothing under way, or a timer is.
    Idle,
    /// The server is to receive the request.
    Request,
    /// The client is to receive the response.
    Response,
    /// The end's data is to be acknowledged before it goes on by itself.
    Drain(End),
    /// Both ends go on their own.
    Both,
}

const ANSWER: u8 = 0;
const NEXT_TURN: u8 = 1;
const CHUNK_UP: u8 = 2;
const CHUNK_DOWN: u8 = 3;
const PACKET: u8 = 4;
const WRITE_UP: u8 = 5;
const WRITE_DOWN: u8 = 6;

/// Payload of the datagram that stands for a SYN: with 28 bytes of headers, the 60 bytes of a SYN
/// with the options that Linux sends.
const SYN: u32 = 32;
/// The same for a bare RST of 40 bytes.
const RST: u32 = 12;

impl Script {
    pub fn new(model: Arc<Model>, place: Place, rtt: [Dur; 2], up: [Option<Rate>; 2]) -> Script {
        let awaited_by_next = awaited(connection(&model, place));
        Script {
            awaited_by_next,
            model,
            place,
            rtt,
            up,
            next: [0; 2],
            received: [0; 2],
            awaited: [0; 2],
            arrived: [Time::ZERO; 2],
            writes: [PacedWrite::default(); 2],
            pausing: [false; 2],
            heard: [(0, 0); 2],
            state: State::Idle,
            packet: None,
            cursor: Cursor::default(),
            sent: 0,
            from_client: true,
            late: 0,
        }
    }

    /// From end to end, without queues.
    fn rtt(&self) -> Dur {
        self.rtt[0] + self.rtt[1]
    }

    /// Whether it has come as far as it had when the session's next group began.
    pub fn passed(&self) -> bool {
        match self.awaited_by_next {
            None => false,
            Some(Awaited::Bytes(bytes)) => (0..2).all(|i| self.received[i] >= bytes[i]),
            Some(Awaited::Sent(datagrams)) => self.sent >= datagrams,
        }
    }

    pub fn is_tcp(&self) -> bool {
        matches!(
            exchange(&self.model, self.place),
            Exchange::Sequential(_) | Exchange::Concurrent { .. }
        )
    }

    /// The connection is there.
    pub fn begin(&mut self, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        match exchange(&model, self.place) {
            Exchange::Sequential(_) => self.turn(steps),
            Exchange::Concurrent { up, down } => {
                self.state = State::Both;
                self.awaited = [total(down), total(up)];
                self.next_unit(End::Client, Some(Dur::ZERO), steps);
                // The client learns that the connection is there half its round trip before its ACK,
                // from which pauses count, is on the link; the server's data takes half of its own.
                if let Some(unit) = down.first().filter(|u| u.after == 0) {
                    let pause = unit.pause + self.rtt[0] / 2 - self.rtt[1] / 2;
                    steps.push(Step::Wait(pause, CHUNK_DOWN));
                    self.pausing[End::Server as usize] = true;
                }
                self.check_both(steps);
            }
            Exchange::Attempt { .. } => self.syn(steps),
            Exchange::Datagrams(_) => self.await_packet(steps),
        }
    }

    pub fn timer(&mut self, what: u8, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        match (exchange(&model, self.place), what) {
            (Exchange::Sequential(_) | Exchange::Concurrent { .. }, WRITE_UP) => {
                self.write_some(End::Client, steps);
            }
            (Exchange::Sequential(_) | Exchange::Concurrent { .. }, WRITE_DOWN) => {
                self.write_some(End::Server, steps);
            }
            (Exchange::Sequential(turns), ANSWER) => {
                let Some(turn) = turns.get(self.next[0] as usize) else {
                    return;
                };
                self.awaited[End::Client as usize] += turn.response;
                self.state = State::Response;
                self.write(End::Server, turn.response, steps);
            }
            (Exchange::Sequential(_), _) => {
                self.next[0] += 1;
                self.turn(steps);
            }
            (Exchange::Concurrent { up, .. }, CHUNK_UP) => self.send_unit(up, End::Client, steps),
            (Exchange::Concurrent { down, .. }, _) => self.send_unit(down, End::Server, steps),
            (Exchange::Attempt { .. }, _) => self.syn(steps),
            (Exchange::Datagrams(_), _) => {
                if let Some((end, bytes)) = self.packet.take() {
                    steps.push(Step::Datagram(end, bytes));
                    self.sent += 1;
                }
                self.await_packet(steps);
            }
        }
    }

    pub fn received(&mut self, end: End, n: u64, now: Time, steps: &mut Vec<Step>) {
        self.arrived[end as usize] = now;
        self.received[end as usize] += n;
        let other = match end {
            End::Client => End::Server,
            End::Server => End::Client,
        };
        self.unblock(other, steps);
        if self.state == State::Both {
            self.next_unit(end, None, steps);
        }
        if self.received[end as usize] < self.awaited[end as usize] {
            return;
        }
        match (self.state, end) {
            (State::Request, End::Server) => self.answer(steps),
            (State::Response, End::Client) => self.after_response(steps),
            (State::Both, _) => self.check_both(steps),
            _ => {}
        }
    }

    pub fn drained(&mut self, end: End, now: Time, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        // The pause runs, on the link where it was seen, from the passing of the last data: half
        // a round trip before `end` could see it arrive. An acknowledgement that was delayed took
        // longer, and the pause has run for that long, too.
        if self.writes[end as usize].left > 0 {
            return;
        }
        self.writes[end as usize].leaving = Dur::ZERO;
        let arrived = self.arrived[1 - end as usize];
        let waited = now.since(arrived) + self.rtt() / 2;
        match (exchange(&model, self.place), self.state) {
            (Exchange::Sequential(turns), State::Drain(waiting)) if waiting == end => {
                self.state = State::Idle;
                let turn = turns
                    .get(self.next[0] as usize)
                    .copied()
                    .unwrap_or_default();
                match end {
                    // A request without a response.
                    End::Client => {
                        steps.push(Step::Wait(turn.client_think - waited, NEXT_TURN));
                    }
                    // The response goes on without a request.
                    End::Server => {
                        self.next[0] += 1;
                        let pause = turns
                            .get(self.next[0] as usize)
                            .map_or(Dur::ZERO, |t| turn.client_think + t.server_think);
                        steps.push(Step::Wait(pause - waited, ANSWER));
                    }
                }
            }
            (Exchange::Concurrent { .. }, _) => self.next_unit(end, Some(waited), steps),
            _ => {}
        }
    }

    pub fn datagram(&mut self, end: End, steps: &mut Vec<Step>) {
        if let Exchange::Attempt { refused: true, .. } = exchange(&self.model, self.place)
            && end == End::Server
        {
            steps.push(Step::Datagram(End::Server, RST));
        }
    }

    /// Begins the turn `next`.
    fn turn(&mut self, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let Exchange::Sequential(turns) = exchange(&model, self.place) else {
            return;
        };
        self.state = State::Idle;
        let Some(turn) = turns.get(self.next[0] as usize) else {
            steps.push(Step::Finished);
            return;
        };
        if turn.request > 0 {
            self.awaited[End::Server as usize] += turn.request;
            self.state = State::Request;
            self.write(End::Client, turn.request, steps);
        } else {
            self.answer(steps);
        }
    }

    /// The request (if there was one) is at the server.
    fn answer(&mut self, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let Exchange::Sequential(turns) = exchange(&model, self.place) else {
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
            steps.push(Step::Wait(turn.client_think, NEXT_TURN));
        }
    }

    /// The response is at the client.
    fn after_response(&mut self, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let Exchange::Sequential(turns) = exchange(&model, self.place) else {
            return;
        };
        let here = self.next[0] as usize;
        self.state = State::Idle;
        match (turns.get(here), turns.get(here + 1)) {
            (_, None) => steps.push(Step::Finished),
            (Some(turn), Some(next)) if next.request > 0 || next.response == 0 => {
                steps.push(Step::Wait(turn.client_think, NEXT_TURN));
            }
            // The server goes on by itself; it learns that its data arrived from the ACK.
            _ => self.state = State::Drain(End::Server),
        }
    }

    /// Waits for the next unit of `end`'s chain, if the time has come: what it comes after has
    /// arrived, or, where that is nothing new, the unit before it was sent `sent` ago.
    fn next_unit(&mut self, end: End, sent: Option<Dur>, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let Exchange::Concurrent { up, down } = exchange(&model, self.place) else {
            return;
        };
        let (e, (own, other, what)) = match end {
            End::Client => (0, (up, down, CHUNK_UP)),
            End::Server => (1, (down, up, CHUNK_DOWN)),
        };
        if self.pausing[e] || self.writes[e].left > 0 {
            return;
        }
        let Some(unit) = own.get(self.next[e] as usize) else {
            return;
        };
        let after = unit.after as usize;
        // Count what has arrived: units of the other end, complete.
        while let Some(o) = other.get(self.heard[e].0 as usize)
            && self.heard[e].1.saturating_add(o.bytes) <= self.received[e]
        {
            self.heard[e].0 += 1;
            self.heard[e].1 += o.bytes;
        }
        if (self.heard[e].0 as usize) < after {
            return;
        }
        let before = self.next[e].checked_sub(1);
        let before = before.map_or(0, |i| own[i as usize].after);
        let pause = match sent {
            _ if unit.after > before => unit.pause,
            Some(sent) => unit.pause + self.writes[e].leaving - sent,
            None => return,
        };
        self.pausing[e] = true;
        steps.push(Step::Wait(pause, what));
    }

    fn send_unit(&mut self, chain: &[Unit], end: End, steps: &mut Vec<Step>) {
        self.pausing[end as usize] = false;
        if let Some(unit) = chain.get(self.next[end as usize] as usize) {
            self.next[end as usize] += 1;
            if unit.bytes > 0 {
                self.write(end, unit.bytes, steps);
            } else {
                self.next_unit(end, Some(Dur::ZERO), steps);
                // Nothing will arrive that tells the other end.
                let other = match end {
                    End::Client => End::Server,
                    End::Server => End::Client,
                };
                self.next_unit(other, None, steps);
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
        let model = Arc::clone(&self.model);
        let Exchange::Attempt { retries, .. } = exchange(&model, self.place) else {
            return;
        };
        self.sent += 1;
        steps.push(Step::Datagram(End::Client, SYN));
        match retries.get(self.next[0] as usize) {
            Some(&pause) => {
                self.next[0] += 1;
                steps.push(Step::Wait(pause, PACKET));
            }
            // A refusal is answered, or lost, within a round trip.
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

    /// The pause before a datagram for it to pass the link `gap` after the one before: the two may have
    /// different ways there. What cannot be kept is made up for later.
    fn at_link(&mut self, gap: Dur, client: bool) -> Dur {
        let way = |clients: bool| signed(self.rtt[usize::from(!clients)]) / 2;
        let pause = signed(gap) + way(self.from_client) - way(client) - self.late;
        self.from_client = client;
        self.late = (-pause).max(0);
        Dur::from_nanos(pause.max(0).unsigned_abs())
    }

    /// Waits for the next packet of a datagram flow.
    fn await_packet(&mut self, steps: &mut Vec<Step>) {
        let model = Arc::clone(&self.model);
        let Exchange::Datagrams(d) = exchange(&model, self.place) else {
            return;
        };
        let Some((gap, client, bytes)) = d.step(&mut self.cursor) else {
            steps.push(Step::Finished);
            return;
        };
        self.packet = Some((if client { End::Client } else { End::Server }, bytes));
        let pause = self.at_link(gap, client);
        // Even a burst of simultaneous packets goes through the timer, one after another, so that
        // a long flow never recurses.
        steps.push(Step::Wait(pause.max(Dur::from_nanos(1)), PACKET));
    }
}

/// Nanoseconds, signed.
fn signed(d: Dur) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX / 4)
}

/// What the session's next group waits for. An attempt is over for its user with its last SYN.
fn awaited(c: &Connection) -> Option<Awaited> {
    let sum = |units: &mut dyn Iterator<Item = u64>| units.fold(0u64, u64::saturating_add);
    let overlap = c.overlap.map(|o| o.map(|n| n as usize));
    match (&c.exchange, overlap) {
        (Exchange::Attempt { retries, .. }, None) => Some(Awaited::Sent(retries.len() as u64 + 1)),
        (_, None) => None,
        (Exchange::Sequential(turns), Some([up, down])) => Some(Awaited::Bytes([
            sum(&mut turns.iter().take(down).map(|t| t.response)),
            sum(&mut turns.iter().take(up).map(|t| t.request)),
        ])),
        (
            Exchange::Concurrent {
                up: ups,
                down: downs,
            },
            Some([up, down]),
        ) => Some(Awaited::Bytes([
            sum(&mut downs.iter().take(down).map(|u| u.bytes)),
            sum(&mut ups.iter().take(up).map(|u| u.bytes)),
        ])),
        (Exchange::Attempt { .. } | Exchange::Datagrams(_), Some([up, down])) => {
            Some(Awaited::Sent((up + down) as u64))
        }
    }
}

fn connection(model: &Model, place: Place) -> &Connection {
    &model.sessions[place.session as usize].groups[place.group as usize].connections
        [place.connection as usize]
}

fn exchange(model: &Model, place: Place) -> &Exchange {
    &connection(model, place).exchange
}

fn total(chain: &[Unit]) -> u64 {
    chain.iter().map(|u| u.bytes).sum()
}
