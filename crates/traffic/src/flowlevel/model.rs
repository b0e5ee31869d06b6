//! The flow-level model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Warning};

use super::law::{Law, Sizes};
use super::playback::Playback;
use super::record::nanos;
use crate::model::Provenance;

/// Maximum number of intervals in a model.
pub(super) const MAX_INTERVALS: usize = 200_000;
/// Connections per interval above which nearly all intervals have their volume within 5 %
/// (docs/flow-model.md).
pub(super) const ENOUGH: u64 = 200;

/// Which arithmetic made a model and plays it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FlowProfile")]
pub enum Profile {
    /// As the paper intends.
    #[default]
    Fixed,
    /// As the released program (2005) does, faults included.
    Harpoon,
}

impl Profile {
    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Fixed => "fixed",
            Profile::Harpoon => "harpoon",
        }
    }
}

/// Traffic as described by flow records.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowModel {
    /// Short name.
    pub name: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// What could not be observed or should be doubted.
    pub warnings: Vec<Warning>,
    /// Which arithmetic it follows.
    pub profile: Profile,
    /// Length of an interval, whole microseconds, not zero.
    pub interval: Dur,
    /// Start of the first interval: nanoseconds on the clock of the records, whole microseconds.
    pub start: i64,
    /// Times of the first and the last packet, on the same clock, whole microseconds. The records may
    /// cover only the later part of the first interval, and only the earlier part of the last one.
    pub span: [i64; 2],
    /// Counts of the records, and what became of them.
    pub totals: FlowTotals,
    /// Estimates from packet-sampled records, by sampling interval.
    pub sampled: Vec<Sampled>,
    /// TCP.
    pub tcp: TcpSessions,
    /// UDP by kind and by which side sends most; ascending by [`UdpSources::order`], each at most once.
    pub udp: Vec<UdpSources>,
}

/// At least this part of an interval counts as covered. A smaller observed part says little about a rate.
const LEAST_SEEN: f64 = 0.1;

impl FlowModel {
    /// Mean rates of payload from and to the clients, bits per second.
    pub fn payload_rates(&self) -> [f64; 2] {
        self.played_rates(&Playback::default())
    }

    /// The same of all intervals, when played so. Compression does not change them.
    pub fn played_rates(&self, playback: &Playback) -> [f64; 2] {
        let (files, datagrams) = self.rates_by_kind(playback);
        [0, 1].map(|d| files[d] + datagrams.iter().map(|of_kind| of_kind[d]).sum::<f64>())
    }

    /// The rates of files, and of each entry of [`FlowModel::udp`].
    fn rates_by_kind(&self, playback: &Playback) -> ([f64; 2], Vec<[f64; 2]>) {
        let seconds = self.duration().as_secs_f64().max(1e-9);
        // Sources of datagrams have no gaps between files.
        let datagrams = playback.load * playback.sizes * 8.0 / seconds;
        let files = datagrams / playback.gaps;
        let of_kind = |u: &UdpSources| {
            let sent = u.bytes.saturating_sub(u.answer_bytes);
            [sent, u.answer_bytes].map(|bytes| bytes as f64 * datagrams)
        };
        (
            [&self.tcp.up, &self.tcp.down].map(|h| h.sum() as f64 * files),
            self.udp.iter().map(of_kind).collect(),
        )
    }

    /// The same between two times of an endless playback ([`Playback::cycle`]), which begins with [`Playback::first`].
    /// An interval counts with its volume and its active datagram sources.
    pub fn played_rates_between(&self, playback: &Playback, from: Dur, to: Dur) -> [f64; 2] {
        let all: Vec<f64> = (0..self.tcp.intervals.len())
            .map(|i| self.seen_of(i).as_secs_f64())
            .collect();
        let played = seconds_played(&all, playback, from, to);
        // The mean rate in the played time, as a multiple of the mean over all intervals.
        let relative = |volume: &[f64]| {
            let sum = |seconds: &[f64]| {
                let rates = volume.iter().zip(&all).map(|(v, s)| v / s.max(1e-9));
                let total: f64 = rates.zip(seconds).map(|(rate, s)| rate * s).sum();
                total / seconds.iter().sum::<f64>()
            };
            let ratio = sum(&played) / sum(&all);
            if ratio.is_finite() { ratio } else { 1.0 }
        };
        let intervals = self.tcp.intervals.iter();
        let volumes: Vec<f64> = match self.is_tuned() {
            true => intervals.map(|i| i.bytes as f64).collect(),
            false => (intervals.zip(&all))
                .map(|(i, s)| i.sessions as f64 * s)
                .collect(),
        };
        let (files, datagrams) = self.rates_by_kind(playback);
        let mut rates = files.map(|rate| rate * relative(&volumes));
        for (of_kind, u) in datagrams.iter().zip(&self.udp) {
            let active: Vec<f64> = (u.active.iter().zip(&all))
                .map(|(&n, s)| n as f64 * s)
                .collect();
            let sent = match u.kind {
                // Sources follow one another, as many as are active.
                UdpKind::Periodic | UdpKind::Exponential => active,
                // Sources that begin in an interval send for their lifetimes.
                UdpKind::ConstantRate | UdpKind::OnOff | UdpKind::Other => {
                    spread(u, &active, &all, playback)
                }
            };
            (0..2).for_each(|d| rates[d] += of_kind[d] * relative(&sent));
        }
        rates
    }

    /// Share of the payload that datagrams carry, 0 to 1.
    pub fn datagram_share(&self) -> f64 {
        let datagrams = self.udp.iter().map(|u| u.bytes as f64).sum::<f64>();
        let all = datagrams + (self.tcp.up.sum() as f64 + self.tcp.down.sum() as f64);
        datagrams / all.max(1.0)
    }

    /// The part of the first interval before the records began, and the part of the last one after they
    /// ended. Zero for the released program, which ignores such parts.
    pub(super) fn edges(&self) -> [Dur; 2] {
        let n = self.tcp.intervals.len() as i64;
        if self.profile == Profile::Harpoon || n == 0 {
            return [Dur::ZERO; 2];
        }
        let width = nanos(self.interval);
        let end = self.start.saturating_add(width.saturating_mul(n));
        let most = self.interval.scale(1.0 - LEAST_SEEN);
        let part = |missing: i64| Dur::from_nanos(u64::try_from(missing).unwrap_or(0)).min(most);
        let [lead, tail] = [
            part(self.span[0].saturating_sub(self.start)),
            part(end.saturating_sub(self.span[1])),
        ];
        // Both in the same interval.
        if n == 1 && lead + tail > most {
            return [lead, most.saturating_sub(lead)];
        }
        [lead, tail]
    }

    /// The part of interval `index` that the records cover.
    pub(super) fn seen_of(&self, index: usize) -> Dur {
        let [lead, tail] = self.edges();
        let mut seen = self.interval;
        if index == 0 {
            seen = seen.saturating_sub(lead);
        }
        if index + 1 == self.tcp.intervals.len() {
            seen = seen.saturating_sub(tail);
        }
        seen
    }

    /// Duration of the records, and of an unscaled playback.
    pub fn duration(&self) -> Dur {
        let [lead, tail] = self.edges();
        let all = self.interval * self.tcp.intervals.len() as u64;
        all.saturating_sub(lead).saturating_sub(tail)
    }
}

/// Number of sources, evenly spaced by their quantiles, that stand for all.
const QUANTILES: usize = 32;
/// Number of starts of a source, evenly spaced in its interval.
const STARTS: usize = 4;

/// What sources send in each interval if they begin in proportion to `begun` and send for their lifetimes. All intervals
/// that are played are a circle, as when they are played. Intervals that are not played keep what begins in them.
fn spread(u: &UdpSources, begun: &[f64], lengths: &[f64], playback: &Playback) -> Vec<f64> {
    let law = |h| Law::new(h, &super::Histogram::default());
    let (Some(volumes), Some(lifetimes)) = (law(&u.volumes), law(&u.lifetimes)) else {
        return begun.to_vec();
    };
    let first = playback.first.min(lengths.len());
    let round: f64 = lengths[first..].iter().sum();
    if round <= 0.0 {
        return begun.to_vec();
    }
    // Begin of each played interval, and the end of the last.
    let mut edges = vec![0.0];
    for length in &lengths[first..] {
        edges.push(edges[edges.len() - 1] + length);
    }
    let sources: Vec<(f64, f64)> = (0..QUANTILES)
        .map(|i| (i as f64 + 0.5) / QUANTILES as f64)
        // A source keeps its own time, however fast the intervals follow one another.
        .map(|q| {
            (
                volumes.quantile(q),
                lifetimes.quantile(q) / 1e6 * playback.compression,
            )
        })
        .collect();
    let all: f64 = sources.iter().map(|s| s.0).sum();
    let mut sent = begun.to_vec();
    sent[first..].fill(0.0);
    // Changes of the rate at the begins of intervals that sources send in from end to end.
    let mut turns = vec![0.0; edges.len()];
    for (i, &n) in begun.iter().enumerate().skip(first) {
        for &(volume, lifetime) in &sources {
            let lasts = lifetime.clamp(1e-6, round);
            let each = n * volume / all.max(1e-9) / STARTS as f64;
            for k in 0..STARTS {
                let at = edges[i - first] + lengths[i] * (k as f64 + 0.5) / STARTS as f64;
                // What is beyond the end of the circle is at its beginning.
                for begin in [at, at - round] {
                    let rate = each / lasts;
                    let (from, to) = (begin.max(0.0), (begin + lasts).min(round));
                    if from >= to {
                        continue;
                    }
                    // Most sources begin and end in interval `i`. Models have many intervals, so searches take long.
                    let own = i - first;
                    let one = match edges[own] <= from && from < edges[own + 1] {
                        true => own,
                        false => edges.partition_point(|&e| e <= from) - 1,
                    };
                    let last = match to <= edges[one + 1] {
                        true => one,
                        false => one + edges[one + 1..].partition_point(|&e| e < to),
                    };
                    if one == last {
                        sent[first + one] += rate * (to - from);
                        continue;
                    }
                    sent[first + one] += rate * (edges[one + 1] - from);
                    sent[first + last] += rate * (to - edges[last]);
                    turns[one + 1] += rate;
                    turns[last] -= rate;
                }
            }
        }
    }
    let mut rate = 0.0;
    for (j, turn) in turns[..edges.len() - 1].iter().enumerate() {
        rate += turn;
        sent[first + j] += rate * lengths[first + j];
    }
    sent
}

/// Seconds of the model's time that each interval is played between two times. `lengths` are those of all intervals.
fn seconds_played(lengths: &[f64], playback: &Playback, from: Dur, to: Dur) -> Vec<f64> {
    let first = playback.first.min(lengths.len());
    let round: f64 = lengths[first..].iter().sum();
    let until = |at: Dur| {
        let at = at.as_secs_f64() * playback.compression;
        let (rounds, within) = ((at / round).floor(), at % round);
        let mut begin = 0.0;
        let seconds = lengths.iter().enumerate().map(move |(i, &length)| {
            if i < first {
                return 0.0;
            }
            let own = rounds * length + (within - begin).clamp(0.0, length);
            begin += length;
            own
        });
        seconds.collect::<Vec<f64>>()
    };
    let played = until(to).into_iter().zip(until(from));
    played.map(|(end, begin)| end - begin).collect()
}

/// An estimate with a standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The estimated number.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Estimate {
    /// The 95 % confidence interval: the score interval of a number in proportion to a Poisson count (L.
    /// Brown, T. Cai & A. DasGupta, Statistica Sinica 13, 2003). The count is the one with the same
    /// relative error. For large counts it equals the normal interval.
    pub fn interval(&self) -> [f64; 2] {
        const Z: f64 = 1.96;
        if self.error <= 0.0 || self.value <= 0.0 {
            return [self.value; 2];
        }
        let count = (self.value / self.error).powi(2);
        let middle = count + Z * Z / 2.0;
        let reach = Z * (count + Z * Z / 4.0).sqrt();
        [middle - reach, middle + reach].map(|c| (c / count * self.value).max(0.0))
    }

    /// The standard error relative to the number; infinite if the number is zero.
    pub fn relative(&self) -> f64 {
        self.error / self.value
    }

    pub(super) fn add(&mut self, other: &Estimate) {
        self.value += other.value;
        self.error = self.error.hypot(other.error);
    }
}

/// What packet-sampled records say about the connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    /// Sampling interval: packets passed per packet sampled, above 1.
    pub interval: f64,
    /// Connections with at least one sampled packet.
    pub seen: u64,
    /// Connections that were accepted, sampled or not. `None` without TCP flags, or if no SYN was sampled:
    /// the model then has only the connections that were seen to carry a file.
    pub connections: Option<Estimate>,
    /// Their payload from and to the client, bytes.
    pub bytes: [Estimate; 2],
    /// Smaller files, in bytes, rarely have more than one sampled packet. Only their number and their sum
    /// are known.
    pub resolved: u64,
}

/// Counts of the records behind a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTotals {
    /// Number of records.
    pub records: u64,
    /// Records that are neither TCP nor UDP, have no packets, or have times too far from all others or far ahead of them.
    pub refused: u64,
    /// Packets, scaled by the sampling interval.
    pub packets: u64,
    /// Bytes as exported, scaled by the sampling interval.
    pub bytes: u64,
    /// Records joined to an earlier one of the same direction of a connection.
    pub joined: u64,
    /// Directions of TCP connections with too little payload for a file: handshakes, scans, ACKs.
    pub small: u64,
    /// Payload of those.
    pub small_bytes: u64,
    /// TCP connections that are not in the model: neither accepted nor with payload, or with less than the
    /// minimum size of a file. Estimated if records are sampled; refused connections are then not
    /// included.
    #[serde(default)]
    pub dropped: u64,
    /// TCP connections whose beginning or end was not observed.
    pub censored: u64,
    /// Flows, hosts and sources evicted early because a table was full.
    pub evicted: u64,
    /// Connections that arrived too late to be ordered for a gap.
    pub late: u64,
}

/// Minimum size of a file, in bytes, for a transfer rate to be learnt. Slow start takes most of the time
/// of smaller files.
pub const LARGE: u64 = 1 << 16;

/// Transfer rates of files, bytes per second, by [`size_class`].
pub type RatesBySize = std::collections::BTreeMap<u8, super::Histogram>;

/// The class of files with this number of bytes: the whole part of its binary logarithm.
pub const fn size_class(bytes: u64) -> u8 {
    // At most 63.
    (63 - (bytes | 1).leading_zeros()) as u8
}

/// TCP: sessions of connections, each of which carries a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpSessions {
    /// Payload from the client to the server of each connection, bytes.
    pub up: Sizes,
    /// Payload from the server to the client of each connection, bytes.
    pub down: Sizes,
    /// From the start of a connection to that of the next in its session, microseconds.
    pub gaps: super::Histogram,
    /// Sessions by client.
    pub sources: Popularity,
    /// Sessions by server.
    pub destinations: Popularity,
    /// Transfer rates of files of [`LARGE`] bytes and more, bytes per second. Sampled records contribute
    /// none.
    pub rates: super::Histogram,
    /// The same by size, of files to the server and to the client, and also of those that were not seen whole.
    pub rates_by_size: [RatesBySize; 2],
    /// The intervals from [`FlowModel::start`] on, without holes.
    pub intervals: Vec<Interval>,
}

/// An interval of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// TCP connections that began.
    pub connections: u64,
    /// Payload of TCP connections transferred in it, both directions.
    pub bytes: u64,
    /// Sessions that were observed to be active.
    pub seen: u64,
    /// Sessions to keep active so that the bytes are carried: see [`FlowModel::tune`].
    pub sessions: u64,
}

/// How often each of a set of hosts was chosen, by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Popularity {
    /// Count, and number of ranks that have it; counts strictly descending, neither is zero.
    pub ranks: Vec<(u64, u64)>,
}

impl Popularity {
    /// From the counts of hosts, in any order.
    pub fn new(counts: impl IntoIterator<Item = u64>) -> Popularity {
        let mut counts: Vec<u64> = counts.into_iter().filter(|&c| c > 0).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut ranks: Vec<(u64, u64)> = Vec::new();
        for count in counts {
            match ranks.last_mut() {
                Some((c, n)) if *c == count => *n += 1,
                _ => ranks.push((count, 1)),
            }
        }
        Popularity { ranks }
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u64 {
        self.ranks.iter().fold(0, |n, r| n.saturating_add(r.1))
    }

    /// Total number of choices.
    pub fn total(&self) -> u64 {
        self.ranks
            .iter()
            .fold(0, |n, r| n.saturating_add(r.0.saturating_mul(r.1)))
    }
}

/// How a UDP source spaces its datagrams or exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UdpKind {
    /// A stream of datagrams at a constant rate.
    ConstantRate,
    /// Streams with silences between them.
    OnOff,
    /// One exchange per period.
    Periodic,
    /// Exchanges at independent, exponentially distributed intervals.
    Exponential,
    /// None of these, or too few exchanges to tell.
    Other,
}

impl UdpKind {
    /// All kinds.
    pub const ALL: [UdpKind; 5] = [
        UdpKind::ConstantRate,
        UdpKind::OnOff,
        UdpKind::Periodic,
        UdpKind::Exponential,
        UdpKind::Other,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            UdpKind::ConstantRate => "constant-rate",
            UdpKind::OnOff => "on-off",
            UdpKind::Periodic => "periodic",
            UdpKind::Exponential => "exponential",
            UdpKind::Other => "other",
        }
    }
}

/// UDP sources of one kind whose servers send a similar share of the datagrams. A source is a client, a server
/// and the server's port.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpSources {
    /// Their kind.
    pub kind: UdpKind,
    /// Number of sources.
    pub sources: u64,
    /// Exchanges or streams of all of them, each with the datagrams of both sides.
    pub flows: u64,
    /// Datagrams.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Datagrams that the servers sent.
    pub answers: u64,
    /// Payload bytes of those.
    pub answer_bytes: u64,
    /// Mean time between the exchanges of each source with at least two; for constant-rate and on-off sources,
    /// between the datagrams of the side that sends more, within a stream. Microseconds.
    pub spacing: super::Histogram,
    /// Duration of each stream of on-off sources; for others, the mean duration of each source's exchanges.
    /// Microseconds.
    pub durations: super::Histogram,
    /// Silences between the streams of on-off sources, microseconds; empty for others.
    pub pauses: super::Histogram,
    /// Mean datagram payload of each source, bytes.
    pub datagrams: super::Histogram,
    /// Payload of each source, bytes.
    pub volumes: super::Histogram,
    /// How long each source was observed, microseconds.
    pub lifetimes: super::Histogram,
    /// Sources alive in each interval, from [`FlowModel::start`] on; as many entries as TCP intervals.
    pub active: Vec<u64>,
}

impl UdpSources {
    /// Order of the entries of a model: by kind, then by the servers' share of the datagrams.
    pub fn order(&self) -> (UdpKind, u8) {
        (self.kind, share_class(self.answers, self.packets))
    }
}

/// Class of the servers' share of datagrams: none, less than a quarter, up to three quarters, more, all. The sum of
/// two entries of a class is in the same class.
pub(super) fn share_class(answers: u64, packets: u64) -> u8 {
    let (answered, all) = (u128::from(answers), u128::from(packets));
    match answered {
        0 => 0,
        n if n >= all => 4,
        n if 4 * n < all => 1,
        n if 4 * n <= 3 * all => 2,
        _ => 3,
    }
}
