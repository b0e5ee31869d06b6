//! PathChirp (V. Ribeiro, R. Riedi, R. Baraniuk, J. Navratil and L. Cottrell, Efficient Available Bandwidth Estimation for
//! Network Paths, PAM 2003). A chirp is packets that come ever faster. Where its delays rise and fall again, cross traffic
//! came; where they rise for good, the rate is above what is free. Defaults are those of the released tool, version 2.3.
//! It says a mean of the last chirps after each of them; here each chirp is in one estimate only.

use std::collections::VecDeque;

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, delay};

/// Each gap is the last one over this.
const SPREAD: f64 = 1.2;
/// Network-layer bytes.
const SIZE: u32 = 1000;
/// Mean rate of the probe to begin with, its least and its most, bits per second.
const LOAD: [f64; 3] = [0.3e6, 5e3, 3e6];
/// Highest rate of a chirp.
const HIGHEST: f64 = 1.5e9;
/// An excursion is over when the delay is this much less than its highest.
const FALL: f64 = 1.5;
/// Shortest excursion, packets.
const SHORTEST: usize = 5;
/// Delays that differ by no more microseconds are equal: times are whole nanoseconds.
const SAME: f64 = 0.01;
/// Chirps of an estimate, and the most, where the range is not found.
const CHIRPS: usize = 11;
const MOST: usize = 66;

/// The chirps so far.
pub(super) struct Pathchirp {
    /// Lowest and highest rate of a chirp, bits per second.
    low: f64,
    high: f64,
    /// Mean rate of the probe, bits per second.
    load: f64,
    /// What the last chirps said, and how many of them are in no estimate yet.
    recent: VecDeque<f64>,
    fresh: usize,
    /// How often the mean was near an end of the range: below, above.
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

    /// Moves the range where the mean lies at an end of it for the third time.
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

/// What is free by one chirp, of whose packet k + 1 came `delays[k + 1]` after it was sent, and was sent at `rates[k]` after
/// the one before.
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
        // The tool takes a chirp with losses for half its lowest rate.
        let free = delays.map_or(self.low / 2.0, |delays| chirp(&delays, &self.rates()));
        self.recent.push_back(free);
        self.fresh += 1;
        if self.recent.len() < CHIRPS {
            return None;
        }
        let mean = self.recent.iter().sum::<f64>() / CHIRPS as f64;
        self.recent.pop_front();
        self.follow(mean);
        // What lies at an end of the range says little, and a range that was left nothing.
        let is_inside = self.out == [0; 2] && !self.recent.is_empty();
        let is_due = self.fresh >= CHIRPS && is_inside || self.fresh >= MOST;
        if is_due {
            self.fresh = 0;
        }
        is_due.then_some((mean, mean))
    }
}
