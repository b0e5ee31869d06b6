//! The links of a world, each with one wake-up in the event queue.
//!
//! *Trunks* are where flows meet: the two directions of the bottleneck. *Leaves* are access links:
//! each leads from a host to the trunks, or from one trunk to a host. What a trunk begins to transmit
//! towards a leaf is put onto the leaf at once, with the instant of its arrival there: nothing else
//! feeds that leaf, so the order is right, and the trunk needs no event of its own for it.

use swell_base::{EventQueue, Packet, Time};
use swell_path::{Element, Link};

use crate::flow::{LinkIndex, NONE, Routes};
use crate::wake::Wake;
use crate::watch::Watch;

/// Trunks have the indices below this.
pub(crate) const TRUNKS: LinkIndex = 2;

#[derive(Default)]
pub(crate) struct Links {
    trunks: Vec<Slot>,
    leaves: Vec<Slot>,
    free: Vec<LinkIndex>,
    /// Packets completely received at the far end of a leaf that leads onto a trunk.
    pub hops: u64,
}

/// Begins with what every packet needs.
#[repr(C, align(64))]
struct Slot {
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    /// The trunk that a leaf leads onto; `NONE` if it leads to a host.
    onto: LinkIndex,
    /// No flow is routed over it any more: its place is given away once it is empty.
    doomed: bool,
    link: Link,
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
        self.trunks.push(Slot::new(link, NONE));
    }

    /// Adds a leaf that leads onto a trunk, or to a host (`NONE`).
    pub fn add_leaf(&mut self, link: Link, onto: LinkIndex) -> LinkIndex {
        let slot = Slot::new(link, onto);
        if let Some(index) = self.free.pop() {
            *self.leaf(index) = slot;
            return index;
        }
        self.leaves.push(slot);
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

    /// Any link.
    pub fn link(&self, index: LinkIndex) -> &Link {
        match index.checked_sub(TRUNKS) {
            None => self.trunk(index),
            Some(leaf) => &self.leaves[leaf as usize].link,
        }
    }

    /// The same, to change it.
    pub fn link_mut(&mut self, index: LinkIndex) -> &mut Link {
        match index.checked_sub(TRUNKS) {
            None => self.trunk_mut(index),
            Some(leaf) => &mut self.leaves[leaf as usize].link,
        }
    }

    #[inline]
    fn leaf(&mut self, index: LinkIndex) -> &mut Slot {
        &mut self.leaves[(index - TRUNKS) as usize]
    }

    /// The first packet under way on a link, if it leads to a host.
    #[inline]
    pub fn next_at_host(&self, index: LinkIndex) -> Option<&Packet> {
        let slot = self.leaves.get(index.checked_sub(TRUNKS)? as usize)?;
        let packet = slot.link.flying().next()?;
        (slot.onto == NONE).then_some(packet)
    }

    /// Reads a little of what the next packet needs of a leaf.
    #[inline]
    pub fn touch(&self, index: LinkIndex) -> u64 {
        let Some(slot) = self.leaves.get(index.wrapping_sub(TRUNKS) as usize) else {
            return 0;
        };
        slot.wake_at.as_nanos() ^ slot.link.touch()
    }

    /// A packet arrives at a link.
    #[inline]
    pub fn push(&mut self, around: &mut Around, index: LinkIndex, packet: &Packet) {
        if index >= TRUNKS {
            let slot = self.leaf(index);
            slot.link.push_ref(around.now, packet);
            slot.arm(around.queue, index);
            return;
        }
        if let Some(watch) = &mut around.watch {
            watch.arrives(around.now, packet);
        }
        let slot = &mut self.trunks[index as usize];
        let (now, leaves) = (around.now, &mut self.leaves);
        slot.link.push_express(now, packet, &mut |at, p| {
            hand_over(leaves, around, index, at, p)
        });
        slot.arm_trunk(around.queue, index);
    }

    /// Deals with a link's wake-up, if it is the present one: what has crossed a leaf goes onto its
    /// trunk. The first packet that has reached a host is left in place and shown; once it is
    /// [removed](Links::remove), there may be [more](Links::more).
    #[inline]
    pub fn due(&mut self, around: &mut Around, index: LinkIndex) -> Option<&mut Packet> {
        let now = around.now;
        if index < TRUNKS {
            return self.trunk_due(around, index);
        }
        let slot = &mut self.leaves[(index - TRUNKS) as usize];
        if slot.wake_at != now {
            return None;
        }
        slot.link.advance(now, &mut |_, _| false);
        if slot.onto == NONE {
            // Asked twice, since what is returned cannot be given up again.
            if slot.link.arrived_by(now).is_some() {
                return self.leaf(index).link.front_again();
            }
        } else {
            self.onto_trunk(around, index);
        }
        self.rearm_leaf(around.queue, index);
        None
    }

    #[inline]
    fn trunk_due(&mut self, around: &mut Around, index: LinkIndex) -> Option<&mut Packet> {
        let now = around.now;
        if self.trunks[index as usize].wake_at != now {
            return None;
        }
        self.advance(around, index);
        let slot = &mut self.trunks[index as usize];
        if slot.link.arrived_by(now).is_none() {
            slot.wake_at = Time::MAX;
            slot.arm_trunk(around.queue, index);
            return None;
        }
        slot.link.front_again()
    }

    /// After the packet that [`Links::due`] showed was removed, and everything that it caused has
    /// happened: the next one that has reached a host, or none, and a wake-up is queued.
    #[inline]
    pub fn more(&mut self, around: &mut Around, index: LinkIndex) -> Option<&mut Packet> {
        let now = around.now;
        if index < TRUNKS {
            let slot = &mut self.trunks[index as usize];
            if slot.link.arrived_by(now).is_none() {
                slot.wake_at = Time::MAX;
                slot.arm_trunk(around.queue, index);
                return None;
            }
            return slot.link.front_again();
        }
        if self.leaf(index).link.arrived_by(now).is_none() {
            self.rearm_leaf(around.queue, index);
            return None;
        }
        self.leaf(index).link.front_again()
    }

    /// Brings a trunk up to date.
    #[inline]
    pub fn advance(&mut self, around: &mut Around, trunk: LinkIndex) {
        let (now, leaves) = (around.now, &mut self.leaves);
        self.trunks[trunk as usize]
            .link
            .advance(now, &mut |at, p| hand_over(leaves, around, trunk, at, p));
    }

    /// The packet that [`Links::due`] showed has arrived.
    #[inline]
    pub fn remove(&mut self, index: LinkIndex) {
        if index < TRUNKS {
            self.trunks[index as usize].link.pop_front();
        } else {
            self.leaf(index).link.pop_front();
        }
    }

    /// Everything that has crossed a leaf goes onto its trunk.
    #[inline]
    fn onto_trunk(&mut self, around: &mut Around, index: LinkIndex) {
        let now = around.now;
        loop {
            let slot = &mut self.leaves[(index - TRUNKS) as usize];
            let Some(&mut packet) = slot.link.arrived_by(now) else {
                return;
            };
            slot.link.pop_front();
            let trunk = slot.onto;
            self.hops += 1;
            self.push(around, trunk, &packet);
        }
    }

    /// Queues the next wake-up of a leaf from which everything due was taken.
    #[inline]
    fn rearm_leaf(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        let slot = self.leaf(index);
        slot.wake_at = Time::MAX;
        slot.arm(queue, index);
        if slot.doomed && slot.wake_at == Time::MAX {
            self.free.push(index);
        }
    }

    /// No flow is routed over the leaf any more.
    pub fn doom(&mut self, index: LinkIndex) {
        let slot = self.leaf(index);
        slot.doomed = true;
        if slot.wake_at == Time::MAX {
            self.free.push(index);
        }
    }
}

/// A packet that begins to cross a trunk arrives at the leaf it is bound for at `at`; false where its
/// route ends at the trunk.
#[inline]
fn hand_over(
    leaves: &mut [Slot],
    around: &mut Around,
    trunk: LinkIndex,
    at: Time,
    packet: &Packet,
) -> bool {
    if let Some(watch) = &mut around.watch {
        watch.crosses(trunk, at, packet);
    }
    let next = around.routes[packet.flow.0 as usize][usize::from(packet.way & 1)];
    if next == NONE {
        return false;
    }
    let slot = &mut leaves[(next - TRUNKS) as usize];
    slot.link.push_ref(at, packet);
    slot.arm(around.queue, next);
    true
}

impl Slot {
    fn new(link: Link, onto: LinkIndex) -> Slot {
        Slot {
            link,
            wake_at: Time::MAX,
            onto,
            doomed: false,
        }
    }

    #[inline]
    fn arm(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        self.arm_for(self.link.poll_at(), queue, index);
    }

    #[inline]
    fn arm_trunk(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        self.arm_for(self.link.touch_at(), queue, index);
    }

    #[inline]
    fn arm_for(&mut self, due: Option<Time>, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        if let Some(due) = due
            && due < self.wake_at
        {
            self.wake_at = due;
            queue.push(due, Wake::link(index));
        }
    }
}
