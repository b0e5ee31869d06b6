//! Loads of a background: the requested rate, the offered rate, and the rate that the bottleneck carried.

use std::cmp::Reverse;

use super::Condition;
use swell_experiment::file::{Bottleneck, LoadBasis};
use swell_experiment::kinds::Part;
use swell_experiment::observe::{LinkTotals, Observations, PartTotals};
use swell_experiment::store::{Results, RunResult};

/// Loads that differ by more than this share are not equal.
pub(super) const UNEQUAL: f64 = 0.10;

/// If the load misses the requested one by more than this share, the run is not the requested experiment.
const MISSED: f64 = 0.25;

/// Loads below this share of the capacity are ignored.
const IDLE: f64 = 0.02;

/// A link with a utilization below this has spare capacity.
const FULL: f64 = 0.90;

/// Directions of the bottleneck, as messages name them.
const WAYS: [&str; 2] = ["up", "down"];

/// Loads of one background beside one foreground, up and down, network-layer bits per second. If the parts of a mix
/// have different bottlenecks, these are the sums over the parts.
pub(super) struct Loads {
    /// The name of the background or of the part of a mix.
    name: String,
    /// The bottlenecks where it was measured; `None` where it crosses no link, or where its parts have different ones.
    at: Option<[Bottleneck; 2]>,
    /// The parts of a mix, each at its own bottleneck, where these differ; else empty.
    parts: Vec<Loads>,
    /// The requested rate, or the rate that it carries alone; `None` where neither is known.
    pub requested: [Option<f64>; 2],
    /// Rate of arrivals at the bottleneck, beside the foreground.
    pub offered: [f64; 2],
    /// Rate of departures from it.
    pub carried: [f64; 2],
    /// The requested rate and the rate found when it was measured alone, towards the clients.
    target: Option<(f64, f64)>,
    /// The rate that it carries alone or, for open-loop traffic that was not measured alone, the rate that it offers.
    own: [Option<f64>; 2],
    /// Whether it is open-loop: its rate does not respond to the network.
    open_loop: bool,
    /// Whether it should offer exactly the requested rate, up and down.
    exact: [bool; 2],
    /// Whether it is to send, and sent nothing after the warm-up.
    silent: bool,
    /// What the bottleneck could carry in the runs, on average.
    rates: [f64; 2],
    /// Rate that left the bottleneck, foreground and background together.
    used: [f64; 2],
}

impl Loads {
    /// Loads over all runs of `foreground` beside this background. Late runs count too: lateness does not invalidate
    /// byte counts.
    pub fn of(results: &Results, foreground: &str, with: &Condition<'_>) -> Loads {
        let file = &results.experiment;
        let leaves = file.leaves(with.background);
        let here = |leaf: &&Part| file.narrowest(leaf) == file.narrowest(leaves[0]);
        if leaves.iter().all(here) {
            return Loads::at(results, foreground, with.background, None);
        }
        let part = |leaf: &&Part| Loads::at(results, foreground, leaf, Some(with.background));
        let parts: Vec<Loads> = leaves.iter().map(part).collect();
        let sum = |of: fn(&Loads) -> [f64; 2]| {
            [0, 1].map(|d| parts.iter().map(|one| of(one)[d]).sum::<f64>())
        };
        let known = |of: fn(&Loads) -> [Option<f64>; 2]| {
            [0, 1].map(|d| parts.iter().map(|one| of(one)[d]).sum::<Option<f64>>())
        };
        Loads {
            name: with.background.name().to_owned(),
            at: None,
            requested: known(|l| l.requested),
            offered: sum(|l| l.offered),
            carried: sum(|l| l.carried),
            own: known(|l| l.own),
            target: None,
            open_loop: with.background.is_open_loop(),
            exact: [false; 2],
            silent: false,
            rates: sum(|l| l.rates),
            used: sum(|l| l.used),
            parts,
        }
    }

    /// Loads of `background` at its bottlenecks: the whole background, or a part of `mix`.
    fn at(results: &Results, foreground: &str, background: &Part, mix: Option<&Part>) -> Loads {
        let at = results.experiment.narrowest(background);
        let part = mix.map(|_| background.name());
        let both = |what: Count| {
            [0, 1].map(|d| {
                let runs = results.of(foreground, mix.unwrap_or(background).name());
                let seen =
                    runs.filter_map(|r| Some(counted(&r.observed, &at.as_ref()?[d], part, what)));
                let (bytes, seconds) = seen.fold((0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                if seconds > 0.0 {
                    bytes as f64 * 8.0 / seconds
                } else {
                    0.0
                }
            })
        };
        let offered = both(Count::Arrived);
        let carried_bps = both(Count::Departed);
        let measured = results.manifest.measured.get(background.name());
        let alone = alone(results, background);
        let fixed = fixed(results, background);
        let open_loop = background.is_open_loop();
        let run = &results.experiment.run;
        let share = background.share(run.warmup, run.duration);
        let asked = measured.and_then(|m| m.target_bps);
        let carried = background.load() == LoadBasis::Carried;
        let exact = fixed.is_some() && open_loop;
        // Compare with the mean over all draws. The variation between draws, which heavy tails make large, is
        // in the intervals.
        let target = measured
            .filter(|_| carried)
            .and_then(|m| Some((m.target_bps?, m.expected_bps.unwrap_or(m.down_bps))));
        Loads {
            requested: [0, 1].map(|d| match (fixed, asked) {
                (Some(fixed), _) => Some(fixed[d]),
                (None, Some(asked)) if d == 1 => Some(asked * share),
                _ => alone.map(|a| a[d]),
            }),
            own: [0, 1].map(|d| match alone {
                Some(alone) => Some(alone[d]),
                None => open_loop.then_some(offered[d]),
            }),
            offered,
            carried: carried_bps,
            target,
            open_loop,
            exact: [exact, exact || (asked.is_some() && !carried)],
            silent: at.is_some()
                && results
                    .of(foreground, mix.unwrap_or(background).name())
                    .next()
                    .is_some()
                && !background.is_none()
                && [offered, carried_bps] == [[0.0; 2]; 2],
            rates: [0, 1].map(|d| {
                let runs = results.of(foreground, mix.unwrap_or(background).name());
                at.as_ref().map_or(0.0, |at| capacity(runs, &at[d]))
            }),
            used: both(Count::Used),
            name: background.name().to_owned(),
            at,
            parts: Vec::new(),
        }
    }

    /// This background, or its parts where they are judged one by one.
    fn each(&self) -> impl Iterator<Item = &Loads> {
        let own = self.parts.is_empty().then_some(self);
        own.into_iter().chain(&self.parts)
    }

    /// Reasons why the load is not the requested one. The runs then answer another question.
    pub fn missed(&self) -> Vec<String> {
        self.each().flat_map(Loads::missed_here).collect()
    }

    fn missed_here(&self) -> Vec<String> {
        let name = &self.name;
        let mut reasons = Vec::new();
        if self.silent {
            reasons.push(format!("{name} sent nothing after the warm-up"));
        }
        if let Some((requested, carried)) = self.target
            && off(requested, carried) > MISSED
        {
            reasons.push(format!(
                "{} Mbit/s of {name} were requested and {} carried",
                mega(requested),
                mega(carried)
            ));
        }
        for d in [0, 1] {
            if let Some(requested) = self.requested[d]
                && self.exact[d]
                && self.counts(d, requested.max(self.offered[d]))
                && off(requested, self.offered[d]) > MISSED
            {
                reasons.push(format!(
                    "{} Mbit/s of {name} were requested {} and {} offered",
                    mega(requested),
                    WAYS[d],
                    mega(self.offered[d])
                ));
            }
        }
        reasons
    }

    /// Reasons why closed-loop traffic carried too little beside the foreground although the link had spare capacity.
    /// Its effect at the requested load is then unknown.
    pub fn gave_way(&self) -> Vec<String> {
        self.each().flat_map(Loads::gave_way_here).collect()
    }

    fn gave_way_here(&self) -> Vec<String> {
        let name = &self.name;
        let way = |d: usize| {
            let requested = self.requested[d]?;
            let carried = self.carried[d];
            let short = carried < (1.0 - MISSED) * requested && self.counts(d, requested);
            (short && !self.open_loop && self.used[d] < FULL * self.rates[d]).then(|| {
                format!(
                    "{name} carried {} of {} Mbit/s {} beside it, though the link had room",
                    mega(carried),
                    mega(requested),
                    WAYS[d]
                )
            })
        };
        // Datagrams of a model do not give way. Where bursts of them are lost, the traffic is not that of the model.
        let lost = |d: usize| {
            let (offered, carried) = (self.offered[d], self.carried[d]);
            let short = carried < (1.0 - MISSED) * offered && self.counts(d, offered);
            (short && !self.open_loop && self.used[d] < FULL * self.rates[d]).then(|| {
                format!(
                    "{name} offered {} Mbit/s {} and {} were carried, though the link had room",
                    mega(offered),
                    WAYS[d],
                    mega(carried)
                )
            })
        };
        let ways = || [1, 0].into_iter();
        ways()
            .filter_map(way)
            .chain(ways().filter_map(lost))
            .collect()
    }

    /// Why the loads of two backgrounds are not equal.
    pub fn differ([a, b]: [&Loads; 2]) -> Vec<String> {
        let places = |loads: &Loads| -> Vec<Bottleneck> {
            loads
                .each()
                .flat_map(|l| l.at.iter().flatten().cloned())
                .collect()
        };
        let mut all = [places(a), places(b)].concat();
        all.sort_by_key(|place| Reverse(place.queue));
        all.dedup();
        let several = all.iter().any(|place| place.link != all[0].link);
        let place = |place: &Bottleneck| {
            let (x, y) = (a.own_at(place)?, b.own_at(place)?);
            let rate = a.rate_at(place).max(b.rate_at(place));
            let counts = x.max(y) > IDLE * rate;
            (counts && (x - y).abs() > UNEQUAL * x.max(y)).then(|| {
                let way = WAYS[usize::from(place.queue.direction)];
                let on = match several {
                    true => format!("{way} link {}", place.link),
                    false => way.to_owned(),
                };
                format!(
                    "their loads differ: {} and {} Mbit/s {on} when alone",
                    mega(x),
                    mega(y),
                )
            })
        };
        all.iter().filter_map(place).collect()
    }

    /// Sum of the `own` rates of the parts with this bottleneck; zero where there is none, `None` where one is unknown.
    fn own_at(&self, place: &Bottleneck) -> Option<f64> {
        let here = self.each().flat_map(|l| {
            let ways = l.at.iter().flatten().zip(l.own);
            ways.filter(|(at, _)| *at == place).map(|(_, own)| own)
        });
        here.sum()
    }

    /// What this bottleneck could carry; zero where it is none of these loads.
    fn rate_at(&self, place: &Bottleneck) -> f64 {
        let here = self.each().flat_map(|l| {
            let ways = l.at.iter().flatten().zip(l.rates);
            ways.filter(|(at, _)| *at == place).map(|(_, rate)| rate)
        });
        here.fold(0.0, f64::max)
    }

    /// Whether a load in this direction is large enough to count.
    fn counts(&self, direction: usize, bps: f64) -> bool {
        bps > IDLE * self.rates[direction]
    }
}

/// A byte count at a bottleneck.
#[derive(Clone, Copy)]
enum Count {
    /// Bytes of the background, or of a part of it, that arrived.
    Arrived,
    /// Bytes of the background, or of a part of it, that departed.
    Departed,
    /// All bytes that departed, foreground and background.
    Used,
}

impl Count {
    fn of_link(self, link: &LinkTotals) -> u64 {
        match self {
            Count::Arrived => link.arrived[1],
            Count::Departed => link.departed[1],
            Count::Used => link.departed[0] + link.departed[1],
        }
    }
}

/// What a bottleneck could carry in these runs, on average over the seconds that count. A link that changes carries
/// another rate than its first one.
fn capacity<'r>(runs: impl Iterator<Item = &'r RunResult>, at: &Bottleneck) -> f64 {
    let rows = runs.flat_map(|run| &run.observed.links);
    let rows = rows.filter(|l| at.is(&l.link, l.direction) && l.rate > 0.0);
    let rates: Vec<f64> = rows.map(|l| l.rate).collect();
    swell_stats::mean(&rates).unwrap_or(at.rate.bps() as f64)
}

/// Bytes that a run counted at a bottleneck, and the seconds of counting: for one `part`, or for the whole background.
fn counted(seen: &Observations, at: &Bottleneck, part: Option<&str>, what: Count) -> (u64, f64) {
    let part = part.filter(|_| !matches!(what, Count::Used));
    let rows: Vec<(u64, f64)> = match part {
        Some(name) => {
            let own = |p: &&PartTotals| p.part == name && at.is(&p.link, p.direction);
            let bytes = |p: &PartTotals| match what {
                Count::Arrived => p.arrived,
                _ => p.departed,
            };
            let rows = seen.parts.iter().filter(own);
            rows.map(|p| (bytes(p), p.duration)).collect()
        }
        None => {
            let rows = seen.links.iter().filter(|l| at.is(&l.link, l.direction));
            rows.map(|l| (what.of_link(l), l.duration)).collect()
        }
    };
    rows.into_iter()
        .fold((0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// The rate that a background carries alone on the network, up and down, over a whole run; for a mix, the sum over
/// its parts.
fn alone(results: &Results, background: &Part) -> Option<[f64; 2]> {
    let run = &results.experiment.run;
    let measured = &results.manifest.measured;
    if let Some(m) = measured.get(background.name()) {
        let share = background.share(run.warmup, run.duration);
        return Some([m.up_bps * share, m.down_bps * share]);
    }
    if background.parts().is_empty() {
        return None;
    }
    let mut sum = [0.0; 2];
    for part in results.experiment.leaves(background) {
        let own = alone(results, part).or_else(|| fixed(results, part))?;
        (0..2).for_each(|d| sum[d] += own[d]);
    }
    Some(sum)
}

/// The rate that a background offers over a whole run, up and down, where the file determines it exactly.
fn fixed(results: &Results, background: &Part) -> Option<[f64; 2]> {
    let run = &results.experiment.run;
    let share = background.share(run.warmup, run.duration);
    let bps = background.fixed_bps(&results.manifest.measured)?;
    Some(bps.map(|bps| bps * share))
}

fn off(requested: f64, came: f64) -> f64 {
    if requested > 0.0 {
        (came / requested - 1.0).abs()
    } else {
        0.0
    }
}

fn mega(bps: f64) -> String {
    format!("{:.2}", bps / 1e6)
}
