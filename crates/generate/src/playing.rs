//! The traffic that one thread generates.

use std::collections::HashMap;
use std::net::SocketAddr;

use swell_traffic::flowlevel::Share;

use super::config::{Client, Target};
use super::connect::{Ends, Marks};
use super::plan::Traffic;
use super::source::Source;
use super::table::Table;

/// The traffic of one thread.
pub(super) struct Playing {
    pub client: Client,
    pub traffic: Option<Box<dyn Traffic>>,
    /// Generation of the current traffic. The ends of transfers from earlier generations are ignored.
    pub generation: u32,
    /// Kept connections by session.
    pub idle: HashMap<u64, u64>,
    pub sources: Table<Source>,
    /// Transfers in progress.
    pub under_way: u64,
    /// Number of connections so far, for the rotation of DSCPs and congestion controls.
    turn: u64,
    /// Number of changes of the load so far.
    changes: u64,
}

impl Playing {
    pub fn new(client: &Client) -> Playing {
        Playing {
            client: client.clone(),
            traffic: None,
            generation: 0,
            idle: HashMap::new(),
            sources: Table::default(),
            under_way: 0,
            turn: 0,
            changes: 0,
        }
    }

    pub fn active(&self) -> u64 {
        self.traffic.as_ref().map_or(0, |t| t.active())
    }

    pub fn servers(&self) -> &[Target] {
        &self.client.servers
    }

    pub fn index(&self) -> u16 {
        self.client.index
    }

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.client.plan.seed()
    }

    /// The share of one of the client's `threads` threads.
    pub fn share(&self, thread: u16, threads: u16) -> Share {
        let clients = u32::from(self.client.of);
        Share {
            // Distributes sessions evenly over the clients, even if there are few.
            index: u32::from(thread) * clients + u32::from(self.client.index),
            of: clients * u32::from(threads),
        }
    }

    /// UDP port of a server.
    pub fn datagram_port(&self, server: u16) -> u16 {
        let server = self.client.servers.get(usize::from(server));
        server.map_or(0, |s| s.datagrams)
    }

    /// Whether connections stay open for the next transfer.
    pub fn keeps(&self) -> bool {
        self.client.play.keep
    }

    /// Server, destination and source address for traffic between two hosts, given by rank.
    pub fn ends(&self, source: u64, destination: u64) -> Ends {
        let servers = self.client.servers.len() as u64;
        let server = destination % servers.max(1);
        let target = &self.client.servers[server as usize];
        let address = target.host(destination / servers.max(1));
        Ends {
            server: server as u16,
            to: SocketAddr::new(address, target.address.port()),
            from: self.client.pool.host_of(source, address.is_ipv6()),
        }
    }

    /// The options of the next connection, for `congestion` congestion controls: all DSCPs with the first one, then
    /// with the next.
    pub fn marks(&mut self, congestion: usize) -> Marks {
        let turn = self.turn;
        self.turn += 1;
        let dscp = &self.client.play.dscp;
        let points = (dscp.len() as u64).max(1);
        Marks {
            dscp: dscp.get((turn % points) as usize).copied().unwrap_or(0),
            congestion: (turn / points % (congestion as u64).max(1)) as u8,
        }
    }

    /// The number of this change of load, from 1.
    pub fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// Starts a transfer and returns its generation.
    pub fn begin(&mut self) -> u32 {
        self.under_way += 1;
        self.generation
    }

    /// Removes and returns the connection that a session has kept.
    pub fn take_kept(&mut self, session: u64) -> Option<u64> {
        self.idle.remove(&session)
    }

    /// Keeps a connection for its session; false if the session already has one, or the traffic is over.
    pub fn keep(&mut self, session: u64, token: u64) -> bool {
        let room = self.traffic.is_some() && !self.idle.contains_key(&session);
        if room {
            self.idle.insert(session, token);
        }
        room
    }

    /// A kept connection was closed.
    pub fn lost_kept(&mut self, session: u64, token: u64) {
        if self.idle.get(&session) == Some(&token) {
            self.idle.remove(&session);
        }
    }
}
