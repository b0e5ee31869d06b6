//! How packets of [ports](crate::port) enter and leave a world.

use swell_base::{End, FlowId, Head, Packet, Side, Tag, Time, derived};
use swell_path::{Link, LinkConfig, Loss};
use swell_workload::{Conn, Wire};

use super::World;
use crate::access::{DOWN, UP, link};
use crate::feed;
use crate::flow::{AnyFlow, Flow, Parties};
use crate::index::NONE;
use crate::port::{Attachment, Delivery, PacketDrop, Port, PortConfig};

/// With more ports than this, polling each port costs more than waking for every event.
const FEW: usize = 16;

impl World {
    /// Adds a port.
    pub fn add_port(&mut self, config: &PortConfig) -> Port {
        let number = self.ports.places.len() as u32;
        let ways = self.links.paths.ways(config.path);
        let queue = self.links.paths.first(ways[usize::from(config.right)]);
        let access = &config.access;
        let mut add = |c: &LinkConfig, way: &str, onto| {
            let seed = derived(self.seed, u64::from(number) | 1 << 63);
            let mut link = Link::new(c, seed, way);
            link.keep_dropped();
            let index = self.links.add_counting(link, onto);
            // A link without a rate never queues, so only loss can drop packets there.
            if c.rate.is_some() || c.loss != Loss::None {
                self.ports.dropping.push(index);
            }
            index
        };
        let up = link(access.delay, access.up, access.loss_up).map_or(NONE, |c| add(&c, UP, queue));
        // Needed even without delay, so that `ports_due` can ask it for the next arrival.
        let to = link(access.delay, access.down, access.loss_down).unwrap_or_default();
        let last = add(&to, DOWN, NONE);
        for any in 0..self.links.queues() {
            self.links.queue_mut(any).keep_dropped();
        }
        self.ports.places.push(Attachment {
            path: config.path,
            right: config.right,
            first: if up == NONE { queue } else { up },
            last,
        });
        Port(number)
    }

    /// Opens a flow of packets between two ports at opposite ends of one path. `None` if they are at the same end or
    /// on different paths, because no route connects them. Flow-based disciplines treat it as one flow.
    pub fn join(&mut self, ports: [Port; 2], tag: Tag) -> Option<FlowId> {
        let [a, b] = ports.map(|p| self.ports.places[p.0 as usize]);
        if a.right == b.right || a.path != b.path {
            return None;
        }
        let index = self.flows.next();
        let ways = self.links.paths.ways(a.path);
        let bound = [(a, b), (b, a)].map(|(from, to)| {
            let way = ways[usize::from(from.right)];
            self.links.bound(way, to.last)
        });
        self.flows.add(AnyFlow::Ports(Box::new(Flow {
            workload: u32::MAX,
            conn: Conn(u32::MAX),
            first: [a.first, b.first],
            bound,
            tag,
            silent: true,
            observed: false,
            feed: feed::NONE,
            access: [0; 2],
            transport: ports,
        })));
        self.links.watches.opens(index, || Parties {
            workload: u32::MAX,
            conn: Conn(u32::MAX),
            class: 0,
            hosts: ports.map(|p| u64::from(p.0) + 1),
            client_side: Side::of(a.right),
            tcp: false,
            wire: Wire::default(),
            windows: [0; 2],
        });
        Some(FlowId(index))
    }

    /// A packet of `size` network-layer bytes enters the world now. It comes from the first port of its flow, or from
    /// the second if `back` is set.
    pub fn inject(&mut self, flow: FlowId, back: bool, size: u16, ecn: u8, handle: u64) {
        let Some(known) = self.flows.ports(flow.0) else {
            return;
        };
        let from = End::of(back);
        let (first, bound) = (known.first[from], known.bound[from]);
        let mut packet = Packet::from(Head {
            flow,
            size,
            from,
            tag: known.tag,
            ..Head::default()
        });
        packet.seg.seq = handle;
        packet.seg.len = u32::from(size);
        packet.seg.ecn = ecn;
        self.ports.inside += 1;
        self.links.put(first, &packet, bound);
    }

    /// Takes the next packet that has left the world, in order of departure.
    pub fn take_delivery(&mut self) -> Option<Delivery> {
        self.ports.delivered.pop_front()
    }

    /// Calls `each` for every packet of a port that was dropped since the last call.
    pub fn take_drops(&mut self, each: &mut dyn FnMut(PacketDrop)) {
        for link in (0..self.links.queues()).chain(self.ports.dropping.iter().copied()) {
            let dropped = self.links.link_mut(link).map(Link::take_dropped);
            for (at, packet, reason) in dropped.unwrap_or_default() {
                if self.flows.ports(packet.flow.0).is_some() {
                    self.ports.inside -= 1;
                    each(PacketDrop {
                        at,
                        handle: packet.seg.seq,
                        reason,
                    });
                }
            }
        }
    }

    /// Lower bound on when a packet next leaves the world by a port, unless another is injected; `None` if no packet
    /// is inside. The emulator can sleep until then: events of simulated flows do not wake it.
    ///
    /// The arrival of a packet that has begun to cross its last shared link is known to the nanosecond. Any other
    /// packet has yet to cross a shared link, which takes at least the shortest delay of all shared links.
    pub fn ports_due(&self) -> Option<Time> {
        if self.ports.inside == 0 {
            return None;
        }
        let next = self.links.next_at();
        if self.ports.places.len() > FEW {
            return next;
        }
        let known = self.ports.places.iter();
        let known = known.filter_map(|p| self.links.poll_at(p.last));
        let queues = || (0..self.links.queues()).map(|q| self.links.queue(q));
        let waiting = queues().filter_map(|q| Some(q.next_start()? + q.delay()));
        let shortest = queues().map(Link::delay).min().unwrap_or_default();
        let later = next.map(|at| at + shortest);
        known.chain(waiting).chain(later).min()
    }

    /// Number of port packets in the world.
    pub fn inside(&self) -> u64 {
        self.ports.inside
    }
}
