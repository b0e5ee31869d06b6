//! Taps on shared links, which observe every packet in order of time.

use std::collections::VecDeque;

use swell_base::{End, Head, Packet, Paged, Side, Time};
use swell_workload::Conn;

use crate::flow::{HostTap, Parties, Tap};
use crate::index::LinkIndex;

/// Index of the list of arrivals (both directions) in a [`Watch`]. Crossings use the index of their direction.
const ARRIVALS: usize = 2;

/// The taps of a world.
#[derive(Default)]
pub(crate) struct Watches {
    /// Indexed by shared link.
    each: Vec<Option<Watch>>,
    /// The two ends of each flow, kept until none of its packets is in the network.
    parties: Paged<Parties>,
    /// The tap on the hosts of a workload, and the workload's number.
    hosts: Option<(u32, Box<dyn HostTap>)>,
}

/// A tap and its pending observations. A packet is observed when it arrives at a link, and again when it has crossed
/// the link. The second instant is known when the transmission begins, so crossings wait here until they are due.
/// Both directions are merged.
struct Watch {
    tap: Box<dyn Tap>,
    /// Crossings by direction, then arrivals, each in order of time.
    seen: [VecDeque<Sight>; ARRIVALS + 1],
    /// Number of observations so far.
    count: u64,
}

struct Sight {
    at: Time,
    /// Orders observations at one instant: causes come before effects.
    number: u64,
    /// The packet crosses the link from left to right.
    up: bool,
    packet: Packet,
}

impl Watches {
    /// Whether there is any tap.
    #[inline]
    pub fn any(&self) -> bool {
        !self.each.is_empty()
    }

    /// Attaches `tap` to a link from now on.
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

    /// Attaches `tap` to the hosts of a workload, for flows that begin from now on.
    pub fn set_on_hosts(&mut self, workload: u32, tap: Box<dyn HostTap>) {
        self.hosts = Some((workload, tap));
    }

    /// Whether there is a tap on the hosts of this workload.
    pub fn observes_hosts(&self, workload: u32) -> bool {
        self.hosts.as_ref().is_some_and(|h| h.0 == workload)
    }

    /// A host of an observed flow sends a packet, which leaves at `at`.
    #[cold]
    #[inline(never)]
    pub fn host_sends(&mut self, at: Time, (conn, end): (Conn, End), packet: &Head) {
        if let Some((_, tap)) = &mut self.hosts {
            tap.sends(at, conn, end, packet);
        }
    }

    /// A packet has reached a host of an observed flow.
    #[cold]
    #[inline(never)]
    pub fn host_receives(&mut self, at: Time, (conn, end): (Conn, End), packet: &Head) {
        if let Some((_, tap)) = &mut self.hosts {
            tap.receives(at, conn, end, packet);
        }
    }

    /// A packet arrives at a queue, which may accept or drop it.
    #[cold]
    #[inline(never)]
    pub fn arrives(&mut self, queue: LinkIndex, at: Time, packet: Packet) {
        if let Some(watch) = self.of(queue) {
            watch.note((ARRIVALS, queue), at, packet);
        }
    }

    /// A packet will have crossed a queue and its link at `at`.
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

    /// Passes observations up to `now` to the taps, link by link.
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

    /// No packet of a flow is in the network any more.
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
            let to_server = packet.from == End::Client;
            // Sides are relative to the link, which a path may cross from right to left.
            let parties = &Parties {
                client_side: Side::of(to_server != up),
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
