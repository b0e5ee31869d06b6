//! Self-configuration: flow records in, model out, in one pass and bounded memory.

use std::collections::BTreeMap;

use swell_base::{Dur, Warning};

use super::model::{FlowModel, FlowTotals, Interval, Profile, TcpSessions};
use super::record::{Record, TCP, UDP, nanos, times};
use crate::model::Provenance;

mod connections;
mod inversion;
mod popularity;
mod released;
mod sessions;
mod udp;

use connections::Connections;
use released::Released;
use sessions::Sessions;
use udp::Sources;

/// In which order records come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By their last packets, or when they were exported: a long flow comes after those that began later.
    #[default]
    End,
    /// By their first packets.
    Start,
}

/// How to configure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Whose arithmetic.
    pub profile: Profile,
    /// Length of an interval; whole microseconds, at least one.
    pub interval: Dur,
    /// Intervals begin at this instant, on the clock of the records, and at multiples of their length from
    /// it. Pieces of a trace whose models are to be merged need the same.
    pub origin: i64,
    /// How records are ordered.
    pub order: Order,
    /// A longer wait between two connections of a pair of hosts ends the session (60 s in the paper).
    pub session_gap: Dur,
    /// Silence after which equal addresses and ports are another connection.
    pub idle: Dur,
    /// Less payload in one direction of a connection is no file, bytes (100 in the paper).
    pub min_file: u64,
    /// Entries of each table: connections, pairs, hosts, sources. Some 200 bytes each.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            profile: Profile::Fixed,
            interval: Dur::from_secs(300),
            origin: 0,
            order: Order::End,
            session_gap: Dur::from_secs(60),
            idle: Dur::from_secs(60),
            min_file: 100,
            capacity: 1 << 18,
        }
    }
}

/// Why records gave no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// No records.
    #[error("there are no flow records")]
    Empty,
    /// Nothing to model in what was read.
    #[error(
        "none of {records} flow records is of a TCP connection with at least {min_file} bytes of payload \
         or of a UDP flow ({small} TCP flows are smaller): check that the records are of the traffic \
         meant, or lower the limit"
    )]
    Nothing {
        /// Records taken in.
        records: u64,
        /// TCP flows that were too small.
        small: u64,
        /// The limit.
        min_file: u64,
    },
}

/// Intervals to both sides of the first record.
const REACH: i64 = super::merge::MAX_INTERVALS as i64 / 2;

/// Exporters say sampling intervals in 32 bits (IPFIX element 34).
const LONGEST_SAMPLING: f64 = u32::MAX as f64;

/// Numbers of connections with a larger relative standard error are doubtful.
const COARSE: f64 = 0.05;

/// Takes flow records and makes a [`FlowModel`] of them.
#[derive(Debug)]
pub struct Configurator {
    options: Options,
    totals: FlowTotals,
    timeline: Timeline,
    connections: Connections,
    sessions: Sessions,
    released: Released,
    sources: Sources,
    /// The latest first packet so far, and the longest record.
    clock: Option<i64>,
    begin: i64,
    end: i64,
    longest: i64,
    sampled: u64,
    without_flags: u64,
}

impl Configurator {
    /// A configurator that has seen nothing.
    pub fn new(options: Options) -> Configurator {
        let micros = (options.interval.as_nanos() / 1_000).clamp(1, u64::MAX / 2_000);
        let options = Options {
            interval: Dur::from_micros(micros),
            capacity: options.capacity.max(16),
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
            clock: None,
            begin: i64::MAX,
            end: i64::MIN,
            longest: 0,
            sampled: 0,
            without_flags: 0,
        }
    }

    /// Takes one record.
    pub fn add(&mut self, record: &Record) {
        self.totals.records += 1;
        let mut record = *record;
        // Also where it is no number.
        if !(record.sampling > 1.0) {
            record.sampling = 1.0;
        }
        let sides = [Some(record.forward), record.reverse];
        let modelled = record.forward.packets > 0
            && matches!(record.protocol, TCP | UDP)
            && record.sampling <= LONGEST_SAMPLING;
        let good = modelled
            && sides.into_iter().flatten().all(|d| {
                // The last packet's time is the surer one: some exporters lose the first's.
                d.last >= d.first && self.timeline.reaches(d.last) && self.timeline.reaches(d.first)
            });
        if !good {
            self.totals.refused += 1;
            return;
        }
        self.sampled += u64::from(record.sampling > 1.0);
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
            self.without_flags += u64::from(record.forward.flags.is_none());
        }
        match (self.options.profile, record.protocol) {
            (Profile::Harpoon, TCP) => self.released.add(&record.scaled(), &mut self.totals),
            // The released program skips everything that is not TCP.
            (Profile::Harpoon, _) => self.totals.refused += 1,
            (Profile::Fixed, TCP) => self.add_tcp(&record),
            (Profile::Fixed, _) => self.sources.add(
                &record.scaled(),
                &self.options,
                &mut self.totals,
                &mut self.timeline,
            ),
        }
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

    /// Settles what no record still to come can change.
    fn advance(&mut self) {
        let Some(clock) = self.clock else { return };
        let held = match self.options.order {
            Order::End => self.longest,
            Order::Start => 0,
        };
        let settled = clock
            .saturating_sub(held)
            .saturating_sub(nanos(self.options.idle));
        match self.options.profile {
            Profile::Fixed => {
                self.connections
                    .expire(settled, self.begin, &mut self.totals);
                self.sessions
                    .release(settled, &self.options, &mut self.totals, &mut self.timeline);
            }
            Profile::Harpoon => self.released.release(
                clock.saturating_sub(held),
                &mut self.totals,
                &mut self.timeline,
            ),
        }
    }

    /// The model of what was taken in.
    ///
    /// # Errors
    /// When there was nothing to model.
    pub fn finish(
        mut self,
        name: &str,
        provenance: Provenance,
    ) -> Result<FlowModel, ConfigureError> {
        self.connections
            .finish(self.begin, &self.options, &mut self.totals);
        self.sessions.release(
            i64::MAX,
            &self.options,
            &mut self.totals,
            &mut self.timeline,
        );
        self.released
            .release(i64::MAX, &mut self.totals, &mut self.timeline);
        self.released.finish(&mut self.timeline);
        let (first, mut intervals) = self.timeline.dense();
        let udp = self.sources.finish(&self.timeline, first, intervals.len());
        let fixed = self.options.profile == Profile::Fixed;
        let (mut up, mut down) = if fixed {
            (self.connections.up, self.connections.down)
        } else {
            (super::Sizes::default(), self.released.sizes)
        };
        let mut sampled = Vec::new();
        let mut inverted = 0;
        for (interval, tally) in self.connections.sampled {
            let undone = tally.invert(f64::from_bits(interval));
            inverted += undone.files;
            up.complete.merge(&undone.sizes[0]);
            down.complete.merge(&undone.sizes[1]);
            sampled.push(undone.known);
        }
        self.timeline.multiply(&mut intervals, first, inverted);
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
                gaps: sessions.gaps,
                sources: sessions.clients.popularity(),
                destinations: sessions.servers.popularity(),
                intervals,
            },
            udp,
        };
        model.warnings = doubts(&model, self.sampled, self.without_flags);
        model.tune();
        Ok(model)
    }
}

fn doubts(model: &FlowModel, sampled: u64, without_flags: u64) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let t = &model.totals;
    let files = model.tcp.down.count();
    if sampled > 0 {
        doubts.extend(sampling_doubts(model, sampled));
    }
    if without_flags > 0 {
        doubts.push(Warning::note("no-flags", format!(
            "{without_flags} records have no TCP flags: connections are told apart by silence, their ends \
             and clients inferred from times and ports"
        )));
    }
    if t.censored * 20 > files && t.censored > 0 {
        doubts.push(Warning::warning("censored", format!(
            "{} of {files} connections were not seen whole: the sizes of the largest are estimates", t.censored
        )));
    }
    if files > 0 && (model.tcp.up.sum() == 0) != (model.tcp.down.sum() == 0) {
        let way = if model.tcp.up.sum() > 0 {
            "client"
        } else {
            "server"
        };
        doubts.push(Warning::note("one-way", format!(
            "all files come from the {way}: the records are of one direction, or of both together"
        )));
    }
    if t.evicted > 0 {
        doubts.push(Warning::warning(
            "evicted",
            format!(
                "{} entries were given up early because a table was full: raise the capacity",
                t.evicted
            ),
        ));
    }
    if files > 0 && model.tcp.gaps.is_empty() {
        doubts.push(Warning::warning("no-gaps", format!(
            "no client opened two of the {files} connections to one server within the session gap: a \
             session opens one connection per interval"
        )));
    }
    if files > 0 && files < 100 {
        doubts.push(Warning::warning(
            "few-connections",
            format!("{files} connections are few for a law of sizes"),
        ));
    }
    doubts
}

/// What sampling leaves unknown.
fn sampling_doubts(model: &FlowModel, records: u64) -> Vec<Warning> {
    let mut doubts = vec![Warning::note(
        "sampled",
        format!(
            "{records} of {} records are packet-sampled. Volumes are multiplied out; gaps, sessions and the \
             popularity of hosts are those of connections with a sampled packet; UDP flows without one are not \
             counted",
            model.totals.records
        ),
    )];
    for s in &model.sampled {
        let n = s.interval;
        doubts.push(match s.connections {
            Some(connections) => {
                let [low, high] = connections.interval();
                let (severity, hint): (fn(&str, String) -> Warning, _) =
                    if connections.relative() > COARSE {
                        (Warning::warning, ": more records would tell")
                    } else {
                        (Warning::note, "")
                    };
                severity(
                    "sampled-sizes",
                    format!(
                        "sampled 1 in {n}: {:.0} connections by their SYNs (95 %: {low:.0} to {high:.0}){hint}; \
                         the law of sizes below {} bytes is a smooth guess that meets their number and volume",
                        connections.value, s.resolved
                    ),
                )
            }
            None => Warning::warning(
                "sampled-counts",
                format!(
                    "sampled 1 in {n} without a TCP flag that tells a SYN: connections without a sampled packet \
                     are not counted, so there are too few connections and sizes are too large; volumes are right"
                ),
            ),
        });
    }
    doubts
}

/// A connection that turned out to carry a file.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: i64,
    client: u128,
    server: u128,
    /// There were others of which nothing was sampled.
    sampled: bool,
}

/// What happened in each interval.
#[derive(Debug)]
struct Timeline {
    origin: i64,
    width: i64,
    /// Interval of the first time ever asked for.
    middle: Option<i64>,
    intervals: BTreeMap<i64, Interval>,
    /// Connections of sampled records that began in an interval.
    sampled: BTreeMap<i64, u64>,
}

impl Timeline {
    fn new(options: &Options) -> Timeline {
        Timeline {
            // Files hold whole microseconds.
            origin: options.origin.div_euclid(1_000) * 1_000,
            width: nanos(options.interval).max(1),
            middle: None,
            intervals: BTreeMap::new(),
            sampled: BTreeMap::new(),
        }
    }

    fn index(&self, time: i64) -> i64 {
        time.saturating_sub(self.origin).div_euclid(self.width)
    }

    fn time_of(&self, index: i64) -> i64 {
        self.origin.saturating_add(index.saturating_mul(self.width))
    }

    /// Whether a time is close enough to the first one to be in the model.
    fn reaches(&mut self, time: i64) -> bool {
        let index = self.index(time);
        let middle = *self.middle.get_or_insert(index);
        index.saturating_sub(middle).saturating_abs() < REACH
            && time.unsigned_abs() < i64::MAX as u64 / 2
    }

    fn at(&mut self, time: i64) -> &mut Interval {
        let index = self.index(time);
        self.intervals.entry(index).or_default()
    }

    /// A connection begins.
    fn begin(&mut self, start: &Start) {
        let index = self.index(start.at);
        let interval = self.intervals.entry(index).or_default();
        if start.sampled {
            *self.sampled.entry(index).or_default() += 1;
        } else {
            interval.connections += 1;
        }
    }

    /// Spreads the connections that sampling stands for over the intervals as those that were seen.
    fn multiply(&self, intervals: &mut [Interval], first: i64, all: u64) {
        let seen: u64 = self.sampled.values().sum();
        let (mut before, mut done) = (0, 0);
        for (index, &n) in &self.sampled {
            before += n;
            let upto = (u128::from(all) * u128::from(before) / u128::from(seen.max(1))) as u64;
            // The timeline has every interval in which one began.
            if let Some(interval) = usize::try_from(index - first)
                .ok()
                .and_then(|i| intervals.get_mut(i))
            {
                interval.connections = interval.connections.saturating_add(upto - done);
            }
            done = upto;
        }
    }

    /// Bytes moved evenly from `first` to `last`.
    fn spread(&mut self, bytes: u64, first: i64, last: i64) {
        let (from, to) = (self.index(first), self.index(last));
        let span = i128::from(last) - i128::from(first) + 1;
        let mut done = 0;
        for index in from..=to {
            let upto = if index == to {
                bytes
            } else {
                let part = i128::from(self.time_of(index + 1)) - i128::from(first);
                // At most `bytes`, for the part is at most the span.
                (i128::from(bytes) * part / span) as u64
            };
            let interval = self.intervals.entry(index).or_default();
            interval.bytes = interval.bytes.saturating_add(upto - done);
            done = upto;
        }
    }

    /// The first interval and all from it to the last.
    fn dense(&self) -> (i64, Vec<Interval>) {
        let (Some((&first, _)), Some((&last, _))) = (
            self.intervals.first_key_value(),
            self.intervals.last_key_value(),
        ) else {
            return (0, Vec::new());
        };
        let all = (first..=last)
            .map(|i| self.intervals.get(&i).copied().unwrap_or_default())
            .collect();
        (first, all)
    }
}
