//! The links of a world, each with one wake-up in the event queue.
//!
//! *Trunks* are where flows meet: the two directions of the bottleneck. *Leaves* are access links:
//! each leads from a host to the trunks, or from one trunk to a host. What a trunk begins to transmit
//! towards a leaf is put onto the leaf at once, with the instant of its arrival there: nothing else
//! feeds that leaf, so the order is right, and the trunk needs no event of its own for it.

use swell_base::{EventQueue, FlowId, Packet, Time};
use swell_path::{Link, LinkConfig, Note, PacketPool, Place, PlainLink};

use crate::flow::{LinkIndex, NONE, Routes};
use crate::wake::Wake;
use crate::watch::Watch;

/// Trunks have the indices below this.
pub(crate) const TRUNKS: LinkIndex = 2;

pub(crate) struct Links {
    /// The world's present.
    pub now: Time,
    /// The world's events.
    pub queue: EventQueue<Wake>,
    /// The route of every flow there ever was.
    pub routes: Vec<Routes>,
    /// How many flows' routes were forgotten: what a packet has noted of its route before the last of them counts
    /// no more.
    forgotten: u32,
    /// Told of what arrives at a trunk and what crosses one.
    pub watch: Option<Box<Watch>>,
    /// Where the packets of all links lie.
    pub pool: PacketPool,
    trunks: [Trunk; TRUNKS as usize],
    leaves: Vec<Leaf>,
    free: Vec<LinkIndex>,
    /// Packets completely received at the far end of a leaf that leads onto a trunk.
    pub hops: u64,
    /// TCP segments and datagrams that hosts sent.
    pub packets: u64,
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

impl Links {
    /// The two directions of the bottleneck.
    pub fn new(trunks: [Link; TRUNKS as usize]) -> Links {
        Links {
            now: Time::ZERO,
            queue: EventQueue::new(),
            routes: Vec::new(),
            forgotten: 1,
            watch: None,
            pool: PacketPool::default(),
            trunks: trunks.map(|link| Trunk {
                wake_at: Time::MAX,
                link,
            }),
            leaves: Vec::new(),
            free: Vec::new(),
            hops: 0,
            packets: 0,
        }
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
            Some(link) => link.flying(&self.pool).next(),
        }
    }

    /// Flow and way of the packets under way on a trunk, and whether they have payload.
    #[inline]
    pub fn flying(&self, trunk: LinkIndex) -> impl Iterator<Item = (FlowId, u8, bool)> {
        self.trunk(trunk).flying(&self.pool)
    }

    /// When there may be something to do on a trunk or a [counting leaf](Links::add_counting_leaf).
    pub fn poll_at(&self, index: LinkIndex) -> Option<Time> {
        self.link(index)?.due(&self.pool)
    }

    /// Reads a little of a leaf.
    #[inline]
    pub fn touch(&self, index: LinkIndex) -> u64 {
        let leaf = self.leaves.get(index.wrapping_sub(TRUNKS) as usize);
        leaf.map_or(0, |leaf| leaf.wake_at.as_nanos())
    }

    /// Reads a little of the packets that leave a leaf next.
    #[inline]
    pub fn touch_first(&self, index: LinkIndex) -> u64 {
        let leaf = self.leaves.get(index.wrapping_sub(TRUNKS) as usize);
        leaf.map_or(0, |leaf| leaf.plain.touch_first(&self.pool))
    }

    /// Reads a little of the packet that came onto a leaf last.
    #[inline]
    pub fn touch_last(&self, index: LinkIndex) -> u64 {
        let leaf = self.leaves.get(index.wrapping_sub(TRUNKS) as usize);
        leaf.map_or(0, |leaf| leaf.plain.touch_last(&self.pool))
    }

    /// A host sends the packet in the pool's spare place onto its first link; `last` will be its last.
    #[inline(always)]
    pub fn send(&mut self, first: LinkIndex, spare: Place, last: LinkIndex) {
        self.packets += 1;
        let note = Note(u64::from(last) | u64::from(self.forgotten) << 32);
        self.pool.take_spare(spare, note);
        self.push(first, spare);
    }

    /// The same of a packet that is not there yet.
    #[inline]
    pub fn put(&mut self, first: LinkIndex, packet: &Packet, last: LinkIndex) {
        let place = self.pool.spare();
        *self.pool.packet_mut(place) = *packet;
        self.send(first, place, last);
    }

    /// What is still on the way of a flow goes no further: its links may become another flow's.
    pub fn forget_route(&mut self, flow: u32) {
        self.routes[flow as usize] = [NONE; 2];
        self.forgotten = self.forgotten.wrapping_add(1).max(1);
    }

    /// The packet in `place` arrives at a link now.
    #[inline]
    pub fn push(&mut self, index: LinkIndex, place: Place) {
        let now = self.now;
        if index >= TRUNKS {
            self.push_leaf(index, now, place);
        } else {
            self.push_trunk(index, place);
        }
    }

    #[inline(always)]
    fn push_leaf(&mut self, index: LinkIndex, at: Time, place: Place) {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if let Some(due) = leaf.push(&mut self.pool, at, place)
            && due < leaf.wake_at
        {
            leaf.wake_at = due;
            self.queue.push(due, Wake::link(index));
        }
    }

    fn push_trunk(&mut self, index: LinkIndex, place: Place) {
        let now = self.now;
        if let Some(watch) = &mut self.watch {
            watch.arrives(now, self.pool.packet(place));
        }
        self.advance(index);
        let link = &mut self.trunks[index as usize].link;
        match link.accept(&mut self.pool, now, place) {
            Some(arrival) => self.cross(index, arrival, place),
            None => self.advance(index),
        }
        self.arm(index);
    }

    /// Brings a trunk up to date.
    #[inline]
    pub fn advance(&mut self, trunk: LinkIndex) {
        while let Some((arrival, place)) =
            (self.trunks[trunk as usize].link).begin(&mut self.pool, self.now)
        {
            self.cross(trunk, arrival, place);
        }
    }

    /// A packet that begins to cross a trunk arrives at the leaf it is bound for, if there is one.
    #[inline]
    fn cross(&mut self, trunk: LinkIndex, arrival: Time, place: Place) {
        let Note(noted) = self.pool.note(place);
        if self.watch.is_some() || (noted >> 32) as u32 != self.forgotten {
            return self.cross_seldom(trunk, arrival, place);
        }
        self.cross_to(noted as u32, trunk, arrival, place);
    }

    /// The same where somebody looks on, or what was noted counts no more.
    #[inline(never)]
    fn cross_seldom(&mut self, trunk: LinkIndex, arrival: Time, place: Place) {
        let packet = self.pool.packet(place);
        if let Some(watch) = &mut self.watch {
            watch.crosses(trunk, arrival, packet);
        }
        let next = self.routes[packet.flow.0 as usize][usize::from(packet.way & 1)];
        self.cross_to(next, trunk, arrival, place);
    }

    #[inline(always)]
    fn cross_to(&mut self, next: LinkIndex, trunk: LinkIndex, arrival: Time, place: Place) {
        let link = &mut self.trunks[trunk as usize].link;
        if next == NONE {
            link.flies(&mut self.pool, arrival, place);
        } else {
            link.leaves();
            self.push_leaf(next, arrival, place);
        }
    }

    /// Queues a trunk's next wake-up, if none is queued that is as early.
    #[inline(always)]
    fn arm(&mut self, index: LinkIndex) {
        let trunk = &mut self.trunks[index as usize];
        if let Some(due) = trunk.link.touch_at(&self.pool)
            && due < trunk.wake_at
        {
            trunk.wake_at = due;
            self.queue.push(due, Wake::link(index));
        }
    }

    /// Deals with a link's wake-up, if it is the present one: what has crossed a leaf goes onto its
    /// trunk. True if packets may have reached a host, which are to be [taken](Links::take).
    #[inline]
    pub fn due(&mut self, index: LinkIndex) -> bool {
        if index < TRUNKS {
            let due = self.trunks[index as usize].wake_at == self.now;
            if due {
                self.advance(index);
            }
            return due;
        }
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if leaf.wake_at != self.now {
            return false;
        }
        if let Some(link) = &mut leaf.other {
            bring_up_to_date(link, &mut self.pool, self.now);
        }
        let trunk = leaf.onto;
        if trunk == NONE {
            return true;
        }
        while let Some(place) = self.take_from_leaf(index) {
            self.hops += 1;
            self.push_trunk(trunk, place);
        }
        false
    }

    /// The next packet that has reached a host, which is to release it; if there is none, a wake-up is queued.
    /// To be called after [`Links::due`] and again when everything that a packet caused has happened.
    #[inline]
    pub fn take(&mut self, index: LinkIndex) -> Option<Place> {
        if index >= TRUNKS {
            return self.take_from_leaf(index);
        }
        let trunk = &mut self.trunks[index as usize];
        let place = trunk.link.take_arrived(&self.pool, self.now);
        if place.is_none() {
            trunk.wake_at = Time::MAX;
            self.arm(index);
        }
        place
    }

    /// The next packet that has crossed a leaf; if there is none, a wake-up is queued.
    #[inline(always)]
    fn take_from_leaf(&mut self, index: LinkIndex) -> Option<Place> {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if leaf.other.is_some() {
            return self.take_from_other(index);
        }
        let place = leaf.plain.take(&self.pool, self.now);
        if place.is_some() {
            return place;
        }
        let due = leaf.plain.arrival(&self.pool);
        self.wait(index, due);
        None
    }

    /// The same of a leaf that is no plain link.
    #[inline(never)]
    fn take_from_other(&mut self, index: LinkIndex) -> Option<Place> {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        let link = leaf.other.as_deref_mut()?;
        let place = link.take_arrived(&self.pool, self.now);
        if place.is_some() {
            return place;
        }
        let due = link.due(&self.pool);
        self.wait(index, due);
        None
    }

    /// Queues a leaf's next wake-up, if anything is on it.
    #[inline(always)]
    fn wait(&mut self, index: LinkIndex, due: Option<Time>) {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        leaf.wake_at = due.unwrap_or(Time::MAX);
        match due {
            Some(due) => self.queue.push(due, Wake::link(index)),
            None if leaf.doomed => self.free.push(index),
            None => {}
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

impl Leaf {
    /// A packet arrives at `at`: when there may be something to do.
    #[inline]
    fn push(&mut self, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
        match &mut self.other {
            None => self.plain.push(pool, at, place),
            Some(link) => push_other(link, pool, at, place),
        }
    }
}

#[inline(never)]
fn push_other(link: &mut Link, pool: &mut PacketPool, at: Time, place: Place) -> Option<Time> {
    link.push_place(pool, at, place);
    link.due(pool)
}

#[inline(never)]
fn bring_up_to_date(link: &mut Link, pool: &mut PacketPool, now: Time) {
    link.advance(pool, now);
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
