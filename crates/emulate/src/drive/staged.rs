//! Packets that enter the world.

use swell_base::Time;
use swell_host::Checksum;
use swell_world::Port;

use crate::pool::Lift;
use crate::tracker::Tracked;

/// A packet that was read and not yet injected.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// Its arrival time: the kernel's time stamp if there is one, else when it was read.
    pub at: Time,
    /// When it arrived at the latest. If it is earlier than `at`, the world's time had passed it.
    pub arrived: Time,
    pub host: usize,
    pub bytes: Vec<u8>,
    /// Length of the headers if the device gave them separately from the payload.
    pub header: usize,
    pub checksum: Checksum,
}

/// The fields of a packet that go to the world and the journal.
pub(super) struct Arrival {
    pub at: Time,
    pub lift: Lift,
    pub from: Port,
    pub to: Port,
    pub bucket: u16,
    pub size: u16,
    pub ecn: u8,
}

/// A packet of the current batch that was due.
#[derive(Clone, Copy)]
pub(super) struct DuePacket {
    /// When it entered the world.
    pub entered: Time,
    /// When it was due.
    pub at: Time,
    pub lift: Lift,
    /// Its conversation.
    pub tracked: Option<Tracked>,
}
