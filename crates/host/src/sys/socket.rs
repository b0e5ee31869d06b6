//! Options of sockets, and the errors of their calls.

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// The result of a call that returns zero if it succeeds.
pub(super) fn done(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(last()) }
}

/// The error of the call before.
pub(super) fn last() -> Errno {
    let raw = std::io::Error::last_os_error().raw_os_error();
    // `last_os_error` always holds a number.
    Errno::from_raw_os_error(raw.unwrap_or(libc::EIO))
}

/// Sets an option of a socket.
///
/// # Safety
/// `T` must be the type that the kernel reads for this option, and memory that it points to must outlive the call.
#[expect(unsafe_code, reason = "no safe call sets an option by number")]
pub(super) unsafe fn set_option<T>(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a value that lives during the call, and the length is that of the value.
    done(unsafe {
        let value = (&raw const *value).cast();
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value, length)
    })
}

/// Sets an option that is a number.
#[expect(unsafe_code, reason = "the option's type is known")]
pub(super) fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> Result<()> {
    // SAFETY: the kernel reads an int.
    unsafe { set_option(fd, level, name, &value) }
}
