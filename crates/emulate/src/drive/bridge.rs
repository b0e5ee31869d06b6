//! The interfaces of a bridge, and the switches between them and the links.
//!
//! Each node of the [`Layout`] has a switch with a gate for each of its interfaces and spans. A switch with two gates
//! passes every frame on to the other gate, as a cable does. Frames between interfaces of one node do not enter the
//! world. A frame that goes on from one span to another enters it at the instant at which it arrived.

use std::collections::VecDeque;
use std::io;

use swell_base::{Dur, Rate, Time};
use swell_workload::Access;
use swell_world::{Delivery, Port, PortConfig, World};

use super::staged::{Arrival, DuePacket, Staged};
use super::switches::{
    Bridging, Gate, GateTarget, Node, PortCounts, Route, Routing, floods, towards,
};
use super::{AT_ONCE, Emulation, Inside, Options};
use crate::ip::{Header, set_ecn};
use crate::journal::Entry;
use crate::layout::Layout;
use crate::pool::Lift;
use crate::switch::Exits;
use crate::table::{Table, bucket, tag};
use swell_host::{ETHERNET, IpPacket, Nic, network};

impl Emulation {
    /// Joins interfaces by the links of a world. `uplink` is the rate at which a switch sends frames into a link. With
    /// `route`, all switches together are one router.
    ///
    /// # Errors
    /// If the journal cannot be created, or a span of the layout is no path of the world.
    pub fn bridge(
        world: World,
        interfaces: Vec<Box<dyn Nic>>,
        layout: &Layout,
        uplink: Rate,
        route: Option<Route>,
        options: Options,
    ) -> io::Result<Emulation> {
        let mut emulation = Emulation::bare(world, options)?;
        let mut nodes: Vec<Node> = Vec::new();
        nodes.resize_with(layout.nodes(), Node::default);
        let mut gate = |node: usize, way| {
            nodes[node].ways.push(way);
            Gate {
                node,
                number: nodes[node].ways.len() - 1,
            }
        };
        let seats = layout.interfaces.iter().enumerate();
        let seats: Vec<Gate> = seats
            .map(|(i, &node)| gate(node, GateTarget::Interface(i)))
            .collect();
        let mut ends = Vec::new();
        for span in &layout.spans {
            let path = emulation.world.add_path(&span.hops);
            let path = path.ok_or_else(|| io::Error::other("a span that is no path"))?;
            let ports = [false, true].map(|right| {
                emulation.add_port(PortConfig {
                    right,
                    access: Access {
                        up: Some(uplink),
                        ..Access::default()
                    },
                    path,
                })
            });
            ends.push(gate(span.nodes[0], GateTarget::Span(ports)));
            ends.push(gate(span.nodes[1], GateTarget::Span([ports[1], ports[0]])));
        }
        let spans = |node: &Node| {
            node.ways
                .iter()
                .filter(|w| matches!(w, GateTarget::Span(_)))
                .count()
        };
        let chained = nodes.iter().any(|node| spans(node) > 1);
        let towards = || towards(&nodes, &ends, seats.len());
        let routing = route.map(|route| Routing {
            route,
            towards: towards(),
        });
        for nic in interfaces {
            emulation.attach(nic);
        }
        emulation.inside.programs = ends.len() as u32;
        emulation.bridge = Some(Bridging {
            counts: vec![PortCounts::default(); seats.len()],
            nodes,
            seats,
            ends,
            chained,
            routing,
            arrived: VecDeque::new(),
            unflushed: false,
        });
        Ok(emulation)
    }

    /// Advances the world. Frames that go on from one span to another do so when they arrive, not when this is called.
    pub(super) fn happen(&mut self, until: Time) {
        if !self.bridge.as_ref().is_some_and(|b| b.chained) {
            self.world.happen(until);
            return;
        }
        while let Some(due) = self.world.ports_due() {
            // Everything up to now has happened already, and nothing leaves before the next event. For a link that
            // changes, `ports_due` goes by its shortest delay and may lie long before.
            let next = self.world.poll_at().unwrap_or(until);
            let due = due.max(next).max(self.world.now() + Dur::from_nanos(1));
            if due > until {
                break;
            }
            self.world.happen(due);
            self.relay();
        }
        self.world.happen(until);
        self.relay();
    }

    /// Passes on what has arrived at nodes.
    fn relay(&mut self) {
        while let Some(delivery) = self.world.take_delivery() {
            let exits = self.arrive(&delivery);
            if let (Some(exits), Some(bridge)) = (exits, &mut self.bridge) {
                bridge.arrived.push_back((delivery, exits));
            }
        }
    }

    /// A frame came in by an interface.
    pub(super) fn come_in(&mut self, at: Time, lift: Lift, packet: &Staged) {
        let Some(bridge) = &mut self.bridge else {
            return;
        };
        let inside = &mut self.inside;
        let (header, payload) = packet.bytes.split_at(packet.header);
        let wire = IpPacket {
            header,
            payload,
            checksum: packet.checksum,
        };
        if let Some(file) = &mut inside.packets
            && network(header).is_some()
        {
            file.entered(at, packet.host, [header, payload], packet.checksum);
        }
        let gate = bridge.seats[packet.host];
        let exits = bridge.exits(at, gate, header);
        let (mut local, mut crosses) = (false, false);
        for way in bridge.nodes[gate.node].ways(exits) {
            match way {
                GateTarget::Interface(to) => {
                    let host = &mut self.hosts[to];
                    host.refused += host.nic.write(&packet.bytes, packet.checksum);
                    bridge.counts[to].sent += 1;
                    if let Some(file) = &mut inside.packets
                        && network(header).is_some()
                        && !local
                    {
                        file.left(at, [packet.host, to], &packet.bytes, packet.checksum);
                    }
                    local = true;
                }
                GateTarget::Span(ports) => {
                    let origin = packet.host;
                    let when = (at, lift);
                    inside.cross(&mut self.world, &mut self.table, when, ports, origin, &wire);
                    crosses = true;
                }
            }
        }
        bridge.unflushed |= local;
        inside.counts.entered += u64::from(crosses);
        inside.counts.local += u64::from(local);
        let counts = &mut bridge.counts[packet.host];
        counts.received += 1;
        counts.local += u64::from(local);
        counts.flooded += u64::from(floods(exits, header));
        counts.filtered += u64::from(exits == Exits::Nowhere);
    }

    /// Passes on what was written to interfaces without crossing a link.
    pub(super) fn flush_local(&mut self) {
        let Some(bridge) = &mut self.bridge else {
            return;
        };
        if std::mem::take(&mut bridge.unflushed) {
            for host in &mut self.hosts {
                host.refused += host.nic.flush();
            }
        }
    }

    /// A frame has arrived at the end of a span. It goes on into other spans. Returns the gates by which it also leaves
    /// to interfaces; `None` if to none.
    fn arrive(&mut self, d: &Delivery) -> Option<Exits> {
        let bridge = self.bridge.as_mut()?;
        let inside = &mut self.inside;
        let place = inside.pool.get(d.handle);
        let start = network(&place.bytes);
        if let Some(n) = start
            && let Some(header) = Header::of(&place.bytes[n..])
            && header.ecn != d.ecn
        {
            set_ecn(&mut place.bytes[n..], d.ecn);
            inside.counts.marked += 1;
        }
        let gate = bridge.ends[d.port.0 as usize];
        let exits = bridge.exits(d.at, gate, &place.bytes);
        let counts = &mut bridge.counts[place.origin];
        counts.flooded += u64::from(floods(exits, &place.bytes));
        counts.filtered += u64::from(exits == Exits::Nowhere);
        let node = &bridge.nodes[gate.node];
        let (number, checksum, origin) = (place.number, place.checksum, place.origin);
        let lift = place.lift;
        if bridge.chained {
            let bytes = std::mem::take(&mut place.bytes);
            let wire = IpPacket {
                header: &bytes,
                payload: &[],
                checksum,
            };
            for way in node.ways(exits) {
                if let GateTarget::Span(ports) = way {
                    let when = (self.world.now(), lift);
                    inside.cross(&mut self.world, &mut self.table, when, ports, origin, &wire);
                }
            }
            inside.pool.get(d.handle).bytes = bytes;
        }
        inside.note(&Entry::Departure {
            at: d.at,
            number,
            ecn: d.ecn,
        });
        if node
            .ways(exits)
            .any(|w| matches!(w, GateTarget::Interface(_)))
        {
            return Some(exits);
        }
        inside.pool.free(d.handle);
        None
    }

    /// Writes at most one batch of frames to the interfaces by which they leave.
    pub(super) fn write_bridged(&mut self) {
        while self.inside.due.len() < AT_ONCE
            && let Some((d, exits)) = self.next_for_interfaces()
            && let Some(bridge) = &mut self.bridge
        {
            let inside = &mut self.inside;
            let place = inside.pool.get(d.handle);
            let gate = bridge.ends[d.port.0 as usize];
            let mut first = None;
            for way in bridge.nodes[gate.node].ways(exits) {
                let GateTarget::Interface(to) = way else {
                    continue;
                };
                let host = &mut self.hosts[to];
                host.refused += host.nic.write(&place.bytes, place.checksum);
                bridge.counts[to].sent += 1;
                first.get_or_insert(to);
            }
            if let (Some(packets), Some(to)) = (&mut inside.packets, first)
                && network(&place.bytes).is_some()
            {
                packets.left(d.at, [place.origin, to], &place.bytes, place.checksum);
            }
            inside.counts.left += 1;
            let due = DuePacket {
                entered: place.entered,
                at: d.at,
                lift: place.lift,
                tracked: None,
            };
            inside.due.push(due);
            inside.pool.free(d.handle);
        }
    }

    fn next_for_interfaces(&mut self) -> Option<(Delivery, Exits)> {
        loop {
            let bridge = self.bridge.as_mut()?;
            if let Some(first) = bridge.arrived.pop_front() {
                return Some(first);
            }
            let delivery = self.world.take_delivery()?;
            if let Some(exits) = self.arrive(&delivery) {
                return Some((delivery, exits));
            }
        }
    }
}

impl Inside {
    /// A frame enters a span, whatever it contains. Its size excludes the link-layer header, because link rates count
    /// network-layer bytes.
    fn cross(
        &mut self,
        world: &mut World,
        table: &mut Table,
        (at, lift): (Time, Lift),
        [from, to]: [Port; 2],
        origin: usize,
        wire: &IpPacket<'_>,
    ) {
        let start = network(wire.header);
        let header = start.and_then(|n| Header::of(&wire.header[n..]));
        let bucket = header.as_ref().map_or(0, bucket);
        let Some(flow) = table.flow(world, from, to, bucket, tag(true)) else {
            // Unreachable: the ports of a span are at opposite ends of its path.
            return;
        };
        let whole = wire.header.len() + wire.payload.len();
        let arrival = Arrival {
            at,
            lift,
            from,
            to,
            bucket,
            size: u16::try_from(whole - start.unwrap_or(ETHERNET).min(whole)).unwrap_or(u16::MAX),
            ecn: header.map_or(0, |h| h.ecn),
        };
        self.inject(world, flow, &arrival, origin, wire);
    }
}
