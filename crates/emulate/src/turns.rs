//! Requests inside a conversation, timed by the directions of its data alone.
//!
//! A request begins with the first data that the client sends after it has received everything that the
//! server had sent, and ends with the last data from the server before the client sends again. Nothing of
//! the contents is read, so encrypted traffic is timed like any other. Requests that overlap (pipelining,
//! HTTP/2, QUIC) merge into one, which says so where the overlap shows.
//!
//! This part is shared by TCP connections and datagram flows. It sees new data only: the caller
//! removes retransmissions, by sequence numbers.

use swell_base::{Dur, Time};

/// Lateness could have changed a request, or a packet of a stream, if it can have delayed it by more than this share of its
/// time. This is half of the verdict's margin. The other half is for packets that were read late, where the kernel does not
/// stamp them.
pub(crate) const CHANGED: f64 = 0.05;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is complete, as far as the packets show.
    Answered,
    /// The end of the run or the client cut it off: its time is a lower bound (right-censored).
    CutOff,
    /// The server reset the connection, or a later request was answered and this one never was.
    Failed,
}

/// What a request is, beside an ordinary one. Labels follow from sizes, positions and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Label {
    /// An ordinary request.
    #[default]
    Request,
    /// The first of a connection that has others: its time includes the opening of the connection, and
    /// where TLS is spoken it is TLS's handshake (RFC 8446 section 2).
    First,
    /// The client sent more before it had the whole answer: several requests in one.
    Merged,
    /// Small both ways and periodic: it keeps a connection alive.
    Heartbeat,
    /// Data that needs no answer and got none: an upload without a reply, a stream.
    OneWay,
    /// Data right before the client closed: no answer could have arrived in time.
    Farewell,
}

impl Label {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Label::Request => "request",
            Label::First => "first",
            Label::Merged => "merged",
            Label::Heartbeat => "heartbeat",
            Label::OneWay => "one-way",
            Label::Farewell => "farewell",
        }
    }

    /// Whether the client waited for an answer.
    pub fn waits(self) -> bool {
        !matches!(self, Label::OneWay | Label::Farewell)
    }
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The first byte of the request was sent; of a server that speaks first, the beginning of the
    /// conversation.
    pub start: Time,
    /// The first byte of the answer arrived.
    pub first_byte: Option<Time>,
    /// The last byte of the answer so far arrived, with all before it.
    pub last_byte: Option<Time>,
    /// Until when it was watched: its last byte where it is answered.
    pub until: Time,
    /// New bytes sent by the client, and received from the server.
    pub bytes: [u64; 2],
    /// Pieces of new data sent by the client: segments or datagrams.
    pub pieces: u32,
    /// Segments that the server sent again meanwhile.
    pub retransmissions: u32,
    /// By how much the emulator's lateness can have delayed its end, at most.
    pub late: Dur,
    /// How it ended.
    pub outcome: Outcome,
    /// What it is.
    pub label: Label,
}

impl Exchange {
    fn new(start: Time) -> Exchange {
        Exchange {
            start,
            first_byte: None,
            last_byte: None,
            until: start,
            bytes: [0; 2],
            pieces: 0,
            retransmissions: 0,
            late: Dur::ZERO,
            outcome: Outcome::CutOff,
            label: Label::Request,
        }
    }

    /// From its beginning to its last byte, or to when it was last seen unfinished.
    pub fn lasted(&self) -> Dur {
        self.until.since(self.start)
    }
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When.
    pub at: Time,
    /// Whether the answer under way, if there is one, is complete.
    pub whole: bool,
    /// Whether the server broke it off.
    pub broken: bool,
    /// No answer to anything first sent after this can have come before the client closed.
    pub too_late: Option<Time>,
}

/// What the client had received when it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// All that the server had sent, and the server all of the client's when it last sent data.
    All,
    /// Not all that the server had sent.
    NotAll,
    /// All, but the server's latest data left before the client's previous data reached it.
    Unconfirmed,
}

/// The requests of one conversation.
#[derive(Clone, Debug)]
pub struct Turns {
    opened: Time,
    current: Option<Exchange>,
    done: Vec<Exchange>,
    lateness: Chain,
    /// Unanswered streams may follow answered requests, as RTP follows its negotiation.
    streams: bool,
}

impl Turns {
    /// A conversation that begins at `opened`, over a network that takes at least `crossing` one way.
    pub fn new(opened: Time, crossing: Dur) -> Turns {
        Turns {
            opened,
            current: None,
            done: Vec::new(),
            lateness: Chain::new(crossing),
            streams: false,
        }
    }

    /// The same of a flow of datagrams, in which a stream may follow what was answered.
    pub fn of_datagrams(opened: Time, crossing: Dur) -> Turns {
        Turns {
            streams: true,
            ..Turns::new(opened, crossing)
        }
    }

    /// From now on a packet may cross the network in so short a time.
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.lateness.crosses_in(crossing);
    }

    /// Whether an answer is under way or has come.
    pub fn has_answer(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|e| e.first_byte.is_some())
    }

    /// The client sent new data.
    pub fn asked(&mut self, at: Time, bytes: u64, received: Received) {
        let answered = |e: &Exchange| e.first_byte.is_some();
        if received == Received::All && self.current.as_ref().is_some_and(answered) {
            self.end(Outcome::Answered);
        }
        let current = self.current.get_or_insert_with(|| {
            self.lateness.restart();
            Exchange::new(at)
        });
        if answered(current) || (received == Received::NotAll && current.pieces > 0) {
            current.label = Label::Merged;
        }
        current.bytes[0] += bytes;
        current.pieces = current.pieces.saturating_add(1);
    }

    /// New data from the server arrived, with all before it.
    pub fn answered(&mut self, at: Time, bytes: u64) {
        let opened = self.opened;
        let current = self.current.get_or_insert_with(|| Exchange::new(opened));
        current.first_byte.get_or_insert(at);
        current.last_byte = Some(at);
        current.bytes[1] += bytes;
        current.late = self.lateness.total();
    }

    /// The server sent a segment again.
    pub fn resent(&mut self) {
        if let Some(current) = &mut self.current {
            current.retransmissions += 1;
        }
    }

    /// A packet of the conversation that was due at `at` left `by` too late.
    pub fn left_late(&mut self, at: Time, by: Dur) {
        self.lateness.add(at, by);
        if let Some(current) = &mut self.current {
            // What delays the last byte is known after it has arrived.
            current.late = self.lateness.total();
        }
    }

    /// The conversation is over.
    pub fn finish(&mut self, end: End) {
        let Some(current) = &mut self.current else {
            return;
        };
        let outcome = match (current.first_byte, end.broken) {
            (Some(_), _) if end.whole => Outcome::Answered,
            (_, true) => Outcome::Failed,
            _ => Outcome::CutOff,
        };
        if current.first_byte.is_none() && end.too_late.is_some_and(|t| current.start >= t) {
            current.label = Label::Farewell;
        }
        current.until = end.at;
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        let Some(mut ended) = self.current.take() else {
            return;
        };
        ended.outcome = outcome;
        if let (Outcome::Answered, Some(last)) = (outcome, ended.last_byte) {
            ended.until = last;
        }
        if self.done.len() == 1 && self.done[0].label == Label::Request && ended.label.waits() {
            self.done[0].label = Label::First;
        }
        self.done.push(ended);
    }

    /// What has been seen, in order, and labelled.
    pub fn take(&mut self) -> Vec<Exchange> {
        let mut all = std::mem::take(&mut self.done);
        if self.streams || all.iter().all(|e| e.first_byte.is_none()) {
            // A client that waits for an answer does not go on sending.
            let stream = |e: &&mut Exchange| e.first_byte.is_none() && e.pieces > STREAM;
            for e in all.iter_mut().filter(stream) {
                e.label = Label::OneWay;
            }
        }
        label_heartbeats(&mut all);
        all
    }
}

/// More pieces than this without an answer are a stream, not a question.
pub(crate) const STREAM: u32 = 8;

/// A heartbeat has at most this much payload each way.
const TINY: u64 = 128;
/// And comes at most this often.
const PERIOD: Dur = Dur::from_secs(1);
/// So many in a row, at equal distances, make heartbeats.
const HEARTBEATS: usize = 3;

/// Labels exchanges that are tiny both ways, far apart, and come at equal distances: within a tenth of each
/// other's, as timers are.
fn label_heartbeats(all: &mut [Exchange]) {
    let tiny = |e: &Exchange| e.label.waits() && e.bytes.iter().all(|&b| 0 < b && b <= TINY);
    let mut from = 0;
    while from < all.len() {
        let mut to = from;
        let mut period: Option<Dur> = None;
        while to + 1 < all.len() && tiny(&all[to]) && tiny(&all[to + 1]) {
            let gap = all[to + 1].start.since(all[to].start);
            let equal = period.is_none_or(|p| gap.max(p) <= gap.min(p).scale(1.1));
            if gap < PERIOD || all[to].lasted() * 4 > gap || !equal {
                break;
            }
            period.get_or_insert(gap);
            to += 1;
        }
        if to + 1 >= from + HEARTBEATS {
            for e in &mut all[from..=to] {
                e.label = Label::Heartbeat;
            }
        }
        from = to.max(from + 1);
    }
}

/// A bound on how much late packets can delay the end of an exchange.
///
/// The end of an exchange depends on a chain of packets, each sent because of the one before. Two
/// packets of a chain leave at least one crossing of the network apart. So of the packets that are due within one
/// crossing at most one is in the chain. The bound takes the latest packet of each such span, and adds up the spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    crossing: Dur,
    before: Dur,
    worst: Dur,
    until: Time,
}

impl Chain {
    pub fn new(crossing: Dur) -> Chain {
        Chain {
            crossing,
            before: Dur::ZERO,
            worst: Dur::ZERO,
            until: Time::ZERO,
        }
    }

    pub fn crosses_in(&mut self, crossing: Dur) {
        self.crossing = crossing;
    }

    fn restart(&mut self) {
        *self = Chain::new(self.crossing);
    }

    pub fn add(&mut self, at: Time, by: Dur) {
        if at >= self.until {
            self.before += self.worst;
            self.worst = Dur::ZERO;
            self.until = at + self.crossing;
        }
        self.worst = self.worst.max(by);
    }

    pub fn total(&self) -> Dur {
        self.before + self.worst
    }
}

#[cfg(test)]
mod tests;
