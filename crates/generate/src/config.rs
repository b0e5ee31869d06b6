//! The configuration of a generator.

use std::net::{IpAddr, SocketAddr};

use swell_base::Dur;

use super::limits::Limits;
use super::plan::SharedPlan;
use super::pool::Addresses;
use super::wire::Key;

/// The configuration of one generator in a run.
#[derive(Clone)]
pub struct Config {
    /// The secret that all parties of the run share.
    pub key: Key,
    /// How long a party may be silent before the others consider it gone. A generator stops all traffic if its own
    /// lease is not renewed for this long.
    pub lease: Dur,
    /// Congestion controls that connections use in rotation, by their kernel names; if empty, the kernel's default.
    /// The same for all parties.
    pub congestion: Vec<String>,
    /// Number of threads, each with its own event loop: 1 to 64.
    pub threads: u16,
    /// Threads request real-time priority (`SCHED_FIFO`, sched(7)). If it is not granted, they run without it.
    pub precise: bool,
    /// Number of flows kept until they are fetched; 0 keeps none.
    pub room: usize,
    /// How long the other parties have been sending when this part is created. If not zero, the part joins a running
    /// run, and its times count from the others' start.
    pub elapsed: Dur,
    /// Upper limits on what it does.
    pub limits: Limits,
    /// Its role.
    pub role: Role,
}

/// The role of a generator.
#[derive(Clone)]
pub enum Role {
    /// Starts sessions.
    Client(Client),
    /// Answers clients.
    Server(Server),
}

/// The configuration of a client.
#[derive(Clone)]
pub struct Client {
    /// Index of this client among the run's clients, from 0.
    pub index: u16,
    /// Number of clients in the run. Sessions are distributed over the clients and their threads.
    pub of: u16,
    /// Source addresses of connections; if empty, the kernel chooses.
    pub pool: Addresses,
    /// The run's servers, at least one. Destinations are assigned to them in rotation, by rank.
    pub servers: Vec<Target>,
    /// The traffic.
    pub plan: SharedPlan,
    /// Options for the traffic.
    pub play: Play,
}

/// Options that apply to all kinds of traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Play {
    /// A connection stays open for the next transfer of its session between the same two hosts.
    pub keep: bool,
    /// DSCPs that connections use in rotation, for both directions; if empty, 0.
    pub dscp: Vec<u8>,
}

/// A server as its clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address and TCP port for leases and transfers.
    pub address: SocketAddr,
    /// Its UDP port.
    pub datagrams: u16,
    /// Addresses that receive traffic; if empty, that of `address`.
    pub pool: Addresses,
}

impl Target {
    /// The address of its host `n`.
    pub(super) fn host(&self, n: u64) -> IpAddr {
        self.pool.host(n).unwrap_or(self.address.ip())
    }
}

/// The configuration of a server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Addresses that each of the run's clients may connect from; if empty, the address that its lease comes from.
    pub clients: Vec<Addresses>,
    /// Addresses at which it accepts traffic, which must match the clients' configuration; if empty, those at which
    /// clients reach it.
    pub pool: Addresses,
    /// TCP and UDP port to listen on; if 0, the kernel chooses.
    pub port: u16,
}

/// Whether the pools are compatible: traffic between two address families is impossible.
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
