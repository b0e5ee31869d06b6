//! What is asked about a foreground, and the counts of its packets at the links of its path.

use std::ops::Range;

use swell_base::{Bytes, Direction};
use swell_experiment::file::{File, Foreground};
use swell_experiment::measure::{GOODPUT_EACH_WAY, Measure, MeasureSample};
use swell_experiment::observe::Delay;
use swell_experiment::store::RunResult;
use swell_stats::Bootstrap;

use super::condition::Condition;
use super::judge::Statistic;

/// What the verdict asks about a foreground.
pub(super) struct Asked {
    /// Its measures.
    pub measures: Vec<Measure>,
    /// Whether it is a real program. What one of its requests fetches may then depend on the network.
    pub program: bool,
    /// Length of a run, seconds.
    pub end: f64,
    /// Resampling for the intervals of pooled percentiles.
    pub bootstrap: Bootstrap,
    /// The links on its path.
    pub paths: Paths,
    /// The directions in which it sends data, most of it first: 0 is from its clients, 1 is towards them.
    pub directions: Vec<Direction>,
    /// Whether it sends datagrams, whose delays are known.
    pub datagrams: bool,
    /// Whether it is simulated, and all runs know which bytes were of use to it.
    pub useful: bool,
    /// Why a run may have no value of its measures, if it is known what may be the cause.
    pub silent: Option<&'static str>,
    /// The sizes of the objects that its clients request in turn; empty if they are no such list.
    pub sizes: Vec<Bytes>,
    /// Whether it is a program whose data go or come at a pace of one of its ends, as they show without traffic.
    pub paced: bool,
}

/// The links that a foreground crosses, by name and direction: first from its clients, then towards them.
pub(super) type Ways = [Vec<(String, Direction)>; 2];

/// The paths of a foreground: that of all runs or, where two files are compared, one for the runs of each.
#[derive(Default)]
pub(super) struct Paths {
    ways: Ways,
    /// Where the runs of the other file are in memory, and their path.
    others: Option<(Range<*const RunResult>, Ways)>,
}

impl Paths {
    /// One path for all runs.
    pub(super) fn of_all(ways: Ways) -> Paths {
        Paths { ways, others: None }
    }

    /// Another path for the runs of `others`.
    pub(super) fn but_of(self, others: &[RunResult], ways: Ways) -> Paths {
        Paths {
            others: Some((others.as_ptr_range(), ways)),
            ..self
        }
    }

    fn of(&self, run: &RunResult) -> &Ways {
        let others = self.others.as_ref();
        let other = others.filter(|(all, _)| all.contains(&std::ptr::from_ref(run)));
        other.map_or(&self.ways, |(_, ways)| ways)
    }
}

/// Counts of a run's foreground at one direction of a link.
pub(super) struct Own<'r> {
    pub link: &'r str,
    pub direction: Direction,
    pub duration: f64,
    pub arrived: u64,
    pub arrived_packets: u64,
    pub departed: u64,
    pub dropped: u64,
}

/// Headers of a packet: IPv6, and TCP with time stamps.
pub(super) const HEADERS: u64 = 72;

/// Traffic with a smaller mean payload per packet, in bytes, is requests and short answers. Voice is a stream, and has
/// 172 bytes.
pub(super) const WORD: u64 = 100;

/// The directions in which a foreground sends data, most of it first.
pub(super) fn directions<'r>(
    part: Option<&Foreground>,
    paths: &Paths,
    runs: impl Iterator<Item = &'r RunResult> + Clone,
) -> Vec<Direction> {
    let main = busier(paths, runs.clone());
    let sends = part.and_then(|part| part.sends());
    let datagrams = part.is_some_and(|part| part.is_open_loop());
    let also = Direction::BOTH.map(|d| match sends {
        Some(sends) => sends[d],
        None => {
            let first = |run| paths.of(run)[d].first().and_then(|at| own(run, at));
            let mut sent = (0, 0);
            for own in runs.clone().filter_map(first) {
                sent = (sent.0 + own.arrived_packets, sent.1 + own.arrived);
            }
            // Acknowledgements alone are no data.
            let data = sent.1 > (HEADERS + WORD) * sent.0;
            d == main || (sent.0 > 0 && (datagrams || data))
        }
    });
    let each = [main, main.opposite()].into_iter().filter(|&d| also[d]);
    let found: Vec<Direction> = each.collect();
    if found.is_empty() { vec![main] } else { found }
}

/// The direction in which the foreground sends more over all `runs`; `Down` if both are equal.
fn busier<'r>(paths: &Paths, runs: impl Iterator<Item = &'r RunResult>) -> Direction {
    let mut sent = [0u64; 2];
    for run in runs {
        for (sum, way) in sent.iter_mut().zip(paths.of(run)) {
            let first = way.first().and_then(|at| own(run, at));
            *sum += first.map_or(0, |own| own.arrived);
        }
    }
    Direction::of(sent[1] >= sent[0])
}

/// Counts of a run's foreground in one direction of a link.
fn own<'r>(run: &'r RunResult, (link, direction): &(String, Direction)) -> Option<Own<'r>> {
    let observed = &run.observed;
    let at = |l: &str, d: Direction| (l, d) == (link, *direction);
    let mut parts = observed.parts.iter();
    // Where several foregrounds share the link, each is counted separately in `parts`.
    let part = parts.find(|p| {
        at(&p.link, p.direction) && p.role == "foreground" && p.part == run.cell.foreground
    });
    if let Some(p) = part {
        return Some(Own {
            link: &p.link,
            direction: p.direction,
            duration: p.duration,
            arrived: p.arrived,
            arrived_packets: p.arrived_packets,
            departed: p.departed,
            dropped: p.dropped,
        });
    }
    let l = observed.links.iter().find(|l| at(&l.link, l.direction))?;
    Some(Own {
        link: &l.link,
        direction: l.direction,
        duration: l.duration,
        arrived: l.arrived[0],
        arrived_packets: l.arrived_packets[0],
        departed: l.departed[0],
        dropped: l.dropped[0],
    })
}

impl Asked {
    /// What is asked about a foreground.
    pub(super) fn of(
        file: &File,
        name: &str,
        conditions: &[Condition<'_>],
        bootstrap: Bootstrap,
    ) -> Asked {
        let own = || file.foreground.iter().filter(|f| f.name() == name);
        let paths = own().next().map(|f| Paths::of_all(file.ways(&f.route())));
        let paths = paths.unwrap_or_default();
        let all = || conditions.iter().flat_map(|c| c.runs.iter().flatten());
        Asked {
            directions: directions(own().next(), &paths, all().copied()),
            datagrams: own().any(|f| f.is_open_loop()) && are_timed(all().copied()),
            useful: own().all(|f| f.program().is_none()) && know_useful(all().copied()),
            silent: own().find_map(|f| f.silent()),
            sizes: own().flat_map(|f| f.sizes()).copied().collect(),
            measures: own().flat_map(|f| f.measures()).collect(),
            program: own().any(|f| f.program().is_some()),
            end: file.run.duration.as_secs_f64(),
            bootstrap,
            paths,
            paced: false,
        }
    }

    /// Whether this is a program that sent nothing over the network in any of these runs.
    pub(super) fn is_idle<'r>(&self, mut runs: impl Iterator<Item = &'r RunResult>) -> bool {
        let quiet = |run: &RunResult| {
            let mut sent = Direction::BOTH.into_iter().flat_map(|d| self.way(run, d));
            let mut requests = run.observed.requests.iter();
            sent.all(|own| own.arrived_packets == 0)
                && requests.all(|r| r.bytes == 0 && r.first_byte.is_nan())
        };
        self.program && runs.all(quiet)
    }

    /// Counts of a run's foreground in a direction, in the order of the links on its path.
    pub(super) fn way<'r>(&self, run: &'r RunResult, along: Direction) -> Vec<Own<'r>> {
        let at = self.paths.of(run)[along].iter();
        at.filter_map(|at| own(run, at)).collect()
    }

    /// The same for the direction in which the foreground sends most. It is the same one in all runs that are compared.
    pub(super) fn main<'r>(&self, run: &'r RunResult) -> Vec<Own<'r>> {
        self.way(run, self.directions[0])
    }

    /// The rate at which its data arrive in a direction, bit/s: bytes of use to a simulated application, where all runs
    /// know them. Otherwise the network-layer rate of its datagrams at the other host, or else of its packets out of
    /// the last link of its path.
    pub(super) fn rate(&self, run: &RunResult, direction: Direction) -> Option<f64> {
        if self.useful {
            let mut rows = run.observed.measures.iter();
            let known = rows.find(|s| s.measure == GOODPUT_EACH_WAY[direction]);
            return known.map(|s| s.value);
        }
        let way = self.way(run, direction);
        let last = way.last()?;
        let timed = delays(run, direction);
        let bytes = match timed.clone().next() {
            Some(_) => timed.map(|d| d.bytes).sum(),
            None if self.datagrams => 0,
            None => last.departed,
        };
        (last.duration > 0.0).then(|| bytes as f64 * 8.0 / last.duration)
    }

    /// The share of its packets that the links of its path dropped in a direction; zero where it sent none.
    pub(super) fn loss(&self, run: &RunResult, direction: Direction) -> Option<f64> {
        let way = self.way(run, direction);
        let sent = way.first()?.arrived_packets;
        let dropped: u64 = way.iter().map(|own| own.dropped).sum();
        Some(dropped as f64 / sent.max(1) as f64)
    }

    /// Number of its packets in a direction whose delays are known.
    pub(super) fn timed(&self, run: &RunResult, direction: Direction) -> u64 {
        match self.datagrams {
            true => delays(run, direction).map(|d| d.packets).sum(),
            false => {
                let way = self.way(run, direction);
                way.first().map_or(0, |own| own.arrived_packets)
            }
        }
    }

    /// The mean or a percentile of the one-way delays of its packets in a direction, seconds: of datagrams from host to
    /// host; of segments the `propagation` and the sum over the links of what packets wait there. `None` where it is not
    /// known.
    pub(super) fn delay(
        &self,
        run: &RunResult,
        direction: Direction,
        statistic: Statistic,
        propagation: [f64; 2],
    ) -> Option<f64> {
        if self.datagrams {
            let each = delays(run, direction);
            return of_buckets(each.map(|d| (d.from, d.packets, d.delayed)), statistic);
        }
        let at = |own: &Own<'_>| {
            let buckets = run.observed.waits.iter().filter(|w| {
                (&*w.link, w.direction) == (own.link, own.direction) && w.traffic == "foreground"
            });
            of_buckets(buckets.map(|w| (w.from, w.packets, w.waited)), statistic)
        };
        let way = self.way(run, direction);
        let waits: Option<Vec<f64>> = way.iter().map(at).collect();
        Some(propagation[direction] + waits?.iter().sum::<f64>())
    }
}

/// Whether all runs know how many bytes were of use to the application. Two ways of counting are not compared.
pub(super) fn know_useful<'r>(mut runs: impl Iterator<Item = &'r RunResult>) -> bool {
    let is_row = |s: &MeasureSample| GOODPUT_EACH_WAY.contains(&&*s.measure);
    runs.all(|run| run.observed.measures.iter().any(is_row))
}

/// Whether the foreground's packets were timed in any run: made-up runs time none.
pub(super) fn are_timed<'r>(mut runs: impl Iterator<Item = &'r RunResult>) -> bool {
    runs.any(|run| !run.observed.delays.is_empty())
}

/// The delays of a run's foreground in a direction.
fn delays(run: &RunResult, direction: Direction) -> impl Iterator<Item = &Delay> + Clone {
    let all = run.observed.delays.iter();
    all.filter(move |d| d.direction == direction)
}

/// A statistic of a histogram, of whose buckets the lower edge, the count and the sum are known; `None` if it is empty.
/// Percentiles are exact to a bucket, of which the mean is taken.
fn of_buckets(buckets: impl Iterator<Item = (f64, u64, f64)>, statistic: Statistic) -> Option<f64> {
    let mut buckets: Vec<_> = buckets.filter(|b| b.1 > 0).collect();
    let count: u64 = buckets.iter().map(|b| b.1).sum();
    if count == 0 {
        return None;
    }
    match statistic {
        Statistic::Mean => Some(buckets.iter().map(|b| b.2).sum::<f64>() / count as f64),
        Statistic::Percentile(p) => {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let rank = p * count as f64;
            let mut passed = 0;
            let holds = buckets.into_iter().find(|b| {
                passed += b.1;
                passed as f64 >= rank
            });
            holds.map(|b| b.2 / b.1 as f64)
        }
    }
}
