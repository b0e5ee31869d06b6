//! The links of a world, each with one wake-up in the event queue.
//!
//! *Trunks* are where flows meet: the two directions of the bottleneck. *Leaves* are access links:
//! each leads from a host to the trunks, or from one trunk to a host. What a trunk begins to transmit
//! towards a leaf is put onto the leaf at once, with the instant of its arrival there: nothing else
//! feeds that leaf, so the order is right, and the trunk needs no event of its own for it.

use swell_base::{EventQueue, FlowId, Packet, Time};
use swell_path::{Element, Link, LinkConfig, PacketPool, PlainLink};

use crate::flow::{LinkIndex, NONE, Routes};
use crate::wake::Wake;
use crate::watch::Watch;

/// Trunks have the indices below this.
pub(crate) const TRUNKS: LinkIndex = 2;

#[derive(Default)]
pub(crate) struct Links {
    trunks: Vec<Trunk>,
    leaves: Vec<Leaf>,
    /// Packets on leaves that are plain links.
    pool: PacketPool,
    free: Vec<LinkIndex>,
    /// Packets completely received at the far end of a leaf that leads onto a trunk.
    pub hops: u64,
}

struct Trunk {
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    link: Link,
}

/// Begins with the cache line that every packet needs.
#[repr(C, align(64))]
struct Leaf {
    /// As of a trunk.
    wake_at: Time,
    /// The link where it is no plain one.
    other: Option<Box<Link>>,
    /// The trunk that it leads onto; `NONE` if it leads to a host.
    onto: LinkIndex,
    /// No flow is routed over it any more: its place is given away once it is empty.
    doomed: bool,
    plain: PlainLink,
}

/// What links need to know of the rest of the world.
pub(crate) struct Around<'a> {
    pub now: Time,
    pub queue: &'a mut EventQueue<Wake>,
    /// By flow.
    pub routes: &'a [Routes],
    /// Told of what arrives at a trunk and what crosses one.
    pub watch: Option<&'a mut Watch>,
}

impl Links {
    pub fn add_trunk(&mut self, link: Link) {
        let wake_at = Time::MAX;
        self.trunks.push(Trunk { wake_at, link });
    }

    /// Adds a leaf that leads onto a trunk, or to a host (`NONE`); a link called `name` under `seed`.
    pub fn add_leaf(
        &mut self,
        config: &LinkConfig,
        (seed, name): (u64, &str),
        onto: LinkIndex,
    ) -> LinkIndex {
        match PlainLink::new(config) {
            Some(plain) => self.add(plain, None, onto),
            None => self.add_counting_leaf(Link::new(config, seed, name), onto),
        }
    }

    /// Adds a leaf of which more is asked than to carry packets.
    pub fn add_counting_leaf(&mut self, link: Link, onto: LinkIndex) -> LinkIndex {
        self.add(PlainLink::default(), Some(Box::new(link)), onto)
    }

    fn add(&mut self, plain: PlainLink, other: Option<Box<Link>>, onto: LinkIndex) -> LinkIndex {
        let leaf = Leaf {
            wake_at: Time::MAX,
            other,
            onto,
            doomed: false,
            plain,
        };
        if let Some(index) = self.free.pop() {
            *self.leaf(index) = leaf;
            return index;
        }
        self.leaves.push(leaf);
        TRUNKS + self.leaves.len() as LinkIndex - 1
    }

    pub fn len(&self) -> usize {
        self.trunks.len() + self.leaves.len() - self.free.len()
    }

    pub fn trunk(&self, index: LinkIndex) -> &Link {
        &self.trunks[index as usize].link
    }

    pub fn trunk_mut(&mut self, index: LinkIndex) -> &mut Link {
        &mut self.trunks[index as usize].link
    }

    /// A trunk, or a [counting leaf](Links::add_counting_leaf).
    pub fn link(&self, index: LinkIndex) -> Option<&Link> {
        match index.checked_sub(TRUNKS) {
            None => Some(self.trunk(index)),
            Some(leaf) => self.leaves[leaf as usize].other.as_deref(),
        }
    }

    /// The same, to change it.
    pub fn link_mut(&mut self, index: LinkIndex) -> Option<&mut Link> {
        match index.checked_sub(TRUNKS) {
            None => Some(self.trunk_mut(index)),
            Some(leaf) => self.leaves[leaf as usize].other.as_deref_mut(),
        }
    }

    #[inline]
    fn leaf(&mut self, index: LinkIndex) -> &mut Leaf {
        &mut self.leaves[(index - TRUNKS) as usize]
    }

    /// Flow and way of the first packet under way on a link that leads to a host, and whether it has
    /// payload.
    #[inline]
    pub fn next_at_host(&self, index: LinkIndex) -> Option<(FlowId, u8, bool)> {
        let leaf = self.leaves.get(index.checked_sub(TRUNKS)? as usize)?;
        if leaf.onto != NONE {
            return None;
        }
        match &leaf.other {
            None => leaf.plain.next(&self.pool),
            Some(link) => link.flying().next(),
        }
    }

    /// Reads a little of what the next packet needs of a leaf.
    #[inline]
    pub fn touch(&self, index: LinkIndex) -> u64 {
        let leaf = self.leaves.get(index.wrapping_sub(TRUNKS) as usize);
        leaf.map_or(0, |leaf| leaf.wake_at.as_nanos())
    }

    /// A packet arrives at a link.
    #[inline]
    pub fn push(&mut self, around: &mut Around, index: LinkIndex, packet: &Packet) {
        if index >= TRUNKS {
            let leaf = &mut self.leaves[(index - TRUNKS) as usize];
            leaf.push(&mut self.pool, around, (index, around.now), packet);
            return;
        }
        if let Some(watch) = &mut around.watch {
            watch.arrives(around.now, packet);
        }
        let trunk = &mut self.trunks[index as usize];
        let (now, leaves, pool) = (around.now, &mut self.leaves, &mut self.pool);
        trunk.link.push_express(now, packet, &mut |at, p| {
            hand_over(leaves, pool, around, (index, at), p)
        });
        trunk.arm(around.queue, index);
    }

    /// Deals with a link's wake-up, if it is the present one: what has crossed a leaf goes onto its
    /// trunk. True if packets may have reached a host, which are to be [taken](Links::take).
    #[inline]
    pub fn due(&mut self, around: &mut Around, index: LinkIndex) -> bool {
        let now = around.now;
        if index < TRUNKS {
            let due = self.trunks[index as usize].wake_at == now;
            if due {
                self.advance(around, index);
            }
            return due;
        }
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if leaf.wake_at != now {
            return false;
        }
        if let Some(link) = &mut leaf.other {
            link.advance(now, &mut |_, _| false);
        }
        let at_host = leaf.onto == NONE;
        if !at_host {
            self.onto_trunk(around, index);
        }
        at_host
    }

    /// The next packet that has reached a host; if there is none, a wake-up is queued. To be called after
    /// [`Links::due`] and again when everything that a packet caused has happened.
    #[inline]
    pub fn take(&mut self, around: &mut Around, index: LinkIndex) -> Option<Packet> {
        let now = around.now;
        if index >= TRUNKS {
            let leaf = &mut self.leaves[(index - TRUNKS) as usize];
            let packet = leaf.take(&mut self.pool, now);
            if packet.is_none() {
                self.rearm_leaf(around.queue, index);
            }
            return packet;
        }
        let trunk = &mut self.trunks[index as usize];
        let packet = trunk.link.take_arrived(now);
        if packet.is_none() {
            trunk.wake_at = Time::MAX;
            trunk.arm(around.queue, index);
        }
        packet
    }

    /// Brings a trunk up to date.
    #[inline]
    pub fn advance(&mut self, around: &mut Around, trunk: LinkIndex) {
        let (now, leaves, pool) = (around.now, &mut self.leaves, &mut self.pool);
        self.trunks[trunk as usize].link.advance(now, &mut |at, p| {
            hand_over(leaves, pool, around, (trunk, at), p)
        });
    }

    /// Everything that has crossed a leaf goes onto its trunk.
    #[inline]
    fn onto_trunk(&mut self, around: &mut Around, index: LinkIndex) {
        let now = around.now;
        loop {
            let leaf = &mut self.leaves[(index - TRUNKS) as usize];
            let trunk = leaf.onto;
            let Some(packet) = leaf.take(&mut self.pool, now) else {
                break;
            };
            self.hops += 1;
            self.push(around, trunk, &packet);
        }
        self.rearm_leaf(around.queue, index);
    }

    /// Queues the next wake-up of a leaf from which everything due was taken.
    #[inline(always)]
    fn rearm_leaf(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        match leaf.poll_at(&self.pool) {
            Some(due) => {
                leaf.wake_at = due;
                queue.push(due, Wake::link(index));
            }
            None => {
                leaf.wake_at = Time::MAX;
                if leaf.doomed {
                    self.free.push(index);
                }
            }
        }
    }

    /// No flow is routed over the leaf any more.
    pub fn doom(&mut self, index: LinkIndex) {
        let leaf = self.leaf(index);
        leaf.doomed = true;
        if leaf.wake_at == Time::MAX {
            self.free.push(index);
        }
    }
}

/// A packet that begins to cross a trunk arrives at the leaf it is bound for at `at`; false where its
/// route ends at the trunk.
#[inline]
fn hand_over(
    leaves: &mut [Leaf],
    pool: &mut PacketPool,
    around: &mut Around,
    (trunk, at): (LinkIndex, Time),
    packet: &Packet,
) -> bool {
    if let Some(watch) = &mut around.watch {
        watch.crosses(trunk, at, packet);
    }
    let next = around.routes[packet.flow.0 as usize][usize::from(packet.way & 1)];
    if next == NONE {
        return false;
    }
    leaves[(next - TRUNKS) as usize].push(pool, around, (next, at), packet);
    true
}

impl Trunk {
    #[inline(always)]
    fn arm(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        if let Some(due) = self.link.touch_at()
            && due < self.wake_at
        {
            self.wake_at = due;
            queue.push(due, Wake::link(index));
        }
    }
}

impl Leaf {
    /// A packet arrives at `at`.
    #[inline]
    fn push(
        &mut self,
        pool: &mut PacketPool,
        around: &mut Around,
        (index, at): (LinkIndex, Time),
        packet: &Packet,
    ) {
        let due = match &mut self.other {
            None => self.plain.push(pool, at, packet),
            Some(link) => {
                link.push_ref(at, packet);
                link.poll_at()
            }
        };
        if let Some(due) = due
            && due < self.wake_at
        {
            self.wake_at = due;
            around.queue.push(due, Wake::link(index));
        }
    }

    /// When there may be something to do.
    #[inline]
    fn poll_at(&self, pool: &PacketPool) -> Option<Time> {
        match &self.other {
            None => self.plain.arrival(pool),
            Some(link) => link.poll_at(),
        }
    }

    /// The first packet, if it has arrived by `now`.
    #[inline]
    fn take(&mut self, pool: &mut PacketPool, now: Time) -> Option<Packet> {
        match &mut self.other {
            None => self.plain.take(pool, now),
            Some(link) => link.take_arrived(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_two_cache_lines() {
        assert_eq!(size_of::<Leaf>(), 128);
        assert_eq!(std::mem::offset_of!(Leaf, plain) + PlainLink::HOT, 64);
    }
}
