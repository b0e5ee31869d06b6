//! The world: links, paths over them, and hosts at the ends of paths, with their transports and workloads.
//!
//! A [`World`] is a machine without a clock: [`World::poll_at`] says when something is due,
//! [`World::advance`] lets everything up to an instant happen. The simulator jumps from one to the
//! next; the emulator waits for it.
//!
//! ```text
//!            access        link 0 … link n        access
//!  client ──────────► ┐   ┌──── up ────►  ┐   ┌ ──────────► server
//!   left   ◄───────── ┘   └ ◄─── down ─── ┘   └ ◄──────────  right
//! ```
//!
//! A world has named duplex links ([`Duplex`]), often only the bottleneck. A path ([`World::add_path`]) is a list of
//! links; each workload and each port is on one. There are no routers or routing tables: a packet carries its way.
//! Every host of a workload has its own access path ([`swell_workload::Access`]). A part that is left out
//! of it (no delay, no rate, no loss) costs nothing. Packets of closed flows still cross the
//! shared links ahead of them, because they still occupy a real queue.
//!
//! **Order.** Events at one instant happen in this order:
//!
//! 1. bare acknowledgements that reach hosts,
//! 2. other packets that reach hosts,
//! 3. timers of endpoints,
//! 4. timers of workloads,
//! 5. packets that reach shared links.
//!
//! Events of one kind happen in the order in which they were scheduled. Packets that reach shared links are the
//! exception: the first is the one whose access link carried the fewest packets right before it.
//!
//! An endpoint handles what arrived, its workload reacts, then the endpoint transmits. Nothing depends
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
mod setting;
mod soonest;
mod wake;
mod watch;
mod worker;
mod world;

pub use bottleneck::Bottleneck;
pub use fast::FastPath;
pub use flow::{Parties, Tap};
pub use path::{Duplex, Hop, PathId};
pub use port::{Delivery, PacketDrop, Port, PortConfig};
pub use probe::{Probe, Sample};
pub use setting::LinkSetting;
pub use swell_base::Direction;
pub use world::World;
