//! The links of a world, each with one wake-up in the event queue.

use swell_base::{EventQueue, Packet, Time};
use swell_path::{Element, Link};

use crate::flow::LinkIndex;
use crate::wake::Wake;

#[derive(Default)]
pub(crate) struct Links {
    slots: Vec<Slot>,
    free: Vec<LinkIndex>,
}

struct Slot {
    link: Link,
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    /// No flow is routed over it any more: its place is given away once it is empty.
    doomed: bool,
}

impl Links {
    pub fn add(&mut self, link: Link) -> LinkIndex {
        let slot = Slot {
            link,
            wake_at: Time::MAX,
            doomed: false,
        };
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return index;
        }
        self.slots.push(slot);
        self.slots.len() as LinkIndex - 1
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn get(&self, index: LinkIndex) -> &Link {
        &self.slots[index as usize].link
    }

    pub fn get_mut(&mut self, index: LinkIndex) -> &mut Link {
        &mut self.slots[index as usize].link
    }

    /// A packet arrives at a link.
    #[inline]
    pub fn push(
        &mut self,
        queue: &mut EventQueue<Wake>,
        now: Time,
        index: LinkIndex,
        packet: &Packet,
    ) {
        let slot = &mut self.slots[index as usize];
        slot.link.push_ref(now, packet);
        slot.arm(queue, index);
    }

    /// Whether the wake-up that is due now is the link's present one.
    #[inline]
    pub fn is_due(&self, now: Time, index: LinkIndex) -> bool {
        self.slots[index as usize].wake_at == now
    }

    /// The packet that reaches the far end of a link now, if there is one left. It stays where it is
    /// until [`Links::forward`] or [`Links::remove`] takes it on.
    #[inline]
    pub fn front(&mut self, now: Time, index: LinkIndex) -> Option<&mut Packet> {
        self.slots[index as usize].link.front(now)
    }

    /// What [`Links::front`] showed, once more.
    #[inline]
    pub fn front_again(&mut self, index: LinkIndex) -> Option<&mut Packet> {
        self.slots[index as usize].link.front_again()
    }

    /// The packet that [`Links::front`] showed has arrived.
    #[inline]
    pub fn remove(&mut self, index: LinkIndex) {
        self.slots[index as usize].link.pop_front();
    }

    /// The packet that [`Links::front`] showed goes straight onto another link.
    #[inline]
    pub fn forward(
        &mut self,
        queue: &mut EventQueue<Wake>,
        now: Time,
        from: LinkIndex,
        to: LinkIndex,
    ) {
        let Ok([source, target]) = self.slots.get_disjoint_mut([from as usize, to as usize]) else {
            debug_assert!(false, "a route crosses a link twice");
            return self.remove(from);
        };
        if let Some(packet) = source.link.front_again() {
            target.link.push_ref(now, packet);
            target.arm(queue, to);
            source.link.pop_front();
        }
    }

    /// Queues the next wake-up of a link from which everything due was popped.
    #[inline]
    pub fn rearm(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        let slot = &mut self.slots[index as usize];
        slot.wake_at = Time::MAX;
        slot.arm(queue, index);
        if slot.doomed && slot.wake_at == Time::MAX {
            self.free.push(index);
        }
    }

    /// No flow is routed over the link any more.
    pub fn doom(&mut self, index: LinkIndex) {
        let slot = &mut self.slots[index as usize];
        slot.doomed = true;
        if slot.wake_at == Time::MAX {
            self.free.push(index);
        }
    }
}

impl Slot {
    #[inline]
    fn arm(&mut self, queue: &mut EventQueue<Wake>, index: LinkIndex) {
        if let Some(due) = self.link.poll_at()
            && due < self.wake_at
        {
            self.wake_at = due;
            queue.push(due, Wake::link(index));
        }
    }
}
