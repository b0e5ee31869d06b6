//! Sockets, made ready to connect.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{SocketType, bind, connect, sockopt};

use super::playing::Marks;
use swell_host::sys::tcp as sys;
use swell_sockets::{Here, Sockets, family};

/// A socket for what goes to `to`, from an address that need be on no interface (ip(7), `IP_FREEBIND`).
pub(super) fn socket(to: IpAddr, from: Option<IpAddr>, kind: SocketType) -> Result<OwnedFd> {
    let socket = Here.socket(family(to), kind)?;
    if let Some(from) = from {
        let fd = socket.as_fd();
        if from.is_ipv6() {
            sockopt::set_ipv6_freebind(fd, true)?;
        } else {
            sockopt::set_ip_freebind(fd, true)?;
        }
        // The port is left to connect(2), which finds one for the pair of addresses.
        sys::port_at_connect(fd)?;
        bind(fd, &SocketAddr::new(from, 0))?;
    }
    Ok(socket)
}

/// Begins a handshake.
pub(super) fn begin_connect(fd: impl AsFd, to: &SocketAddr) -> Result<()> {
    match connect(fd, to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives a connection its code point and congestion control, one of `names`; true where it did not get
/// the latter.
pub(super) fn mark(fd: BorrowedFd<'_>, ipv6: bool, marks: Marks, names: &[String]) -> Result<bool> {
    if marks.dscp != 0 {
        set_dscp(fd, ipv6, marks.dscp)?;
    }
    let name = names.get(usize::from(marks.congestion));
    Ok(name.is_some_and(|name| sockopt::set_tcp_congestion(fd, name).is_err()))
}

/// Sets the code point of what a socket sends (RFC 2474: the upper six bits of the byte).
pub(super) fn set_dscp(fd: BorrowedFd<'_>, ipv6: bool, dscp: u8) -> Result<()> {
    let byte = dscp << 2;
    if ipv6 {
        sockopt::set_ipv6_tclass(fd, byte.into())
    } else {
        sockopt::set_ip_tos(fd, byte)
    }
}
