//! Generates traffic between hosts: sessions over kernel TCP and UDP between processes.
//!
//! A [`Run`] is one agent's part in a run: a client generates its part of a [`Plan`], and a server answers.
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
//! * **Few threads**: each has an epoll loop of its own and a share of the sessions. A session is an entry in the
//!   player's tables, and a connection takes about two hundred bytes. Every thread has a descriptor table of its own
//!   (close_range(2)), so that the limit on descriptors applies to each thread and not to the whole process.
//! * **Every transfer describes itself** in a header, which is the first 48 bytes of its upload. It gives the bytes
//!   to come, the bytes to send back, and whether the connection stays open. So a server needs no plan.
//! * **Payload** is counted and not generated: reads discard data without copying (`MSG_TRUNC`), and writes send the
//!   same buffer repeatedly.
//! * **Schedules do not drift**: the traffic determines what is due, in its own time. [`Statistics`] reports how late
//!   transfers began, and a generator that falls behind issues a warning.
//! * **Datagrams** are paced by the client. For traffic from the server, the client requests each exchange with
//!   datagrams of 18 bytes.
//! * **The server closes** a connection that is not kept. So TIME-WAIT, which lasts a minute, is on the server, and
//!   the client's ports are free again.
//!
//! # Authorization
//!
//! A run has a key. Before a client sends anything to a server, the two agree on a *lease* ([`wire`]). It is a
//! connection on which both prove that they have the key, without revealing it. The server also proves at which
//! addresses it accepts traffic. A server sends nothing to an address that belongs to no client of the run, to a
//! client without a lease, or for a request without the key. If a lease breaks, or is silent for its whole length,
//! all traffic between the two ends. A run whose own lease is not renewed ends as a whole.
//!
//! Anyone who can read packets between the hosts can read the key in transfers. With it, and an address of one of the
//! run's clients, they could make the server send to that address while the run lasts.
//!
//! # Not supported
//!
//! Data in both directions of a connection at the same time. Delays, rates and losses of access links are left to the
//! network.

pub mod agent;
mod client;
mod config;
mod connect;
mod counts;
mod datagrams;
mod flow;
mod hex;
mod lease;
mod limits;
mod paced;
#[cfg(test)]
mod patience;
mod plan;
mod play;
mod playing;
mod pool;
pub mod router;
mod run;
mod server;
mod shared;
mod source;
mod state;
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
