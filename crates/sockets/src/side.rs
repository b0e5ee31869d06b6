//! Socket creation in each side's network namespace.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Result;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Prefix;

/// Creates sockets. A socket stays in the network namespace in which it was created, so its creator decides where a
/// host is.
///
/// A closure from address family and type to a socket implements this trait. Sockets need not be non-blocking.
pub trait Sockets: Send {
    /// A socket that is neither bound nor connected.
    ///
    /// # Errors
    /// Those of socket(2).
    fn socket(&mut self, family: AddressFamily, kind: SocketType) -> Result<OwnedFd>;
}

impl<F> Sockets for F
where
    F: FnMut(AddressFamily, SocketType) -> Result<OwnedFd> + Send,
{
    fn socket(&mut self, family: AddressFamily, kind: SocketType) -> Result<OwnedFd> {
        self(family, kind)
    }
}

/// Sockets of the calling thread's namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here;

impl Sockets for Here {
    fn socket(&mut self, family: AddressFamily, kind: SocketType) -> Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socket_with(family, kind, flags, None)
    }
}

/// Sockets of another network namespace, which the calling thread enters for the duration of one call. Needs
/// `CAP_SYS_ADMIN` in the user namespaces that own the two (setns(2)).
#[derive(Debug)]
pub struct InNamespace {
    there: OwnedFd,
    home: OwnedFd,
}

impl InNamespace {
    /// Creates sockets in the namespace of which `there` is a descriptor (`/proc/PID/ns/net`). The carrier's thread
    /// must be in the namespace of which `home` is a descriptor.
    pub fn new(there: OwnedFd, home: OwnedFd) -> InNamespace {
        InNamespace { there, home }
    }
}

impl Sockets for InNamespace {
    fn socket(&mut self, family: AddressFamily, kind: SocketType) -> Result<OwnedFd> {
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(self.there.as_fd(), network)?;
        let socket = Here.socket(family, kind);
        move_into_link_name_space(self.home.as_fd(), network)?;
        socket
    }
}

/// One side's sockets and addresses.
pub struct SideConfig {
    /// Creates its sockets.
    pub sockets: Box<dyn Sockets>,
    /// IPv4 addresses of its hosts. All must be local in the namespace of its sockets: a loopback network, or `ip
    /// route add local PREFIX dev lo`.
    pub ipv4: Prefix,
    /// IPv6 addresses of its hosts: `ip -6 route add local PREFIX dev lo`. Without them every connection uses IPv4,
    /// regardless of [`Wire::ipv6`](swell_workload::Wire::ipv6).
    pub ipv6: Option<Prefix>,
    /// The interface from which its servers accept connections; `None` means all. Connections from unknown peers are
    /// closed at once, but such peers do see an open port.
    pub device: Option<String>,
}

impl SideConfig {
    /// 65 534 addresses of the loopback network, a /16 of its own for each side, and `::1`.
    pub fn loopback(side: super::Side) -> SideConfig {
        let net = match side {
            super::Side::Left => 1,
            super::Side::Right => 2,
        };
        let ipv4 = Prefix::new([127, net, 0, 0].into(), 16);
        let ipv6 = Prefix::new(std::net::Ipv6Addr::LOCALHOST.into(), 128);
        SideConfig {
            sockets: Box::new(Here),
            ipv4: ipv4.expect("16 is at most 32"),
            ipv6,
            device: Some("lo".into()),
        }
    }
}

/// The socket family for an address.
pub fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    }
}

/// Checks that a socket can be bound to `address`.
pub(super) fn try_address(sockets: &mut dyn Sockets, address: IpAddr) -> Result<()> {
    let socket = sockets.socket(family(address), SocketType::DGRAM)?;
    let fd = socket.as_fd();
    if address.is_ipv6() {
        // A local route alone does not make an IPv6 address bindable (`inet6_bind` in `net/ipv6/af_inet6.c`).
        sockopt::set_ipv6_freebind(fd, true)?;
    }
    bind(fd, &SocketAddr::new(address, 0))
}
