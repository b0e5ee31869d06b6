//! Datagrams: several per call, and with their source and destination addresses.

use std::ffi::c_int;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

use super::socket::{last, set};
use super::tcp::message;

/// Accepts connections when their first bytes have arrived, or after this many seconds (tcp(7), `TCP_DEFER_ACCEPT`).
pub fn defer_accept(fd: BorrowedFd<'_>, seconds: u32) -> Result<()> {
    set(
        fd,
        libc::SOL_TCP,
        libc::TCP_DEFER_ACCEPT,
        c_int::try_from(seconds).unwrap_or(1),
    )
}

/// Lets [`receive_from`] report the destination address of a datagram (ip(7), `IP_PKTINFO`; ipv6(7)). For a socket of
/// one family, the option of the other family is refused or has no effect.
pub fn tell_destination(fd: BorrowedFd<'_>) -> Result<()> {
    let six = set(fd, libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1);
    let four = set(fd, libc::SOL_IP, libc::IP_PKTINFO, 1);
    six.or(four)
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its full length, even if the buffer was smaller.
    pub bytes: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// Its destination address, if known.
    pub to: Option<IpAddr>,
}

/// Space for a control message with an `in6_pktinfo` or an `in_pktinfo`, aligned as the kernel requires.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    room: [u64; 16],
}

/// Receives a datagram and copies only its first bytes.
#[expect(unsafe_code, reason = "no safe call gives this control message")]
pub fn receive_from<const N: usize>(fd: BorrowedFd<'_>, front: &mut [u8; N]) -> Result<Received> {
    let mut name = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut part = libc::iovec {
        iov_base: front.as_mut_ptr().cast(),
        iov_len: front.len(),
    };
    let mut control = Control { room: [0; 16] };
    let mut message = message(std::slice::from_mut(&mut part));
    message.msg_name = name.as_mut_ptr().cast();
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the kernel writes to memory that outlives the call, within the lengths given.
    let got = unsafe {
        libc::recvmsg(
            fd.as_raw_fd(),
            &raw mut message,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    let bytes = usize::try_from(got).map_err(|_| last())?;
    // SAFETY: zeros, or values written by the kernel.
    let name = unsafe { name.assume_init() };
    Ok(Received {
        bytes,
        from: address_of(&name).ok_or(Errno::AFNOSUPPORT)?,
        to: destination_of(&message),
    })
}

#[expect(unsafe_code, reason = "an address is one of several structures")]
fn address_of(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let at = (&raw const *name).cast::<u8>();
    match c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this structure is present; the storage is aligned for all.
            let a = unsafe { &*at.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from_bits(u32::from_be(a.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(a.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let a = unsafe { &*at.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
            let port = u16::from_be(a.sin6_port);
            Some(SocketAddrV6::new(ip, port, 0, a.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[expect(unsafe_code, reason = "control messages are a list in memory")]
fn destination_of(message: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: the kernel wrote the messages and their total length; these macros stay inside.
    let first = unsafe { libc::CMSG_FIRSTHDR(message) };
    if first.is_null() {
        return None;
    }
    // SAFETY: not null, so a header is present, followed by the data that its type indicates; it is read unaligned.
    unsafe {
        let data = libc::CMSG_DATA(first);
        match ((*first).cmsg_level, (*first).cmsg_type) {
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
            }
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)).into())
            }
            _ => None,
        }
    }
}

/// Answers a datagram from the address to which it was sent, with the given DSCP.
#[expect(unsafe_code, reason = "no safe call takes this control message")]
pub fn answer<const N: usize>(
    fd: BorrowedFd<'_>,
    to: &Received,
    dscp: u8,
    header: &[u8; N],
    size: u32,
    payload: &[u8],
) -> Result<usize> {
    let mut name = storage_of(&to.from);
    let mut parts = parts_of(header, size, payload);
    let mut control = Control { room: [0; 16] };
    let mut message = message(&mut parts);
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = name_length(&to.from);
    let mut used = 0;
    if let Some(source) = to.to {
        used += match source {
            IpAddr::V6(a) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: a.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                put(&mut control, used, libc::SOL_IPV6, libc::IPV6_PKTINFO, info)
            }
            IpAddr::V4(a) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: a.to_bits().to_be(),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                put(&mut control, used, libc::SOL_IP, libc::IP_PKTINFO, info)
            }
        };
    }
    if dscp != 0 {
        let byte = c_int::from(dscp << 2);
        // The option belongs to the family used on the wire: an IPv4-mapped IPv6 address means IPv4.
        let (level, kind) = match to.from.ip().to_canonical() {
            IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_TCLASS),
            IpAddr::V4(_) => (libc::SOL_IP, libc::IP_TOS),
        };
        used += put(&mut control, used, level, kind, byte);
    }
    if used > 0 {
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = used as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel only reads, from memory that outlives the call.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| last())
}

/// Writes a control message after the first `used` bytes; returns the space that it takes.
#[expect(unsafe_code, reason = "control messages are a list in memory")]
fn put<T>(control: &mut Control, used: usize, level: c_int, kind: c_int, value: T) -> usize {
    const { assert!(size_of::<T>() <= 24) };
    // SAFETY: only arithmetic.
    let (space, len, front) = unsafe {
        let size = size_of::<T>() as u32;
        (
            libc::CMSG_SPACE(size),
            libc::CMSG_LEN(size),
            libc::CMSG_LEN(0),
        )
    };
    let (space, front) = (space as usize, front as usize);
    assert!(
        used + space <= size_of::<Control>(),
        "room for both messages"
    );
    let at = (&raw mut *control).cast::<u8>();
    // SAFETY: header and value fit after `used`, as checked above; `CMSG_SPACE` keeps headers aligned.
    unsafe {
        let header = at.add(used).cast::<libc::cmsghdr>();
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = len as _;
        at.add(used + front).cast::<T>().write_unaligned(value);
    }
    space
}

/// Sends datagrams to the addresses in `to`, one each, or all to the peer of a connected socket if it is empty. Each has
/// a header and is filled up with payload to its size. Returns how many the kernel accepted.
#[expect(unsafe_code, reason = "no safe call")]
pub fn send_many<const N: usize>(
    fd: BorrowedFd<'_>,
    to: &[SocketAddr],
    headers: &[[u8; N]],
    sizes: &[u32],
    payload: &[u8],
) -> Result<usize> {
    let mut names: Vec<libc::sockaddr_storage> = to.iter().map(storage_of).collect();
    let mut parts: Vec<[libc::iovec; 2]> = headers
        .iter()
        .zip(sizes)
        .map(|(header, &size)| parts_of(header, size, payload))
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|two| libc::mmsghdr {
            msg_hdr: message(two),
            msg_len: 0,
        })
        .collect();
    for ((message, name), address) in messages.iter_mut().zip(&mut names).zip(to) {
        message.msg_hdr.msg_name = (&raw mut *name).cast();
        message.msg_hdr.msg_namelen = name_length(address);
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads the memory that the messages point to and writes a length into each message. All of it
    // outlives the call.
    let sent = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as _,
            flags,
        )
    };
    usize::try_from(sent).map_err(|_| last())
}

/// A header, followed by as much of `payload` as gives `size` bytes in total.
fn parts_of<const N: usize>(header: &[u8; N], size: u32, payload: &[u8]) -> [libc::iovec; 2] {
    let rest = (size as usize).saturating_sub(N).min(payload.len());
    [
        libc::iovec {
            iov_base: header.as_ptr().cast_mut().cast(),
            iov_len: N,
        },
        libc::iovec {
            iov_base: payload.as_ptr().cast_mut().cast(),
            iov_len: rest,
        },
    ]
}

fn name_length(address: &SocketAddr) -> libc::socklen_t {
    let bytes = match address {
        SocketAddr::V4(_) => size_of::<libc::sockaddr_in>(),
        SocketAddr::V6(_) => size_of::<libc::sockaddr_in6>(),
    };
    bytes as libc::socklen_t
}

#[expect(unsafe_code, reason = "an address is one of several structures")]
fn storage_of(address: &SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: integers, for which zero is a valid value.
    let mut storage = unsafe { MaybeUninit::<libc::sockaddr_storage>::zeroed().assume_init() };
    let at = (&raw mut storage).cast::<u8>();
    match address {
        SocketAddr::V4(a) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: a.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: a.ip().to_bits().to_be(),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is large enough and aligned for every address.
            unsafe { at.cast::<libc::sockaddr_in>().write(name) };
        }
        SocketAddr::V6(a) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: a.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: a.ip().octets(),
                },
                sin6_scope_id: a.scope_id(),
            };
            // SAFETY: as above.
            unsafe { at.cast::<libc::sockaddr_in6>().write(name) };
        }
    }
    storage
}

/// Gives the calling thread its own descriptor table, which initially contains those in `kept` and the standard ones.
/// Returns false, and the table stays shared, if the kernel is too old (before Linux 5.9) or a system call filter
/// forbids it. The limit of descriptors (getrlimit(2), `RLIMIT_NOFILE`) applies to a table, not to a process.
///
/// The thread must own no other descriptors, and from now on must open by itself all that it uses. A descriptor that
/// it closes stays open in the tables of other threads.
#[expect(unsafe_code, reason = "no safe call takes a range of descriptors")]
pub fn own_descriptors(kept: &[BorrowedFd<'_>]) -> bool {
    let mut kept: Vec<libc::c_uint> = kept
        .iter()
        // A descriptor is never negative.
        .filter_map(|fd| fd.as_raw_fd().try_into().ok())
        .collect();
    kept.sort_unstable();
    let close = |first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint| {
        if first > last {
            return true;
        }
        // SAFETY: descriptors closed in a table that no other thread has cannot belong to another thread. The flag
        // makes the table this thread's own before anything in it is closed (close_range(2)). The caller guarantees
        // that the thread owns none of them.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
    };
    // This range lies above all descriptors, so nothing is closed, but the table becomes the thread's own.
    let unshare = libc::CLOSE_RANGE_UNSHARE as libc::c_uint;
    if !close(libc::c_uint::MAX, libc::c_uint::MAX, unshare) {
        return false;
    }
    let mut first = 3;
    for fd in kept.into_iter().filter(|&fd| fd >= 3) {
        close(first, fd - 1, 0);
        first = fd + 1;
    }
    close(first, libc::c_uint::MAX, 0);
    true
}
