//! What a receiver has got, by its cumulative and its selective ACKs (RFC 2018).
//!
//! After a loss the cumulative ACK stands still until the repair, and then covers at once what had arrived long before.
//! Selective ACKs tell when it arrived.

use super::holes::{Hole, Holes};

/// The bytes of one direction that their receiver has acknowledged in either way.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Offset after the last byte that it has got, and what it lacks before.
    reached: u64,
    lacks: Holes,
    /// Whether it acknowledges selectively.
    selective: bool,
}

impl Delivered {
    /// Records an ACK up to offset `acked`, with these blocks of offsets after it. Returns the bytes that have arrived since
    /// the one before. `fresh`: nothing had been lost. After a loss, an ACK without blocks does not tell what arrived when.
    pub(super) fn acked(
        &mut self,
        acked: u64,
        blocks: impl Iterator<Item = [u64; 2]>,
        fresh: bool,
    ) -> u64 {
        // Data begin at offset 1.
        self.reached = self.reached.max(1);
        let mut bytes = self.up_to(0, acked, acked);
        for [start, end] in blocks.filter(|b| acked < b[0] && b[0] < b[1]) {
            self.selective = true;
            bytes += self.up_to(start, end, acked);
        }
        if fresh || self.selective { bytes } else { 0 }
    }

    /// Offset after the last byte that the receiver has told of.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Whether the receiver has acknowledged selectively.
    pub(super) fn selective(&self) -> bool {
        self.selective
    }

    /// Notes that the bytes from `start` to `end` have arrived. Returns how many of them had not before.
    fn up_to(&mut self, start: u64, end: u64, acked: u64) -> u64 {
        let mut bytes = 0;
        self.lacks.fill([start, end], |lacked, _| bytes += lacked);
        if end > self.reached {
            if start > self.reached {
                let hole = Hole {
                    start: self.reached,
                    end: start,
                    since: 0,
                    waited: None,
                };
                self.lacks.push(hole, acked);
            }
            bytes += end - start.max(self.reached);
            self.reached = end;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte counts once, when the receiver first says that it has it.
    #[test]
    fn bytes_count_when_they_arrive() {
        let mut d = Delivered::default();
        let mut acked = |acked: u64, blocks: &[[u64; 2]], fresh: bool| {
            d.acked(acked, blocks.iter().copied(), fresh)
        };
        assert_eq!(acked(1, &[], true), 0);
        assert_eq!(acked(101, &[], true), 100);
        // 101 to 200 is lost, and then 301 to 400.
        assert_eq!(acked(101, &[[201, 301]], true), 100);
        assert_eq!(acked(101, &[[401, 451], [201, 301]], true), 50);
        assert_eq!(acked(101, &[[401, 501], [201, 301]], false), 50);
        // The first repair, with a block that repeats what it covers (RFC 2883).
        assert_eq!(acked(301, &[[151, 201], [401, 501]], false), 100);
        // An older ACK.
        assert_eq!(acked(101, &[[201, 301]], false), 0);
        assert_eq!(acked(601, &[], false), 200);
    }

    /// Without selective ACKs, those between repairs tell nothing.
    #[test]
    fn cumulative_acks_beside_losses_tell_nothing() {
        let mut d = Delivered::default();
        let acks = [
            (1, true),
            (101, true),
            (501, false),
            (601, false),
            (701, true),
        ];
        let found = acks.map(|(acked, fresh)| d.acked(acked, std::iter::empty(), fresh));
        assert_eq!(found, [0, 100, 0, 0, 100]);
    }
}
