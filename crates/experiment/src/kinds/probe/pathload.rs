//! Pathload (M. Jain and C. Dovrolis, End-to-End Available Bandwidth, IEEE/ACM ToN 11(4), 2003; section 4). If a stream
//! of packets is faster than the available bandwidth, the queue grows and delays rise along the stream. Fleets of
//! streams, each fleet at one rate, search for the range of rates in which some streams show a rise and some do not.
//!
//! The search is that of the released tool, version 1.3. Its tests and thresholds differ from the paper's, so there are
//! two [`Profile`]s. The tool compares the `n - 1` pairs of `n` medians, but divides the number of rises by `n`, so fewer
//! streams count as rising. The tool's filters for hosts with late timestamps are left out, because simulated hosts do not need them. Above
//! 150 Mbit/s the tool rounds gaps to the nearest microsecond. Here gaps are rounded down, so that every rate is
//! possible with packets of at most 1500 bytes.

use swell_base::{Dur, Stream};

use super::estimator::{Estimator, Heard, Range, Train, delay};

/// Packets in a stream.
const STREAM: usize = 100;
/// Streams in a fleet.
const FLEET: usize = 12;
/// Packets in the trains that find the initial rate. If a train loses packets, the next one is sent.
const FIRST: [usize; 5] = [50, 35, 20, 5, 3];
/// Largest and smallest packets, network-layer bytes.
const SIZES: (f64, f64) = (1500.0, 228.0);
/// Shortest gap, microseconds.
const SHORTEST: f64 = 7.0;
/// If a stream takes at least this long, in seconds, a fleet has only one stream.
const LONG: f64 = 0.5;
/// Lowest rate: the smallest packets every 0.2 s.
const LEAST: f64 = SIZES.1 * 8.0 / 0.2;
/// Highest rate: full packets at the shortest gap.
const MOST: f64 = SIZES.0 * 8e6 / SHORTEST;
/// Loss ratio above which a stream counts as lossy.
const LOSSY: f64 = 0.03;
/// A stream needs more delays than this for the tests.
const ENOUGH: usize = 36;

/// What the released tool and the paper do differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Profile {
    /// Usual gap, microseconds.
    gap: f64,
    /// Below the first a test says that delays do not rise, above the second that they do: pairs of medians compared,
    /// and the difference of the ends.
    compared: (f64, f64),
    difference: (f64, f64),
    /// Whether rises are counted out of the medians, rather than out of their pairs.
    of_medians: bool,
    /// Loss ratio above which a stream counts as rising, and ends its fleet.
    lost: f64,
    /// Share of the streams that decide a fleet.
    agree: f64,
}

/// The tool, version 1.3: thresholds of 0.55 and 0.4, a tenth to either side of which is unsure.
pub(super) const RELEASED: Profile = Profile {
    gap: 80.0,
    compared: (0.9 * 0.55, 1.1 * 0.55),
    difference: (0.9 * 0.4, 1.1 * 0.4),
    of_medians: true,
    lost: 0.15,
    agree: 0.6,
};

/// The paper of 2003, section 4.
pub(super) const PUBLISHED: Profile = Profile {
    gap: 100.0,
    compared: (0.54, 0.66),
    difference: (0.45, 0.55),
    of_medians: false,
    lost: 0.1,
    agree: 0.7,
};

/// The result of a test, a stream or a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Rising,
    Flat,
    Unsure,
}

/// The search.
pub(super) struct Pathload {
    profile: Profile,
    /// Rate of the fleet; zero before the first train.
    rate: f64,
    /// Size and gap of its packets: bytes, microseconds.
    size: f64,
    gap: f64,
    /// Rates at which lossy initial trains arrived.
    first: Vec<f64>,
    streams: Vec<Option<Trend>>,
    lossy: usize,
    /// Whether the fleet is a repetition. A fleet with too few usable streams is repeated once.
    again: bool,
    /// Bounds of the available bandwidth and of the grey region; zero means none yet.
    low: f64,
    high: f64,
    grey: (f64, f64),
    /// The last unambiguous result of a fleet. Rates double as long as these results agree.
    last: Option<Trend>,
    turned: bool,
    /// How often the highest or the lowest rate was chosen.
    ends: usize,
    /// Width of the range, and of the remainder beside a grey region, at which the search ends.
    width: f64,
    beside: f64,
}

impl Pathload {
    pub(super) fn new(profile: Profile) -> Pathload {
        Pathload {
            profile,
            rate: 0.0,
            size: 0.0,
            gap: 0.0,
            first: Vec::new(),
            streams: Vec::new(),
            lossy: 0,
            again: false,
            low: 0.0,
            high: 0.0,
            grey: (0.0, 0.0),
            last: None,
            turned: false,
            ends: 0,
            width: 0.0,
            beside: 0.0,
        }
    }

    /// Chooses packet size and gap for a stream of about this rate, and sets the resulting rate.
    fn choose(&mut self, rate: f64) {
        let rate = rate.clamp(LEAST, MOST);
        self.ends += usize::from(rate >= MOST || rate <= LEAST);
        let per_gap = |gap: f64| (rate * gap / 8e6).round();
        self.gap = self.profile.gap.min((SIZES.0 * 8e6 / rate).floor());
        self.size = per_gap(self.gap).min(SIZES.0);
        if self.size < SIZES.1 {
            self.size = SIZES.1;
            self.gap = (self.size * 8e6 / rate).round();
        }
        self.rate = self.size * 8e6 / self.gap;
    }

    /// Begins at the arrival rate of the first train, which is at least the available bandwidth.
    fn begin(&mut self, heard: &[Heard]) {
        let mut came = heard.iter().filter_map(|h| h.1);
        let n = heard.iter().filter(|h| h.1.is_some()).count();
        if let (Some(first), Some(last)) = (came.next(), came.next_back()) {
            let seconds = last.since(first).as_secs_f64();
            self.first.push((n - 1) as f64 * SIZES.0 * 8.0 / seconds);
        }
        if n < heard.len() && self.first.len() < FIRST.len() {
            return;
        }
        let known = match self.first.last() {
            Some(&whole) if n == heard.len() => Some(whole),
            _ => swell_stats::mean(&self.first),
        };
        let known = known.filter(|r| (LEAST..=MOST).contains(r));
        self.width = known.map_or(2e6, |r| 0.02 * r);
        self.beside = known.map_or(LEAST, |r| (0.05 * r).min(12e6));
        self.choose(known.unwrap_or((MOST + LEAST) / 2.0));
    }

    /// Number of streams in a fleet.
    fn fleet(&self) -> usize {
        match STREAM as f64 * self.gap >= LONG * 1e6 {
            true => 1,
            false => FLEET,
        }
    }

    /// The result of the fleet; `None` if too few streams are usable.
    fn says(&self) -> Option<Trend> {
        if self.lossy * 2 >= FLEET {
            return Some(Trend::Rising);
        }
        let known: Vec<Trend> = self.streams.iter().flatten().copied().collect();
        if known.len() * 2 < self.streams.len() && !self.again {
            return None;
        }
        let share = |t: Trend| {
            known.iter().filter(|&&own| own == t).count() as f64 / known.len().max(1) as f64
        };
        Some(match (share(Trend::Rising), share(Trend::Flat)) {
            (rising, _) if rising >= self.profile.agree => Trend::Rising,
            (_, flat) if flat >= self.profile.agree => Trend::Flat,
            _ => Trend::Unsure,
        })
    }

    /// Updates the bounds with the result of a fleet. Returns the range if it is narrow enough, else chooses the next
    /// rate.
    fn learn(&mut self, trend: Trend) -> Option<Range> {
        let rate = self.rate;
        if trend != Trend::Unsure {
            self.turned |= self.last.is_some_and(|last| last != trend);
            self.last = Some(trend);
        }
        let grey = &mut self.grey;
        match trend {
            Trend::Rising => {
                if grey.1 >= rate {
                    *grey = (0.0, 0.0);
                }
                self.high = rate;
                if rate >= MOST {
                    self.ends = 0;
                }
            }
            Trend::Flat => {
                if grey.0 < rate {
                    grey.0 = 0.0;
                }
                if grey.1 < rate {
                    grey.1 = 0.0;
                }
                self.low = self.low.max(rate);
            }
            Trend::Unsure => {
                if rate < grey.0 || grey.0 == 0.0 {
                    grey.0 = rate;
                }
                grey.1 = grey.1.max(rate);
            }
        }
        if let Some(range) = self.done() {
            return Some(range);
        }
        let next = match trend {
            Trend::Flat if !self.turned => 2.0 * rate,
            Trend::Unsure if self.high == 0.0 => 1.5 * rate,
            Trend::Rising => self.between(true),
            Trend::Flat => self.between(false),
            Trend::Unsure => self.between(rate >= self.grey.1),
        };
        self.choose(next);
        // Twice at the highest or lowest possible rate: the available bandwidth is beyond it.
        (self.ends > 1).then_some((self.low.clamp(LEAST, self.rate), self.rate))
    }

    /// The middle of the remainder above or below the grey region, the preferred side first.
    fn between(&self, above_first: bool) -> f64 {
        let (below, above) = self.grey;
        let half = |a: f64, b: f64| (a + b) / 2.0;
        let over = (above > 0.0 && self.high - above > self.beside).then(|| half(above, self.high));
        let under = (below > 0.0 && below - self.low > self.beside).then(|| half(self.low, below));
        let side = match above_first {
            true => over.or(under),
            false => under.or(over),
        };
        side.unwrap_or(half(self.low, self.high))
    }

    /// The range, if it is narrow enough.
    fn done(&self) -> Option<Range> {
        let (below, above) = self.grey;
        if self.high == 0.0 {
            return None;
        }
        if self.high - self.low <= self.width {
            return Some((self.low.min(self.high), self.low.max(self.high)));
        }
        let is_grey = above > 0.0;
        let is_close = self.high - above <= self.beside && below - self.low <= self.beside;
        (is_grey && is_close).then_some((below.max(self.low), above))
    }
}

/// The trend of a stream. Ignores packets that arrived together with the next one.
fn stream(heard: &[Heard], profile: &Profile) -> Option<Trend> {
    let apart = |w: &[Heard]| {
        let gap = w[1].1?.since(w[0].1?);
        delay(&w[0]).filter(|_| gap > Dur::from_micros(SHORTEST as u64))
    };
    let delays: Vec<f64> = heard.windows(2).filter_map(apart).collect();
    trend(&delays, profile)
}

/// Applies both tests to delays, by medians of groups.
pub(super) fn trend(delays: &[f64], profile: &Profile) -> Option<Trend> {
    if delays.len() <= ENOUGH {
        return None;
    }
    let group = (delays.len() as f64).sqrt().floor() as usize;
    let medians: Vec<f64> = delays
        .chunks(group)
        .map(|own| {
            let mut own = own.to_vec();
            own.sort_by(f64::total_cmp);
            (own[(own.len() - 1) / 2] + own[own.len() / 2]) / 2.0
        })
        .collect();
    let steps: Vec<f64> = medians.windows(2).map(|w| w[1] - w[0]).collect();
    let ups = steps.iter().filter(|&&s| s > 0.0).count() as f64;
    let sum: f64 = steps.iter().map(|s| s.abs()).sum();
    let of = match profile.of_medians {
        true => medians.len(),
        false => steps.len(),
    };
    let compared = ups / of as f64;
    let difference = match sum > 0.0 {
        true => steps.iter().sum::<f64>() / sum,
        false => 0.0,
    };
    let test = |value: f64, (flat, rising): (f64, f64)| {
        if value > rising {
            Trend::Rising
        } else if value < flat {
            Trend::Flat
        } else {
            Trend::Unsure
        }
    };
    let both = (
        test(compared, profile.compared),
        test(difference, profile.difference),
    );
    match both {
        (a, b) if a == b && a != Trend::Unsure => Some(a),
        (a, Trend::Unsure) | (Trend::Unsure, a) if a != Trend::Unsure => Some(a),
        _ => Some(Trend::Unsure),
    }
}

impl Estimator for Pathload {
    fn next(&mut self, _: &mut Stream) -> Train {
        let pause = Dur::from_millis(100);
        if self.rate == 0.0 {
            return Train::even(FIRST[self.first.len()], 0.0, SIZES.0 as u32, pause);
        }
        let gap = self.gap / 1e6;
        // The pause reduces the average rate to a tenth.
        let pause = Dur::from_secs_f64(9.0 * gap * STREAM as f64).max(pause);
        Train::even(STREAM, gap, self.size as u32, pause)
    }

    fn heard(&mut self, heard: &[Heard]) -> Option<Range> {
        if self.rate == 0.0 {
            self.begin(heard);
            return None;
        }
        let lost = heard.iter().filter(|h| h.1.is_none()).count() as f64 / heard.len() as f64;
        let over = lost >= self.profile.lost;
        self.lossy += usize::from(lost >= LOSSY);
        self.streams.push(stream(heard, &self.profile));
        if self.streams.len() < self.fleet() && !over {
            return None;
        }
        let said = match over {
            true => Some(Trend::Rising),
            false => self.says(),
        };
        self.again = said.is_none();
        self.streams.clear();
        self.lossy = 0;
        let range = self.learn(said?)?;
        *self = Pathload::new(self.profile);
        Some(range)
    }
}
