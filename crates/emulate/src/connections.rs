//! TCP connections of real programs, reconstructed from the packets that cross the world.

use std::collections::BTreeMap;
use std::net::IpAddr;

use swell_base::{Dur, Time};

use super::control::OpenFlow;
use super::ip::{Header, TCP};
use super::turns::{End, Exchange, Received, Turns};

/// Bits of the TCP flags (RFC 9293 section 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

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
    /// When the SYN-ACK arrived.
    pub connected: Option<Time>,
    /// When the first byte from the server arrived.
    pub first_byte: Option<Time>,
    /// When the last byte from the server arrived, with all bytes before it.
    pub last_byte: Option<Time>,
    /// Payload bytes that arrived without gaps: at the server, at the client.
    pub bytes: [u64; 2],
    /// Retransmitted segments with payload: by the client, by the server.
    pub retransmissions: [u32; 2],
    /// How it ended.
    pub ending: Ending,
    /// The end of the connection, or of the run if that came first.
    pub until: Time,
    /// The requests inside it. The first includes the time of the handshake, but not the pause after it.
    pub exchanges: Vec<Exchange>,
}

impl Connection {
    /// Whether neither side had begun to close it when the run ended.
    pub fn is_open(&self) -> bool {
        self.ending == Ending::Open
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
    /// When the client closed or reset it.
    closed: Option<Time>,
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
    /// Data received beyond a gap: end offset by start offset.
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
        let longest = self.beyond.entry(from).or_insert(to);
        *longest = to.max(*longest);
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
        if way == 0 && segment.flags & (FIN | RST) != 0 {
            inside.closed.get_or_insert(at);
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
        let half = &mut inside.halves[way];
        if segment.flags & SYN != 0 {
            half.base = Some(segment.seq.wrapping_add(1));
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
        }
        if segment.flags & FIN != 0 {
            half.fin = Some(from + segment.len);
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
                connection.connected.get_or_insert(at);
            }
            return Some(index);
        }
        let inside = &mut self.inside[index];
        if way == 1 && segment.len > 0 {
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

    /// The loop was stalled until `at`: packets that hosts sent before may have entered later by up to `by`.
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
            self.live.remove(&ends);
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
            closed: None,
        });
        self.all.push(Connection {
            client: ends[0],
            server: ends[1],
            start: at,
            connected: None,
            first_byte: None,
            last_byte: None,
            bytes: [0; 2],
            retransmissions: [0; 2],
            ending: Ending::Open,
            until: at,
            exchanges: Vec::new(),
        });
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
        let [_, server] = &inside.halves;
        let pushed = [0, server.received].contains(&inside.pushed);
        let opening = connection.connected.map(|c| c.since(connection.start));
        inside.turns.finish(End {
            at,
            // A sender whose window closes in the middle of an answer sets no PSH there.
            whole: server.finished || (server.sent == server.received && pushed),
            broken: connection.ending == Ending::ResetByServer,
            too_late: inside.closed.zip(opening).map(|(closed, rtt)| closed - rtt),
        });
        connection.until = at;
        connection.exchanges = inside.turns.take();
        if let (Some(first), Some(opening)) = (connection.exchanges.first_mut(), opening)
            && first.bytes[0] > 0
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
mod tests {
    use super::*;

    /// A TCP packet over IPv4 with this many bytes of payload.
    fn packet(to_server: bool, seq: u32, flags: u8, len: usize) -> Vec<u8> {
        let mut p = vec![0; 40 + len];
        p[0] = 0x45;
        p[9] = TCP;
        let (from, to) = if to_server { (1, 2) } else { (2, 1) };
        p[12..20].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
        let ports = if to_server { [5000u16, 80] } else { [80, 5000] };
        p[20..22].copy_from_slice(&ports[0].to_be_bytes());
        p[22..24].copy_from_slice(&ports[1].to_be_bytes());
        p[24..28].copy_from_slice(&seq.to_be_bytes());
        p[32] = 0x50;
        p[33] = flags;
        p
    }

    struct Line {
        seen: Connections,
        now: u64,
    }

    impl Line {
        fn new() -> Line {
            Line {
                seen: Connections::default(),
                now: 0,
            }
        }
        fn sends(&mut self, p: &[u8]) {
            self.now += 1;
            let at = Time::from_nanos(self.now);
            self.seen.sent(at, &Header::of(p).unwrap(), p, p.len());
        }
        fn arrives(&mut self, p: &[u8]) {
            self.now += 1;
            let at = Time::from_nanos(self.now);
            self.seen.received(at, &Header::of(p).unwrap(), p);
        }
        fn both(&mut self, p: &[u8]) {
            self.sends(p);
            self.arrives(p);
        }
    }

    /// Sequence numbers wrap during the transfer.
    const CLIENT: u32 = u32::MAX - 50;
    const SERVER: u32 = u32::MAX - 2000;

    fn opened() -> Line {
        let mut line = Line::new();
        line.both(&packet(true, CLIENT, SYN, 0));
        line.both(&packet(false, SERVER, SYN | ACK, 0));
        line.both(&packet(true, CLIENT.wrapping_add(1), ACK, 100));
        line
    }

    #[test]
    fn a_transfer_with_a_loss_is_complete_when_the_hole_is_filled() {
        let mut line = opened();
        let seg = |i: u32| packet(false, SERVER.wrapping_add(1 + i * 1000), ACK, 1000);
        line.sends(&seg(0));
        line.both(&seg(1));
        line.both(&seg(2));
        line.both(&packet(false, SERVER.wrapping_add(3001), ACK | FIN, 0));
        line.both(&seg(0));
        let filled = line.now;
        line.both(&packet(false, SERVER.wrapping_add(3001), ACK | FIN, 0));
        line.both(&packet(true, CLIENT.wrapping_add(101), ACK | FIN, 0));
        let all = line.seen.finish(Time::from_nanos(line.now));
        let c = &all[0];
        assert_eq!(
            (all.len(), c.bytes, c.retransmissions),
            (1, [100, 3000], [0, 1])
        );
        assert_eq!(c.last_byte, Some(Time::from_nanos(filled)));
        assert_eq!(
            (c.start, c.connected),
            (Time::from_nanos(1), Some(Time::from_nanos(4)))
        );
        assert_eq!(c.ending, Ending::Closed);
    }

    #[test]
    fn a_reset_and_a_second_connection_from_the_same_port() {
        let mut line = opened();
        line.both(&packet(false, SERVER.wrapping_add(1), RST, 0));
        line.both(&packet(true, 7, SYN, 0));
        line.both(&packet(true, 7, SYN, 0));
        let all = line.seen.finish(Time::from_nanos(line.now));
        assert_eq!(all.len(), 2);
        assert_eq!(
            [all[0].ending, all[1].ending],
            [Ending::ResetByServer, Ending::Open]
        );
        assert_eq!(all[1].connected, None);
    }

    #[test]
    fn noise_does_not_panic() {
        let mut rng = swell_base::Stream::new(2, "noise");
        let mut line = opened();
        for _ in 0..50_000 {
            let len = rng.below(50) as usize;
            let p = packet(
                rng.chance(0.5),
                rng.below(1 << 32) as u32,
                rng.below(256) as u8,
                len,
            );
            if rng.chance(0.5) {
                line.sends(&p);
            } else {
                line.arrives(&p);
            }
        }
    }
}
