//! Access paths: built on first use, shared by key, and removed with their last flow.

use std::collections::BTreeMap;

use swell_base::{Bytes, Dur, QueueLimit, Rate};
use swell_path::{LinkConfig, Loss};
use swell_workload::Access;

use crate::index::{LinkIndex, NONE};

/// The two links of an access path, and the number of flows that use them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub up: LinkIndex,
    pub down: LinkIndex,
    pub users: u32,
    /// The name under which the path is shared.
    name: Name,
}

/// Workload, the queue that the host sends onto (it separates hosts on the left from those on the right), and key.
type Name = (u32, LinkIndex, u64);

/// Access paths in use, by handle.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    pairs: BTreeMap<u32, Pair>,
    /// Handles of shared paths.
    shared: BTreeMap<Name, u32>,
    next: u32,
}

/// Handle of a host without an access link: it is attached directly to a shared link.
pub(crate) const AT_BOTTLENECK: u32 = 0;

/// Names of the two links of an access path. Their random streams derive from these names.
pub(crate) const UP: &str = "access/up";
pub(crate) const DOWN: &str = "access/down";

impl Accesses {
    /// Returns the handle and the links of the path for `access`. `make` builds a link.
    pub fn take(
        &mut self,
        (workload, side): (u32, LinkIndex),
        access: &Access,
        mut make: impl FnMut(&LinkConfig, u32, &str) -> LinkIndex,
    ) -> (u32, Pair) {
        let name = (workload, side, access.key);
        if access.key != 0
            && let Some(handle) = self.shared.get(&name)
            && let Some(pair) = self.pairs.get_mut(handle)
        {
            pair.users += 1;
            return (*handle, *pair);
        }
        let up = link(access.delay, access.up, access.loss_up);
        let down = link(access.delay, access.down, access.loss_down);
        if up.is_none() && down.is_none() {
            return (
                AT_BOTTLENECK,
                Pair {
                    up: NONE,
                    down: NONE,
                    users: 0,
                    name,
                },
            );
        }
        self.next += 1;
        let handle = self.next;
        let mut build = |config: Option<LinkConfig>, direction| {
            config.map_or(NONE, |c| make(&c, handle, direction))
        };
        let pair = Pair {
            up: build(up, UP),
            down: build(down, DOWN),
            users: 1,
            name,
        };
        self.pairs.insert(handle, pair);
        if access.key != 0 {
            self.shared.insert(name, handle);
        }
        (handle, pair)
    }

    /// Removes one user of `handle`. Returns the links to remove if it was the last user.
    pub fn give_back(&mut self, handle: u32) -> Option<Pair> {
        let pair = self.pairs.get_mut(&handle)?;
        pair.users -= 1;
        if pair.users > 0 {
            return None;
        }
        let gone = self.pairs.remove(&handle)?;
        if self.shared.get(&gone.name) == Some(&handle) {
            self.shared.remove(&gone.name);
        }
        Some(gone)
    }
}

/// Configuration of an access link; `None` if it has no delay, no rate and no loss. It queues a quarter of a second
/// at its rate, but at least 64 KiB, which holds a slow-start window. Home routers and modems buffer similar amounts:
/// Dischinger et al., IMC 2007, measure 100 ms to seconds.
pub(crate) fn link(delay: Dur, rate: Option<Rate>, loss: f64) -> Option<LinkConfig> {
    if delay == Dur::ZERO && rate.is_none() && loss <= 0.0 {
        return None;
    }
    let quarter = rate.map_or(0, |r| r.carried_in(Dur::from_millis(250)).0);
    Some(LinkConfig {
        rate,
        delay,
        queue: QueueLimit::Bytes(Bytes(quarter.max(65_536))),
        loss: if loss > 0.0 {
            Loss::Independent { p: loss.min(1.0) }
        } else {
            Loss::None
        },
        ..LinkConfig::default()
    })
}
