//! Hosts that share a device and have an address and an access path each, of their own and for a time.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use swell_workload::Access;
use swell_world::{Port, PortConfig, World};

/// Tells the loop which address stands for which host. What was told before a packet was sent is known
/// when it is read.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    some: AtomicBool,
    news: Mutex<Vec<News>>,
}

/// A host has come, or gone.
#[derive(Clone, Copy, Debug)]
struct News {
    right: bool,
    address: IpAddr,
    access: Option<Access>,
}

impl Crowd {
    /// From now on `address`, on the right of the bottleneck or on the left, stands for a host behind
    /// `access`.
    pub fn came(&self, right: bool, address: IpAddr, access: &Access) {
        self.tell(News {
            right,
            address,
            access: Some(*access),
        });
    }

    /// From now on it stands for none.
    pub fn went(&self, right: bool, address: IpAddr) {
        self.tell(News {
            right,
            address,
            access: None,
        });
    }

    fn tell(&self, news: News) {
        let mut all = self.0.news.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(news);
        self.0.some.store(true, Ordering::Release);
    }
}

/// The loop's end of it.
#[derive(Debug, Default)]
pub(super) struct Members {
    crowd: Option<Crowd>,
    /// Ports without a host, to be used again by one with the same access path.
    free: Vec<(PortConfig, Port)>,
    /// Who is there.
    present: Vec<(IpAddr, PortConfig, Port)>,
}

impl Members {
    pub fn of(crowd: Option<Crowd>) -> Members {
        Members {
            crowd,
            ..Members::default()
        }
    }

    /// Shows the addresses that have a port now, and which, and where it is if the world did not have it.
    #[inline]
    pub fn update(
        &mut self,
        world: &mut World,
        mut each: impl FnMut(IpAddr, Port, Option<PortConfig>),
    ) {
        let Some(crowd) = &self.crowd else {
            return;
        };
        if !crowd.0.some.swap(false, Ordering::Acquire) {
            return;
        }
        let news =
            std::mem::take(&mut *crowd.0.news.lock().unwrap_or_else(PoisonError::into_inner));
        for n in news {
            match n.access {
                Some(access) => {
                    let (port, new) = self.come(world, n.right, n.address, access);
                    each(n.address, port, new);
                }
                None => self.go(n.address),
            }
        }
    }

    fn come(
        &mut self,
        world: &mut World,
        right: bool,
        address: IpAddr,
        access: Access,
    ) -> (Port, Option<PortConfig>) {
        // The key names the host, and says nothing of its path.
        let access = Access { key: 0, ..access };
        let config = PortConfig {
            right,
            access,
            ..PortConfig::default()
        };
        let free = self.free.iter().position(|(c, _)| *c == config);
        let (port, new) = match free {
            Some(at) => (self.free.swap_remove(at).1, None),
            None => (world.add_port(&config), Some(config)),
        };
        self.present.push((address, config, port));
        (port, new)
    }

    /// What is still on its way to the address arrives there.
    fn go(&mut self, address: IpAddr) {
        if let Some(at) = self.present.iter().position(|(a, ..)| *a == address) {
            let (_, config, port) = self.present.swap_remove(at);
            self.free.push((config, port));
        }
    }
}
