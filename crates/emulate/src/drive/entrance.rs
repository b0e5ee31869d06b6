//! Reads packets, sorts them by arrival time, and injects them into the world.

use std::io;

use swell_base::{FlowId, Time};
use swell_world::{Port, World};

use super::staged::{Arrival, Staged};
use super::{Emulation, Inside};
use crate::clock::Clock;
use crate::ip::{Header, UDP};
use crate::journal::Entry;
use crate::pool::Lift;
use crate::table::{Table, bucket, tag};
use crate::unreachable::unreachable;
use swell_host::{Checksum, IpPacket};

/// Reads of one device in a row before other devices are read and due packets leave.
const BATCH: usize = 32;

/// Ports of protocols that find names and services by multicast. Programs do without an answer: mDNS, LLMNR, SSDP,
/// WS-Discovery (IANA, "Service Name and Transport Protocol Port Number Registry").
const DISCOVERY: [u16; 4] = [5353, 5355, 1900, 3702];

impl Emulation {
    /// Injects the packets that hosts have sent by `now`, in the order of arrival. Returns the horizon, beyond which
    /// the world must not advance. A host with more to read may have packets right after the last one that was read. So
    /// packets of other hosts with later stamps wait for the next call.
    ///
    /// With stamps the same holds for packets that arrived after `now`: a host that was read before may have sent one
    /// in between.
    pub(super) fn take_in(&mut self, now: Time, clock: &Clock) -> io::Result<Time> {
        let stamped = self.hosts.iter().all(|h| h.nic.stamps());
        let mut horizon = if stamped { now } else { Time::MAX };
        for host in 0..self.hosts.len() {
            if !std::mem::take(&mut self.hosts[host].ready) {
                // It had nothing when the loop began to wait, after the turn before.
                self.hosts[host].emptied = self.turn;
                continue;
            }
            match self.stage(host, clock)? {
                Some(last) => {
                    self.hosts[host].ready = true;
                    horizon = horizon.min(last);
                }
                None => self.hosts[host].emptied = now,
            }
        }
        self.turn = now;
        self.staged.sort_by_key(|s| s.at);
        let known = self.staged.partition_point(|s| s.at <= horizon);
        for i in 0..known {
            let packet = std::mem::take(&mut self.staged[i]);
            self.show(&packet);
            self.spare.push(packet.bytes);
        }
        self.staged.drain(..known);
        self.flush_local();
        Ok(horizon)
    }

    /// Reads what a host has sent. If there may be more, returns the arrival time of the last packet.
    fn stage(&mut self, host: usize, clock: &Clock) -> io::Result<Option<Time>> {
        let mut last = None;
        for _ in 0..BATCH {
            let before = self.staged.len();
            let (staged, spare) = (&mut self.staged, &mut self.spare);
            let nic = &mut self.hosts[host].nic;
            let read = nic.read(&mut |wire| {
                let mut bytes = spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(wire.header);
                bytes.extend_from_slice(wire.payload);
                staged.push(Staged {
                    at: Time::ZERO,
                    arrived: Time::ZERO,
                    host,
                    bytes,
                    header: wire.header.len(),
                    checksum: wire.checksum,
                });
            })?;
            if read == 0 {
                return Ok(None);
            }
            // The clock is read after the packet: a time taken before the read could be earlier than the packet's
            // arrival. The arrival time is never before the world's time, because the past of the world is fixed.
            let (stamps, stamp) = (nic.stamps(), nic.stamp());
            let (at, arrived) = match stamp.and_then(|stamp| clock.stamped(stamp)) {
                Some(at) => (at, at),
                // Stalls do not count for this device. It had nothing at that time.
                None if stamps => (clock.now(), self.hosts[host].emptied),
                None => [clock.now(); 2].into(),
            };
            let at = at.max(self.world.now()).max(last.unwrap_or(Time::ZERO));
            for packet in &mut self.staged[before..] {
                (packet.at, packet.arrived) = (at, arrived);
            }
            last = Some(at);
            self.inside.busy = true;
            if self.hosts[host].nic.empty() {
                return Ok(None);
            }
        }
        Ok(last)
    }

    fn show(&mut self, packet: &Staged) {
        let at = packet.at.max(self.world.now());
        self.happen(at);
        let lift = self.lift(at, packet.arrived);
        if self.bridge.is_some() {
            self.come_in(at, lift, packet);
            return;
        }
        let (world, table, inside) = (&mut self.world, &mut self.table, &mut self.inside);
        let ports = &mut self.ports;
        // Hosts have the first ports, in their order.
        let from = Port(packet.host as u32);
        let (header, payload) = packet.bytes.split_at(packet.header);
        let wire = IpPacket {
            header,
            payload,
            checksum: packet.checksum,
        };
        self.attached.update(world, |address, port, new| {
            if let Some(config) = new {
                inside.note(&Entry::Port {
                    at,
                    config,
                    program: false,
                });
            }
            let behind = table.port(address).map(|p| ports[p.0 as usize]);
            let number = port.0 as usize;
            ports.resize(ports.len().max(number + 1), packet.host);
            ports[number] = behind.unwrap_or(packet.host);
            table.host(address, port);
        });
        while let Some(address) = self.attached.forgotten() {
            table.forget(address);
        }
        if let Some((to, bytes, checksum)) = inside.enter(world, table, (at, lift), from, &wire) {
            let host = &mut self.hosts[self.ports[to.0 as usize]];
            host.refused += host.nic.write(&bytes, checksum) + host.nic.flush();
        }
    }
}

impl Inside {
    /// Lets a packet enter the world. A packet that does not enter may require an immediate write, which is returned:
    /// the packet itself to a host on the same side, or an ICMP error to the sender.
    pub(super) fn enter(
        &mut self,
        world: &mut World,
        table: &mut Table,
        (at, lift): (Time, Lift),
        from: Port,
        wire: &IpPacket<'_>,
    ) -> Option<(Port, Vec<u8>, Checksum)> {
        let Some(header) = Header::of(wire.header) else {
            self.counts.strange += 1;
            return None;
        };
        let Some(to) = table.port(header.destination) else {
            if header.destination.is_multicast() {
                // Kernels look for neighbours and routers by multicast, but the hosts have none.
                self.counts.multicast += 1;
                let first = header.fragment.is_none_or(|f| f.first);
                let program =
                    first && header.protocol == UDP && !DISCOVERY.contains(&header.ports[1]);
                self.counts.groups += u64::from(program);
                return None;
            }
            self.counts.unroutable += 1;
            return Some((from, unreachable(&header, wire)?, Checksum::Full));
        };
        let bucket = bucket(&header);
        let from = table.own(header.source).unwrap_or(from);
        let observed = from.0.max(to.0) < self.programs;
        let Some((flow, back)) = table.flow(world, from, to, bucket, tag(observed)) else {
            self.counts.local += 1;
            let packet = [wire.header, wire.payload].concat();
            return Some((to, packet, wire.checksum));
        };
        let whole = wire.header.len() + wire.payload.len();
        if observed {
            self.tracker.sent(at, &header, wire.header, wire.payload);
        }
        let arrival = Arrival {
            at,
            lift,
            from,
            to,
            bucket,
            size: u16::try_from(whole).unwrap_or(u16::MAX),
            ecn: header.ecn,
        };
        if observed && let Some(packets) = &mut self.packets {
            let parts = [wire.header, wire.payload];
            packets.entered(at, from.0 as usize, parts, wire.checksum);
        }
        self.counts.entered += 1;
        self.inject(world, (flow, back), &arrival, from.0 as usize, wire);
        None
    }

    /// A packet of host number `origin` enters the world.
    pub(super) fn inject(
        &mut self,
        world: &mut World,
        (flow, back): (FlowId, bool),
        arrival: &Arrival,
        origin: usize,
        wire: &IpPacket<'_>,
    ) {
        let &Arrival {
            at,
            lift,
            from,
            to,
            bucket,
            size,
            ecn,
        } = arrival;
        self.note(&Entry::Arrival {
            at,
            from,
            to,
            bucket,
            size,
            ecn,
        });
        let handle = self.pool.keep(wire, self.arrivals, at, origin);
        self.pool.get(handle).lift = lift;
        self.arrivals += 1;
        self.entered_last = at;
        world.inject(flow, back, size, ecn, handle);
    }
}
