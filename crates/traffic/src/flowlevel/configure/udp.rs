//! UDP sources and their kinds.
//!
//! A source is a client, a server and the server's port; an exchange is one of its flows, with the records of both
//! directions. The times between exchanges decide the kind. A coefficient of variation of at most 0.1 is periodic. A
//! distribution is exponential if two statistics match within three standard errors and 0.3. The first is
//! the coefficient of variation (1). The second is the difference between the logarithm of the mean and
//! the mean logarithm (Euler's constant). Flows of many datagrams are streams. Streams with silences between them
//! are on-off. Others count as constant-rate unless the rates of their records differ with a coefficient of
//! variation above 0.1.

use std::collections::{BTreeMap, VecDeque};

use super::super::histogram::Histogram;
use super::super::model::{FlowTotals, UdpKind, UdpSources, share_class};
use super::super::record::{Record, micros_between};
use super::exchanges::{Exchange, Exchanges, Sent, Transport};
use super::moments::{Moments, STREAM};
use super::options::Options;
use super::table::Table;
use super::timeline::Timeline;

/// Minimum number of gaps to identify a distribution.
const ENOUGH: f64 = 8.0;
/// A source whose streams leave less than this part of its lifetime silent has no silences.
const SILENT: f64 = 0.02;

/// A client, a server and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends(u128, u128, u16);

#[derive(Debug, Default)]
pub(super) struct Sources {
    exchanges: Exchanges,
    open: Table<Ends, Source>,
    /// Finished sources by kind and share of the servers.
    done: BTreeMap<(UdpKind, u8), Done>,
}

/// Finished sources of a kind.
#[derive(Debug)]
struct Done {
    sources: UdpSources,
    /// Change of the number of active sources at the start of an interval.
    changes: BTreeMap<i64, i64>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    flows: u64,
    /// Datagrams and payload bytes of the client and of the server.
    packets: [u64; 2],
    bytes: [u64; 2],
    first: i64,
    last: i64,
    /// Start of the latest exchange.
    latest: i64,
    gaps: Moments,
    /// Rates of the records of streams, from the client and from the server.
    rates: [Moments; 2],
    /// Total duration of the exchanges, nanoseconds.
    lasted: i64,
    /// Stretches of time without silence, in order. Exchanges are taken as they end, so a long one may join earlier ones.
    busy: VecDeque<[i64; 2]>,
    /// Stretches that were counted: how many, and nanoseconds in all.
    stretches: u64,
    busied: i64,
    silent: i64,
    /// Microseconds of stretches and of silences, from the first stream on.
    spans: Option<Box<[Histogram; 2]>>,
}

/// Most stretches of a source that are kept for exchanges that may join them.
const STRETCHES: usize = 256;

impl Sources {
    pub(super) fn add(
        &mut self,
        record: &Record,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        // The timeline covers an active source even where TCP has nothing.
        for side in [Some(record.forward), record.reverse].into_iter().flatten() {
            timeline.stand_at(side.first);
            timeline.stand_at(side.last);
        }
        for (ends, exchange) in self.exchanges.add(record, options.capacity, totals) {
            self.take(&ends, &exchange, options, begin, totals, timeline);
        }
    }

    /// Takes the exchanges that no future record can change: those that ended before `settled`.
    pub(super) fn settle(
        &mut self,
        settled: i64,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        for (ends, exchange) in self.exchanges.settle(settled) {
            self.take(&ends, &exchange, options, begin, totals, timeline);
        }
    }

    fn take(
        &mut self,
        ends: &Transport,
        exchange: &Exchange,
        options: &Options,
        begin: i64,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let of = |client: usize| {
            Ends(
                ends.hosts[client],
                ends.hosts[1 - client],
                ends.ports[1 - client],
            )
        };
        // A known source stays the source, and packets to it are replies.
        let known = options.client_of(&ends.hosts);
        let guess = known.unwrap_or_else(|| exchange.client(ends, begin));
        let client = match known.is_none()
            && self.open.get(&of(guess)).is_none()
            && self.open.get(&of(1 - guess)).is_some()
        {
            true => 1 - guess,
            false => guess,
        };
        self.open.update(of(client), |source| {
            source.take(exchange, client);
            (source.last, ())
        });
        if self.open.len() > options.capacity
            && let Some((_, victim)) = self.open.pop_oldest()
        {
            totals.evicted += 1;
            self.end(victim, timeline);
        }
    }

    fn end(&mut self, mut source: Source, timeline: &Timeline) {
        while !source.busy.is_empty() {
            source.count_first();
        }
        let kind = source.kind();
        let [packets, bytes] = [source.packets, source.bytes].map(|n| n[0].saturating_add(n[1]));
        let class = share_class(source.packets[1], packets);
        let done = self.done.entry((kind, class)).or_insert_with(|| Done {
            sources: UdpSources::empty(kind, 0),
            changes: BTreeMap::new(),
        });
        let s = &mut done.sources;
        s.sources += 1;
        for (into, from) in [
            (&mut s.flows, source.flows),
            (&mut s.packets, packets),
            (&mut s.bytes, bytes),
            (&mut s.answers, source.packets[1]),
            (&mut s.answer_bytes, source.bytes[1]),
        ] {
            *into = into.saturating_add(from);
        }
        let micros = |nanos: i64| u64::try_from(nanos).unwrap_or(0) / 1_000;
        // Rounded, because half a microsecond matters for a spacing of a few.
        if matches!(kind, UdpKind::ConstantRate | UdpKind::OnOff) {
            let most = source.packets[0].max(source.packets[1]);
            let gaps = most.saturating_sub(source.stretches).max(1);
            s.spacing
                .add(micros(source.busied).saturating_add(gaps / 2) / gaps);
        } else if source.gaps.n > 0.0 {
            s.spacing.add((source.gaps.mean() / 1e3 + 0.5) as u64);
        }
        match source.spans.filter(|_| kind == UdpKind::OnOff) {
            Some(spans) => {
                s.durations.merge(&spans[0]);
                s.pauses.merge(&spans[1]);
            }
            None => s.durations.add(micros(source.lasted) / source.flows.max(1)),
        }
        s.datagrams
            .add(bytes.saturating_add(packets / 2) / packets.max(1));
        s.volumes.add(bytes);
        s.lifetimes.add(micros_between(source.first, source.last));
        *done
            .changes
            .entry(timeline.index(source.first))
            .or_default() += 1;
        *done
            .changes
            .entry(timeline.index(source.last) + 1)
            .or_default() -= 1;
    }

    /// All kinds that occurred, over `intervals` from `first` on. All exchanges have been settled.
    pub(super) fn finish(
        &mut self,
        timeline: &Timeline,
        first: i64,
        intervals: usize,
    ) -> Vec<UdpSources> {
        for (_, source) in self.open.take_all() {
            self.end(source, timeline);
        }
        std::mem::take(&mut self.done)
            .into_values()
            .map(|done| {
                let mut alive = 0i64;
                let active = (first..)
                    .take(intervals)
                    .map(|i| {
                        alive += done.changes.get(&i).copied().unwrap_or(0);
                        u64::try_from(alive).unwrap_or(0)
                    })
                    .collect();
                UdpSources {
                    active,
                    ..done.sources
                }
            })
            .collect()
    }
}

impl Source {
    fn take(&mut self, exchange: &Exchange, client: usize) {
        let [first, last] = [exchange.first, exchange.last];
        if self.flows == 0 {
            (self.first, self.last) = (first, last);
        }
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        for (side, of) in [client, 1 - client].into_iter().enumerate() {
            let sent = &exchange.sides[of];
            self.packets[side] = self.packets[side].saturating_add(sent.packets);
            self.bytes[side] = self.bytes[side].saturating_add(sent.payload);
            self.rates[side].join(&sent.rates);
        }
        if self.spans.is_none() && exchange.sides.iter().any(Sent::is_stream) {
            self.spans = Some(Box::default());
        }
        self.lasted = self.lasted.saturating_add(last - first);
        if self.flows > 0 && first > self.latest {
            self.gaps.add((first - self.latest) as f64);
        }
        self.latest = self.latest.max(first);
        self.flows += 1;
        self.occupy([first, last]);
    }

    /// Adds a time without silence, and joins it with those that it meets.
    fn occupy(&mut self, mut new: [i64; 2]) {
        let from = self.busy.partition_point(|b| b[1] < new[0]);
        let to = self.busy.partition_point(|b| b[0] <= new[1]);
        if from < to {
            new = [
                new[0].min(self.busy[from][0]),
                new[1].max(self.busy[to - 1][1]),
            ];
            self.busy.drain(from..to);
        }
        self.busy.insert(from, new);
        if self.busy.len() > STRETCHES {
            self.count_first();
        }
    }

    /// Counts the earliest stretch, and the silence after it.
    fn count_first(&mut self) {
        let Some([begin, end]) = self.busy.pop_front() else {
            return;
        };
        let silence = self.busy.front().map_or(0, |next| next[0] - end);
        self.stretches += 1;
        self.busied = self.busied.saturating_add(end - begin);
        self.silent = self.silent.saturating_add(silence);
        if let Some(spans) = &mut self.spans {
            let micros = |nanos: i64| u64::try_from(nanos).unwrap_or(0) / 1_000;
            spans[0].add(micros(end - begin));
            if silence > 0 {
                spans[1].add(micros(silence));
            }
        }
    }

    fn kind(&self) -> UdpKind {
        let most = usize::from(self.packets[1] > self.packets[0]);
        let packets = self.packets[0].saturating_add(self.packets[1]);
        if self.rates[most].n > 0.0 && packets / self.flows.max(1) >= STREAM {
            let silent = self.silent as f64 > SILENT * (self.last - self.first) as f64;
            return if silent && self.spans.as_ref().is_some_and(|s| !s[1].is_empty()) {
                UdpKind::OnOff
            } else if self.rates[most].cov() <= 0.1 {
                UdpKind::ConstantRate
            } else {
                UdpKind::Other
            };
        }
        if self.gaps.n < ENOUGH {
            UdpKind::Other
        } else if self.gaps.cov() <= 0.1 {
            UdpKind::Periodic
        } else if self.gaps.exponential() {
            UdpKind::Exponential
        } else {
            UdpKind::Other
        }
    }
}
