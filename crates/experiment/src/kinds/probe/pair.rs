//! Packet pairs (S. Keshav, A Control-Theoretic Approach to Flow Control, SIGCOMM 1991): two packets back to back leave the
//! narrowest link as far apart as it takes to send one. What comes between them makes it more, so the median is taken.
//! It estimates the capacity; as an estimate of what is free it is too high wherever there is other traffic.

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, gaps};

/// Pairs of an estimate.
const PAIRS: usize = 100;
/// Network-layer bytes.
const SIZE: u32 = 1500;
/// Between pairs.
const PAUSE: Dur = Dur::from_millis(50);

/// Pairs so far: gaps at the receiver.
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
        let median = all.get(all.len() / 2)?;
        let rate = f64::from(SIZE) * 8.0 / median;
        Some((rate, rate))
    }
}
