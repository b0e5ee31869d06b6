//! The delay line: packets under way, each with the instant of its arrival.

use swell_base::{Packet, Time};

/// No place: the end of a list.
const END: u32 = u32::MAX;

/// First in, first out. A list through a pool of places, of which the one left last is taken next:
/// what a link touches is as much memory as packets are under way on it now, where a ring would
/// walk through room for the most there ever were. With thousands of links that is the difference
/// between cache and memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Flight {
    first: u32,
    last: u32,
    free: u32,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    arrival: Time,
    packet: Packet,
    next: u32,
}

impl Flight {
    pub fn new() -> Flight {
        Flight {
            places: Vec::new(),
            first: END,
            last: END,
            free: END,
        }
    }

    /// When the first packet arrives, if one is under way.
    #[inline]
    pub fn arrival(&self) -> Option<Time> {
        self.places.get(self.first as usize).map(|p| p.arrival)
    }

    /// The first packet.
    #[inline]
    pub fn front(&mut self) -> Option<&mut Packet> {
        let first = self.places.get_mut(self.first as usize)?;
        Some(&mut first.packet)
    }

    /// The packets in the order of their arrival.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        let place = |index: u32| self.places.get(index as usize);
        std::iter::successors(place(self.first), move |p| place(p.next)).map(|p| &p.packet)
    }

    #[inline]
    pub fn push(&mut self, arrival: Time, packet: &Packet) {
        let place = Place {
            arrival,
            packet: *packet,
            next: END,
        };
        let mut index = self.free;
        if let Some(left) = self.places.get_mut(index as usize) {
            self.free = left.next;
            *left = place;
        } else {
            index = self.places.len() as u32;
            self.places.push(place);
        }
        match self.places.get_mut(self.last as usize) {
            Some(last) => last.next = index,
            None => self.first = index,
        }
        self.last = index;
    }

    /// Forgets the first packet; false if there is none.
    #[inline]
    pub fn pop(&mut self) -> bool {
        let Some(first) = self.places.get_mut(self.first as usize) else {
            return false;
        };
        let next = std::mem::replace(&mut first.next, self.free);
        self.free = std::mem::replace(&mut self.first, next);
        if next == END {
            self.last = END;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use swell_base::Stream;

    /// The oracle: a queue of the standard library.
    #[test]
    fn first_in_is_first_out() {
        let mut rng = Stream::new(5, "flight");
        let mut flight = Flight::new();
        let mut queue = VecDeque::new();
        for i in 0..20_000u64 {
            if rng.chance(0.51) {
                let packet = Packet {
                    size: i as u16,
                    ..Packet::default()
                };
                flight.push(Time::from_nanos(i), &packet);
                queue.push_back((Time::from_nanos(i), packet));
            } else {
                assert_eq!(flight.pop(), queue.pop_front().is_some());
            }
            let front = flight.arrival().zip(flight.front().copied());
            assert_eq!(front, queue.front().copied());
        }
        assert!(flight.places.len() < 2_000, "places are used again");
    }
}
