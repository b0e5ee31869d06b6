//! The emulator: a world, driven against the clock, with real programs at its ports.
//!
//! It has no model of a link. It reads packets, stamps them, advances the world, and writes the packets that have
//! crossed it. A packet leaves a little later than the world says. This lateness is measured for every packet
//! ([`Late`]). It does not add up, because departures follow from the world's time and not from the machine's.
//!
//! With a journal of arrivals the same world can be run again in virtual time. It must then release the same packets at the
//! same instants ([`replay`]).

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
mod load;
mod pace;
mod pool;
mod replay;
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
pub use control::{Control, OpenFlow, Seen};
pub use datagrams::{Conversation, Datagrams};
pub use drive::{Emulation, Ended, Running};
pub use faults::{Fault, FaultCounts, FaultTally, Faults, Rebind};
pub use journal::{Entry, Journal, JournalError, Recorded, read as read_journal};
pub use load::Urgency;
pub use pace::Pace;
pub use replay::{first_difference, replay};
pub use tracker::{Conversations, Tracker};
pub use turns::{End, Exchange, Label, Outcome, Received, Turns};

pub use swell_host::Late;
use swell_host::Nic;
pub use swell_world::LinkSetting;

/// A host to be attached to a world.
pub struct Host {
    /// Where.
    pub port: PortConfig,
    /// Addresses that are behind it.
    pub prefixes: Vec<IpNet>,
    /// Its device.
    pub nic: Box<dyn Nic>,
}

/// Called once, at an instant of the world.
pub type Then = Option<(Time, Box<dyn FnOnce(&World) + Send>)>;

/// Asks the operating system's scheduler.
pub type Schedule = Box<dyn FnMut(Urgency) + Send>;

/// How to run.
#[derive(Default)]
pub struct Options {
    /// How it waits.
    pub pace: Pace,
    /// A second of the world takes this many seconds; below 1 counts as 1.
    pub stretch: f64,
    /// The shortest time that a packet takes from one host to another. The bound on the effect of lateness depends on
    /// it: a packet that another one causes leaves at least this much later.
    pub crossing: Dur,
    /// The two hosts are the ends of a bridge: frames with their Ethernet headers cross from each to the other, whatever
    /// their addresses.
    pub bridge: bool,
    /// The link that [`Snapshot`] speaks of, by its number in the world.
    pub watched: usize,
    /// World time at which it ends by itself.
    pub until: Option<Time>,
    /// Where to keep a journal.
    pub journal: Option<PathBuf>,
    /// Where to write packets.
    pub packets: Option<Packets>,
    /// Addresses that come and go, each with a port of its own.
    pub updates: Option<HostUpdates>,
    /// Called when the world has reached an instant.
    pub then: Then,
    /// Where somebody may ask something of it while it runs.
    pub control: Option<Arc<Control>>,
    /// Called on the thread that drives the world with what to ask of the scheduler: at the start, and at every
    /// change.
    pub schedule: Option<Schedule>,
}

impl Options {
    /// The offset of the IP packet in what a device reads and writes; `None` if it holds none.
    fn network(&self, bytes: &[u8]) -> Option<usize> {
        match self.bridge {
            true => swell_host::network(bytes),
            false => Some(0),
        }
    }
}

/// What happened to packets at the edge of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entered the world.
    pub entered: u64,
    /// Left it.
    pub left: u64,
    /// Were dropped inside, as the network is to drop them.
    pub dropped: u64,
    /// Were marked by a queue (ECN).
    pub marked: u64,
    /// Went to a host on the same side, without crossing the bottleneck.
    pub local: u64,
    /// Were for an unknown address; their senders got an ICMP error.
    pub unroutable: u64,
    /// Were for a multicast group; no host is in one.
    pub multicast: u64,
    /// Were not IP packets.
    pub strange: u64,
    /// Were refused by the kernel of the receiving host.
    pub refused: u64,
    /// Were lost before they entered, because the machine was too slow. The network did not ask for this loss.
    pub lost: u64,
    /// Settings that were made of the link meanwhile ([`Control::set`]).
    pub set: u64,
}

/// The state of an emulation.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// World time.
    pub at: Time,
    /// Network-layer bytes that have crossed the watched link up and down: foreground, background.
    pub carried: [[u64; 2]; 2],
    /// Packets of programs that are in the world.
    pub inside: u64,
    /// Simulated connections that are open.
    pub flows: usize,
    /// Packets dropped at the watched link, up and down.
    pub dropped: [u64; 2],
    /// Lateness so far.
    pub late: Late,
}

#[cfg(test)]
mod tests;
