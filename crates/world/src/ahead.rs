//! Having at hand what comes next.
//!
//! In a world of thousands of flows nearly every event finds what it is about in main memory, and one
//! cache line is found by way of another. Events that are known to come next are therefore looked at in
//! groups: first all their links, then the packets on these, then the flows of these, and so on. What one
//! step reads does not depend on itself, so that the processor waits for a whole group at once. Nothing
//! is changed by it, nor does it matter if something else happens.

use std::hint::black_box;

use swell_base::FlowId;

use crate::flow::{LinkIndex, NONE, Transport};
use crate::links::TRUNKS;
use crate::wake::Due;
use crate::world::World;

/// Fewer events than this are not worth the effort.
const CROWD: usize = 8;
/// Events in a group: what they touch fits the first-level cache.
const GROUP: usize = 16;
/// Packets that arrive from each trunk meanwhile, about.
const FROM_TRUNK: usize = 4;

/// Something that is about to happen to a flow.
#[derive(Clone, Copy)]
struct Next {
    flow: u32,
    end: u8,
    /// It may send; otherwise it receives and acknowledges.
    sends: bool,
}

impl World {
    /// Called with each event; looks at the next group once the last is done.
    #[inline]
    pub(crate) fn look_ahead(&mut self) {
        let ahead = self.links.queue.ahead().len();
        if ahead < CROWD {
            return;
        }
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
        let group = || {
            let events = self.links.queue.ahead().iter().rev().take(GROUP);
            events.map(|&(_, wake)| self.timers.look(wake))
        };
        for due in group() {
            seen ^= match due {
                Due::Link(link) => self.links.touch(link),
                Due::Tcp { flow, .. } | Due::Reap(flow) => self.touch_pointer(flow),
                Due::Work { workload, .. } => self.workers[workload as usize].tag as u64,
            };
        }
        let mut flows = [Next {
            flow: 0,
            end: 0,
            sends: false,
        }; GROUP + FROM_TRUNK * TRUNKS as usize];
        let mut found = 0;
        let of_group = group().filter_map(|due| self.next_of(due));
        let from_trunks = (0..TRUNKS).flat_map(|t| self.links.flying(t).take(FROM_TRUNK));
        for (place, next) in flows
            .iter_mut()
            .zip(of_group.chain(from_trunks.map(arriving)))
        {
            *place = next;
            found += 1;
        }
        let flows = &flows[..found];
        for next in flows {
            seen ^= self.touch_pointer(next.flow);
            seen ^= u64::from(self.links.routes[next.flow as usize][0]);
        }
        let mut leaves = [NONE; GROUP + FROM_TRUNK * TRUNKS as usize];
        for (next, leaf) in flows.iter().zip(&mut leaves) {
            let Some(flow) = self.flows[next.flow as usize].as_deref() else {
                continue;
            };
            let end = usize::from(next.end);
            *leaf = flow.first[end];
            if let Transport::Tcp(pair) = &flow.transport {
                seen ^= pair.ends[end].touch(next.sends);
            }
        }
        for (next, first) in flows.iter().zip(leaves) {
            let leaf: LinkIndex = if first < TRUNKS {
                self.links.routes[next.flow as usize][usize::from(next.end)]
            } else {
                first
            };
            seen ^= self.links.touch(leaf);
        }
        black_box(seen);
    }

    #[inline]
    fn touch_pointer(&self, flow: u32) -> u64 {
        u64::from(self.flows[flow as usize].is_some())
    }

    #[inline]
    fn next_of(&self, due: Due) -> Option<Next> {
        match due {
            Due::Link(link) => self.links.next_at_host(link).map(arriving),
            Due::Work { workload, token } => {
                let worker = &self.workers[workload as usize];
                let conn = worker.machine.about(token)?;
                Some(Next {
                    flow: worker.flow(conn)?,
                    end: 0,
                    sends: true,
                })
            }
            // Most timers of endpoints were put off since.
            Due::Tcp { .. } | Due::Reap(_) => None,
        }
    }
}

#[inline]
fn arriving((flow, way, payload): (FlowId, u8, bool)) -> Next {
    Next {
        flow: flow.0,
        end: (way & 1) ^ 1,
        sends: !payload,
    }
}
