//! Hosts that share a device. Each has its own address and access path for a time.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use swell_workload::Access;
use swell_world::{PathId, Port, PortConfig, World};

/// Tells the loop which address belongs to which host. An update that is made before a packet is sent takes effect
/// before that packet is read.
#[derive(Clone, Debug, Default)]
pub struct HostUpdates {
    pending: Arc<Pending>,
    /// The path whose two ends the hosts are attached to.
    path: PathId,
}

#[derive(Debug, Default)]
struct Pending {
    waiting: AtomicBool,
    updates: Mutex<Vec<Update>>,
}

/// A host was attached or detached.
#[derive(Clone, Copy, Debug)]
struct Update {
    right: bool,
    address: IpAddr,
    access: Option<Access>,
}

impl HostUpdates {
    /// Updates for hosts at the ends of `path`.
    pub fn on(path: PathId) -> HostUpdates {
        HostUpdates {
            path,
            ..HostUpdates::default()
        }
    }

    /// From now on `address` belongs to a host behind the access link `access`, at the right or the left end of the
    /// path.
    pub fn attach(&self, right: bool, address: IpAddr, access: &Access) {
        self.push(Update {
            right,
            address,
            access: Some(*access),
        });
    }

    /// From now on `address` belongs to no host.
    pub fn detach(&self, right: bool, address: IpAddr) {
        self.push(Update {
            right,
            address,
            access: None,
        });
    }

    fn push(&self, updates: Update) {
        let mut all = self
            .pending
            .updates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(updates);
        self.pending.waiting.store(true, Ordering::Release);
    }
}

/// Number of detached hosts whose addresses are remembered. Their kernels may still be closing connections, whose last
/// packets must not overtake the others on a shorter path.
const REMEMBERED: usize = 1 << 16;

/// The loop's side of [`HostUpdates`].
#[derive(Debug, Default)]
pub(super) struct AttachedHosts {
    updates: Option<HostUpdates>,
    /// Ports without a host. A later host with the same access path reuses one.
    free: Vec<(PortConfig, Port)>,
    /// The hosts that are attached now.
    present: Vec<(IpAddr, PortConfig, Port)>,
    /// Detachments, numbered, in their order; and the last number of each address without a host.
    detached: VecDeque<(u64, IpAddr)>,
    last: HashMap<IpAddr, u64>,
    detachments: u64,
}

impl AttachedHosts {
    pub fn of(updates: Option<HostUpdates>) -> AttachedHosts {
        AttachedHosts {
            updates,
            ..AttachedHosts::default()
        }
    }

    /// Applies pending updates. Calls `each` with every attached address and its port. The configuration is given if
    /// the port is new to the world.
    #[inline]
    pub fn update(
        &mut self,
        world: &mut World,
        mut each: impl FnMut(IpAddr, Port, Option<PortConfig>),
    ) {
        let Some(shared) = self.updates.clone() else {
            return;
        };
        let (pending, path) = (shared.pending, shared.path);
        if !pending.waiting.swap(false, Ordering::Acquire) {
            return;
        }
        let updates = std::mem::take(
            &mut *pending
                .updates
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for update in updates {
            match update.access {
                Some(access) => {
                    let config = PortConfig {
                        path,
                        right: update.right,
                        // The key identifies the host and does not affect its path. Clearing it lets ports be shared.
                        access: Access { key: 0, ..access },
                    };
                    let (port, new) = self.attach(world, update.address, config);
                    each(update.address, port, new);
                }
                None => self.detach(update.address),
            }
        }
    }

    fn attach(
        &mut self,
        world: &mut World,
        address: IpAddr,
        config: PortConfig,
    ) -> (Port, Option<PortConfig>) {
        let free = self.free.iter().position(|(c, _)| *c == config);
        let (port, new) = match free {
            Some(at) => (self.free.swap_remove(at).1, None),
            None => (world.add_port(&config), Some(config)),
        };
        self.present.push((address, config, port));
        self.last.remove(&address);
        (port, new)
    }

    /// Detaches a host. Packets on their way to the address still arrive.
    fn detach(&mut self, address: IpAddr) {
        if let Some(at) = self.present.iter().position(|(a, ..)| *a == address) {
            let (_, config, port) = self.present.swap_remove(at);
            self.free.push((config, port));
            self.detachments += 1;
            self.detached.push_back((self.detachments, address));
            self.last.insert(address, self.detachments);
        }
    }

    /// The next address that belonged to a host so long ago that it is to be forgotten.
    #[inline]
    pub fn forgotten(&mut self) -> Option<IpAddr> {
        while self.detached.len() > REMEMBERED {
            let (number, address) = self.detached.pop_front()?;
            // Otherwise it has a host again, or had one since.
            if self.last.get(&address) == Some(&number) {
                self.last.remove(&address);
                return Some(address);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use swell_path::LinkConfig;

    use super::*;
    use crate::table::Table;

    #[test]
    fn addresses_of_hosts_that_left_long_ago_are_forgotten() {
        let link = LinkConfig::default();
        let mut world = World::new(&[link.clone(), link], 1);
        let updates = HostUpdates::default();
        let mut attached = AttachedHosts::of(Some(updates.clone()));
        let address = |n: usize| IpAddr::from(Ipv6Addr::from_bits(n as u128));
        let access = Access::default();
        // Two more than are remembered. The first is attached again.
        for n in 0..REMEMBERED + 2 {
            updates.attach(false, address(n), &access);
            updates.detach(false, address(n));
        }
        updates.attach(false, address(0), &access);
        let mut table = Table::default();
        attached.update(&mut world, |who, port, _| table.host(who, port));
        let mut forgotten = Vec::new();
        while let Some(gone) = attached.forgotten() {
            table.forget(gone);
            forgotten.push(gone);
        }
        assert_eq!(forgotten, [address(1)]);
        let known = |n: usize| table.own(address(n)).is_some();
        assert_eq!([known(0), known(1), known(2)], [true, false, true]);
    }
}
