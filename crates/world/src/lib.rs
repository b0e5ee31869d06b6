//! The world: links, paths over them, and hosts at the ends of paths, with their transports and workloads.
//!
//! A [`World`] is a machine without a clock: [`World::poll_at`] says when something is due,
//! [`World::advance`] lets everything up to an instant happen. The simulator jumps from one to the
//! next; an emulator would wait.
//!
//! ```text
//!            access        link 0 … link n        access
//!  client ──────────► ┐   ┌──── up ────►  ┐   ┌ ──────────► server
//!   left   ◄───────── ┘   └ ◄─── down ─── ┘   └ ◄──────────  right
//! ```
//!
//! A world has named duplex links ([`Duplex`]), often only the bottleneck. A path ([`World::add_path`]) is a list of
//! links; each workload and each port is on one. There are no routers or routing tables: a packet carries its way.
//! Every host of a workload has its own access path ([`swell_workload::Access`]); what is left out
//! of it (no delay, no rate, no loss) costs nothing. Packets of flows that are gone still cross the
//! shared links they were on the way to.
//!
//! **Order.** Of the events at one instant bare acknowledgements that reach hosts come first, then other packets that reach
//! hosts, timers of endpoints, workloads, and packets that reach shared links; those of one
//! kind in the order in which they were scheduled, but the last: first comes the one before which its access link
//! carried fewest without a pause. An endpoint is told what arrived, its workload reacts, then it transmits. Nothing depends
//! on addresses, hash maps or threads: a run is a function of its configuration and seed.
//!
//! *Not modelled:* processing time in hosts and routers, link-layer contention, IP
//! fragmentation (a datagram larger than the MTU crosses as several packets).

mod access;
mod ahead;
mod bottleneck;
mod fast;
mod feed;
mod flow;
mod links;
mod path;
mod port;
mod probe;
mod profiles;
mod soonest;
mod wake;
mod watch;
mod worker;
mod world;

pub use bottleneck::Bottleneck;
pub use fast::FastPath;
pub use flow::{Parties, Tap};
pub use path::{Duplex, Hop, PathId};
pub use port::{Casualty, Delivery, Port, PortConfig};
pub use probe::{Probe, Sample};
pub use swell_base::Direction;
pub use world::World;
