//! IGI and PTR (N. Hu and P. Steenkiste, Evaluation and Characterization of Available Bandwidth Probing Techniques, IEEE
//! JSAC 21(6), 2003). Trains are sent with ever wider gaps until they arrive with the gap that they were sent with. PTR
//! is the rate of that train. IGI takes what gaps have grown by for the traffic that came between.

use swell_base::{Dur, Stream};

use super::{Estimator, Heard, Range, Train, gaps};

/// Packets of a train.
const PACKETS: usize = 60;
/// Network-layer bytes.
const SIZE: u32 = 750;
/// Gaps that differ by less than this share are equal.
const EQUAL: f64 = 0.1;
/// Between trains.
const PAUSE: Dur = Dur::from_millis(500);

/// The trains of an estimate.
pub(super) struct Trains {
    capacity: f64,
    /// IGI, not PTR.
    growth: bool,
    /// Of the next train, seconds.
    gap: f64,
}

impl Trains {
    pub(super) fn new(capacity: f64, growth: bool) -> Trains {
        let mut trains = Trains {
            capacity,
            growth,
            gap: 0.0,
        };
        trains.gap = trains.least() / 2.0;
        trains
    }

    /// What the narrowest link takes for a packet.
    fn least(&self) -> f64 {
        f64::from(SIZE) * 8.0 / self.capacity
    }
}

impl Estimator for Trains {
    fn next(&mut self, _: &mut Stream) -> Train {
        Train::even(PACKETS, self.gap, SIZE, PAUSE)
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        let came: Vec<f64> = gaps(heard).into_iter().map(|g| g.1).collect();
        let (sum, sent) = (came.iter().sum::<f64>(), self.gap * came.len() as f64);
        if came.is_empty() || sum > sent * (1.0 + EQUAL) {
            self.gap += self.least() / 8.0;
            return None;
        }
        let least = self.least();
        let estimate = if self.growth {
            // What came between packets whose gap grew.
            let grew = came
                .iter()
                .filter(|&&g| g > self.gap.max(least) * (1.0 + 1e-6));
            let between: f64 = grew.map(|g| g - least).sum();
            self.capacity - self.capacity * between / sum
        } else {
            f64::from(SIZE) * 8.0 * came.len() as f64 / sum
        };
        self.gap = least / 2.0;
        Some((estimate, estimate))
    }
}
