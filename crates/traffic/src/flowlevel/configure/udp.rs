//! UDP sources and their kinds.
//!
//! A source is a client, a server and the server's port; an exchange is one of its flows. The times
//! between exchanges decide the kind. A coefficient of variation of at most 0.1 is periodic. A
//! distribution is exponential if two statistics match within three standard errors and 0.3. The first is
//! the coefficient of variation (1). The second is the difference between the logarithm of the mean and
//! the mean logarithm (Euler's constant). Flows of many datagrams are streams. A stream counts as
//! constant-rate unless the rates of its records differ with a coefficient of variation above 0.1.

use std::collections::BTreeMap;

use super::super::model::{FlowTotals, UdpKind, UdpSources};
use super::super::record::{Direction, Record, micros_between};
use super::table::Table;
use super::{Options, Timeline};

/// Minimum number of datagrams per flow for a stream.
const STREAM: u64 = 10;
/// Minimum number of gaps to identify a distribution.
const ENOUGH: f64 = 8.0;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;
/// Minimum duration of a stream's record, nanoseconds; shorter ones say little about a rate.
const LONG: i64 = 1_000_000_000;

/// A client, a server and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends(u128, u128, u16);

#[derive(Debug, Default)]
pub(super) struct Sources {
    open: Table<Ends, Source>,
    done: BTreeMap<UdpKind, Done>,
}

/// Finished sources of a kind.
#[derive(Debug)]
struct Done {
    sources: UdpSources,
    /// Change of the number of active sources at the start of an interval.
    changes: BTreeMap<i64, i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    flows: u64,
    packets: u64,
    bytes: u64,
    /// The server's part of those.
    answers: u64,
    answer_bytes: u64,
    first: i64,
    last: i64,
    /// Start of the latest exchange.
    latest: i64,
    gaps: Moments,
    rates: Moments,
    /// Total duration of streams, nanoseconds.
    streamed: i64,
}

/// Moments of positive numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
    logs: f64,
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
        self.logs += libm::log(x.max(1e-300));
    }

    fn mean(&self) -> f64 {
        self.sum / self.n.max(1.0)
    }

    /// Coefficient of variation: standard deviation over mean.
    fn cov(&self) -> f64 {
        let mean = self.mean();
        let variance = (self.squares / self.n.max(1.0) - mean * mean).max(0.0);
        if mean > 0.0 {
            variance.sqrt() / mean
        } else {
            0.0
        }
    }

    fn exponential(&self) -> bool {
        // For n exponential values, the coefficient of variation has a standard error of 1/sqrt(n), the
        // difference of logarithms one of sqrt((pi^2/6 - 1)/n) = 0.803/sqrt(n) (delta method).
        let error = 3.0 / self.n.sqrt();
        (self.cov() - 1.0).abs() <= error.min(0.3)
            && (libm::log(self.mean()) - self.logs / self.n - EULER).abs()
                <= (0.803 * error).min(0.3)
    }
}

impl Sources {
    pub(super) fn add(
        &mut self,
        record: &Record,
        options: &Options,
        totals: &mut FlowTotals,
        timeline: &mut Timeline,
    ) {
        let (from, to) = (
            (record.source, record.source_port),
            (record.destination, record.destination_port),
        );
        let forth = Ends(from.0, to.0, to.1);
        let back = Ends(to.0, from.0, from.1);
        // A known source stays the source, and packets to it are replies. Otherwise the lower port is the
        // server's.
        let reply =
            self.open.get(&forth).is_none() && (self.open.get(&back).is_some() || from.1 < to.1);
        let key = if reply { back } else { forth };
        self.open.update(key, |source| {
            source.take(&record.forward, record.header, !reply);
            if let Some(reverse) = record.reverse.filter(|r| r.packets > 0) {
                source.take(&reverse, record.header, reply);
            }
            (source.last, ())
        });
        // The timeline covers an active source even where TCP has nothing.
        for side in [Some(record.forward), record.reverse].into_iter().flatten() {
            timeline.stand_at(side.first);
            timeline.stand_at(side.last);
        }
        if self.open.len() > options.capacity
            && let Some((_, victim)) = self.open.pop_oldest()
        {
            totals.evicted += 1;
            self.end(&victim, timeline);
        }
    }

    fn end(&mut self, source: &Source, timeline: &Timeline) {
        let kind = source.kind();
        let done = self.done.entry(kind).or_insert_with(|| Done {
            sources: UdpSources::empty(kind, 0),
            changes: BTreeMap::new(),
        });
        let s = &mut done.sources;
        s.sources += 1;
        s.flows = s.flows.saturating_add(source.flows);
        s.packets = s.packets.saturating_add(source.packets);
        s.bytes = s.bytes.saturating_add(source.bytes);
        s.answers = s.answers.saturating_add(source.answers);
        s.answer_bytes = s.answer_bytes.saturating_add(source.answer_bytes);
        let lifetime = micros_between(source.first, source.last);
        if kind == UdpKind::ConstantRate {
            let gaps = source.packets.saturating_sub(source.flows).max(1);
            s.spacing
                .add(u64::try_from(source.streamed).unwrap_or(0) / 1_000 / gaps);
        } else if source.gaps.n > 0.0 {
            // Rounded, because half a microsecond matters for a spacing of a few.
            s.spacing.add((source.gaps.mean() / 1e3 + 0.5) as u64);
        }
        s.datagrams.add(source.bytes / source.packets.max(1));
        s.volumes.add(source.bytes);
        s.lifetimes.add(lifetime);
        *done
            .changes
            .entry(timeline.index(source.first))
            .or_default() += 1;
        *done
            .changes
            .entry(timeline.index(source.last) + 1)
            .or_default() -= 1;
    }

    /// All kinds that occurred, over `intervals` from `first` on.
    pub(super) fn finish(
        &mut self,
        timeline: &Timeline,
        first: i64,
        intervals: usize,
    ) -> Vec<UdpSources> {
        for (_, source) in self.open.take_all() {
            self.end(&source, timeline);
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
    fn take(&mut self, piece: &Direction, header: u32, asks: bool) {
        if self.packets == 0 {
            (self.first, self.last) = (piece.first, piece.last);
        }
        self.first = self.first.min(piece.first);
        self.last = self.last.max(piece.last);
        self.packets = self.packets.saturating_add(piece.packets);
        let payload = piece.payload(header);
        self.bytes = self.bytes.saturating_add(payload);
        if !asks {
            self.answers = self.answers.saturating_add(piece.packets);
            self.answer_bytes = self.answer_bytes.saturating_add(payload);
        }
        let length = piece.last - piece.first;
        if piece.packets >= STREAM && length >= LONG {
            self.rates.add(payload as f64 / length as f64);
            self.streamed = self.streamed.saturating_add(length);
        }
        // Replies are no exchanges of their own.
        if asks || self.flows == 0 {
            if self.flows > 0 && piece.first > self.latest {
                self.gaps.add((piece.first - self.latest) as f64);
            }
            self.latest = self.latest.max(piece.first);
            self.flows += 1;
        }
    }

    fn kind(&self) -> UdpKind {
        if self.rates.n > 0.0 && self.packets / self.flows.max(1) >= STREAM {
            return if self.rates.cov() <= 0.1 {
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
