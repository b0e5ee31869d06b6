//! How connections begin and end.

use swell_base::{Time, derived};
use swell_tcp::Endpoint;
use swell_workload::{Action, Conn, End, Event, Info, Open};

use super::{LINGER, UDP_HEADERS, World};
use crate::access::{AT_BOTTLENECK, UP};
use crate::feed;
use crate::flow::{Flow, NONE, Parties, TcpPair, Transport};
use crate::wake::Wake;

impl World {
    /// Both ends of a TCP connection are closed.
    pub(super) fn close(&mut self, index: u32) {
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

    pub(super) fn reap(&mut self, index: u32) {
        let Some(flow) = self.flows[index as usize].take() else {
            return;
        };
        for handle in flow.access {
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

    fn open(&mut self, workload: u32, conn: Conn, open: &Open, transport: Transport) -> u32 {
        let index = self.flows.len() as u32;
        // The way from the client to the server, and back.
        let mut ways = self.links.paths.ways(self.workers.path(workload));
        if open.from_right {
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
            // What goes to the server ends on the server's access link.
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
                windows: [open.client_window, open.server_window],
            },
            transport,
            access,
            feed: feed::NONE,
        };
        self.flows.push(Some(Box::new(flow)));
        self.workers.opened(workload, conn, index);
        index
    }
}
