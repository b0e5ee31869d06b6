//! Having at hand what comes next.
//!
//! In a world of thousands of flows nearly every event finds what it is about in main memory, and one
//! cache line is found by way of another. Events that are known to come next are therefore looked at in
//! groups: first all their packets, then the flows of these, and so on. What one
//! step reads does not depend on itself, so that the processor waits for a whole group at once. Packets that
//! arrive from a trunk come in a row, which is looked along in the same steps, each some packets
//! further on. Nothing is changed by it, nor does it matter if something else happens.

use std::hint::black_box;

use swell_path::Place;

use crate::flow::{Flow, LinkIndex, NONE, Transport};
use crate::links::TRUNKS;
use crate::wake::{Arrives, Due, Wake};
use crate::world::World;

/// Fewer events than this are not worth the effort.
const CROWD: usize = 8;
/// Events in a group: what they touch fits the first-level cache.
const GROUP: usize = 16;
/// Fewer packets than this fit a cache, and so does all that they are about.
const MANY: usize = 4096;
/// So many packets of a row are looked at together.
const STRIDE: usize = 8;

/// Something that is about to happen to a flow.
#[derive(Clone, Copy, Default)]
struct Next {
    flow: u32,
    end: u8,
    /// It may send; otherwise it receives and acknowledges.
    sends: bool,
    /// The link that this end sends onto.
    onto: LinkIndex,
}

impl World {
    /// Called with each event; looks at the next group once the last is done.
    #[inline]
    pub(crate) fn look_ahead(&mut self) {
        let ahead = self.links.queue.ahead().len();
        if ahead < CROWD {
            return;
        }
        self.links.queue.look_on();
        if self.looked > 0 {
            self.looked -= 1;
        } else {
            self.looked = ahead.min(GROUP);
            self.touch_group();
        }
    }

    #[inline(never)]
    fn touch_group(&self) {
        let mut seen = 0;
        let ahead = self.links.queue.ahead();
        let group = &ahead[ahead.len().saturating_sub(GROUP)..];
        for &(_, wake) in group {
            seen ^= match self.timers.look(wake) {
                Due::Packet(place, _) => self.links.pool.touch(place),
                Due::Link(link) => self.links.touch(link),
                Due::Tcp { flow, .. } | Due::Reap(flow) => self.touch_pointer(flow),
                Due::Work { workload, .. } => self.workers.touch(workload),
            };
        }
        let mut flows = [Next::default(); GROUP];
        let mut found = 0;
        for &(_, wake) in group {
            if let Some(next) = self.next_of(wake) {
                flows[found] = next;
                found += 1;
            }
        }
        let flows = &mut flows[..found];
        for next in &*flows {
            seen ^= self.touch_pointer(next.flow);
        }
        for next in &mut *flows {
            seen ^= self.touch_flow(next);
        }
        for next in &*flows {
            seen ^= self.links.touch(next.onto);
        }
        black_box(seen);
    }

    /// Called with each packet that arrives from a trunk.
    #[inline]
    pub(crate) fn look_along(&mut self, trunk: LinkIndex) {
        if trunk < TRUNKS && self.links.pool.places() >= MANY {
            let along = &mut self.along[trunk as usize];
            *along = (*along + 1) % STRIDE;
            if *along == 0 {
                self.touch_row(trunk);
            }
        }
    }

    /// Of the packets that come first, where what answers them is put is touched; of the next their flows; of those after
    /// them where their flows are; and then packets themselves.
    #[inline(never)]
    fn touch_row(&self, trunk: LinkIndex) {
        let mut seen = 0;
        let row = |step: usize| {
            let places = (step * STRIDE..(step + 1) * STRIDE).map(|n| self.links.behind(trunk, n));
            places.flatten()
        };
        for place in row(3) {
            seen ^= self.links.pool.touch(place);
        }
        for place in row(2) {
            seen ^= self.touch_pointer(self.arriving(place).flow);
        }
        for place in row(1) {
            let mut next = self.arriving(place);
            seen ^= self.touch_flow(&mut next);
            seen ^= self.links.touch(next.onto);
        }
        for place in row(0) {
            let next = self.arriving(place);
            if let Some(flow) = self.flows[next.flow as usize].as_deref() {
                seen ^= self
                    .links
                    .touch_row(flow.first_leaf(usize::from(next.end & 1)));
            }
        }
        black_box(seen);
    }

    #[inline]
    fn touch_pointer(&self, flow: u32) -> u64 {
        u64::from(self.flows[flow as usize].is_some())
    }

    #[inline]
    fn touch_flow(&self, next: &mut Next) -> u64 {
        let Some(flow) = self.flows[next.flow as usize].as_deref() else {
            return 0;
        };
        let end = usize::from(next.end & 1);
        next.onto = flow.first_leaf(end);
        match &flow.transport {
            Transport::Tcp(pair) => pair.ends[end].touch(next.sends),
            _ => 0,
        }
    }

    #[inline]
    fn next_of(&self, wake: Wake) -> Option<Next> {
        match self.timers.look(wake) {
            Due::Packet(_, Arrives::Trunk(_)) => None,
            Due::Packet(place, Arrives::Host) => Some(self.arriving(place)),
            Due::Link(link) => self.next_on(link),
            Due::Work { workload, token } => {
                let conn = self.workers.machine(workload).about(token)?;
                Some(Next {
                    flow: self.workers.flow(workload, conn)?,
                    end: 0,
                    sends: true,
                    onto: NONE,
                })
            }
            // Most timers of endpoints were put off since.
            Due::Tcp { .. } | Due::Reap(_) => None,
        }
    }

    /// What reaches the host behind a leaf next, where it waits there.
    #[inline]
    fn next_on(&self, link: LinkIndex) -> Option<Next> {
        let Some((flow, end)) = self.links.owner(link) else {
            return self.links.next_at_host(link).map(|p| self.arriving(p));
        };
        Some(Next {
            flow,
            end,
            sends: true,
            onto: NONE,
        })
    }

    #[inline]
    fn arriving(&self, place: Place) -> Next {
        let packet = self.links.pool.packet(place);
        Next {
            flow: packet.flow.0,
            end: (packet.way & 1) ^ 1,
            sends: packet.seg.len == 0,
            onto: NONE,
        }
    }
}

impl Flow {
    /// The leaf that what an end sends comes onto first: its own, or, where it is right at a trunk, that of the other
    /// end.
    #[inline]
    fn first_leaf(&self, end: usize) -> LinkIndex {
        if self.first[end] < TRUNKS {
            self.last[end]
        } else {
            self.first[end]
        }
    }
}
