//! The emulator: drives a world in real time, with real programs at its ports.
//!
//! The emulator has no link model of its own. It reads packets, stamps them, advances the world, and writes the
//! packets that have crossed it. A packet leaves slightly later than the world computed. This lateness is measured
//! for every packet ([`Late`]). It does not accumulate, because departures are computed in world time and not from
//! when the machine ran.
//!
//! With a journal of arrivals, the same world can be run again in virtual time. It must then release the same packets
//! at the same instants ([`replay`]).
//!
//! A packet of 1250 bytes needs 1 ms at 10 Mbit/s, and 5 ms to the other end:
//!
//! ```
//! use swell_base::{Dur, Rate, Time};
//! use swell_emulate::{Entry, replay};
//! use swell_path::LinkConfig;
//! use swell_world::{Port, PortConfig, World};
//!
//! let link = LinkConfig {
//!     rate: Some(Rate::from_bps(10_000_000)),
//!     delay: Dur::from_millis(5),
//!     ..LinkConfig::default()
//! };
//! let mut world = World::new(&[link.clone(), link], 1);
//! let port = |right| Entry::Port {
//!     at: Time::ZERO,
//!     config: PortConfig { right, ..PortConfig::default() },
//!     program: true,
//! };
//! let arrival = Entry::Arrival {
//!     at: Time::from_nanos(1),
//!     from: Port(0),
//!     to: Port(1),
//!     bucket: 0,
//!     size: 1250,
//!     ecn: 0,
//! };
//! let end = Entry::End { at: Time::from_secs_f64(0.01) };
//! let out = replay(&mut world, &[port(false), port(true), arrival, end]);
//! let left = out.iter().find_map(|entry| match *entry {
//!     Entry::Departure { at, .. } => Some(at),
//!     _ => None,
//! });
//! assert_eq!(left, Some(Time::from_nanos(6_000_001)));
//! ```

mod attach;
pub mod backend;
mod capture;
mod clock;
mod connections;
mod control;

mod datagrams;
mod drive;
mod faults;
mod ip;
mod journal;
mod layout;
mod load;
mod pace;
mod pool;
mod replay;
mod switch;
mod table;
mod tracker;
mod turns;
mod unreachable;

use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use swell_base::{Dur, Time};
use swell_world::{PortConfig, World};

pub use attach::HostUpdates;
pub use capture::Packets;
pub use clock::Clock;
pub use connections::{Connection, Connections, Ending};
pub use control::{Control, OpenFlow, Seen, Snapshot};
pub use datagrams::{Conversation, Datagrams};
pub use drive::{Emulation, EmulationResult, PortCounts, Route, Running};
pub use faults::{Fault, FaultCounts, FaultTally, Faults, Rebind};
pub use journal::{Entry, Journal, JournalError, Recorded, read as read_journal};
pub use layout::{Layout, LayoutError, LinkEnd, Span, ends};
pub use load::Urgency;
pub use pace::Pace;
pub use replay::{first_difference, replay};
pub use tracker::{Conversations, Tracker};
pub use turns::{ConversationEnd, Exchange, Label, Outcome, Received, Turns};

pub use swell_host::Late;
use swell_host::Nic;
pub use swell_world::LinkSetting;

/// A host that is attached to a world.
pub struct Host {
    /// Its port in the world.
    pub port: PortConfig,
    /// Prefixes that are routed to it.
    pub prefixes: Vec<IpNet>,
    /// Its network device.
    pub nic: Box<dyn Nic>,
}

/// A callback that is called once, at an instant of world time.
pub type Then = Option<(Time, Box<dyn FnOnce(&World) + Send>)>;

/// A callback that requests a scheduling policy from the operating system.
pub type Schedule = Box<dyn FnMut(Urgency) + Send>;

/// How an emulation runs.
#[derive(Default)]
pub struct Options {
    /// How the loop waits.
    pub pace: Pace,
    /// Wall-clock seconds per second of world time; values below 1 count as 1.
    pub stretch: f64,
    /// The shortest time that a packet takes from one host to another. The bound on the effect of lateness depends on
    /// it: if one packet causes another, the second leaves at least this much later.
    pub crossing: Dur,
    /// Number of the link that [`Snapshot`] reports on.
    pub watched: usize,
    /// World time at which the emulation ends by itself.
    pub until: Option<Time>,
    /// Where to write a journal.
    pub journal: Option<PathBuf>,
    /// Where to write the packets of the programs.
    pub packets: Option<Packets>,
    /// Addresses that are attached and detached during the run, each with a port of its own.
    pub updates: Option<HostUpdates>,
    /// Called when the world reaches an instant.
    pub then: Then,
    /// Lets a controller change and observe the emulation while it runs.
    pub control: Option<Arc<Control>>,
    /// Called on the thread that drives the world, at the start and on every change, with the urgency to request from
    /// the scheduler.
    pub schedule: Option<Schedule>,
}

/// Counts of packets at the edge of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that entered the world.
    pub entered: u64,
    /// Packets that left it.
    pub left: u64,
    /// Packets that the emulated network dropped.
    pub dropped: u64,
    /// Packets that a queue marked (ECN).
    pub marked: u64,
    /// Packets to a host on the same side, which do not cross the bottleneck.
    pub local: u64,
    /// Packets to an unknown address. Their senders get an ICMP error.
    pub unroutable: u64,
    /// Packets to a multicast group, which are discarded: no host is a member.
    pub multicast: u64,
    /// Those among them that are a program's datagrams, and not of a protocol that finds names or services.
    pub groups: u64,
    /// Packets that are not IP.
    pub strange: u64,
    /// Packets that the kernel of the receiving host refused.
    pub refused: u64,
    /// Packets lost before they entered, because the machine was too slow. The emulated network did not drop these.
    pub lost: u64,
    /// Changes of the link's settings during the run ([`Control::set`]).
    pub set: u64,
}

#[cfg(test)]
mod tests;
