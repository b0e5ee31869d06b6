//! Flow surgery: records into connections, with a client, a server and a file each way.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Histogram;
use super::super::law::Sizes;
use super::super::model::{FlowTotals, LARGE};
use super::super::record::{ACK, Direction, FIN, RST, Record, SYN, micros_between, nanos, times};
use super::inversion::{Observed, Tally};
use super::{Options, Start, Timeline};

/// Options of a segment with timestamps, padded (RFC 7323 appendix A): a flow with no more payload per
/// packet is acknowledgements.
const TIMESTAMPS: u64 = 12;

/// The other side's first packet comes at most so much later than the first, nanoseconds: a second
/// (RFC 6298 section 2: the initial retransmission time-out).
const HANDSHAKE: i64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) up: Sizes,
    pub(super) down: Sizes,
    /// Of large files, bytes per second.
    pub(super) rates: Histogram,
    /// Connections of sampled records, by sampling interval (the order of positive numbers is that of their
    /// bits).
    pub(super) sampled: BTreeMap<u64, Tally>,
    open: BTreeMap<Key, Connection>,
    /// Open connections by their last packet.
    oldest: BTreeSet<(i64, Key)>,
    latest: i64,
}

/// Two transport addresses, the smaller first.
type Key = [(u128, u16); 2];

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// From the smaller transport address, and from the larger.
    sides: [Side; 2],
    /// Which side is the client, once that is settled by having to be known.
    client: Option<usize>,
    /// The last record said that there would be more.
    continues: bool,
    /// Packets passed per packet counted, at least 1.
    sampling: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// As counted, sampled or not.
    seen: Direction,
    /// Payload as counted, of records that hold more than acknowledgements.
    payload: u64,
    /// Whether the payload is enough for a file, and on the timeline.
    file: bool,
}

impl Connections {
    /// Takes a record; the connection's start when it turns out to carry a file.
    pub(super) fn add(
        &mut self,
        record: &Record,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) -> Option<Start> {
        let ends = [
            (record.source, record.source_port),
            (record.destination, record.destination_port),
        ];
        let swapped = ends[1] < ends[0];
        let key = if swapped { [ends[1], ends[0]] } else { ends };
        let pieces = [Some(record.forward), record.reverse];
        let mut connection = self.take(&key).unwrap_or_default();
        if connection.is_over(&pieces, usize::from(swapped), options) {
            self.close(&key, connection, begin, false, totals);
            connection = Connection::default();
        }
        let had_file = connection.carries();
        for (i, piece) in pieces.iter().enumerate() {
            if let Some(piece) = piece.filter(|p| p.packets > 0) {
                let side = &mut connection.sides[i ^ usize::from(swapped)];
                side.take(&piece, record, options, totals, timeline);
            }
        }
        connection.continues = record.continues;
        connection.sampling = connection.sampling.max(record.sampling);
        let start = (connection.carries() && !had_file).then(|| {
            let client = connection.guess_client(&key);
            connection.client = Some(client);
            Start {
                at: connection.first(),
                client: key[client].0,
                server: key[1 - client].0,
                sampled: connection.sampling > 1.0,
            }
        });
        self.latest = self.latest.max(connection.last());
        self.oldest.insert((connection.last(), key));
        self.open.insert(key, connection);
        if self.open.len() > options.capacity
            && let Some(&(_, oldest)) = self.oldest.first()
            && let Some(victim) = self.take(&oldest)
        {
            totals.evicted += 1;
            self.close(&oldest, victim, begin, true, totals);
        }
        start
    }

    /// Closes all connections silent since before `settled`.
    pub(super) fn expire(&mut self, settled: i64, begin: i64, totals: &mut FlowTotals) {
        while let Some(&(last, key)) = self.oldest.first() {
            if last >= settled {
                break;
            }
            if let Some(connection) = self.take(&key) {
                let cut = connection.continues;
                self.close(&key, connection, begin, cut, totals);
            }
        }
    }

    /// Closes the rest. One that was silent for longer than its packets are apart is taken to be over.
    pub(super) fn finish(&mut self, begin: i64, options: &Options, totals: &mut FlowTotals) {
        while let Some(&(last, key)) = self.oldest.first() {
            if let Some(connection) = self.take(&key) {
                let silence = self.latest.saturating_sub(last);
                let cut = connection.continues
                    || silence
                        <= connection
                            .spacing()
                            .saturating_mul(3)
                            .min(nanos(options.idle));
                self.close(&key, connection, begin, cut, totals);
            }
        }
    }

    fn take(&mut self, key: &Key) -> Option<Connection> {
        let connection = self.open.remove(key)?;
        self.oldest.remove(&(connection.last(), *key));
        Some(connection)
    }

    fn close(
        &mut self,
        key: &Key,
        connection: Connection,
        begin: i64,
        cut: bool,
        totals: &mut FlowTotals,
    ) {
        if connection.sampling > 1.0 {
            let client = connection
                .client
                .unwrap_or_else(|| connection.guess_client(key));
            let observed = [client, 1 - client].map(|i| connection.sides[i].observed());
            let tally = self.sampled.entry(connection.sampling.to_bits());
            tally.or_default().add(observed);
            return;
        }
        for side in &connection.sides {
            if side.seen.packets > 0 && !side.file {
                totals.small += 1;
                totals.small_bytes = totals.small_bytes.saturating_add(side.payload);
            }
        }
        // A client is settled as soon as there is a file.
        let Some(client) = connection.client else {
            return;
        };
        let flags_known = connection.sides.iter().any(|s| s.seen.flags.is_some());
        let headless = flags_known
            && !connection.any(SYN)
            && connection.first().saturating_sub(begin) <= connection.spacing().saturating_mul(3);
        let censored = headless || (cut && !connection.ended());
        totals.censored += u64::from(censored);
        for (sizes, side) in [
            (&mut self.up, &connection.sides[client]),
            (&mut self.down, &connection.sides[1 - client]),
        ] {
            let bytes = if side.file { side.payload } else { 0 };
            if censored {
                sizes.censored.add(bytes);
            } else {
                sizes.complete.add(bytes);
                let micros = micros_between(side.seen.first, side.seen.last);
                // Records of some exporters have no durations.
                if bytes >= LARGE && micros > 0 {
                    let rate = u128::from(bytes) * 1_000_000 / u128::from(micros);
                    self.rates.add(u64::try_from(rate).unwrap_or(u64::MAX));
                }
            }
        }
    }
}

impl Connection {
    fn seen(&self) -> impl Iterator<Item = &Direction> {
        self.sides.iter().map(|s| &s.seen).filter(|d| d.packets > 0)
    }

    fn first(&self) -> i64 {
        self.seen().map(|d| d.first).min().unwrap_or(0)
    }

    fn last(&self) -> i64 {
        self.seen().map(|d| d.last).max().unwrap_or(0)
    }

    fn any(&self, flag: u8) -> bool {
        self.seen().any(|d| d.has(flag))
    }

    fn carries(&self) -> bool {
        self.sides.iter().any(|s| s.file)
    }

    fn ended(&self) -> bool {
        self.any(FIN | RST)
    }

    /// Mean time between packets, at least a second.
    fn spacing(&self) -> i64 {
        let packets = self.seen().map(|d| d.packets).max().unwrap_or(0);
        let gaps = i64::try_from(packets.saturating_sub(1))
            .unwrap_or(i64::MAX)
            .max(1);
        ((self.last() - self.first()) / gaps).max(1_000_000_000)
    }

    /// Whether pieces of records belong to another connection: after a long silence, or with a SYN of
    /// their own after this direction has had one and begun to end, or has had data.
    fn is_over(&self, pieces: &[Option<Direction>; 2], swap: usize, options: &Options) -> bool {
        if self.seen().next().is_none() {
            return false;
        }
        let (first, last) = (self.first(), self.last());
        pieces.iter().enumerate().any(|(i, piece)| {
            let Some(piece) = piece.filter(|p| p.packets > 0) else {
                return false;
            };
            let mine = &self.sides[i ^ swap].seen;
            let apart = piece
                .first
                .saturating_sub(last)
                .max(first.saturating_sub(piece.last));
            // A direction that has not been seen yet may begin until the other one is over, and a little
            // later where records have lost their durations.
            let ended = if mine.packets > 0 {
                mine.last
            } else {
                last.saturating_add(HANDSHAKE)
            };
            let anew = piece.has(SYN)
                && piece.first > ended
                && (self.ended() || (mine.packets > 0 && mine.has(SYN) && mine.has(ACK)));
            apart > nanos(options.idle) || anew
        })
    }

    /// The client's side. Surest first: a SYN without ACK comes from it; a well-known port on one
    /// side alone is the server's; it sent first (first packets are exact in the median, section 3 of
    /// the paper; not so when sampled); its port is the higher one.
    fn guess_client(&self, key: &Key) -> usize {
        let [a, b] = [&self.sides[0].seen, &self.sides[1].seen];
        let opens = |d: &Direction| d.has(SYN) && !d.has(ACK);
        if opens(a) != opens(b) {
            return usize::from(opens(b));
        }
        // A SYN with ACK and nothing else: samples may be so small.
        let accepts = |d: &Direction| d.has(SYN) && d.has(ACK) && d.packets == 1;
        if accepts(a) != accepts(b) {
            return usize::from(accepts(a));
        }
        let known = [key[0].1 < 1024, key[1].1 < 1024];
        if known[0] != known[1] {
            return usize::from(known[0]);
        }
        if a.packets > 0 && b.packets > 0 && a.first != b.first && self.sampling <= 1.0 {
            return usize::from(b.first < a.first);
        }
        if key[0].1 != key[1].1 {
            return usize::from(key[1].1 > key[0].1);
        }
        usize::from(a.packets == 0)
    }
}

impl Side {
    fn take(
        &mut self,
        piece: &Direction,
        record: &Record,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        totals.joined += u64::from(self.seen.packets > 0);
        let before = self.seen;
        self.seen.join(piece);
        let payload = piece.payload(record.header);
        if payload <= piece.packets.saturating_mul(TIMESTAMPS) {
            return;
        }
        let waiting = self.payload;
        self.payload = self.payload.saturating_add(payload);
        let n = record.sampling;
        if self.file {
            timeline.spread(times(payload, n), piece.first, piece.last);
        } else if times(self.payload, n) >= options.min_file {
            self.file = true;
            timeline.spread(times(payload, n), piece.first, piece.last);
            if waiting > 0 {
                timeline.spread(times(waiting, n), before.first, before.last);
            }
        }
    }

    fn observed(&self) -> Observed {
        Observed {
            packets: self.seen.packets,
            flags: self.seen.flags,
            payload: if self.file { self.payload } else { 0 },
        }
    }
}
