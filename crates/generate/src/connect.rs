//! Creates sockets that are ready to connect.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{SocketType, bind, connect, sockopt};

use swell_host::sys::tcp as sys;
use swell_sockets::{Here, Sockets, family};

/// Endpoints of a transfer.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// Index of the server in the run.
    pub server: u16,
    pub to: SocketAddr,
    /// Source address; `None` if the kernel chooses it.
    pub from: Option<IpAddr>,
}

/// Socket options that differ between connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub dscp: u8,
    /// Index among the run's congestion controls.
    pub congestion: u8,
}

/// A socket for traffic to `to`, from an address that need not be assigned to an interface (ip(7), `IP_FREEBIND`).
pub(super) fn socket(to: IpAddr, from: Option<IpAddr>, kind: SocketType) -> Result<OwnedFd> {
    let socket = Here.socket(family(to), kind)?;
    if let Some(from) = from {
        let fd = socket.as_fd();
        if from.is_ipv6() {
            sockopt::set_ipv6_freebind(fd, true)?;
        } else {
            sockopt::set_ip_freebind(fd, true)?;
        }
        // The port is chosen by connect(2), which needs it to be unique only for this pair of addresses.
        sys::port_at_connect(fd)?;
        bind(fd, &SocketAddr::new(from, 0))?;
    }
    Ok(socket)
}

/// Starts a non-blocking connect.
pub(super) fn begin_connect(fd: impl AsFd, to: &SocketAddr) -> Result<()> {
    match connect(fd, to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Sets a connection's DSCP and congestion control, one of `names`. Returns true if the kernel refused the congestion
/// control.
pub(super) fn mark(fd: BorrowedFd<'_>, ipv6: bool, marks: Marks, names: &[String]) -> Result<bool> {
    if marks.dscp != 0 {
        set_dscp(fd, ipv6, marks.dscp)?;
    }
    let name = names.get(usize::from(marks.congestion));
    Ok(name.is_some_and(|name| sockopt::set_tcp_congestion(fd, name).is_err()))
}

/// Sets the DSCP of packets that a socket sends (RFC 2474: the upper six bits of the byte).
pub(super) fn set_dscp(fd: BorrowedFd<'_>, ipv6: bool, dscp: u8) -> Result<()> {
    let byte = dscp << 2;
    if ipv6 {
        sockopt::set_ipv6_tclass(fd, byte.into())
    } else {
        sockopt::set_ip_tos(fd, byte)
    }
}
