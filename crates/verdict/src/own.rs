//! Counts of a run's foreground at the links of its path.

use super::judge::Statistic;
use super::values::Asked;
use swell_experiment::file::{ACCESS_DELAY, File};
use swell_experiment::observe::Wait;
use swell_experiment::store::RunResult;

/// The links that a foreground crosses, by name and direction: first from its clients, then towards them.
pub(super) type Ways = [Vec<(String, u8)>; 2];

/// Counts of a run's foreground at one direction of a link.
pub(super) struct Own<'r> {
    pub link: &'r str,
    pub direction: u8,
    pub duration: f64,
    pub arrived: u64,
    pub arrived_packets: u64,
    pub departed: u64,
    pub dropped: u64,
}

/// One-way propagation delay of a foreground's path with its access links before any change, seconds; zero for a
/// foreground that the file does not have.
pub(super) fn propagation(file: &File, foreground: &str) -> f64 {
    let own = file.foreground.iter().find(|f| f.name() == foreground);
    own.map_or(0.0, |own| {
        let links = file.round_trip(&own.route());
        // A round trip crosses each of the two access links twice.
        let round_trip = match (own.delay(), file.network.rtt) {
            (Some(access), _) => links + access * 4,
            (None, Some(rtt)) => rtt.max(links),
            (None, None) => links + ACCESS_DELAY * 4,
        };
        round_trip.as_secs_f64() / 2.0
    })
}

/// The direction in which the foreground sends more over all `runs`: 0 is up, 1 is down, also if both are equal.
pub(super) fn busier<'r>(ways: &Ways, runs: impl Iterator<Item = &'r RunResult>) -> usize {
    let mut sent = [0u64; 2];
    for run in runs {
        for (sum, way) in sent.iter_mut().zip(ways) {
            let first = way.first().and_then(|at| own(run, at));
            *sum += first.map_or(0, |own| own.arrived);
        }
    }
    usize::from(sent[1] >= sent[0])
}

/// Counts of a run's foreground in one direction of a link.
fn own<'r>(run: &'r RunResult, (link, direction): &(String, u8)) -> Option<Own<'r>> {
    let observed = &run.observed;
    let at = |l: &str, d: u8| (l, d) == (link, *direction);
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
    /// Counts of a run's foreground in the direction `down` (0 is up, 1 is down), in the order of the links on its path.
    pub(super) fn way<'r>(&self, run: &'r RunResult, down: usize) -> Vec<Own<'r>> {
        let at = self.ways[down].iter();
        at.filter_map(|at| own(run, at)).collect()
    }

    /// The same for both directions.
    pub(super) fn both_ways<'r>(&self, run: &'r RunResult) -> [Vec<Own<'r>>; 2] {
        [0, 1].map(|down| self.way(run, down))
    }

    /// The same for the direction in which the foreground sends most. It is the same one in all runs that are compared.
    pub(super) fn main<'r>(&self, run: &'r RunResult) -> Vec<Own<'r>> {
        self.way(run, self.main)
    }

    /// The network-layer rate out of the last link of its path, in the direction in which it sends most, bit/s.
    pub(super) fn link_rate(&self, run: &RunResult) -> Option<f64> {
        let main = self.main(run);
        let last = main.last()?;
        (last.duration > 0.0).then(|| last.departed as f64 * 8.0 / last.duration)
    }

    /// The share of its packets that the links of its path dropped, in both directions together; zero where it sent none.
    pub(super) fn loss(&self, run: &RunResult) -> Option<f64> {
        let ways = self.both_ways(run);
        let known = ways.iter().any(|way| !way.is_empty());
        let dropped: u64 = ways.iter().flatten().map(|own| own.dropped).sum();
        known.then(|| dropped as f64 / self.packets(run).max(1) as f64)
    }

    /// Number of its packets that entered the path, in both directions together.
    pub(super) fn packets(&self, run: &RunResult) -> u64 {
        let ways = self.both_ways(run);
        let first = ways.iter().filter_map(|way| way.first());
        first.map(|own| own.arrived_packets).sum()
    }

    /// The mean or a percentile of the times that its packets wait at a link, seconds: summed over the links of their
    /// path, averaged over the packets of both directions. `None` where that of some link is not known.
    pub(super) fn waits(&self, run: &RunResult, statistic: Statistic) -> Option<f64> {
        let at = |own: &Own<'_>| {
            let buckets = run.observed.waits.iter().filter(|w| {
                (&*w.link, w.direction) == (own.link, own.direction) && w.traffic == "foreground"
            });
            wait(buckets.collect(), statistic)
        };
        let (mut sum, mut packets) = (0.0, 0);
        for way in self.both_ways(run) {
            let sent = way.first().map_or(0, |own| own.arrived_packets);
            if sent > 0 {
                let each: Option<Vec<f64>> = way.iter().map(at).collect();
                sum += sent as f64 * each?.iter().sum::<f64>();
                packets += sent;
            }
        }
        (packets > 0).then(|| sum / packets as f64)
    }
}

/// A statistic of the waits in these buckets, seconds; `None` without packets. Percentiles are exact to a bucket, of
/// which the mean is taken.
fn wait(mut buckets: Vec<&Wait>, statistic: Statistic) -> Option<f64> {
    let packets: u64 = buckets.iter().map(|w| w.packets).sum();
    if packets == 0 {
        return None;
    }
    match statistic {
        Statistic::Mean => {
            let waited: f64 = buckets.iter().map(|w| w.waited).sum();
            Some(waited / packets as f64)
        }
        Statistic::Percentile(p) => {
            buckets.sort_by(|a, b| a.from.total_cmp(&b.from));
            let rank = p * packets as f64;
            let mut passed = 0;
            let holds = buckets.into_iter().find(|w| {
                passed += w.packets;
                w.packets > 0 && passed as f64 >= rank
            });
            holds.map(|w| w.waited / w.packets as f64)
        }
    }
}
