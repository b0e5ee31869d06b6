//! Options and state of TCP sockets.

use std::ffi::c_int;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Result;

use super::socket::{done, last, set};

/// The kernel's state of one end of a connection (`TCP_INFO`, tcp(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// Smallest RTT in microseconds; `u32::MAX` before the first sample.
    pub min_rtt: u32,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Window offered by the other end, in bytes.
    pub send_window: u32,
}

/// From `linux/sockios.h`; the crate `libc` has it for few targets.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// Lets `connect` choose the port for the pair of addresses, instead of `bind` (ip(7), `IP_BIND_ADDRESS_NO_PORT`).
/// The number of ports then limits the connections to each server, not all of them together.
pub fn port_at_connect(fd: BorrowedFd<'_>) -> Result<()> {
    set(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Limits the segments of a connection, options included (tcp(7), `TCP_MAXSEG`).
pub fn set_max_segment(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_MAXSEG, int(bytes))
}

/// Caps the advertised window (tcp(7), `TCP_WINDOW_CLAMP`).
pub fn set_window_clamp(fd: BorrowedFd<'_>, bytes: u32) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_WINDOW_CLAMP, int(bytes))
}

/// Number of SYN retransmissions (tcp(7), `TCP_SYNCNT`).
pub fn set_syn_retries(fd: BorrowedFd<'_>, times: u8) -> Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_SYNCNT, c_int::from(times))
}

/// Acknowledgements requested by [`send_asking`] are reported through the error queue, without the data
/// (`Documentation/networking/timestamping.rst`, `SOF_TIMESTAMPING_OPT_TSONLY`).
pub fn report_acknowledgements(fd: BorrowedFd<'_>) -> Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, int(flags))
}

fn int(n: u32) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Accepts only packets that arrive on this interface (socket(7), `SO_BINDTODEVICE`).
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

/// Bytes written and not yet acknowledged; a FIN counts as one (tcp(7), `SIOCOUTQ`).
#[expect(unsafe_code, reason = "no safe call")]
pub fn unacknowledged(fd: BorrowedFd<'_>) -> Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int; `SIOCOUTQ` and `TIOCOUTQ` are the same number.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Bytes written and not yet sent (tcp(7), `SIOCOUTQNSD`).
#[expect(unsafe_code, reason = "no safe call")]
pub fn unsent(fd: BorrowedFd<'_>) -> Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// The kernel's state of this end.
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
    // SAFETY: a structure of integers, for which zeros and the kernel's output are valid values.
    let info = unsafe { info.assume_init() };
    Ok(Facts {
        retransmissions: info.tcpi_total_retrans,
        min_rtt: info.tcpi_min_rtt,
        mss: info.tcpi_snd_mss,
        send_window: info.tcpi_snd_wnd,
    })
}

/// A message to be sent or filled, without address and control messages.
#[expect(
    unsafe_code,
    reason = "on some systems it has padding that cannot be named"
)]
pub(super) fn message(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: integers and null pointers, for which zero is a valid value.
    let mut message = unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message
}

/// A control message with one number, laid out as by `CMSG_SPACE`.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    flags: u32,
    padding: u32,
}

/// Sends data and requests a notification when its last byte is acknowledged (`SOF_TIMESTAMPING_TX_ACK`).
#[expect(unsafe_code, reason = "no safe call takes this control message")]
pub fn send_asking(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: integers, for which zero is a valid value; on some systems there is padding that cannot be named.
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
