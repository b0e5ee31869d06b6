//! The bytes of the packets that are inside the world.

use swell_base::Time;
use swell_host::{Checksum, IpPacket};

/// Packets by handle. Freed slots are reused.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    places: Vec<StoredPacket>,
    free: Vec<u32>,
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
