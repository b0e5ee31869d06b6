//! Packet pairs (S. Keshav, A Control-Theoretic Approach to Flow Control, SIGCOMM 1991). Two back-to-back packets leave
//! the narrowest link with a gap of one transmission time. Cross traffic between them increases the gap, so the tool
//! uses the median. It estimates the capacity; as an estimate of the available bandwidth it is too high if there is
//! other traffic.

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, gaps};

/// Number of pairs in an estimate.
const PAIRS: usize = 100;
/// Packet size, network-layer bytes.
const SIZE: u32 = 1500;
/// Pause between pairs.
const PAUSE: Dur = Dur::from_millis(50);

/// Gaps at the receiver of the pairs so far, seconds.
#[derive(Default)]
pub(super) struct Pairs {
    gaps: Vec<f64>,
    sent: usize,
}

impl Estimator for Pairs {
    fn next(&mut self, _: &mut Stream) -> Train {
        Train::even(2, 0.0, SIZE, PAUSE)
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        self.gaps.extend(gaps(heard).into_iter().map(|g| g.1));
        self.sent += 1;
        if self.sent < PAIRS {
            return None;
        }
        let mut all = std::mem::take(self).gaps;
        all.sort_by(f64::total_cmp);
        // Where a link delivers several packets at one instant, gaps tell nothing about its capacity.
        let median = all.get(all.len() / 2).filter(|gap| **gap > 0.0)?;
        let rate = f64::from(SIZE) * 8.0 / median;
        Some((rate, rate))
    }
}
