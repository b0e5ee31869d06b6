//! Data that have not passed the tap although later data of their direction have.

use std::collections::VecDeque;

/// Maximum number of holes of a direction. Slow start may overshoot its path by a window, and lose every second
/// segment of it; a larger jump than one of 16 MiB (11 000 segments) is no hole.
const MAX_HOLES: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hole {
    /// Offset of its first byte, and after its last.
    pub(super) start: u64,
    pub(super) end: u64,
    /// When later data passed, nanoseconds.
    pub(super) since: u64,
    /// The latest RTT to their sender by then, nanoseconds.
    pub(super) waited: Option<u64>,
}

/// Holes in order, none of which touch. Takes no memory without holes.
#[derive(Debug, Default)]
pub(super) struct Holes(VecDeque<Hole>);

impl Holes {
    /// Adds a hole after all others. `acked`: offset up to which the receiver has acknowledged.
    pub(super) fn push(&mut self, hole: Hole, acked: u64) {
        if self.0.len() >= MAX_HOLES {
            // What the receiver got, the capture lost, and it does not come again.
            let received = self.0.partition_point(|h| h.end <= acked);
            self.0.drain(..received.max(1));
        }
        self.0.push_back(hole);
    }

    /// Takes the data from offset `start` to `end` out of all holes. Calls `filled` with the bytes of each hole that
    /// they fill, and the hole.
    pub(super) fn fill(&mut self, [start, end]: [u64; 2], mut filled: impl FnMut(u64, &Hole)) {
        if self.0.is_empty() {
            return;
        }
        let mut i = self.0.partition_point(|h| h.end <= start);
        while let Some(hole) = self.0.get_mut(i)
            && hole.start < end
        {
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            filled(to - from, hole);
            let before = Hole { end: from, ..*hole };
            let after = Hole { start: to, ..*hole };
            match [before, after].map(|part| part.start < part.end) {
                [false, false] => {
                    self.0.remove(i);
                    continue;
                }
                [true, false] => *hole = before,
                [false, true] => *hole = after,
                [true, true] => {
                    *hole = after;
                    if self.0.len() < MAX_HOLES {
                        self.0.insert(i, before);
                        i += 1;
                    }
                }
            }
            i += 1;
        }
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use swell_base::Stream;

    use super::*;

    fn hole(start: u64, end: u64) -> Hole {
        Hole {
            start,
            end,
            since: start,
            waited: None,
        }
    }

    /// Against a bit for each byte.
    #[test]
    fn holes_are_what_has_not_passed() {
        let mut rng = Stream::new(1, "holes");
        let (mut holes, mut missing) = (Holes::default(), [false; 1_000]);
        let mut next = 0;
        for _ in 0..20_000 {
            if next < 900 && rng.below(3) == 0 {
                let (start, end) = (next + 1 + rng.below(5), next + 6 + rng.below(30));
                holes.push(hole(start, end), 0);
                missing[start as usize..end as usize].fill(true);
                next = end;
            }
            let from = rng.below(990);
            let to = from + 1 + rng.below(if from.is_multiple_of(7) { 200 } else { 9 });
            let to = to.min(1_000);
            let mut bytes = 0;
            holes.fill([from, to], |n, _| bytes += n);
            let part = &mut missing[from as usize..to as usize];
            assert_eq!(bytes, part.iter().filter(|m| **m).count() as u64);
            part.fill(false);
            let left: u64 = holes.0.iter().map(|h| h.end - h.start).sum();
            assert_eq!(left, missing.iter().filter(|m| **m).count() as u64);
            let apart =
                |pair: (&Hole, &Hole)| pair.0.start < pair.0.end && pair.0.end < pair.1.start;
            assert!(holes.0.iter().zip(holes.0.iter().skip(1)).all(apart));
            if left == 0 {
                assert_eq!(holes.0.capacity(), 0);
                next = 0;
            }
        }
    }

    /// Of too many, those go first that the receiver got.
    #[test]
    fn the_number_of_holes_is_bounded() {
        let mut holes = Holes::default();
        let most = MAX_HOLES as u64;
        (0..most).for_each(|i| holes.push(hole(10 * i, 10 * i + 5), 0));
        holes.push(hole(10 * most, 10 * most + 5), 1_005);
        assert_eq!((holes.0.len(), holes.0[0].start), (MAX_HOLES - 100, 1_010));
        (1..=101).for_each(|i| holes.push(hole(10 * (most + i), 10 * (most + i) + 5), 0));
        assert_eq!((holes.0.len(), holes.0[0].start), (MAX_HOLES, 1_020));
        // Data amid a hole do not add one.
        holes.fill([1_021, 1_022], |_, _| {});
        assert_eq!((holes.0.len(), holes.0[0].start), (MAX_HOLES, 1_022));
    }
}
