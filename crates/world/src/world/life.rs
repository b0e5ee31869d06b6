//! How connections begin and end.

use std::sync::Arc;

use swell_base::{Side, Stamps, Time, UDP_HEADERS, derived};
use swell_tcp::Endpoint;
use swell_workload::{Action, Conn, End, Event, Info, Open};

use super::{LINGER, MTU, World};
use crate::access::{AT_BOTTLENECK, UP};
use crate::feed;
use crate::flow::{AnyFlow, ClosedFlow, Datagrams, Flow, Parties, TcpPair, packet};
use crate::index::NONE;
use crate::wake::Wake;

impl World {
    /// Closes a TCP connection, both ends of which are closed. Rare, and kept out of the way of packets.
    #[inline(never)]
    pub(super) fn close(&mut self, index: u32) {
        if let Some((flow, ended)) = self.forget(index) {
            let event = Event::Closed(ended.conn, flow.info());
            self.inbox.push_back((ended.workload, event));
        }
    }

    /// Removes a flow. The access links of its hosts stay for a while, for packets in the network.
    fn forget(&mut self, index: u32) -> Option<(AnyFlow, ClosedFlow)> {
        let flow = self.flows.remove(index)?;
        let mut ended = flow.ended();
        self.feeds.forget(&mut ended.feed);
        self.workers.closed(ended.workload, ended.conn);
        self.lingering.insert(index, ended.access);
        let counted = matches!(self.delays.get(ended.workload as usize), Some(Some(_)));
        if let AnyFlow::Datagrams(flow) = &flow
            && counted
        {
            let who = (ended.workload, flow.transport.client_side);
            self.late.insert(index, who);
        }
        self.links
            .queue
            .push(self.links.now + LINGER, Wake::reap(index));
        Some((flow, ended))
    }

    pub(super) fn reap(&mut self, index: u32) {
        self.links.watches.forget(index);
        self.late.remove(index);
        for handle in self.lingering.remove(index).into_iter().flatten() {
            let Some(pair) = self.accesses.give_back(handle) else {
                continue;
            };
            for link in [pair.up, pair.down] {
                if link != NONE {
                    self.links.leave_unused(link);
                }
            }
        }
    }

    #[inline(never)]
    pub(super) fn act_rarely(&mut self, workload: u32, which: usize) {
        let action = std::mem::replace(&mut self.actions[which], Action::Ask(Conn(0)));
        match action {
            Action::Connect(conn, open) => {
                let tcp = self.workers.profiles(workload);
                let configs = End::BOTH.map(|end| tcp.of(&open, end));
                let ends = [
                    Endpoint::client(Arc::clone(&configs[0])).opposite(&configs[1]),
                    Endpoint::server(Arc::clone(&configs[1])).opposite(&configs[0]),
                ];
                let pair = TcpPair {
                    ends,
                    wake_at: [Time::MAX; 2],
                    closed: [false; 2],
                    silent_at: [Time::ZERO; 2],
                };
                let index = self.open(workload, conn, &open, pair, AnyFlow::Tcp);
                self.touched.push((index, End::Client));
            }
            Action::Datagrams(conn, open) => {
                let nothing = Datagrams {
                    sent: 0,
                    headers: UDP_HEADERS[usize::from(open.wire.ipv6)],
                    client_side: open.client_side,
                    received: [0; 2],
                };
                self.open(workload, conn, &open, nothing, AnyFlow::Datagrams);
            }
            Action::Close(conn, end) => self.endpoint(workload, conn, end, |e| {
                e.close();
                true
            }),
            Action::Abort(conn) => {
                let Some(index) = self.workers.flow(workload, conn) else {
                    return;
                };
                if self.flows.datagrams_mut(index).is_some() {
                    self.forget(index);
                } else {
                    self.endpoint(workload, conn, End::Client, |e| {
                        e.abort();
                        true
                    });
                }
            }
            Action::Ask(conn) => {
                let index = self.workers.flow(workload, conn);
                let flow = index.and_then(|index| self.flows.get(index));
                let info = flow.map_or_else(Info::default, AnyFlow::info);
                self.inbox.push_back((workload, Event::Info(conn, info)));
            }
            Action::Unsent(conn, end) => {
                let flow = self.workers.flow(workload, conn);
                let flow = flow.and_then(|index| self.flows.tcp(index));
                let unsent = flow.map_or(0, |f| f.transport.ends[end].unsent());
                self.inbox
                    .push_back((workload, Event::Unsent(conn, end, unsent)));
            }
            Action::Send(..) | Action::Timer(..) | Action::SendDatagram(..) => {}
        }
    }

    /// Opens a flow over `transport`. `kind` is the variant of [`AnyFlow`] for that transport.
    fn open<T>(
        &mut self,
        workload: u32,
        conn: Conn,
        open: &Open,
        transport: T,
        kind: fn(Box<Flow<T>>) -> AnyFlow,
    ) -> u32 {
        let index = self.flows.next();
        // The way from the client to the server, and the way back.
        let mut ways = self.links.paths.ways(self.workers.path(workload));
        if open.client_side == Side::Right {
            ways.reverse();
        }
        let queues = ways.map(|way| self.links.paths.first(way));
        let mut access = [AT_BOTTLENECK; 2];
        let mut first = queues;
        let mut last = [NONE; 2];
        for (i, path) in [&open.client, &open.server].into_iter().enumerate() {
            let (seed, links) = (self.seed, &mut self.links);
            let side = queues[i];
            let (handle, pair) =
                self.accesses
                    .take((workload, side), path, |config, handle, name| {
                        let own = derived(seed, u64::from(workload) << 48 | u64::from(handle));
                        let onto = if name == UP { side } else { NONE };
                        links.add_access(config, (own, name), onto)
                    });
            access[i] = handle;
            if pair.up != NONE {
                first[i] = pair.up;
            }
            // Packets to the server end on the server's access link.
            last[i ^ 1] = pair.down;
        }
        if self.counting {
            for way in ways {
                let crossed: Vec<_> = self.links.paths.queues(way).collect();
                for queue in crossed {
                    if let Some(census) = self.links.queue_mut(queue).census_mut() {
                        census.assign(index, workload);
                    }
                }
            }
        }
        let bound = [0, 1].map(|i| self.links.bound(ways[i], last[i]));
        let flow = Flow {
            workload,
            conn,
            first,
            bound,
            tag: self.workers.tag(workload),
            silent: open.silent,
            observed: self.links.watches.observes_hosts(workload),
            transport,
            access,
            feed: feed::NONE,
        };
        let flow = kind(Box::new(flow));
        let tcp = matches!(flow, AnyFlow::Tcp(_));
        self.links.watches.opens(index, || Parties {
            workload,
            conn,
            class: open.class,
            hosts: [0, 1].map(|end| match [open.client.key, open.server.key][end] {
                0 => open.hosts[end],
                key => key,
            }),
            client_side: open.client_side,
            tcp,
            wire: open.wire,
            windows: [open.client_window, open.server_window],
        });
        self.flows.add(flow);
        self.workers.opened(workload, conn, index);
        index
    }
    /// Sends a datagram, in several packets if it does not fit into one.
    pub(super) fn datagram(&mut self, workload: u32, conn: Conn, end: End, bytes: u32) {
        let Some(index) = self.workers.flow(workload, conn) else {
            return;
        };
        let Some(flow) = self.flows.datagrams_mut(index) else {
            return;
        };
        let Datagrams { sent, headers, .. } = &mut flow.transport;
        let (link, bound) = (flow.first[end], flow.bound[end]);
        let mut packet = packet(index, end, flow.tag);
        let mut left = bytes;
        loop {
            let len = left.min(MTU - *headers);
            packet.seg.seq = *sent;
            packet.seg.len = len;
            packet.seg.stamps = Stamps::instant(self.links.now);
            packet.size = (len + *headers) as u16;
            *sent += 1;
            self.links.put(link, &packet, bound);
            left -= len;
            if left == 0 {
                return;
            }
        }
    }
}
