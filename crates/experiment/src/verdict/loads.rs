//! Loads: what was requested of a background, what it offered, and what the bottleneck carried of it.

use super::Condition;
use crate::kinds::Part;
use crate::observe::LinkTotals;
use crate::store::Results;

/// A load off by more than this is not an equal one.
pub(super) const UNEQUAL: f64 = 0.10;

/// A load off by more than this is another experiment.
const MISSED: f64 = 0.25;

/// A direction that carries less than this share of its capacity decides nothing by its load.
const IDLE: f64 = 0.02;

/// A link that is used by less than this share has room for more.
const FULL: f64 = 0.90;

/// Directions of the bottleneck, as sentences name them.
const WAYS: [&str; 2] = ["up", "down"];

/// Loads of one background beside one foreground, up and down, bits per second of network-layer bytes.
pub(super) struct Loads {
    /// What was requested of it, or what it carries when it is alone; `None` where neither is known.
    pub requested: [Option<f64>; 2],
    /// What arrived at the bottleneck, beside the foreground.
    pub offered: [f64; 2],
    /// What left it.
    pub carried: [f64; 2],
    /// What was asked for and what came when it was measured alone, towards the clients.
    target: Option<(f64, f64)>,
    /// What it carries alone, or offers where nothing makes it slow down.
    own: [Option<f64>; 2],
    /// Whether nothing makes it slow down.
    open_loop: bool,
    /// Whether it offers what is requested of it, and nothing else.
    exact: bool,
    /// Capacities.
    rates: [f64; 2],
    /// What of the capacities was used, by both.
    used: [f64; 2],
}

impl Loads {
    /// Of the runs of `foreground` against this background that may decide.
    pub fn of(results: &Results, foreground: &str, with: &Condition<'_>) -> Loads {
        let background = with.background;
        // Loads are told of all runs; late ones carried what they carried.
        let runs = || results.of(foreground, background.name());
        let narrowest = results.experiment.narrowest(background);
        let mean = |d: usize, bytes: &dyn Fn(&LinkTotals) -> u64| {
            let links = runs().flat_map(|r| &r.observed.links);
            let own = narrowest.as_ref().map(|n| &n[d]);
            let (sum, seconds) = links
                .filter(|l| own.is_some_and(|own| own.is(&l.link, l.direction)))
                .fold((0.0, 0.0), |(b, s), l| {
                    (b + bytes(l) as f64, s + l.duration)
                });
            if seconds > 0.0 {
                sum * 8.0 / seconds
            } else {
                0.0
            }
        };
        let both = |bytes: &dyn Fn(&LinkTotals) -> u64| [0, 1].map(|d| mean(d, bytes));
        let offered = both(&|l| l.arrived[1]);
        let measured = results.manifest.measured.get(background.name());
        let alone = alone(results, background);
        let fixed = fixed(results, background);
        let open_loop = background.is_open_loop();
        let run = &results.experiment.run;
        let share = background.share(run.warmup, run.duration);
        let exact = fixed.is_some() && open_loop;
        // The rate is that of the mean over all draws; what heavy tails bring to these is in the intervals.
        let target =
            measured.and_then(|m| Some((m.target_bps?, m.expected_bps.unwrap_or(m.down_bps))));
        Loads {
            requested: [0, 1].map(|d| match (fixed, target) {
                (Some(fixed), _) => Some(fixed[d]),
                (None, Some((asked, _))) if d == 1 => Some(asked * share),
                _ => alone.map(|a| a[d]),
            }),
            own: [0, 1].map(|d| match alone {
                Some(alone) => Some(alone[d]),
                None => open_loop.then_some(offered[d]),
            }),
            offered,
            carried: both(&|l| l.departed[1]),
            target,
            open_loop,
            exact,
            rates: [0, 1].map(|d| {
                let own = narrowest.as_ref().map(|n| n[d].rate);
                own.unwrap_or_default().bps() as f64
            }),
            used: both(&|l| l.departed[0] + l.departed[1]),
        }
    }

    /// The load was not what was requested: the runs are of another experiment.
    pub fn missed(&self, name: &str) -> Vec<String> {
        let mut reasons = Vec::new();
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
                && self.exact
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

    /// Traffic that waits for answers gave way to the foreground, though the link had room: what it would have done
    /// at the load that was requested is not known.
    pub fn gave_way(&self, name: &str) -> Vec<String> {
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
        [1, 0].into_iter().filter_map(way).collect()
    }

    /// Why the loads of two backgrounds are not equal.
    pub fn differ([a, b]: [&Loads; 2]) -> Vec<String> {
        let way = |d: usize| {
            let (x, y) = (a.own[d]?, b.own[d]?);
            (a.counts(d, x.max(y)) && (x - y).abs() > UNEQUAL * x.max(y)).then(|| {
                format!(
                    "their loads differ: {} and {} Mbit/s {} when alone",
                    mega(x),
                    mega(y),
                    WAYS[d]
                )
            })
        };
        [1, 0].into_iter().filter_map(way).collect()
    }

    /// Whether a load in this direction is more than nothing.
    fn counts(&self, direction: usize, bps: f64) -> bool {
        bps > IDLE * self.rates[direction]
    }
}

/// What a background carries when it has the network to itself, up and down, over a whole run; of several together
/// the sum.
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

/// What the file says exactly that a background offers over a whole run, up and down.
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
