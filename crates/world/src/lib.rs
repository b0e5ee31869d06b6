//! Simulates links, paths over them, and the hosts at the ends of paths with their transports and workloads.
//!
//! A [`World`] is a state machine without a clock. [`World::poll_at`] returns when the next event is due, and
//! [`World::advance`] processes all events up to an instant. The simulator jumps from one event to the next; the
//! emulator waits for it.
//!
//! ```text
//!            access        link 0 … link n        access
//!  client ──────────► ┐   ┌──── up ────►  ┐   ┌ ──────────► server
//!   left   ◄───────── ┘   └ ◄─── down ─── ┘   └ ◄──────────  right
//! ```
//!
//! A world has named duplex links ([`Duplex`]), often only the bottleneck. A path ([`World::add_path`]) is a list of
//! links. Each workload and each port uses one path. There are no routers or routing tables: each packet carries its
//! route. Every host of a workload has its own access path ([`swell_workload::Access`]). An access path without
//! delay, rate and loss costs nothing. Packets of closed flows still cross the remaining shared links, because they
//! occupy a real queue.
//!
//! **Order.** Events at one instant happen in this order:
//!
//! 1. pure ACKs reach hosts,
//! 2. other packets reach hosts,
//! 3. endpoint timers expire,
//! 4. workload timers expire,
//! 5. packets reach shared links.
//!
//! Events of one kind happen in the order in which they were scheduled. Packets that reach shared links are the
//! exception. They are ordered by the number of packets that their access link carried back to back before them,
//! fewest first.
//!
//! An endpoint handles the arrived segment, its workload reacts, then the endpoint transmits. Nothing depends on
//! addresses, hash maps or threads: a run is a function of its configuration and seed.
//!
//! *Not modelled:* processing time in hosts and routers, link-layer contention, IP
//! fragmentation (a datagram larger than the MTU crosses as several packets).

mod access;
mod ahead;
mod bottleneck;
mod delays;
mod fast;
mod feed;
mod flow;
mod index;
mod links;
mod path;
mod port;
mod profiles;
mod setting;
mod soonest;
mod wake;
mod watch;
mod worker;
mod world;

pub use bottleneck::Bottleneck;
pub use delays::DelayBucket;
pub use fast::FastPath;
pub use flow::{HostTap, Parties, Tap};
pub use path::{Duplex, Hop, PathId};
pub use port::{Delivery, PacketDrop, Port, PortConfig};
pub use setting::LinkSetting;
pub use swell_base::Direction;
pub use world::World;
