//! The delay line: packets under way, each with the instant of its arrival.

use swell_base::{FlowId, Packet, Time};

use crate::pool::{PacketPool, Queue};

/// First in, first out, in a pool of its own. A ring would walk through room for the most packets there
/// ever were.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Flight {
    queue: Queue,
    pool: PacketPool,
}

impl Flight {
    /// When the first packet arrives, if one is under way.
    #[inline]
    pub fn arrival(&self) -> Option<Time> {
        self.queue.arrival(&self.pool)
    }

    /// Flow and way of the packets in the order of their arrival, and whether they have payload.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, u8, bool)> {
        self.queue.iter(&self.pool)
    }

    #[inline]
    pub fn push(&mut self, arrival: Time, packet: &Packet) {
        self.queue.push(&mut self.pool, arrival, packet);
    }

    /// Takes the first packet, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        self.queue.pop(&mut self.pool, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use swell_base::{Dur, Stream};

    /// The oracle: a queue of the standard library.
    #[test]
    fn first_in_is_first_out() {
        let mut rng = Stream::new(5, "flight");
        let mut flight = Flight::default();
        let mut queue = VecDeque::new();
        for i in 1..20_000u64 {
            if rng.chance(0.51) {
                let packet = Packet {
                    size: i as u16,
                    ..Packet::default()
                };
                flight.push(Time::from_nanos(i), &packet);
                queue.push_back((Time::from_nanos(i), packet));
            } else {
                let want = queue.pop_front();
                let now = want.map_or(Time::MAX, |(at, _)| at);
                assert!(want.is_none() || flight.pop(now - Dur::from_nanos(1)).is_none());
                assert_eq!(flight.pop(now), want.map(|(_, packet)| packet));
            }
            let first = queue.front();
            assert_eq!(flight.arrival(), first.map(|f| f.0));
            assert_eq!(flight.iter().count(), queue.len());
        }
        assert!(flight.pool.len() < 2_000, "places are used again");
    }
}
