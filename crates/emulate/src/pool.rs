//! The bytes of the packets that are inside the world.

use swell_base::{Dur, Time};
use swell_host::{Checksum, IpPacket};

/// Packets by handle. Freed slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    places: Vec<StoredPacket>,
    free: Vec<u32>,
}

/// A packet that was read after the world's time had passed its arrival enters late, at the world's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lift {
    /// How much later than it arrived.
    pub by: Dur,
    /// Meanwhile a packet reached or left a queue, so this one may have another place there, or another fate.
    pub overtaken: bool,
}

impl Lift {
    /// How much later it can leave because of that. What stands before it in addition has come while it was missing.
    /// On a loaded link this takes about as long to send.
    pub fn delay(self) -> Dur {
        match self.overtaken {
            true => self.by * 2,
            false => self.by,
        }
    }
}

/// A packet with its bytes.
#[derive(Debug, Default)]
pub(crate) struct StoredPacket {
    pub bytes: Vec<u8>,
    pub checksum: Checksum,
    /// The number of the packet's arrival.
    pub number: u64,
    /// When it arrived.
    pub entered: Time,
    /// How much later than it arrived it entered.
    pub lift: Lift,
    /// The number of the host that sent it.
    pub origin: usize,
}

impl Pool {
    /// Stores a packet and returns its handle.
    pub fn keep(&mut self, wire: &IpPacket<'_>, number: u64, entered: Time, origin: usize) -> u64 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.places.push(StoredPacket::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[handle as usize];
        place.bytes.clear();
        place.bytes.extend_from_slice(wire.header);
        place.bytes.extend_from_slice(wire.payload);
        place.checksum = wire.checksum;
        place.number = number;
        place.entered = entered;
        place.origin = origin;
        place.lift = Lift::default();
        u64::from(handle)
    }

    /// A stored packet.
    pub fn get(&mut self, handle: u64) -> &mut StoredPacket {
        &mut self.places[handle as usize]
    }

    /// Frees a packet's slot.
    pub fn free(&mut self, handle: u64) {
        self.free.push(handle as u32);
    }
}
