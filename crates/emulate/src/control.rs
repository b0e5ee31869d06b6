//! What is asked of an emulation while it runs: settings of its link, and what its flows do.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swell_base::{Direction, Time};
use swell_world::{LinkSetting, World};

use super::Snapshot;
use super::journal::Entry;

/// Between an emulation and whoever asks something of it. The loop looks here at every turn.
#[derive(Debug, Default)]
pub struct Control {
    asked: AtomicBool,
    waiting: Mutex<Vec<(Direction, LinkSetting)>>,
    /// Flows are listed only where somebody wants to see them.
    wanted: AtomicBool,
    seen: Mutex<Seen>,
}

/// An emulation as it stands.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of the whole.
    pub snapshot: Snapshot,
    /// The programs' flows that are open: TCP connections, and datagrams between two ports.
    pub flows: Vec<OpenFlow>,
}

/// A flow of the programs that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// The end that opened it.
    pub client: (IpAddr, u16),
    /// The other end.
    pub server: (IpAddr, u16),
    /// When it began.
    pub start: Time,
    /// Payload bytes that have arrived, up and down.
    pub bytes: [u64; 2],
    /// Segments that were sent again: by the client, by the server.
    pub retransmissions: [u32; 2],
}

impl Control {
    /// Something about the watched link is to be different from now on.
    pub fn set(&self, direction: Direction, setting: LinkSetting) {
        locked(&self.waiting).push((direction, setting));
        self.asked.store(true, Ordering::Release);
    }

    /// Whether everything that was asked for has been done.
    pub fn done(&self) -> bool {
        !self.asked.load(Ordering::Acquire)
    }

    /// How things stand, at most a tenth of a second ago; flows from the second call on.
    pub fn seen(&self) -> Seen {
        self.wanted.store(true, Ordering::Relaxed);
        locked(&self.seen).clone()
    }

    /// Sets what was asked for; returns what a journal says of it.
    pub(crate) fn settle(&self, link: usize, world: &mut World) -> Vec<Entry> {
        if self.done() {
            return Vec::new();
        }
        let mut waiting = locked(&self.waiting);
        let all = waiting.drain(..).map(|(direction, setting)| {
            world.set_link(link, direction, &setting);
            Entry::Set {
                at: world.now(),
                link: link as u16,
                direction,
                setting,
            }
        });
        let all = all.collect();
        self.asked.store(false, Ordering::Release);
        all
    }

    /// Shows how things stand; `flows` are listed only if somebody has looked.
    pub(crate) fn show(&self, snapshot: &Snapshot, flows: impl FnOnce() -> Vec<OpenFlow>) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let flows = if wanted { flows() } else { Vec::new() };
        *locked(&self.seen) = Seen {
            snapshot: snapshot.clone(),
            flows,
        };
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
