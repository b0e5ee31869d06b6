//! The pool in which packets lie from when they are sent until they have arrived.

use swell_base::{FlowId, Packet, Time};

/// No place: the end of a queue.
const END: u32 = u32::MAX;

/// Where a packet lies in a [`PacketPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// No place.
    pub(crate) const NONE: Place = Place(END);
}

/// Packets that wait or are under way. A packet stays where it was written however many links it crosses, as
/// long as it waits in drop-tail queues alone (the other disciplines hold packets themselves); queues are
/// lists of places.
///
/// The place left last is taken next: what is touched is as much memory as packets are under way now. With
/// thousands of links that is the difference between cache and memory.
///
/// Whoever takes a packet off the last link must [release](Self::release) its place. Debug builds check that only
/// places in use are released, read and queued.
#[derive(Clone, Debug)]
pub struct PacketPool {
    slots: Vec<Slot>,
    /// First of the places that are not in use.
    free: u32,
    /// How many places are in use.
    #[cfg(debug_assertions)]
    used: usize,
}

/// A packet, and what a queue and the caller know of it: one cache line but for selective acknowledgements, which
/// begin the next one and are seldom touched.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Slot {
    /// At the far end of the link, where the packet is under way.
    arrival: Time,
    note: Note,
    /// The place of the packet behind, or of the next that is free.
    next: u32,
    packet: Packet,
    #[cfg(debug_assertions)]
    in_use: bool,
}

/// What the caller wants to have at hand with a packet. Disciplines other than drop tail forget it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note(pub u64);

impl Default for PacketPool {
    fn default() -> Self {
        PacketPool {
            slots: Vec::new(),
            free: END,
            #[cfg(debug_assertions)]
            used: 0,
        }
    }
}

impl PacketPool {
    /// The place that is taken next: a packet may be written there before it is known that there is one.
    #[inline]
    pub fn spare(&mut self) -> Place {
        if self.free == END {
            self.grow();
        }
        Place(self.free)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.free = self.slots.len() as u32;
        self.slots.push(Slot {
            packet: Packet::default(),
            note: Note::default(),
            arrival: Time::ZERO,
            next: END,
            #[cfg(debug_assertions)]
            in_use: false,
        });
    }

    /// The [spare](Self::spare) place is no longer free.
    #[inline]
    pub fn take_spare(&mut self, spare: Place, note: Note) {
        debug_assert_eq!(self.free, spare.0, "only the spare place can be taken");
        let slot = &mut self.slots[spare.0 as usize];
        self.free = slot.next;
        slot.note = note;
        #[cfg(debug_assertions)]
        {
            self.slots[spare.0 as usize].in_use = true;
            self.used += 1;
        }
    }

    /// Finds a place for a packet.
    #[inline]
    pub fn put(&mut self, packet: &Packet) -> Place {
        let place = self.spare();
        *self.packet_mut(place) = *packet;
        self.take_spare(place, Note::default());
        place
    }

    /// What was noted with a packet.
    #[inline]
    pub fn note(&self, place: Place) -> Note {
        self.slots[place.0 as usize].note
    }

    /// A packet is gone: its place is taken next.
    #[inline]
    pub fn release(&mut self, place: Place) {
        #[cfg(debug_assertions)]
        {
            self.check(place);
            self.slots[place.0 as usize].in_use = false;
            self.used -= 1;
        }
        self.slots[place.0 as usize].next = self.free;
        self.free = place.0;
    }

    /// The packet in a place that is in use.
    #[inline]
    pub fn packet(&self, place: Place) -> &Packet {
        #[cfg(debug_assertions)]
        self.check(place);
        &self.slots[place.0 as usize].packet
    }

    /// The same, to write it; of the [spare](Self::spare) place too.
    #[inline]
    pub fn packet_mut(&mut self, place: Place) -> &mut Packet {
        &mut self.slots[place.0 as usize].packet
    }

    /// When the packet in a place that is in use arrives; `None` for no place.
    #[inline]
    pub(crate) fn arrival(&self, place: Place) -> Option<Time> {
        self.slots.get(place.0 as usize).map(|slot| slot.arrival)
    }

    /// The place behind another in a queue.
    #[inline]
    pub(crate) fn behind(&self, place: Place) -> Place {
        let slot = self.slots.get(place.0 as usize);
        Place(slot.map_or(END, |slot| slot.next))
    }

    /// How many places are in use. It takes time in proportion to those that are not: for checks.
    pub fn in_use(&self) -> usize {
        let place = |free: u32| (free != END).then_some(Place(free));
        let free = std::iter::successors(place(self.free), |&p| place(self.behind(p).0)).count();
        self.slots.len() - free
    }

    /// The same in no time.
    #[cfg(debug_assertions)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    #[cfg(debug_assertions)]
    fn check(&self, place: Place) {
        let in_use = (self.slots.get(place.0 as usize)).is_some_and(|slot| slot.in_use);
        assert!(in_use, "{place:?} is not in use");
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Places in the order in which their packets arrive, in a pool that is always the same.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub first: Place,
    pub last: Place,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            first: Place::NONE,
            last: Place::NONE,
        }
    }
}

impl Queue {
    /// When the first packet arrives.
    #[inline]
    pub fn arrival(&self, pool: &PacketPool) -> Option<Time> {
        pool.arrival(self.first)
    }

    /// Reads a little of the first two packets.
    #[inline]
    pub fn touch_first(&self, pool: &PacketPool) -> u64 {
        let arrival = |place| pool.arrival(place).map_or(0, Time::as_nanos);
        arrival(self.first) ^ arrival(pool.behind(self.first))
    }

    /// Reads a little of the last packet.
    #[inline]
    pub fn touch_last(&self, pool: &PacketPool) -> u64 {
        u64::from(pool.behind(self.last).0)
    }

    /// Flow and way of each packet, and whether it has payload.
    #[inline]
    pub fn iter(&self, pool: &PacketPool) -> impl Iterator<Item = (FlowId, u8, bool)> {
        let some = |place: Place| (place != Place::NONE).then_some(place);
        std::iter::successors(some(self.first), move |&p| some(pool.behind(p))).map(|p| {
            let packet = pool.packet(p);
            (packet.flow, packet.way, packet.seg.len > 0)
        })
    }

    /// Adds a packet that arrives no earlier than those before.
    #[inline]
    pub fn push(&mut self, pool: &mut PacketPool, arrival: Time, place: Place) {
        #[cfg(debug_assertions)]
        pool.check(place);
        let slot = &mut pool.slots[place.0 as usize];
        slot.arrival = arrival;
        slot.next = END;
        match pool.slots.get_mut(self.last.0 as usize) {
            Some(last) => last.next = place.0,
            None => self.first = place,
        }
        self.last = place;
    }

    /// Takes the first packet, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, pool: &PacketPool, now: Time) -> Option<Place> {
        let place = self.first;
        let slot = pool.slots.get(place.0 as usize)?;
        if slot.arrival > now {
            return None;
        }
        self.first = Place(slot.next);
        if slot.next == END {
            self.last = Place::NONE;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use swell_base::{Dur, Stream};

    #[test]
    fn all_but_selective_acknowledgements_is_one_cache_line() {
        let sacks = std::mem::offset_of!(Slot, packet) + Packet::SACKS;
        assert_eq!((sacks, size_of::<Slot>()), (64, 128));
    }

    /// The oracle: queues of the standard library. Packets go from one queue to the other.
    #[test]
    fn first_in_is_first_out() {
        let mut rng = Stream::new(5, "pool");
        let mut pool = PacketPool::default();
        let mut queues = [Queue::default(), Queue::default()];
        let mut want = [VecDeque::new(), VecDeque::new()];
        let mut peak = 0;
        for i in 1..20_000u64 {
            let at = Time::from_nanos(i);
            if rng.chance(0.51) {
                let packet = Packet {
                    size: i as u16,
                    ..Packet::default()
                };
                let place = pool.put(&packet);
                queues[0].push(&mut pool, at, place);
                want[0].push_back((at, packet));
            } else {
                let q = usize::from(rng.chance(0.5));
                let oldest = want[q].pop_front();
                let now = oldest.map_or(Time::MAX, |o| o.0);
                assert!(
                    oldest.is_none() || queues[q].pop(&pool, now - Dur::from_nanos(1)).is_none()
                );
                let place = queues[q].pop(&pool, now);
                assert_eq!(
                    place.map(|p| *pool.packet(p)),
                    oldest.map(|(_, packet)| packet)
                );
                match (place, oldest) {
                    (Some(place), Some((_, packet))) if q == 0 => {
                        queues[1].push(&mut pool, at, place);
                        want[1].push_back((at, packet));
                    }
                    (Some(place), _) => pool.release(place),
                    _ => {}
                }
            }
            for (queue, oracle) in queues.iter().zip(&want) {
                assert_eq!(queue.arrival(&pool), oracle.front().map(|f| f.0));
                assert_eq!(queue.iter(&pool).count(), oracle.len());
            }
            let held: usize = want.iter().map(VecDeque::len).sum();
            assert_eq!(pool.in_use(), held);
            peak = held.max(peak);
        }
        assert_eq!(pool.len(), peak, "places are used again");
    }
}
