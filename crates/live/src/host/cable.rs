//! A cable between two hosts: a veth pair, for traffic that no world is to carry.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::PoisonError;

use ipnet::IpNet;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};

use super::Host;
use super::error::{During, Error};

/// What a host has at its end of a cable.
#[derive(Clone, Copy, Debug)]
pub struct CableEnd {
    /// The host's address on the cable.
    pub address: IpAddr,
    /// What the other end reaches through it.
    pub prefix: IpNet,
}

/// The name of the device in both hosts.
pub const CABLE: &str = "cable0";

/// The hardware address of both ends, one of those that no manufacturer has (IEEE 802 section 8.4).
const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Connects two hosts by a cable, as fast as the machine is. Each sends what is for the other's prefix
/// through it. It goes with the hosts.
///
/// # Errors
/// Where the kernel has no such devices (the module `veth`) or refuses one, or an address.
pub fn cable(a: (&Host, CableEnd), b: (&Host, CableEnd)) -> Result<(), Error> {
    let step = "lay a cable to the other host";
    lay(a.0, b.0).during(a.0.name(), step)?;
    for (one, other) in [(a, b), (b, a)] {
        plug_in(one.0, one.1, other.1).during(one.0.name(), step)?;
    }
    Ok(())
}

fn lay(a: &Host, b: &Host) -> io::Result<()> {
    let mut netlink = a.netlink.lock().unwrap_or_else(PoisonError::into_inner);
    netlink.add_pair(CABLE, CABLE, Some(b.namespaces.net.as_raw_fd()))
}

fn plug_in(host: &Host, own: CableEnd, other: CableEnd) -> io::Result<()> {
    let mut netlink = host.netlink.lock().unwrap_or_else(PoisonError::into_inner);
    let index = netlink.index(CABLE)?;
    // Neither end asks for the other's hardware address, which is its own: who asks early is not answered.
    let attributes = vec![LinkAttribute::Address(HARDWARE.to_vec())];
    netlink.set_link(index, LinkFlags::Up | LinkFlags::Noarp, attributes)?;
    netlink.add_address(index, own.address)?;
    netlink.add_neighbour_route(index, other.prefix, other.address, own.address)
}
