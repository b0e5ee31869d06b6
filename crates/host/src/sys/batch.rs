//! Packets that cross a device, many per system call.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Result;

use super::devices::{bind_packet_socket, new_packet_socket};
use super::socket::{last, set};
use super::tcp::message;

/// Maximum number of packets per call.
pub const AT_ONCE: usize = 64;
/// Number of bytes kept of each packet: the headers of IPv4 and UDP, and eight bytes of payload.
pub const FRONT: usize = 36;
/// Socket buffer size in bytes, enough for a stall of a busy machine.
const BUFFER: c_int = 32 << 20;

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

/// A socket that receives copies of a device's IPv4 packets, including those it sends (packet(7), `SOCK_DGRAM`:
/// starting at the network-layer header).
pub fn tap(index: u32) -> io::Result<OwnedFd> {
    let socket = new_packet_socket(libc::SOCK_DGRAM)?;
    bind_packet_socket(&socket, index)?;
    roomy(socket.as_fd());
    Ok(socket)
}
