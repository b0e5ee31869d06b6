//! Taps on shared links, shown every packet in the order of time.

use std::collections::VecDeque;

use swell_base::{Packet, Paged, Time};

use crate::flow::{LinkIndex, Parties, Tap};

/// Where a [`Watch`] keeps arrivals at either queue; what crosses has the queue's direction.
const ARRIVALS: usize = 2;

/// The taps of a world.
#[derive(Default)]
pub(crate) struct Watches {
    /// By shared link.
    each: Vec<Option<Watch>>,
    /// The two ends of each flow, until none of its packets is on the way.
    parties: Paged<Parties>,
}

/// A packet is shown when it arrives at a link, and again when it has crossed it. The second instant is known when the transmission
/// begins, which is earlier, so crossings wait here until their time. Both directions are merged.
struct Watch {
    tap: Box<dyn Tap>,
    /// Crossings by direction, then arrivals, each in the order of their instants.
    seen: [VecDeque<Sight>; ARRIVALS + 1],
    /// Sights so far.
    count: u64,
}

struct Sight {
    at: Time,
    /// Orders sights at one instant: a cause is seen before its effect.
    number: u64,
    /// It crosses the link from left to right.
    up: bool,
    packet: Packet,
}

impl Watches {
    /// Whether there is any tap.
    #[inline]
    pub fn any(&self) -> bool {
        !self.each.is_empty()
    }

    /// Shows what crosses a link from now on to `tap`.
    pub fn set(&mut self, link: usize, tap: Box<dyn Tap>) {
        if self.each.len() <= link {
            self.each.resize_with(link + 1, || None);
        }
        self.each[link] = Some(Watch {
            tap,
            seen: Default::default(),
            count: 0,
        });
    }

    /// A packet arrives at a queue, whichever follows.
    #[cold]
    #[inline(never)]
    pub fn arrives(&mut self, queue: LinkIndex, at: Time, packet: Packet) {
        if let Some(watch) = self.of(queue) {
            watch.note((ARRIVALS, queue), at, packet);
        }
    }

    /// A packet will have left a queue and its link at `at`.
    #[cold]
    #[inline(never)]
    pub fn crosses(&mut self, queue: LinkIndex, at: Time, packet: Packet) {
        if let Some(watch) = self.of(queue) {
            watch.note((queue as usize % 2, queue), at, packet);
        }
    }

    fn of(&mut self, queue: LinkIndex) -> Option<&mut Watch> {
        self.each.get_mut(queue as usize / 2)?.as_mut()
    }

    /// Shows what has happened by `now`, link by link.
    #[cold]
    #[inline(never)]
    pub fn show(&mut self, now: Time) {
        for watch in self.each.iter_mut().flatten() {
            watch.show(now, &self.parties);
        }
    }

    /// A flow begins. Does nothing without a tap.
    pub fn opens(&mut self, flow: u32, parties: impl FnOnce() -> Parties) {
        if self.any() {
            self.parties.insert(flow, parties());
        }
    }

    /// Nothing of a flow is on its way any more.
    pub fn forget(&mut self, flow: u32) {
        self.parties.remove(flow);
    }
}

impl Watch {
    fn note(&mut self, (place, queue): (usize, LinkIndex), at: Time, packet: Packet) {
        self.count += 1;
        self.seen[place].push_back(Sight {
            at,
            number: self.count,
            up: queue % 2 == 0,
            packet,
        });
    }

    fn show(&mut self, now: Time, parties: &Paged<Parties>) {
        let heads = |seen: &[VecDeque<Sight>; ARRIVALS + 1]| {
            let head = |(place, queue): (usize, &VecDeque<Sight>)| {
                queue.front().map(|s| (s.at, s.number, place))
            };
            seen.iter().enumerate().filter_map(head).min()
        };
        while let Some((at, _, place)) = heads(&self.seen)
            && at <= now
        {
            let Some(Sight { packet, up, .. }) = self.seen[place].pop_front() else {
                return;
            };
            let Some(parties) = parties.get(packet.flow.0) else {
                continue;
            };
            let to_server = packet.way == 0;
            // Sides are those of the link, which a path may cross from its right end.
            let parties = &Parties {
                from_right: to_server != up,
                ..*parties
            };
            if place == ARRIVALS {
                self.tap.arrival(at, parties, to_server, &packet);
            } else {
                self.tap.packet(at, parties, to_server, &packet);
            }
        }
    }
}
