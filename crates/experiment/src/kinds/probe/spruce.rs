//! Spruce (J. Strauss, D. Katabi and F. Kaashoek, A Measurement Study of Available Bandwidth Estimation Tools, IMC
//! 2003). Two packets are sent with a gap of one transmission time on the narrowest link. The increase of the gap is
//! the transmission time of cross traffic between them.

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, gaps};

/// Number of pairs in an estimate.
const PAIRS: usize = 100;
/// Packet size, network-layer bytes.
const SIZE: u32 = 1500;
/// Maximum load of the probe, bits per second, and as a share of the capacity (section 4.2).
const MOST: (f64, f64) = (240e3, 0.05);

/// Pairs so far.
pub(super) struct Spruce {
    capacity: f64,
    samples: Vec<f64>,
    sent: usize,
    /// Whether the packets of any pair came at different times.
    spread: bool,
}

impl Spruce {
    pub(super) fn new(capacity: f64) -> Spruce {
        Spruce {
            capacity,
            samples: Vec::new(),
            sent: 0,
            spread: false,
        }
    }
}

impl Estimator for Spruce {
    fn next(&mut self, rng: &mut Stream) -> Train {
        let bits = f64::from(SIZE) * 8.0;
        let load = MOST.0.min(MOST.1 * self.capacity);
        let pause = Dur::from_secs_f64(rng.exponential(2.0 * bits / load));
        Train::even(2, bits / self.capacity, SIZE, pause)
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        let pairs = gaps(heard);
        // Packets that arrive at one instant, as on a link that follows a delivery trace, tell nothing.
        self.spread |= pairs.iter().any(|&(_, came)| came > 0.0);
        let grown = pairs.into_iter().map(|(sent, came)| (came - sent) / sent);
        self.samples
            .extend(grown.map(|g| self.capacity * (1.0 - g)));
        self.sent += 1;
        if self.sent < PAIRS {
            return None;
        }
        let all = std::mem::take(&mut self.samples);
        self.sent = 0;
        if !std::mem::take(&mut self.spread) {
            return None;
        }
        let mean = swell_stats::mean(&all)?.clamp(0.0, self.capacity);
        Some((mean, mean))
    }
}
