//! Traffic between hosts: sessions over kernel TCP and UDP, from one process to another.
//!
//! A [`Run`] is one agent's part in a run: a client plays its part of a [`Plan`], a server answers.
//!
//! ```
//! use std::sync::Arc;
//! use swell_base::Dur;
//! use swell_generate::{
//!     Addresses, Client, Closed, Config, Key, Play, Role, Run, Server, Target,
//! };
//!
//! let config = |role| Config {
//!     key: Key::new([7; 16]), lease: Dur::from_secs(2), congestion: Vec::new(), threads: 1,
//!     precise: false, room: 1000, elapsed: Dur::ZERO,
//!     limits: Default::default(), role,
//! };
//! let home = Addresses::parse(&["127.0.0.0/8"])?;
//! let server = Run::new(config(Role::Server(Server {
//!     clients: vec![home], ..Server::default()
//! })))?;
//! let client = Run::new(config(Role::Client(Client {
//!     index: 0, of: 1, pool: Addresses::default(),
//!     servers: vec![Target {
//!         address: ([127, 0, 0, 1], server.port()).into(), datagrams: server.datagram_port(),
//!         pool: Addresses::default(),
//!     }],
//!     plan: Arc::new(Closed { sessions: 2, up: 300, down: 20_000 }), play: Play::default(),
//! })))?;
//! while client.statistics().parties == 0 {
//!     std::thread::yield_now();
//! }
//! client.start();
//! while client.statistics().counts.done < 10 {
//!     std::thread::yield_now();
//! }
//! let (counts, flows) = (client.stop().counts, client.flows(0, 1000).flows);
//! assert_eq!(counts.failed, 0);
//! assert!(flows.len() >= 10 && flows[0].down == 20_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! * **Few threads**, each with a loop of its own around epoll and a share of the sessions. A session is a
//!   line in the player's tables, a connection some two hundred bytes. Every thread has a table of descriptors of its
//!   own (close_range(2)), so that the limit on them, which is on a table, is on a thread and not on the process.
//! * **Every transfer says what it wants** in a header of 48 bytes, which are the first of what goes up, so that a
//!   server needs no orders for it: how much comes, how much is to go back, and whether the connection stays.
//! * **Bytes** are counted, not made: reads discard without copying (`MSG_TRUNC`), writes send one buffer
//!   again and again.
//! * **Schedules do not drift**: what is due is the player's business, in its own time. How late it was begun
//!   is in [`Statistics`], and a generator that falls behind says so.
//! * **Datagrams** are paced by the client. What a server's source sends is asked for, exchange by exchange,
//!   by a datagram of 18 bytes.
//! * **The server closes** a connection that is not kept, so that the minute of TIME-WAIT is at its end and
//!   the client's ports are free again.
//!
//! # Who may
//!
//! A run has a key. Before a client sends anything to a server, the two agree on a *lease* ([`wire`]): a
//! connection on which each shows the other that it has the key, without saying it, and the server what addresses
//! it agreed to be sent traffic at. A server gives nothing to an address that no client of the run has, to a
//! client without a lease, to a request without the key. When a lease breaks or is silent for the length of
//! the lease, everything between the two ends, and a run whose lease is not renewed ends as a whole.
//!
//! The key of transfers is visible to anyone who can read packets between the hosts. With it and an address of
//! the run's clients they could have the server send to that address while the run lasts.
//!
//! # Not done
//!
//! Both directions of a connection at once; delays, rates and losses of access paths: those are the
//! network's.

pub mod agent;
mod client;
mod config;
mod connect;
mod counts;
mod datagrams;
mod flow;
mod lease;
mod limits;
#[cfg(test)]
mod patience;
mod plan;
mod playing;
mod pool;
pub mod router;
mod run;
mod server;
mod shared;
mod table;
pub mod wire;
mod worker;

#[cfg(test)]
mod tests;

pub use config::{Client, Config, Play, Role, Server, Target};
pub use counts::{Counts, Statistics};
pub use flow::{Flow, FlowLog, Outcome, ROW};
pub use limits::{Budget, Hours, Limits};
pub use plan::{Closed, Model, Plan, SharedPlan, Traffic};
pub use pool::Addresses;
pub use run::{Fetched, Run, RunError};
pub use wire::Key;
