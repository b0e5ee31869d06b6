//! The links of a world.
//!
//! *Shared* links are where flows meet; each direction of one is a *queue* with a number of its own
//! ([`crate::path`]). *Access* links lead from a host to a queue, or from a queue to a host.
//!
//! The aim is few events per packet:
//!
//! * **From a queue to an access link: none.** When the transmission begins, the packet enters the access link at once,
//!   with the instant of its arrival there. No other queue feeds this link, so the order is right.
//! * **From a queue to another queue: one.** Packets of other queues may arrive there earlier.
//! * **Over a plain access link: one**, the arrival at its end, which is known when the packet enters.
//! * **Over other access links: one wake-up** for the link, not for each packet. These links hold their packets.
//! * **Queues: none in the event queue.** Each has one next deadline ([`Soonest`]).

use std::collections::BTreeSet;

use swell_base::{Dur, EventQueue, Flags, Head, Packet, Time, drawn_at, fetch};
use swell_path::{Begun, Change, Link, LinkConfig, PacketPool, Place, PlainLink};
use swell_tcp::Endpoint;
use swell_workload::Conn;

use crate::fast::{FastPath, Off};
use crate::flow::{LinkIndex, NONE};
use crate::path::{Bound, Duplex, Paths};
use crate::soonest::Soonest;
use crate::wake::Wake;
use crate::watch::Watches;

/// Access links have numbers from this one up, queues below.
pub(crate) const ACCESS: LinkIndex = 1 << 16;

pub(crate) struct Links {
    /// The world's present.
    pub now: Time,
    /// The world's events.
    pub queue: EventQueue<Wake>,
    pub paths: Paths,
    /// Taps that see what arrives at shared links and what crosses them.
    pub watches: Watches,
    /// Where the packets of all links lie.
    pub pool: PacketPool,
    queues: Vec<Link>,
    /// The next deadline of each queue. Events would cost one more for each packet that reaches a host right after a
    /// shared link.
    due: Soonest,
    access: Vec<AccessLink>,
    /// Access links ever added.
    added: u16,
    free: Vec<LinkIndex>,
    /// Access links that no flow uses any more. Their places are reused once they are empty.
    unused: BTreeSet<LinkIndex>,
    /// Fast paths that are switched off.
    pub off: Off,
    /// Packets completely received at the far end of a link that leads onto a queue.
    pub hops: u64,
    /// TCP segments and datagrams that hosts sent.
    pub packets: u64,
    /// The seed of what hosts draw before they send.
    jitter: u64,
    /// The shared links as they were asked for; their rates as they were set last.
    pub shared: Vec<Duplex>,
}

/// Begins with the cache line that every packet needs.
#[repr(C, align(64))]
struct AccessLink {
    /// When the one wake-up queued for it is due; `MAX` if there is none.
    wake_at: Time,
    /// The link, if it is not plain.
    other: Option<Box<Link>>,
    /// The queue that it leads onto; `NONE` if it leads to a host.
    onto: LinkIndex,
    /// How often this place was reused. A packet that carries an older number was bound for a former link and does not
    /// enter.
    generation: u16,
    /// How many were added before it. Among packets that reach a queue at the same instant, that of the older link is
    /// first. The place does not say which is older, because places are reused in any order. Sixteen bits fit here, and
    /// packets that meet belong to links of about the same age.
    serial: u16,
    plain: PlainLink,
}

impl Links {
    /// The queues of all shared links, the paths over them, and the seed of what hosts draw.
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

    /// Adds an access link that leads onto a queue, or to a host (`NONE`); a link called `name` under `seed`.
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

    /// Adds an access link that can do more than carry packets: it counts, or keeps what it drops.
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

    /// How many queues there are: two for each shared link.
    pub fn queues(&self) -> LinkIndex {
        self.queues.len() as LinkIndex
    }

    pub fn queue(&self, index: LinkIndex) -> &Link {
        &self.queues[index as usize]
    }

    pub fn queue_mut(&mut self, index: LinkIndex) -> &mut Link {
        &mut self.queues[index as usize]
    }

    /// A queue, or a [counting](Links::add_counting) access link.
    pub fn link(&self, index: LinkIndex) -> Option<&Link> {
        match index.checked_sub(ACCESS) {
            None => self.queues.get(index as usize),
            Some(access) => self.access.get(access as usize)?.other.as_deref(),
        }
    }

    /// The same, to change it.
    pub fn link_mut(&mut self, index: LinkIndex) -> Option<&mut Link> {
        match index.checked_sub(ACCESS) {
            None => self.queues.get_mut(index as usize),
            Some(access) => self.access.get_mut(access as usize)?.other.as_deref_mut(),
        }
    }

    /// What packets carry that take a way and then an access link, if that is not `NONE`.
    pub fn bound(&self, way: u16, access: LinkIndex) -> Bound {
        let generation = self.access_at(access).map_or(0, |link| link.generation);
        self.paths.bound(way, access, generation)
    }

    #[inline]
    fn access_mut(&mut self, index: LinkIndex) -> &mut AccessLink {
        &mut self.access[(index - ACCESS) as usize]
    }

    /// The packet whose turn it is to reach the host that an access link leads to, as far as the link knows.
    #[inline]
    pub fn next_at_host(&self, index: LinkIndex) -> Option<Place> {
        let link = self.access_at(index)?;
        if link.onto != NONE {
            return None;
        }
        match &link.other {
            None => None,
            Some(link) => link.flying().next(),
        }
    }

    /// When there may be something to do on a queue or a [counting](Links::add_counting) access link.
    pub fn poll_at(&self, index: LinkIndex) -> Option<Time> {
        self.link(index)?.due()
    }

    /// A host sends the packet in the pool's spare place onto its first link, bound for another host.
    #[inline(always)]
    pub fn send(&mut self, first: LinkIndex, spare: Place, bound: Bound) {
        self.packets += 1;
        self.pool.take_spare(spare, bound.into());
        self.push(first, spare);
    }

    /// How long an end of a connection takes now before it sends data.
    #[inline]
    pub fn jitter(
        &self,
        (workload, conn, end): (u32, Conn, u8),
        endpoint: &Endpoint,
        bound: Bound,
    ) -> Dur {
        let most = endpoint.jitter(self.paths.slot(bound.way()));
        let who = u64::from(workload) << 33 | u64::from(conn.0) << 1 | u64::from(end);
        drawn_at(self.jitter, who, self.now, most)
    }

    /// As [`Links::send`], from a host that takes so long, or that sent something from which it is `silent_at` a later
    /// instant only. What it sends keeps its order: an access link sees to that; onto a queue packets go by events.
    #[inline(never)]
    pub fn send_late(
        &mut self,
        first: LinkIndex,
        (spare, bound): (Place, Bound),
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

    /// A host sends a packet in the place of one that it received, as [`Links::send`].
    #[inline(always)]
    pub fn send_back(&mut self, first: LinkIndex, place: Place, bound: Bound) {
        self.packets += 1;
        self.pool.set_note(place, bound.into());
        self.push(first, place);
    }

    /// The same for a packet that is not in the pool yet.
    #[inline]
    pub fn put(&mut self, first: LinkIndex, packet: &Packet, bound: Bound) {
        let place = self.pool.spare();
        self.pool.write(place, packet);
        self.send(first, place, bound);
    }

    /// The packet in `place` arrives at a link now.
    #[inline]
    fn push(&mut self, index: LinkIndex, place: Place) {
        let now = self.now;
        if index >= ACCESS {
            self.push_access(index, now, place);
        } else {
            self.push_queue(index, place);
        }
    }

    #[inline(always)]
    fn push_access(&mut self, index: LinkIndex, at: Time, place: Place) {
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
    fn push_other(&mut self, index: LinkIndex, at: Time, place: Place) {
        let access = &mut self.access[(index - ACCESS) as usize];
        if let Some(link) = &mut access.other {
            // The plain link beside it has no rate: all it does is to keep the order.
            let at = access.plain.push(at, 0).unwrap_or(at);
            link.push_place(&mut self.pool, at, place);
            if let Some(due) = link.due() {
                access.wake_by(due, index, &mut self.queue);
            }
        }
    }

    fn push_queue(&mut self, index: LinkIndex, place: Place) {
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

    /// Brings a queue up to date.
    #[inline]
    pub fn advance(&mut self, index: LinkIndex) {
        while let Some(begun) = self.queues[index as usize].begin(&mut self.pool, self.now) {
            self.cross(index, begun);
        }
    }

    /// Makes a change that no schedule has ([`Link::change`]).
    pub fn change(
        &mut self,
        index: LinkIndex,
        change: &Change,
        stream: (u64, &str),
    ) -> Option<Time> {
        self.advance(index);
        let at = self.queues[index as usize].change(self.now, change, stream);
        self.arm(index);
        at
    }

    /// A packet begins to leave a queue: for another queue, for the access link that it is bound for, or for a host
    /// right after the shared link.
    #[inline]
    fn cross(&mut self, index: LinkIndex, begun: Begun) {
        let bound = Bound::from(begun.note);
        if bound.is_long() | self.watches.any() {
            return self.cross_seldom(index, begun, bound);
        }
        self.cross_last(index, begun, bound);
    }

    /// The same if there is a tap, or if another queue may follow.
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

    /// A packet begins to leave the last queue of its way.
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

    /// Notes when there is something to do on a queue.
    #[inline(always)]
    fn arm(&mut self, index: LinkIndex) {
        let at = self.queues[index as usize].touch_at();
        self.due.set(index, at.unwrap_or(Time::MAX));
    }

    /// When there is something to do on a queue, and on which. At one instant it comes after the events of the same
    /// [rank](Wake::link).
    #[inline]
    pub fn next_due(&self) -> (Time, LinkIndex) {
        self.due.first()
    }

    /// When anything is due next.
    pub fn next_at(&self) -> Option<Time> {
        let (due, _) = self.next_due();
        let next = self.queue.next_at().unwrap_or(Time::MAX).min(due);
        (next != Time::MAX).then_some(next)
    }

    /// Deals with an access link's wake-up, if it is the present one. True if packets may have reached a host, which
    /// are to be [taken](Links::take_from_other).
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

    /// Packets that have crossed an access link that is not plain enter its queue.
    #[inline(never)]
    fn go_onto_queue(&mut self, index: LinkIndex) {
        let onto = self.access_mut(index).onto;
        while let Some(place) = self.take_from_other(index) {
            self.reach_queue(onto, place);
        }
    }

    /// A packet that crossed a plain access link arrives at the first queue of its way.
    #[inline(always)]
    pub fn reach_first(&mut self, place: Place) {
        let bound = Bound::from(self.pool.note(place));
        self.reach_queue(self.paths.first(bound.way()), place);
    }

    /// A packet that crossed another link arrives at a queue.
    #[inline(always)]
    pub fn reach_queue(&mut self, index: LinkIndex, place: Place) {
        self.hops += 1;
        self.push_queue(index, place);
    }

    /// The next packet that has reached a host right after a shared link, which is to release it; if there is none,
    /// when there will be one is noted. To be called after [`Links::advance`] and again when everything that a packet
    /// caused has happened.
    #[inline]
    pub fn take_from_queue(&mut self, index: LinkIndex) -> Option<Place> {
        let place = self.queues[index as usize].take_arrived(self.now);
        if place.is_none() {
            self.arm(index);
        }
        place
    }

    /// The same for an access link that is not plain, after [`Links::due`]. A wake-up is queued.
    #[inline(never)]
    pub fn take_from_other(&mut self, index: LinkIndex) -> Option<Place> {
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

    /// No wake-up is queued for an access link: if no flow uses it, its place is given away when nothing is on it.
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

    /// No flow uses the access link any more: packets that are still bound for it do not enter it.
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
    fn access_at(&self, index: LinkIndex) -> Option<&AccessLink> {
        self.access.get(index.wrapping_sub(ACCESS) as usize)
    }

    /// [Asks](fetch()) for an access link.
    #[inline]
    pub fn fetch(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            fetch(link);
        }
    }

    /// Asks for what packets need that wait there, too.
    #[inline]
    pub fn fetch_whole(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            fetch(link);
            link.plain.fetch();
        }
    }

    /// Asks for where it is noted what waits there; reads the whole link.
    #[inline]
    pub fn fetch_waiting(&self, index: LinkIndex) {
        if let Some(link) = self.access_at(index) {
            link.plain.fetch_waiting();
        }
    }

    /// The packet that reaches a host right after a queue when so many others have.
    #[inline]
    pub fn behind(&self, index: LinkIndex, n: usize) -> Option<Place> {
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
