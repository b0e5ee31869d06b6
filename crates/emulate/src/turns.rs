//! Requests inside a conversation, inferred from the directions and times of its data alone.
//!
//! A request begins with the first data that the client sends after it has received everything that the server sent.
//! It ends with the last data from the server before the client sends again. Contents are not read, so encrypted
//! traffic is timed like any other. Overlapping requests (pipelining, HTTP/2, QUIC) merge into one, which is labelled
//! as merged if the overlap is visible.
//!
//! Data that the server sends after a long silence, without being asked, is not part of the answer if it is small:
//! servers announce that they close a connection, or ask whether the client is alive.
//!
//! TCP connections and datagram flows share this module. It sees new data only: the caller removes retransmissions by
//! their sequence numbers.

use swell_base::{Dur, Time};

/// Lateness could have changed a request, or a packet of a stream, if it can have delayed it by more than this share
/// of its duration. This is half of the verdict's margin. The other half is reserved for packets that were read late
/// without a kernel time stamp.
pub(crate) const CHANGED: f64 = 0.05;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is complete as far as the packets show.
    Answered,
    /// The end of the run or the client cut it off. Its duration is a lower bound (right-censored).
    CutOff,
    /// The server reset the connection, or a later request was answered and this one never was.
    Failed,
}

/// The kind of a request. Labels are derived from sizes, positions and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Label {
    /// An ordinary request.
    #[default]
    Request,
    /// The first request of a connection with several. Its duration includes the opening of the connection. With TLS
    /// it is the TLS handshake (RFC 8446 section 2).
    First,
    /// The client sent more before it had the whole answer, so several requests are counted as one.
    Merged,
    /// Small in both directions and periodic: it keeps a connection alive.
    Heartbeat,
    /// Data that needs no answer and got none, such as an upload without a reply or a stream.
    OneWay,
    /// Data sent right before the client closed, too late for an answer to arrive.
    Farewell,
}

impl Label {
    /// Whether the client waited for an answer.
    pub fn waits(self) -> bool {
        !matches!(self, Label::OneWay | Label::Farewell)
    }
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// When the first byte of the request was sent. If the server speaks first, the beginning of the conversation.
    pub start: Time,
    /// When the first byte of the answer arrived.
    pub first_byte: Option<Time>,
    /// When the last byte of the answer so far arrived, with all bytes before it.
    pub last_byte: Option<Time>,
    /// When observation ended: at the last byte if it is answered.
    pub until: Time,
    /// New bytes: sent by the client, received from the server.
    pub bytes: [u64; 2],
    /// Segments or datagrams with new data from the client.
    pub pieces: u32,
    /// Segments that the server retransmitted in the meantime.
    pub retransmissions: u32,
    /// Upper bound on how much the emulator's lateness can have delayed its end.
    pub late: Dur,
    /// How it ended.
    pub outcome: Outcome,
    /// Its kind.
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

    /// Duration from the beginning to the last byte, or to the end of observation if it is unfinished.
    pub fn lasted(&self) -> Dur {
        self.until.since(self.start)
    }
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationEnd {
    /// When.
    pub at: Time,
    /// Whether the current answer, if there is one, is complete.
    pub whole: bool,
    /// Bytes that the server sent and that have not arrived, with all bytes before them.
    pub missing: u64,
    /// Whether the server reset the conversation.
    pub broken: bool,
    /// Whether only one side had closed it.
    pub closing: bool,
    /// Data first sent after this instant could not have been answered before the client closed.
    pub too_late: Option<Time>,
}

/// How much the client had received when it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Everything that the server had sent; and the server had all of the client's data when it last sent data.
    All,
    /// Not everything that the server had sent.
    NotAll,
    /// Everything, but the server sent its latest data before the client's previous data reached it.
    Unconfirmed,
}

/// Data that the server sends after a silence, without being asked.
#[derive(Clone, Copy, Debug)]
struct Unasked {
    /// Bytes that have arrived.
    bytes: u64,
    /// The shortest silence that counts as one.
    silence: Dur,
}

/// The requests of one conversation.
#[derive(Clone, Debug)]
pub struct Turns {
    opened: Time,
    current: Option<Exchange>,
    done: Vec<Exchange>,
    lateness: Chain,
    /// How much late packets can have delayed the opening.
    opening: Dur,
    /// Unanswered streams may follow answered requests, as RTP follows its negotiation.
    streams: bool,
    /// When data of the current exchange first reached the server. Only datagram flows know.
    reached: Option<Time>,
    /// The current exchange before the latest data from the server: times of the first and the last byte, and bytes.
    before: Option<(Option<Time>, Option<Time>, u64)>,
    /// The current exchange may be no request: if it has no answer by this instant, it was none.
    tentative: Option<Time>,
    /// The current exchange began with what may be an acknowledgement.
    acknowledges: bool,
    /// The server has begun to send unasked.
    unasked: Option<Unasked>,
    /// How often the server sent unasked: left out of every exchange, taken for more of an answer.
    unasked_times: [u32; 2],
}

impl Turns {
    /// A conversation that begins at `opened`, over a network whose one-way delay is at least `crossing`.
    pub fn new(opened: Time, crossing: Dur) -> Turns {
        Turns {
            opened,
            current: None,
            done: Vec::new(),
            lateness: Chain::new(crossing),
            opening: Dur::ZERO,
            streams: false,
            reached: None,
            before: None,
            tentative: None,
            acknowledges: false,
            unasked: None,
            unasked_times: [0; 2],
        }
    }

    /// The same for a datagram flow, in which a stream may follow answered requests.
    pub fn of_datagrams(opened: Time, crossing: Dur) -> Turns {
        Turns {
            streams: true,
            ..Turns::new(opened, crossing)
        }
    }

    /// Changes the shortest time in which a packet crosses the network.
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.lateness.crosses_in(crossing);
    }

    /// The conversation is open. The first exchange includes the opening, so it includes its lateness.
    pub(crate) fn connected(&mut self) {
        self.opening = self.lateness.total();
    }

    /// Whether the current exchange has received any part of an answer.
    pub fn has_answer(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|e| e.first_byte.is_some())
    }

    /// How often the server sent after a silence, without being asked: small data, which is in no exchange, and more
    /// data, which extended an answer.
    pub fn unasked_times(&self) -> [u32; 2] {
        self.unasked_times
    }

    /// The client sent new data.
    pub fn asked(&mut self, at: Time, bytes: u64, received: Received) {
        let unasked = self.unasked.take();
        // What the client sent before was a reply to unasked data, if that is still without an answer.
        let replied = self.tentative.is_some() && !self.acknowledges && self.forget();
        // The answer before was complete when the server sent unasked, and when the client sent what was no request.
        let complete = replied || self.withdraw(at) || unasked.is_some();
        let received = if complete { Received::All } else { received };
        let unasked = unasked.filter(|u| u.bytes > 0);
        self.unasked_times[0] += u32::from(unasked.is_some());
        if received == Received::All && self.has_answer() {
            self.end(Outcome::Answered);
        }
        self.before = None;
        let begins = self.current.is_none();
        let current = self.current.get_or_insert_with(|| {
            self.lateness.restart();
            if self.done.is_empty() {
                self.lateness.before = self.opening;
            }
            Exchange::new(at)
        });
        if current.first_byte.is_some() || (received == Received::NotAll && current.pieces > 0) {
            current.label = Label::Merged;
        }
        current.bytes[0] += bytes;
        current.pieces = current.pieces.saturating_add(1);
        if begins {
            (self.reached, self.acknowledges) = (None, false);
            // It may only say that the client is alive. Then it is about as long as what asked for that.
            let reply = unasked.filter(|u| bytes <= TINY && bytes <= u.bytes + FRAMING);
            self.tentative = reply.map(|u| at + u.silence);
        }
    }

    /// The client sent a datagram that may be nothing but an acknowledgement. If an answer comes before the client sends
    /// again, the server may have gone on, or answered: both exchanges are one. Otherwise it was no request.
    pub fn asked_or_acknowledged(&mut self, at: Time, bytes: u64) {
        self.withdraw(at);
        let begins = self.current.is_none() || self.has_answer();
        self.asked(at, bytes, Received::All);
        if begins {
            (self.tentative, self.acknowledges) = (Some(at), true);
        }
    }

    /// A datagram that the client sent at `sent` reached the server.
    pub fn reached(&mut self, at: Time, sent: Time) {
        if self.current.as_ref().is_some_and(|e| sent >= e.start) {
            self.reached.get_or_insert(at);
        }
    }

    /// A datagram that the server sent at `sent` arrived. If no data of the current exchange had reached the server by
    /// then, it belongs to the exchange before, and both are one.
    pub fn answered_from(&mut self, at: Time, sent: Time, bytes: u64) {
        let before = self.acknowledges || self.reached.is_none_or(|reached| sent < reached);
        if !self.has_answer() && before {
            self.join();
        }
        self.answered(at, bytes);
    }

    /// The server sends at `at`, after a silence longer than `silence`, and all earlier data of both directions has
    /// arrived.
    pub fn wakes(&mut self, at: Time, silence: Dur) {
        // What follows may still be the slow answer to what seemed a reply.
        let replied = self.tentative.is_some_and(|until| at >= until);
        if self.has_answer() || replied {
            let before = self.unasked.replace(Unasked { bytes: 0, silence });
            self.unasked_times[0] += u32::from(before.is_some_and(|u| u.bytes > 0));
        }
    }

    /// New data from the server arrived, and all data before it.
    pub fn answered(&mut self, at: Time, bytes: u64) {
        let mut bytes = bytes;
        self.before = None;
        if let Some(unasked) = &mut self.unasked {
            unasked.bytes += bytes;
            if unasked.bytes <= TINY {
                return;
            }
            bytes = unasked.bytes;
            self.unasked = None;
            self.unasked_times[1] += u32::from(self.has_answer());
        }
        self.tentative = None;
        let opened = self.opened;
        let current = self.current.get_or_insert_with(|| Exchange::new(opened));
        self.before = Some((current.first_byte, current.last_byte, current.bytes[1]));
        current.first_byte.get_or_insert(at);
        current.last_byte = Some(at);
        current.bytes[1] += bytes;
        current.late = self.lateness.total();
    }

    /// By `at` it shows that the client had closed when the latest data from the server arrived, so it waited no longer.
    pub fn unread(&mut self, at: Time) {
        let (Some(current), Some(before)) = (&mut self.current, self.before.take()) else {
            return;
        };
        (current.first_byte, current.last_byte, current.bytes[1]) = before;
        current.until = at;
        let outcome = match current.first_byte {
            Some(_) => Outcome::Answered,
            None => Outcome::CutOff,
        };
        self.end(outcome);
    }

    /// The current exchange was part of the one before, if there is one.
    fn join(&mut self) {
        let Some(mut whole) = self.done.pop() else {
            return;
        };
        if let Some(part) = self.current.take() {
            whole.bytes[0] += part.bytes[0];
            whole.pieces = whole.pieces.saturating_add(part.pieces);
            whole.retransmissions += part.retransmissions;
        }
        whole.label = Label::Merged;
        self.lateness.before += whole.late;
        self.current = Some(whole);
        (self.tentative, self.acknowledges) = (None, false);
    }

    /// Forgets the current exchange if by now it has turned out to be no request. Then the one before is the current
    /// one again.
    fn withdraw(&mut self, now: Time) -> bool {
        self.tentative.is_some_and(|until| now >= until) && self.forget()
    }

    /// Forgets the current exchange unless it has an answer.
    fn forget(&mut self) -> bool {
        let none = !self.has_answer();
        if none {
            (self.tentative, self.acknowledges) = (None, false);
            self.current = self.done.pop();
            self.lateness.restart();
            self.lateness.before = self.current.as_ref().map_or(Dur::ZERO, |e| e.late);
        }
        none
    }

    /// The server retransmitted a segment.
    pub fn resent(&mut self) {
        if let Some(current) = &mut self.current {
            current.retransmissions += 1;
        }
    }

    /// A packet of the conversation was due at `at` and left later by `by`.
    pub fn left_late(&mut self, at: Time, by: Dur) {
        self.lateness.add(at, by);
        if let Some(current) = &mut self.current {
            // The lateness of the last byte is known only after its arrival has been recorded.
            current.late = self.lateness.total();
        }
    }

    /// The conversation ended.
    pub fn finish(&mut self, end: ConversationEnd) {
        let mut whole = end.whole;
        // The answer before what was no request is complete.
        whole |= self.withdraw(end.at);
        if let Some(unasked) = self.unasked.take() {
            self.unasked_times[0] += u32::from(unasked.bytes > 0);
            whole |= unasked.bytes + end.missing <= TINY;
        }
        let first = self.done.is_empty();
        let Some(current) = &mut self.current else {
            return;
        };
        let outcome = match (current.first_byte, end.broken) {
            (Some(_), _) if whole => Outcome::Answered,
            (_, true) => Outcome::Failed,
            _ => Outcome::CutOff,
        };
        // A client may close its side together with its only request, and then waits for the answer.
        let waits = first && (end.broken || end.closing);
        let too_late = end.too_late.is_some_and(|t| current.start >= t);
        if current.first_byte.is_none() && too_late && !waits {
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

    /// All exchanges in order, with their labels.
    pub fn take(&mut self) -> Vec<Exchange> {
        let mut all = std::mem::take(&mut self.done);
        if self.streams || all.iter().all(|e| e.first_byte.is_none()) {
            // A client that waits for an answer does not keep sending.
            let stream = |e: &&mut Exchange| e.first_byte.is_none() && e.pieces > STREAM;
            for e in all.iter_mut().filter(stream) {
                e.label = Label::OneWay;
            }
        }
        label_heartbeats(&mut all);
        all
    }
}

/// More pieces than this without an answer are a stream, not a request.
pub(crate) const STREAM: u32 = 8;

/// A heartbeat has at most this much payload each way, and so has what a server sends unasked.
pub(crate) const TINY: u64 = 128;
/// A client's reply is at most this much longer than what it replies to: a mask (RFC 6455 section 5.3), or padding.
const FRAMING: u64 = 16;
/// Heartbeats are at least this far apart.
const PERIOD: Dur = Dur::from_secs(1);

/// How long a server is silent before it sends unasked, over a network with this round-trip time. A slow answer takes
/// longer with the round-trip time, as long as the kernel probes and retransmits.
pub(crate) fn silence(round_trip: Dur) -> Dur {
    PERIOD.max(round_trip * 4)
}
/// At least this many in a row at equal intervals are heartbeats.
const HEARTBEATS: usize = 3;

/// Labels exchanges as heartbeats that are tiny in both directions, far apart, and periodic. Their intervals agree
/// within a tenth, as timers do. The end of the conversation may cut the last one off before its answer.
fn label_heartbeats(all: &mut [Exchange]) {
    let last = all.len().saturating_sub(1);
    let tiny = |e: &Exchange| e.label.waits() && e.bytes.iter().all(|&b| 0 < b && b <= TINY);
    let cut_off = |e: &Exchange| {
        e.outcome == Outcome::CutOff && e.label.waits() && e.bytes[1] == 0 && e.bytes[0] <= TINY
    };
    let mut from = 0;
    while from < all.len() {
        let mut to = from;
        let mut period: Option<Dur> = None;
        while to + 1 < all.len() && tiny(&all[to]) {
            let answered = to + 1 - from >= HEARTBEATS;
            let next = &all[to + 1];
            let beats = tiny(next) || (answered && to + 1 == last && cut_off(next));
            if !beats {
                break;
            }
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

/// An upper bound on how much late packets can delay the end of an exchange.
///
/// The end of an exchange depends on a chain of packets, each sent because of the one before. Two packets of a chain
/// leave at least one network crossing apart. So at most one of the packets that are due within one crossing belongs
/// to the chain. The bound takes the largest lateness in each such span and sums over the spans.
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
