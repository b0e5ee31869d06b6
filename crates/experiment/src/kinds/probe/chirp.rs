//! PathChirp (V. Ribeiro, R. Riedi, R. Baraniuk, J. Navratil and L. Cottrell, Efficient Available Bandwidth Estimation
//! for Network Paths, PAM 2003). A chirp is a train of packets with decreasing gaps. Delays that rise and fall again
//! indicate a burst of cross traffic; delays that keep rising indicate a rate above the available bandwidth. Defaults
//! are those of the released tool, version 2.3. The tool reports a running mean after each chirp; here each chirp
//! contributes to only one estimate.

use std::collections::VecDeque;

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, delay};

/// Ratio of each gap to the next.
const SPREAD: f64 = 1.2;
/// Packet size, network-layer bytes.
const SIZE: u32 = 1000;
/// Mean rate of the probe: initial, minimum and maximum, bits per second.
const LOAD: [f64; 3] = [0.3e6, 5e3, 3e6];
/// Highest rate of a chirp.
const HIGHEST: f64 = 1.5e9;
/// An excursion ends when the delay has fallen from its maximum by this factor.
const FALL: f64 = 1.5;
/// Shortest excursion, packets.
const SHORTEST: usize = 5;
/// Delays within this difference, in microseconds, are equal: times are whole nanoseconds.
const SAME: f64 = 0.01;
/// Number of chirps in an estimate.
const CHIRPS: usize = 11;
/// Maximum number of chirps in an estimate, if the range of rates is not found.
const MOST: usize = 66;

/// The chirps so far.
pub(super) struct Pathchirp {
    /// Lowest and highest rate of a chirp, bits per second.
    low: f64,
    high: f64,
    /// Mean rate of the probe, bits per second.
    load: f64,
    /// Estimates of the last chirps.
    recent: VecDeque<f64>,
    /// Number of chirps that are in no estimate yet.
    fresh: usize,
    /// How often the mean was near the lower and the upper end of the range.
    out: [u32; 2],
}

impl Pathchirp {
    pub(super) fn new() -> Pathchirp {
        Pathchirp {
            low: 10e6,
            high: 200e6,
            load: LOAD[0],
            recent: VecDeque::new(),
            fresh: 0,
            out: [0; 2],
        }
    }

    /// Rates of a chirp's gaps: the last one is the highest.
    fn rates(&self) -> Vec<f64> {
        let steps = ((self.high / self.low).ln() / SPREAD.ln()).ceil() as i32;
        (1..=steps)
            .rev()
            .map(|k| self.high / SPREAD.powi(k - 1))
            .collect()
    }

    /// Moves the range when the mean is near one of its ends for the third time.
    fn follow(&mut self, mean: f64) {
        let near = [mean < 1.5 * self.low, mean > 0.66 * self.high];
        for (out, is_near) in self.out.iter_mut().zip(near) {
            *out = if is_near { *out + 1 } else { 0 };
        }
        let [below, above] = self.out.map(|n| n > 2);
        let around = if below {
            self.low
        } else if above && self.high < 0.9 * HIGHEST {
            self.high
        } else {
            self.out[1] *= u32::from(!above);
            return;
        };
        let by = if around > 1e6 { 7.0 } else { 4.0 };
        self.high = (around * by).min(HIGHEST);
        self.low = (around / by).min(self.high / 10.0);
        let load = self.load.clamp(self.low / 10.0, self.low / 5.0);
        self.load = load.clamp(LOAD[1], LOAD[2]);
        self.out = [0; 2];
        self.recent.clear();
    }
}

/// The available bandwidth from one chirp. Packet k + 1 had the delay `delays[k + 1]`, and followed the previous one at
/// the rate `rates[k]`.
pub(super) fn chirp(delays: &[f64], rates: &[f64]) -> f64 {
    let n = rates.len();
    let mut each = vec![None; n];
    let mut open = n.saturating_sub(1);
    let mut i = 0;
    while i < n {
        if delays[i + 1] - delays[i] <= SAME {
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
                    for k in (i..j).filter(|&k| delays[k + 1] - delays[k] > SAME) {
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
        let every = packets.len() as f64 * bits / self.load;
        let pause = if every > at { every - at } else { at };
        Train {
            packets,
            pause: Dur::from_secs_f64(pause),
        }
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        let delays: Option<Vec<f64>> = heard.iter().map(delay).collect();
        // As in the tool, a chirp with losses counts as half its lowest rate.
        let free = delays.map_or(self.low / 2.0, |delays| chirp(&delays, &self.rates()));
        self.recent.push_back(free);
        self.fresh += 1;
        if self.recent.len() < CHIRPS {
            return None;
        }
        let mean = self.recent.iter().sum::<f64>() / CHIRPS as f64;
        self.recent.pop_front();
        self.follow(mean);
        // Estimates near an end of the range are unreliable, and those from an earlier range are dropped.
        let is_inside = self.out == [0; 2] && !self.recent.is_empty();
        let is_due = self.fresh >= CHIRPS && is_inside || self.fresh >= MOST;
        if is_due {
            self.fresh = 0;
        }
        is_due.then_some((mean, mean))
    }
}
