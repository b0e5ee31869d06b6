//! Routes: the links that the traffic of a part crosses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Direction, Dur, Rate};
pub use swell_world::Hop;

use super::change::Directions;

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
    /// The way over the links in which its data flow: `down`, towards clients at the near end; or `up`, the same as
    /// `reversed = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Directions>,
}

impl Route {
    /// Whether the clients are at the far end of the path.
    pub(super) fn is_turned(&self) -> bool {
        self.reversed || self.direction == Some(Directions::Up)
    }
}

/// Suffix to the name of a link that is crossed from right to left.
const REVERSED: &str = " reversed";

/// Parses an entry of a path: the link, and whether it is crossed from right to left.
pub(super) fn crossed(entry: &str) -> (&str, bool) {
    match entry.strip_suffix(REVERSED) {
        Some(name) => (name.trim(), true),
        None => (entry, false),
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

/// Properties of the path of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathProperties {
    /// Lowest rates, from its clients and towards them.
    pub rates: [Rate; 2],
    /// Round-trip propagation delay, without access paths.
    pub round_trip: Dur,
}

impl PathProperties {
    /// The rates in bits per second.
    pub fn bps(&self) -> [f64; 2] {
        self.rates.map(|rate| rate.bps() as f64)
    }
}
