//! Control of a running emulation: changes of link settings, and a view of its flows.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swell_base::{Direction, Time};
use swell_host::Late;
use swell_world::{LinkSetting, World};

use super::journal::Entry;

/// Shared by a running emulation and its controller. The loop looks here on every iteration.
#[derive(Debug, Default)]
pub struct Control {
    asked: AtomicBool,
    waiting: Mutex<Vec<(Direction, LinkSetting)>>,
    /// When the latest change took or takes effect.
    set_at: Mutex<Option<Time>>,
    /// Flows are listed only after the first call of [`Control::seen`].
    wanted: AtomicBool,
    seen: Mutex<Seen>,
}

/// The state of an emulation.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// World time.
    pub at: Time,
    /// Network-layer bytes that have crossed the watched link, by direction (up, down) and then by kind (foreground,
    /// background).
    pub carried: [[u64; 2]; 2],
    /// Packets of programs that are inside the world now.
    pub inside: u64,
    /// Open simulated connections.
    pub flows: usize,
    /// Packets dropped at the watched link: up, down.
    pub dropped: [u64; 2],
    /// Lateness so far.
    pub late: Late,
}

/// The state of a running emulation.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Totals of the emulation.
    pub snapshot: Snapshot,
    /// The open flows of the programs: TCP connections, and UDP flows between two ports.
    pub flows: Vec<OpenFlow>,
    /// The flows were listed. They are not at first: see [`Control::seen`].
    pub listed: bool,
}

/// An open flow of the programs.
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
    /// Payload bytes that have arrived: up, down.
    pub bytes: [u64; 2],
    /// Retransmitted segments: by the client, by the server.
    pub retransmissions: [u32; 2],
}

impl Control {
    /// Requests a change of the watched link's settings in one direction.
    pub fn set(&self, direction: Direction, setting: LinkSetting) {
        locked(&self.waiting).push((direction, setting));
        self.asked.store(true, Ordering::Release);
    }

    /// Whether every requested change has been applied.
    pub fn done(&self) -> bool {
        !self.asked.load(Ordering::Acquire)
    }

    /// Takes back the requested changes that have not been applied. Returns whether there were any.
    pub fn withdraw(&self) -> bool {
        let mut waiting = locked(&self.waiting);
        self.asked.store(false, Ordering::Release);
        !std::mem::take(&mut *waiting).is_empty()
    }

    /// When the latest change took effect or will: after the transmission in progress, which an outage may prolong.
    /// `None` if nothing was changed, or the link has stopped for ever.
    pub fn set_at(&self) -> Option<Time> {
        *locked(&self.set_at)
    }

    /// The state, at most a tenth of a second old. The first call starts the listing of flows, so the state has none
    /// until the next one is published.
    pub fn seen(&self) -> Seen {
        self.wanted.store(true, Ordering::Relaxed);
        locked(&self.seen).clone()
    }

    /// Applies the requested changes and returns their journal entries.
    pub(crate) fn settle(&self, link: usize, world: &mut World) -> Vec<Entry> {
        if self.done() {
            return Vec::new();
        }
        let mut waiting = locked(&self.waiting);
        let mut instants = Vec::new();
        let all = waiting.drain(..).map(|(direction, setting)| {
            instants.push(world.set_link(link, direction, &setting));
            Entry::Set {
                at: world.now(),
                link: link as u16,
                direction,
                setting,
            }
        });
        let all = all.collect();
        // All is set when the last direction is.
        *locked(&self.set_at) = instants
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .and_then(|set| set.into_iter().max());
        self.asked.store(false, Ordering::Release);
        all
    }

    /// Publishes the state. `flows` is called only after the first call of [`Control::seen`].
    pub(crate) fn show(&self, snapshot: &Snapshot, flows: impl FnOnce() -> Vec<OpenFlow>) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let flows = if wanted { flows() } else { Vec::new() };
        *locked(&self.seen) = Seen {
            snapshot: snapshot.clone(),
            flows,
            listed: wanted,
        };
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
