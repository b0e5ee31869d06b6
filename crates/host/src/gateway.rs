//! A gateway: a network namespace that joins hosts to the network of an existing interface by NAT (RFC 2663 section
//! 4.1.2, NAPT).
//!
//! The namespace has an address of its own on that network, by a macvlan device on the interface. So the machine's own
//! addresses, routes, rules and settings stay as they are. Nothing has a name outside: open files hold the namespace, and
//! the kernel removes it with its devices and rules when the process ends, for any reason.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::resume_unwind;
use std::thread;

use ipnet::{IpNet, Ipv4Net};
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::interface::{Interface, InterfaceFacts};
use super::masquerade::masquerade;
use super::netlink::{LOOPBACK, Netlink};
use super::setting::write_setting;
use super::sys;

/// The network behind a gateway, and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// An existing interface.
    pub interface: String,
    /// The gateway's address on the interface's network, with the length of the network's prefix. No host has it.
    pub outside: Ipv4Net,
    /// The router of the interface's network.
    pub via: Ipv4Addr,
    /// The gateway's address for the hosts that it joins, with the length of their prefix.
    pub inside: Ipv4Net,
}

/// A namespace that translates addresses.
pub struct Gateway {
    network: File,
}

/// The device on the interface of the machine.
const OUTSIDE: &str = "outside";
/// The gateway's device towards the hosts that it joins.
const INSIDE: &str = "inside";
/// The other end of that device, where frames are read and written.
const WIRE: &str = "wire";

impl Gateway {
    /// Creates a gateway on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// If this process may not create namespaces or devices, or the kernel lacks macvlan devices or nftables.
    pub fn create(uplink: &Uplink) -> io::Result<Gateway> {
        let facts = InterfaceFacts::of(&uplink.interface).map_err(during("read its properties"))?;
        let mut outer = Netlink::open()?;
        let network = on_thread(|| {
            sys::devices::unshare(UnshareFlags::NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let network = network.map_err(during("make a namespace"))?;
        outer
            .add_macvlan(OUTSIDE, facts.index, network.as_raw_fd())
            .map_err(during("create a macvlan device on it"))?;
        let gateway = Gateway { network };
        gateway.enter(|| set_up(uplink, facts.mtu))?;
        Ok(gateway)
    }

    /// Opens the gateway's end of the network of the hosts that it joins. `together` is as in [`Interface::open`].
    ///
    /// # Errors
    /// If it is open already, or this process may not read frames.
    pub fn open(&self, together: usize) -> io::Result<Interface> {
        self.enter(|| Interface::open(WIRE, together))
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        on_thread(|| {
            move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }
}

/// Runs `work` on a thread of its own, because namespaces belong to threads.
fn on_thread<R: Send>(work: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    thread::scope(|scope| {
        thread::Builder::new()
            .name("gateway".into())
            .spawn_scoped(scope, work)?
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Says which step failed.
fn during<E: Display>(step: impl Display) -> impl Fn(E) -> io::Error {
    move |error| io::Error::other(format!("{step}: {error}"))
}

/// Sets up the calling thread's network namespace. The rules precede the devices: no packet passes without them.
fn set_up(uplink: &Uplink, mtu: u32) -> io::Result<()> {
    for (path, value) in SETTINGS {
        write_setting(path, value).map_err(during(format!("write /proc/sys/net/{path}")))?;
    }
    // A kernel without IPv6 has nothing to turn off.
    for path in [
        "ipv6/conf/all/disable_ipv6",
        "ipv6/conf/default/disable_ipv6",
    ] {
        match write_setting(path, "1") {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(during(format!("write /proc/sys/net/{path}"))(e));
            }
            _ => {}
        }
    }
    let mut netlink = Netlink::open()?;
    netlink
        .add_pair(INSIDE, WIRE, None)
        .map_err(during("create a veth pair"))?;
    let inside = netlink.index(INSIDE)?;
    let outside = netlink.index(OUTSIDE)?;
    let wire = netlink.index(WIRE)?;
    masquerade(inside, outside).map_err(during("set rules of nftables"))?;
    netlink.raise(LOOPBACK)?;
    for (device, network) in [(inside, uplink.inside), (outside, uplink.outside)] {
        let address = LinkAttribute::Address(hardware(network.addr()));
        netlink
            .set_link(device, LinkFlags::empty(), vec![address])
            .map_err(during("set its hardware address"))?;
    }
    let mtu = vec![LinkAttribute::Mtu(mtu)];
    netlink
        .set_link(inside, LinkFlags::Up, mtu.clone())
        .map_err(during("bring its devices up"))?;
    // The kernel must not answer there for the gateway's addresses.
    netlink
        .set_link(wire, LinkFlags::Up | LinkFlags::Noarp, mtu)
        .map_err(during("bring its devices up"))?;
    netlink
        .add_network(inside, uplink.inside)
        .map_err(during(format!("add the address {}", uplink.inside)))?;
    netlink
        .raise(outside)
        .map_err(during("bring its macvlan device up"))?;
    netlink
        .add_network(outside, uplink.outside)
        .map_err(during(format!("add the address {}", uplink.outside)))?;
    let source = IpAddr::V4(uplink.outside.addr());
    netlink
        .add_neighbour_route(
            outside,
            IpNet::V4(Ipv4Net::default()),
            uplink.via.into(),
            source,
        )
        .map_err(during(format!("add the route by {}", uplink.via)))
}

/// The hardware address of a device with this address, a locally administered one (IEEE 802 section 8.4). It is the same
/// for the next gateway. Otherwise neighbours would send to the last one's until they ask again.
fn hardware(address: Ipv4Addr) -> Vec<u8> {
    [&[2, 0x73][..], &address.octets()].concat()
}

/// Files below /proc/sys/net. Reverse-path filtering (RFC 3704) drops packets with a source outside the hosts' prefix.
const SETTINGS: [(&str, &str); 5] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/rp_filter", "1"),
    ("ipv4/conf/default/rp_filter", "1"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
];
