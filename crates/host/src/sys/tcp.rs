//! Options and facts of TCP sockets.

use std::ffi::c_int;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// What a kernel knows of one end of a connection (`TCP_INFO`, tcp(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Segments sent again.
    pub retransmissions: u32,
    /// Smallest round-trip time in microseconds; `u32::MAX` before the first sample.
    pub min_rtt: u32,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// What the other end offers to receive, bytes.
    pub send_window: u32,
}

fn done(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(last()) }
}

pub(super) fn last() -> Errno {
    let raw = std::io::Error::last_os_error().raw_os_error();
    // `last_os_error` always holds a number.
    Errno::from_raw_os_error(raw.unwrap_or(libc::EIO))
}

#[expect(unsafe_code, reason = "no safe call sets an option by number")]
pub(super) fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> Result<()> {
    // SAFETY: the kernel reads an int, which is what is given and how long it is said to be.
    done(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    })
}

/// The port is chosen by `connect`, for the pair of addresses, not by `bind` (ip(7),
/// `IP_BIND_ADDRESS_NO_PORT`): as many connections as there are ports to every server, not in all.
pub fn port_at_connect(fd: BorrowedFd<'_>) -> Result<()> {
    set(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Caps the segments of a connection, options included (tcp(7), `TCP_MAXSEG`).
pub fn set_max_segment(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_MAXSEG, int(bytes))
}

/// Caps the window that is offered (tcp(7), `TCP_WINDOW_CLAMP`).
pub fn set_window_clamp(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_WINDOW_CLAMP, int(bytes))
}

/// How often a SYN is sent again (tcp(7), `TCP_SYNCNT`).
pub fn set_syn_retries(fd: BorrowedFd<'_>, times: u8) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_SYNCNT, c_int::from(times))
}

/// Acknowledgements asked for by [`send_asking`] are reported through the error queue, without the data
/// (`Documentation/networking/timestamping.rst`, `SOF_TIMESTAMPING_OPT_TSONLY`).
pub fn report_acknowledgements(fd: BorrowedFd<'_>) -> Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, int(flags))
}

fn int(n: u32) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Only what comes in through this interface is taken (socket(7), `SO_BINDTODEVICE`).
#[expect(unsafe_code, reason = "no safe call")]
pub fn bind_to_device(fd: BorrowedFd<'_>, name: &str) -> Result<()> {
    // SAFETY: the kernel reads `name.len()` bytes from `name`.
    done(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    })
}

/// Bytes (a FIN counts one) that are written and not acknowledged (tcp(7), `SIOCOUTQ`).
#[expect(unsafe_code, reason = "no safe call")]
pub fn unacknowledged(fd: BorrowedFd<'_>) -> Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int, and `SIOCOUTQ` has the number of `TIOCOUTQ`.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// What the kernel knows of this end.
#[expect(unsafe_code, reason = "no safe call")]
pub fn facts(fd: BorrowedFd<'_>) -> Result<Facts> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `info`.
    done(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    })?;
    // SAFETY: a structure of integers, for which zeros and whatever the kernel wrote are values.
    let info = unsafe { info.assume_init() };
    Ok(Facts {
        retransmissions: info.tcpi_total_retrans,
        min_rtt: info.tcpi_min_rtt,
        mss: info.tcpi_snd_mss,
        send_window: info.tcpi_snd_wnd,
    })
}

/// A message to be sent, or to be filled, without address and control messages.
#[expect(
    unsafe_code,
    reason = "on some systems it has padding that cannot be named"
)]
pub(super) fn message(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: integers and null pointers, for which zeros are values.
    let mut message = unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message
}

/// A control message of one number, as `CMSG_SPACE` would lay it out.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    flags: u32,
    padding: u32,
}

/// Sends and asks for a notice when the last byte of it is acknowledged (`SOF_TIMESTAMPING_TX_ACK`).
#[expect(unsafe_code, reason = "no safe call takes this control message")]
pub fn send_asking(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: integers, for which zeros are values; on some systems there is padding that cannot be named.
    let mut control = unsafe { MaybeUninit::<Control>::zeroed().assume_init() };
    let mut message = message(std::slice::from_mut(&mut part));
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SO_TIMESTAMPING;
    control.header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<u32>()) as _;
    control.flags = libc::SOF_TIMESTAMPING_TX_ACK;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the kernel only reads, from memory that outlives the call.
    let sent = unsafe {
        libc::sendmsg(
            fd.as_raw_fd(),
            &raw const message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| last())
}
