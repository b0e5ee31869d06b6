//! IGI and PTR (N. Hu and P. Steenkiste, Evaluation and Characterization of Available Bandwidth Probing Techniques,
//! IEEE JSAC 21(6), 2003). The gaps of successive trains increase until a train arrives with the gap with which it was
//! sent. PTR is the rate of that train. IGI attributes the growth of gaps to cross traffic between the packets. As in
//! the released tool, three trains are sent with each gap. Gaps are equal if they differ by less than a step (5 us in
//! the tool).

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, gaps};

/// Packets of a train.
const PACKETS: usize = 60;
/// Packet size, network-layer bytes.
const SIZE: u32 = 750;
/// Trains with the same gap.
const TRAINS: usize = 3;
/// Increase of the gap per step, as a share of the gap of back-to-back packets.
const STEP: f64 = 1.0 / 8.0;
/// Pause between trains.
const PAUSE: Dur = Dur::from_millis(500);

/// The trains of an estimate.
pub(super) struct Trains {
    capacity: f64,
    /// Whether the tool is IGI; otherwise PTR.
    growth: bool,
    /// Gap of the next train, seconds.
    gap: f64,
    /// Results of trains with this gap: mean gap at the receiver, seconds, and rate of the cross traffic, bits per
    /// second.
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

    /// Transmission time of a packet on the narrowest link.
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
        // Packets that were lost, or delivered all at one instant, tell nothing.
        if sum <= 0.0 {
            return None;
        }
        // Cross traffic between packets whose gap increased.
        let grew = came
            .iter()
            .filter(|&&g| g > self.gap.max(least) * (1.0 + 1e-6));
        let between = self.capacity * grew.map(|g| g - least).sum::<f64>() / sum;
        self.came.push((sum / came.len() as f64, between));
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
