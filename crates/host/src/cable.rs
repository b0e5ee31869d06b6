//! A cable between two hosts: a veth pair, for traffic that does not pass an emulated network.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::PoisonError;

use ipnet::IpNet;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};

use super::Host;
use super::error::{During, Error};

/// Configuration of a host's end of a cable.
#[derive(Clone, Copy, Debug)]
pub struct CableEnd {
    /// The name of the device: [`CABLE`], unless the host has several cables.
    pub device: &'static str,
    /// The host's address on the cable.
    pub address: IpAddr,
    /// The prefix that is routed through the cable.
    pub prefix: IpNet,
}

/// The name of a host's only cable.
pub const CABLE: &str = "cable0";

/// The hardware address of both ends, a locally administered one (IEEE 802 section 8.4).
const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Connects two hosts by a cable that is as fast as the machine. Each host sends packets for the other's prefix
/// through it. It disappears with the hosts.
///
/// # Errors
/// If the kernel lacks veth devices (the module `veth`), or refuses a device or an address.
pub fn cable(a: (&Host, CableEnd), b: (&Host, CableEnd)) -> Result<(), Error> {
    let step = "lay a cable to the other host";
    lay(a, b).during(a.0.name(), step)?;
    for (one, other) in [(a, b), (b, a)] {
        plug_in(one.0, one.1, other.1).during(one.0.name(), step)?;
    }
    Ok(())
}

fn lay(a: (&Host, CableEnd), b: (&Host, CableEnd)) -> io::Result<()> {
    let mut netlink = a.0.netlink.lock().unwrap_or_else(PoisonError::into_inner);
    let there = b.0.namespaces.net.as_raw_fd();
    netlink.add_pair(a.1.device, b.1.device, Some(there))
}

fn plug_in(host: &Host, own: CableEnd, other: CableEnd) -> io::Result<()> {
    let mut netlink = host.netlink.lock().unwrap_or_else(PoisonError::into_inner);
    let index = netlink.index(own.device)?;
    // Hardware addresses are set in advance, because an address request sent too early would not be answered.
    let attributes = vec![LinkAttribute::Address(HARDWARE.to_vec())];
    netlink.set_link(index, LinkFlags::Up | LinkFlags::Noarp, attributes)?;
    netlink.add_address(index, own.address)?;
    netlink.add_neighbour_route(index, other.prefix, other.address, own.address)
}
