//! Paths: which links packets cross, and in which order.
//!
//! A link has two *queues*, one for each direction: queue `2 * link + direction`. A packet's *way* is the list of queues
//! that it crosses from one host to the other. A packet carries the number of its way, so a hop needs no lookup of its flow.

use swell_base::{Direction, Dur};
use swell_path::{LinkConfig, Note};

use crate::flow::{LinkIndex, NONE};

/// A duplex link: what it is called and its two directions. Random streams are rooted in the name.
#[derive(Clone, Debug)]
pub struct Duplex {
    /// Its name: links of one name under one seed lose the same packets.
    pub name: String,
    /// Left to right, right to left.
    pub directions: [LinkConfig; 2],
}

impl Duplex {
    /// The name of the link in one direction.
    pub(crate) fn queue_name(&self, direction: usize) -> String {
        format!("{}/{}", self.name, ["up", "down"][direction])
    }
}

/// A link of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its number in the world.
    pub link: usize,
    /// The path's left end is on the link's right-hand side.
    pub reversed: bool,
}

/// A path of a world; the default takes all links in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) u16);

impl PathId {
    /// Its number: paths are numbered from 0, the default one, in the order in which they were added.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The path of a number, which a world may not [have](crate::World::has_path).
    pub fn of_number(number: u16) -> PathId {
        PathId(number)
    }
}

/// The number of a way.
type WayId = u16;

/// The queues of a way.
#[derive(Debug)]
struct Way {
    first: LinkIndex,
    /// By queue, the one that follows it; `NONE` for the last and for those that are not on the way.
    next: Box<[LinkIndex]>,
    /// More than one queue.
    long: bool,
    /// The longest of its queues' slots.
    slot: Dur,
}

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    ways: Vec<Way>,
    /// The ways of each path, from its left end and from its right end.
    paths: Vec<[WayId; 2]>,
    /// By queue, what a full packet takes to be sent at first.
    slots: Vec<Dur>,
}

/// Paths have numbers below this: two ways each, and a bit of a note says whether a way is long.
const MOST: usize = 1 << 14;

impl Paths {
    /// No paths yet, over queues that take so long to send a full packet.
    pub fn over(slots: Vec<Dur>) -> Paths {
        Paths {
            slots,
            ..Paths::default()
        }
    }

    /// A path over some of `links` links, none of them twice.
    pub fn add(&mut self, hops: &[Hop], links: usize) -> Option<PathId> {
        let mut seen = vec![false; links];
        let fresh = |hop: &Hop| {
            let seen = seen.get_mut(hop.link);
            seen.is_some_and(|seen| !std::mem::replace(seen, true))
        };
        if hops.is_empty() || self.paths.len() == MOST || !hops.iter().all(fresh) {
            return None;
        }
        let queue = |hop: &Hop, back: bool| queue(hop.link, direction(hop.reversed != back));
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

    /// Whether there is such a path.
    pub fn has(&self, path: PathId) -> bool {
        usize::from(path.0) < self.paths.len()
    }

    /// The ways of a path: from the left and from the right end.
    #[inline]
    pub fn ways(&self, path: PathId) -> [WayId; 2] {
        self.paths[usize::from(path.0)]
    }

    /// What the slowest link of a way takes to send a full packet.
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

    /// The queues of a way in their order.
    pub fn queues(&self, way: WayId) -> impl Iterator<Item = LinkIndex> {
        std::iter::successors(Some(self.first(way)), move |&q| {
            Some(self.next(way, q)).filter(|&q| q != NONE)
        })
    }

    /// The note of packets that take this way and then this access link.
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

fn direction(down: bool) -> Direction {
    match down {
        true => Direction::Down,
        false => Direction::Up,
    }
}

/// Where a packet is bound for, as its [note](Note) says it: its way, and the access link at the end of that with the
/// generation in which it is meant. An access link that was given to other hosts since has another generation.
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
    /// Its way has more than one queue.
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
