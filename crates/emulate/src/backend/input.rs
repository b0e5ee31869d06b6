//! What clients read from standard input.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use swell_base::{Code, Warning};
use swell_host::Stream;

/// This process's standard input, to be opened anew (proc_pid_fd(5)).
const AGAIN: &str = "/proc/self/fd/0";

/// The standard input of clients that do not have this process's terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    #[default]
    Nothing,
    /// This process's standard input, which is a file, from this offset on. Every client reads all of it. The offset of
    /// this process stays, so a shell can read on.
    File(u64),
    /// Nothing, although this process's standard input is a pipe, a socket, or a file that it may not open again. To read it once for all clients could take
    /// for ever, because job runners leave such pipes open. It could also take the rest of a script from a shell.
    Withheld,
}

impl Input {
    /// What clients can read of this process's standard input.
    pub fn of_this_process() -> Input {
        let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else {
            return Input::Nothing;
        };
        let mut stdin = File::from(stdin);
        match stdin.metadata().map(|m| m.file_type()) {
            // A file of somebody else may be open and yet not to be opened again.
            Ok(kind) if kind.is_file() && File::open(AGAIN).is_ok() => {
                Input::File(stdin.stream_position().unwrap_or(0))
            }
            Ok(kind) if kind.is_file() || kind.is_fifo() || kind.is_socket() => Input::Withheld,
            _ => Input::Nothing,
        }
    }

    /// A warning if there is input that clients do not get.
    pub fn doubt(self) -> Option<Warning> {
        let waiting = || rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0);
        (self == Input::Withheld && waiting()).then(|| {
            Warning::warning(
                Code::InputNotRead,
                "standard input is a pipe, or a file of somebody else, with something in it, and the program got none of it: runs would have to share it. Give a file (<FILE), or write sh -c '... <FILE'",
            )
        })
    }

    /// Standard input for the next client.
    pub(super) fn stream(self) -> io::Result<Stream> {
        let Input::File(from) = self else {
            return Ok(Stream::Null);
        };
        let again = File::open(AGAIN).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            Ok(file)
        });
        let file = again.map_err(|e| io::Error::new(e.kind(), format!("standard input: {e}")))?;
        Ok(file.into())
    }
}
