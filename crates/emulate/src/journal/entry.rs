//! Entries of a journal, and what all records have in common.

use swell_base::{Direction, DropReason, Dur, Time};
use swell_world::{LinkSetting, Port, PortConfig};

/// Length of a record in bytes.
pub(super) const RECORD: usize = 24;
/// Longest delay that a path can have.
pub(super) const LONGEST_DELAY: Dur = Dur::from_secs(3600);

/// Something that happened at a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry {
    /// A port was added. Ports are numbered from 0 in the order of their addition.
    Port {
        /// When.
        at: Time,
        /// Which side, path and access link.
        config: PortConfig,
        /// It belongs to a program, not to the background.
        program: bool,
    },
    /// A packet entered the world. Arrivals are numbered from 0 in order.
    Arrival {
        /// When.
        at: Time,
        /// The sender's port.
        from: Port,
        /// The receiver's port.
        to: Port,
        /// Which of the flows between the two ports.
        bucket: u16,
        /// Network-layer bytes.
        size: u16,
        /// ECN codepoint.
        ecn: u8,
    },
    /// A packet left the world.
    Departure {
        /// When it was due, not when the machine wrote it.
        at: Time,
        /// Number of the arrival.
        number: u64,
        /// ECN codepoint.
        ecn: u8,
    },
    /// A packet was dropped.
    Drop {
        /// When.
        at: Time,
        /// Number of the arrival.
        number: u64,
        /// Why.
        reason: DropReason,
    },
    /// The settings of a link were changed.
    Set {
        /// When.
        at: Time,
        /// The link's number in the world.
        link: u16,
        /// The direction.
        direction: Direction,
        /// The new settings.
        setting: LinkSetting,
    },
    /// The emulation ended.
    End {
        /// When.
        at: Time,
    },
}

impl Entry {
    /// When it happened.
    pub fn at(&self) -> Time {
        match *self {
            Entry::Port { at, .. }
            | Entry::Arrival { at, .. }
            | Entry::Departure { at, .. }
            | Entry::Drop { at, .. }
            | Entry::Set { at, .. }
            | Entry::End { at } => at,
        }
    }
}

/// The little-endian number that begins at byte `from`.
pub(super) fn word(bytes: &[u8], from: usize) -> u64 {
    let mut b = [0; 8];
    b.copy_from_slice(&bytes[from..from + 8]);
    u64::from_le_bytes(b)
}
