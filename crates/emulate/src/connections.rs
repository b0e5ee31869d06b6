//! TCP connections of real programs, reconstructed from the packets that cross the world.

use std::collections::BTreeMap;
use std::net::IpAddr;

use swell_base::{Dur, Time};

use super::control::OpenFlow;
use super::ip::{Header, TCP};
use super::turns::{ConversationEnd, Exchange, Label, Received, TINY, Turns, silence};

/// Bits of the TCP flags (RFC 9293 section 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// At most so many pieces of data beyond a gap are remembered, more than a receive window of 64 MiB has segments.
const PIECES: usize = 1 << 16;

/// Connections beyond this number are counted but not followed.
const MOST: usize = 1 << 20;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was open when the run ended.
    Open,
    /// Both sides closed it.
    Closed,
    /// One side had closed it when the run ended; the other had not.
    Closing,
    /// The client (the side that opened it) reset it.
    ResetByClient,
    /// The server refused it or reset it.
    ResetByServer,
}

/// A connection, as its client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Address and port of the client, which opened it.
    pub client: (IpAddr, u16),
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// When the first SYN was sent.
    pub start: Time,
    /// When the client sent its last SYN before it was connected.
    pub last_try: Time,
    /// When the SYN-ACK arrived, if the client still waited for it.
    pub connected: Option<Time>,
    /// When the first byte from the server arrived, if the client still read.
    pub first_byte: Option<Time>,
    /// When the last byte from the server that the client still read arrived, with all bytes before it.
    pub last_byte: Option<Time>,
    /// When the last byte from the client arrived at the server, with all bytes before it. `None` if the server closed the
    /// connection before the client did, unless the client sent a stream: nothing shows that it was taken.
    pub delivered: Option<Time>,
    /// Payload bytes that arrived without gaps: at the server, and at the client before it closed, unless it read on.
    pub bytes: [u64; 2],
    /// Retransmitted segments with payload: by the client, by the server.
    pub retransmissions: [u32; 2],
    /// How it ended.
    pub ending: Ending,
    /// The end of the connection, or of the run if that came first. If the client's kernel rejected data that came after
    /// the client had closed, that close.
    pub until: Time,
    /// The requests inside it. The first includes the time of the handshake, but not the pause after it.
    pub exchanges: Vec<Exchange>,
    /// How often the server sent after a long silence, without being asked: small data, which is in no request, and
    /// more data, which was taken for the rest of an answer.
    pub unasked: [u32; 2],
}

impl Connection {
    /// Whether neither side had begun to close it when the run ended.
    pub fn is_open(&self) -> bool {
        self.ending == Ending::Open
    }

    /// How long its opening took: a round-trip time, unless packets were lost.
    fn opening(&self) -> Option<Dur> {
        self.connected.map(|at| at.since(self.start))
    }

    /// The round-trip time, from the last SYN before the SYN-ACK. The SYN-ACK may answer an earlier one, so the result
    /// is no less than twice the shortest time of a crossing.
    fn round_trip(&self, crossing: Dur) -> Option<Dur> {
        let opening = self.connected?.since(self.last_try);
        Some(opening.max(crossing * 2))
    }
}

/// Follows connections.
#[derive(Debug, Default)]
pub struct Connections {
    /// Open connections by client and server; index into `all`.
    live: BTreeMap<[(IpAddr, u16); 2], usize>,
    all: Vec<Connection>,
    inside: Vec<Inside>,
    /// Number of connections that were not followed.
    pub unfollowed: u64,
    /// The shortest time that a packet takes from host to host.
    crossing: Dur,
}

/// State of a connection while it is open.
#[derive(Clone, Debug)]
struct Inside {
    halves: [Half; 2],
    turns: Turns,
    /// Offset in the client's data that the server had acknowledged with its latest data segment to arrive.
    confirmed: u64,
    /// End offset of the server's latest data with PSH, which marks the end of a write.
    pushed: u64,
    /// When the SYN-ACK arrived at the client's kernel.
    accepted_at: Option<Time>,
    /// When the client closed or reset it, and whether the answer was complete then.
    closed: Option<Time>,
    whole: bool,
    /// What the client had when it closed, if data came after that and nothing shows yet that it is read.
    left: Option<Box<Left>>,
    /// The client closed only its own direction, and read on.
    reads_on: bool,
    /// The client sent a reset.
    reset: bool,
    /// The server closed it before the client's close had arrived.
    hung_up: bool,
    /// Data in the client's SYN (TCP Fast Open, RFC 7413 section 2), and how much of it the server accepted.
    in_syn: u64,
    accepted: u64,
}

/// What a client had when it closed.
#[derive(Clone, Debug)]
struct Left {
    turns: Turns,
    first_byte: Option<Time>,
    last_byte: Option<Time>,
    /// Offset after the last byte received.
    received: u64,
}

impl Inside {
    /// The client's first FIN or reset is sent at `at`.
    fn closes(&mut self, at: Time) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(at);
        let server = &self.halves[1];
        // The announcement of a close may be on its way.
        self.whole = server.sent - server.received.min(server.sent) <= TINY && self.pushed();
    }

    /// Whether the server's data so far ends with the end of a write. A sender whose window closes in the middle of an
    /// answer sets no PSH there.
    fn pushed(&self) -> bool {
        [0, self.halves[1].received].contains(&self.pushed)
    }
}

/// One direction of a connection. Offsets count from the byte after the SYN.
#[derive(Clone, Debug, Default)]
struct Half {
    /// Sequence number at offset 0.
    base: Option<u32>,
    /// Offset after the highest byte sent.
    sent: u64,
    /// Offset after the last byte received without a gap.
    received: u64,
    /// Data received beyond a gap: end offset by start offset. Adjacent pieces are one.
    beyond: BTreeMap<u64, u64>,
    /// Offset of the FIN.
    fin: Option<u64>,
    /// The FIN arrived.
    finished: bool,
}

impl Half {
    /// The offset of a sequence number, unwrapped near the received offset; `None` before the SYN was seen.
    fn offset(&self, seq: u32) -> Option<u64> {
        let ahead = seq.wrapping_sub(self.base?.wrapping_add(self.received as u32)) as i32;
        self.received.checked_add_signed(i64::from(ahead))
    }

    /// Records the arrival of bytes from offset `from` up to `to`.
    fn take(&mut self, from: u64, to: u64) {
        let full = self.beyond.len() >= PIECES;
        match self.beyond.range_mut(..=from).next_back() {
            Some((_, end)) if *end >= from => *end = to.max(*end),
            _ if full && from > self.received => {}
            _ => {
                self.beyond.insert(from, to);
            }
        }
        while let Some((&begin, &end)) = self.beyond.first_key_value()
            && begin <= self.received
        {
            self.beyond.pop_first();
            self.received = self.received.max(end);
        }
    }
}

struct Segment {
    seq: u32,
    ack: u32,
    flags: u8,
    len: u64,
}

impl Segment {
    fn of(header: &Header, packet: &[u8], size: usize) -> Option<Segment> {
        if header.protocol != TCP || header.ports == [0; 2] {
            return None;
        }
        let tcp: &[u8; 14] = packet.get(header.transport..)?.first_chunk()?;
        let data = header.transport + usize::from(tcp[12] >> 4) * 4;
        Some(Segment {
            seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            ack: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]),
            flags: tcp[13],
            len: size.saturating_sub(data) as u64,
        })
    }
}

impl Connections {
    /// For a network that no packet crosses in less than `crossing`.
    pub fn new(crossing: Dur) -> Connections {
        Connections {
            crossing,
            ..Connections::default()
        }
    }

    /// See [`Tracker::crosses_in`](super::Tracker).
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.crossing = crossing;
        for inside in &mut self.inside {
            inside.turns.crosses_in(crossing);
        }
    }

    /// Connections that are still open.
    pub(crate) fn open_flows(&self) -> impl Iterator<Item = OpenFlow> {
        self.live.values().map(|&index| {
            let c = &self.all[index];
            OpenFlow {
                protocol: "tcp",
                client: c.client,
                server: c.server,
                start: c.start,
                bytes: c.bytes,
                retransmissions: c.retransmissions,
            }
        })
    }

    /// A host sent a packet. `packet` begins with its headers; `size` is the whole length.
    pub(crate) fn sent(&mut self, at: Time, header: &Header, packet: &[u8], size: usize) {
        let Some(segment) = Segment::of(header, packet, size) else {
            return;
        };
        let (source, destination) = ends(header);
        if segment.flags & (SYN | ACK) == SYN {
            self.open(at, [source, destination], segment.seq);
        }
        let Some((index, way)) = self.find(source, destination) else {
            return;
        };
        let inside = &mut self.inside[index];
        if way == 0 {
            let connection = &mut self.all[index];
            if segment.flags & SYN != 0 {
                if inside.accepted_at.is_none() {
                    connection.last_try = at;
                }
            } else if segment.flags & RST != 0 {
                inside.closes(at);
                inside.reset = true;
            } else {
                // A client that had given up answers the SYN-ACK with a reset.
                if connection.connected.is_none() && inside.accepted_at.is_some() {
                    connection.connected = inside.accepted_at;
                    inside.turns.connected();
                }
                let acknowledged = inside.halves[1].offset(segment.ack);
                if let (Some(left), Some(ack)) = (&inside.left, acknowledged)
                    && segment.flags & ACK != 0
                    && ack > left.received
                {
                    // The kernel takes no more data once the program has closed both directions.
                    (inside.left, inside.reads_on) = (None, true);
                }
                if segment.flags & FIN != 0 {
                    inside.closes(at);
                }
            }
        }
        let [client, server] = &inside.halves;
        let received = match (
            server.sent == server.received,
            inside.confirmed >= client.sent,
        ) {
            (true, true) => Received::All,
            (true, false) => Received::Unconfirmed,
            (false, _) => Received::NotAll,
        };
        // All data so far has arrived, and the server had ended its last write.
        let idle = client.sent == client.received
            && server.sent == server.received
            && server.received == inside.pushed;
        let half = &mut inside.halves[way];
        if segment.flags & SYN != 0 {
            half.base = Some(segment.seq.wrapping_add(1));
            match way {
                0 => inside.in_syn = inside.in_syn.max(segment.len),
                _ => self.accept(index, segment.ack),
            }
            return;
        }
        let Some(from) = half.offset(segment.seq) else {
            return;
        };
        if segment.len > 0 {
            if from < half.sent {
                self.all[index].retransmissions[way] += 1;
                if way == 1 {
                    inside.turns.resent();
                }
            }
            let to = from + segment.len;
            let new = to.saturating_sub(half.sent);
            half.sent = half.sent.max(to);
            if way == 0 && new > 0 {
                inside.turns.asked(at, new, received);
            }
            if way == 1 && new > 0 && idle {
                let round_trip = self.all[index].round_trip(self.crossing);
                let silence = silence(round_trip.unwrap_or(Dur::ZERO));
                if self.all[index]
                    .last_byte
                    .is_some_and(|last| at.since(last) > silence)
                {
                    inside.turns.wakes(at, silence);
                }
            }
        }
        if segment.flags & FIN != 0 {
            half.fin = Some(from + segment.len);
            inside.hung_up |= way == 1 && !inside.halves[0].finished;
            self.all[index].ending = Ending::Closing;
        }
    }

    /// A packet reached a host. Returns the index of its connection, for [`left_late`](Self::left_late).
    pub(crate) fn received(&mut self, at: Time, header: &Header, packet: &[u8]) -> Option<usize> {
        let segment = Segment::of(header, packet, packet.len())?;
        let (source, destination) = ends(header);
        let (index, way) = self.find(source, destination)?;
        let connection = &mut self.all[index];
        if segment.flags & RST != 0 {
            connection.ending = match way {
                0 => Ending::ResetByClient,
                _ => Ending::ResetByServer,
            };
            self.forget(index, at);
            return Some(index);
        }
        if segment.flags & SYN != 0 {
            if way == 1 {
                self.inside[index].accepted_at.get_or_insert(at);
            }
            return Some(index);
        }
        let inside = &mut self.inside[index];
        if way == 1 && segment.len > 0 {
            if inside.closed.is_some() && !inside.reads_on && inside.left.is_none() {
                inside.left = Some(Box::new(Left {
                    turns: inside.turns.clone(),
                    first_byte: connection.first_byte,
                    last_byte: connection.last_byte,
                    received: inside.halves[1].received,
                }));
            }
            if let Some(ack) = inside.halves[0].offset(segment.ack) {
                inside.confirmed = inside.confirmed.max(ack);
            }
            if segment.flags & PSH != 0
                && let Some(from) = inside.halves[1].offset(segment.seq)
            {
                inside.pushed = inside.pushed.max(from + segment.len);
            }
        }
        let half = &mut inside.halves[way];
        let before = half.received;
        if segment.len > 0
            && let Some(from) = half.offset(segment.seq)
        {
            if way == 1 {
                connection.first_byte.get_or_insert(at);
            }
            half.take(from, from + segment.len);
            let new = half.received - before;
            connection.bytes[way] = half.received;
            if way == 0 && new > 0 {
                connection.delivered = Some(at);
            }
            if way == 1 && new > 0 {
                connection.last_byte = Some(at);
                inside.turns.answered(at, new);
            }
        }
        half.finished |= half.fin.is_some_and(|fin| half.received >= fin)
            && (segment.flags & FIN != 0 || half.finished);
        if inside.halves.iter().all(|h| h.finished) {
            self.all[index].ending = Ending::Closed;
            self.forget(index, at);
        }
        Some(index)
    }

    /// A packet of connection `index` was due at `at` and left later by `by`.
    pub(crate) fn left_late(&mut self, index: usize, at: Time, by: Dur) {
        self.inside[index].turns.left_late(at, by);
        // This packet may have ended the connection.
        if let Some(last) = self.all[index].exchanges.last_mut()
            && last.last_byte == Some(at)
        {
            last.late += by;
        }
    }

    /// The loop was stalled until `at`: packets that hosts sent before may have entered later by up to `by`. Or whatever
    /// happened then may have delayed any connection by as much.
    pub(crate) fn stalled(&mut self, at: Time, by: Dur) {
        for &index in self.live.values() {
            self.inside[index].turns.left_late(at, by);
        }
    }

    /// Every connection, in the order in which they were opened. Open ones are observed until `end`.
    pub fn finish(mut self, end: Time) -> Vec<Connection> {
        for index in std::mem::take(&mut self.live).into_values() {
            self.end(index, end);
        }
        self.all
    }

    fn open(&mut self, at: Time, ends: [(IpAddr, u16); 2], seq: u32) {
        if let Some(&index) = self.live.get(&ends)
            && self.inside[index].halves[0].base == Some(seq.wrapping_add(1))
        {
            // A retransmitted SYN.
            return;
        }
        if self.all.len() >= MOST {
            self.unfollowed += 1;
            if let Some(before) = self.live.remove(&ends) {
                self.end(before, at);
            }
            return;
        }
        if let Some(before) = self.live.insert(ends, self.all.len()) {
            self.end(before, at);
        }
        self.inside.push(Inside {
            halves: Default::default(),
            turns: Turns::new(at, self.crossing),
            confirmed: 0,
            pushed: 0,
            accepted_at: None,
            closed: None,
            whole: false,
            left: None,
            reads_on: false,
            reset: false,
            hung_up: false,
            in_syn: 0,
            accepted: 0,
        });
        self.all.push(Connection {
            client: ends[0],
            server: ends[1],
            start: at,
            last_try: at,
            connected: None,
            first_byte: None,
            last_byte: None,
            delivered: None,
            bytes: [0; 2],
            retransmissions: [0; 2],
            ending: Ending::Open,
            until: at,
            exchanges: Vec::new(),
            unasked: [0; 2],
        });
    }

    /// The server's SYN acknowledges `ack`. What it does not acknowledge of the data in the client's SYN is sent again
    /// after the opening (RFC 7413 section 4.2).
    fn accept(&mut self, index: usize, ack: u32) {
        let (connection, inside) = (&mut self.all[index], &mut self.inside[index]);
        let client = &mut inside.halves[0];
        let accepted = client.offset(ack).unwrap_or(0).min(inside.in_syn);
        if client.sent > 0 || accepted == 0 {
            return;
        }
        client.sent = accepted;
        client.take(0, accepted);
        connection.bytes[0] = accepted;
        inside.accepted = accepted;
        inside
            .turns
            .asked(connection.start, accepted, Received::All);
    }

    /// The connection of a packet, and its direction: 0 to the server, 1 to the client.
    fn find(&self, source: (IpAddr, u16), destination: (IpAddr, u16)) -> Option<(usize, usize)> {
        let to_server = self.live.get(&[source, destination]);
        let to_client = || self.live.get(&[destination, source]);
        to_server
            .map(|&i| (i, 0))
            .or_else(|| to_client().map(|&i| (i, 1)))
    }

    /// A connection ended at `at`.
    fn forget(&mut self, index: usize, at: Time) {
        let c = &self.all[index];
        self.live.remove(&[c.client, c.server]);
        self.end(index, at);
    }

    fn end(&mut self, index: usize, at: Time) {
        let (connection, inside) = (&mut self.all[index], &mut self.inside[index]);
        let server = &inside.halves[1];
        let whole = server.finished || (server.sent == server.received && inside.pushed());
        let round_trip = connection.round_trip(self.crossing);
        let end = ConversationEnd {
            at,
            whole,
            missing: server.sent.saturating_sub(server.received),
            broken: connection.ending == Ending::ResetByServer,
            closing: connection.ending == Ending::Closing,
            too_late: inside
                .closed
                .zip(round_trip)
                .map(|(closed, rtt)| closed - rtt),
        };
        connection.until = at;
        match (inside.left.take(), inside.closed) {
            (Some(left), Some(closed)) if inside.reset => {
                connection.until = closed;
                // The program did not wait for what came after it had closed.
                inside.turns = left.turns;
                (connection.first_byte, connection.last_byte) = (left.first_byte, left.last_byte);
                connection.bytes[1] = left.received;
                // A server whose window was full looks as if it had ended a write; then more of the answer follows.
                let rest = server.sent.saturating_sub(left.received);
                inside.turns.finish(ConversationEnd {
                    at: closed,
                    whole: inside.whole && rest <= TINY,
                    missing: 0,
                    broken: false,
                    // The server had not closed it, and an only request is no farewell.
                    closing: true,
                    ..end
                });
            }
            _ => inside.turns.finish(end),
        }
        connection.exchanges = inside.turns.take();
        let stream = |e: &Exchange| e.label == Label::OneWay;
        if inside.hung_up && !connection.exchanges.iter().any(stream) {
            connection.delivered = None;
        }
        connection.unasked = inside.turns.unasked_times();
        let opening = connection.opening();
        if let (Some(first), Some(opening)) = (connection.exchanges.first_mut(), opening)
            && first.bytes[0] > 0
            && inside.accepted == 0
        {
            first.start = first.start - opening;
        }
        inside.halves = Default::default();
    }
}

fn ends(header: &Header) -> ((IpAddr, u16), (IpAddr, u16)) {
    (
        (header.source, header.ports[0]),
        (header.destination, header.ports[1]),
    )
}

#[cfg(test)]
mod tests;
