//! Paths: which links packets cross, and in which order.
//!
//! A link has two *queues*, one for each direction: queue `2 * link + direction`. A packet's *way* is its route: the
//! list of queues that it crosses from one host to the other. A packet carries the number of its way, so no hop has
//! to look up its flow.

use swell_base::{Direction, Dur};
use swell_path::{LinkConfig, Note};

use crate::index::{LinkIndex, NONE};

/// A duplex link: its name and its two directions. Its random streams derive from the name.
#[derive(Clone, Debug)]
pub struct Duplex {
    /// Links with the same name and seed lose the same packets.
    pub name: String,
    /// Left to right, right to left.
    pub directions: [LinkConfig; 2],
}

impl Duplex {
    /// The name of the link in one direction.
    pub(crate) fn queue_name(&self, direction: Direction) -> String {
        format!("{}/{direction}", self.name)
    }
}

/// One link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the link in the world.
    pub link: usize,
    /// The path crosses the link from right to left.
    pub reversed: bool,
}

/// A path of a world. The default path takes all links in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) u16);

impl PathId {
    /// Number of the path. Paths are numbered in the order in which they were added; 0 is the default path.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The path with this number, which [may not exist](crate::World::has_path) in a given world.
    pub fn of_number(number: u16) -> PathId {
        PathId(number)
    }
}

/// The number of a way.
type WayId = u16;

/// A route: the sequence of queues from one end of a path to the other.
#[derive(Debug)]
struct Way {
    first: LinkIndex,
    /// Next queue, indexed by queue; `NONE` for the last queue and for queues that are not on the way.
    next: Box<[LinkIndex]>,
    /// The way has more than one queue.
    long: bool,
    /// Transmission time of a full packet on the slowest queue.
    slot: Dur,
}

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    ways: Vec<Way>,
    /// The ways of each path, from its left end and from its right end.
    paths: Vec<[WayId; 2]>,
    /// Initial transmission time of a full packet, by queue.
    slots: Vec<Dur>,
}

/// Upper bound on path numbers. Each path has two ways, and one bit of a 16-bit field says whether a way is long.
const MOST: usize = 1 << 14;

impl Paths {
    /// No paths yet. `slots` holds the transmission time of a full packet for each queue.
    pub fn over(slots: Vec<Dur>) -> Paths {
        Paths {
            slots,
            ..Paths::default()
        }
    }

    /// Adds a path. Returns `None` if it has no hop, crosses a link twice or names a link that is not among the first
    /// `links`, or if there are too many paths.
    pub fn add(&mut self, hops: &[Hop], links: usize) -> Option<PathId> {
        let mut seen = vec![false; links];
        let fresh = |hop: &Hop| {
            let seen = seen.get_mut(hop.link);
            seen.is_some_and(|seen| !std::mem::replace(seen, true))
        };
        if hops.is_empty() || self.paths.len() == MOST || !hops.iter().all(fresh) {
            return None;
        }
        let queue = |hop: &Hop, back: bool| queue(hop.link, Direction::of(hop.reversed != back));
        let there: Vec<LinkIndex> = hops.iter().map(|h| queue(h, false)).collect();
        let back: Vec<LinkIndex> = hops.iter().rev().map(|h| queue(h, true)).collect();
        let ways = [there, back].map(|queues| {
            let mut next = vec![NONE; 2 * links].into_boxed_slice();
            for pair in queues.windows(2) {
                next[pair[0] as usize] = pair[1];
            }
            self.ways.push(Way {
                first: queues[0],
                next,
                long: queues.len() > 1,
                slot: (queues.iter())
                    .filter_map(|&q| self.slots.get(q as usize).copied())
                    .max()
                    .unwrap_or_default(),
            });
            (self.ways.len() - 1) as WayId
        });
        self.paths.push(ways);
        Some(PathId((self.paths.len() - 1) as u16))
    }

    /// Whether the path exists.
    pub fn has(&self, path: PathId) -> bool {
        usize::from(path.0) < self.paths.len()
    }

    /// The ways of a path: from the left and from the right end.
    #[inline]
    pub fn ways(&self, path: PathId) -> [WayId; 2] {
        self.paths[usize::from(path.0)]
    }

    /// Transmission time of a full packet on the slowest link of a way.
    #[inline]
    pub fn slot(&self, way: WayId) -> Dur {
        self.ways[usize::from(way)].slot
    }

    /// The first queue of a way.
    #[inline]
    pub fn first(&self, way: WayId) -> LinkIndex {
        self.ways[usize::from(way)].first
    }

    /// The queue that follows another one on a way; `NONE` after the last.
    #[inline]
    pub fn next(&self, way: WayId, queue: LinkIndex) -> LinkIndex {
        self.ways[usize::from(way)].next[queue as usize]
    }

    /// The queues of a way, in order.
    pub fn queues(&self, way: WayId) -> impl Iterator<Item = LinkIndex> {
        std::iter::successors(Some(self.first(way)), move |&q| {
            Some(self.next(way, q)).filter(|&q| q != NONE)
        })
    }

    /// The note of packets that follow this way and then enter this access link.
    pub fn bound(&self, way: WayId, access: LinkIndex, generation: u16) -> Bound {
        let long = u64::from(self.ways[usize::from(way)].long);
        let bits = u64::from(access)
            | u64::from(generation) << GENERATION_AT
            | u64::from(way) << WAY_AT
            | long << LONG_AT;
        Bound(bits)
    }
}

/// The number of a queue.
pub(crate) fn queue(link: usize, direction: Direction) -> LinkIndex {
    (2 * link + direction as usize) as LinkIndex
}

/// Destination of a packet, encoded in its [note](Note): its way, the access link at the end of the way, and the
/// generation of that access link. The generation changes when the access link is reassigned to other hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound(u64);

const GENERATION_AT: u32 = 32;
const WAY_AT: u32 = 48;
const LONG_AT: u32 = 63;

impl Bound {
    #[inline]
    pub fn access(self) -> LinkIndex {
        self.0 as u32
    }
    #[inline]
    pub fn generation(self) -> u16 {
        (self.0 >> GENERATION_AT) as u16
    }
    #[inline]
    pub fn way(self) -> WayId {
        (self.0 >> WAY_AT) as u16 & (u16::MAX >> 1)
    }
    /// The way has more than one queue.
    #[inline]
    pub fn is_long(self) -> bool {
        self.0 >> LONG_AT != 0
    }
}

impl From<Bound> for Note {
    #[inline]
    fn from(bound: Bound) -> Note {
        Note(bound.0)
    }
}

impl From<Note> for Bound {
    #[inline]
    fn from(note: Note) -> Bound {
        Bound(note.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(link: usize, reversed: bool) -> Hop {
        Hop { link, reversed }
    }

    #[test]
    fn a_way_back_is_the_way_there_turned_round() {
        let mut paths = Paths::default();
        let path = paths.add(&[hop(2, false), hop(0, true), hop(1, false)], 3);
        let [there, back] = paths.ways(path.expect("a path"));
        assert_eq!(paths.queues(there).collect::<Vec<_>>(), [4, 1, 2]);
        assert_eq!(paths.queues(back).collect::<Vec<_>>(), [3, 0, 5]);
    }

    #[test]
    fn links_must_exist_and_come_once() {
        let mut paths = Paths::default();
        assert_eq!(paths.add(&[], 2), None);
        assert_eq!(paths.add(&[hop(2, false)], 2), None);
        assert_eq!(paths.add(&[hop(1, false), hop(1, true)], 2), None);
        assert_eq!(paths.add(&[hop(1, false)], 2), Some(PathId(0)));
    }

    #[test]
    fn a_note_says_all_that_a_hop_needs() {
        let mut paths = Paths::default();
        let one = paths.add(&[hop(0, false)], 2).expect("a path");
        let two = paths
            .add(&[hop(0, false), hop(1, false)], 2)
            .expect("a path");
        for (path, long) in [(one, false), (two, true)] {
            for way in paths.ways(path) {
                for access in [0, 77, NONE] {
                    let bound = Bound::from(Note::from(paths.bound(way, access, u16::MAX)));
                    assert_eq!((bound.way(), bound.is_long()), (way, long));
                    assert_eq!((bound.access(), bound.generation()), (access, u16::MAX));
                }
            }
        }
    }
}
