//! A tap on the trunks, shown every packet in the order of time.

use std::collections::VecDeque;

use swell_base::{Packet, Time};

use crate::flow::{Flow, LinkIndex, Tap};
use crate::links::TRUNKS;

/// Where [`Watch`] keeps arrivals at either trunk; what crosses has the trunk's number.
const ARRIVALS: usize = TRUNKS as usize;

/// Packets arrive at a trunk now. When their transmission begins it is known when they will have
/// crossed it, and then they are shown again. Both trunks are merged.
pub(crate) struct Watch {
    tap: Box<dyn Tap>,
    /// Crossings by trunk, then arrivals, each in the order of their instants.
    seen: [VecDeque<Sight>; ARRIVALS + 1],
    /// Sights so far.
    count: u64,
}

struct Sight {
    at: Time,
    /// Tells which came first of two at one instant: what makes another one happen is known before.
    number: u64,
    packet: Packet,
}

impl Watch {
    pub fn new(tap: Box<dyn Tap>) -> Watch {
        Watch {
            tap,
            seen: Default::default(),
            count: 0,
        }
    }

    /// A packet arrives at a trunk, whichever its route says.
    #[cold]
    #[inline(never)]
    pub fn arrives(&mut self, at: Time, packet: Packet) {
        self.note(ARRIVALS, at, packet);
    }

    /// A packet will have crossed a trunk at `at`.
    #[cold]
    #[inline(never)]
    pub fn crosses(&mut self, trunk: LinkIndex, at: Time, packet: Packet) {
        self.note(trunk as usize, at, packet);
    }

    fn note(&mut self, place: usize, at: Time, packet: Packet) {
        self.count += 1;
        self.seen[place].push_back(Sight {
            at,
            number: self.count,
            packet,
        });
    }

    /// Shows what has happened by `now`.
    pub fn show(&mut self, now: Time, flows: &[Option<Box<Flow>>]) {
        let heads = |seen: &[VecDeque<Sight>; ARRIVALS + 1]| {
            let head = |(place, queue): (usize, &VecDeque<Sight>)| {
                queue.front().map(|s| (s.at, s.number, place))
            };
            seen.iter().enumerate().filter_map(head).min()
        };
        while let Some((at, _, place)) = heads(&self.seen)
            && at <= now
        {
            let Some(Sight { packet, .. }) = self.seen[place].pop_front() else {
                return;
            };
            let Some(flow) = &flows[packet.flow.0 as usize] else {
                continue;
            };
            let to_server = packet.way == 0;
            if place == ARRIVALS {
                self.tap.arrival(at, &flow.parties, to_server, &packet);
            } else {
                self.tap.packet(at, &flow.parties, to_server, &packet);
            }
        }
    }
}
