//! Re-execution of the executable for processes inside a host: its first process, and the short-lived one that
//! becomes a program.
//!
//! A process with threads cannot safely continue after fork. Everything between fork and the program therefore
//! happens in a fresh execution of the same file, which [`helper_main`] recognises.

use super::inside;
use super::probe;
use super::sys::devices as sys;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// First argument of a helper, followed by its role.
pub(super) const HELPER: &str = "__swell-host";
pub(super) const INIT: &str = "init";
pub(super) const RUN: &str = "run";
pub(super) const PROBE: &str = "probe";

/// Exit code of a helper that could not report its failure. Shells use this number for a command that cannot be
/// executed.
const CANNOT_EXECUTE: u8 = 126;

/// Must be called first in `main`, before any thread starts. If the process is a helper of a host, it does its work
/// here and `main` must return the code. Otherwise this does nothing.
#[must_use = "a helper must end with this code"]
pub fn helper_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HELPER {
        return None;
    }
    let role = arguments.next();
    if role.as_deref().is_some_and(|r| r == PROBE) {
        let written = io::stdout().write_all(probe::answer().as_bytes());
        return Some(ExitCode::from(u8::from(written.is_err())));
    }
    // The other side is connected to standard input, a descriptor that every process has without races.
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else {
        return Some(ExitCode::from(CANNOT_EXECUTE));
    };
    let socket = UnixStream::from(socket);
    match role.as_deref().and_then(|r| r.to_str()) {
        Some(INIT) => init(socket),
        Some(RUN) => run(socket, arguments.collect()),
        _ => {}
    }
    Some(ExitCode::from(CANNOT_EXECUTE))
}

/// The first process of a host's process namespace. When it ends, the kernel kills all others. It ends when its
/// creator does, for any reason.
fn init(mut socket: UnixStream) {
    // Set before anything else. If the parent has already ended, the read below fails.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    sys::reap_automatically();
    let _ = rustix::thread::set_name(c"swell-host");
    let made = (|| -> Result<(), inside::Failed> {
        let reading = inside::Failed::step("read the configuration");
        let mut files = [const { String::new() }; 4];
        for file in &mut files {
            *file = read_text(&mut socket).map_err(&reading)?;
        }
        let [name, hosts, resolv, nsswitch] = files;
        inside::furnish(&name, &hosts, &resolv, &nsswitch)
    })();
    let message = match made {
        Ok(()) => String::new(),
        Err(failed) => format!("{}\n{}", failed.code, failed.step),
    };
    if write_text(&mut socket, &message).is_err() {
        return;
    }
    // No further data ever arrives: the read returns when the other end is closed.
    while let Err(e) = socket.read(&mut [0]) {
        if e.kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Becomes a program inside the host. Returns only on failure, after writing the reason to the socket: the error number,
/// which is negative if the working directory cannot be entered.
fn run(mut socket: UnixStream, arguments: Vec<OsString>) {
    let number = |e: io::Error| e.raw_os_error().unwrap_or(libc::EIO);
    let code = match become_program(&socket, &arguments) {
        NotStarted::Directory(e) => -number(e),
        NotStarted::Program(e) => number(e),
    };
    let _ = socket.write_all(&code.to_ne_bytes());
}

/// Why a program was not started.
enum NotStarted {
    /// Its working directory cannot be entered.
    Directory(io::Error),
    /// It cannot be executed, or a step before that failed.
    Program(io::Error),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> NotStarted {
        NotStarted::Program(error)
    }
}

impl From<Errno> for NotStarted {
    fn from(error: Errno) -> NotStarted {
        NotStarted::Program(error.into())
    }
}

fn become_program(socket: &UnixStream, arguments: &[OsString]) -> NotStarted {
    let [directory, program, rest @ ..] = arguments else {
        return Errno::INVAL.into();
    };
    let entered = (|| -> Result<(), NotStarted> {
        let [stdin, stdout, stderr, mount, uts, ipc] = receive(socket)?;
        for (namespace, kind) in [
            (&mount, LinkNameSpaceType::Mount),
            (&uts, LinkNameSpaceType::HostNameAndNISDomainName),
            (&ipc, LinkNameSpaceType::InterProcessCommunication),
        ] {
            move_into_link_name_space(namespace.as_fd(), Some(kind))?;
        }
        // Entering a mount namespace changes the working directory to its root.
        std::env::set_current_dir(directory).map_err(NotStarted::Directory)?;
        rustix::stdio::dup2_stdin(&stdin)?;
        rustix::stdio::dup2_stdout(&stdout)?;
        rustix::stdio::dup2_stderr(&stderr)?;
        // Linux's default, in case the thread that started this process had a smaller timer slack.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(50_000));
        drop_privileges()?;
        Ok(())
    })();
    match entered {
        Err(e) => e,
        Ok(()) => Command::new(program).args(rest).exec().into(),
    }
}

/// For a user who is not root, the program gets no more privileges than it had outside; root stays root.
fn drop_privileges() -> rustix::io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    rustix::thread::clear_ambient_capability_set()?;
    let held = rustix::thread::capabilities(None)?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            inheritable: CapabilitySet::empty(),
            ..held
        },
    )
}

/// Sends descriptors to a helper.
pub(super) fn send(socket: &UnixStream, descriptors: [BorrowedFd<'_>; 6]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::NOBUFS.into());
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

fn receive(socket: &UnixStream) -> io::Result<[OwnedFd; 6]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut [0])],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let received: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    received
        .try_into()
        .map_err(|_| io::Error::from(Errno::PROTO))
}

/// Writes a text preceded by its length.
pub(super) fn write_text(socket: &mut UnixStream, text: &str) -> io::Result<()> {
    socket.write_all(&(text.len() as u32).to_ne_bytes())?;
    socket.write_all(text.as_bytes())
}

/// Reads a text written by [`write_text`].
pub(super) fn read_text(socket: &mut UnixStream) -> io::Result<String> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut text = String::new();
    let expected = u64::from(u32::from_ne_bytes(length));
    if socket.take(expected).read_to_string(&mut text)? as u64 != expected {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(text)
}
