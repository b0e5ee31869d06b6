//! Rates above the capacity of a link.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Direction, Dur, Rate};

use super::super::{File, Hop, Queue, queues};
use crate::file::findings::Findings;
use crate::kinds::{Asked, Part};

/// The links, and their highest rates over the run.
struct Links {
    names: Vec<String>,
    /// `None` for a packet-delivery trace.
    rates: Vec<[Option<Rate>; 2]>,
}

/// Rejects rates that a link cannot carry: a background's rate above that of a link on its path, and unresponsive
/// senders whose sum is above it: the parts of a mix, or a foreground and a background. Packets over TCP may have a
/// higher rate, because they can wait.
pub(super) fn check(file: &File, found: &mut Findings) {
    let links = links(file);
    for (i, background) in file.background.iter().enumerate() {
        let hops = file.hops(&background.route());
        // On the same path, a rate that is taken from another is that one's problem.
        let elsewhere = |other: &&Part| file.hops(&other.route()) != hops;
        let asks = match matched(file, background) {
            Some(other) if elsewhere(&other) => asks(file, background),
            _ => background.keys().asks(),
        };
        alone(&links, &hops, &asks, &format!("background[{i}]"), found);
        if !background.parts().is_empty() {
            mixed(&links, &file.leaves(background), file, i, found);
        }
    }
    for (i, foreground) in file.foreground.iter().enumerate() {
        let own = foreground.keys();
        if !own.is_unresponsive() {
            continue;
        }
        // A foreground that alone exceeds a link's rate is a deliberate overload, and allowed.
        let own = (file.hops(&own.route()), own.asks());
        for other in &file.background {
            let theirs = demand(file, &file.leaves(other));
            together(&links, &own, &theirs, i, other.name(), found);
        }
    }
}

/// The background whose rate another one takes.
fn matched<'f>(file: &'f File, part: &Part) -> Option<&'f Part> {
    let name = part.matches()?;
    let other = file.background.iter().find(|b| b.name() == name)?;
    Some(&other.0)
}

/// What a part asks for, with the rates that it takes from another background whose file gives them.
fn asks<'f>(file: &'f File, part: &'f Part) -> Asked {
    let own = part.keys().asks();
    let fixed = || {
        let other = matched(file, part)?;
        let (from, to) = (other.is_open_loop(), part.is_open_loop());
        // In windows it has another rate than the other one on average.
        let always = part.active().is_none() && other.active().is_none();
        let known = other.keys().fixed_bps(&BTreeMap::new());
        known.filter(|_| always && from && to)
    };
    let Some(taken) = fixed() else {
        return own;
    };
    Direction::BOTH.map(|d| {
        let rate = Some(taken[d]).filter(|&bps| bps > 0.0);
        // A rate that is taken from elsewhere is zero in the file.
        let own = own[d].filter(|(_, asked)| *asked > Rate::default());
        own.or(rate.map(|bps| ("rate", Rate::from_bps_f64(bps))))
    })
}

fn links(file: &File) -> Links {
    let all = file.links();
    let rates = all.iter().map(|link| {
        let start = link.keys.directions();
        Direction::BOTH.map(|d| {
            let start = &start[d];
            let own = link.keys.change.iter().filter(|c| c.direction.has(d));
            let traced = start.deliveries.is_some() || own.clone().any(|c| c.deliveries.is_some());
            let highest = own.filter_map(|c| c.rate).fold(start.rate, Rate::max);
            // A missing rate is another problem.
            (!traced && highest > Rate::default()).then_some(highest)
        })
    });
    Links {
        rates: rates.collect(),
        names: all.iter().map(|l| l.name.clone()).collect(),
    }
}

impl Links {
    fn rate(&self, queue: Queue) -> Option<Rate> {
        self.rates.get(queue.link)?[queue.direction]
    }

    /// The lowest rate that packets meet in a direction of a path, and which link has it.
    fn lowest(&self, hops: &[Hop], along: Direction) -> Option<(Queue, Rate)> {
        let queues = queues(hops, along).into_iter();
        let known = queues.filter_map(|q| Some((q, self.rate(q)?)));
        known.min_by_key(|&(_, rate)| rate)
    }

    /// A link in a direction, as messages name it.
    fn named(&self, queue: Queue) -> String {
        let way = queue.direction.name();
        match self.names.len() {
            1 => format!("the link carries {way}"),
            _ => format!("link `{}` carries {way}", self.names[queue.link]),
        }
    }
}

fn alone(links: &Links, hops: &[Hop], asked: &Asked, place: &str, found: &mut Findings) {
    for d in Direction::BOTH {
        if let (Some((queue, link)), Some((key, rate))) = (links.lowest(hops, d), asked[d])
            && rate > link
        {
            let place_of_link = match links.names.len() {
                1 => "a faster link under [network]",
                _ => "a faster link",
            };
            found.add(
                format!("{place}.{key}"),
                format!(
                    "{rate} are more than {}, which is {link}",
                    links.named(queue)
                ),
                &format!(
                    "write less than {link}, such as {}, or {place_of_link}",
                    link.scale(BUSY)
                ),
            );
        }
    }
}

/// A busy link that is not overloaded.
const BUSY: f64 = 0.6;

/// What unresponsive traffic asks of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    /// The highest rate of all together. Parts may send in different windows.
    peak: Rate,
    /// The highest rate of one part.
    largest: Rate,
    /// The number of parts that ask something.
    parts: usize,
}

/// What the unresponsive ones of these parts ask of each queue.
fn demand(file: &File, parts: &[&Part]) -> BTreeMap<Queue, Demand> {
    // Rates that begin or end at an instant. Those that end come first, because windows are half-open.
    let mut changes: BTreeMap<Queue, Vec<(Dur, bool, u64)>> = BTreeMap::new();
    let mut all: BTreeMap<Queue, Demand> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.keys().is_unresponsive()) {
        let hops = file.hops(&part.route());
        let asked = asks(file, part);
        let duration = file.run.duration;
        let windows = match part.active() {
            Some(active) => active.windows(duration),
            None => vec![(Dur::ZERO, duration)],
        };
        for d in Direction::BOTH {
            let rate = asked[d].map_or(Rate::default(), |(_, rate)| rate);
            for queue in queues(&hops, d) {
                if rate == Rate::default() {
                    continue;
                }
                let of_queue = all.entry(queue).or_default();
                of_queue.largest = of_queue.largest.max(rate);
                of_queue.parts += 1;
                let steps = changes.entry(queue).or_default();
                for &(begin, end) in &windows {
                    steps.push((begin, true, rate.bps()));
                    steps.push((end, false, rate.bps()));
                }
            }
        }
    }
    for (queue, mut steps) in changes {
        steps.sort_unstable();
        let (mut now, mut peak) = (0u64, 0u64);
        for (_, begins, bps) in steps {
            now = match begins {
                true => now.saturating_add(bps),
                false => now.saturating_sub(bps),
            };
            peak = peak.max(now);
        }
        all.entry(queue).or_default().peak = Rate::from_bps(peak);
    }
    all
}

/// Rejects a mix of parts that do not slow down, and that are together faster than a link.
fn mixed(links: &Links, parts: &[&Part], file: &File, place: usize, found: &mut Findings) {
    let mut said = BTreeSet::new();
    for (queue, asked) in demand(file, parts) {
        let Some(link) = links.rate(queue) else {
            continue;
        };
        // A part that exceeds the link by itself is another problem. One link for each direction says enough.
        if asked.parts > 1
            && asked.largest <= link
            && asked.peak > link
            && said.insert(queue.direction)
        {
            found.add(
                format!("background[{place}].of"),
                format!(
                    "the {} of its parts that do not slow down are together more than {}, which is {link}",
                    asked.peak,
                    links.named(queue)
                ),
                "lower their rates, or carry some of them over transport = \"tcp\"",
            );
        }
    }
}

/// Who asks, on which path.
type Asker = (Vec<Hop>, Asked);

fn together(
    links: &Links,
    (own_hops, own): &Asker,
    theirs: &BTreeMap<Queue, Demand>,
    foreground: usize,
    background: &str,
    found: &mut Findings,
) {
    for d in Direction::BOTH {
        let Some((key, a)) = own[d] else { continue };
        // The first link that is too slow says it.
        let over = queues(own_hops, d).into_iter().find_map(|queue| {
            let link = links.rate(queue)?;
            let b = theirs.get(&queue)?.peak;
            let above = a.bps().saturating_add(b.bps()) > link.bps();
            (a <= link && b <= link && above).then_some((queue, link, b))
        });
        if let Some((queue, link, b)) = over {
            found.add(
                format!("foreground[{foreground}].{key}"),
                format!(
                    "{a} and the {b} of background `{background}` are together more than {}, which is {link}",
                    links.named(queue)
                ),
                "neither of them slows down: lower one, or carry one over transport = \"tcp\"",
            );
        }
    }
}
