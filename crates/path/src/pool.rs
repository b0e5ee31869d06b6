//! The pool in which packets lie that are under way, a cache line each.

use swell_base::{Flags, FlowId, Packet, SackBlocks, Segment, Tag, Time};

/// No place: the end of a queue.
pub(crate) const END: u32 = u32::MAX;

/// Packets on their way over [`PlainLink`](crate::PlainLink)s. The place left last is taken next: what
/// is touched is as much memory as packets are under way now. With thousands of links that is the
/// difference between cache and memory.
#[derive(Clone, Debug)]
pub struct PacketPool {
    places: Vec<Place>,
    /// Selective acknowledgements of the packet in each place, where it has any; may be shorter.
    sacks: Vec<SackBlocks>,
    /// First of the places that are not in use.
    free: u32,
}

/// A packet in a cache line of its own, without what few have. Fields that lie together in a packet lie
/// together here, so that they are copied together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Place {
    seq: u64,
    ack: u64,
    len: u32,
    window: u32,
    stamp: u32,
    flags: Flags,
    ecn: u8,
    sacks: bool,
    flow: FlowId,
    pub size: u16,
    way: u8,
    tag: Tag,
    /// The place of the packet behind, or of the next that is free.
    pub next: u32,
    /// At the far end of the link.
    pub arrival: Time,
}

impl Place {
    #[inline(always)]
    fn new(arrival: Time, packet: &Packet) -> Place {
        let seg = &packet.seg;
        Place {
            seq: seg.seq,
            ack: seg.ack,
            len: seg.len,
            window: seg.window,
            stamp: seg.stamp,
            flags: seg.flags,
            ecn: seg.ecn,
            sacks: !seg.sack.is_empty(),
            flow: packet.flow,
            size: packet.size,
            way: packet.way,
            tag: packet.tag,
            next: END,
            arrival,
        }
    }

    #[inline(always)]
    fn packet(&self) -> Packet {
        Packet {
            seg: Segment {
                seq: self.seq,
                ack: self.ack,
                len: self.len,
                window: self.window,
                sack: SackBlocks::default(),
                flags: self.flags,
                ecn: self.ecn,
                stamp: self.stamp,
            },
            flow: self.flow,
            size: self.size,
            way: self.way,
            tag: self.tag,
        }
    }
}

impl Default for PacketPool {
    fn default() -> Self {
        PacketPool {
            places: Vec::new(),
            sacks: Vec::new(),
            free: END,
        }
    }
}

impl PacketPool {
    #[inline]
    fn put(&mut self, arrival: Time, packet: &Packet) -> u32 {
        let index = self.free;
        let Some(unused) = self.places.get_mut(index as usize) else {
            return self.grow(arrival, packet);
        };
        self.free = unused.next;
        *unused = Place::new(arrival, packet);
        if unused.sacks {
            self.keep_sacks(index, packet.seg.sack);
        }
        index
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, arrival: Time, packet: &Packet) -> u32 {
        let index = self.places.len() as u32;
        self.places.push(Place::new(arrival, packet));
        self.keep_sacks(index, packet.seg.sack);
        index
    }

    #[inline(never)]
    fn keep_sacks(&mut self, index: u32, sack: SackBlocks) {
        let index = index as usize;
        if self.sacks.len() <= index && !sack.is_empty() {
            self.sacks.resize(self.places.len(), SackBlocks::default());
        }
        if let Some(kept) = self.sacks.get_mut(index) {
            *kept = sack;
        }
    }

    #[inline]
    pub(crate) fn place(&self, index: u32) -> Option<&Place> {
        self.places.get(index as usize)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

/// Packets in the order of their arrival, through a pool that is always the same.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Queue {
    /// Places of the first and the last.
    pub first: u32,
    pub last: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            first: END,
            last: END,
        }
    }
}

impl Queue {
    #[inline]
    pub fn arrival(&self, pool: &PacketPool) -> Option<Time> {
        pool.place(self.first).map(|p| p.arrival)
    }

    /// Flow and way of each packet, and whether it has payload.
    #[inline]
    pub fn iter(&self, pool: &PacketPool) -> impl Iterator<Item = (FlowId, u8, bool)> {
        std::iter::successors(pool.place(self.first), |p| pool.place(p.next))
            .map(|p| (p.flow, p.way, p.len > 0))
    }

    /// Adds a packet that arrives no earlier than those before.
    #[inline]
    pub fn push(&mut self, pool: &mut PacketPool, arrival: Time, packet: &Packet) {
        let index = pool.put(arrival, packet);
        match pool.places.get_mut(self.last as usize) {
            Some(last) => last.next = index,
            None => self.first = index,
        }
        self.last = index;
    }

    /// Takes the first packet, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, pool: &mut PacketPool, now: Time) -> Option<Packet> {
        let index = self.first;
        let place = pool.places.get_mut(index as usize)?;
        if place.arrival > now {
            return None;
        }
        self.first = std::mem::replace(&mut place.next, pool.free);
        pool.free = index;
        if self.first == END {
            self.last = END;
        }
        let mut packet = place.packet();
        if place.sacks {
            let kept = pool.sacks.get(index as usize);
            packet.seg.sack = kept.copied().unwrap_or_default();
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_cache_line() {
        assert_eq!(size_of::<Place>(), 64);
    }
}
