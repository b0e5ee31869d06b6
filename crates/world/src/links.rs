//! The links of a world.
//!
//! Flows meet on *shared* links. Each direction of a shared link is a *queue* with a number of its own
//! ([`crate::path`]). *Access* links lead from a host to a queue, or from a queue to a host.
//!
//! The design minimizes the number of events per packet:
//!
//! * **From a queue to an access link: none.** When the transmission begins, the packet enters the access link at
//!   once, with the future instant of its arrival there. Only this queue feeds the link, so packets stay in order.
//! * **From a queue to another queue: one.** Packets from other queues may arrive there earlier.
//! * **Over a plain access link: one**, the arrival at its far end, which is known when the packet enters.
//! * **Over a general access link: one wake-up** for the link, not one per packet. These links hold their packets.
//! * **Queues: none in the event queue.** Each has one next deadline ([`Soonest`]).

use std::collections::BTreeSet;

use swell_base::{Dur, End, EventQueue, Flags, Head, Packet, Time, drawn_at, fetch};
use swell_path::{Begun, Change, Link, LinkConfig, PacketPool, PlainLink, SlotId};
use swell_tcp::Endpoint;
use swell_workload::Conn;

use crate::fast::{FastPath, Off};
use crate::index::{ACCESS, LinkIndex, NONE};
use crate::path::{Bound, Duplex, Paths};
use crate::soonest::Soonest;
use crate::wake::Wake;
use crate::watch::Watches;

pub(crate) struct Links {
    /// The current instant of the world.
    pub now: Time,
    /// The world's events.
    pub queue: EventQueue<Wake>,
    pub paths: Paths,
    /// Taps that observe packets as they arrive at shared links and as they leave them.
    pub watches: Watches,
    /// Storage of the packets of all links.
    pub pool: PacketPool,
    queues: Vec<Link>,
    /// The next deadline of each queue. Events instead would cost one more event for each packet that reaches a host
    /// directly from a shared link.
    due: Soonest,
    access: Vec<AccessLink>,
    /// Number of access links ever added, modulo 2^16.
    added: u16,
    free: Vec<LinkIndex>,
    /// Access links that no flow uses any more. Their slots are reused once the links are empty.
    unused: BTreeSet<LinkIndex>,
    /// Fast paths that are switched off.
    pub off: Off,
    /// Packets that have arrived at a queue from another link. `World::hops` adds the arrivals at hosts.
    pub hops: u64,
    /// TCP segments and datagrams that hosts sent.
    pub packets: u64,
    /// Seed of the random delays of hosts before they send.
    jitter: u64,
    /// Configurations of the shared links, as they were at first.
    pub shared: Vec<Duplex>,
}

/// Begins with the cache line that every packet needs.
#[repr(C, align(64))]
struct AccessLink {
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    /// The general link, if this one is not plain.
    other: Option<Box<Link>>,
    /// The queue that it leads onto; `NONE` if it leads to a host.
    onto: LinkIndex,
    /// Incremented when no flow uses the link any more. A packet that carries an older number was bound for a former
    /// link in this slot and does not enter.
    generation: u16,
    /// Number of access links added before this one. Of packets that reach a queue at the same instant, the one from
    /// the older link comes first. The slot number does not tell which link is older, because slots are reused in any
    /// order. Sixteen bits fit here; links that compete are of about the same age, so wrapping does little harm.
    serial: u16,
    plain: PlainLink,
}

impl Links {
    /// Takes the queues of all shared links, the paths over them, and the seed of the hosts' random delays.
    pub fn new(queues: Vec<Link>, (shared, paths): (Vec<Duplex>, Paths), jitter: u64) -> Links {
        Links {
            now: Time::ZERO,
            queue: EventQueue::new(),
            paths,
            watches: Watches::default(),
            pool: PacketPool::default(),
            due: Soonest::new(queues.len()),
            queues,
            access: Vec::new(),
            added: 0,
            free: Vec::new(),
            unused: BTreeSet::new(),
            off: Off::default(),
            hops: 0,
            packets: 0,
            jitter,
            shared,
        }
    }

    /// Adds an access link that leads to a queue, or to a host (`NONE`). Its random streams derive from `seed` and
    /// `name`.
    pub fn add_access(
        &mut self,
        config: &LinkConfig,
        (seed, name): (u64, &str),
        onto: LinkIndex,
    ) -> LinkIndex {
        match PlainLink::new(config, seed, name) {
            Some(plain) if !self.off.has(FastPath::PlainLinks) => self.add(plain, None, onto),
            _ => self.add_counting(Link::new(config, seed, name), onto),
        }
    }

    /// Adds a general access link, which can also count packets and keep those that it drops.
    pub fn add_counting(&mut self, link: Link, onto: LinkIndex) -> LinkIndex {
        self.add(PlainLink::default(), Some(Box::new(link)), onto)
    }

    fn add(&mut self, plain: PlainLink, other: Option<Box<Link>>, onto: LinkIndex) -> LinkIndex {
        let new = AccessLink {
            wake_at: Time::MAX,
            other,
            onto,
            generation: 0,
            serial: self.added,
            plain,
        };
        self.added = self.added.wrapping_add(1);
        if let Some(index) = self.free.pop() {
            let link = self.access_mut(index);
            let generation = link.generation;
            *link = AccessLink { generation, ..new };
            return index;
        }
        self.access.push(new);
        ACCESS + self.access.len() as LinkIndex - 1
    }

    pub fn len(&self) -> usize {
        self.queues.len() + self.access.len() - self.free.len()
    }

    /// Number of queues: two for each shared link.
    pub fn queues(&self) -> LinkIndex {
        self.queues.len() as LinkIndex
    }

    pub fn queue(&self, index: LinkIndex) -> &Link {
        &self.queues[index as usize]
    }

    pub fn queue_mut(&mut self, index: LinkIndex) -> &mut Link {
        &mut self.queues[index as usize]
    }

    /// A queue, or a [general](Links::add_counting) access link.
    pub fn link(&self, index: LinkIndex) -> Option<&Link> {
        match index.checked_sub(ACCESS) {
            None => self.queues.get(index as usize),
            Some(access) => self.access.get(access as usize)?.other.as_deref(),
        }
    }

    /// As [`Links::link`], mutable.
    pub fn link_mut(&mut self, index: LinkIndex) -> Option<&mut Link> {
        match index.checked_sub(ACCESS) {
            None => self.queues.get_mut(index as usize),
            Some(access) => self.access.get_mut(access as usize)?.other.as_deref_mut(),
        }
    }

    /// The note of packets that follow a way and then enter an access link, unless that is `NONE`.
    pub fn bound(&self, way: u16, access: LinkIndex) -> Bound {
        let generation = self.access_at(access).map_or(0, |link| link.generation);
        self.paths.bound(way, access, generation)
    }

    #[inline]
    fn access_mut(&mut self, index: LinkIndex) -> &mut AccessLink {
        &mut self.access[(index - ACCESS) as usize]
    }

    /// The next packet to reach the host at the end of a general access link; `None` for other links.
    #[inline]
    pub fn next_at_host(&self, index: LinkIndex) -> Option<SlotId> {
        let link = self.access_at(index)?;
        if link.onto != NONE {
            return None;
        }
        match &link.other {
            None => None,
            Some(link) => link.flying().next(),
        }
    }

    /// The next deadline of a queue or of a [general](Links::add_counting) access link.
    pub fn poll_at(&self, index: LinkIndex) -> Option<Time> {
        self.link(index)?.due()
    }

    /// A host sends the packet in the pool's spare slot onto its first link.
    #[inline(always)]
    pub fn send(&mut self, first: LinkIndex, spare: SlotId, bound: Bound) {
        self.packets += 1;
        self.pool.take_spare(spare, bound.into());
        self.push(first, spare);
    }

    /// Random delay of one end of a connection before it sends data now.
    #[inline]
    pub fn jitter(
        &self,
        (workload, conn, end): (u32, Conn, End),
        endpoint: &Endpoint,
        bound: Bound,
    ) -> Dur {
        let most = endpoint.jitter(self.paths.slot(bound.way()));
        let who = u64::from(workload) << 33 | u64::from(conn.0) << 1 | end as u64;
        drawn_at(self.jitter, who, self.now, most)
    }

    /// As [`Links::send`], but the packet leaves after the delay `after`, and not before earlier packets of the host.
    /// An access link keeps the order itself. Without one, packets reach the queue by events, and `silent_at` keeps
    /// their order.
    #[inline(never)]
    pub fn send_late(
        &mut self,
        first: LinkIndex,
        (spare, bound): (SlotId, Bound),
        after: Dur,
        silent_at: &mut Time,
    ) {
        self.packets += 1;
        self.pool.take_spare(spare, bound.into());
        let at = self.now + after;
        if first >= ACCESS {
            return self.push_access(first, at, spare);
        }
        let last = Time::from_nanos(silent_at.as_nanos().saturating_sub(1));
        let at = at.max(last);
        *silent_at = at + Dur::from_nanos(1);
        self.queue.push(at, Wake::at_queue(spare, first));
    }

    /// As [`Links::send`], for a packet that reuses the slot of a packet that the host received.
    #[inline(always)]
    pub fn send_back(&mut self, first: LinkIndex, place: SlotId, bound: Bound) {
        self.packets += 1;
        self.pool.set_note(place, bound.into());
        self.push(first, place);
    }

    /// As [`Links::send`], for a packet that is not in the pool yet.
    #[inline]
    pub fn put(&mut self, first: LinkIndex, packet: &Packet, bound: Bound) {
        let place = self.pool.spare();
        self.pool.write(place, packet);
        self.send(first, place, bound);
    }

    /// The packet in `place` enters a link now.
    #[inline]
    fn push(&mut self, index: LinkIndex, place: SlotId) {
        let now = self.now;
        if index >= ACCESS {
            self.push_access(index, now, place);
        } else {
            self.push_queue(index, place);
        }
    }

    #[inline(always)]
    fn push_access(&mut self, index: LinkIndex, at: Time, place: SlotId) {
        let link = &mut self.access[(index - ACCESS) as usize];
        if link.other.is_some() {
            return self.push_other(index, at, place);
        }
        let packet = self.pool.packet(place);
        let Some(arrival) = link.plain.push(at, packet.size) else {
            return self.pool.release(place);
        };
        let wake = match link.onto {
            NONE => Wake::at_host(place, is_bare(packet)),
            _ => Wake::at_first(place, link.serial, link.plain.before()),
        };
        self.queue.push(arrival, wake);
    }

    #[inline(never)]
    fn push_other(&mut self, index: LinkIndex, at: Time, place: SlotId) {
        let access = &mut self.access[(index - ACCESS) as usize];
        if let Some(link) = &mut access.other {
            // The unused plain link has no rate. It only keeps the order of packets with random delays.
            let at = access.plain.push(at, 0).unwrap_or(at);
            link.push_place(&mut self.pool, at, place);
            if let Some(due) = link.due() {
                access.wake_by(due, index, &mut self.queue);
            }
        }
    }

    fn push_queue(&mut self, index: LinkIndex, place: SlotId) {
        let now = self.now;
        if self.watches.any() {
            self.watches.arrives(index, now, self.pool.copy(place));
        }
        self.advance(index);
        let link = &mut self.queues[index as usize];
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

    /// Processes all transmissions of a queue that have begun by now.
    #[inline]
    pub fn advance(&mut self, index: LinkIndex) {
        while let Some(begun) = self.queues[index as usize].begin(&mut self.pool, self.now) {
            self.cross(index, begun);
        }
    }

    /// Brings a queue up to date before it is [changed](Links::change).
    pub fn bring_up(&mut self, index: LinkIndex) {
        self.advance(index);
        while self.queues[index as usize].exchange(&mut self.pool, self.now) {}
    }

    /// Applies an unscheduled change ([`Link::change`]) to a queue that is [up to date](Links::bring_up).
    pub fn change(
        &mut self,
        index: LinkIndex,
        change: &Change,
        stream: (u64, &str),
    ) -> Option<Time> {
        let at = self.queues[index as usize].change(self.now, change, stream);
        self.arm(index);
        at
    }

    /// A packet begins its transmission on a queue. It goes on to another queue, to its access link, or directly to a
    /// host.
    #[inline]
    fn cross(&mut self, index: LinkIndex, begun: Begun) {
        let bound = Bound::from(begun.note);
        if bound.is_long() | self.watches.any() {
            return self.cross_seldom(index, begun, bound);
        }
        self.cross_last(index, begun, bound);
    }

    /// The general case of [`Links::cross`]: there is a tap, or another queue may follow.
    #[inline(never)]
    fn cross_seldom(&mut self, index: LinkIndex, begun: Begun, bound: Bound) {
        let Begun { arrival, place, .. } = begun;
        if self.watches.any() {
            self.watches.crosses(index, arrival, self.pool.copy(place));
        }
        match self.paths.next(bound.way(), index) {
            NONE => self.cross_last(index, begun, bound),
            next => {
                self.queues[index as usize].leaves();
                self.queue.push(arrival, Wake::at_queue(place, next));
            }
        }
    }

    /// A packet begins its transmission on the last queue of its way.
    #[inline(always)]
    fn cross_last(&mut self, index: LinkIndex, begun: Begun, bound: Bound) {
        let Begun { arrival, place, .. } = begun;
        let link = &mut self.queues[index as usize];
        let access = bound.access();
        if access == NONE
            || self.access[(access - ACCESS) as usize].generation != bound.generation()
        {
            link.flies(arrival, place);
        } else {
            link.leaves();
            self.push_access(access, arrival, place);
        }
    }

    /// Records the next deadline of a queue.
    #[inline(always)]
    fn arm(&mut self, index: LinkIndex) {
        let at = self.queues[index as usize].touch_at();
        self.due.set(index, at.unwrap_or(Time::MAX));
    }

    /// The earliest deadline of all queues, and its queue. At one instant it comes after the events of the same
    /// [rank](Wake::link).
    #[inline]
    pub fn next_due(&self) -> (Time, LinkIndex) {
        self.due.first()
    }

    /// When the next event or deadline is due.
    pub fn next_at(&self) -> Option<Time> {
        let (due, _) = self.next_due();
        let next = self.queue.next_at().unwrap_or(Time::MAX).min(due);
        (next != Time::MAX).then_some(next)
    }

    /// Handles the wake-up of an access link, unless it is outdated. Returns true if packets may have reached a host.
    /// The caller then [takes](Links::take_from_other) them.
    #[inline]
    pub fn due(&mut self, index: LinkIndex) -> bool {
        let access = &mut self.access[(index - ACCESS) as usize];
        if access.wake_at != self.now {
            return false;
        }
        let Some(link) = &mut access.other else {
            access.wake_at = Time::MAX;
            self.rest(index);
            return false;
        };
        link.advance(&mut self.pool, self.now);
        let to_host = access.onto == NONE;
        if !to_host {
            self.go_onto_queue(index);
        }
        to_host
    }

    /// Moves packets that have crossed a general access link to its queue.
    #[inline(never)]
    fn go_onto_queue(&mut self, index: LinkIndex) {
        let onto = self.access_mut(index).onto;
        while let Some(place) = self.take_from_other(index) {
            self.reach_queue(onto, place);
        }
    }

    /// A packet that has crossed a plain access link arrives at the first queue of its way.
    #[inline(always)]
    pub fn reach_first(&mut self, place: SlotId) {
        let bound = Bound::from(self.pool.note(place));
        self.reach_queue(self.paths.first(bound.way()), place);
    }

    /// A packet arrives at a queue by an event of its own. If the queue is the first of its way, its host has no access
    /// link and sent it late, and it has crossed no link yet.
    #[inline(always)]
    pub fn reach_next(&mut self, index: LinkIndex, place: SlotId) {
        let way = Bound::from(self.pool.note(place)).way();
        self.hops += u64::from(self.paths.first(way) != index);
        self.push_queue(index, place);
    }

    /// A packet that has crossed another link arrives at a queue.
    #[inline(always)]
    pub fn reach_queue(&mut self, index: LinkIndex, place: SlotId) {
        self.hops += 1;
        self.push_queue(index, place);
    }

    /// Takes the next packet that has reached a host directly from a shared link; the caller releases it. If there is
    /// none, records the queue's next deadline. Call this after [`Links::advance`], and again after all consequences
    /// of a packet have been processed.
    #[inline]
    pub fn take_from_queue(&mut self, index: LinkIndex) -> Option<SlotId> {
        let place = self.queues[index as usize].take_arrived(self.now);
        if place.is_none() {
            self.arm(index);
        }
        place
    }

    /// As [`Links::take_from_queue`], for a general access link, after [`Links::due`]. If there is no packet, queues
    /// a wake-up.
    #[inline(never)]
    pub fn take_from_other(&mut self, index: LinkIndex) -> Option<SlotId> {
        let access = &mut self.access[(index - ACCESS) as usize];
        let link = access.other.as_deref_mut()?;
        let place = link.take_arrived(self.now);
        if place.is_none() {
            access.wake_at = Time::MAX;
            match link.due() {
                Some(due) => access.wake_by(due, index, &mut self.queue),
                None => self.rest(index),
            }
        }
        place
    }

    /// An access link has no wake-up queued: if no flow uses it and it is empty, its slot becomes free.
    #[inline]
    fn rest(&mut self, index: LinkIndex) {
        if !self.unused.is_empty() {
            self.give_away(index);
        }
    }

    #[inline(never)]
    fn give_away(&mut self, index: LinkIndex) {
        let link = &mut self.access[(index - ACCESS) as usize];
        let empty = link.plain.empty_at();
        if empty <= self.now {
            if self.unused.remove(&index) {
                self.free.push(index);
            }
        } else if self.unused.contains(&index) {
            link.wake_by(empty, index, &mut self.queue);
        }
    }

    /// No flow uses the access link any more. Packets that are still bound for it will not enter it.
    pub fn leave_unused(&mut self, index: LinkIndex) {
        self.unused.insert(index);
        let link = self.access_mut(index);
        link.generation = link.generation.wrapping_add(1);
        if link.wake_at == Time::MAX {
            self.rest(index);
        }
    }
}

impl AccessLink {
    /// Queues a wake-up, unless one is queued that is at least as early.
    #[inline]
    fn wake_by(&mut self, due: Time, index: LinkIndex, queue: &mut EventQueue<Wake>) {
        if due < self.wake_at {
            self.wake_at = due;
            queue.push(due, Wake::link(index));
        }
    }
}

/// Whether a packet is a pure ACK: no data, no ECN marks, no SACK blocks.
#[inline]
fn is_bare(packet: &Head) -> bool {
    let seg = &packet.seg;
    seg.len == 0 && seg.flags == Flags::ACK && seg.ecn == 0 && seg.sacks == 0
}

// Prefetching: see `world/look.rs`.
impl Links {
    #[inline]
    fn access_at(&self, index: LinkIndex) -> Option<&AccessLink> {
        self.access.get(index.wrapping_sub(ACCESS) as usize)
    }

    /// [Prefetches](fetch()) an access link.
    #[inline]
    pub fn fetch(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            fetch(link);
        }
    }

    /// Prefetches an access link and the data that a packet entering it needs.
    #[inline]
    pub fn fetch_whole(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            fetch(link);
            link.plain.fetch();
        }
    }

    /// Prefetches the list of waiting packets of an access link. Reads the whole link.
    #[inline]
    pub fn fetch_waiting(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            link.plain.fetch_waiting();
        }
    }

    /// The packet that reaches a host directly from the queue after `n` others have.
    #[inline]
    pub fn behind(&self, index: LinkIndex, n: usize) -> Option<SlotId> {
        self.queues[index as usize].behind(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_link_is_two_cache_lines() {
        assert_eq!(size_of::<AccessLink>(), 128);
        assert!(std::mem::offset_of!(AccessLink, plain) + PlainLink::HOT <= 64);
    }
}
