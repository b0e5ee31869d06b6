//! State shared by the threads of a run.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Result;
use swell_base::{Dur, Time};

use super::config::{Config, Role};
use super::counts::Statistics;
use super::flow::{Flow, FlowLog};
use super::plan::SharedPlan;
use swell_host::clock::monotonic;

/// Commands to a running thread.
#[derive(Clone)]
pub(super) enum Command {
    Start,
    /// Other traffic.
    Plan(SharedPlan),
    /// Another load of the same model.
    Load(SharedPlan),
    Stop,
}

/// The thread that creates the run also creates this, rings the bells and drops this. It holds a reference until all
/// workers have ended.
///
/// Everything here is shared except descriptors. A worker has a descriptor table of its own
/// ([`own_descriptors`](swell_host::sys::datagrams::own_descriptors)), in which only its own bell has the number
/// stored here. In a worker, the number of another thread's bell is invalid or names another file.
pub(super) struct Shared {
    pub config: Config,
    /// Nanoseconds of the monotonic clock when the run was created.
    origin: u64,
    /// When the traffic began, in nanoseconds on the run's clock; `u64::MAX` before.
    begun: AtomicU64,
    /// When the run's lease ends unless it is renewed, in nanoseconds on the run's clock.
    lease: AtomicU64,
    /// The lease expired.
    pub expired: AtomicBool,
    /// Per thread: all intervals and all transfers are over.
    pub played: Vec<AtomicBool>,
    pub parties: Vec<Party>,
    threads: Vec<Thread>,
    /// A thread could not get a descriptor table of its own.
    pub one_table: AtomicBool,
    /// Number of threads that ended by a panic.
    panicked: AtomicU16,
    flows: Mutex<FlowLog>,
    /// Why connections were refused, at most [`REFUSED`] reasons.
    refused: Mutex<VecDeque<String>>,
    pub port: AtomicU16,
    pub datagram_port: AtomicU16,
}

/// Most absent parties that are named.
const ABSENT: usize = 16;
/// Most reasons for refusals that are kept.
const REFUSED: usize = 8;

/// The other party of a lease.
pub(super) struct Party {
    /// When it was last heard, in nanoseconds on the run's clock; 0 if it has not agreed or is gone.
    heard: AtomicU64,
    /// Number of agreements with it. Only the latest counts: a host that was cut off may agree again before the
    /// connection of its earlier lease breaks.
    agreements: AtomicU64,
    /// It has announced the regular end of its part.
    bye: AtomicBool,
    /// The address that its lease came from.
    address: Mutex<Option<IpAddr>>,
}

struct Thread {
    bell: OwnedFd,
    commands: Mutex<Vec<Command>>,
    statistics: Mutex<Statistics>,
}

/// Poisoning is ignored: no thread panics while it holds a lock, and the data is consistent at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn new(config: Config) -> Result<Shared> {
        let parties = match &config.role {
            Role::Client(client) => client.servers.len(),
            Role::Server(server) => server.clients.len(),
        };
        let number = config.threads;
        let thread = |_| {
            Ok(Thread {
                bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
                commands: Mutex::default(),
                statistics: Mutex::default(),
            })
        };
        Ok(Shared {
            origin: monotonic(),
            begun: AtomicU64::new(u64::MAX),
            lease: AtomicU64::new((config.elapsed + config.lease).as_nanos()),
            expired: AtomicBool::new(false),
            played: (0..number).map(|_| AtomicBool::new(false)).collect(),
            parties: (0..parties).map(|_| Party::new()).collect(),
            threads: (0..number).map(thread).collect::<Result<_>>()?,
            one_table: AtomicBool::new(false),
            panicked: AtomicU16::new(0),
            flows: Mutex::new(FlowLog::new(config.room)),
            refused: Mutex::default(),
            port: AtomicU16::new(0),
            datagram_port: AtomicU16::new(0),
            config,
        })
    }

    /// The run's clock: time since the run was created. In a part that joins later, it starts at the time for which
    /// the others have been sending.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin)) + self.config.elapsed
    }

    /// When the traffic began.
    pub fn begun(&self) -> Option<Time> {
        let begun = self.begun.load(Ordering::Acquire);
        (begun != u64::MAX).then(|| Time::from_nanos(begun))
    }

    /// Starts the traffic now, unless it has started. In a part that joins later, the traffic counts as begun at
    /// zero.
    pub fn begin(&self) {
        let now = match self.joins_late() {
            true => 0,
            false => self.now().as_nanos(),
        };
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        // If another thread was first, the traffic has already begun.
        let _ = self.begun.compare_exchange(u64::MAX, now, set, get);
    }

    /// Whether this part joins others that have already been sending.
    pub fn joins_late(&self) -> bool {
        self.config.elapsed > Dur::ZERO
    }

    /// Extends the lease to `span` from now.
    pub fn renew(&self, span: Dur) {
        let end = (self.now() + span).as_nanos();
        self.lease.store(end, Ordering::Release);
    }

    /// Whether the lease has run out.
    pub fn is_over(&self) -> bool {
        let over = self.now().as_nanos() > self.lease.load(Ordering::Acquire);
        if over {
            self.expired.store(true, Ordering::Release);
        }
        over
    }

    /// The bell of a thread, for that thread and for the creator of the run.
    pub fn bell(&self, thread: u16) -> BorrowedFd<'_> {
        self.threads[usize::from(thread)].bell.as_fd()
    }

    /// Sends a command to all threads. Workers must not call this, because they do not have the others' bells.
    pub fn tell(&self, command: &Command) {
        for thread in &self.threads {
            lock(&thread.commands).push(command.clone());
            // This cannot overflow the counter of a bell.
            let _ = rustix::io::write(&thread.bell, &1u64.to_ne_bytes());
        }
    }

    pub fn commands(&self, thread: u16) -> Vec<Command> {
        std::mem::take(&mut *lock(&self.threads[usize::from(thread)].commands))
    }

    pub fn publish(&self, thread: u16, statistics: Statistics) {
        *lock(&self.threads[usize::from(thread)].statistics) = statistics;
    }

    pub fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        for thread in &self.threads {
            all.add(&lock(&thread.statistics));
        }
        let parties = 0..self.parties.len();
        let (here, absent): (Vec<u16>, Vec<u16>) =
            parties.map(|i| i as u16).partition(|&i| self.is_here(i));
        all.parties = here.len() as u64;
        all.absent = absent.into_iter().take(ABSENT).collect();
        all.congestion.clone_from(&self.config.congestion);
        all.refused = lock(&self.refused).iter().cloned().collect();
        all.panicked = self.panicked.load(Ordering::Acquire);
        all.one_table = self.one_table.load(Ordering::Acquire);
        all
    }

    /// Records that a thread ended by a panic. Nobody waits for its share of the traffic.
    pub fn panicked(&self, thread: u16) {
        self.panicked.fetch_add(1, Ordering::AcqRel);
        self.played[usize::from(thread)].store(true, Ordering::Release);
    }

    pub fn log(&self, flows: &mut Vec<Flow>) {
        if !flows.is_empty() {
            lock(&self.flows).add(flows.drain(..));
        }
    }

    pub fn flows<R>(&self, with: impl FnOnce(&mut FlowLog) -> R) -> R {
        with(&mut lock(&self.flows))
    }

    /// Whether a party has agreed and was heard within the lease.
    #[inline]
    pub fn is_here(&self, party: u16) -> bool {
        let Some(party) = self.parties.get(usize::from(party)) else {
            return false;
        };
        let heard = party.heard.load(Ordering::Acquire);
        heard != 0 && self.now().as_nanos() < heard + self.config.lease.as_nanos()
    }

    /// Records that a party with an agreement was heard.
    pub fn hear(&self, party: u16) {
        if let Some(party) = self.parties.get(usize::from(party)) {
            let now = self.now().as_nanos();
            party.heard.store(now.max(1), Ordering::Release);
        }
    }

    /// Records an agreement with a party and returns the number of the agreement.
    pub fn agree(&self, party: u16) -> u64 {
        let party = self.parties.get(usize::from(party));
        party.map_or(0, |p| {
            p.bye.store(false, Ordering::Release);
            p.agreements.fetch_add(1, Ordering::AcqRel) + 1
        })
    }

    /// Records that a party has announced the regular end of its part, by the lease of its latest agreement.
    pub fn hear_bye(&self, party: u16, agreement: u64) {
        if self.is_latest(party, agreement)
            && let Some(party) = self.parties.get(usize::from(party))
        {
            party.bye.store(true, Ordering::Release);
        }
    }

    /// Whether a party has announced the regular end of its part, and has not agreed since.
    pub fn has_ended(&self, party: u16) -> bool {
        let party = self.parties.get(usize::from(party));
        party.is_some_and(|p| p.bye.load(Ordering::Acquire))
    }

    /// Whether this is the latest agreement with a party.
    pub fn is_latest(&self, party: u16, agreement: u64) -> bool {
        let party = self.parties.get(usize::from(party));
        party.is_some_and(|p| p.agreements.load(Ordering::Acquire) == agreement)
    }

    /// The lease of an agreement is gone. So is the party, unless it has agreed again.
    pub fn lose(&self, party: u16, agreement: u64) {
        if self.is_latest(party, agreement)
            && let Some(party) = self.parties.get(usize::from(party))
        {
            party.heard.store(0, Ordering::Release);
        }
    }

    pub fn set_address(&self, party: u16, address: IpAddr) {
        if let Some(party) = self.parties.get(usize::from(party)) {
            *lock(&party.address) = Some(address);
        }
    }

    /// Whether a client may request traffic from `address`.
    pub fn may_come(&self, client: u16, address: IpAddr) -> bool {
        let known = |party: &Party| lock(&party.address).is_none_or(|known| known == address);
        match &self.config.role {
            Role::Server(server) if self.may_agree(client, address) => {
                let client = usize::from(client);
                !server.clients[client].is_empty() || known(&self.parties[client])
            }
            _ => false,
        }
    }

    /// Whether a client may request a lease from `address`. If the run does not say where the client is, it may have
    /// moved since its last lease ended: its proof then decides. While it has a lease, nobody takes its place.
    pub fn may_agree(&self, client: u16, address: IpAddr) -> bool {
        let Role::Server(server) = &self.config.role else {
            return false;
        };
        let Some(pool) = server.clients.get(usize::from(client)) else {
            return false;
        };
        let peers = &self.config.limits.peers;
        if !peers.is_empty() && !peers.contains(address) {
            return false;
        }
        let known = || *lock(&self.parties[usize::from(client)].address);
        match pool.is_empty() {
            true => !self.is_here(client) || known().is_none_or(|known| known == address),
            false => pool.contains(address),
        }
    }

    /// Records why a connection from `address` is refused.
    pub fn refuse(&self, address: IpAddr) {
        let peers = &self.config.limits.peers;
        let why = match !peers.is_empty() && !peers.contains(address) {
            true => format!(
                "{address} is not within the peers of this agent (--allow-peer {})",
                peers.texts().join(",")
            ),
            false => format!("{address} is not an address of the run's clients"),
        };
        let mut refused = lock(&self.refused);
        refused.retain(|known| *known != why);
        if refused.len() >= REFUSED {
            refused.pop_front();
        }
        refused.push_back(why);
    }

    /// Whether any client may connect from `address`.
    pub fn may_anybody_come(&self, address: IpAddr) -> bool {
        (0..self.parties.len()).any(|client| self.may_agree(client as u16, address))
    }
}

impl Party {
    fn new() -> Party {
        Party {
            heard: AtomicU64::new(0),
            agreements: AtomicU64::new(0),
            bye: AtomicBool::new(false),
            address: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, pool};
    use super::*;
    use crate::config::Server;

    /// A party that came back has not ended because the bye of its earlier connection arrives late.
    #[test]
    fn a_bye_ends_only_its_own_agreement() {
        let role = Role::Server(Server {
            clients: vec![pool("127.0.0.0/8")],
            ..Server::default()
        });
        let shared = Shared::new(config(role)).unwrap();
        let first = shared.agree(0);
        let second = shared.agree(0);
        shared.hear_bye(0, first);
        assert!(!shared.has_ended(0));
        shared.hear_bye(0, second);
        assert!(shared.has_ended(0));
    }
}
