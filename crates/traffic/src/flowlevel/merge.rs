//! Merges models of pieces of a trace into a model of the whole.

use swell_base::{Code, Warning};

use super::model::{FlowModel, Interval, MAX_INTERVALS, Popularity, Sampled, UdpSources};
use super::record::nanos;

/// Why two models cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Intervals of different lengths or phases.
    #[error("their intervals do not line up: learn both with the same interval and origin")]
    Intervals,
    /// Different arithmetic.
    #[error("one is of profile {0}, the other of {1}: learn both with the same profile")]
    Profiles(&'static str, &'static str),
    /// Too far apart in time.
    #[error("together they would span more than {MAX_INTERVALS} intervals")]
    TooLong,
}

impl FlowModel {
    /// Merges the model of another piece of the same trace: other hosts, other times or both.
    ///
    /// Exact: counts, volumes, distributions, and everything per interval; the sessions are tuned anew.
    /// Estimates from sampled records are added, with their errors. Approximate: hosts have no names here,
    /// so popularity is added rank by rank, as if the most popular hosts were the same in both. That is
    /// right for pieces of one population, and too skewed for disjoint ones. A connection across the
    /// border of two pieces is counted in both, and a gap across it in neither.
    ///
    /// # Errors
    /// If the two do not fit. The model is unchanged then.
    pub fn merge(&mut self, other: &FlowModel) -> Result<(), MergeError> {
        if self.profile != other.profile {
            return Err(MergeError::Profiles(
                self.profile.name(),
                other.profile.name(),
            ));
        }
        let width = nanos(self.interval).max(1);
        let apart = i128::from(other.start) - i128::from(self.start);
        if self.interval != other.interval || apart % i128::from(width) != 0 {
            return Err(MergeError::Intervals);
        }
        let steps = apart / i128::from(width);
        let before = usize::try_from(-steps.min(0)).map_err(|_| MergeError::TooLong)?;
        let offset = usize::try_from(steps.max(0)).map_err(|_| MergeError::TooLong)?;
        let own = self.tcp.intervals.len().saturating_add(before);
        let len = own.max(other.tcp.intervals.len().saturating_add(offset));
        if len > MAX_INTERVALS {
            return Err(MergeError::TooLong);
        }
        // Pieces may come in any order, so an earlier hole may be filled now.
        let hole = |a: [i64; 2], b: [i64; 2]| i128::from(b[0]) - i128::from(a[1]);
        let most = hole(self.span, other.span).max(hole(other.span, self.span));
        let mut warnings = self.warnings.iter().chain(&other.warnings);
        let may_have_hole =
            most > i128::from(width) || warnings.any(|w| w.code == Code::SilentBetween);
        self.start = self.start.min(other.start);
        self.span[0] = self.span[0].min(other.span[0]);
        self.span[1] = self.span[1].max(other.span[1]);
        self.tcp
            .intervals
            .splice(0..0, std::iter::repeat_n(Interval::default(), before));
        self.tcp.intervals.resize(len, Interval::default());
        for (into, from) in self.tcp.intervals[offset..]
            .iter_mut()
            .zip(&other.tcp.intervals)
        {
            into.connections = into.connections.saturating_add(from.connections);
            into.bytes = into.bytes.saturating_add(from.bytes);
            into.seen = into.seen.saturating_add(from.seen);
        }
        self.tcp.up.merge(&other.tcp.up);
        self.tcp.down.merge(&other.tcp.down);
        self.tcp.gaps.merge(&other.tcp.gaps);
        self.tcp.rates.merge(&other.tcp.rates);
        for (mine, theirs) in (self.tcp.rates_by_size.iter_mut()).zip(&other.tcp.rates_by_size) {
            for (&class, rates) in theirs {
                mine.entry(class).or_default().merge(rates);
            }
        }
        self.tcp.sources.merge(&other.tcp.sources);
        self.tcp.destinations.merge(&other.tcp.destinations);
        for mine in &mut self.udp {
            mine.active.splice(0..0, std::iter::repeat_n(0, before));
            mine.active.resize(len, 0);
        }
        for theirs in &other.udp {
            self.merge_udp(theirs, offset, len);
        }
        self.merge_totals(other);
        other.sampled.iter().for_each(|s| self.merge_sampled(s));
        for warning in &other.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        for (mine, theirs) in [
            (&mut self.provenance.sources, &other.provenance.sources),
            (&mut self.provenance.digests, &other.provenance.digests),
        ] {
            mine.extend(theirs.iter().cloned());
        }
        self.warnings.retain(|w| w.code != Code::SilentBetween);
        if may_have_hole {
            self.warnings.extend(self.silence());
        }
        self.tune();
        Ok(())
    }

    /// A warning about the longest stretch without any traffic, if there is one.
    fn silence(&self) -> Option<Warning> {
        let silent = |i: usize| {
            let tcp = &self.tcp.intervals[i];
            let none = (tcp.connections, tcp.bytes, tcp.seen) == (0, 0, 0);
            none && self
                .udp
                .iter()
                .all(|u| u.active.get(i).is_none_or(|&n| n == 0))
        };
        let (mut longest, mut run) = (0..0, 0..0);
        for i in 0..self.tcp.intervals.len() {
            run = match silent(i) {
                true if run.end == i => run.start..i + 1,
                true => i..i + 1,
                false => continue,
            };
            if run.len() > longest.len() {
                longest = run.clone();
            }
        }
        let from = self.interval * longest.start as u64;
        let lasts = self.interval * longest.len() as u64;
        (!longest.is_empty()).then(|| {
            Warning::warning(
                Code::SilentBetween,
                format!(
                    "the pieces do not follow each other: there is no traffic for {lasts} from {from} on, and the \
                     model plays this silence"
                ),
            )
        })
    }

    fn merge_udp(&mut self, theirs: &UdpSources, offset: usize, len: usize) {
        let order = UdpSources::order;
        let at = match self.udp.binary_search_by_key(&order(theirs), order) {
            Ok(at) => at,
            Err(at) => {
                self.udp.insert(at, UdpSources::empty(theirs.kind, len));
                at
            }
        };
        let mine = &mut self.udp[at];
        for (into, from) in [
            (&mut mine.sources, theirs.sources),
            (&mut mine.flows, theirs.flows),
            (&mut mine.packets, theirs.packets),
            (&mut mine.bytes, theirs.bytes),
            (&mut mine.answers, theirs.answers),
            (&mut mine.answer_bytes, theirs.answer_bytes),
        ] {
            *into = into.saturating_add(from);
        }
        mine.spacing.merge(&theirs.spacing);
        mine.durations.merge(&theirs.durations);
        mine.pauses.merge(&theirs.pauses);
        mine.datagrams.merge(&theirs.datagrams);
        mine.volumes.merge(&theirs.volumes);
        mine.lifetimes.merge(&theirs.lifetimes);
        for (into, from) in mine.active[offset..].iter_mut().zip(&theirs.active) {
            *into = into.saturating_add(*from);
        }
    }

    fn merge_sampled(&mut self, theirs: &Sampled) {
        let by_interval = |s: &Sampled| s.interval.total_cmp(&theirs.interval);
        match self.sampled.binary_search_by(by_interval) {
            Err(at) => self.sampled.insert(at, *theirs),
            Ok(at) => {
                let mine = &mut self.sampled[at];
                mine.seen = mine.seen.saturating_add(theirs.seen);
                // If one model does not know the number of connections, neither does the sum.
                mine.connections = mine.connections.zip(theirs.connections).map(|(mut a, b)| {
                    a.add(&b);
                    a
                });
                for (into, from) in mine.bytes.iter_mut().zip(&theirs.bytes) {
                    into.add(from);
                }
            }
        }
    }

    fn merge_totals(&mut self, other: &FlowModel) {
        let (a, b) = (&mut self.totals, &other.totals);
        for (into, from) in [
            (&mut a.records, b.records),
            (&mut a.refused, b.refused),
            (&mut a.packets, b.packets),
            (&mut a.bytes, b.bytes),
            (&mut a.joined, b.joined),
            (&mut a.small, b.small),
            (&mut a.small_bytes, b.small_bytes),
            (&mut a.dropped, b.dropped),
            (&mut a.censored, b.censored),
            (&mut a.evicted, b.evicted),
            (&mut a.late, b.late),
        ] {
            *into = into.saturating_add(from);
        }
    }
}

impl UdpSources {
    /// No sources of a kind over a number of intervals.
    pub fn empty(kind: super::UdpKind, intervals: usize) -> UdpSources {
        UdpSources {
            kind,
            sources: 0,
            flows: 0,
            packets: 0,
            bytes: 0,
            answers: 0,
            answer_bytes: 0,
            spacing: super::Histogram::default(),
            durations: super::Histogram::default(),
            pauses: super::Histogram::default(),
            datagrams: super::Histogram::default(),
            volumes: super::Histogram::default(),
            lifetimes: super::Histogram::default(),
            active: vec![0; intervals],
        }
    }
}

impl Popularity {
    /// Adds the counts of equal ranks.
    fn merge(&mut self, other: &Popularity) {
        let mut ranks: Vec<(u64, u64)> = Vec::new();
        let mut theirs = other.ranks.iter().copied();
        let mut b = theirs.next();
        let mut mine = std::mem::take(&mut self.ranks).into_iter();
        let mut a = mine.next();
        loop {
            let (count, n) = match (a, b) {
                (Some(x), Some(y)) => (x.0.saturating_add(y.0), x.1.min(y.1)),
                (Some(x), None) | (None, Some(x)) => x,
                (None, None) => break,
            };
            for (side, rest) in [
                (&mut a, &mut mine as &mut dyn Iterator<Item = _>),
                (&mut b, &mut theirs),
            ] {
                if let Some(run) = side {
                    run.1 -= n;
                    if run.1 == 0 {
                        *side = rest.next();
                    }
                }
            }
            match ranks.last_mut() {
                Some(last) if last.0 == count => last.1 = last.1.saturating_add(n),
                _ => ranks.push((count, n)),
            }
        }
        self.ranks = ranks;
    }
}
