//! Requests of real programs over datagrams: ICMP echoes, and UDP requests inferred from changes of direction.

use std::collections::BTreeMap;
use std::net::IpAddr;

use swell_base::{Dur, Time};

use super::control::OpenFlow;
use super::ip::{Header, ICMP, ICMP_V6, UDP, port_unreachable};
use super::turns::{CHANGED, ConversationEnd, Exchange, Label, Outcome, Received, STREAM, Turns};

/// Types of echo and reply (RFC 792, RFC 4443).
const ECHO: [u8; 2] = [8, 128];
const REPLY: [u8; 2] = [0, 129];

/// A QUIC client's first datagram has at least this much payload (RFC 9000 section 14.1).
const INITIAL: u64 = 1200;
/// A QUIC packet with nothing but an acknowledgement is at most this long: short header, 8-byte connection ID, one
/// ACK frame with a few ranges, and the authentication tag (RFC 9000 sections 17.3.1 and 19.3). Datagrams up to this
/// length neither begin a request nor end an answer.
const ACKNOWLEDGEMENT: u64 = 60;
/// A range of an ACK frame takes at most this many bytes: a gap and a length below 16 384 (RFC 9000 section 19.3.1).
const RANGE: u64 = 4;
/// An ACK frame has at most this many ranges. Receivers limit them (RFC 9000 section 13.2.3), common ones to 32 or 64.
const RANGES: u64 = 64;
/// An acknowledgement leaves at most this long after the packet that it answers: 25 ms (RFC 9000 section 18.2,
/// max_ack_delay) and the granularity of a timer (RFC 9002 section 6.1.2).
const ACK_DELAY: Dur = Dur::from_millis(26);

/// A flow that was silent for longer than this is not listed as open.
const SILENCE: Dur = Dur::from_millis(5000);

/// At most so many fragmented datagrams are remembered.
const FRAGMENTED: usize = 1 << 16;

/// Flows and echoes beyond this number are counted but not followed.
const MOST: usize = 1 << 20;

/// The two ends of a flow, the opener first. For echoes the two ports hold identifier and sequence number.
type Ends = (u8, IpAddr, u16, IpAddr, u16);

/// Follows datagram flows.
#[derive(Debug, Default)]
pub struct Datagrams {
    /// By protocol and ends; index into `all`.
    flows: BTreeMap<Ends, usize>,
    all: Vec<Flow>,
    /// Indices of the flows that a stall may delay.
    open: Vec<usize>,
    /// Number of flows that were not followed.
    pub unfollowed: u64,
    /// Datagrams of which a first fragment was sent.
    fragmented: BTreeMap<(IpAddr, IpAddr, u32), Parts>,
    crossing: Dur,
    /// Packets that enter before this time may have waited unread while the loop was stalled, without a kernel time
    /// stamp.
    catching_up: Time,
}

#[derive(Debug)]
struct Flow {
    client: IpAddr,
    server: (IpAddr, u16),
    kind: Kind,
    turns: Turns,
    bytes: [u64; 2],
    /// Datagrams that arrived, and how many of these were late.
    packets: [u64; 2],
    /// When it began, and when a datagram last arrived.
    start: Time,
    last: Time,
    /// Datagrams that the server sent since the client had all and sent data, those that arrived, and when the last did.
    answers: [u64; 2],
    heard: Option<Time>,
    /// When the server sent its last datagram, and whether that has arrived.
    served: Time,
    settled: bool,
    /// It is listed as open.
    open: bool,
    /// The client has closed its socket.
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All echoes with this destination and identifier, whatever their sequence number.
    Echo(IpAddr, u16),
    Udp,
    Quic,
}

/// The requests and the stream of a datagram flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The end that sent the first datagram.
    pub client: IpAddr,
    /// Payload bytes that arrived at the server and at the client; zero for echoes.
    pub bytes: [u64; 2],
    /// Datagrams that arrived as part of a stream, and how many of them were late by more than a twentieth of their
    /// transit time. Zero for requests and answers, which are judged as a whole.
    pub stream: [u64; 2],
    /// Whether it is QUIC, which sends again what is lost.
    pub quic: bool,
    /// Its requests. All echoes of one process to one address form one conversation.
    pub exchanges: Vec<Exchange>,
}

/// The fragments of a datagram.
#[derive(Clone, Copy, Debug)]
struct Parts {
    first: Datagram,
    /// How many were sent and how many arrived, and the payload bytes that arrived. The receiver has the datagram when
    /// all are there (RFC 791 section 3.2, RFC 8200 section 4.5).
    sent: u32,
    arrived: u32,
    bytes: u64,
}

/// The fields of a datagram, or of a fragment of one, that the emulator needs.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    ends: Ends,
    /// It is an echo reply.
    reply: bool,
    /// It is a fragment after the first one.
    rest: bool,
    /// Its payload begins as a QUIC client's first datagram does.
    initial: bool,
    len: u64,
}

/// Whether payload begins with a long header of QUIC (RFC 9000 section 17.2) of version 1, version 2 (RFC 9369), a draft,
/// mvfst, or one that is reserved to make servers negotiate (RFC 9000 section 15).
fn is_long_header(payload: &[u8]) -> bool {
    let Some(&[first, version @ ..]) = payload.first_chunk::<5>() else {
        return false;
    };
    let version = u32::from_be_bytes(version);
    let known = matches!(
        version,
        1 | 0x6b33_43cf | 0xff00_0001..=0xff00_00ff | 0xface_b000..=0xface_b0ff
    );
    first & 0xc0 == 0xc0 && (known || version & 0x0f0f_0f0f == 0x0a0a_0a0a)
}

impl Datagram {
    /// `packet` begins with the headers; `rest` is what follows it.
    fn of(header: &Header, packet: &[u8], rest: &[u8]) -> Option<Datagram> {
        let body = packet.get(header.transport..)?;
        let size = packet.len() + rest.len();
        let payload = size.saturating_sub(header.transport + 8) as u64;
        let (source, destination) = (header.source, header.destination);
        match header.protocol {
            UDP if header.ports != [0; 2] => Some(Datagram {
                ends: (UDP, source, header.ports[0], destination, header.ports[1]),
                reply: false,
                rest: false,
                initial: payload >= INITIAL
                    && is_long_header(match body.get(8..) {
                        Some(data @ [_, ..]) => data,
                        _ => rest,
                    }),
                len: payload,
            }),
            ICMP | ICMP_V6 => {
                let b: &[u8; 8] = body.first_chunk()?;
                let version = usize::from(header.protocol == ICMP_V6);
                let reply = b[0] == REPLY[version];
                if b[0] != ECHO[version] && !reply {
                    return None;
                }
                let id = u16::from_be_bytes([b[4], b[5]]);
                let sequence = u16::from_be_bytes([b[6], b[7]]);
                Some(Datagram {
                    ends: (header.protocol, source, id, destination, sequence),
                    reply,
                    rest: false,
                    initial: false,
                    len: payload,
                })
            }
            _ => None,
        }
    }

    /// The ends of the flow that this datagram would be an answer in.
    fn back(&self) -> Ends {
        let (protocol, source, from, destination, to) = self.ends;
        match protocol {
            UDP => (protocol, destination, to, source, from),
            // Identifier and sequence number are the same in both directions.
            _ => (protocol, destination, from, source, to),
        }
    }
}

impl Datagrams {
    /// For a network that no packet crosses in less than `crossing`.
    pub fn new(crossing: Dur) -> Datagrams {
        Datagrams {
            crossing,
            ..Datagrams::default()
        }
    }

    /// See [`Tracker::crosses_in`](super::Tracker).
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.crossing = crossing;
        for flow in &mut self.all {
            flow.turns.crosses_in(crossing);
        }
    }

    /// UDP flows in which a datagram arrived shortly before `now`.
    pub(crate) fn open_flows(&self, now: Time) -> impl Iterator<Item = OpenFlow> {
        let flows = self
            .flows
            .iter()
            .map(|(ends, &index)| (ends, &self.all[index]));
        let lately = flows.filter(move |(_, f)| now.since(f.last) < SILENCE);
        let ours = lately.filter(|(_, f)| !matches!(f.kind, Kind::Echo(..)));
        ours.map(|(&(_, client, from, server, to), flow)| OpenFlow {
            protocol: "udp",
            client: (client, from),
            server: (server, to),
            start: flow.start,
            bytes: flow.bytes,
            retransmissions: [0; 2],
        })
    }

    /// The datagram of a packet. A fragment after the first one has the ends of the first, which hosts send before.
    fn datagram(&self, header: &Header, packet: &[u8], rest: &[u8]) -> Option<Datagram> {
        match header.fragment.filter(|f| !f.first) {
            None => Datagram::of(header, packet, rest),
            Some(f) => {
                let whole = (header.source, header.destination, f.id);
                Some(Datagram {
                    rest: true,
                    len: (packet.len() + rest.len()).saturating_sub(header.transport) as u64,
                    ..self.fragmented.get(&whole)?.first
                })
            }
        }
    }

    /// A host sent a packet. `packet` begins with its headers; `rest` is what follows it.
    pub(crate) fn sent(&mut self, at: Time, header: &Header, packet: &[u8], rest: &[u8]) {
        if let Some((theirs, len)) = port_unreachable(header, packet) {
            self.unread(at, &theirs, len);
            return;
        }
        let Some(datagram) = self.datagram(header, packet, rest) else {
            return;
        };
        if let Some(f) = header.fragment {
            let whole = (header.source, header.destination, f.id);
            if f.first {
                if self.fragmented.len() >= FRAGMENTED {
                    self.fragmented.clear();
                }
                let parts = Parts {
                    first: datagram,
                    sent: 0,
                    arrived: 0,
                    bytes: 0,
                };
                self.fragmented.insert(whole, parts);
            }
            if let Some(parts) = self.fragmented.get_mut(&whole) {
                parts.sent += 1;
            }
        }
        if let Some(&index) = self.flows.get(&datagram.back()) {
            let flow = &mut self.all[index];
            flow.packets[1] += u64::from(at < self.catching_up);
            flow.answers[0] += 1;
            (flow.served, flow.settled) = (at, false);
            return;
        }
        if datagram.reply {
            return;
        }
        let echo = datagram.ends.0 != UDP;
        if let Some(&index) = self.flows.get(&datagram.ends)
            && (!echo || datagram.rest)
        {
            self.reopen(index);
            let flow = &mut self.all[index];
            flow.closed = false;
            flow.packets[1] += u64::from(at < self.catching_up);
            // Without sequence numbers, nothing shows whether more data is on its way. What arrives will show it.
            if flow.may_acknowledge(at, datagram.len) {
                flow.turns.asked_or_acknowledged(at, datagram.len);
            } else if flow.counts(datagram.len) {
                flow.turns.asked(at, datagram.len, Received::All);
                // What is acknowledged with it need not be acknowledged again (RFC 9000 section 13.2.4).
                if flow.settled {
                    flow.answers = [0; 2];
                }
            }
            return;
        }
        if datagram.rest {
            return;
        }
        if self.all.len() >= MOST {
            self.unfollowed += 1;
            return;
        }
        // An echo that reuses a sequence number starts a new request.
        self.flows.insert(datagram.ends, self.all.len());
        self.open.push(self.all.len());
        let (_, client, id, server, port) = datagram.ends;
        let mut turns = Turns::of_datagrams(at, self.crossing);
        turns.asked(at, datagram.len, Received::All);
        self.all.push(Flow {
            client,
            server: (server, port),
            kind: match echo {
                true => Kind::Echo(server, id),
                false if datagram.initial => Kind::Quic,
                false => Kind::Udp,
            },
            turns,
            bytes: [0; 2],
            packets: [0; 2],
            start: at,
            last: at,
            answers: [0; 2],
            heard: None,
            served: at,
            settled: true,
            open: true,
            closed: false,
        });
    }

    /// A host sent at `at` that no socket was there for a datagram, with this header and this payload length. If it is
    /// an answer, the client had closed its socket, and did not wait for it.
    fn unread(&mut self, at: Time, theirs: &Header, len: u64) {
        let [from, to] = theirs.ports;
        let ends = (UDP, theirs.destination, to, theirs.source, from);
        if let Some(&index) = self.flows.get(&ends) {
            let flow = &mut self.all[index];
            if !flow.closed && flow.counts(len) {
                flow.turns.unread(at);
                flow.closed = true;
            }
        }
    }

    /// Lists a flow as open if it was not.
    fn reopen(&mut self, index: usize) {
        if !std::mem::replace(&mut self.all[index].open, true) {
            self.open.push(index);
        }
    }

    /// A packet that entered at `entered` reached a host. Returns the index of its flow, for
    /// [`left_late`](Self::left_late).
    pub(crate) fn received(
        &mut self,
        at: Time,
        entered: Time,
        header: &Header,
        packet: &[u8],
    ) -> Option<usize> {
        let datagram = self.datagram(header, packet, &[])?;
        let whole = self.whole(header, datagram.len);
        if !datagram.reply
            && let Some(&index) = self.flows.get(&datagram.ends)
        {
            let flow = &mut self.all[index];
            flow.bytes[0] += datagram.len;
            flow.last = at;
            if whole.is_some() {
                flow.turns.reached(at, entered);
            }
            return Some(index);
        }
        let index = *self.flows.get(&datagram.back())?;
        self.reopen(index);
        let flow = &mut self.all[index];
        flow.bytes[1] += datagram.len;
        flow.last = at;
        flow.answers[1] += 1;
        flow.settled |= entered >= flow.served;
        flow.heard = Some(at);
        if let Some(len) = whole.filter(|&len| flow.counts(len) && !flow.closed) {
            flow.turns.answered_from(at, entered, len);
        }
        Some(index)
    }

    /// The payload bytes of a datagram of which a packet with `len` bytes arrived; `None` while fragments are missing.
    fn whole(&mut self, header: &Header, len: u64) -> Option<u64> {
        let Some(f) = header.fragment else {
            return Some(len);
        };
        let whole = (header.source, header.destination, f.id);
        let parts = self.fragmented.get_mut(&whole)?;
        parts.arrived += 1;
        parts.bytes += len;
        (parts.arrived >= parts.sent).then_some(parts.bytes)
    }

    /// A packet of flow `index` entered at `entered`, was due at `at` and left later by `by`.
    pub(crate) fn left_late(&mut self, index: usize, entered: Time, at: Time, by: Dur) {
        let flow = &mut self.all[index];
        flow.packets[0] += 1;
        flow.packets[1] += u64::from(by > at.since(entered).scale(CHANGED));
        flow.turns.left_late(at, by);
    }

    /// The loop was stalled until `at`: packets that hosts sent before may have entered later by up to `by`.
    pub(crate) fn stalled(&mut self, at: Time, by: Dur) {
        if by > self.crossing.scale(CHANGED) {
            // Reading the accumulated packets takes less time than the stall took.
            self.catching_up = at + by;
        }
        let all = &mut self.all;
        self.open.retain(|&index| {
            let flow = &mut all[index];
            // Lateness no longer affects an answer that is complete. That of an echo is one packet. Other answers are
            // taken for complete after a long silence that the stall does not explain.
            let complete =
                matches!(flow.kind, Kind::Echo(..)) || at.since(flow.last) > SILENCE + by;
            flow.open = !(complete && flow.turns.has_answer());
            if flow.open {
                flow.turns.left_late(at, by);
            }
            flow.open
        });
    }

    /// Lateness may have changed which packet was lost at `at`, which may have delayed an answer by up to `by`.
    pub(crate) fn misplaced(&mut self, at: Time, by: Dur) {
        for &index in &self.open {
            let flow = &mut self.all[index];
            flow.packets[1] += 1;
            flow.turns.left_late(at, by);
        }
    }

    /// Every conversation, in the order in which they began. They are observed until `end`.
    pub fn finish(self, end: Time) -> Vec<Conversation> {
        let mut all: Vec<Conversation> = Vec::new();
        let mut echoes: BTreeMap<(IpAddr, IpAddr, u16), usize> = BTreeMap::new();
        let mut given_up = GivenUp::default();
        for mut flow in self.all {
            flow.turns.finish(ConversationEnd {
                at: end,
                whole: true,
                missing: 0,
                broken: false,
                closing: false,
                too_late: None,
            });
            let mut exchanges = flow.turns.take();
            if flow.kind == Kind::Udp {
                streams(&mut exchanges);
            }
            let Kind::Echo(server, id) = flow.kind else {
                given_up.flow(&flow, &exchanges, all.len());
                all.push(Conversation {
                    client: flow.client,
                    bytes: flow.bytes,
                    stream: flow.stream(&exchanges),
                    quic: flow.kind == Kind::Quic,
                    exchanges,
                });
                continue;
            };
            let index = *echoes.entry((flow.client, server, id)).or_insert_with(|| {
                all.push(Conversation {
                    client: flow.client,
                    bytes: [0; 2],
                    stream: [0; 2],
                    quic: false,
                    exchanges: Vec::new(),
                });
                all.len() - 1
            });
            all[index].exchanges.extend(exchanges);
        }
        for &index in echoes.values() {
            lost(&mut all[index].exchanges);
        }
        for index in given_up.all() {
            if let Some(last) = all[index].exchanges.last_mut() {
                last.outcome = Outcome::Failed;
            }
        }
        all
    }
}

/// The address of a client, and a server's address and port.
type Pair = (IpAddr, (IpAddr, u16));

/// Finds the flows in which nothing was ever answered, while a flow that the client opened a second later or more to the
/// same port was.
#[derive(Default)]
struct GivenUp {
    /// When the last answered flow between the two began.
    answered: BTreeMap<Pair, Time>,
    /// The unanswered requests, each with its beginning and the index of its conversation.
    waiting: Vec<(Pair, Time, usize)>,
}

impl GivenUp {
    fn flow(&mut self, flow: &Flow, exchanges: &[Exchange], index: usize) {
        let ends = (flow.client, flow.server);
        if exchanges.iter().any(|e| e.first_byte.is_some()) {
            // Flows come in the order in which they began.
            self.answered.insert(ends, flow.start);
        } else if let Some(last) = exchanges.last().filter(|e| e.label.waits()) {
            self.waiting.push((ends, last.start, index));
        }
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        let waiting = self.waiting.iter();
        waiting.filter_map(|(ends, start, index)| {
            let began = self.answered.get(ends)?;
            (began.since(*start) >= WAITS).then_some(*index)
        })
    }
}

impl Flow {
    /// Counts the packets of a stream: a flow with many datagrams per change of direction. An answered QUIC
    /// connection counts as requests instead, which are judged separately.
    fn stream(&self, exchanges: &[Exchange]) -> [u64; 2] {
        let [all, late] = self.packets;
        let answered = exchanges.iter().any(|e| e.outcome == Outcome::Answered);
        let few = all <= u64::from(STREAM) * 2 * exchanges.len() as u64;
        if few || (self.kind == Kind::Quic && answered) {
            return [0; 2];
        }
        [all, late.min(all)]
    }

    /// Whether a datagram that the client sent at `at` can be an acknowledgement that reports losses.
    fn may_acknowledge(&self, at: Time, len: u64) -> bool {
        let missing = self.answers[0].saturating_sub(self.answers[1]);
        let most = ACKNOWLEDGEMENT + RANGE * missing.min(RANGES);
        let prompt = self.heard.is_some_and(|heard| at.since(heard) <= ACK_DELAY);
        self.kind == Kind::Quic && prompt && ACKNOWLEDGEMENT < len && len <= most
    }

    /// Whether a datagram with this payload length can be part of a request or an answer.
    fn counts(&self, len: u64) -> bool {
        self.kind != Kind::Quic || len > ACKNOWLEDGEMENT
    }
}

/// A client that has waited for an answer for less than this may still do so when it asks over another flow, or when it
/// has sent many datagrams.
const WAITS: Dur = Dur::from_secs(1);
/// A client that repeats its request sends fewer datagrams than this.
const MANY: u32 = 100;

/// Labels a stream that was answered only at its end, as by a report of what arrived. It is all that its flow has.
fn streams(exchanges: &mut [Exchange]) {
    let [e] = exchanges else { return };
    let late = e
        .first_byte
        .is_some_and(|first| first.since(e.start) > WAITS);
    if late && e.pieces >= MANY && e.label != Label::Merged {
        e.label = Label::OneWay;
    }
}

/// Marks unanswered echoes as lost if a later echo was answered. The others may still be answered.
fn lost(echoes: &mut [Exchange]) {
    let answered = |e: &Exchange| e.outcome == Outcome::Answered;
    let last = echoes.iter().rposition(answered).unwrap_or(0);
    for echo in &mut echoes[..last] {
        if !answered(echo) {
            echo.outcome = Outcome::Failed;
        }
    }
    for echo in echoes {
        echo.label = Label::Request;
    }
}

#[cfg(test)]
mod tests;
