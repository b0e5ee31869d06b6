//! Hosts that share a device. Each has its own address and access path for a time.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use swell_workload::Access;
use swell_world::{PathId, Port, PortConfig, World};

/// Tells the loop which address stands for which host. An update that is made before a packet is sent takes effect
/// before the packet is read.
#[derive(Clone, Debug, Default)]
pub struct HostUpdates {
    pending: Arc<Pending>,
    /// The path at whose ends the hosts are.
    path: PathId,
}

#[derive(Debug, Default)]
struct Pending {
    waiting: AtomicBool,
    updates: Mutex<Vec<Update>>,
}

/// A host has come, or gone.
#[derive(Clone, Copy, Debug)]
struct Update {
    right: bool,
    address: IpAddr,
    access: Option<Access>,
}

impl HostUpdates {
    /// Of hosts at the ends of a path.
    pub fn on(path: PathId) -> HostUpdates {
        HostUpdates {
            path,
            ..HostUpdates::default()
        }
    }

    /// From now on `address`, at the right end of the path or at the left, stands for a host behind
    /// `access`.
    pub fn attach(&self, right: bool, address: IpAddr, access: &Access) {
        self.push(Update {
            right,
            address,
            access: Some(*access),
        });
    }

    /// From now on it stands for none.
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

/// The loop's end of it.
#[derive(Debug, Default)]
pub(super) struct AttachedHosts {
    updates: Option<HostUpdates>,
    /// Ports without a host, to be used again by one with the same access path.
    free: Vec<(PortConfig, Port)>,
    /// Who is there.
    present: Vec<(IpAddr, PortConfig, Port)>,
}

impl AttachedHosts {
    pub fn of(updates: Option<HostUpdates>) -> AttachedHosts {
        AttachedHosts {
            updates,
            ..AttachedHosts::default()
        }
    }

    /// Shows the addresses that have a port now, and which, and where it is if the world did not have it.
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
                        // The key names the host, and says nothing of its path.
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
        (port, new)
    }

    /// Packets on the way to the address still arrive.
    fn detach(&mut self, address: IpAddr) {
        if let Some(at) = self.present.iter().position(|(a, ..)| *a == address) {
            let (_, config, port) = self.present.swap_remove(at);
            self.free.push((config, port));
        }
    }
}
