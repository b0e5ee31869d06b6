//! Many packets per system call.

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{Errno, Result};

use super::tcp::{last, message, set};

/// Maximum number of packets per call.
pub const AT_ONCE: usize = 64;
/// Number of bytes kept of each packet: the IPv4 header and the beginning of what follows.
pub const FRONT: usize = 32;
/// Socket buffer size in bytes, enough for a stall of a busy machine.
const BUFFER: c_int = 32 << 20;

/// A datagram to be sent: destination, payload size, and the number at the start of the payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbered {
    /// IPv4 address, in host order.
    pub to: u32,
    /// Bytes of payload.
    pub payload: usize,
    /// Number at the start of the payload.
    pub number: u64,
}

/// Sends datagrams to `port`; returns how many the kernel accepted.
#[expect(unsafe_code, reason = "no safe call sends several datagrams")]
pub fn send(fd: BorrowedFd<'_>, port: u16, all: &[Numbered], filling: &[u8]) -> Result<usize> {
    let all = &all[..all.len().min(AT_ONCE)];
    let numbers: Vec<[u8; 8]> = all.iter().map(|d| d.number.to_be_bytes()).collect();
    let mut names: Vec<libc::sockaddr_in> = all
        .iter()
        .map(|d| libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr {
                s_addr: d.to.to_be(),
            },
            sin_zero: [0; 8],
        })
        .collect();
    let part = |bytes: &[u8], length: usize| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: length.min(bytes.len()),
    };
    let mut parts: Vec<[libc::iovec; 2]> = all
        .iter()
        .zip(&numbers)
        .map(|(d, number)| [part(number, 8), part(filling, d.payload.saturating_sub(8))])
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .zip(&mut names)
        .map(|(two, name)| {
            let mut header = message(two);
            header.msg_name = (&raw mut *name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            libc::mmsghdr {
                msg_hdr: header,
                msg_len: 0,
            }
        })
        .collect();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let (first, count) = (messages.as_mut_ptr(), messages.len());
    // SAFETY: the kernel reads the memory that the messages point to and writes a length into each message. All of it
    // outlives the call.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), first, count as _, flags) };
    usize::try_from(sent).map_err(|_| last())
}

/// The first bytes of received packets.
pub struct Batch {
    fronts: [[u8; FRONT]; AT_ONCE],
    lengths: [usize; AT_ONCE],
    outgoing: [bool; AT_ONCE],
    count: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            fronts: [[0; FRONT]; AT_ONCE],
            lengths: [0; AT_ONCE],
            outgoing: [false; AT_ONCE],
            count: 0,
        }
    }
}

impl Batch {
    /// The first bytes of each packet, at most [`FRONT`], and whether this host sent it.
    pub fn packets(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.count).map(|i| (&self.fronts[i][..self.lengths[i]], self.outgoing[i]))
    }

    /// Receives the waiting packets, at most [`AT_ONCE`]. If none wait, the error is `AGAIN`.
    #[expect(unsafe_code, reason = "no safe call receives several packets")]
    pub fn receive(&mut self, fd: BorrowedFd<'_>) -> Result<usize> {
        // SAFETY: integers, for which zero is a valid value.
        let mut names: [libc::sockaddr_ll; AT_ONCE] = unsafe { std::mem::zeroed() };
        let mut parts = self.fronts.each_mut().map(|front| libc::iovec {
            iov_base: front.as_mut_ptr().cast(),
            iov_len: FRONT,
        });
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .zip(&mut names)
            .map(|(part, name)| {
                let mut header = message(std::slice::from_mut(part));
                header.msg_name = (&raw mut *name).cast();
                header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                libc::mmsghdr {
                    msg_hdr: header,
                    msg_len: 0,
                }
            })
            .collect();
        let (first, flags) = (messages.as_mut_ptr(), libc::MSG_DONTWAIT);
        // SAFETY: the kernel writes to the memory that the messages point to, within the given lengths. All of it
        // outlives the call.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                first,
                AT_ONCE as _,
                flags,
                std::ptr::null_mut(),
            )
        };
        self.count = 0;
        self.count = usize::try_from(received).map_err(|_| last())?.min(AT_ONCE);
        for (i, m) in messages.iter().take(self.count).enumerate() {
            self.lengths[i] = (m.msg_len as usize).min(FRONT);
            self.outgoing[i] = names[i].sll_pkttype == libc::PACKET_OUTGOING;
        }
        Ok(self.count)
    }
}

/// Sets the maximum buffer sizes, for receiving and for sending. Sent packets count too while they wait in the
/// router's backlog, where they are still charged to the sender (net/ipv4/ip_input.c, `ip_rcv_core`).
pub fn roomy(fd: BorrowedFd<'_>) {
    // Exceeding the machine's limit needs a privilege. With smaller buffers, packets are missed or refused.
    for (forced, asked) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if set(fd, libc::SOL_SOCKET, forced, BUFFER).is_err() {
            let _ = set(fd, libc::SOL_SOCKET, asked, BUFFER);
        }
    }
}

/// Datagrams that a socket dropped for lack of space (socket(7), `SO_MEMINFO`; linux/sock_diag.h,
/// `SK_MEMINFO_DROPS`).
#[expect(unsafe_code, reason = "no safe call gives these numbers")]
pub fn drops(fd: BorrowedFd<'_>) -> Result<u64> {
    const SO_MEMINFO: c_int = 55;
    const DROPS: usize = 8;
    let mut numbers = [0u32; DROPS + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the array.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            (&raw mut numbers).cast(),
            &raw mut length,
        )
    };
    if answer < 0 {
        return Err(last());
    }
    Ok(u64::from(numbers[DROPS]))
}

/// A socket that receives copies of a device's IPv4 packets, including those it sends (packet(7), `SOCK_DGRAM`:
/// starting at the network-layer header).
#[expect(
    unsafe_code,
    reason = "packet sockets have no safe wrapper with an address"
)]
pub fn tap(index: u32) -> Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: only numbers are passed. There is no protocol yet, so nothing is received from other devices.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(last());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        // Sockets bound to a single protocol do not receive outgoing packets.
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: c_int::try_from(index).map_err(|_| Errno::INVAL)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address lives during the call, and the length is that of the address.
    if unsafe { libc::bind(fd, (&raw const address).cast(), length) } < 0 {
        return Err(last());
    }
    Ok(socket)
}
