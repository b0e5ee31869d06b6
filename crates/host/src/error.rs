//! Errors of creating hosts, with advice.

use super::segment::SegmentError;
use std::io;

/// The reason why hosts cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// User namespaces are refused, and the caller is not root.
    #[error("this user may not make network namespaces: {reason}\nhint: {advice}, or run as root")]
    Refused {
        /// What the kernel refuses, as far as known.
        reason: String,
        /// What would change that.
        advice: String,
    },
    /// The process already had threads.
    #[error(
        "the process has {0} threads already; an own user namespace can only be entered before any other \
         thread starts"
    )]
    Threads(usize),
    /// A step of creating a host failed.
    #[error("host `{host}`: {step}: {source}")]
    Step {
        /// The host's name.
        host: String,
        /// The step.
        step: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel does not know the congestion control.
    #[error(
        "host `{host}`: the kernel has no congestion control `{asked}`; it has {available}\n\
         hint: as root, `modprobe tcp_{asked}` may load it"
    )]
    CongestionControl {
        /// The host's name.
        host: String,
        /// The name that was asked for.
        asked: String,
        /// What `tcp_available_congestion_control` lists.
        available: String,
    },
    /// The configuration is invalid.
    #[error("host `{host}`: {reason}")]
    Config {
        /// The host's name.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {reason}")]
    Program {
        /// The program's name as given.
        program: String,
        /// The reason.
        reason: String,
        /// The exit code that shells use: 127 if there is no such program, 126 if it cannot be executed (POSIX.1-2017
        /// XCU section 2.8.2).
        code: u8,
    },
}

/// The device delivered data that is not a packet.
impl From<SegmentError> for io::Error {
    fn from(error: SegmentError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Adds the name of the failed step to an error.
pub(super) trait During<T> {
    fn during(self, host: &str, step: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, host: &str, step: impl Into<String>) -> Result<T, Error> {
        self.map_err(|e| Error::Step {
            host: host.into(),
            step: step.into(),
            source: e.into(),
        })
    }
}
