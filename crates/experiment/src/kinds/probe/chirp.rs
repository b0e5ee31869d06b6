//! PathChirp (V. Ribeiro, R. Riedi, R. Baraniuk, J. Navratil and L. Cottrell, Efficient Available Bandwidth Estimation for
//! Network Paths, PAM 2003). A chirp is packets that come ever faster. Where its delays rise and fall again, cross traffic
//! came; where they rise for good, the rate is above what is free. Defaults are those of the released tool, version 2.3.

use std::collections::VecDeque;

use swell_base::{Dur, Stream};

use super::{Estimator, Heard, Range, Train};

/// Each gap is the last one over this.
const SPREAD: f64 = 1.2;
/// Network-layer bytes.
const SIZE: u32 = 1000;
/// Mean rate of the probe, bits per second.
const LOAD: f64 = 0.3e6;
/// An excursion is over when the delay is this much less than its highest.
const FALL: f64 = 1.5;
/// Shortest excursion, packets.
const SHORTEST: usize = 5;
/// Chirps of an estimate.
const CHIRPS: usize = 11;

/// The chirps so far.
pub(super) struct Pathchirp {
    /// Lowest and highest rate of a chirp, bits per second.
    low: f64,
    high: f64,
    estimates: VecDeque<f64>,
    /// How often the mean was near an end of the range: below, above.
    out: [u32; 2],
}

impl Pathchirp {
    pub(super) fn new() -> Pathchirp {
        Pathchirp {
            low: 10e6,
            high: 200e6,
            estimates: VecDeque::new(),
            out: [0; 2],
        }
    }

    /// Rates of a chirp's gaps.
    fn rates(&self) -> Vec<f64> {
        let mut rates = vec![self.low];
        while let Some(last) = rates.last().copied().filter(|r| *r < self.high) {
            rates.push(last * SPREAD);
        }
        rates
    }

    /// Moves the range where the mean lies at an end of it for the third time.
    fn follow(&mut self, mean: f64) {
        self.out[0] = if mean < 1.5 * self.low {
            self.out[0] + 1
        } else {
            0
        };
        self.out[1] = if mean > 0.66 * self.high {
            self.out[1] + 1
        } else {
            0
        };
        let (low, high) = match self.out {
            [3, _] => (self.low / 7.0, self.low * 7.0),
            [_, 3] => (self.high / 7.0, self.high * 7.0),
            _ => return,
        };
        (self.low, self.high) = (low.max(1e4), high.min(1e11));
        self.out = [0; 2];
        self.estimates.clear();
    }
}

/// What is free by one chirp, of whose packet k + 1 came `delays[k + 1]` after it was sent, and was sent at `rates[k]` after
/// the one before.
pub(super) fn chirp(delays: &[f64], rates: &[f64]) -> f64 {
    // Stamps are whole microseconds, as the tool's: what rounding leaves is no queue.
    let delays: Vec<f64> = delays.iter().map(|d| (d * 1e6).round()).collect();
    let n = rates.len();
    let mut each = vec![None; n];
    let mut open = n.saturating_sub(1);
    let mut i = 0;
    while i < n {
        if delays[i + 1] <= delays[i] {
            i += 1;
            continue;
        }
        // An excursion begins.
        let mut highest = 0.0f64;
        let mut end = None;
        for j in i + 1..=n {
            let now = delays[j] - delays[i];
            highest = highest.max(now);
            if now < highest / FALL {
                end = Some(j);
                break;
            }
        }
        match end {
            Some(j) => {
                if j - i >= SHORTEST {
                    for k in (i..j).filter(|&k| delays[k + 1] > delays[k]) {
                        each[k] = Some(rates[k]);
                    }
                }
                i = j;
            }
            None => {
                open = i;
                each[i..].fill(Some(rates[i]));
                break;
            }
        }
    }
    let rest = rates.get(open).copied().unwrap_or(0.0);
    let weighted = each
        .iter()
        .zip(rates)
        .map(|(e, r)| (e.unwrap_or(rest) / r, 1.0 / r));
    let (sum, weight) = weighted.fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    sum / weight
}

impl Estimator for Pathchirp {
    fn next(&mut self, _: &mut Stream) -> Train {
        let bits = f64::from(SIZE) * 8.0;
        let mut at = 0.0;
        let mut packets = vec![(Dur::ZERO, SIZE)];
        for rate in self.rates() {
            at += bits / rate;
            packets.push((Dur::from_secs_f64(at), SIZE));
        }
        let every = packets.len() as f64 * bits / LOAD.max(self.low / 10.0).min(3e6);
        Train {
            packets,
            pause: Dur::from_secs_f64((every - at).max(at)),
        }
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        // A chirp with losses says nothing.
        let delays: Option<Vec<f64>> = heard.iter().map(|h| Some(h.1? - h.0)).collect();
        self.estimates.push_back(chirp(&delays?, &self.rates()));
        if self.estimates.len() < CHIRPS {
            return None;
        }
        let all: Vec<f64> = std::mem::take(&mut self.estimates).into();
        let mean = swell_stats::mean(&all)?;
        self.follow(mean);
        Some((mean, mean))
    }
}
