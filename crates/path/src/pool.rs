//! Storage for packets from sending to arrival.

use swell_base::{Head, Packet, SackBlocks, fetch};

/// Not a slot: the end of the free list.
const END: u32 = u32::MAX;

/// The slot of a packet in a [`PacketPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId(u32);

impl SlotId {
    /// Number of the slot, for callers that pack it into a word.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The slot with this number.
    #[inline]
    pub fn numbered(number: u32) -> SlotId {
        SlotId(number)
    }
}

/// Packets that wait or are in flight. A packet keeps its slot across any number of links, as long as all their
/// queues are drop tail. Drop-tail queues are lists of slots; other disciplines store packets themselves.
///
/// The slot released last is reused first. So the memory in use is proportional to the current number of packets, and
/// stays in the cache.
///
/// The caller that takes a packet off its last link must [release](Self::release) its slot. Debug builds check that
/// only slots in use are released, read and queued.
#[derive(Clone, Debug)]
pub struct PacketPool {
    slots: Vec<Slot>,
    /// SACK blocks by slot. They are stored apart, because few packets have any.
    sacks: Vec<SackBlocks>,
    /// First slot of the free list.
    free: u32,
    /// Number of slots in use.
    #[cfg(debug_assertions)]
    used: usize,
}

/// A packet without its SACK blocks: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Slot {
    packet: Head,
    /// The next slot of the free list, if this one is free.
    next: u32,
    #[cfg(debug_assertions)]
    in_use: bool,
}

/// A word that the caller stores with a packet ([`Head::note`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note(pub u64);

impl Default for PacketPool {
    fn default() -> Self {
        PacketPool {
            slots: Vec::new(),
            sacks: Vec::new(),
            free: END,
            #[cfg(debug_assertions)]
            used: 0,
        }
    }
}

impl PacketPool {
    /// The slot that is taken next. A packet may be written there before it is known whether it is sent.
    #[inline]
    pub fn spare(&mut self) -> SlotId {
        if self.free == END {
            self.grow();
        }
        SlotId(self.free)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.free = self.slots.len() as u32;
        self.slots.push(Slot {
            packet: Head::default(),
            next: END,
            #[cfg(debug_assertions)]
            in_use: false,
        });
        self.sacks.push(SackBlocks::default());
    }

    /// Takes the [spare](Self::spare) slot.
    #[inline]
    pub fn take_spare(&mut self, spare: SlotId, note: Note) {
        debug_assert_eq!(self.free, spare.0, "only the spare place can be taken");
        let slot = &mut self.slots[spare.0 as usize];
        self.free = slot.next;
        slot.packet.note = note.0;
        #[cfg(debug_assertions)]
        {
            self.slots[spare.0 as usize].in_use = true;
            self.used += 1;
        }
    }

    /// Stores a packet.
    #[inline]
    pub fn put(&mut self, packet: &Packet) -> SlotId {
        let place = self.spare();
        self.write(place, packet);
        self.take_spare(place, Note(packet.note));
        place
    }

    /// The note of a packet.
    #[inline]
    pub fn note(&self, place: SlotId) -> Note {
        Note(self.slots[place.0 as usize].packet.note)
    }

    /// Sets the note of a packet.
    #[inline]
    pub fn set_note(&mut self, place: SlotId, note: Note) {
        self.slots[place.0 as usize].packet.note = note.0;
    }

    /// Releases the slot of a packet. It is reused next.
    #[inline]
    pub fn release(&mut self, place: SlotId) {
        #[cfg(debug_assertions)]
        {
            self.check(place);
            self.slots[place.0 as usize].in_use = false;
            self.used -= 1;
        }
        self.slots[place.0 as usize].next = self.free;
        self.free = place.0;
    }

    /// The packet in a slot that is in use, without its SACK blocks.
    #[inline]
    pub fn packet(&self, place: SlotId) -> &Head {
        #[cfg(debug_assertions)]
        self.check(place);
        &self.slots[place.0 as usize].packet
    }

    /// The SACK blocks of a packet. Its head says how many are valid.
    #[inline]
    pub fn sacks(&self, place: SlotId) -> &SackBlocks {
        #[cfg(debug_assertions)]
        self.check(place);
        &self.sacks[place.0 as usize]
    }

    /// A copy of the whole packet in a slot that is in use.
    #[inline]
    pub fn copy(&self, place: SlotId) -> Packet {
        let head = *self.packet(place);
        let sacks = match head.seg.sacks {
            0 => SackBlocks::default(),
            _ => *self.sacks(place),
        };
        Packet { head, sacks }
    }

    /// Both parts of the packet in a slot, for writing. The slot may be the [spare](Self::spare) one.
    #[inline(always)]
    pub fn parts_mut(&mut self, place: SlotId) -> (&mut Head, &mut SackBlocks) {
        let place = place.0 as usize;
        (&mut self.slots[place].packet, &mut self.sacks[place])
    }

    /// Writes a whole packet into a slot, which may be the [spare](Self::spare) one.
    #[inline]
    pub fn write(&mut self, place: SlotId, packet: &Packet) {
        let (head, sacks) = self.parts_mut(place);
        *head = packet.head;
        if packet.seg.sacks > 0 {
            *sacks = packet.sacks;
        }
    }

    /// [Prefetches](fetch()) a slot.
    #[inline]
    pub fn fetch(&self, place: SlotId) {
        if let Some(slot) = self.slots.get(place.0 as usize) {
            fetch(slot);
        }
    }

    /// Number of slots, used or free: the largest number of packets that existed at one time.
    #[inline]
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// Number of slots in use. Takes time proportional to the number of free slots; meant for checks.
    pub fn in_use(&self) -> usize {
        let slot = |place: u32| self.slots.get(place as usize);
        let free = std::iter::successors(slot(self.free), |s| slot(s.next)).count();
        self.slots.len() - free
    }

    /// As [`PacketPool::in_use`], in constant time.
    #[cfg(debug_assertions)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    #[cfg(debug_assertions)]
    pub(crate) fn check(&self, place: SlotId) {
        let in_use = (self.slots.get(place.0 as usize)).is_some_and(|slot| slot.in_use);
        assert!(in_use, "{place:?} is not in use");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn a_slot_is_one_cache_line() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (64, 64));
    }

    /// The oracle is a map of the standard library.
    #[test]
    fn a_place_holds_what_was_put_there() {
        let mut rng = Stream::new(5, "pool");
        let mut pool = PacketPool::default();
        let mut held = Vec::new();
        let mut peak = 0;
        for i in 1..20_000u64 {
            if rng.chance(0.51) || held.is_empty() {
                let mut packet = Packet::from(Head {
                    size: i as u16,
                    ..Head::default()
                });
                for _ in 0..rng.below(4) * rng.below(2) {
                    let start = rng.below(1 << 30) as i32;
                    let count = &mut packet.head.seg.sacks;
                    packet.sacks.push(count, start, start + 1460);
                }
                held.push((pool.put(&packet), packet));
            } else {
                let (place, packet) = held.swap_remove(rng.below(held.len() as u64) as usize);
                assert_eq!(pool.copy(place), packet);
                pool.release(place);
                assert_eq!(pool.spare(), place, "the place left last is taken next");
            }
            assert_eq!(pool.in_use(), held.len());
            peak = held.len().max(peak);
        }
        assert_eq!(pool.places(), peak, "places are used again");
    }
}
