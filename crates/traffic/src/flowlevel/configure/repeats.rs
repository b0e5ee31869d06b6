//! Records that repeat earlier ones: exporters that saw the same packets, or files that were given twice.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use swell_base::fetch;

use super::super::record::Record;

/// Number of places for the latest records, a power of two. Each takes 16 bytes.
const PLACES: usize = 1 << 18;
/// Equal records that begin closer together than this are copies, nanoseconds. Packets cross a network in less time, and
/// equal exchanges between the same ports rarely follow one another as fast.
const TOGETHER: i64 = 500_000_000;

/// The latest records, by a hash of what copies have in common. A record that is far from its copy, with many others
/// between them, may have lost its place.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Hash and time of the first packet; empty before the first record.
    places: Vec<(u64, i64)>,
}

/// What is compared of a record, and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    hash: u64,
    first: i64,
}

impl Repeats {
    /// Begins to look for an earlier record that equals this one. Memory needs time for it, which is better spent on the
    /// record meanwhile.
    pub(super) fn look(&mut self, record: &Record) -> Seen {
        if self.places.is_empty() {
            self.places = vec![(0, i64::MIN); PLACES];
        }
        let side = &record.forward;
        let hash = FixedState::default().hash_one((
            [record.source, record.destination],
            [record.source_port, record.destination_port],
            record.protocol,
            [side.packets, side.bytes],
            record.reverse.map(|back| [back.packets, back.bytes]),
        ));
        fetch(&self.places[hash as usize % PLACES]);
        Seen {
            hash,
            first: side.first,
        }
    }

    /// Adds a record that was looked for; returns whether it equals an earlier one.
    pub(super) fn has(&mut self, seen: Seen) -> bool {
        let place = &mut self.places[seen.hash as usize % PLACES];
        let apart = seen.first.saturating_sub(place.1).saturating_abs();
        let known = place.0 == seen.hash && apart < TOGETHER;
        *place = (seen.hash, seen.first);
        known
    }
}
