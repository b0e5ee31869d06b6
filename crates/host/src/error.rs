//! What can go wrong when hosts are made, and what to do about it.

use super::segment::SegmentError;
use std::io;

/// Why hosts cannot be made here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Own user namespaces are refused, and the caller is not root.
    #[error("this user may not make network namespaces: {reason}\nhint: {advice}, or run as root")]
    Refused {
        /// What the kernel refuses, as far as it is known.
        reason: String,
        /// What would change that.
        advice: String,
    },
    /// The process had threads already.
    #[error(
        "the process has {0} threads already; an own user namespace can only be entered before any other \
         thread starts"
    )]
    Threads(usize),
    /// A step of making a host failed.
    #[error("host `{host}`: {step}: {source}")]
    Step {
        /// The host's name.
        host: String,
        /// What was being done.
        step: String,
        /// What the kernel answered.
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
    /// The configuration makes no sense.
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
        /// The program's name as it was given.
        program: String,
        /// Why.
        reason: String,
        /// The exit code that shells give this: 127 where there is no such program, 126 where it cannot be
        /// executed (POSIX.1-2017 XCU section 2.8.2).
        code: u8,
    },
}

/// The device delivered something that is not a packet.
impl From<SegmentError> for io::Error {
    fn from(error: SegmentError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Names the step that failed.
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
