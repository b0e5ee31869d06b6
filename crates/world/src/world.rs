//! The main loop: events, endpoints and workloads.

mod life;
mod look;
mod network;
mod ports;

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::{Direction, Dur, FlowId, Paged, Side, Tag, Time};
use swell_path::SlotId;
use swell_tcp::{Config as TcpConfig, Endpoint, Event as TcpEvent, Sent, Stats};
use swell_workload::{Action, Conn, End, Event, Record, Sample, Workload};

use crate::access::Accesses;
use crate::ahead::Ahead;
use crate::delays::Delays;
use crate::fast::FastPath;
use crate::feed::{self, Feed, Feeds};
use crate::flow::{AnyFlow, Flow, Flows, TcpPair};
use crate::index::LinkIndex;
use crate::links::Links;
use crate::path::PathId;
use crate::port::Ports;
use crate::wake::{Arrives, Due, Timers, Wake};
use crate::worker::Workers;

/// Largest IP packet that carries datagrams, bytes.
const MTU: u32 = 1500;
/// How long the access links of a closed flow are kept, because its last packets still need them to arrive.
const LINGER: Dur = Dur::from_secs(10);

/// Links, paths over them, and the hosts, transports and workloads at the ends of these paths.
pub struct World {
    pub(crate) seed: u64,
    pub(crate) ahead: Ahead,
    pub(crate) timers: Timers,
    pub(crate) links: Links,
    accesses: Accesses,
    pub(crate) flows: Flows,
    /// Access paths of closed flows, by flow, for packets that are still in the network.
    pub(crate) lingering: Paged<[u32; 2]>,
    /// Of closed flows of datagrams whose delays are counted: the workload, and whether the client is on the right.
    late: Paged<(u32, Side)>,
    pub(crate) workers: Workers,
    pub(crate) feeds: Feeds,
    pub(crate) inbox: VecDeque<(u32, Event)>,
    pub(crate) touched: Vec<(u32, End)>,
    pub(crate) actions: Vec<Action>,
    /// A [census](World::take_census) is being taken.
    counting: bool,
    /// By workload: the delays of its datagrams, if they are counted.
    delays: Vec<Option<Box<Delays>>>,
    pub(crate) ports: Ports,
    hops: u64,
    last_event: Time,
}

impl World {
    /// Adds a workload on the default path. Its packets carry `tag`, its connections use `tcp`, and it starts now.
    /// Returns its number.
    pub fn add(&mut self, machine: Box<dyn Workload>, tag: Tag, tcp: Arc<TcpConfig>) -> usize {
        self.add_on(PathId::default(), machine, tag, tcp)
    }

    /// As [`World::add`], on any path. The workload's left side is the path's left end.
    pub fn add_on(
        &mut self,
        path: PathId,
        machine: Box<dyn Workload>,
        tag: Tag,
        tcp: Arc<TcpConfig>,
    ) -> usize {
        let index = self.workers.add(machine, (tag, path), tcp);
        self.inbox.push_back((index as u32, Event::Start));
        self.settle();
        index
    }

    /// The current instant.
    pub fn now(&self) -> Time {
        self.links.now
    }

    /// When the latest event happened: since then, no packet has reached or left a queue.
    pub fn last_event(&self) -> Time {
        self.last_event
    }

    /// When the next event is due.
    pub fn poll_at(&self) -> Option<Time> {
        self.links.next_at()
    }

    /// Processes every event up to and including `until`, and brings the counters of all links up to date.
    pub fn advance(&mut self, until: Time) {
        self.happen(until);
        for queue in 0..self.links.queues() {
            self.links.advance(queue);
        }
        if self.links.watches.any() {
            self.links.watches.show(self.links.now);
        }
    }

    /// As [`World::advance`], but the counters of a link may lag until its next event.
    ///
    /// The result does not depend on how time is divided into calls: the same events happen in the same order, ties
    /// included. `advance` lacks this property, because it touches links. So the replay of a journal uses this
    /// method.
    pub fn happen(&mut self, until: Time) {
        let before = self.links.now;
        self.run(until);
        if self.links.now > before {
            self.last_event = self.links.now;
        }
        self.links.now = self.links.now.max(until);
    }

    /// Processes everything that is due by `until`. At one instant, shared links come after the events of access
    /// links and before timers. Shared links have no events in the event queue: each has one next deadline, and
    /// [`Links::next_due`] finds the earliest.
    pub(crate) fn run(&mut self, until: Time) {
        // `Time::MAX` means never.
        let until = until.min(Time::MAX - Dur::from_nanos(1));
        loop {
            let (due, queue) = self.links.next_due();
            let (last, rank) = if due <= until {
                (due, Wake::RANK_OF_LINKS)
            } else {
                (until, u32::MAX)
            };
            if let Some((at, wake)) = self.links.queue.pop_before(last, rank) {
                self.begin(at);
                self.look_ahead();
                self.dispatch(wake);
            } else if due <= until {
                self.begin(due);
                self.queue_due(queue);
            } else {
                return;
            }
        }
    }

    #[inline(always)]
    fn begin(&mut self, at: Time) {
        self.links.now = at;
        if self.links.watches.any() {
            self.links.watches.show(at);
        }
    }

    #[inline(always)]
    fn dispatch(&mut self, wake: Wake) {
        match self.timers.open(wake) {
            Due::Packet(place, Arrives::First) => self.links.reach_first(place),
            Due::Packet(place, Arrives::Host) => self.reach_host(place),
            Due::Packet(place, Arrives::Queue(queue)) => self.links.reach_next(queue, place),
            Due::Link(access) => self.access_due(access),
            Due::Tcp { flow, end } => self.timer_due(flow, end),
            Due::Work { workload, token } => self.work_due(workload, token),
            Due::Reap(flow) => self.reap(flow),
        }
    }

    /// Takes the records of what workload `index` has finished since the last call.
    pub fn take_records(&mut self, index: usize) -> Vec<Record> {
        self.workers.machine_mut(index as u32).take_records()
    }

    /// Takes the measured values of workload `index` since the last call.
    pub fn take_samples(&mut self, index: usize) -> Vec<Sample> {
        self.workers.machine_mut(index as u32).take_samples()
    }

    /// Bytes of use to workload `index` that have arrived so far, up and down ([`Workload::delivered`]).
    pub fn delivered(&self, index: usize) -> Option<[u64; 2]> {
        self.workers.delivered(index as u32, &self.flows)
    }

    /// Statistics of both ends, client and server, of connection `conn` of workload `index`. `None` if it is not a
    /// TCP connection or is closed.
    pub fn tcp_stats(&self, index: usize, conn: Conn) -> Option<[Stats; 2]> {
        let flow = self.workers.flow(index as u32, conn)?;
        let ends = &self.flows.tcp(flow)?.transport.ends;
        Some(ends.each_ref().map(Endpoint::stats))
    }

    /// Ends the run: every workload turns unfinished work into records.
    pub fn finish(&mut self) {
        self.workers.finish(&self.flows);
    }

    /// Number of packet hops so far: packets received at the far end of a link, except those that an access link drops.
    pub fn hops(&self) -> u64 {
        self.hops + self.links.hops
    }

    /// Number of TCP segments and datagrams sent so far.
    pub fn packets(&self) -> u64 {
        self.links.packets
    }

    /// Number of open flows.
    pub fn open_flows(&self) -> usize {
        self.workers.open()
    }

    /// Number of packets in the world's pool: all packets on links, except those in disciplines other than drop tail,
    /// which store their own. Slow; meant for checks.
    pub fn pooled(&self) -> usize {
        self.links.pool.in_use()
    }

    /// Number of links. Each direction of a shared link and of an access path counts.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    // Packets.

    /// Delivers packets that have reached a host directly from a shared link. All consequences of a packet are
    /// processed before the next packet is taken, because they may reach this link again.
    #[inline]
    fn queue_due(&mut self, queue: LinkIndex) {
        self.links.advance(queue);
        while let Some(place) = self.links.take_from_queue(queue) {
            self.look_along(queue);
            self.hops += 1;
            self.arrive(place);
            self.settle();
        }
    }

    /// As [`World::queue_due`], for general access links.
    #[inline]
    fn access_due(&mut self, access: LinkIndex) {
        if self.links.due(access) {
            while let Some(place) = self.links.take_from_other(access) {
                // Two hops: the packet entered from a shared link without an event of its own.
                self.hops += 2;
                self.arrive(place);
                self.settle();
            }
        }
    }

    /// A packet has reached a host over a plain access link. This counts two hops, because crossing the shared link
    /// before it had no event.
    #[inline]
    fn reach_host(&mut self, place: SlotId) {
        self.hops += 2;
        self.arrive(place);
        self.settle();
    }

    /// A packet reaches the end of its way.
    #[inline]
    fn arrive(&mut self, place: SlotId) {
        let packet = self.links.pool.packet(place);
        let index = packet.flow.0;
        let end = packet.from.other();
        match self.flows.get_mut(index) {
            Some(AnyFlow::Tcp(flow)) => {
                let endpoint = &mut flow.transport.ends[end];
                let now = self.links.now;
                if flow.observed {
                    let watches = &mut self.links.watches;
                    watches.host_receives(now, (flow.conn, end), packet);
                }
                if endpoint.take_expected(now, &packet.seg) {
                    // The usual case of a bulk receiver.
                    if endpoint.only_acknowledges() && !endpoint.has_events(!flow.silent) {
                        return acknowledge(flow, end, place, &mut self.links);
                    }
                } else {
                    let sacks = self.links.pool.sacks(place);
                    endpoint.handle_segment(now, &packet.seg, sacks);
                }
                // Released before the answer is sent, so that the answer reuses this slot while it is in the cache.
                self.links.pool.release(place);
                return self.answer(index, end);
            }
            Some(AnyFlow::Datagrams(flow)) => {
                let len = packet.seg.len;
                flow.transport.received[end] += u64::from(len);
                if let Some(Some(delays)) = self.delays.get_mut(flow.workload as usize) {
                    let direction = heading(end, flow.transport.client_side);
                    delays.arrived(self.links.now, direction, packet);
                }
                if !flow.silent {
                    let event = Event::Datagram(flow.conn, end, len, Some(packet.seg.seq));
                    self.inbox.push_back((flow.workload, event));
                }
            }
            Some(AnyFlow::Ports(flow)) => {
                let port = flow.transport[end];
                self.ports.deliver(self.links.now, port, packet);
            }
            None => {
                // Datagrams that were under way when their flow closed have delays, too.
                if let Some(&(workload, client_side)) = self.late.get(index)
                    && let Some(Some(delays)) = self.delays.get_mut(workload as usize)
                {
                    delays.arrived(self.links.now, heading(end, client_side), packet);
                }
            }
        }
        self.links.pool.release(place);
    }

    /// Delivers the events that a segment caused to the workload, then sends what the endpoint has to send.
    #[inline(always)]
    fn answer(&mut self, index: u32, end: End) {
        let Some(flow) = self.flows.tcp_mut(index) else {
            return;
        };
        let endpoint = &mut flow.transport.ends[end];
        if endpoint.has_events(!flow.silent) {
            if endpoint.acknowledges_first() {
                self.transmit(index, end);
            }
            self.deliver_events(index, end);
            return self.transmit(index, end);
        }
        let hosts = (&mut self.feeds, &mut self.workers, &mut self.timers);
        let closed = send_all(flow, (index, end), &mut self.links, hosts);
        if closed {
            self.close(index);
        }
    }

    // Endpoints and workloads.

    fn timer_due(&mut self, index: u32, end: End) {
        let now = self.links.now;
        let Some((endpoint, wake_at)) = self.timed(index, end, now) else {
            return;
        };
        *wake_at = Time::MAX;
        if endpoint.is_due(now) {
            endpoint.handle_timeout(now);
        }
        self.touched.push((index, end));
        self.settle();
    }

    /// The endpoint and its wake-up instant, if its earliest wake-up is due now. Older wake-ups stay in the event
    /// queue and are ignored here, because removing them would cost more.
    #[inline]
    fn timed(&mut self, index: u32, end: End, now: Time) -> Option<(&mut Endpoint, &mut Time)> {
        let pair = &mut self.flows.tcp_mut(index)?.transport;
        let wake_at = &mut pair.wake_at[end];
        (*wake_at == now).then_some((&mut pair.ends[end], wake_at))
    }

    /// Processes all pending events of workloads and lets endpoints send, until nothing is left to do.
    #[inline]
    fn settle(&mut self) {
        if !self.touched.is_empty() || !self.inbox.is_empty() {
            self.react();
        }
    }

    #[inline(never)]
    fn react(&mut self) {
        loop {
            if let Some((flow, end)) = self.touched.pop() {
                self.drain(flow, end);
            } else if let Some((workload, event)) = self.inbox.pop_front() {
                self.notify(workload, event);
            } else {
                return;
            }
        }
    }

    #[inline]
    fn work_due(&mut self, workload: u32, token: u64) {
        let write = (!self.links.off.has(FastPath::TimedWrites))
            .then(|| self.workers.machine_mut(workload).timed_write(token))
            .flatten();
        let Some(write) = write else {
            self.notify(workload, Event::Timer(token));
            return self.settle();
        };
        let due = self.links.now + write.pause;
        let mut ready = None;
        let index = self.workers.flow(workload, write.conn);
        if let Some(index) = index
            && let Some(flow) = self.flows.tcp_mut(index)
        {
            let endpoint = &mut flow.transport.ends[write.end];
            if endpoint.send(write.bytes) {
                ready = Some(index);
            } else if write.alone && flow.feed == feed::NONE && endpoint.defers_writes() {
                let feed = Feed {
                    due,
                    token,
                    workload,
                };
                flow.feed = self.feeds.rest(feed, write.end);
                return;
            }
        }
        let wake = self.timers.set(workload, token);
        self.links.queue.push(due, wake);
        if let Some(flow) = ready {
            self.drain(flow, write.end);
            self.settle();
        }
    }

    fn notify(&mut self, workload: u32, event: Event) {
        let machine = self.workers.machine_mut(workload);
        machine.handle(self.links.now, event, &mut self.actions);
        let mut done = 0;
        while let Some(action) = self.actions.get(done) {
            match *action {
                Action::Send(conn, end, n) => self.endpoint(workload, conn, end, |e| e.send(n)),
                Action::Timer(pause, token) => {
                    let wake = self.timers.set(workload, token);
                    self.links.queue.push(self.links.now + pause, wake);
                }
                Action::SendDatagram(conn, end, n) => self.datagram(workload, conn, end, n),
                _ => self.act_rarely(workload, done),
            }
            done += 1;
        }
        self.actions.clear();
    }

    /// Delivers the events of an endpoint to its workload, then sends. Data that the workload writes thus leaves in
    /// the same segments as an ACK that was not due before.
    #[inline]
    fn drain(&mut self, index: u32, end: End) {
        if let Some(flow) = self.flows.tcp_mut(index)
            && flow.transport.ends[end].has_events(!flow.silent)
        {
            self.deliver_events(index, end);
        }
        self.transmit(index, end);
    }

    #[inline(never)]
    fn deliver_events(&mut self, index: u32, end: End) {
        loop {
            let Some(flow) = self.flows.tcp_mut(index) else {
                return;
            };
            let (workload, conn, silent) = (flow.workload, flow.conn, flow.silent);
            let pair = &mut flow.transport;
            let event = match pair.ends[end].poll() {
                None => return,
                Some(TcpEvent::Received(_) | TcpEvent::Early(..)) if silent => continue,
                Some(TcpEvent::Early(from, to)) => Event::Early(conn, end, from, to),
                Some(TcpEvent::Received(n)) => Event::Received(conn, end, n),
                Some(TcpEvent::Connected) => Event::Connected(conn, end),
                Some(TcpEvent::Drained) => Event::Drained(conn, end),
                Some(TcpEvent::Eof) => Event::Eof(conn, end),
                Some(TcpEvent::Reset) => {
                    pair.closed[end] = true;
                    Event::Reset(conn, end)
                }
                Some(TcpEvent::Closed) => {
                    pair.closed[end] = true;
                    continue;
                }
            };
            self.notify(workload, event);
        }
    }

    /// Sends what an endpoint has to send and sets its timer.
    fn transmit(&mut self, index: u32, end: End) {
        let Some(flow) = self.flows.tcp_mut(index) else {
            return;
        };
        let hosts = (&mut self.feeds, &mut self.workers, &mut self.timers);
        let closed = send_all(flow, (index, end), &mut self.links, hosts);
        if closed {
            self.close(index);
        }
    }

    /// Applies `act` to an endpoint. `act` returns whether the endpoint may have something to send afterwards.
    #[inline]
    fn endpoint(&mut self, w: u32, conn: Conn, end: End, act: impl FnOnce(&mut Endpoint) -> bool) {
        let Some(index) = self.workers.flow(w, conn) else {
            return;
        };
        if let Some(flow) = self.flows.tcp_mut(index) {
            let endpoint = &mut flow.transport.ends[end];
            if feed::is_of(flow.feed, end) {
                let at = (self.links.now, &mut self.links.queue);
                let hosts = (&mut self.workers, &mut self.timers);
                self.feeds.go_on(&mut flow.feed, endpoint, hosts, at);
            }
            if act(endpoint) {
                self.touched.push((index, end));
            }
        }
    }
}

/// Sends what an endpoint has to send and sets its timer. Returns true if both ends of the connection are closed.
#[inline(always)]
fn send_all(
    flow: &mut Flow<TcpPair>,
    (index, end): (u32, End),
    links: &mut Links,
    (feeds, workers, timers): (&mut Feeds, &mut Workers, &mut Timers),
) -> bool {
    let now = links.now;
    let pair = &mut flow.transport;
    let endpoint = &mut pair.ends[end];
    // All segments that a host sends at one instant have the same random delay.
    let (who, mut late) = ((flow.workload, flow.conn, end), None);
    loop {
        while !endpoint.is_quiet() {
            // The segment is written straight into its slot in the pool. A copy per packet would cost more than
            // everything else here.
            let place = links.pool.spare();
            let (packet, sacks) = links.pool.parts_mut(place);
            let sent = endpoint.transmit_into(now, &mut packet.seg, sacks);
            if sent == Sent::Nothing {
                break;
            }
            packet.flow = FlowId(index);
            packet.size = endpoint.config().wire_size(&packet.seg);
            packet.from = end;
            packet.tag = flow.tag;
            let shown = flow.observed.then_some(*packet);
            let after = match packet.seg.len {
                0 => Dur::ZERO,
                _ => *late.get_or_insert_with(|| links.jitter(who, endpoint, flow.bound[end])),
            };
            if let Some(head) = &shown {
                let watches = &mut links.watches;
                watches.host_sends(now + after, (flow.conn, end), head);
            }
            if after == Dur::ZERO && pair.silent_at[end] <= now {
                links.send(flow.first[end], place, flow.bound[end]);
            } else {
                let goes = (place, flow.bound[end]);
                links.send_late(flow.first[end], goes, after, &mut pair.silent_at[end]);
            }
            if sent == Sent::Last {
                break;
            }
        }
        if !feed::is_of(flow.feed, end) || endpoint.defers_writes() {
            break;
        }
        let at = (now, &mut links.queue);
        if !feeds.catch_up(&mut flow.feed, endpoint, (workers, timers), at) {
            break;
        }
    }
    if let Some(due) = endpoint.poll_timeout()
        && due < pair.wake_at[end]
    {
        let due = due.max(now);
        pair.wake_at[end] = due;
        links.queue.push(due, Wake::tcp(index, end));
    }
    pair.closed == [true; 2]
}

/// The direction in which packets travel that reach this end.
fn heading(end: End, client_side: Side) -> Direction {
    Direction::of((client_side == Side::Right) == (end == End::Server))
}

/// Sends a pure ACK. It overwrites the packet in `place` that it acknowledges, so no slot has to be released and
/// taken again.
#[inline(always)]
fn acknowledge(flow: &mut Flow<TcpPair>, end: End, place: SlotId, links: &mut Links) {
    let endpoint = &mut flow.transport.ends[end];
    let (packet, sacks) = links.pool.parts_mut(place);
    endpoint.transmit_into(links.now, &mut packet.seg, sacks);
    packet.size = endpoint.config().wire_size(&packet.seg);
    packet.from = end;
    packet.tag = flow.tag;
    if flow.observed {
        let watches = &mut links.watches;
        watches.host_sends(links.now, (flow.conn, end), packet);
    }
    links.send_back(flow.first[end], place, flow.bound[end]);
}
