//! The world itself.

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::{Dur, FlowId, Tag, Time, derived};
use swell_path::{Census, Link, LinkConfig, Meter, Place};
use swell_tcp::{Config as TcpConfig, Endpoint, Event as TcpEvent, Sent, Stats};
use swell_workload::{Action, Conn, End, Event, Info, Open, Record, Workload};

use crate::access::{AT_BOTTLENECK, Accesses, UP};
use crate::bottleneck::Bottleneck;
use crate::feed::{self, Feed, Feeds};
use crate::flow::{Flow, LinkIndex, NONE, Parties, Tap, TcpPair, Transport, packet};
use crate::links::{Links, TRUNKS};
use crate::port::Ports;
use crate::probe::Probe;
use crate::wake::{Due, Timers, Wake};
use crate::watch::Watch;
use crate::worker::Workers;

/// A direction across the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Left to right.
    Up,
    /// Right to left.
    Down,
}

/// IPv4 and UDP headers (RFC 791, RFC 768), and IPv6 and UDP headers (RFC 8200).
const UDP_HEADERS: [u32; 2] = [28, 48];
/// Largest packet that a datagram is sent in.
const MTU: u32 = 1500;
/// How long the route of a flow that is over is kept for packets still on the way.
const LINGER: Dur = Dur::from_secs(10);

/// Hosts, links, transports and workloads around one bottleneck.
pub struct World {
    pub(crate) seed: u64,
    /// Events to come that were looked at.
    pub(crate) looked: usize,
    pub(crate) timers: Timers,
    pub(crate) links: Links,
    accesses: Accesses,
    /// What is known of a flow, but its route, goes when it is over.
    pub(crate) flows: Vec<Option<Box<Flow>>>,
    pub(crate) workers: Workers,
    feeds: Feeds,
    inbox: VecDeque<(u32, Event)>,
    touched: Vec<(u32, u8)>,
    actions: Vec<Action>,
    probes: Vec<Probe>,
    pub(crate) ports: Ports,
    hops: u64,
}

impl World {
    /// A world with the bottleneck `links` (left to right, right to left) and nothing else.
    pub fn new(links: &[LinkConfig; 2], seed: u64) -> World {
        let link = |i: usize, name| Link::new(&links[i], seed, name);
        World {
            seed,
            looked: 0,
            timers: Timers::default(),
            links: Links::new([link(0, "bottleneck/up"), link(1, "bottleneck/down")]),
            accesses: Accesses::default(),
            flows: Vec::new(),
            workers: Workers::default(),
            feeds: Feeds::default(),
            inbox: VecDeque::new(),
            touched: Vec::new(),
            actions: Vec::new(),
            probes: Vec::new(),
            ports: Ports::default(),
            hops: 0,
        }
    }

    /// Counts what passes the bottleneck, in bins of these widths.
    pub fn meter(&mut self, fine: Dur, coarse: Dur) {
        for direction in [Direction::Up, Direction::Down] {
            let link = self.links.trunk_mut(direction as LinkIndex);
            link.set_meter(Meter::new(fine, coarse));
        }
    }

    /// Keeps account, at the bottleneck, of the packets of each workload: groups of the
    /// [`Census`] are the workloads' numbers. To be called before any workload is added.
    pub fn take_census(&mut self) {
        for direction in [Direction::Up, Direction::Down] {
            let link = self.links.trunk_mut(direction as LinkIndex);
            link.set_census(Census::default());
        }
    }

    /// Samples the inside of one end of a connection from its beginning, which must lie ahead.
    pub fn probe(&mut self, workload: usize, conn: Conn, end: End) {
        self.probes.push(Probe {
            workload: workload as u32,
            conn,
            end: end as usize,
            samples: Vec::new(),
        });
    }

    /// What probes have seen, in the order in which they were asked for.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Shows every packet that arrives at the bottleneck or leaves it from now on to `tap`.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.links.watch = Some(Box::new(Watch::new(tap)));
    }

    /// Adds a workload whose packets carry `tag` and whose connections use `tcp`; its first event
    /// is due now. Returns its number.
    pub fn add(&mut self, machine: Box<dyn Workload>, tag: Tag, tcp: Arc<TcpConfig>) -> usize {
        let index = self.workers.add(machine, tag, tcp);
        self.inbox.push_back((index as u32, Event::Start));
        self.settle();
        index
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.links.now
    }

    /// When something is due next.
    pub fn poll_at(&self) -> Option<Time> {
        self.links.queue.next_at()
    }

    /// Lets everything up to and including `until` happen.
    pub fn advance(&mut self, until: Time) {
        self.happen(until);
        for trunk in 0..TRUNKS {
            self.links.advance(trunk);
        }
        if let Some(watch) = &mut self.links.watch {
            watch.show(self.links.now, &self.flows);
        }
    }

    /// As [`World::advance`], for who does not look at the bottleneck: its queues are brought up to
    /// date when somebody needs them. However time is cut into calls, what happens is the same to
    /// the last event, ties too; that is what a recorded run is repeated by.
    pub fn happen(&mut self, until: Time) {
        while let Some((at, wake)) = self.links.queue.pop_until(until) {
            self.links.now = at;
            self.look_ahead();
            if let Some(watch) = &mut self.links.watch {
                watch.show(at, &self.flows);
            }
            // Nearly all are about links.
            if let Some(link) = wake.of_link() {
                self.link_due(link);
                continue;
            }
            match self.timers.open(wake) {
                Due::Link(link) => self.link_due(link),
                Due::Tcp { flow, end } => self.timer_due(flow, end),
                Due::Work { workload, token } => self.work_due(workload, token),
                Due::Reap(flow) => self.reap(flow),
            }
        }
        self.links.now = self.links.now.max(until);
    }

    /// The bottleneck link of a direction.
    pub fn bottleneck(&self, direction: Direction) -> Bottleneck<'_> {
        Bottleneck(self.links.trunk(direction as LinkIndex))
    }

    /// What workload `index` finished since the last call.
    pub fn take_records(&mut self, index: usize) -> Vec<Record> {
        self.workers.machine_mut(index as u32).take_records()
    }

    /// What both ends, client and server, know of connection `conn` of workload `index`; `None` where
    /// it is no TCP connection or is gone.
    pub fn tcp_stats(&self, index: usize, conn: Conn) -> Option<[Stats; 2]> {
        let flow = self.workers.flow(index as u32, conn)?;
        match &self.flows[flow as usize].as_deref()?.transport {
            Transport::Tcp(pair) => Some(pair.ends.each_ref().map(Endpoint::stats)),
            Transport::Datagrams { .. } | Transport::Ports(_) | Transport::Gone => None,
        }
    }

    /// Ends the run: every workload turns what is unfinished into records.
    pub fn finish(&mut self) {
        self.workers.finish(&self.flows);
    }

    /// Packet-hops so far: packets completely received at the far end of a link.
    pub fn hops(&self) -> u64 {
        self.hops + self.links.hops
    }

    /// TCP segments and datagrams sent so far.
    pub fn packets(&self) -> u64 {
        self.links.packets
    }

    /// Flows that are open.
    pub fn open_flows(&self) -> usize {
        self.workers.open()
    }

    /// Packets on the links that lie in the world's pool: all but those that wait in a discipline other than
    /// drop tail. For checks; it takes time.
    pub fn pooled(&self) -> usize {
        self.links.pool.in_use()
    }

    /// Links that exist, the bottleneck's two included.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    // Packets.

    /// Hands what has crossed its last link to its endpoint, packet after packet, each with everything
    /// that it causes.
    #[inline]
    fn link_due(&mut self, link: LinkIndex) {
        if !self.links.due(link) {
            return;
        }
        // A leaf at the end of a route was entered from a trunk without an event.
        let hops = 1 + u64::from(link >= TRUNKS);
        while let Some(place) = self.links.take(link) {
            self.hops += hops;
            self.arrive(place);
            self.settle();
        }
    }

    /// A packet reaches the end of its route.
    #[inline]
    fn arrive(&mut self, place: Place) {
        let packet = self.links.pool.packet(place);
        let index = packet.flow.0;
        let end = usize::from(packet.way & 1) ^ 1;
        if let Some(flow) = self.flows[index as usize].as_deref_mut() {
            match &mut flow.transport {
                Transport::Tcp(pair) => {
                    let endpoint = &mut pair.ends[end];
                    endpoint.handle_segment(self.links.now, &packet.seg);
                    // What is sent now takes the place, which is at hand.
                    self.links.pool.release(place);
                    if endpoint.has_news(!flow.silent) {
                        self.tell_news(index, end as u8);
                        return self.transmit(index, end as u8);
                    }
                    let hosts = (&mut self.feeds, &mut self.workers, &mut self.timers);
                    let who = (index, end as u8);
                    let closed = send_all(flow, who, &mut self.links, hosts);
                    if closed | flow.probed {
                        self.after_sending(index, who.1, closed);
                    }
                    return;
                }
                Transport::Datagrams { received, .. } => {
                    let len = packet.seg.len;
                    received[end] += u64::from(len);
                    if !flow.silent {
                        let end = if end == 0 { End::Client } else { End::Server };
                        let event = Event::Datagram(flow.conn, end, len);
                        self.inbox.push_back((flow.workload, event));
                    }
                }
                &mut Transport::Ports(ports) => {
                    self.ports.deliver(self.links.now, ports[end], packet);
                }
                Transport::Gone => {}
            }
        }
        self.links.pool.release(place);
    }

    // Endpoints and workloads.

    fn timer_due(&mut self, index: u32, end: u8) {
        let Some(Flow {
            transport: Transport::Tcp(pair),
            ..
        }) = self.flows[index as usize].as_deref_mut()
        else {
            return;
        };
        let e = end as usize;
        if pair.wake_at[e] != self.links.now {
            return;
        }
        pair.wake_at[e] = Time::MAX;
        if pair.ends[e]
            .poll_timeout()
            .is_some_and(|due| due <= self.links.now)
        {
            pair.ends[e].handle_timeout(self.links.now);
        }
        self.touched.push((index, end));
        self.settle();
    }

    /// Lets workloads react to everything that happened and endpoints say what they have to say.
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
                self.tell(workload, event);
            } else {
                return;
            }
        }
    }

    #[inline]
    fn work_due(&mut self, workload: u32, token: u64) {
        let Some(beat) = self.workers.machine_mut(workload).beat(token) else {
            self.tell(workload, Event::Timer(token));
            return self.settle();
        };
        let due = self.links.now + beat.pause;
        let mut ready = None;
        if let Some(index) = self.workers.flow(workload, beat.conn)
            && let Some(flow) = self.flows[index as usize].as_deref_mut()
            && let Transport::Tcp(pair) = &mut flow.transport
        {
            let endpoint = &mut pair.ends[beat.end as usize];
            if endpoint.send(beat.bytes) {
                ready = Some(index);
            } else if beat.alone && flow.feed == feed::NONE && endpoint.minds_no_writes() {
                let feed = Feed {
                    due,
                    token,
                    workload,
                };
                flow.feed = self.feeds.rest(feed, beat.end as u8);
                return;
            }
        }
        let wake = self.timers.set(workload, token);
        self.links.queue.push(due, wake);
        if let Some(index) = ready {
            self.drain(index, beat.end as u8);
            self.settle();
        }
    }

    fn tell(&mut self, workload: u32, event: Event) {
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

    /// Tells the workload what happened at an endpoint; what it answers goes out together with
    /// what the endpoint itself has to say.
    #[inline]
    fn drain(&mut self, index: u32, end: u8) {
        if let Some(flow) = self.flows[index as usize].as_deref_mut()
            && let Transport::Tcp(pair) = &mut flow.transport
            && pair.ends[usize::from(end)].has_news(!flow.silent)
        {
            self.tell_news(index, end);
        }
        self.transmit(index, end);
    }

    #[inline(never)]
    fn tell_news(&mut self, index: u32, end: u8) {
        let e = usize::from(end);
        let who = if end == 0 { End::Client } else { End::Server };
        loop {
            let Some(flow) = self.flows[index as usize].as_deref_mut() else {
                return;
            };
            let (workload, conn, silent) = (flow.workload, flow.conn, flow.silent);
            let Transport::Tcp(pair) = &mut flow.transport else {
                return;
            };
            let event = match pair.ends[e].poll() {
                None => return,
                Some(TcpEvent::Received(_)) if silent => continue,
                Some(TcpEvent::Received(n)) => Event::Received(conn, who, n),
                Some(TcpEvent::Connected) => Event::Connected(conn, who),
                Some(TcpEvent::Drained) => Event::Drained(conn, who),
                Some(TcpEvent::Eof) => Event::Eof(conn, who),
                Some(TcpEvent::Reset) => {
                    pair.closed[e] = true;
                    Event::Reset(conn, who)
                }
                Some(TcpEvent::Closed) => {
                    pair.closed[e] = true;
                    continue;
                }
            };
            self.tell(workload, event);
        }
    }

    /// Sends what an endpoint has to send and sets its timer.
    fn transmit(&mut self, index: u32, end: u8) {
        let Some(flow) = self.flows[index as usize].as_deref_mut() else {
            return;
        };
        let hosts = (&mut self.feeds, &mut self.workers, &mut self.timers);
        let closed = send_all(flow, (index, end), &mut self.links, hosts);
        if closed | flow.probed {
            self.after_sending(index, end, closed);
        }
    }

    /// Shows an end of a connection to the probes that ask for it, and closes the connection if that is due.
    #[inline(never)]
    fn after_sending(&mut self, index: u32, end: u8, closed: bool) {
        if let Some(flow) = self.flows[index as usize].as_deref()
            && let Transport::Tcp(pair) = &flow.transport
        {
            let e = usize::from(end & 1);
            let asked = self
                .probes
                .iter_mut()
                .filter(|p| (p.workload, p.conn, p.end) == (flow.workload, flow.conn, e));
            asked.for_each(|p| p.look(self.links.now, &pair.ends[e]));
        }
        if closed {
            self.close(index);
        }
    }

    /// Both ends of a TCP connection are closed.
    fn close(&mut self, index: u32) {
        let Some(flow) = self.flows[index as usize].as_deref_mut() else {
            return;
        };
        let (workload, conn, info) = (flow.workload, flow.conn, flow.info());
        self.forget(index);
        self.inbox.push_back((workload, Event::Closed(conn, info)));
    }

    /// The workload is done with a flow; packets on the way still find their route for a while.
    fn forget(&mut self, index: u32) {
        let Some(flow) = self.flows[index as usize].as_deref_mut() else {
            return;
        };
        flow.transport = Transport::Gone;
        self.feeds.forget(&mut flow.feed);
        self.workers.closed(flow.workload, flow.conn);
        self.links
            .queue
            .push(self.links.now + LINGER, Wake::reap(index));
    }

    fn reap(&mut self, index: u32) {
        let Some(flow) = self.flows[index as usize].take() else {
            return;
        };
        // What is still on the way goes no further: its links may become another flow's.
        self.links.forget_route(index);
        for handle in flow.access {
            let Some(pair) = self.accesses.give_back(handle) else {
                continue;
            };
            for link in [pair.up, pair.down] {
                if link != NONE {
                    self.links.doom(link);
                }
            }
        }
    }

    #[inline(never)]
    fn act_rarely(&mut self, workload: u32, which: usize) {
        let action = std::mem::replace(&mut self.actions[which], Action::Ask(Conn(0)));
        match action {
            Action::Connect(conn, open) => {
                let tcp = self.workers.profiles(workload);
                let ends = [
                    Endpoint::client(tcp.of(open.client_window, &open.wire, 0)),
                    Endpoint::server(tcp.of(open.server_window, &open.wire, 1)),
                ];
                let pair = TcpPair {
                    ends,
                    wake_at: [Time::MAX; 2],
                    closed: [false; 2],
                };
                let index = self.open(workload, conn, &open, Transport::Tcp(pair));
                self.touched.push((index, 0));
            }
            Action::Datagrams(conn, open) => {
                let nothing = Transport::Datagrams {
                    sent: 0,
                    headers: UDP_HEADERS[usize::from(open.wire.ipv6)],
                    received: [0; 2],
                };
                self.open(workload, conn, &open, nothing);
            }
            Action::Close(conn, end) => self.endpoint(workload, conn, end, |e| {
                e.close();
                true
            }),
            Action::Abort(conn) => {
                let Some(index) = self.workers.flow(workload, conn) else {
                    return;
                };
                if let Some(flow) = &self.flows[index as usize]
                    && let Transport::Datagrams { .. } = flow.transport
                {
                    self.forget(index);
                } else {
                    self.endpoint(workload, conn, End::Client, |e| {
                        e.abort();
                        true
                    });
                }
            }
            Action::Ask(conn) => {
                let flow = self.flow(workload, conn);
                let info = flow.map_or_else(Info::default, |(_, flow)| flow.info());
                self.inbox.push_back((workload, Event::Info(conn, info)));
            }
            Action::Send(..) | Action::Timer(..) | Action::SendDatagram(..) => {}
        }
    }

    fn flow(&mut self, workload: u32, conn: Conn) -> Option<(u32, &mut Flow)> {
        let index = self.workers.flow(workload, conn)?;
        Some((index, self.flows[index as usize].as_deref_mut()?))
    }

    /// Does something to an endpoint; `act` says whether it may have something to say after that.
    #[inline]
    fn endpoint(&mut self, w: u32, conn: Conn, end: End, act: impl FnOnce(&mut Endpoint) -> bool) {
        let Some(index) = self.workers.flow(w, conn) else {
            return;
        };
        if let Some(flow) = self.flows[index as usize].as_deref_mut()
            && let Transport::Tcp(pair) = &mut flow.transport
        {
            let endpoint = &mut pair.ends[end as usize];
            if feed::is_of(flow.feed, end as u8) {
                let at = (self.links.now, &mut self.links.queue);
                let hosts = (&mut self.workers, &mut self.timers);
                self.feeds.go_on(&mut flow.feed, endpoint, hosts, at);
            }
            if act(endpoint) {
                self.touched.push((index, end as u8));
            }
        }
    }

    fn datagram(&mut self, workload: u32, conn: Conn, end: End, bytes: u32) {
        let Some(index) = self.workers.flow(workload, conn) else {
            return;
        };
        let Some(flow) = self.flows[index as usize].as_deref_mut() else {
            return;
        };
        let Transport::Datagrams { sent, headers, .. } = &mut flow.transport else {
            return;
        };
        let (link, last) = (flow.first[end as usize], flow.last[end as usize]);
        let mut packet = packet(index, end, flow.tag);
        let mut left = bytes;
        loop {
            let len = left.min(MTU - *headers);
            packet.seg.seq = *sent;
            packet.seg.len = len;
            packet.size = (len + *headers) as u16;
            *sent += 1;
            self.links.put(link, &packet, last);
            left -= len;
            if left == 0 {
                return;
            }
        }
    }

    fn open(&mut self, workload: u32, conn: Conn, open: &Open, transport: Transport) -> u32 {
        let index = self.flows.len() as u32;
        // The trunk from the client to the server, and back.
        let trunks = if open.from_right { [1, 0] } else { [0, 1] };
        let mut access = [AT_BOTTLENECK; 2];
        let mut first = trunks;
        let mut routes = [NONE; 2];
        for (i, path) in [&open.client, &open.server].into_iter().enumerate() {
            let (seed, links) = (self.seed, &mut self.links);
            let side = trunks[i];
            let (handle, pair) =
                self.accesses
                    .take((workload, side), path, |config, handle, name| {
                        let own = derived(seed, u64::from(workload) << 48 | u64::from(handle));
                        let onto = if name == UP { side } else { NONE };
                        links.add_leaf(config, (own, name), onto)
                    });
            access[i] = handle;
            if pair.up != NONE {
                first[i] = pair.up;
            }
            // What goes to the server ends on the server's leaf.
            routes[i ^ 1] = pair.down;
        }
        for trunk in trunks {
            if let Some(census) = self.links.trunk_mut(trunk).census_mut() {
                census.assign(index, workload);
            }
        }
        self.links.routes.push(routes);
        self.flows.push(Some(Box::new(Flow {
            workload,
            conn,
            first,
            last: routes,
            tag: self.workers.tag(workload),
            silent: open.silent,
            probed: self
                .probes
                .iter()
                .any(|p| (p.workload, p.conn) == (workload, conn)),
            parties: Parties {
                workload,
                conn,
                class: open.class,
                hosts: [open.client.key, open.server.key],
                from_right: open.from_right,
                tcp: matches!(transport, Transport::Tcp(_)),
                wire: open.wire,
            },
            transport,
            access,
            feed: feed::NONE,
        })));
        self.workers.opened(workload, conn, index);
        index
    }
}

/// Sends what an endpoint has to send and sets its timer. True if both ends of the connection are closed.
#[inline(always)]
fn send_all(
    flow: &mut Flow,
    (index, end): (u32, u8),
    links: &mut Links,
    (feeds, workers, timers): (&mut Feeds, &mut Workers, &mut Timers),
) -> bool {
    let (now, e) = (links.now, usize::from(end & 1));
    let Transport::Tcp(pair) = &mut flow.transport else {
        return false;
    };
    let endpoint = &mut pair.ends[e];
    loop {
        while !endpoint.is_quiet() {
            // A segment is written where it will lie.
            let place = links.pool.spare();
            let packet = links.pool.packet_mut(place);
            let sent = endpoint.transmit_into(now, &mut packet.seg);
            if sent == Sent::Nothing {
                break;
            }
            packet.flow = FlowId(index);
            packet.size = endpoint.config().wire_size(&packet.seg);
            packet.way = end;
            packet.tag = flow.tag;
            links.send(flow.first[e], place, flow.last[e]);
            if sent == Sent::Last {
                break;
            }
        }
        if !feed::is_of(flow.feed, end) || endpoint.minds_no_writes() {
            break;
        }
        let at = (now, &mut links.queue);
        if !feeds.catch_up(&mut flow.feed, endpoint, (workers, timers), at) {
            break;
        }
    }
    if let Some(due) = endpoint.poll_timeout()
        && due < pair.wake_at[e]
    {
        let due = due.max(now);
        pair.wake_at[e] = due;
        links.queue.push(due, Wake::tcp(index, end));
    }
    pair.closed == [true; 2]
}
