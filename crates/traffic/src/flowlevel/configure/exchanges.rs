//! UDP flows between two transport addresses, with the records of both directions.
//!
//! An exporter ends a record after a silence, and after its active time-out. Records of one direction are joined in
//! the second case alone. Records of the two directions are joined if they overlap, or if one follows the other soon.
//! They come in the order of their ends, so a long one may join earlier ones.

use std::hash::{Hash, Hasher};

use super::super::model::FlowTotals;
use super::super::record::{DYNAMIC, Record, Uniflow, server_by_port};
use super::moments::Moments;
use super::table::Table;

/// Maximum time from a request's last datagram to the first of its answer, and between two records of one flow,
/// nanoseconds: the initial time-out of DNS resolvers (`resolv.conf(5)`).
const ANSWER: i64 = 5_000_000_000;
/// Exporters' active time-outs are at least this long, nanoseconds.
const ACTIVE: i64 = 10_000_000_000;
/// How many of the latest flows between two addresses a record may belong to.
const LATEST: usize = 64;
/// Maximum number of flows held for two addresses.
const HELD: usize = 1_024;

/// Two transport addresses, the smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    pub(super) hosts: [u128; 2],
    pub(super) ports: [u16; 2],
}

impl Hash for Transport {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Word by word, because an array would be hashed as bytes.
        let ([a, b], [p, q]) = (self.hosts, self.ports);
        state.write_u128(a);
        state.write_u128(b);
        state.write_u32(u32::from(p) << 16 | u32::from(q));
    }
}

impl Transport {
    /// Those of a record, and which of them is its source.
    pub(super) fn of(record: &Record) -> (Transport, usize) {
        let source = (record.source, record.source_port);
        let destination = (record.destination, record.destination_port);
        let swapped = destination < source;
        let [a, b] = match swapped {
            true => [destination, source],
            false => [source, destination],
        };
        let ends = Transport {
            hosts: [a.0, b.0],
            ports: [a.1, b.1],
        };
        (ends, usize::from(swapped))
    }
}

/// What one side sent in an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) payload: u64,
    first: i64,
    last: i64,
    /// Whether the latest record said that another one continues it.
    continues: bool,
    pub(super) rates: Moments,
}

impl Sent {
    pub(super) fn is_stream(&self) -> bool {
        self.rates.any()
    }

    fn join(&mut self, other: &Sent) {
        if other.packets == 0 {
            return;
        }
        if self.packets == 0 {
            *self = *other;
            return;
        }
        self.packets = self.packets.saturating_add(other.packets);
        self.payload = self.payload.saturating_add(other.payload);
        if other.last >= self.last {
            self.continues = other.continues;
        }
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.rates.join(&other.rates);
    }

    /// Whether `other` is the same flow of the same direction, cut by an active time-out.
    fn goes_on(&self, other: &Sent) -> bool {
        if other.first < self.last {
            return other.last > self.first;
        }
        let length = self.last - self.first;
        let gaps = i64::try_from(self.packets.saturating_sub(1)).unwrap_or(i64::MAX);
        let most = match (self.continues, gaps) {
            (true, _) => ANSWER,
            (false, 1..) if length >= ACTIVE => (length / gaps).saturating_mul(3).min(ANSWER),
            _ => return false,
        };
        other.first - self.last <= most
    }
}

/// A flow with both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// From the smaller transport address, and from the larger.
    pub(super) sides: [Sent; 2],
    pub(super) first: i64,
    pub(super) last: i64,
    /// The side whose record came first.
    opener: usize,
    sampled: bool,
}

impl Exchange {
    fn of(side: usize, sent: Sent, sampled: bool) -> Exchange {
        let mut sides = [Sent::default(); 2];
        sides[side] = sent;
        Exchange {
            sides,
            first: sent.first,
            last: sent.last,
            opener: side,
            sampled,
        }
    }

    fn join(&mut self, other: &Exchange) {
        for (mine, theirs) in self.sides.iter_mut().zip(&other.sides) {
            mine.join(theirs);
        }
        if other.first < self.first {
            self.opener = other.opener;
        }
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    fn overlaps(&self, other: &Exchange) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// Whether `sent` of `side` belongs to this flow.
    fn takes(&self, side: usize, sent: &Sent, are_fragments: bool) -> bool {
        let mine = &self.sides[side];
        if mine.packets > 0 && mine.goes_on(sent) {
            return true;
        }
        let apart = (sent.first - self.last).max(self.first - sent.last);
        // Another datagram at the very end of a record is of the next exchange.
        match mine.packets == 0 || are_fragments {
            true => apart <= ANSWER,
            false => apart < 0,
        }
    }

    /// Which side is the client. A dynamic port is not a server's. The client sends first, unless the flow had begun
    /// before the records did at `begin`, or was sampled. The server has the lower port, unless clients use it.
    pub(super) fn client(&self, ends: &Transport, begin: i64) -> usize {
        let dynamic = ends.ports.map(|p| p >= DYNAMIC);
        if dynamic[0] != dynamic[1] {
            return usize::from(dynamic[1]);
        }
        let [a, b] = &self.sides;
        let both = a.packets > 0 && b.packets > 0;
        let sender = match both && a.first != b.first {
            true => usize::from(b.first < a.first),
            false => self.opener,
        };
        let gaps = i64::try_from(a.packets.max(b.packets).saturating_sub(1)).unwrap_or(i64::MAX);
        let apart = (self.last - self.first) / gaps.max(1);
        let headless = self.first - begin <= apart.saturating_mul(3);
        if both && a.first != b.first && !headless && !self.sampled {
            return sender;
        }
        server_by_port(ends.ports).map_or(sender, |server| 1 - server)
    }
}

/// The flows that may still change, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    open: Table<Transport, Held>,
    /// The latest ports between two hosts. Fragments other than the first have none.
    ports: Table<[u128; 2], [u16; 2]>,
    settled: i64,
}

/// Flows that do not overlap, in order.
#[derive(Debug, Default)]
struct Held(Vec<Exchange>);

impl Held {
    fn take(&mut self, side: usize, sent: Sent, sampled: bool, are_fragments: bool) {
        let flows = &mut self.0;
        let new = Exchange::of(side, sent, sampled);
        let latest = flows.iter().enumerate().rev().take(LATEST);
        let mut mine = latest.filter(|(_, f)| f.takes(side, &sent, are_fragments));
        let mut at = match mine.next() {
            Some((at, _)) => {
                flows[at].join(&new);
                at
            }
            None => {
                let at = flows.partition_point(|f| f.first <= new.first);
                // Most have one flow, and a vector would begin with room for four.
                if flows.is_empty() {
                    flows.reserve_exact(1);
                }
                flows.insert(at, new);
                at
            }
        };
        // It may bridge its neighbours.
        while at > 0 && flows[at - 1].overlaps(&flows[at]) {
            let later = flows.remove(at);
            at -= 1;
            flows[at].join(&later);
        }
        while at + 1 < flows.len() && flows[at].overlaps(&flows[at + 1]) {
            let later = flows.remove(at + 1);
            flows[at].join(&later);
        }
    }

    fn last(&self) -> i64 {
        self.0.iter().map(|f| f.last).max().unwrap_or(0)
    }
}

impl Exchanges {
    /// Adds a record; returns flows that are over.
    pub(super) fn add(
        &mut self,
        record: &Record,
        capacity: usize,
        totals: &mut FlowTotals,
    ) -> Vec<(Transport, Exchange)> {
        let (mut ends, source) = Transport::of(record);
        let are_fragments = ends.ports == [0, 0] && ends.hosts[0] != ends.hosts[1];
        if !are_fragments {
            let known = self.ports.get(&ends.hosts);
            if known != Some(&ends.ports) && (known.is_some() || self.ports.len() < capacity) {
                self.ports.update(ends.hosts, |ports| {
                    *ports = ends.ports;
                    (0, ())
                });
            }
        } else if let Some(&ports) = self.ports.get(&ends.hosts) {
            ends.ports = ports;
        }
        let sampled = record.sampling > 1.0;
        let record = record.scaled();
        let sent = |piece: &Uniflow| {
            let payload = piece.payload(record.header);
            Sent {
                packets: piece.packets,
                payload,
                first: piece.first,
                last: piece.last,
                continues: record.continues,
                rates: Moments::of_record(piece.packets, payload, piece.last - piece.first),
            }
        };
        let settled = self.settled;
        let mut over = self.open.update(ends, |held| {
            let pieces = [Some(record.forward), record.reverse];
            for (i, piece) in pieces.iter().enumerate() {
                if let Some(piece) = piece.filter(|p| p.packets > 0) {
                    held.take(i ^ source, sent(&piece), sampled, are_fragments);
                }
            }
            let last = held.last();
            let mut done = held.0.partition_point(|f| f.last < settled);
            if held.0.len() > HELD {
                done = done.max(HELD / 2);
            }
            (
                last,
                held.0.drain(..done).map(|f| (ends, f)).collect::<Vec<_>>(),
            )
        });
        if self.open.len() > capacity
            && let Some((oldest, held)) = self.open.pop_oldest()
        {
            totals.evicted += 1;
            over.extend(held.0.into_iter().map(|f| (oldest, f)));
        }
        over
    }

    /// The flows that ended before the second of `settled`, by their starts.
    pub(super) fn settle(&mut self, settled: i64) -> Vec<(Transport, Exchange)> {
        self.settled = settled;
        let mut over = Vec::new();
        self.open.expire(settled, |ends, held| {
            over.extend(held.0.iter().map(|f| (*ends, *f)));
        });
        over.sort_by_key(|(_, f)| f.first);
        over
    }
}
