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

/// Packets that wait or are under way. A packet is written once, where it stays however many links it
/// crosses; queues are lists of places.
///
/// The place left last is taken next: what is touched is as much memory as packets are under way now. With
/// thousands of links that is the difference between cache and memory.
#[derive(Clone, Debug)]
pub struct PacketPool {
    packets: Vec<Line>,
    /// By place, as `packets`.
    turns: Vec<Turn>,
    /// First of the places that are not in use.
    free: u32,
}

/// A packet in a cache line of its own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line(Packet);

/// What a queue knows of a packet, apart from it so that four fit a cache line.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// At the far end of the link, where the packet is under way.
    arrival: Time,
    /// The place of the packet behind, or of the next that is free.
    next: u32,
}

impl Default for PacketPool {
    fn default() -> Self {
        PacketPool {
            packets: Vec::new(),
            turns: Vec::new(),
            free: END,
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
        self.free = self.turns.len() as u32;
        self.packets.push(Line::default());
        self.turns.push(Turn {
            arrival: Time::ZERO,
            next: END,
        });
    }

    /// The [spare](Self::spare) place is no longer free.
    #[inline]
    pub fn take_spare(&mut self, spare: Place) {
        debug_assert_eq!(self.free, spare.0, "only the spare place can be taken");
        self.free = self.turns[spare.0 as usize].next;
    }

    /// Finds a place for a packet.
    #[inline]
    pub fn put(&mut self, packet: &Packet) -> Place {
        let place = self.spare();
        *self.packet_mut(place) = *packet;
        self.take_spare(place);
        place
    }

    /// A packet is gone: its place is taken next.
    #[inline]
    pub fn release(&mut self, place: Place) {
        self.turns[place.0 as usize].next = self.free;
        self.free = place.0;
    }

    /// The packet in a place.
    #[inline]
    pub fn packet(&self, place: Place) -> &Packet {
        &self.packets[place.0 as usize].0
    }

    /// The same, to write it.
    #[inline]
    pub fn packet_mut(&mut self, place: Place) -> &mut Packet {
        &mut self.packets[place.0 as usize].0
    }

    /// When the packet in a place that is in use arrives; `None` for no place.
    #[inline]
    pub(crate) fn arrival(&self, place: Place) -> Option<Time> {
        self.turns.get(place.0 as usize).map(|turn| turn.arrival)
    }

    /// The place behind another in a queue.
    #[inline]
    pub(crate) fn behind(&self, place: Place) -> Place {
        let turn = self.turns.get(place.0 as usize);
        Place(turn.map_or(END, |turn| turn.next))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.turns.len()
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
        let next = END;
        pool.turns[place.0 as usize] = Turn { arrival, next };
        match pool.turns.get_mut(self.last.0 as usize) {
            Some(last) => last.next = place.0,
            None => self.first = place,
        }
        self.last = place;
    }

    /// Takes the first packet, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, pool: &PacketPool, now: Time) -> Option<Place> {
        let place = self.first;
        let turn = pool.turns.get(place.0 as usize)?;
        if turn.arrival > now {
            return None;
        }
        self.first = Place(turn.next);
        if turn.next == END {
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
    fn a_packet_lies_in_one_cache_line() {
        assert_eq!(size_of::<Line>(), 64);
        assert_eq!(size_of::<Turn>(), 16);
    }

    /// The oracle: queues of the standard library. Packets go from one queue to the other.
    #[test]
    fn first_in_is_first_out() {
        let mut rng = Stream::new(5, "pool");
        let mut pool = PacketPool::default();
        let mut queues = [Queue::default(), Queue::default()];
        let mut want = [VecDeque::new(), VecDeque::new()];
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
        }
        assert!(pool.len() < 15_000, "places are used again");
    }
}
