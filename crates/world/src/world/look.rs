//! Prefetches memory for upcoming events.
//!
//! With thousands of flows, nearly every event misses the caches several times. Each cache line leads to the next:
//! event, packet, flow, endpoint. So the lines of upcoming events are prefetched in steps. A distant event has its
//! packet prefetched, a nearer event the flow of its packet, and so on. No step waits for memory, because its line
//! was prefetched by the step before. Packets that arrive directly from a shared link get the same steps.
//!
//! Prefetching changes no state. If the expected events do not happen, only time is lost.

use swell_base::{End, fetch};
use swell_path::SlotId;

use super::World;
use crate::ahead::{APART, Next, ROOM, ROW_STEPS};
use crate::fast::FastPath;
use crate::flow::{AnyFlow, Flow};
use crate::index::{ACCESS, LinkIndex};
use crate::wake::{Arrives, Due, Wake};

/// Look-ahead is not worth its cost with fewer pending events than this.
const LEAST: usize = 8;
/// Number of steps for an event.
const STEPS: usize = 7;
/// Distance, in events, at which an event gets its first step.
const AWAY: usize = STEPS * APART;
/// With fewer packets than this, the packets and their flows fit in the caches.
const MANY: usize = 4096;

/// The bits of [`Ahead::long`] whose events are due for a later step.
const LATER: u32 = {
    let (mut bits, mut step) = (0, 1);
    while step < STEPS {
        bits |= 1 << (step * APART);
        step += 1;
    }
    bits
};

impl World {
    /// Called before each event.
    #[inline]
    pub(crate) fn look_ahead(&mut self) {
        let events = self.links.queue.ahead().len();
        if events >= LEAST && !self.links.off.has(FastPath::LookAhead) {
            self.links.queue.look_on();
            self.ahead.long <<= 1;
            if events > self.ahead.events {
                self.look_anew();
            }
            self.look_step();
            self.ahead.events = events;
        }
    }

    /// Does the first step of the event at distance `AWAY`, and the due later steps of nearer events.
    #[inline(never)]
    fn look_step(&mut self) {
        let ahead = self.links.queue.ahead();
        let away = |n: usize| ahead.get(ahead.len().wrapping_sub(n));
        if let Some(&(_, wake)) = away(AWAY) {
            self.fetch_event(wake, 0);
            self.ahead.long |= u32::from(!wake.is_at_queue());
        }
        let mut long = self.ahead.long & LATER;
        while long != 0 {
            let ago = long.trailing_zeros() as usize;
            if let Some(&(_, wake)) = away(AWAY - ago) {
                self.fetch_event(wake, ago / APART);
            }
            long &= long - 1;
        }
    }

    /// Does all steps that a new bucket of events has missed, except the first step of the event at distance `AWAY`.
    #[inline(never)]
    fn look_anew(&mut self) {
        let ahead = self.links.queue.ahead();
        let mut long = 0;
        for (n, &(_, wake)) in ahead.iter().rev().take(AWAY - 1).enumerate() {
            self.fetch_event(wake, 0);
            long |= u32::from(!wake.is_at_queue()) << (AWAY - 1 - n);
        }
        for step in 1..STEPS {
            for (n, &(_, wake)) in ahead.iter().rev().take(AWAY - step * APART).enumerate() {
                if long >> (AWAY - 1 - n) & 1 != 0 {
                    self.fetch_event(wake, step);
                }
            }
        }
        self.ahead.long = long;
    }

    /// Does one step for an event: prefetches what the next step reads. The last steps prefetch its flow.
    #[inline]
    fn fetch_event(&self, wake: Wake, step: usize) {
        match self.timers.look(wake) {
            Due::Packet(place, at) => {
                if step == 0 {
                    self.links.pool.fetch(place);
                } else if at == Arrives::Host {
                    self.fetch_flow(self.arriving(place), step - 1);
                }
            }
            Due::Link(access) if step == 0 => self.links.fetch(access),
            Due::Link(access) => self.fetch_other(access, step - 1),
            Due::Work { workload, token } => match step {
                0 => self.workers.fetch(workload),
                1 => self.workers.fetch_machine(workload),
                _ => {
                    if let Some(conn) = self.workers.machine(workload).about(token)
                        && let Some(flow) = self.workers.flow(workload, conn)
                    {
                        let (end, sends) = (End::Client, true);
                        self.fetch_flow(Next { flow, end, sends }, step - 2);
                    }
                }
            },
            // Most TCP timers have been postponed by then. An expired wake-up then reads only the flow.
            Due::Tcp { flow, end } if step <= 2 => {
                let sends = false;
                self.fetch_flow(Next { flow, end, sends }, step);
            }
            Due::Tcp { .. } | Due::Reap(_) => {}
        }
    }

    /// As [`World::fetch_event`], for the next packet that reaches a host over a general (not plain) access link.
    #[inline]
    fn fetch_other(&self, access: LinkIndex, step: usize) {
        if let Some(place) = self.links.next_at_host(access) {
            self.fetch_flow(self.arriving(place), step);
        }
    }

    /// Does one step for a flow. In order: its table entry, the flow, its endpoint and first access link, and the
    /// data that these two refer to.
    #[inline]
    fn fetch_flow(&self, next: Next, step: usize) {
        if step == 0 {
            return self.flows.fetch(next.flow);
        }
        let flow = match self.flows.get(next.flow) {
            Some(AnyFlow::Tcp(flow)) => &**flow,
            Some(AnyFlow::Datagrams(flow)) if step == 1 => return fetch(&**flow),
            _ => return,
        };
        if step == 1 {
            return fetch(flow);
        }
        let end = next.end;
        let (endpoint, access) = (&flow.transport.ends[end], flow.first_access(end));
        match (step, next.sends) {
            (2, sends) => {
                endpoint.fetch(sends);
                if sends {
                    self.links.fetch_whole(access);
                    self.feeds.fetch(flow.feed);
                } else {
                    self.links.fetch(access);
                }
            }
            (3, true) => {
                endpoint.fetch_flight();
                self.links.fetch_waiting(access);
                if let Some(workload) = self.feeds.workload(flow.feed) {
                    self.workers.fetch(workload);
                }
            }
            (4, true) => {
                if let Some(workload) = self.feeds.workload(flow.feed) {
                    self.workers.fetch_machine(workload);
                }
            }
            (3, false) => endpoint.fetch_buffer(),
            (4, false) => endpoint.fetch_gaps(),
            _ => {}
        }
    }

    /// Called for each packet that reaches a host directly from a shared link.
    #[inline]
    pub(crate) fn look_along(&mut self, queue: LinkIndex) {
        if self.links.pool.places() >= MANY && !self.links.off.has(FastPath::LookAhead) {
            self.look_row(queue);
        }
    }

    /// Does one step for each of the next packets of the queue.
    #[inline(never)]
    fn look_row(&mut self, queue: LinkIndex) {
        let number = queue as usize;
        if self.ahead.rows.len() <= number {
            self.ahead.rows.resize(number + 1, Default::default());
        }
        if let Some(place) = self.links.behind(queue, ROW_STEPS * APART) {
            self.links.pool.fetch(place);
        }
        let reached = self.links.behind(queue, (ROW_STEPS - 1) * APART);
        let reached = reached.map_or(Next::default(), |place| self.arriving(place));
        let (seen, row) = &mut self.ahead.rows[number];
        *seen = seen.wrapping_add(1);
        let seen = *seen;
        row[seen % ROOM] = reached;
        for step in 0..ROW_STEPS - 1 {
            let ago = step * APART;
            let next = self.ahead.rows[number].1[seen.wrapping_sub(ago) % ROOM];
            self.fetch_flow(next, step);
        }
    }

    #[inline]
    fn arriving(&self, place: SlotId) -> Next {
        let packet = self.links.pool.packet(place);
        Next {
            flow: packet.flow.0,
            end: packet.from.other(),
            sends: packet.seg.len == 0,
        }
    }
}

impl<T> Flow<T> {
    /// The first access link that packets from an end enter: its own, or the other end's if it has none.
    #[inline]
    fn first_access(&self, end: End) -> LinkIndex {
        if self.first[end] < ACCESS {
            self.bound[end].access()
        } else {
            self.first[end]
        }
    }
}
