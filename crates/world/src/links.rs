//! The links of a world.
//!
//! *Trunks* are where flows meet: the two directions of the bottleneck. *Leaves* are access links:
//! each leads from a host to the trunks, or from one trunk to a host. What a trunk begins to transmit
//! towards a leaf is put onto the leaf at once, with the instant of its arrival there: nothing else
//! feeds that leaf, so the order is right, and the trunk needs no event of its own for it.
//!
//! When a packet has crossed a plain leaf is known as it comes onto it: the event of its arrival is queued with
//! it, and the leaf is not asked again. Leaves of which more is asked hold packets and have one wake-up in the event
//! queue. Trunks hold packets too, and are asked themselves when they are due next.

use std::collections::BTreeSet;

use swell_base::{EventQueue, Flags, Head, Packet, Time, fetch};
use swell_path::{Begun, Link, LinkConfig, Note, PacketPool, Place, PlainLink};

use crate::fast::{FastPath, Off};
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
    /// No flow is routed over them any more: their places are given away once they are empty.
    doomed: BTreeSet<LinkIndex>,
    /// Fast paths that are switched off.
    pub off: Off,
    /// Packets completely received at the far end of a leaf that leads onto a trunk.
    pub hops: u64,
    /// TCP segments and datagrams that hosts sent.
    pub packets: u64,
}

struct Trunk {
    /// When there is something to do on it; `MAX` if nothing is known of. It is no event of the queue: a packet that
    /// reaches a host right behind the trunk would be one more each.
    wake_at: Time,
    link: Link,
}

/// Begins with the cache line that every packet needs.
#[repr(C, align(64))]
struct Leaf {
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    /// The link where it is no plain one.
    other: Option<Box<Link>>,
    /// The trunk that it leads onto; `NONE` if it leads to a host.
    onto: LinkIndex,
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
            doomed: BTreeSet::new(),
            off: Off::default(),
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
        match PlainLink::new(config, seed, name) {
            Some(plain) if !self.off.has(FastPath::PlainLinks) => self.add(plain, None, onto),
            _ => self.add_counting_leaf(Link::new(config, seed, name), onto),
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

    /// The packet whose turn it is to reach the host that a leaf leads to, as far as the leaf knows.
    #[inline]
    pub fn next_at_host(&self, index: LinkIndex) -> Option<Place> {
        let leaf = self.leaves.get(index.checked_sub(TRUNKS)? as usize)?;
        if leaf.onto != NONE {
            return None;
        }
        match &leaf.other {
            None => None,
            Some(link) => link.flying().next(),
        }
    }

    /// When there may be something to do on a trunk or a [counting leaf](Links::add_counting_leaf).
    pub fn poll_at(&self, index: LinkIndex) -> Option<Time> {
        self.link(index)?.due()
    }

    /// A host sends the packet in the pool's spare place onto its first link; `last` will be its last.
    #[inline(always)]
    pub fn send(&mut self, first: LinkIndex, spare: Place, last: LinkIndex) {
        let note = self.sent(last);
        self.pool.take_spare(spare, note);
        self.push(first, spare);
    }

    /// A host sends a packet in the place of one that it received, as [`Links::send`].
    #[inline(always)]
    pub fn send_back(&mut self, first: LinkIndex, place: Place, last: LinkIndex) {
        let note = self.sent(last);
        self.pool.set_note(place, note);
        self.push(first, place);
    }

    /// Counts a packet that is sent; what is to be noted of its route.
    #[inline(always)]
    fn sent(&mut self, last: LinkIndex) -> Note {
        self.packets += 1;
        Note(u64::from(last) | u64::from(self.forgotten) << 32)
    }

    /// The same of a packet that is not there yet.
    #[inline]
    pub fn put(&mut self, first: LinkIndex, packet: &Packet, last: LinkIndex) {
        let place = self.pool.spare();
        self.pool.write(place, packet);
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
        if leaf.other.is_some() {
            return self.push_other(index, at, place);
        }
        let packet = self.pool.packet(place);
        let Some(arrival) = leaf.plain.push(at, packet.size) else {
            return self.pool.release(place);
        };
        let wake = match leaf.onto {
            NONE => Wake::at_host(place, is_bare(packet)),
            trunk => Wake::at_trunk(place, trunk, index, leaf.plain.before()),
        };
        self.queue.push(arrival, wake);
    }

    #[inline(never)]
    fn push_other(&mut self, index: LinkIndex, at: Time, place: Place) {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if let Some(link) = &mut leaf.other {
            link.push_place(&mut self.pool, at, place);
            if let Some(due) = link.due() {
                leaf.wake_by(due, index, &mut self.queue);
            }
        }
    }

    fn push_trunk(&mut self, index: LinkIndex, place: Place) {
        let now = self.now;
        if let Some(watch) = &mut self.watch {
            watch.arrives(now, self.pool.copy(place));
        }
        self.advance(index);
        let link = &mut self.trunks[index as usize].link;
        match link.accept(&mut self.pool, now, place) {
            Some(arrival) => {
                let note = self.pool.note(place);
                let begun = Begun {
                    arrival,
                    place,
                    note,
                };
                self.cross(index, begun);
            }
            None => self.advance(index),
        }
        self.arm(index);
    }

    /// Brings a trunk up to date.
    #[inline]
    pub fn advance(&mut self, trunk: LinkIndex) {
        while let Some(begun) = (self.trunks[trunk as usize].link).begin(&mut self.pool, self.now) {
            self.cross(trunk, begun);
        }
    }

    /// A packet that begins to cross a trunk arrives at the leaf it is bound for, if there is one.
    #[inline]
    fn cross(&mut self, trunk: LinkIndex, begun: Begun) {
        let Begun {
            arrival,
            place,
            note: Note(noted),
        } = begun;
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
            watch.crosses(trunk, arrival, self.pool.copy(place));
        }
        let next = self.routes[packet.flow.0 as usize][usize::from(packet.way & 1)];
        self.cross_to(next, trunk, arrival, place);
    }

    #[inline(always)]
    fn cross_to(&mut self, next: LinkIndex, trunk: LinkIndex, arrival: Time, place: Place) {
        let link = &mut self.trunks[trunk as usize].link;
        if next == NONE {
            link.flies(arrival, place);
        } else {
            link.leaves();
            self.push_leaf(next, arrival, place);
        }
    }

    /// Notes when there is something to do on a trunk.
    #[inline(always)]
    fn arm(&mut self, index: LinkIndex) {
        let trunk = &mut self.trunks[index as usize];
        trunk.wake_at = trunk.link.touch_at().unwrap_or(Time::MAX);
    }

    /// When there is something to do on a trunk, and on which. At one instant it comes behind the events of the same
    /// [rank](Wake::link).
    #[inline]
    pub fn next_trunk(&self) -> (Time, LinkIndex) {
        let [up, down] = &self.trunks;
        if down.wake_at < up.wake_at {
            (down.wake_at, 1)
        } else {
            (up.wake_at, 0)
        }
    }

    /// When anything is due next.
    pub fn next_at(&self) -> Option<Time> {
        let (trunk, _) = self.next_trunk();
        let next = self.queue.next_at().unwrap_or(Time::MAX).min(trunk);
        (next != Time::MAX).then_some(next)
    }

    /// Deals with a leaf's wake-up, if it is the present one. True if packets may have reached a host, which are to
    /// be [taken](Links::take_from_other).
    #[inline]
    pub fn due(&mut self, index: LinkIndex) -> bool {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        if leaf.wake_at != self.now {
            return false;
        }
        let Some(link) = &mut leaf.other else {
            leaf.wake_at = Time::MAX;
            self.rest(index);
            return false;
        };
        link.advance(&mut self.pool, self.now);
        let to_host = leaf.onto == NONE;
        if !to_host {
            self.go_onto_trunk(index);
        }
        to_host
    }

    /// What has crossed a leaf that is no plain link goes onto its trunk.
    #[inline(never)]
    fn go_onto_trunk(&mut self, index: LinkIndex) {
        let trunk = self.leaf(index).onto;
        while let Some(place) = self.take_from_other(index) {
            self.hops += 1;
            self.push_trunk(trunk, place);
        }
    }

    /// A packet that crossed a plain leaf by itself arrives at a trunk.
    #[inline(always)]
    pub fn reach_trunk(&mut self, trunk: LinkIndex, place: Place) {
        self.hops += 1;
        self.push_trunk(trunk, place);
    }

    /// The next packet that has reached a host right behind a trunk, which is to release it; if there is none, when
    /// there will be one is noted. To be called after [`Links::advance`] and again when everything that a packet
    /// caused has happened.
    #[inline]
    pub fn take_from_trunk(&mut self, index: LinkIndex) -> Option<Place> {
        let trunk = &mut self.trunks[index as usize];
        let place = trunk.link.take_arrived(self.now);
        if place.is_none() {
            self.arm(index);
        }
        place
    }

    /// The same of a leaf that is no plain link, after [`Links::due`]; a wake-up is queued.
    #[inline(never)]
    pub fn take_from_other(&mut self, index: LinkIndex) -> Option<Place> {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        let link = leaf.other.as_deref_mut()?;
        let place = link.take_arrived(self.now);
        if place.is_none() {
            leaf.wake_at = Time::MAX;
            match link.due() {
                Some(due) => leaf.wake_by(due, index, &mut self.queue),
                None => self.rest(index),
            }
        }
        place
    }

    /// No wake-up is queued for a leaf: if it is doomed, its place is given away when nothing is on it any more.
    #[inline]
    fn rest(&mut self, index: LinkIndex) {
        if !self.doomed.is_empty() {
            self.give_away(index);
        }
    }

    #[inline(never)]
    fn give_away(&mut self, index: LinkIndex) {
        let leaf = &mut self.leaves[(index - TRUNKS) as usize];
        let empty = leaf.plain.empty_at();
        if empty <= self.now {
            if self.doomed.remove(&index) {
                self.free.push(index);
            }
        } else if self.doomed.contains(&index) {
            leaf.wake_by(empty, index, &mut self.queue);
        }
    }

    /// No flow is routed over the leaf any more.
    pub fn doom(&mut self, index: LinkIndex) {
        self.doomed.insert(index);
        if self.leaf(index).wake_at == Time::MAX {
            self.rest(index);
        }
    }
}

impl Leaf {
    /// Queues a wake-up, if none is queued that is as early.
    #[inline]
    fn wake_by(&mut self, due: Time, index: LinkIndex, queue: &mut EventQueue<Wake>) {
        if due < self.wake_at {
            self.wake_at = due;
            queue.push(due, Wake::link(index));
        }
    }
}

/// Whether a packet is nothing but an acknowledgement: it carries neither data nor marks nor selective
/// acknowledgements.
#[inline]
fn is_bare(packet: &Head) -> bool {
    let seg = &packet.seg;
    seg.len == 0 && seg.flags == Flags::ACK && seg.ecn == 0 && seg.sacks == 0
}

// For looking ahead: see [`crate::ahead`].
impl Links {
    #[inline]
    fn leaf_at(&self, index: LinkIndex) -> Option<&Leaf> {
        self.leaves.get(index.wrapping_sub(TRUNKS) as usize)
    }

    /// [Asks](fetch()) for a leaf.
    #[inline]
    pub fn fetch(&self, index: LinkIndex) {
        if let Some(leaf) = self.leaf_at(index) {
            fetch(leaf);
        }
    }

    /// Asks for what packets need that wait there, too.
    #[inline]
    pub fn fetch_whole(&self, index: LinkIndex) {
        if let Some(leaf) = self.leaf_at(index) {
            fetch(leaf);
            leaf.plain.fetch();
        }
    }

    /// Asks for where it is noted what waits there; reads the whole leaf.
    #[inline]
    pub fn fetch_waiting(&self, index: LinkIndex) {
        if let Some(leaf) = self.leaf_at(index) {
            leaf.plain.fetch_waiting();
        }
    }

    /// Packets that reach a host right behind a trunk in this order, after so many others.
    #[inline]
    pub fn behind(&self, trunk: LinkIndex, n: usize) -> Option<Place> {
        self.trunks[trunk as usize].link.behind(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_two_cache_lines() {
        assert_eq!(size_of::<Leaf>(), 128);
        assert!(std::mem::offset_of!(Leaf, plain) + PlainLink::HOT <= 64);
    }
}
