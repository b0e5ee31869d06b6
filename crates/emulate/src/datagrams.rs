//! Requests of real programs over datagrams: ICMP echoes, and UDP by changes of direction.

use std::collections::BTreeMap;
use std::net::IpAddr;

use swell_base::{Dur, Time};

use super::control::OpenFlow;
use super::ip::{Header, UDP};
use super::turns::{CHANGED, End, Exchange, Label, Outcome, Received, STREAM, Turns};

/// Protocol numbers and types of echo and reply (RFC 792, RFC 4443).
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const ECHO: [u8; 2] = [8, 128];
const REPLY: [u8; 2] = [0, 129];

/// A QUIC client's first datagram has at least this much payload (RFC 9000 section 14.1).
const INITIAL: u64 = 1200;
/// A QUIC packet that only acknowledges is no longer than this: short header, 8-byte connection ID, one
/// ACK frame of a few ranges and the tag (RFC 9000 sections 17.3.1 and 19.3). A shorter
/// datagram neither begins a request nor ends an answer.
const ACKNOWLEDGEMENT: u64 = 60;

/// A flow of datagrams that was silent for longer is not listed among those that are open.
const SILENCE: Dur = Dur::from_millis(5000);

/// More flows and echoes than this are counted and not followed.
const MOST: usize = 1 << 20;

/// The two ends of a flow, the opener first. For echoes the ports are identifier and sequence number.
type Ends = (u8, IpAddr, u16, IpAddr, u16);

/// Follows datagrams.
#[derive(Debug, Default)]
pub struct Datagrams {
    /// By protocol and ends; index into `all`.
    flows: BTreeMap<Ends, usize>,
    all: Vec<Flow>,
    /// Flows beyond what is followed.
    pub unfollowed: u64,
    crossing: Dur,
    /// What enters until then may have waited, unstamped, while the loop was away.
    catching_up: Time,
}

#[derive(Debug)]
struct Flow {
    client: IpAddr,
    kind: Kind,
    turns: Turns,
    bytes: [u64; 2],
    /// Datagrams that arrived, and those of them that were late.
    packets: [u64; 2],
    /// When it began, and when something arrived last.
    start: Time,
    last: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of these ends, without the sequence number.
    Echo(IpAddr, u16),
    Udp,
    Quic,
}

/// What a flow of datagrams asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The end that sent the first datagram.
    pub client: IpAddr,
    /// Payload that arrived at the server and at the client; none of echoes.
    pub bytes: [u64; 2],
    /// Datagrams that arrived as part of a stream, and how many of them were late by a twentieth of their time on the way;
    /// of requests and their answers none, for they are judged as a whole.
    pub stream: [u64; 2],
    /// Its requests. All echoes of one process to one address are one conversation.
    pub exchanges: Vec<Exchange>,
}

/// What the emulator needs to know of a datagram.
struct Datagram {
    ends: Ends,
    /// Of an echo reply.
    reply: bool,
    len: u64,
}

impl Datagram {
    fn of(header: &Header, packet: &[u8], size: usize) -> Option<Datagram> {
        let body = packet.get(header.transport..)?;
        let payload = size.saturating_sub(header.transport + 8) as u64;
        let (source, destination) = (header.source, header.destination);
        match header.protocol {
            UDP if header.ports != [0; 2] => Some(Datagram {
                ends: (UDP, source, header.ports[0], destination, header.ports[1]),
                reply: false,
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
                    len: payload,
                })
            }
            _ => None,
        }
    }

    /// The flow's ends as its opener names them, where this goes the other way.
    fn back(&self) -> Ends {
        let (protocol, source, from, destination, to) = self.ends;
        match protocol {
            UDP => (protocol, destination, to, source, from),
            // Identifier and sequence number stay.
            _ => (protocol, destination, from, source, to),
        }
    }
}

impl Datagrams {
    /// For a network that a packet takes at least `crossing` to cross.
    pub fn new(crossing: Dur) -> Datagrams {
        Datagrams {
            crossing,
            ..Datagrams::default()
        }
    }

    /// As [`Tracker::crosses_in`](super::Tracker).
    pub(crate) fn crosses_in(&mut self, crossing: Dur) {
        self.crossing = crossing;
        for flow in &mut self.all {
            flow.turns.crosses_in(crossing);
        }
    }

    /// Flows between two ports in which something arrived a moment before `now`.
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

    /// A packet was sent by a host: `packet` begins with its headers, `size` is its length.
    pub(crate) fn sent(&mut self, at: Time, header: &Header, packet: &[u8], size: usize) {
        let Some(datagram) = Datagram::of(header, packet, size) else {
            return;
        };
        if let Some(&index) = self.flows.get(&datagram.back()) {
            self.all[index].packets[1] += u64::from(at < self.catching_up);
            return;
        }
        if datagram.reply {
            return;
        }
        let echo = datagram.ends.0 != UDP;
        if let Some(&index) = self.flows.get(&datagram.ends)
            && !echo
        {
            let flow = &mut self.all[index];
            flow.packets[1] += u64::from(at < self.catching_up);
            // By direction alone: whether more is on its way cannot be seen without sequence numbers.
            if flow.counts(datagram.len) {
                flow.turns.asked(at, datagram.len, Received::All);
            }
            return;
        }
        if self.all.len() >= MOST {
            self.unfollowed += 1;
            return;
        }
        // An echo that reuses a number starts a new request.
        self.flows.insert(datagram.ends, self.all.len());
        let (_, client, id, server, _) = datagram.ends;
        let mut turns = Turns::of_datagrams(at, self.crossing);
        turns.asked(at, datagram.len, Received::All);
        self.all.push(Flow {
            client,
            kind: match echo {
                true => Kind::Echo(server, id),
                false if datagram.len >= INITIAL => Kind::Quic,
                false => Kind::Udp,
            },
            turns,
            bytes: [0; 2],
            packets: [0; 2],
            start: at,
            last: at,
        });
    }

    /// A packet reached a host. Returns the flow's number, by which [`left_late`](Self::left_late) knows it.
    pub(crate) fn received(&mut self, at: Time, header: &Header, packet: &[u8]) -> Option<usize> {
        let datagram = Datagram::of(header, packet, packet.len())?;
        if !datagram.reply
            && let Some(&index) = self.flows.get(&datagram.ends)
        {
            let flow = &mut self.all[index];
            flow.bytes[0] += datagram.len;
            flow.last = at;
            return Some(index);
        }
        let index = *self.flows.get(&datagram.back())?;
        let flow = &mut self.all[index];
        flow.bytes[1] += datagram.len;
        flow.last = at;
        if flow.counts(datagram.len) {
            flow.turns.answered(at, datagram.len);
        }
        Some(index)
    }

    /// A packet of flow `index` that had entered at `entered` and was due at `at` left `by` too late.
    pub(crate) fn left_late(&mut self, index: usize, entered: Time, at: Time, by: Dur) {
        let flow = &mut self.all[index];
        flow.packets[0] += 1;
        flow.packets[1] += u64::from(by > at.since(entered).scale(CHANGED));
        flow.turns.left_late(at, by);
    }

    /// Packets that hosts sent before `at` may have entered `by` too late.
    pub(crate) fn stalled(&mut self, at: Time, by: Dur) {
        if by > self.crossing.scale(CHANGED) {
            // They are read in less time than they took to gather.
            self.catching_up = at + by;
        }
        for flow in &mut self.all {
            // An answered echo can no longer be delayed.
            if !(matches!(flow.kind, Kind::Echo(..)) && flow.turns.has_answer()) {
                flow.turns.left_late(at, by);
            }
        }
    }

    /// Every conversation, in the order in which they began; they are watched until `end`.
    pub fn finish(self, end: Time) -> Vec<Conversation> {
        let mut all: Vec<Conversation> = Vec::new();
        let mut echoes: BTreeMap<(IpAddr, IpAddr, u16), usize> = BTreeMap::new();
        for mut flow in self.all {
            flow.turns.finish(End {
                at: end,
                whole: true,
                broken: false,
                too_late: None,
            });
            let exchanges = flow.turns.take();
            let Kind::Echo(server, id) = flow.kind else {
                all.push(Conversation {
                    client: flow.client,
                    bytes: flow.bytes,
                    stream: flow.stream(&exchanges),
                    exchanges,
                });
                continue;
            };
            let index = *echoes.entry((flow.client, server, id)).or_insert_with(|| {
                all.push(Conversation {
                    client: flow.client,
                    bytes: [0; 2],
                    stream: [0; 2],
                    exchanges: Vec::new(),
                });
                all.len() - 1
            });
            all[index].exchanges.extend(exchanges);
        }
        for &index in echoes.values() {
            lost(&mut all[index].exchanges);
        }
        all
    }
}

impl Flow {
    /// The packets of a stream: of a flow in which many come between two changes of direction. A QUIC connection that is
    /// answered has requests, which are judged.
    fn stream(&self, exchanges: &[Exchange]) -> [u64; 2] {
        let [all, late] = self.packets;
        let answered = exchanges.iter().any(|e| e.outcome == Outcome::Answered);
        let few = all <= u64::from(STREAM) * 2 * exchanges.len() as u64;
        if few || (self.kind == Kind::Quic && answered) {
            return [0; 2];
        }
        [all, late.min(all)]
    }

    /// Whether a datagram of this much payload is part of a request or an answer.
    fn counts(&self, len: u64) -> bool {
        self.kind != Kind::Quic || len > ACKNOWLEDGEMENT
    }
}

/// Echoes that were never answered though later ones were are lost; the others may yet be answered.
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
