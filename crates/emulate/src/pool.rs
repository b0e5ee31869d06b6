//! The bytes of the packets that are inside the world.

use swell_base::Time;
use swell_host::{Checksum, Wire};

/// Packets by handle; places are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    places: Vec<Place>,
    free: Vec<u32>,
}

/// A packet with its bytes.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub bytes: Vec<u8>,
    pub checksum: Checksum,
    /// Counts arrivals.
    pub number: u64,
    /// When it arrived.
    pub entered: Time,
}

impl Pool {
    /// Keeps a packet.
    pub fn keep(&mut self, wire: &Wire<'_>, number: u64, entered: Time) -> u64 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[handle as usize];
        place.bytes.clear();
        place.bytes.extend_from_slice(wire.header);
        place.bytes.extend_from_slice(wire.payload);
        place.checksum = wire.checksum;
        place.number = number;
        place.entered = entered;
        u64::from(handle)
    }

    /// A packet that is kept.
    pub fn get(&mut self, handle: u64) -> &mut Place {
        &mut self.places[handle as usize]
    }

    /// Lets a packet go.
    pub fn free(&mut self, handle: u64) {
        self.free.push(handle as u32);
    }
}
