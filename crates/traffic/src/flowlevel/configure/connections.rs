//! Flow surgery: joins records to connections, with a client, a server and a file in each direction.

use std::collections::{BTreeMap, VecDeque};

use super::super::Histogram;
use super::super::histogram::Tallied;
use super::super::law::Sizes;
use super::super::model::{FlowTotals, LARGE, RatesBySize, size_class};
use super::super::record::{
    ACK, FIN, RST, Record, SYN, Uniflow, micros_between, nanos, server_by_port, times,
};
use super::exchanges::Transport as Ends;
use super::headers::{Headers, Stamps, padding, without_padding};
use super::inversion::{Observed, Tally};
use super::options::Options;
use super::table::Table;
use super::timeline::{Start, Timeline};

/// Maximum delay of the other side's first packet after the first, nanoseconds: a second (RFC 6298 section
/// 2: the initial retransmission time-out).
const HANDSHAKE: i64 = 1_000_000_000;

/// How many closed connections wait for evidence about their headers.
const WAITING: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Table<Ends, Connection>,
    over: Over,
    latest: i64,
}

/// Data of closed connections.
#[derive(Debug, Default)]
pub(super) struct Over {
    up: TalliedSizes,
    down: TalliedSizes,
    /// Rates of large files, bytes per second.
    rates: Tallied,
    /// The same by size, up and down, and of those that were not seen whole.
    rates_by_size: [BTreeMap<u8, Tallied>; 2],
    /// Connections of sampled records, by the bits of the sampling interval (positive floats sort like
    /// their bits).
    pub(super) sampled: BTreeMap<u64, Tally>,
    headers: Headers,
    /// Connections by the sides that sent packets: the client alone, the server alone, both.
    pub(super) one_sided: [u64; 3],
    /// Closed connections of which it is not certain how many bytes are options, and whether each was cut.
    waiting: VecDeque<(Ends, Connection, bool)>,
}

#[derive(Debug, Default)]
struct TalliedSizes {
    complete: Tallied,
    censored: Tallied,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// From the smaller transport address, and from the larger.
    sides: [CountedDirection; 2],
    /// Which side is the client. Set when the connection is accepted into the model.
    client: Option<u8>,
    /// Whether the last record said that another one continues it.
    continues: bool,
    stamps: Stamps,
    /// Bytes of padding in each frame without payload and options.
    padding: u64,
    /// Packets passed per packet counted, at least 1.
    sampling: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CountedDirection {
    /// As counted, sampled or not; bytes are those beyond headers without options.
    seen: Uniflow,
    /// Payload added to the timeline, scaled by the sampling interval.
    spread: u64,
}

impl Connections {
    /// Adds a record. Returns the connection's start when it is accepted into the model.
    pub(super) fn add(
        &mut self,
        record: &Record,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) -> Option<Start> {
        let (ends, swap) = Ends::of(record);
        let over = &mut self.over;
        let (last, start) = self.open.update(ends, |connection| {
            let pieces = [Some(record.forward), record.reverse];
            if connection.is_over(&pieces, swap, options) {
                over.close(&ends, connection, options, begin, false, totals, timeline);
                *connection = Connection::default();
            }
            for (i, piece) in pieces.iter().enumerate() {
                if let Some(piece) = piece.filter(|p| p.packets > 0) {
                    connection.take(
                        i ^ swap,
                        &piece,
                        record,
                        &ends,
                        options,
                        over,
                        totals,
                        timeline,
                    );
                }
            }
            connection.continues = record.continues;
            connection.sampling = connection.sampling.max(record.sampling);
            let last = connection.last();
            (
                last,
                (last, connection.starts(&ends, &over.headers, options)),
            )
        });
        self.latest = self.latest.max(last);
        if self.open.len() > options.capacity
            && let Some((oldest, victim)) = self.open.pop_oldest()
        {
            totals.evicted += 1;
            self.over
                .close(&oldest, &victim, options, begin, true, totals, timeline);
        }
        start
    }

    /// Closes all connections that have been silent since before the second of `settled`.
    pub(super) fn expire(
        &mut self,
        settled: i64,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let over = &mut self.over;
        self.open.expire(settled, |ends, connection| {
            let cut = connection.continues;
            over.close(ends, connection, options, begin, cut, totals, timeline);
        });
    }

    /// Closes the rest, and returns the data of all. A connection counts as ended if it was silent for
    /// much longer than its packets are apart.
    pub(super) fn finish(
        &mut self,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) -> Over {
        for (ends, connection) in self.open.take_all() {
            let silence = self.latest.saturating_sub(connection.last());
            let apart = connection.spacing().saturating_mul(3);
            let cut = connection.continues || silence <= apart.min(nanos(options.idle));
            self.over
                .close(&ends, &connection, options, begin, cut, totals, timeline);
        }
        while let Some((ends, connection, cut)) = self.over.waiting.pop_front() {
            self.over
                .settle(&ends, &connection, options, begin, cut, totals, timeline);
        }
        std::mem::take(&mut self.over)
    }
}

impl Over {
    /// Payload of connections from and to the client, and rates of large files.
    pub(super) fn laws(&self) -> ([Sizes; 2], Histogram, [RatesBySize; 2]) {
        let sizes = [&self.up, &self.down].map(|s| Sizes {
            complete: s.complete.histogram(),
            censored: s.censored.histogram(),
        });
        let one = |(&class, rates): (&u8, &Tallied)| (class, rates.histogram());
        let by_size = self.rates_by_size.each_ref();
        let by_size = by_size.map(|rates| rates.iter().map(one).collect());
        (sizes, self.rates.histogram(), by_size)
    }

    /// Closes a connection, at once if its headers are certain. Others wait for what later records show.
    #[expect(clippy::too_many_arguments, reason = "what the configurator holds")]
    fn close(
        &mut self,
        ends: &Ends,
        connection: &Connection,
        options: &Options,
        begin: i64,
        cut: bool,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        if !matches!(connection.stamps, Stamps::Unknown | Stamps::Likely) {
            return self.settle(ends, connection, options, begin, cut, totals, timeline);
        }
        self.waiting.push_back((*ends, *connection, cut));
        if self.waiting.len() > WAITING.min(options.capacity)
            && let Some((oldest, closed, was_cut)) = self.waiting.pop_front()
        {
            self.settle(&oldest, &closed, options, begin, was_cut, totals, timeline);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what the configurator holds")]
    fn settle(
        &mut self,
        ends: &Ends,
        connection: &Connection,
        options: &Options,
        begin: i64,
        cut: bool,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let n = connection.sampling;
        let modelled = connection.client.is_some();
        let payload = [0, 1].map(|i| {
            let side = &connection.sides[i];
            let payload = connection.payload(i, &ends.hosts, &self.headers);
            let enough = times(payload, n) >= options.min_file && modelled;
            let kept = if enough { payload } else { 0 };
            let wanted = i64::try_from(times(kept, n)).unwrap_or(i64::MAX);
            let spread = i64::try_from(side.spread).unwrap_or(i64::MAX);
            // Only now is it certain how many of the bytes are options, so the payload may have changed.
            timeline.correct(wanted.saturating_sub(spread), side.seen.last);
            if side.seen.packets > 0 && kept == 0 && n <= 1.0 {
                totals.small += 1;
                totals.small_bytes = totals.small_bytes.saturating_add(payload);
            }
            if n > 1.0 { payload } else { kept }
        });
        if n > 1.0 {
            let client = connection
                .client
                .map_or_else(|| connection.guess_client(ends, options), usize::from);
            let observed = [client, 1 - client].map(|i| Observed {
                packets: connection.sides[i].seen.packets,
                flags: connection.sides[i].seen.flags,
                payload: payload[i],
            });
            let tally = self.sampled.entry(n.to_bits());
            tally.or_default().add(observed);
            return;
        }
        let Some(client) = connection.client.map(usize::from) else {
            totals.dropped += 1;
            return;
        };
        let sent = [client, 1 - client].map(|i| connection.sides[i].seen.packets > 0);
        let which = match sent {
            [true, false] => 0,
            [false, _] => 1,
            [true, true] => 2,
        };
        self.one_sided[which] += 1;
        let flags_known = connection.sides.iter().any(|s| s.seen.flags.is_some());
        let headless = flags_known
            && !connection.any(SYN)
            && connection.first().saturating_sub(begin) <= connection.spacing().saturating_mul(3);
        let censored = headless || (cut && !connection.ended());
        totals.censored += u64::from(censored);
        let [up, down] = &mut self.rates_by_size;
        for (sizes, by_size, i) in [
            (&mut self.up, up, client),
            (&mut self.down, down, 1 - client),
        ] {
            let bytes = payload[i];
            match censored {
                true => sizes.censored.add(bytes),
                false => sizes.complete.add(bytes),
            }
            let seen = &connection.sides[i].seen;
            let micros = micros_between(seen.first, seen.last);
            // Records of some exporters have no durations.
            if bytes < LARGE || micros == 0 {
                continue;
            }
            let rate = u128::from(bytes) * 1_000_000 / u128::from(micros);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            by_size.entry(size_class(bytes)).or_default().add(rate);
            if !censored {
                self.rates.add(rate);
            }
        }
    }
}

impl Connection {
    fn seen(&self) -> impl Iterator<Item = &Uniflow> {
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

    /// Adds a record of the direction from a side.
    #[expect(clippy::too_many_arguments, reason = "what the configurator holds")]
    fn take(
        &mut self,
        which: usize,
        piece: &Uniflow,
        record: &Record,
        ends: &Ends,
        options: &Options,
        over: &mut Over,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let known = self.stamps;
        let hosts = &ends.hosts;
        let most = options.capacity;
        self.padding = padding(record.header);
        self.stamps = (over.headers).hear(piece, record.header, known, hosts, which, most);
        let beyond = Uniflow {
            bytes: piece.payload(record.header),
            ..*piece
        };
        // What the connection's other records say about options is not known yet.
        let payload = over
            .headers
            .payload(piece, beyond.bytes, self.stamps, hosts);
        let side = &mut self.sides[which];
        totals.joined += u64::from(side.seen.packets > 0);
        side.seen.join(&beyond);
        let all = times(payload, record.sampling);
        side.spread = side.spread.saturating_add(all);
        if all > 0 {
            timeline.spread(all, piece.first, piece.last);
        }
    }

    /// Payload of a side, as counted.
    fn payload(&self, which: usize, hosts: &[u128; 2], headers: &Headers) -> u64 {
        let [side, other] = [which, 1 - which].map(|i| &self.sides[i].seen);
        let payload = headers.payload(side, side.bytes, self.stamps, hosts);
        match self.stamps {
            Stamps::No => without_padding(payload, side, other, self.padding),
            _ => payload,
        }
    }

    /// The connection's start, as soon as it is accepted into the model: it was accepted by the server, or
    /// carries payload. With a minimum size of a file, it must carry as much.
    fn starts(&mut self, ends: &Ends, headers: &Headers, options: &Options) -> Option<Start> {
        if self.client.is_some() {
            return None;
        }
        let least = options.min_file.max(1);
        let carries = |i| times(self.payload(i, &ends.hosts, headers), self.sampling) >= least;
        let is_one = [0, 1].into_iter().any(carries) || (options.min_file == 0 && self.accepted());
        is_one.then(|| {
            let client = self.guess_client(ends, options);
            // One of two sides.
            self.client = Some(client as u8);
            Start {
                at: self.first(),
                client: ends.hosts[client],
                server: ends.hosts[1 - client],
                sampled: self.sampling > 1.0,
            }
        })
    }

    /// Whether a SYN was answered. Both a SYN/ACK, and a SYN followed by further packets, give flags with
    /// SYN and ACK.
    fn accepted(&self) -> bool {
        self.seen().any(|d| d.has(SYN) && d.has(ACK))
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

    /// Whether pieces of records belong to another connection. They do after a long silence. They also do
    /// with another SYN, after this direction has had one and begun to end, or has sent data.
    fn is_over(&self, pieces: &[Option<Uniflow>; 2], swap: usize, options: &Options) -> bool {
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
            // A direction that has not been seen yet may begin until the other one is over. It may begin a
            // little later if records have lost their durations.
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

    /// The client's side. Options that tell come first, then the most reliable evidence. A SYN without ACK comes from
    /// the client. A well-known port on one side alone is the server's. The client sends first (first packets are exact
    /// in the median, section 3 of the paper; not if sampled). The client's port is the higher one.
    fn guess_client(&self, ends: &Ends, options: &Options) -> usize {
        if let Some(known) = options.client_of(&ends.hosts) {
            return known;
        }
        let [a, b] = [&self.sides[0].seen, &self.sides[1].seen];
        let opens = |d: &Uniflow| d.has(SYN) && !d.has(ACK);
        if opens(a) != opens(b) {
            return usize::from(opens(b));
        }
        // A SYN/ACK and nothing else: samples may be that small.
        let accepts = |d: &Uniflow| d.has(SYN) && d.has(ACK) && d.packets == 1;
        if accepts(a) != accepts(b) {
            return usize::from(accepts(a));
        }
        // Clients of some services bind system ports, too.
        let tells = server_by_port(ends.ports).is_some();
        let known = ends.ports.map(|p| p < 1024 && tells);
        if known[0] != known[1] {
            return usize::from(known[0]);
        }
        if a.packets > 0 && b.packets > 0 && a.first != b.first && self.sampling <= 1.0 {
            return usize::from(b.first < a.first);
        }
        if ends.ports[0] != ends.ports[1] {
            return usize::from(ends.ports[1] > ends.ports[0]);
        }
        usize::from(a.packets == 0)
    }
}
