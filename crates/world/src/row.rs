//! Acknowledgements on their way to hosts that are [late](crate::late).
//!
//! A connection's lie side by side, where its host finds them together. As packets of the pool each would be a cache
//! line somewhere in main memory. Rows are lists of short pieces, of which that left last is taken next: together
//! they take as much memory as acknowledgements are on their way now.

use swell_base::{Flags, Head, Segment, Stamps, Time, fetch};

/// No piece.
const END: u32 = u32::MAX;
/// Acknowledgements in a piece: as many as make it two cache lines.
const LENGTH: usize = 5;

/// A row in [`Rows`], empty at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    first: u32,
    last: u32,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            first: END,
            last: END,
        }
    }
}

/// Acknowledgements of one end of one connection that differ in little.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Piece {
    /// When each arrives.
    arrivals: [Time; LENGTH],
    /// What each says.
    acks: [u64; LENGTH],
    /// What all of them say.
    stamps: Stamps,
    window: u32,
    seq: u64,
    flow: u32,
    /// The piece behind, or the next that is free.
    next: u32,
    end: u8,
    /// Those from here on,
    from: u8,
    /// up to here, have not been taken.
    to: u8,
}

/// A bare acknowledgement that arrived, and at which end of which flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub flow: u32,
    pub end: u8,
    pub seg: Segment,
}

impl Ack {
    /// Whether a packet is nothing else: neither marks nor selective acknowledgements.
    #[inline]
    pub fn is_all_of(packet: &Head) -> bool {
        let seg = &packet.seg;
        seg.len == 0 && seg.flags == Flags::ACK && seg.ecn == 0 && seg.sacks == 0
    }
}

/// The rows of a world.
#[derive(Debug)]
pub(crate) struct Rows {
    pieces: Vec<Piece>,
    free: u32,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            pieces: Vec::new(),
            free: END,
        }
    }
}

impl Rows {
    /// Adds an acknowledgement that arrives no earlier than those before. All in a row are to one end of one flow.
    #[inline]
    pub fn push(&mut self, row: &mut Row, arrival: Time, packet: &Head) {
        let seg = &packet.seg;
        if let Some(last) = self.pieces.get_mut(row.last as usize)
            && usize::from(last.to) < LENGTH
            && (last.seq, last.window, last.stamps) == (seg.seq, seg.window, seg.stamps)
        {
            return last.push(arrival, seg);
        }
        self.push_piece(row, arrival, packet);
    }

    #[inline(never)]
    fn push_piece(&mut self, row: &mut Row, arrival: Time, packet: &Head) {
        let mut piece = Piece {
            arrivals: [Time::ZERO; LENGTH],
            acks: [0; LENGTH],
            stamps: packet.seg.stamps,
            window: packet.seg.window,
            seq: packet.seg.seq,
            flow: packet.flow.0,
            next: END,
            end: (packet.way & 1) ^ 1,
            from: 0,
            to: 0,
        };
        piece.push(arrival, &packet.seg);
        let number = self.free;
        let number = if let Some(place) = self.pieces.get_mut(number as usize) {
            self.free = place.next;
            *place = piece;
            number
        } else {
            self.pieces.push(piece);
            self.pieces.len() as u32 - 1
        };
        match self.pieces.get_mut(row.last as usize) {
            Some(last) => last.next = number,
            None => row.first = number,
        }
        row.last = number;
    }

    /// When the first arrives.
    #[inline]
    pub fn arrival(&self, row: Row) -> Option<Time> {
        let piece = self.pieces.get(row.first as usize)?;
        piece.arrivals.get(usize::from(piece.from)).copied()
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, row: &mut Row) -> Option<Ack> {
        let number = row.first;
        let piece = self.pieces.get_mut(number as usize)?;
        let ack = piece.first()?;
        piece.from += 1;
        if piece.from == piece.to {
            row.first = std::mem::replace(&mut piece.next, self.free);
            self.free = number;
            if row.first == END {
                row.last = END;
            } else {
                self.fetch_second(*row);
            }
        }
        Some(ack)
    }

    /// [Asks](fetch()) for where a row begins.
    #[inline]
    pub fn fetch_first(&self, row: Row) {
        self.fetch_piece(row.first);
    }

    /// Asks for where it goes on behind its first acknowledgements; reads where it begins.
    #[inline]
    pub fn fetch_second(&self, row: Row) {
        if let Some(first) = self.pieces.get(row.first as usize) {
            self.fetch_piece(first.next);
        }
    }

    /// Asks for where it ends.
    #[inline]
    pub fn fetch_last(&self, row: Row) {
        self.fetch_piece(row.last);
    }

    #[inline]
    fn fetch_piece(&self, number: u32) {
        if let Some(piece) = self.pieces.get(number as usize) {
            fetch(piece);
            fetch(&piece.to);
        }
    }

    /// The flow and the end that a row is of, unless it is empty. Reads a little of what is taken next.
    #[inline]
    pub fn owner(&self, row: Row) -> Option<(u32, u8)> {
        let piece = self.pieces.get(row.first as usize)?;
        Some((piece.flow, piece.end))
    }
}

impl Piece {
    #[inline]
    fn push(&mut self, arrival: Time, seg: &Segment) {
        let i = usize::from(self.to);
        if i < LENGTH {
            self.arrivals[i] = arrival;
            self.acks[i] = seg.ack;
            self.to += 1;
        }
    }

    #[inline]
    fn first(&self) -> Option<Ack> {
        let i = usize::from(self.from);
        let seg = Segment {
            seq: self.seq,
            ack: *self.acks.get(i)?,
            window: self.window,
            stamps: self.stamps,
            flags: Flags::ACK,
            ..Segment::default()
        };
        Some(Ack {
            flow: self.flow,
            end: self.end,
            seg,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use swell_base::{FlowId, Stream};

    #[test]
    fn a_piece_is_two_cache_lines() {
        assert_eq!(size_of::<Piece>(), 128);
    }

    #[test]
    fn only_bare_acknowledgements_are_all_of_a_packet() {
        let seg = Segment {
            flags: Flags::ACK,
            ..Segment::default()
        };
        let bare = Head {
            seg,
            ..Head::default()
        };
        assert!(Ack::is_all_of(&bare));
        let others = [
            Segment { len: 1, ..seg },
            Segment { ecn: 3, ..seg },
            Segment { sacks: 1, ..seg },
            Segment {
                flags: Flags::ACK.with(Flags::ECE),
                ..seg
            },
        ];
        for other in others {
            assert!(!Ack::is_all_of(&Head { seg: other, ..bare }));
        }
    }

    /// The oracle: queues of the standard library.
    #[test]
    fn first_in_is_first_out() {
        let mut rng = Stream::new(3, "rows");
        let mut rows = Rows::default();
        let mut some = [Row::default(); 4];
        let mut want: [VecDeque<(Time, Ack)>; 4] = Default::default();
        let mut most = 0;
        for i in 0..20_000u64 {
            let which = rng.below(4) as usize;
            if rng.chance(0.5) && want[which].len() < 40 {
                let seg = Segment {
                    seq: i / 50,
                    ack: rng.bits(),
                    window: u32::from(rng.chance(0.1)),
                    stamps: Stamps::one_way(rng.below(1000) as u32),
                    flags: Flags::ACK,
                    ..Segment::default()
                };
                let packet = Head {
                    flow: FlowId(which as u32),
                    way: 1,
                    seg,
                    ..Head::default()
                };
                rows.push(&mut some[which], Time::from_nanos(i), &packet);
                let ack = Ack {
                    flow: which as u32,
                    end: 0,
                    seg,
                };
                want[which].push_back((Time::from_nanos(i), ack));
            } else {
                let first = want[which].pop_front();
                let owner = first.map(|_| (which as u32, 0));
                assert_eq!(rows.owner(some[which]), owner);
                assert_eq!(rows.arrival(some[which]), first.map(|f| f.0));
                assert_eq!(rows.pop(&mut some[which]), first.map(|f| f.1));
            }
            most = most.max(want.iter().map(VecDeque::len).sum());
        }
        assert!(rows.pieces.len() <= most, "pieces are used again");
        assert!(most > 100);
    }
}
