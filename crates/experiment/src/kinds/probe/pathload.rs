//! Pathload (M. Jain and C. Dovrolis, End-to-End Available Bandwidth, IEEE/ACM ToN 11(4), 2003; section 4). A stream of
//! packets at a rate above what is free meets a queue that grows: delays rise along it. Fleets of streams, each fleet at
//! one rate, search for the range of rates at which some streams show a rise and some do not.
//!
//! Thresholds of the tests and the search are those of the released tool, version 1.3: 0.55 and 0.40 with a tenth of
//! either on both sides undecided, and 60 % of a fleet's streams. The filters for hosts that stamp packets late are left
//! out: simulated hosts do not.

use swell_base::{Dur, Stream};

use super::{Estimator, Heard, Range, Train};

/// Packets of a stream, and streams of a fleet.
const STREAM: usize = 100;
const FLEET: usize = 12;
/// Packets of the first train, which says where to begin.
const FIRST: usize = 50;
/// Largest and smallest packets, network-layer bytes.
const SIZES: (f64, f64) = (1500.0, 200.0);
/// Shortest gap, seconds.
const GAP: f64 = 80e-6;
/// Below this rate a stream is longer than half a second.
const LEAST: f64 = 228.0 * 8.0 / 0.2;
/// Highest rate: full packets at the shortest gap that hosts keep, 7 us twice.
const MOST: f64 = SIZES.0 * 8.0 / 14e-6;
/// Loss at which a stream counts as rising, and at which it is lossy.
const LOSS: (f64, f64) = (0.15, 0.03);
/// Least delays of a stream.
const ENOUGH: usize = 36;
/// Share of the streams that decide a fleet.
const AGREE: f64 = 0.6;

/// What a test, a stream or a fleet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Rising,
    Flat,
    Unsure,
}

/// The search.
pub(super) struct Pathload {
    /// Rate of the fleet; zero before the first train.
    rate: f64,
    streams: Vec<Option<Trend>>,
    lossy: usize,
    /// A fleet with too few streams that say anything is sent again, once.
    again: bool,
    /// Bounds of what is free and of the grey region; zero: none yet.
    low: f64,
    high: f64,
    grey: (f64, f64),
    /// No fleet has shown a rise yet: rates double.
    doubling: bool,
    /// Width of the range at which the search ends, and of what is left beside a grey region.
    width: f64,
    beside: f64,
}

impl Pathload {
    pub(super) fn new() -> Pathload {
        Pathload {
            rate: 0.0,
            streams: Vec::new(),
            lossy: 0,
            again: false,
            low: 0.0,
            high: 0.0,
            grey: (0.0, 0.0),
            doubling: true,
            width: 2e6,
            beside: 12e6,
        }
    }

    /// Size and gap of a stream of this rate.
    fn shape(&self) -> (f64, f64) {
        let size = self.rate * GAP / 8.0;
        let size = size.clamp(SIZES.1, SIZES.0).floor();
        (size, size * 8.0 / self.rate)
    }

    /// Begins at the rate with which the first train came: no less than what is free.
    fn begin(&mut self, heard: &[Heard]) {
        let came: Vec<f64> = heard.iter().filter_map(|h| h.1).collect();
        let rate = match came.as_slice() {
            [first, .., last] if last > first => {
                (came.len() - 1) as f64 * SIZES.0 * 8.0 / (last - first)
            }
            _ => (MOST + LEAST) / 2.0,
        };
        self.rate = rate.clamp(LEAST, MOST);
        self.width = 0.02 * self.rate;
        self.beside = (0.05 * self.rate).min(12e6);
    }

    /// What the fleet says; `None` where too few streams say anything.
    fn fleet(&self) -> Option<Trend> {
        if self.lossy * 2 >= FLEET {
            return Some(Trend::Rising);
        }
        let told: Vec<Trend> = self.streams.iter().flatten().copied().collect();
        if told.len() * 2 < self.streams.len() && !self.again {
            return None;
        }
        let share = |t: Trend| {
            told.iter().filter(|&&own| own == t).count() as f64 / told.len().max(1) as f64
        };
        Some(match (share(Trend::Rising), share(Trend::Flat)) {
            (rising, _) if rising >= AGREE => Trend::Rising,
            (_, flat) if flat >= AGREE => Trend::Flat,
            _ => Trend::Unsure,
        })
    }

    /// Takes what a fleet says for the bounds, and the next rate.
    fn learn(&mut self, trend: Trend) {
        let rate = self.rate;
        match trend {
            Trend::Rising => {
                self.doubling = false;
                self.high = rate;
                if self.grey.1 >= rate {
                    self.grey = (0.0, 0.0);
                }
            }
            Trend::Flat => {
                self.low = self.low.max(rate);
                if self.grey.1 > 0.0 && self.grey.1 < rate {
                    self.grey = (0.0, 0.0);
                } else if self.grey.0 < rate {
                    self.grey.0 = if self.grey.1 > 0.0 { rate } else { 0.0 };
                }
            }
            Trend::Unsure => {
                self.doubling = false;
                if self.grey == (0.0, 0.0) {
                    self.grey = (rate, rate);
                } else {
                    self.grey = (self.grey.0.min(rate), self.grey.1.max(rate));
                }
            }
        }
        let (below, above) = self.grey;
        let grey = above > 0.0;
        let half = |a: f64, b: f64| (a + b) / 2.0;
        self.rate = match (grey, self.high > 0.0) {
            // Above the grey region first, then below it.
            (true, true) if self.high - above > self.beside => half(self.high, above),
            (true, false) => (1.5 * rate).min(MOST),
            (true, true) => half(self.low, below),
            (false, true) => half(self.low, self.high),
            (false, false) => (2.0 * rate).min(MOST),
        };
        if !grey && self.high == 0.0 && !self.doubling {
            self.rate = half(rate, MOST);
        }
    }

    /// The range, where it is narrow enough.
    fn done(&self) -> Option<Range> {
        let (below, above) = self.grey;
        if self.high > 0.0 && self.high - self.low <= self.width {
            return Some((self.low, self.high));
        }
        let grey = above > 0.0 && self.high > 0.0;
        if grey && self.high - above <= self.beside && below - self.low <= self.beside {
            return Some((below, above));
        }
        (self.low >= MOST).then_some((MOST, MOST))
    }
}

/// The trend of a stream, by the delays of what came of it.
fn stream(heard: &[Heard]) -> Option<Trend> {
    let delays: Vec<f64> = heard.iter().filter_map(|h| Some(h.1? - h.0)).collect();
    trend(&delays)
}

/// Both tests of delays: by the medians of groups.
pub(super) fn trend(delays: &[f64]) -> Option<Trend> {
    if delays.len() <= ENOUGH {
        return None;
    }
    let group = (delays.len() as f64).sqrt().floor() as usize;
    let medians: Vec<f64> = delays
        .chunks_exact(group)
        .map(|own| {
            let mut own = own.to_vec();
            own.sort_by(f64::total_cmp);
            (own[(group - 1) / 2] + own[group / 2]) / 2.0
        })
        .collect();
    let steps: Vec<f64> = medians.windows(2).map(|w| w[1] - w[0]).collect();
    let ups = steps.iter().filter(|&&s| s > 0.0).count() as f64;
    let sum: f64 = steps.iter().map(|s| s.abs()).sum();
    let compared = ups / steps.len() as f64;
    let difference = match sum > 0.0 {
        true => steps.iter().sum::<f64>() / sum,
        false => 0.0,
    };
    let test = |value: f64, threshold: f64| {
        if value > 1.1 * threshold {
            Trend::Rising
        } else if value < 0.9 * threshold {
            Trend::Flat
        } else {
            Trend::Unsure
        }
    };
    match (test(compared, 0.55), test(difference, 0.4)) {
        (a, b) if a == b && a != Trend::Unsure => Some(a),
        (a, Trend::Unsure) | (Trend::Unsure, a) if a != Trend::Unsure => Some(a),
        _ => Some(Trend::Unsure),
    }
}

impl Estimator for Pathload {
    fn next(&mut self, _: &mut Stream) -> Train {
        if self.rate == 0.0 {
            return Train::even(FIRST, 0.0, SIZES.0 as u32, Dur::from_millis(500));
        }
        let (size, gap) = self.shape();
        // A tenth of the rate on average.
        let pause = Dur::from_secs_f64(9.0 * gap * STREAM as f64).max(Dur::from_millis(100));
        Train::even(STREAM, gap, size as u32, pause)
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        if self.rate == 0.0 {
            self.begin(heard);
            return None;
        }
        let lost = heard.iter().filter(|h| h.1.is_none()).count() as f64 / heard.len() as f64;
        let over = lost >= LOSS.0;
        self.lossy += usize::from(lost >= LOSS.1);
        self.streams.push(match over {
            true => Some(Trend::Rising),
            false => stream(heard),
        });
        if self.streams.len() < FLEET && !over && self.lossy * 2 < FLEET {
            return None;
        }
        let said = if over {
            Some(Trend::Rising)
        } else {
            self.fleet()
        };
        self.again = said.is_none();
        self.streams.clear();
        self.lossy = 0;
        self.learn(said?);
        let range = self.done()?;
        *self = Pathload::new();
        Some(range)
    }
}
