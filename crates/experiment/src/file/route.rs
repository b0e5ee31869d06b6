//! Routes: the links that the traffic of a part crosses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Direction, Dur, Rate};
pub use swell_world::Hop;

use super::{File, NamedLink, Network, Part};

/// Which links the traffic of a foreground or background crosses, and from which end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// Names of the links that its traffic crosses, from the clients' end to the servers'. A link that is crossed from
    /// its right end to its left is written `NAME reversed`. Default: all links in the order of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// The clients are at the far end of the path, and the servers at the near one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reversed: bool,
}

/// Name of the only link in a network without named links.
const BOTTLENECK: &str = "bottleneck";

/// Suffix to the name of a link that is crossed from right to left.
const REVERSED: &str = " reversed";

/// Parses an entry of a path: the link, and whether it is crossed from right to left.
pub(super) fn crossed(entry: &str) -> (&str, bool) {
    match entry.strip_suffix(REVERSED) {
        Some(name) => (name.trim(), true),
        None => (entry, false),
    }
}

impl File {
    /// The links: those of `[[links]]` or of a preset, else the network's only one, the `bottleneck`.
    pub fn links(&self) -> Vec<NamedLink> {
        if !self.links.is_empty() {
            return self.links.clone();
        }
        match &self.network.preset {
            Some(preset) => preset.0.links(&self.network.link),
            None => vec![NamedLink {
                name: BOTTLENECK.to_owned(),
                keys: self.network.link.clone(),
            }],
        }
    }

    /// The links that packets cross from a route's clients, and towards them: names and directions.
    pub fn ways(&self, route: &Route) -> [Vec<(String, Direction)>; 2] {
        let (links, hops) = (self.links(), self.hops(route));
        Direction::BOTH.map(|along| {
            let queues = queues(&hops, along).into_iter();
            queues
                .map(|q| (links[q.link].name.clone(), q.direction))
                .collect()
        })
    }

    /// Whether a link changes during a run.
    pub fn changes(&self) -> bool {
        self.links().iter().any(|l| !l.keys.change.is_empty())
    }

    /// The links with the lowest initial rates on the path of a part: from its clients, and towards them. For a mix,
    /// among all links that its parts cross.
    pub fn narrowest(&self, part: &Part) -> Option<[Bottleneck; 2]> {
        let links = self.links();
        let hops = self.all_hops(part);
        let of = |along| {
            let rate = |q: Queue| links[q.link].keys.directions()[q.direction].rate;
            let queue = narrowest(&hops, along, rate)?;
            Some(Bottleneck {
                link: links[queue.link].name.clone(),
                queue,
                rate: rate(queue),
            })
        };
        Some([of(Direction::Up)?, of(Direction::Down)?])
    }

    /// The links that a part crosses; of a mix, those of its parts.
    fn all_hops(&self, part: &Part) -> Vec<Hop> {
        let leaves = self.leaves(part).into_iter();
        leaves.flat_map(|leaf| self.hops(&leaf.route())).collect()
    }

    /// Whether the traffic of two parts has a link in common, in the same or in opposite directions.
    pub fn meet(&self, one: &Part, other: &Part) -> bool {
        let crossed = self.all_hops(other);
        let mut own = self.all_hops(one).into_iter();
        own.any(|hop| crossed.iter().any(|c| c.link == hop.link))
    }

    /// The paths of all parts.
    pub fn paths(&self) -> Vec<Vec<Hop>> {
        let foregrounds = self.foreground.iter().map(|f| &f.0);
        let parts = foregrounds.chain(self.background.iter().map(|b| &b.0));
        // A mix has the paths of its parts.
        let routes = parts.filter(|part| !part.is_none() && part.parts().is_empty());
        routes.map(|part| self.hops(&part.route())).collect()
    }

    /// Indices of the links that some part crosses.
    pub(super) fn crossed(&self) -> Vec<usize> {
        self.paths().iter().flatten().map(|hop| hop.link).collect()
    }

    /// Replaces a preset by its links, without those that no part crosses. Returns whether there was a preset.
    pub(crate) fn write_out(&mut self) -> bool {
        let preset = self.network.preset.is_some();
        if preset {
            let crossed = self.crossed();
            let all = self.links().into_iter().enumerate();
            let used = all.filter(|(i, _)| crossed.is_empty() || crossed.contains(i));
            self.links = used.map(|(_, link)| link).collect();
            self.network = Network {
                rtt: self.network.rtt,
                access_delay: self.network.own_access_delay(),
                ..Network::default()
            };
        }
        preset
    }

    /// The links of a route, in the order in which packets from its clients cross them. Omits invalid entries, which
    /// the check of the file rejects.
    pub fn hops(&self, route: &Route) -> Vec<Hop> {
        let links = self.links();
        let mut hops: Vec<Hop> = match &route.path {
            None => (0..links.len())
                .map(|link| Hop {
                    link,
                    reversed: false,
                })
                .collect(),
            Some(path) => (path.iter())
                .filter_map(|entry| {
                    let (name, reversed) = crossed(entry);
                    let link = links.iter().position(|l| l.name == name)?;
                    Some(Hop { link, reversed })
                })
                .collect(),
        };
        if route.reversed {
            hops.reverse();
            hops.iter_mut().for_each(|hop| hop.reversed ^= true);
        }
        hops
    }

    /// Round-trip propagation delay of a route, without access paths.
    pub fn round_trip(&self, route: &Route) -> Dur {
        let links = self.links();
        let hops = self.hops(route);
        let both = hops.iter().flat_map(|h| links[h.link].keys.directions());
        both.map(|l| l.delay).sum()
    }
}

/// The slowest link of a path in one of its directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Its name.
    pub link: String,
    /// Which direction of it.
    pub queue: Queue,
    /// Its initial rate.
    pub rate: Rate,
}

impl Bottleneck {
    /// Whether rows with this link and direction belong to it.
    pub fn is(&self, link: &str, direction: Direction) -> bool {
        self.link == link && self.queue.direction == direction
    }
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Queue {
    /// The link's index, in the order of the file.
    pub link: usize,
    /// Which direction of it.
    pub direction: Direction,
}

impl Queue {
    /// The queue of a hop that packets in this direction of its path cross.
    fn of(hop: &Hop, along: Direction) -> Queue {
        Queue {
            link: hop.link,
            direction: match hop.reversed {
                true => along.opposite(),
                false => along,
            },
        }
    }
}

/// The queues that packets in this direction of a path cross, in order.
pub fn queues(hops: &[Hop], along: Direction) -> Vec<Queue> {
    let each = hops.iter().map(|hop| Queue::of(hop, along));
    match along {
        Direction::Up => each.collect(),
        Direction::Down => each.rev().collect(),
    }
}

/// The queue with the lowest rate in a direction of a path, the first of several; `None` only without hops.
/// `rate` gives the rate of a queue.
pub fn narrowest(hops: &[Hop], along: Direction, rate: impl Fn(Queue) -> Rate) -> Option<Queue> {
    let queues = hops.iter().map(|hop| Queue::of(hop, along));
    queues.min_by_key(|&queue| rate(queue))
}
