//! The network of a world: its shared links, paths over them, meters and taps.

use std::collections::VecDeque;

use swell_base::{Bytes, Direction, Dur, Paged, Stream, Time};
use swell_path::{Census, Link, LinkConfig, Meter};

use super::{MTU, World};
use crate::access::Accesses;
use crate::ahead::Ahead;
use crate::bottleneck::Bottleneck;
use crate::delays::{DelayBucket, Delays};
use crate::fast::FastPath;
use crate::feed::Feeds;
use crate::flow::{Flows, HostTap, Tap};
use crate::index::ACCESS;
use crate::links::Links;
use crate::path::{Duplex, Hop, PathId, Paths, queue};
use crate::port::Ports;
use crate::wake::Timers;
use crate::worker::Workers;

impl World {
    /// A world with one link, the `bottleneck` (left to right, right to left), and nothing else.
    pub fn new(bottleneck: &[LinkConfig; 2], seed: u64) -> World {
        let only = Duplex {
            name: "bottleneck".to_owned(),
            directions: bottleneck.clone(),
        };
        World::with_links(&[only], seed)
    }

    /// A world with these links and nothing else. The default path crosses all of them in order.
    ///
    /// # Panics
    /// If there are no links, or more than 32 768.
    pub fn with_links(links: &[Duplex], seed: u64) -> World {
        assert!(
            (1..=ACCESS as usize / 2).contains(&links.len()),
            "a world has 1 to 32768 links"
        );
        let both = |link: &Duplex| {
            Direction::BOTH.map(|d| Link::new(&link.directions[d], seed, &link.queue_name(d)))
        };
        let slot = |config: &LinkConfig| {
            let full = Bytes(u64::from(MTU) + u64::from(config.overhead));
            config.rate.map_or(Dur::ZERO, |rate| rate.transmit(full))
        };
        let slots = links.iter().flat_map(|link| &link.directions).map(slot);
        let paths = Paths::over(slots.collect());
        let queues = links.iter().flat_map(both).collect();
        let mut world = World {
            seed,
            ahead: Ahead::default(),
            timers: Timers::default(),
            links: Links::new(
                queues,
                (links.to_vec(), paths),
                Stream::new(seed, "jitter").bits(),
            ),
            accesses: Accesses::default(),
            flows: Flows::default(),
            lingering: Paged::default(),
            late: Paged::default(),
            workers: Workers::default(),
            feeds: Feeds::default(),
            inbox: VecDeque::new(),
            touched: Vec::new(),
            actions: Vec::new(),
            counting: false,
            delays: Vec::new(),
            ports: Ports::default(),
            hops: 0,
            last_event: Time::ZERO,
        };
        let hop = |link| Hop {
            link,
            reversed: false,
        };
        let all: Vec<Hop> = (0..links.len()).map(hop).collect();
        world.add_path(&all);
        world
    }

    /// Adds a path over some of the links. `None` if it has no hops, names a link that does not exist, or crosses one
    /// twice, or if there are already 16 384 paths.
    pub fn add_path(&mut self, hops: &[Hop]) -> Option<PathId> {
        let links = self.links.queues() as usize / 2;
        self.links.paths.add(hops, links)
    }

    /// Whether the path exists.
    pub fn has_path(&self, path: PathId) -> bool {
        self.links.paths.has(path)
    }

    /// Measures the traffic on each link in bins of these widths.
    pub fn meter(&mut self, fine: Dur, coarse: Dur) {
        self.set_meters(&Meter::new(fine, coarse));
    }

    /// Measures the traffic on each link with a meter like this one. Its groups are workload numbers.
    pub fn set_meters(&mut self, meter: &Meter) {
        for queue in 0..self.links.queues() {
            self.links.queue_mut(queue).set_meter(meter.clone());
        }
    }

    /// Counts the packets of each workload at each link. The groups of the [`Census`] are workload numbers. Call this
    /// before any workload is added.
    pub fn take_census(&mut self) {
        self.set_census(&Census::default());
    }

    /// The same with a census like this one.
    pub fn set_census(&mut self, census: &Census) {
        self.counting = true;
        for queue in 0..self.links.queues() {
            self.links.queue_mut(queue).set_census(census.clone());
        }
    }

    /// Counts the datagrams of this workload by their one-way delay, of those sent from `from` on.
    pub fn count_delays(&mut self, workload: usize, from: Time) {
        if self.delays.len() <= workload {
            self.delays.resize_with(workload + 1, || None);
        }
        self.delays[workload] = Some(Box::new(Delays::new(from)));
    }

    /// The datagrams of a workload that arrived in a direction, by their one-way delay, the shortest first; empty if
    /// they are not [counted](World::count_delays).
    pub fn delays(&self, workload: usize, direction: Direction) -> Vec<DelayBucket> {
        let counted = self.delays.get(workload).and_then(Option::as_deref);
        counted.map_or_else(Vec::new, |delays| delays.buckets(direction).collect())
    }

    /// Disables a fast path, for benches and checks. Call this before any workload or port is added.
    pub fn switch_off(&mut self, path: FastPath) {
        self.links.off.add(path);
    }

    /// Attaches a tap to the first link. It observes every packet that arrives at the link or leaves it. Call this
    /// before any workload or port is added.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.set_tap_on(0, tap);
    }

    /// As [`World::set_tap`], for any link.
    pub fn set_tap_on(&mut self, link: usize, tap: Box<dyn Tap>) {
        self.links.watches.set(link, tap);
    }

    /// Attaches a tap to the hosts of the workload with this number, which is added later.
    pub fn set_tap_on_hosts(&mut self, workload: usize, tap: Box<dyn HostTap>) {
        self.links.watches.set_on_hosts(workload as u32, tap);
    }

    /// One direction of the first link.
    pub fn bottleneck(&self, direction: Direction) -> Bottleneck<'_> {
        self.link(0, direction)
    }

    /// Number of shared links.
    pub fn duplexes(&self) -> usize {
        self.links.queues() as usize / 2
    }

    /// One direction of a shared link.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link(&self, link: usize, direction: Direction) -> Bottleneck<'_> {
        Bottleneck(self.links.queue(queue(link, direction)))
    }

    /// Packets that shared links have dropped so far, in both directions.
    pub fn dropped(&self) -> u64 {
        let all = (0..self.links.queues()).map(|q| self.links.queue(q).ledger());
        all.flat_map(|ledger| ledger.dropped).sum()
    }
}
