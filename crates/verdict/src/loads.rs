//! Loads of a background: the requested rate, the offered rate, and the rate that the bottleneck carried.

use std::cmp::Reverse;

use super::condition::Condition;
use super::counted::{Count, capacity, has_room, is_full, rate};
use super::numbers::mega;
use swell_base::Direction;
use swell_experiment::file::LoadBasis;
use swell_experiment::kinds::Part;
use swell_experiment::store::Results;

/// Loads that differ by more than this share are not equal.
pub(super) const UNEQUAL: f64 = 0.10;

/// If the load misses the requested one by more than this share, the run is not the requested experiment.
const MISSED: f64 = 0.25;

/// Loads below this share of the capacity are ignored.
const IDLE: f64 = 0.02;

/// Loads of one background beside one foreground, up and down, network-layer bits per second. If the parts of a mix
/// have different bottlenecks, these are the sums over the parts.
pub(super) struct Loads {
    /// The name of the background or of the part of a mix.
    name: String,
    /// The directions of links that it shares with the foreground.
    shared: Vec<Shared>,
    /// The parts of a mix, each at its own bottleneck, where their paths differ; else empty.
    parts: Vec<Loads>,
    /// Reasons why the load of a part is not the requested one, where all parts have one path.
    odd_parts: Vec<String>,
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
    /// Whether it is open-loop, or most of its bytes are those of datagrams: what it loses does not arrive again.
    unyielding: bool,
    /// Whether `own` was measured, and holds for whole runs: it has no windows in which it sends.
    measured: bool,
    /// Whether it should offer exactly the requested rate, up and down.
    exact: [bool; 2],
    /// Whether it is to send, and sent nothing after the warm-up.
    silent: bool,
    /// What the bottleneck could carry in the runs, on average.
    rates: [f64; 2],
    /// Rate that left the bottleneck, foreground and background together.
    used: [f64; 2],
    /// The share of the time in which it sends.
    active: f64,
    /// Whether a link that its packets cross was full, in either direction, while it was to send.
    full: bool,
}

/// A direction of a link that a background shares with the foreground.
struct Shared {
    link: String,
    /// Which direction of it.
    direction: Direction,
    /// Which direction of the background crosses it; `Up` is from its clients.
    own: Direction,
    /// What the link could carry in the runs, on average.
    rate: f64,
    /// What foregrounds carried over the link, in the direction in which they carried more.
    foreground: f64,
    /// Whether the foreground crosses it in the opposite of its own directions: the clients of the two are at opposite
    /// ends.
    turned: bool,
}

impl Loads {
    /// Loads over all runs of `foreground` beside this background. Late runs count too: lateness does not invalidate
    /// byte counts.
    pub fn of(results: &Results, foreground: &str, with: &Condition<'_>) -> Loads {
        let file = &results.experiment;
        let leaves = file.leaves(with.background);
        let here = |leaf: &&Part| file.hops(&leaf.route()) == file.hops(&leaves[0].route());
        let part = |leaf: &&Part| Loads::at(results, foreground, leaf, Some(with.background));
        let parts: Vec<Loads> = match leaves.len() {
            1 => Vec::new(),
            _ => leaves.iter().map(part).collect(),
        };
        if leaves.iter().all(here) {
            let mut runs = results.of(foreground, with.background.name());
            let counted = runs.any(|run| !run.observed.parts.is_empty());
            let odd = parts
                .iter()
                .filter(|_| counted)
                .flat_map(Loads::missed_here);
            return Loads {
                odd_parts: odd.collect(),
                ..Loads::at(results, foreground, with.background, None)
            };
        }
        let sum = |of: fn(&Loads) -> [f64; 2]| {
            Direction::BOTH.map(|d| parts.iter().map(|one| of(one)[d]).sum::<f64>())
        };
        let known = |of: fn(&Loads) -> [Option<f64>; 2]| {
            Direction::BOTH.map(|d| parts.iter().map(|one| of(one)[d]).sum::<Option<f64>>())
        };
        Loads {
            name: with.background.name().to_owned(),
            shared: Vec::new(),
            requested: known(|l| l.requested),
            offered: sum(|l| l.offered),
            carried: sum(|l| l.carried),
            own: known(|l| l.own),
            target: None,
            open_loop: with.background.is_open_loop(),
            unyielding: with.background.is_open_loop(),
            measured: false,
            exact: [false; 2],
            silent: false,
            rates: sum(|l| l.rates),
            used: sum(|l| l.used),
            active: 1.0,
            full: parts.iter().any(|l| l.full),
            odd_parts: Vec::new(),
            parts,
        }
    }

    /// Loads of `background` at its bottlenecks: the whole background, or a part of `mix`.
    fn at(results: &Results, foreground: &str, background: &Part, mix: Option<&Part>) -> Loads {
        let at = results.experiment.narrowest(background);
        let somewhere = at.is_some();
        let part = mix.map(|_| background.name());
        let runs = || results.of(foreground, mix.unwrap_or(background).name());
        let both = |what: Count| {
            let of = |d| Some(rate(runs(), &at.as_ref()?[d], part, what));
            Direction::BOTH.map(|d| of(d).unwrap_or(0.0))
        };
        let offered = both(Count::Arrived);
        let carried_bps = both(Count::Departed);
        let measured = results.manifest.measured.get(background.name());
        let alone = alone(results, background);
        let fixed = fixed(results, background);
        let open_loop = background.is_open_loop();
        let run = &results.experiment.run;
        let share = background.share(run.warmup, run.duration);
        let active = if share > 0.0 { share } else { 1.0 };
        let asked = measured.and_then(|m| m.target_bps);
        let carried = background.load() == LoadBasis::Carried;
        // As much is offered as it takes to carry a rate.
        let exact = fixed.is_some() && open_loop && !carried;
        // Compare with the mean over all draws. The variation between draws, which heavy tails make large, is
        // in the intervals.
        let target = measured
            .filter(|_| carried)
            .and_then(|m| Some((m.target_bps?, m.expected_bps.unwrap_or(m.down_bps))));
        Loads {
            requested: Direction::BOTH.map(|d| match (fixed, asked) {
                (Some(fixed), _) => Some(fixed[d]),
                (None, Some(asked)) if d == Direction::Down => Some(asked * share),
                _ => alone.map(|a| a[d]),
            }),
            own: Direction::BOTH.map(|d| match alone {
                Some(alone) => Some(alone[d]),
                None => open_loop.then_some(offered[d]),
            }),
            offered,
            carried: carried_bps,
            target,
            open_loop,
            unyielding: open_loop || measured.is_some_and(|m| m.unyielding),
            // A part of a mix has other draws than alone.
            measured: mix.is_none()
                && measured.is_some()
                && (results.experiment.leaves(background).iter()).all(|l| l.active().is_none()),
            exact: [exact, exact || (asked.is_some() && !carried)],
            silent: somewhere
                && runs().next().is_some()
                && !background.is_none()
                && [offered, carried_bps] == [[0.0; 2]; 2],
            rates: Direction::BOTH.map(|d| {
                at.as_ref().map_or(0.0, |at| {
                    let found = capacity(runs(), |l| at[d].is(&l.link, l.direction));
                    found.unwrap_or(at[d].rate.bps() as f64)
                })
            }),
            used: both(Count::Used),
            active,
            full: (results.experiment.queues_of(background).iter())
                .any(|queue| is_full(runs, queue, part, active)),
            name: background.name().to_owned(),
            shared: shared(results, foreground, background, mix),
            parts: Vec::new(),
            odd_parts: Vec::new(),
        }
    }

    /// Whether its clients are at the end of the foreground's servers: what it sends down flows up for the foreground.
    pub fn is_turned(&self) -> bool {
        let mut shared = self.each().flat_map(|l| &l.shared).peekable();
        shared.peek().is_some() && shared.all(|s| s.turned)
    }

    /// This background, or its parts where they are judged one by one.
    fn each(&self) -> impl Iterator<Item = &Loads> {
        let own = self.parts.is_empty().then_some(self);
        own.into_iter().chain(&self.parts)
    }

    /// Reasons why the load is not the requested one. The runs then answer another question.
    pub fn missed(&self) -> Vec<String> {
        let each = self.each().flat_map(Loads::missed_here);
        each.chain(self.odd_parts.iter().cloned()).collect()
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
                mega(requested, 2),
                mega(carried, 2)
            ));
        }
        reasons.extend(self.another_came());
        reasons.extend(self.exceeded());
        reasons
    }

    /// Reasons why what came of the requested rates is not these.
    fn another_came(&self) -> Vec<String> {
        let way = |d: Direction| {
            let requested = self.requested[d].filter(|_| self.exact[d])?;
            let (came, word) = self.came(d, requested);
            let counts = self.counts(d, requested.max(self.offered[d]));
            (counts && off(requested, came) > MISSED).then(|| {
                format!(
                    "{} Mbit/s of {} were requested {} and {} {word}",
                    mega(requested, 2),
                    self.name,
                    self.way(d),
                    mega(came, 2)
                )
            })
        };
        Direction::BOTH.into_iter().filter_map(way).collect()
    }

    /// What came of a requested rate, and what that did. What is lost of traffic that waits for answers arrives again:
    /// beyond the request, what was carried counts.
    fn came(&self, d: Direction, requested: f64) -> (f64, &'static str) {
        let (offered, carried) = (self.offered[d], self.carried[d]);
        match self.unyielding || offered <= requested {
            true => (offered, "offered"),
            false => (carried.clamp(requested, offered.max(requested)), "carried"),
        }
    }

    /// What the foreground calls a direction of this background.
    fn way(&self, d: Direction) -> &'static str {
        match self.is_turned() {
            true => d.opposite().name(),
            false => d.name(),
        }
    }

    /// Why the rate that it is said to carry alone cannot be right: it carried more beside the foreground. Traffic that
    /// gives way carries less. In windows of the runs, draws may be larger than elsewhere, so these prove nothing.
    fn exceeded(&self) -> Option<String> {
        // In the other direction there may be acknowledgements only, whose number depends on losses.
        let d = Direction::of(self.own[1] >= self.own[0]);
        let (own, carried) = (self.own[d]?, self.carried[d]);
        let more = carried > (1.0 + MISSED) * own && self.counts(d, carried);
        (more && self.measured).then(|| {
            format!(
                "{} was to carry {} Mbit/s {}, its rate alone, and carried {}",
                self.name,
                mega(own, 2),
                self.way(d),
                mega(carried, 2)
            )
        })
    }

    /// Reasons why closed-loop traffic carried too little beside the foreground although the link had spare capacity.
    /// Its effect at the requested load is then unknown.
    pub fn gave_way(&self) -> Vec<String> {
        self.each().flat_map(Loads::gave_way_here).collect()
    }

    /// Whether the link had spare capacity while this background was to send.
    fn has_room(&self, d: Direction) -> bool {
        has_room(self.used[d], self.carried[d], self.active, self.rates[d])
    }

    fn gave_way_here(&self) -> Vec<String> {
        let name = &self.name;
        // Traffic that waits for answers is held back by every link that these or its requests cross.
        let way = |d: Direction| {
            let requested = self.requested[d]?;
            let carried = self.carried[d];
            let short = carried < (1.0 - MISSED) * requested && self.counts(d, requested);
            (short && !self.open_loop && !self.full && self.has_room(d)).then(|| {
                format!(
                    "{name} carried {} of {} Mbit/s {} beside it, though the link had room",
                    mega(carried, 2),
                    mega(requested, 2),
                    self.way(d)
                )
            })
        };
        // Datagrams of a model do not give way. Where bursts of them are lost, the traffic is not that of the model.
        let lost = |d: Direction| {
            let (offered, carried) = (self.offered[d], self.carried[d]);
            let short = carried < (1.0 - MISSED) * offered && self.counts(d, offered);
            (short && !self.open_loop && self.has_room(d)).then(|| {
                format!(
                    "{name} offered {} Mbit/s {} and {} were carried, though the link had room",
                    mega(offered, 2),
                    self.way(d),
                    mega(carried, 2)
                )
            })
        };
        let ways = || [Direction::Down, Direction::Up].into_iter();
        ways()
            .filter_map(way)
            .chain(ways().filter_map(lost))
            .collect()
    }

    /// Why the loads of two backgrounds are not equal at the links that they share with the foreground. Elsewhere they
    /// may differ: the foreground does not notice.
    pub fn differ(loads: [&Loads; 2]) -> Vec<String> {
        let apart = unequal(loads, Loads::own_at);
        let said = apart.into_iter().map(|(on, [x, y], _)| {
            format!(
                "their loads differ: {} and {} Mbit/s {on} when alone",
                mega(x, 2),
                mega(y, 2),
            )
        });
        let each = || loads.iter().flat_map(|l| l.each());
        // What a model's datagrams offer beyond the request is lost, so that what is carried does not show it.
        let datagrams = each().filter(|l| l.unyielding && !l.open_loop);
        said.chain(each().filter_map(Loads::exceeded))
            .chain(datagrams.flat_map(Loads::another_came))
            .collect()
    }

    /// The first shared link where two backgrounds that carry the same alone carried different rates beside the
    /// foreground, and these rates, if most of the difference is what the lower one carried less than alone, that
    /// one responds to the network, its bottleneck was full, and the foreground carried as much. In short runs bursty
    /// traffic may carry less by chance.
    pub fn yielded(loads: [&Loads; 2]) -> Option<(String, [f64; 2])> {
        let equal = unequal(loads, Loads::own_at).is_empty();
        let beside = unequal(loads, Loads::carried_at);
        let (on, carried, at) = beside.into_iter().next().filter(|_| equal)?;
        let lower = usize::from(carried[1] < carried[0]);
        let lost = loads[lower].own_at(at)? - carried[lower];
        let gap = carried[1 - lower] - carried[lower];
        let places = loads[lower].each();
        let mut places = places.flat_map(|l| l.shared.iter().map(move |s| (l, s)));
        let here = |s: &Shared| (&s.link, s.direction) == (&at.link, at.direction);
        let (part, place) = places.find(|(_, s)| here(s))?;
        let displaced = place.foreground > lost / 2.0 && !part.has_room(place.own);
        let gives_way = !loads[lower].open_loop && lost > gap / 2.0 && displaced;
        gives_way.then_some((on, carried))
    }

    /// Sum of the `own` rates of the parts that cross this direction of a link; `None` where one is unknown.
    fn own_at(&self, at: &Shared) -> Option<f64> {
        let here = self.each().flat_map(|l| l.crossing(at).map(|d| l.own[d]));
        here.sum()
    }

    /// Sum of the `carried` rates of the parts that cross this direction of a link.
    fn carried_at(&self, at: &Shared) -> Option<f64> {
        let here = self
            .each()
            .flat_map(|l| l.crossing(at).map(|d| l.carried[d]));
        Some(here.sum())
    }

    /// The directions of this background, without parts, that cross this direction of a link.
    fn crossing(&self, at: &Shared) -> impl Iterator<Item = Direction> {
        let same = |s: &&Shared| (&s.link, s.direction) == (&at.link, at.direction);
        self.shared.iter().filter(same).map(|s| s.own)
    }

    /// Whether a load in this direction is large enough to count.
    fn counts(&self, direction: Direction, bps: f64) -> bool {
        bps > IDLE * self.rates[direction]
    }
}

/// The directions of links that `background`, a leaf or a mix of leaves with the same path, shares with the foreground.
fn shared(
    results: &Results,
    foreground: &str,
    background: &Part,
    mix: Option<&Part>,
) -> Vec<Shared> {
    let file = &results.experiment;
    let Some(own) = file.foreground.iter().find(|f| f.name() == foreground) else {
        return Vec::new();
    };
    let along = file.ways(&own.route());
    let crossed = along.concat();
    let ways = file.ways(&file.leaves(background)[0].route());
    let each = Direction::BOTH
        .into_iter()
        .zip(ways)
        .flat_map(|(d, way)| way.into_iter().map(move |at| (d, at)));
    let both = each.filter(|(_, at)| crossed.contains(at));
    let runs = || results.of(foreground, mix.unwrap_or(background).name());
    let of = |(d, (link, direction)): (Direction, (String, Direction))| {
        let rate = capacity(runs(), |l| (&*l.link, l.direction) == (&*link, direction));
        // A transfer in one direction also displaces acknowledgements in the other.
        let beside = Direction::BOTH.map(|way| {
            let rows = runs().flat_map(|run| &run.observed.links);
            let rows = rows.filter(|l| (&*l.link, l.direction) == (&*link, way));
            let (bytes, seconds) = rows.fold((0, 0.0), |(bytes, seconds), l| {
                (bytes + l.departed[0], seconds + l.duration)
            });
            bytes as f64 * 8.0 / f64::max(seconds, f64::MIN_POSITIVE)
        });
        Shared {
            rate: rate.unwrap_or(0.0),
            foreground: beside[0].max(beside[1]),
            turned: !along[d].contains(&(link.clone(), direction)),
            link,
            direction,
            own: d,
        }
    };
    both.map(of).collect()
}

/// The directions of shared links where a rate of two backgrounds differs, named for a message, and these rates. Down
/// comes first, and rates that differ on several links alike come once.
fn unequal(
    [a, b]: [&Loads; 2],
    rate: impl Fn(&Loads, &Shared) -> Option<f64>,
) -> Vec<(String, [f64; 2], &Shared)> {
    let mut places: Vec<&Shared> = a.each().chain(b.each()).flat_map(|l| &l.shared).collect();
    places.sort_by_key(|at| (Reverse(at.direction), at.link.clone()));
    places.dedup_by_key(|at| (at.direction, at.link.clone()));
    let several = places.iter().any(|at| at.link != places[0].link);
    let mut found: Vec<(String, [f64; 2], &Shared)> = Vec::new();
    for at in places {
        let (Some(x), Some(y)) = (rate(a, at), rate(b, at)) else {
            continue;
        };
        let counts = x.max(y) > IDLE * at.rate;
        let known = found.iter().any(|(_, rates, _)| *rates == [x, y]);
        if !counts || (x - y).abs() <= UNEQUAL * x.max(y) || known {
            continue;
        }
        // The table gives the loads of a background by directions of the foreground, so do messages where there is one link.
        let owns = a.each().chain(b.each()).flat_map(|l| l.crossing(at));
        let owns: Vec<Direction> = owns.collect();
        found.push(match owns.iter().all(|&d| d == owns[0]) {
            true if !several => {
                let own = if at.turned { at.own.opposite() } else { at.own };
                (own.name().to_owned(), [x, y], at)
            }
            _ => {
                let way = at.direction.name();
                (format!("{way} link {}", at.link), [x, y], at)
            }
        });
    }
    found
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
        sum = Direction::BOTH.map(|d| sum[d] + own[d]);
    }
    Some(sum)
}

/// The rate that a background offers over a whole run, up and down, where the file determines it exactly.
fn fixed(results: &Results, background: &Part) -> Option<[f64; 2]> {
    if !background.parts().is_empty() {
        let leaves = results.experiment.leaves(background).into_iter();
        let each: Option<Vec<[f64; 2]>> = leaves.map(|leaf| fixed(results, leaf)).collect();
        return Some(Direction::BOTH.map(|d| each.iter().flatten().map(|bps| bps[d]).sum()))
            .filter(|_| each.is_some());
    }
    let run = &results.experiment.run;
    let share = background.share(run.warmup, run.duration);
    let taken = (results.experiment).taken(background, &results.manifest.measured);
    let bps = background.fixed_bps(&taken)?;
    Some(bps.map(|bps| bps * share))
}

fn off(requested: f64, came: f64) -> f64 {
    if requested > 0.0 {
        (came / requested - 1.0).abs()
    } else {
        0.0
    }
}
