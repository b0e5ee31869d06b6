//! Prefetching for the events that come next.
//!
//! In a world of thousands of flows nearly every event misses the caches several times, and each cache line leads to the
//! next: event, packet, flow, endpoint. So the lines of upcoming events are prefetched in steps. For an event that is some
//! events away it is the packet, for a nearer one the flow of the packet, and so on. No step waits for memory: a line is
//! there when the next step reads it. Packets that arrive from a shared link follow each other and get the same steps.
//!
//! Prefetching changes no state. If the expected events do not come, only time is lost.

use swell_base::fetch;
use swell_path::Place;

use crate::fast::FastPath;
use crate::flow::{AnyFlow, Flow, LinkIndex};
use crate::links::ACCESS;
use crate::wake::{Arrives, Due, Wake};
use crate::world::World;

/// Fewer events than this are not worth the effort.
const LEAST: usize = 8;
/// From one step to the next it is so many events: in their time memory answers.
const APART: usize = 2;
/// Steps of an event, and of a packet in a row.
const STEPS: usize = 7;
const ROW_STEPS: usize = 6;
/// How far away an event is looked at first.
const AWAY: usize = STEPS * APART;
/// Fewer packets than this fit a cache, and so does all that they are about.
const MANY: usize = 4096;

/// How far it was looked ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// How many events of the present bucket were to come then.
    events: usize,
    /// Of the events looked at, the latest in the lowest bit, those that have more than the first step.
    long: u32,
    /// For each queue: packets looked at, and the flows that the latest of them reach.
    rows: Vec<(usize, [Next; ROOM])>,
}

/// Enough for those between the first step and the last.
const ROOM: usize = (ROW_STEPS * APART).next_power_of_two();

/// The bits of [`Ahead::long`] of which a later step is due.
const LATER: u32 = {
    let (mut bits, mut step) = (0, 1);
    while step < STEPS {
        bits |= 1 << (step * APART);
        step += 1;
    }
    bits
};

/// Something that is about to happen to a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    flow: u32,
    end: u8,
    /// It may send; otherwise it receives and acknowledges.
    sends: bool,
}

impl World {
    /// Called with each event.
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

    /// The first step of the event that is so far away, and later ones of those before it.
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

    /// All steps of events of which none were done, but for the first one of the last.
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

    /// Does a step of an event: asks for what the next one reads. The last are those of the flow that it is about.
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
                        let (end, sends) = (0, true);
                        self.fetch_flow(Next { flow, end, sends }, step - 2);
                    }
                }
            },
            // Most timers of endpoints have been postponed by then, and then only the flow is read.
            Due::Tcp { flow, end } if step <= 2 => {
                let sends = false;
                self.fetch_flow(Next { flow, end, sends }, step);
            }
            Due::Tcp { .. } | Due::Reap(_) => {}
        }
    }

    /// The same for the packet that reaches a host next over an access link that is not plain.
    #[inline]
    fn fetch_other(&self, access: LinkIndex, step: usize) {
        if let Some(place) = self.links.next_at_host(access) {
            self.fetch_flow(self.arriving(place), step);
        }
    }

    /// The same of a flow: where it is, itself, its endpoint and the access link that this sends onto, and what these two
    /// lead to.
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
        let end = usize::from(next.end & 1);
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

    /// Called with each packet that reaches a host right after a queue.
    #[inline]
    pub(crate) fn look_along(&mut self, queue: LinkIndex) {
        if self.links.pool.places() >= MANY && !self.links.off.has(FastPath::LookAhead) {
            self.look_row(queue);
        }
    }

    /// The same of the packets that come next in a row.
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
    fn arriving(&self, place: Place) -> Next {
        let packet = self.links.pool.packet(place);
        Next {
            flow: packet.flow.0,
            end: (packet.way & 1) ^ 1,
            sends: packet.seg.len == 0,
        }
    }
}

impl<T> Flow<T> {
    /// The access link that what an end sends comes onto first: its own, or, where it is right at a shared link, that
    /// of the other end.
    #[inline]
    fn first_access(&self, end: usize) -> LinkIndex {
        if self.first[end] < ACCESS {
            self.bound[end].access()
        } else {
            self.first[end]
        }
    }
}
