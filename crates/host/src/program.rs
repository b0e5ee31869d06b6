//! A program started inside a host.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The connection of a program's standard stream.
#[derive(Debug, Default)]
pub enum Stream {
    /// The stream of this process.
    Inherit,
    /// Nothing.
    #[default]
    Null,
    /// A pipe whose other end is in [`Process`].
    Piped,
    /// An open file, socket or pipe.
    File(OwnedFd),
}

impl From<File> for Stream {
    fn from(file: File) -> Stream {
        Stream::File(file.into())
    }
}

/// A program to start.
#[derive(Debug, Default)]
pub struct Program {
    /// The program, looked up in PATH, and its arguments.
    pub argv: Vec<OsString>,
    /// Variables set in addition to those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` means that of this process.
    pub directory: Option<PathBuf>,
    /// Standard input.
    pub stdin: Stream,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
    /// Stay in this process's process group, which a program needs to read from the terminal. Otherwise the program
    /// gets its own group: [`Process::kill`] then also reaches its children, and Ctrl-C does not reach it.
    pub foreground: bool,
}

impl Program {
    /// A program with its arguments, with no input or output.
    pub fn new<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Program {
        Program {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Program::default()
        }
    }

    pub(super) fn name(&self) -> String {
        self.argv
            .first()
            .map_or_else(String::new, |p| p.to_string_lossy().into_owned())
    }
}

/// The two ends of a standard stream: the program's, and ours if it is a pipe.
pub(super) fn connect(stream: Stream, number: usize) -> io::Result<(OwnedFd, Option<File>)> {
    Ok(match stream {
        Stream::Inherit => {
            let ours = match number {
                0 => rustix::stdio::stdin(),
                1 => rustix::stdio::stdout(),
                _ => rustix::stdio::stderr(),
            };
            (rustix::io::fcntl_dupfd_cloexec(ours, 3)?, None)
        }
        Stream::Null => (
            OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/null")?
                .into(),
            None,
        ),
        Stream::Piped => {
            let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            if number == 0 {
                (reader, Some(writer.into()))
            } else {
                (writer, Some(reader.into()))
            }
        }
        Stream::File(file) => (file, None),
    })
}

/// The child process, shared by its [`Process`] and its host, because a host cannot end before all children are
/// reaped.
pub(super) type SharedChild = Arc<Mutex<Child>>;

/// A program that was started. Dropping it neither kills the program nor waits for it; the end of its host kills it.
#[derive(Debug)]
pub struct Process {
    child: SharedChild,
    pidfd: OwnedFd,
    pid: Pid,
    group: bool,
    /// Our end of standard input, if it is piped.
    pub stdin: Option<File>,
    /// Our end of standard output, if it is piped.
    pub stdout: Option<File>,
    /// Our end of standard error, if it is piped.
    pub stderr: Option<File>,
}

impl Process {
    pub(super) fn new(child: Child, group: bool, pipes: [Option<File>; 3]) -> io::Result<Process> {
        let pid = Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        let [stdin, stdout, stderr] = pipes;
        Ok(Process {
            child: Arc::new(Mutex::new(child)),
            pidfd,
            pid,
            group,
            stdin,
            stdout,
            stderr,
        })
    }

    pub(super) fn child(&self) -> SharedChild {
        Arc::clone(&self.child)
    }

    /// Its process ID as seen from outside the host.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the program to end, for at most this time. Returns the exit status, or `None` if it still runs.
    pub fn wait_timeout(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let left = left.try_into().map_err(|_| Errno::INVAL)?;
            // Readable once the process has ended (pidfd_open(2)).
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits for the program to end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait_timeout(Duration::from_secs(3600))? {
                return Ok(status);
            }
        }
    }

    /// The exit status, if the program has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        lock(&self.child).try_wait()
    }

    /// Kills the program, and its process group if it has its own (SIGKILL).
    pub fn kill(&mut self) -> io::Result<()> {
        // The lock keeps the process ID from being reused meanwhile, because it is free only after the child was
        // reaped.
        let mut child = lock(&self.child);
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        let sent = if self.group {
            rustix::process::kill_process_group(self.pid, Signal::KILL)
        } else {
            rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL)
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsFd for Process {
    /// Becomes readable when the program has ended, for use in an event loop.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// A panic elsewhere does not make the child's state invalid.
pub(super) fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}
