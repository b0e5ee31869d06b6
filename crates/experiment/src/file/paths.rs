//! The links of a file, and those that its parts cross.

use swell_base::{Direction, Dur};

use super::route::{Bottleneck, Hop, Queue, Route, crossed, narrowest, queues};
use super::{File, NamedLink, Network, Part};

/// Name of the only link in a network without named links.
const BOTTLENECK: &str = "bottleneck";

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

    /// The directions of links that a part's packets cross, from its clients and towards them; of a mix, those of all
    /// its parts.
    pub fn queues_of(&self, part: &Part) -> Vec<Bottleneck> {
        let links = self.links();
        let hops = self.all_hops(part);
        let mut crossed = Direction::BOTH.map(|along| queues(&hops, along)).concat();
        crossed.sort_unstable();
        crossed.dedup();
        let of = |queue: Queue| Bottleneck {
            link: links[queue.link].name.clone(),
            queue,
            rate: links[queue.link].keys.directions()[queue.direction].rate,
        };
        crossed.into_iter().map(of).collect()
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
        if route.is_turned() {
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
