//! Self-configuration: makes a model from flow records, in one pass and bounded memory.

use std::collections::{BTreeMap, VecDeque};

use swell_base::Dur;

use super::model::{FlowModel, FlowTotals, Profile, TcpSessions};
use super::record::{Record, TCP, UDP, nanos, times};
use crate::model::Provenance;

mod connections;
mod doubts;
mod exchanges;
mod headers;
mod inversion;
mod moments;
mod options;
mod popularity;
mod released;
mod repeats;
mod sessions;
mod table;
mod timeline;
mod udp;

use connections::Connections;
use doubts::{Doubtful, doubts};
pub use options::{Network, Options, Order};
use released::Released;
use repeats::Repeats;
use sessions::Sessions;
use timeline::Timeline;
use udp::Sources;

/// Why records gave no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// No records.
    #[error("there are no flow records")]
    Empty,
    /// No record could be modelled.
    #[error(
        "none of {records} flow records is of a TCP connection that was accepted or has payload ({min_file} bytes \
         at least), or of a UDP flow ({small} TCP flows have less; {}): check that the records are of the \
         traffic meant", protocols(.others)
    )]
    Nothing {
        /// Number of records.
        records: u64,
        /// Number of TCP flows that were too small.
        small: u64,
        /// The limit.
        min_file: u64,
        /// Numbers of other IP protocols, with their packets.
        others: Vec<(u8, u64)>,
    },
}

/// Packets of other protocols, as a message names them.
fn protocols(others: &[(u8, u64)]) -> String {
    if others.is_empty() {
        return "no packets are of other protocols".into();
    }
    let one = |(protocol, packets): &(u8, u64)| match protocol {
        // Hop-by-hop options of IPv6 (RFC 8200), which no exporter names: a table has no such column, or an empty one.
        0 => format!(
            "{packets} packets are of IP protocol 0: their records name none, so a table needs a column `protocol`"
        ),
        _ => format!("{packets} packets are of IP protocol {protocol}"),
    };
    others.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Exporters encode sampling intervals in 32 bits (IPFIX element 34).
const LONGEST_SAMPLING: f64 = u32::MAX as f64;
/// Number of records that decide together around which time the model is.
const EARLY: usize = 64;

/// Records that begin further ahead of the clock may have wrong times. They are held until it is clear whether the
/// others follow.
const LEAP: i64 = 86_400 * 1_000_000_000;
/// A few records at the end that are further ahead have wrong times. Others come after a pause.
const PAUSE: i64 = 30 * LEAP;
/// How many held records are refused for each one that is not ahead. So two of three records must be ahead before the
/// clock follows them.
const REFUSED: usize = 2;

/// Makes a [`FlowModel`] from flow records.
#[derive(Debug)]
pub struct Configurator {
    options: Options,
    totals: FlowTotals,
    timeline: Timeline,
    connections: Connections,
    sessions: Sessions,
    released: Released,
    sources: Sources,
    /// The first records, held until the timeline is placed.
    early: Vec<Record>,
    /// Records far ahead of the clock.
    ahead: VecDeque<Record>,
    /// The median time of the first records.
    median: Option<i64>,
    /// Latest first packet so far. `longest` is the duration of the longest record.
    clock: Option<i64>,
    begin: i64,
    end: i64,
    longest: i64,
    doubtful: Doubtful,
    repeats: Repeats,
    /// Packets of protocols that are not modelled.
    others: BTreeMap<u8, u64>,
}

impl Configurator {
    /// Creates a configurator that has seen no records.
    pub fn new(options: Options) -> Configurator {
        let micros = (options.interval.as_nanos() / 1_000).clamp(1, u64::MAX / 2_000);
        let options = Options {
            interval: Dur::from_micros(micros),
            capacity: options.capacity.clamp(16, 1 << 31),
            ..options
        };
        Configurator {
            options,
            totals: FlowTotals::default(),
            timeline: Timeline::new(&options),
            connections: Connections::default(),
            sessions: Sessions::new(options.capacity),
            released: Released::new(options.capacity),
            sources: Sources::default(),
            early: Vec::new(),
            ahead: VecDeque::new(),
            median: None,
            clock: None,
            begin: i64::MAX,
            end: i64::MIN,
            longest: 0,
            doubtful: Doubtful::default(),
            repeats: Repeats::default(),
            others: BTreeMap::new(),
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        self.totals.records += 1;
        let mut record = *record;
        if record.sampling.is_nan() || record.sampling <= 1.0 {
            record.sampling = 1.0;
        }
        let mut sides = [Some(record.forward), record.reverse].into_iter().flatten();
        let good = record.forward.packets > 0
            && matches!(record.protocol, TCP | UDP)
            && record.sampling <= LONGEST_SAMPLING
            && sides.all(|d| d.last >= d.first);
        if !matches!(record.protocol, TCP | UDP) {
            let back = record.reverse.map_or(0, |r| r.packets);
            let packets = self.others.entry(record.protocol).or_default();
            *packets = packets.saturating_add(record.forward.packets.saturating_add(back));
        }
        if !good {
            self.totals.refused += 1;
        } else if self.timeline.placed() {
            self.sort(&record);
        } else {
            self.early.push(record);
            if self.early.len() >= EARLY {
                self.place();
            }
        }
    }

    /// Places the timeline around the first records and takes them. The median is used because a clock may
    /// not have been set when it stamped the very first.
    fn place(&mut self) {
        let early = std::mem::take(&mut self.early);
        // The time of the last packet is more reliable: some exporters lose that of the first.
        let mut stamps: Vec<i64> = early.iter().map(|r| r.forward.last).collect();
        stamps.sort_unstable();
        if let Some(&median) = stamps.get(stamps.len() / 2) {
            self.timeline.place(median);
            self.median = Some(median);
        }
        early.iter().for_each(|r| self.sort(r));
    }

    /// Takes a record, unless it is far ahead of the clock. One wrong record would otherwise move the clock, and all
    /// that follow would be late.
    fn sort(&mut self, record: &Record) {
        if !self.leaps(record, LEAP) {
            for _ in 0..self.ahead.len().min(REFUSED) {
                self.ahead.pop_front();
                self.totals.refused += 1;
                self.doubtful.ahead += 1;
            }
            return self.take(record);
        }
        self.ahead.push_back(*record);
        if self.ahead.len() >= EARLY {
            // The time has changed for all: after a pause, or because the clock was set.
            std::mem::take(&mut self.ahead)
                .iter()
                .for_each(|r| self.take(r));
        }
    }

    /// Whether a record begins more than `by` after the clock.
    fn leaps(&self, record: &Record, by: i64) -> bool {
        let sides = [Some(record.forward), record.reverse];
        let first = sides.into_iter().flatten().map(|d| d.first).max();
        let limit = self.clock.or(self.median);
        let limit = limit.map(|clock| clock.saturating_add(by));
        first.zip(limit).is_some_and(|(first, limit)| first > limit)
    }

    /// Takes the records that are far ahead at the end, unless they are few beside the others.
    fn take_last(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        let few = (ahead.len() as u64).saturating_mul(EARLY as u64) < self.totals.records;
        for record in &ahead {
            if few && self.leaps(record, PAUSE) {
                self.totals.refused += 1;
                self.doubtful.ahead += 1;
            } else {
                self.take(record);
            }
        }
    }

    fn take(&mut self, record: &Record) {
        let sides = [Some(record.forward), record.reverse];
        let stamps = sides.into_iter().flatten().flat_map(|d| [d.last, d.first]);
        if !self.timeline.take(stamps) {
            self.totals.refused += 1;
            self.doubtful.beyond += 1;
            return;
        }
        self.doubtful.sampled += u64::from(record.sampling > 1.0);
        let ends = sides.into_iter().flatten().map(|d| d.last).max();
        let late = ends.zip(self.settled()).is_some_and(|(end, by)| end < by);
        self.doubtful.late += u64::from(late);
        // Of a sampled packet alone (sFlow) nothing tells a copy from the next packet of the same size.
        let alone = record.sampling > 1.0 && record.forward.packets == 1;
        let seen = (!alone).then(|| self.repeats.look(record));
        for side in sides.into_iter().flatten() {
            let n = record.sampling;
            self.totals.packets = self.totals.packets.saturating_add(times(side.packets, n));
            self.totals.bytes = self.totals.bytes.saturating_add(times(side.bytes, n));
            self.clock = self.clock.max(Some(side.first));
            self.begin = self.begin.min(side.first);
            self.end = self.end.max(side.last);
            self.longest = self.longest.max(side.last - side.first);
        }
        if record.protocol == TCP {
            self.doubtful.without_flags += u64::from(record.forward.flags.is_none());
        }
        match (self.options.profile, record.protocol) {
            (Profile::Harpoon, TCP) => self.released.add(&record.scaled(), &mut self.totals),
            // The released program ignores everything except TCP.
            (Profile::Harpoon, _) => self.totals.refused += 1,
            (Profile::Fixed, TCP) => self.add_tcp(record),
            (Profile::Fixed, _) => self.sources.add(
                record,
                &self.options,
                self.begin,
                &mut self.totals,
                &mut self.timeline,
            ),
        }
        let repeated = seen.is_some_and(|s| self.repeats.has(s));
        self.doubtful.repeated += u64::from(repeated);
        self.advance();
    }

    fn add_tcp(&mut self, record: &Record) {
        let began = self.connections.add(
            record,
            &self.options,
            self.begin,
            &mut self.totals,
            &mut self.timeline,
        );
        if let Some(start) = began {
            self.timeline.begin(&start);
            self.sessions
                .push(start, &self.options, &mut self.totals, &mut self.timeline);
        }
    }

    /// How far a record in order may begin behind the clock, nanoseconds.
    fn held(&self) -> i64 {
        match self.options.order {
            Order::End => self.longest,
            Order::Start => 0,
        }
    }

    /// The time before which no further record can change anything.
    fn settled(&self) -> Option<i64> {
        let settled = self.clock?.saturating_sub(self.held());
        Some(settled.saturating_sub(nanos(self.options.idle)))
    }

    /// Settles everything that no future record can change.
    fn advance(&mut self) {
        let Some((clock, settled)) = self.clock.zip(self.settled()) else {
            return;
        };
        let held = self.held();
        match self.options.profile {
            Profile::Fixed => {
                self.connections.expire(
                    settled,
                    &self.options,
                    self.begin,
                    &mut self.totals,
                    &mut self.timeline,
                );
                self.sessions
                    .release(settled, &self.options, &mut self.totals, &mut self.timeline);
                self.settle_datagrams(settled);
            }
            Profile::Harpoon => self.released.release(
                clock.saturating_sub(held),
                &mut self.totals,
                &mut self.timeline,
            ),
        }
    }

    fn settle_datagrams(&mut self, settled: i64) {
        self.sources.settle(
            settled,
            &self.options,
            self.begin,
            &mut self.totals,
            &mut self.timeline,
        );
    }

    /// Returns the model of all records.
    ///
    /// # Errors
    /// If there was nothing to model.
    pub fn finish(
        mut self,
        name: &str,
        provenance: Provenance,
    ) -> Result<FlowModel, ConfigureError> {
        self.place();
        self.take_last();
        let over = self.connections.finish(
            &self.options,
            self.begin,
            &mut self.totals,
            &mut self.timeline,
        );
        self.sessions.release(
            i64::MAX,
            &self.options,
            &mut self.totals,
            &mut self.timeline,
        );
        self.released
            .release(i64::MAX, &mut self.totals, &mut self.timeline);
        self.released.finish(&mut self.timeline);
        self.settle_datagrams(i64::MAX);
        let (first, mut intervals) = self.timeline.dense();
        let udp = self.sources.finish(&self.timeline, first, intervals.len());
        let fixed = self.options.profile == Profile::Fixed;
        let ([mut up, mut down], rates, rates_by_size) = over.laws();
        if !fixed {
            down = self.released.sizes;
        }
        self.doubtful.sides = over.one_sided;
        let mut sampled = Vec::new();
        let mut inverted = 0;
        for (interval, tally) in over.sampled {
            let undone = tally.invert(f64::from_bits(interval), self.options.min_file);
            inverted += undone.files;
            self.totals.dropped += undone.dropped;
            up.complete.merge(&undone.sizes[0]);
            down.complete.merge(&undone.sizes[1]);
            sampled.push(undone.known);
        }
        self.timeline.multiply(&mut intervals, inverted);
        let sessions = if fixed {
            self.sessions
        } else {
            self.released.sessions
        };
        let files = down.count();
        if self.totals.records == 0 {
            return Err(ConfigureError::Empty);
        }
        if files == 0 && udp.is_empty() {
            return Err(ConfigureError::Nothing {
                records: self.totals.records,
                small: self.totals.small,
                min_file: self.options.min_file,
                others: self.others.into_iter().collect(),
            });
        }
        let mut model = FlowModel {
            name: name.to_string(),
            provenance,
            warnings: Vec::new(),
            profile: self.options.profile,
            interval: self.options.interval,
            start: self.timeline.time_of(first),
            // Files hold whole microseconds.
            span: [self.begin, self.end].map(|t| t.div_euclid(1_000) * 1_000),
            totals: self.totals,
            sampled,
            tcp: TcpSessions {
                up,
                down,
                gaps: sessions.gaps.histogram(),
                sources: sessions.clients.popularity(),
                destinations: sessions.servers.popularity(),
                rates,
                rates_by_size,
                intervals,
            },
            udp,
        };
        model.warnings = doubts(&model, &self.doubtful);
        model.tune();
        Ok(model)
    }
}
