//! The kernel's routes, asked for one destination at a time.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::netlink::Netlink;

/// How long an answer is used. A changed route is noticed after this time.
const FRESH: Duration = Duration::from_secs(1);
/// Most answers that are kept: senders could make the table grow with invented destinations.
const MOST: usize = 1 << 14;

/// The routes of one network namespace.
pub struct Routes {
    netlink: Netlink,
    known: HashMap<IpAddr, (Option<u32>, Instant)>,
}

impl Routes {
    /// The routes of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel has no netlink socket to give.
    pub fn open() -> io::Result<Routes> {
        Ok(Routes {
            netlink: Netlink::open()?,
            known: HashMap::new(),
        })
    }

    /// Index of the interface by which packets to an address leave this machine; `None` if there is no route, or the
    /// address is the machine's own. The answer is at most a second old.
    pub fn interface(&mut self, to: IpAddr) -> Option<u32> {
        let now = Instant::now();
        if let Some((index, asked)) = self.known.get(&to)
            && now.duration_since(*asked) < FRESH
        {
            return *index;
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let index = self.netlink.egress(to).unwrap_or(None);
        self.known.insert(to, (index, now));
        index
    }
}
