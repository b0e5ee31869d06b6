//! The configuration of a generator.

use std::net::{IpAddr, SocketAddr};

use swell_base::Dur;

use super::limits::Limits;
use super::plan::SharedPlan;
use super::pool::Addresses;
use super::wire::Key;

/// A generator's part in a run.
#[derive(Clone)]
pub struct Config {
    /// What all parties of the run share.
    pub key: Key,
    /// How long a party may be silent before the others take it for gone. Everything that was asked of a
    /// generator ends when it has not been renewed for this long.
    pub lease: Dur,
    /// Congestion controls that connections take turns in, by the kernel's names; none: the kernel's
    /// default. All parties have the same.
    pub congestion: Vec<String>,
    /// Threads, each with its own loop: 1 to 64.
    pub threads: u16,
    /// Threads ask for real-time priority (`SCHED_FIFO`, sched(7)); where it is not granted they go on
    /// without.
    pub precise: bool,
    /// Flows that are kept until they are fetched; 0: none is.
    pub room: usize,
    /// How long the others have played when this part is made: zero, or the part joins a run that goes on, and its
    /// times count from where theirs do.
    pub elapsed: Dur,
    /// What it may do at most.
    pub limits: Limits,
    /// Its part.
    pub role: Role,
}

/// What a generator does.
#[derive(Clone)]
pub enum Role {
    /// Plays sessions.
    Client(Client),
    /// Answers them.
    Server(Server),
}

/// The part of a client.
#[derive(Clone)]
pub struct Client {
    /// Which of the run's clients it is, from 0.
    pub index: u16,
    /// How many clients the run has. Sessions are dealt out to them and to their threads.
    pub of: u16,
    /// Addresses that connections come from; none: the kernel chooses.
    pub pool: Addresses,
    /// The run's servers, at least one. Destinations take turns in them by rank.
    pub servers: Vec<Target>,
    /// What is played.
    pub plan: SharedPlan,
    /// How it is played.
    pub play: Play,
}

/// How traffic is played, whatever it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Play {
    /// A connection stays open for the next transfer of its session between the same two hosts.
    pub keep: bool,
    /// Code points of both directions, taken in turns by connections; none: 0.
    pub dscp: Vec<u8>,
}

/// A server, as its clients know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it agrees to be sent traffic, and the TCP port of everything.
    pub address: SocketAddr,
    /// Its UDP port.
    pub datagrams: u16,
    /// Addresses that it is sent traffic at; none: that of `address`.
    pub pool: Addresses,
}

impl Target {
    /// The address of its host `n`.
    pub(super) fn host(&self, n: u64) -> IpAddr {
        self.pool.host(n).unwrap_or(self.address.ip())
    }
}

/// The part of a server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Where each of the run's clients may connect from; none: from where its lease does.
    pub clients: Vec<Addresses>,
    /// Addresses at which it agrees to be sent traffic, as its clients are to have them; none: those
    /// where they reach it.
    pub pool: Addresses,
    /// The port to listen at, TCP and UDP; 0: the kernel chooses.
    pub port: u16,
}

/// Whether pools fit: traffic between two families is impossible.
pub(super) fn families_meet(pool: &Addresses, servers: &[Target]) -> bool {
    if pool.is_empty() {
        return true;
    }
    let has = |ipv6| pool.prefixes().iter().any(|p| p.is_ipv6() == ipv6);
    servers.iter().all(|s| {
        let own = s.pool.prefixes().iter().map(|p| p.is_ipv6());
        if s.pool.is_empty() {
            has(s.address.is_ipv6())
        } else {
            own.clone().all(has)
        }
    })
}
