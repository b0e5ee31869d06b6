//! Bytes over time in fine bins, with bounded memory.

use swell_base::{Direction, Dur};
use swell_traffic::Load;

/// Width of the finest bin.
const FINE_NANOS: u64 = 1_000_000;
/// Maximum number of bins: two hours of milliseconds. Longer traces use bins of 2, 4, … ms.
const MAX_BINS: usize = 7_200_000;
/// The model's load uses bins of at least this width, and at most 3000 of them.
const LOAD_BIN_MILLIS: u64 = 100;
const LOAD_BINS: u64 = 3000;
/// Vanishing moments of the wavelet: removes trends up to quadratic (Abry & Veitch's usual choice).
const MOMENTS: usize = 3;

/// Bytes per fine bin, left to right and right to left.
#[derive(Debug)]
pub(crate) struct Bins {
    width: u64,
    bins: Vec<[u32; 2]>,
    /// Index and start time of the most recent bin, so that most packets need no division.
    current: usize,
    begin: u64,
}

impl Bins {
    pub(crate) fn new() -> Bins {
        Bins {
            width: FINE_NANOS,
            bins: vec![[0; 2]],
            current: 0,
            begin: 0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, at: u64, direction: Direction, bytes: u32) {
        if at.wrapping_sub(self.begin) >= self.width {
            self.move_to(at);
        }
        let bin = &mut self.bins[self.current][direction];
        *bin = bin.saturating_add(bytes);
    }

    fn move_to(&mut self, at: u64) {
        while at / self.width >= MAX_BINS as u64 {
            self.coarsen();
        }
        self.current = (at / self.width) as usize;
        self.begin = at / self.width * self.width;
        if self.current >= self.bins.len() {
            self.bins.resize(self.current + 1, [0; 2]);
        }
    }

    fn coarsen(&mut self) {
        self.width *= 2;
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| {
                pair.iter().fold([0; 2], |sum: [u32; 2], b| {
                    [sum[0].saturating_add(b[0]), sum[1].saturating_add(b[1])]
                })
            })
            .collect();
    }

    pub(crate) fn finish(self, duration: u64) -> Load {
        let target = (duration / LOAD_BINS).max(LOAD_BIN_MILLIS * 1_000_000);
        let per = target.div_ceil(self.width).max(1);
        let coarse = |d: Direction| {
            self.bins
                .chunks(per as usize)
                .map(|c| c.iter().map(|b| u64::from(b[d])).sum())
                .collect()
        };
        let lsd = |d: Direction| {
            let counts: Vec<f64> = self.bins.iter().map(|b| f64::from(b[d])).collect();
            swell_stats::energies(&counts, MOMENTS)
                .iter()
                // A silent octave has no logarithm; the diagram ends there.
                .map_while(|o| Some(o.y()).filter(|e| e.is_finite()))
                .map(|e| (e * 1e4).round() / 1e4)
                .collect()
        };
        Load {
            bin: Dur::from_nanos(per * self.width),
            bytes: Direction::BOTH.map(coarse),
            filled: [false; 2],
            lsd_bin: Dur::from_nanos(self.width),
            lsd: Direction::BOTH.map(lsd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// The diagram uses 1 ms bins, doubled until two hours of them suffice. The load uses 100 ms bins, or
    /// wider ones if the trace would need more than 3000.
    #[test]
    fn bins_are_as_fine_as_they_may_be() {
        for (seconds, bin, fine) in [
            (10, 100, 1),
            (300, 100, 1),
            (301, 101, 1),
            (600, 200, 1),
            (7_199, 2_400, 1),
            (7_200, 2_400, 2),
            (14_400, 4_800, 4),
        ] {
            let mut bins = Bins::new();
            bins.add(0, Direction::Up, 100);
            bins.add(seconds * S, Direction::Down, 200);
            bins.add(seconds * S, Direction::Down, 30);
            let load = bins.finish(seconds * S);
            let found = [load.bin, load.lsd_bin].map(|d| d.as_nanos());
            assert_eq!(found, [bin, fine].map(|ms| ms * 1_000_000), "{seconds} s");
            assert!(load.bytes[0].len() as u64 <= 3_001);
            assert_eq!(load.bytes[0][0], 100);
            assert_eq!(load.bytes[1].last(), Some(&230));
            let sums = [0, 1].map(|d| load.bytes[d].iter().sum::<u64>());
            assert_eq!(sums, [100, 230]);
        }
    }
}
