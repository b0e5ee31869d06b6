//! Rates above the capacity of a link.

use swell_base::Rate;

use super::super::{File, Hop, Queue, Side, queues};
use super::Findings;
use crate::kinds::Asked;

/// Directions, as messages name them.
const WAYS: [&str; 2] = ["up", "down"];

/// The links, and their highest rates over the run.
struct Links {
    names: Vec<String>,
    /// `None` for a packet-delivery trace.
    rates: Vec<[Option<Rate>; 2]>,
}

/// Rejects rates that a link cannot carry: a background's rate above that of a link on its path, and an unresponsive
/// foreground and background whose sum is above it. Packets over TCP may have a higher rate, because they can wait.
pub(super) fn check(file: &File, found: &mut Findings) {
    let links = links(file);
    for (i, background) in file.background.iter().enumerate() {
        let hops = file.hops(&background.route());
        alone(
            &links,
            &hops,
            &background.as_keys().asks(),
            &format!("background[{i}]"),
            found,
        );
    }
    for (i, foreground) in file.foreground.iter().enumerate() {
        let own = foreground.as_keys();
        if !own.is_unresponsive() {
            continue;
        }
        // A foreground that alone exceeds a link's rate is a deliberate overload, and allowed.
        let own = (file.hops(&own.route()), own.asks());
        let others = file.background.iter().map(|other| other.as_keys());
        for other in others.filter(|other| other.is_unresponsive()) {
            let theirs = (file.hops(&other.route()), other.asks());
            together(&links, &own, &theirs, i, other.name(), found);
        }
    }
}

fn links(file: &File) -> Links {
    let all = file.links();
    let rates = all.iter().map(|link| {
        let start = link.keys.directions();
        [0, 1].map(|d| {
            let side = [Side::Up, Side::Down][d];
            let changes = link.keys.change.iter();
            let own = changes.filter(|c| c.direction == Side::Both || c.direction == side);
            let traced =
                start[d].deliveries.is_some() || own.clone().any(|c| c.deliveries.is_some());
            let highest = own.filter_map(|c| c.rate).fold(start[d].rate, Rate::max);
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
        self.rates.get(queue.link)?[usize::from(queue.direction)]
    }

    /// The lowest rate that packets meet in the direction `d` of a path, and which link has it.
    fn lowest(&self, hops: &[Hop], d: usize) -> Option<(Queue, Rate)> {
        let queues = queues(hops, d == 1).into_iter();
        let known = queues.filter_map(|q| Some((q, self.rate(q)?)));
        known.min_by_key(|&(_, rate)| rate)
    }

    /// A link in a direction, as messages name it.
    fn named(&self, queue: Queue) -> String {
        let way = WAYS[usize::from(queue.direction)];
        match self.names.len() {
            1 => format!("the link carries {way}"),
            _ => format!("link `{}` carries {way}", self.names[queue.link]),
        }
    }
}

fn alone(links: &Links, hops: &[Hop], asked: &Asked, place: &str, found: &mut Findings) {
    for d in [0, 1] {
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

/// Who asks, on which path.
type Asker = (Vec<Hop>, Asked);

fn together(
    links: &Links,
    (own_hops, own): &Asker,
    (their_hops, theirs): &Asker,
    foreground: usize,
    background: &str,
    found: &mut Findings,
) {
    for d in [0, 1] {
        let Some((key, a)) = own[d] else { continue };
        // The first link that is too slow says it.
        let over = queues(own_hops, d == 1).into_iter().find_map(|queue| {
            let link = links.rate(queue)?;
            // Their direction is that of their path.
            let e = [0, 1]
                .into_iter()
                .find(|&e| queues(their_hops, e == 1).contains(&queue))?;
            let (_, b) = theirs[e]?;
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
