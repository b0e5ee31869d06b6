//! IGI and PTR (N. Hu and P. Steenkiste, Evaluation and Characterization of Available Bandwidth Probing Techniques, IEEE
//! JSAC 21(6), 2003). Trains are sent with ever wider gaps until they arrive with the gap that they were sent with. PTR
//! is the rate of that train. IGI takes what gaps have grown by for the traffic that came between. As in the released
//! tool, three trains are sent with each gap, and gaps are equal where they differ by less than a step (there by 5 us).

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, gaps};

/// Packets of a train.
const PACKETS: usize = 60;
/// Network-layer bytes.
const SIZE: u32 = 750;
/// Trains with the same gap.
const TRAINS: usize = 3;
/// A step, of the gap of packets back to back.
const STEP: f64 = 1.0 / 8.0;
/// Between trains.
const PAUSE: Dur = Dur::from_millis(500);

/// The trains of an estimate.
pub(super) struct Trains {
    capacity: f64,
    /// IGI, not PTR.
    growth: bool,
    /// Of the next train, seconds.
    gap: f64,
    /// What trains with this gap came with: mean gap, seconds, and the rate of what came between, bits per second.
    came: Vec<(f64, f64)>,
}

impl Trains {
    pub(super) fn new(capacity: f64, growth: bool) -> Trains {
        let mut trains = Trains {
            capacity,
            growth,
            gap: 0.0,
            came: Vec::new(),
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
        let (sum, least) = (came.iter().sum::<f64>(), self.least());
        // What came between packets whose gap grew.
        let grew = came
            .iter()
            .filter(|&&g| g > self.gap.max(least) * (1.0 + 1e-6));
        let between = self.capacity * grew.map(|g| g - least).sum::<f64>() / sum;
        if !came.is_empty() {
            self.came.push((sum / came.len() as f64, between));
        }
        if self.came.len() < TRAINS {
            return None;
        }
        let mut trains = std::mem::take(&mut self.came);
        let mean = trains.iter().map(|t| t.0).sum::<f64>() / TRAINS as f64;
        if mean > self.gap + STEP * least {
            self.gap += STEP * least;
            return None;
        }
        trains.sort_by(|a, b| a.1.total_cmp(&b.1));
        let estimate = match self.growth {
            true => self.capacity - trains[TRAINS / 2].1,
            false => f64::from(SIZE) * 8.0 / mean,
        };
        self.gap = least / 2.0;
        Some((estimate, estimate))
    }
}
