//! A tap on the trunks, shown every packet in the order of time.

use std::collections::VecDeque;

use swell_base::{Packet, Time};

use crate::flow::{Flow, LinkIndex, Tap};
use crate::links::TRUNKS;

/// Packets are known when their transmission begins and shown when it is over and they have crossed
/// the trunk, both trunks merged.
pub(crate) struct Watch {
    tap: Box<dyn Tap>,
    /// By trunk, in order of arrival at its far end.
    crossing: [VecDeque<(Time, Packet)>; TRUNKS as usize],
}

impl Watch {
    pub fn new(tap: Box<dyn Tap>) -> Watch {
        Watch {
            tap,
            crossing: Default::default(),
        }
    }

    /// A packet will have crossed a trunk at `at`.
    pub fn crosses(&mut self, trunk: LinkIndex, at: Time, packet: &Packet) {
        self.crossing[trunk as usize].push_back((at, *packet));
    }

    /// Shows what has crossed by `now`.
    pub fn show(&mut self, now: Time, flows: &[Option<Box<Flow>>]) {
        loop {
            let [up, down] = &mut self.crossing;
            let due =
                |queue: &VecDeque<(Time, Packet)>| queue.front().map_or(Time::MAX, |&(at, _)| at);
            let first = if due(down) < due(up) { down } else { up };
            if due(first) > now {
                return;
            }
            let Some((at, packet)) = first.pop_front() else {
                return;
            };
            if let Some(flow) = &flows[packet.flow.0 as usize] {
                self.tap.packet(at, &flow.parties, packet.way == 0, &packet);
            }
        }
    }
}
