//! Rates of long files: what the records show of transfers that the network's fastest clients do not explain.
//!
//! A file that took long was slowed down by something other than the start of TCP: its sender, its receiver, or an
//! access link. A network that is faster does not change that. So such a file is played at most at a rate that a
//! file of its size had in the records. Short transfers are left to TCP.

use std::collections::BTreeMap;

use swell_base::Rate;

use super::super::law::Law;
use super::super::model::{LARGE, RatesBySize, size_class};

/// A file that took at least this long in the records is played at most at its rate, seconds. Shorter ones depend on
/// round-trip times and the start of TCP.
const LONG: f64 = 10.0;
/// Ranks over which the expected duration of a file is averaged.
const RANKS: usize = 8;

/// The rates of the files of one direction, by size. Empty if no file took long.
#[derive(Clone, Debug, Default)]
pub(super) struct FileRates(BTreeMap<u8, Law>);

impl FileRates {
    pub(super) fn new(rates: &RatesBySize) -> FileRates {
        let laws = rates
            .iter()
            .filter_map(|(&class, h)| Some((class, Law::of(h)?)));
        let laws: BTreeMap<u8, Law> = laws.collect();
        let slow = |(&class, law): (&u8, &Law)| {
            let largest = 2.0 * 2f64.powi(i32::from(class));
            largest / law.quantile(0.0).max(1.0) >= LONG
        };
        match laws.iter().any(slow) {
            true => FileRates(laws),
            false => FileRates::default(),
        }
    }

    /// Whether no file has a limit.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The highest rate in bytes per second of a file with `size` bytes in the model, if it has a limit. `rank` in 0..1
    /// chooses the rate among those of files of its size.
    pub(super) fn limit(&self, size: f64, rank: f64) -> Option<f64> {
        let bytes = size as u64;
        if self.0.is_empty() || bytes < LARGE {
            return None;
        }
        let class = size_class(bytes);
        let below = self.0.range(..=class).next_back();
        let (_, law) = below.or_else(|| self.0.range(class..).next())?;
        let rate = law.quantile(rank).max(1.0);
        (size / rate >= LONG).then_some(rate)
    }

    /// Seconds within which every file of `sizes` with a limit is sent at its limit; 0 if none has one.
    pub(super) fn longest(&self, sizes: &Law) -> f64 {
        let largest = sizes.quantile(1.0);
        let above = self
            .0
            .keys()
            .skip(1)
            .map(|&class| 2f64.powi(i32::from(class)));
        let above = above.chain([f64::INFINITY]);
        let takes = self
            .0
            .values()
            .zip(above)
            .map(|(rates, end)| largest.min(end) / rates.quantile(0.0).max(1.0));
        takes.filter(|&seconds| seconds >= LONG).fold(0.0, f64::max)
    }

    /// The mean of `of` over the limits of a file with `size` bytes.
    pub(super) fn mean(&self, size: f64, of: impl Fn(Option<f64>) -> f64) -> f64 {
        if self.0.is_empty() || size < LARGE as f64 {
            return of(None);
        }
        let ranks = (0..RANKS).map(|i| (i as f64 + 0.5) / RANKS as f64);
        ranks.map(|r| of(self.limit(size, r))).sum::<f64>() / RANKS as f64
    }
}

/// The limits of the two files of a connection. In the records both were in progress at the same time, but played files
/// follow one another. So if both have a limit, they share the time of the larger one, at one rate.
pub(super) fn one_after_the_other(bytes: [u64; 2], limits: [Option<Rate>; 2]) -> [Option<Rate>; 2] {
    let [Some(up), Some(down)] = limits else {
        return limits;
    };
    let [up_bytes, down_bytes] = bytes.map(|n| n.max(1) as f64);
    let larger = if up_bytes > down_bytes { up } else { down };
    let rate = larger.scale((up_bytes + down_bytes) / up_bytes.max(down_bytes));
    [Some(rate); 2]
}
