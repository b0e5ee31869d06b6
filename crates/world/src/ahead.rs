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
                Due::Link(link) => self.links.touch(link),
                Due::Tcp { flow, .. } | Due::Reap(flow) => self.touch_pointer(flow),
                Due::Work { workload, .. } => self.workers.touch(workload),
            };
        }
        for &(_, wake) in group {
            if let Due::Link(link) = self.timers.look(wake) {
                seen ^= self.links.touch_first(link);
            }
        }
        let mut flows = [Next::default(); GROUP + FROM_TRUNK * TRUNKS as usize];
        let mut found = 0;
        for &(_, wake) in group {
            if let Some(next) = self.next_of(self.timers.look(wake)) {
                flows[found] = next;
                found += 1;
            }
        }
        for trunk in 0..TRUNKS {
            for packet in self.links.flying(trunk).take(FROM_TRUNK) {
                flows[found] = arriving(packet);
                found += 1;
            }
        }
        let flows = &mut flows[..found];
        for next in &*flows {
            seen ^= self.touch_pointer(next.flow);
        }
        for next in &mut *flows {
            let Some(flow) = self.flows[next.flow as usize].as_deref() else {
                continue;
            };
            let end = usize::from(next.end & 1);
            next.onto = flow.first[end];
            if next.onto < TRUNKS {
                next.onto = flow.last[end];
            }
            if let Transport::Tcp(pair) = &flow.transport {
                seen ^= pair.ends[end].touch(next.sends);
            }
        }
        for next in &*flows {
            seen ^= self.links.touch(next.onto);
        }
        for next in &*flows {
            seen ^= self.links.touch_last(next.onto);
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
}

#[inline]
fn arriving((flow, way, payload): (FlowId, u8, bool)) -> Next {
    Next {
        flow: flow.0,
        end: (way & 1) ^ 1,
        sends: !payload,
        onto: NONE,
    }
}
