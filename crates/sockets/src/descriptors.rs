//! Budget of file descriptors.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use swell_base::{Code, Warning};

use super::SocketsError;

/// Counts descriptors, so that a connection is refused when it is opened, and not when its server end is accepted.
#[derive(Debug)]
pub(super) struct Descriptors {
    limit: u64,
    /// Maximum number of pairs for connections, and the number in use.
    pairs: u64,
    taken: u64,
    /// Reserve descriptor, used to accept and refuse a connection when no other is left.
    spare: Option<OwnedFd>,
}

/// Descriptors left to the rest of the process.
const RESERVE: u64 = 64;
/// A carrier that can hold fewer connections than this reports that the limit is low.
const MANY: u64 = 20_000;

impl Descriptors {
    /// Raises the soft limit to the hard limit.
    pub fn raised() -> Result<(Descriptors, Option<Warning>), SocketsError> {
        let now = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        };
        // If this is refused, the soft limit stays.
        let _ = setrlimit(Resource::Nofile, raised);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let used = used();
        let pairs = limit.saturating_sub(used + RESERVE) / 2;
        if pairs == 0 {
            return Err(SocketsError::Descriptors { limit, used });
        }
        let low = (pairs < MANY).then(|| {
            Warning::note(
                Code::DescriptorLimit,
                format!(
                    "at most {pairs} connections at a time: a connection takes two of the {limit} \
                     descriptors that this process may have; raise the hard limit (`ulimit -Hn`) \
                     for more"
                ),
            )
        });
        let descriptors = Descriptors {
            limit,
            pairs,
            taken: 0,
            spare: spare(),
        };
        Ok((descriptors, low))
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes the two descriptors of a connection; returns false if there are none left.
    pub fn take_pair(&mut self) -> bool {
        let free = self.taken < self.pairs;
        self.taken += u64::from(free);
        free
    }

    pub fn give_back_pair(&mut self) {
        self.taken -= 1;
    }

    /// Whether descriptors are scarce, so that none should be kept without need.
    pub fn are_scarce(&self) -> bool {
        self.taken > self.pairs / 2
    }

    /// Pretends that there are only `pairs`.
    #[cfg(test)]
    pub fn allow(&mut self, pairs: u64) {
        self.pairs = pairs;
    }

    /// Accepts the connection that has waited longest and resets it. Returns false if even that is impossible.
    pub fn refuse(&mut self, listener: BorrowedFd<'_>) -> bool {
        if self.spare.take().is_none() {
            self.spare = spare();
            return false;
        }
        let refused = accept_with(listener, SocketFlags::CLOEXEC).is_ok();
        self.spare = spare();
        refused
    }
}

fn spare() -> Option<OwnedFd> {
    File::open("/dev/null").ok().map(OwnedFd::from)
}

/// Number of descriptors in use; an estimate if the kernel does not report it.
fn used() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(RESERVE, |fds| fds.count() as u64)
}
