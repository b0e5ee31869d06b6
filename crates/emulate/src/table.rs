//! Maps addresses to ports, and packets to flows.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use swell_base::{FlowId, Tag};
use swell_world::{Port, World};

use super::ip::Header;

/// Number of flows distinguished between two ports, as in the kernel's FQ-CoDel (RFC 8290 section 4.1.1). It is
/// fixed, so that programs cannot make the table grow.
const BUCKETS: usize = 1024;

/// Routes and flows.
#[derive(Debug, Default)]
pub(crate) struct Table {
    routes: Vec<(IpNet, Port)>,
    /// Addresses that have a port of their own.
    hosts: HashMap<IpAddr, Port>,
    flows: HashMap<(Port, Port, u16), Option<FlowId>>,
}

impl Table {
    /// Packets to `prefix` go to `port`.
    pub fn route(&mut self, prefix: IpNet, port: Port) {
        self.routes.push((prefix, port));
        // Longest prefix first.
        self.routes
            .sort_by_key(|(p, behind)| (std::cmp::Reverse(p.prefix_len()), *behind));
    }

    /// Packets to this address go to `port`, even if a prefix says otherwise.
    pub fn host(&mut self, address: IpAddr, port: Port) {
        self.hosts.insert(address, port);
    }

    /// This address has no port of its own any more.
    pub fn forget(&mut self, address: IpAddr) {
        self.hosts.remove(&address);
    }

    /// The port that belongs to an address alone.
    pub fn own(&self, address: IpAddr) -> Option<Port> {
        self.hosts.get(&address).copied()
    }

    /// The port that packets to an address go to.
    pub fn port(&self, address: IpAddr) -> Option<Port> {
        if let Some(port) = self.hosts.get(&address) {
            return Some(*port);
        }
        let mut routes = self.routes.iter();
        routes
            .find(|(p, _)| p.contains(&address))
            .map(|(_, port)| *port)
    }

    /// The flow for a bucket between two ports, and whether the packet goes in its reverse direction. `None` if both
    /// ports are on one side.
    pub fn flow(
        &mut self,
        world: &mut World,
        from: Port,
        to: Port,
        bucket: u16,
        tag: Tag,
    ) -> Option<(FlowId, bool)> {
        let back = to < from;
        let ports = if back { [to, from] } else { [from, to] };
        let flow = self.flows.entry((ports[0], ports[1], bucket));
        let flow = flow.or_insert_with(|| world.join(ports, tag));
        flow.map(|f| (f, back))
    }
}

/// Packets between two programs are foreground. All others have a background host at one end at least.
pub(crate) fn tag(observed: bool) -> Tag {
    if observed {
        Tag::Foreground
    } else {
        Tag::Background
    }
}

/// The bucket of a packet, the same in both directions. All fragments of a datagram have the same, without ports, as in
/// Linux (net/core/flow_dissector.c). It is also without the protocol: in IPv6 only the first fragment shows what is
/// behind further extension headers. The hash is FNV-1a (Fowler, Noll and Vo; RFC 9923).
pub(crate) fn bucket(header: &Header) -> u16 {
    let (ports, protocol) = match header.fragment {
        None => (header.ports, header.protocol),
        Some(_) => ([0; 2], 0),
    };
    let mut ends = [(header.source, ports[0]), (header.destination, ports[1])];
    ends.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for &b in bytes {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (address, port) in ends {
        match address {
            IpAddr::V4(a) => add(&a.octets()),
            IpAddr::V6(a) => add(&a.octets()),
        }
        add(&port.to_be_bytes());
    }
    add(&[protocol]);
    (hash ^ hash >> 32) as u16 % BUCKETS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_of_a_datagram_have_one_bucket() {
        // An IPv6 datagram whose fragment header is followed by destination options, and then by UDP.
        let [fragment, options, udp] = [44, 60, 17];
        let mut first = vec![0; 40];
        (first[0], first[6], first[23], first[39]) = (0x60, fragment, 1, 2);
        first.extend([options, 0, 0, 1, 1, 2, 3, 4]);
        first.extend([udp, 0, 1, 4, 0, 0, 0, 0]);
        first.extend([0, 53, 1, 0, 0, 0, 0, 0]);
        // The second fragment has an offset, and data in the place of the options.
        let mut second = first.clone();
        second[43] = 8;
        let [a, b] = [&first, &second].map(|packet| Header::of(packet).unwrap());
        assert_ne!(a.protocol, b.protocol);
        assert_eq!(bucket(&a), bucket(&b));
    }
}
