//! Quantiles of millions of values in a few kilobytes, mergeable, with 1 % relative error.
//!
//! Units: those of the values. Source: C. Masson, J. E. Rim, H. K. Lee, "DDSketch", VLDB 12 (2019). Bucket i holds
//! the values in (g^(i-1), g^i] with g = (1 + a)/(1 - a). It reports 2 g^i/(g + 1), which is within the relative
//! error a of all of them. Buckets are never collapsed: all positive doubles need 73 000 of them (570 KiB), nine
//! decades 1037. Validation: the error bound, tested below.
//!
//! Not modelled: negative values; no measured quantity has them.

use serde::{Deserialize, Serialize};

/// The relative error of a quantile, for values that are normal numbers (at least 2.3e-308).
pub const SKETCH_ERROR: f64 = 0.01;

/// A mergeable histogram with logarithmic buckets. Equal values in any order, and any order of merging,
/// give equal sketches up to the rounding of the sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sketch {
    /// The index of `buckets[0]`.
    first: i32,
    buckets: Vec<u64>,
    zeros: u64,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Sketch {
    /// An empty sketch.
    pub fn new() -> Sketch {
        Sketch::default()
    }

    /// Adds one value. Negative, infinite and NaN values are refused: returns false.
    pub fn add(&mut self, value: f64) -> bool {
        if !(0.0..f64::INFINITY).contains(&value) {
            return false;
        }
        if value > 0.0 {
            let at = self.bucket(bucket_of(value));
            self.buckets[at] += 1;
        } else {
            self.zeros += 1;
        }
        self.range(value, value);
        self.count += 1;
        self.sum += value;
        true
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Sketch) {
        if other.count == 0 {
            return;
        }
        for (index, &n) in (other.first..).zip(&other.buckets) {
            if n > 0 {
                let at = self.bucket(index);
                self.buckets[at] += n;
            }
        }
        self.range(other.min, other.max);
        self.zeros += other.zeros;
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Number of values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of the values, exact up to rounding; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Within [`SKETCH_ERROR`] of the order statistic of rank floor((n-1)p), counted from zero. `None`
    /// without values or for `p` outside 0..=1.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if self.count == 0 || !(0.0..=1.0).contains(&p) {
            return None;
        }
        let rank = ((self.count - 1) as f64 * p) as u64;
        let mut below = self.zeros;
        if rank < below {
            return Some(0.0);
        }
        for (index, &n) in (self.first..).zip(&self.buckets) {
            below += n;
            if rank < below {
                return Some(value_of(index).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The position of bucket `index`, which is created if needed.
    fn bucket(&mut self, index: i32) -> usize {
        if self.buckets.is_empty() {
            self.first = index;
        }
        if index < self.first {
            let missing = (self.first - index) as usize;
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = index;
        }
        let at = (index - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0);
        }
        at
    }

    fn range(&mut self, min: f64, max: f64) {
        if self.count == 0 {
            (self.min, self.max) = (min, max);
        } else {
            self.min = self.min.min(min);
            self.max = self.max.max(max);
        }
    }
}

/// ln((1 + a)/(1 - a)).
fn log_base() -> f64 {
    libm::log1p(SKETCH_ERROR) - libm::log1p(-SKETCH_ERROR)
}

fn bucket_of(value: f64) -> i32 {
    libm::ceil(libm::log(value) / log_base()) as i32
}

fn value_of(index: i32) -> f64 {
    // 2/(g + 1) = 1 - a.
    libm::exp(f64::from(index) * log_base()) * (1.0 - SKETCH_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn quantiles_keep_the_promised_error_on_heavy_tails() {
        let mut s = Stream::new(1, "pareto");
        let mut x: Vec<f64> = (0..50_000)
            .map(|_| libm::pow(1.0 - s.uniform(), -1.0 / 1.2) * 1e-3)
            .collect();
        x[17] = 0.0;
        let mut parts = vec![Sketch::new(); 7];
        let mut whole = Sketch::new();
        for (i, &v) in x.iter().enumerate() {
            assert!(whole.add(v) && parts[i % 7].add(v));
        }
        let mut merged = Sketch::new();
        for p in parts.iter().rev() {
            merged.merge(p);
        }
        x.sort_by(f64::total_cmp);
        for i in 0..=1000 {
            let p = f64::from(i) / 1000.0;
            let exact = x[((x.len() - 1) as f64 * p) as usize];
            let got = whole.quantile(p).unwrap();
            // Bucket boundaries are rounded, so the bound holds up to rounding.
            assert!(
                (got - exact).abs() <= exact * SKETCH_ERROR * (1.0 + 1e-9),
                "{p}: {got} {exact}"
            );
            assert_eq!(merged.quantile(p), Some(got));
        }
        assert_eq!((whole.quantile(0.0), whole.count()), (Some(0.0), 50_000));
    }

    #[test]
    fn the_whole_range_of_doubles_fits() {
        let mut k = Sketch::new();
        for v in [f64::MAX, f64::MIN_POSITIVE, 1.0, 5e-324] {
            assert!(k.add(v));
        }
        assert!(k.buckets.len() < 73_000);
        assert!(!k.add(-1.0) && !k.add(f64::NAN) && !k.add(f64::INFINITY));
        assert_eq!(k.quantile(1.0), Some(f64::MAX));
        assert_eq!(k.quantile(1.5), None);
        assert_eq!(
            (Sketch::new().quantile(0.5), Sketch::new().mean()),
            (None, None)
        );
    }

    #[test]
    fn means_are_exact() {
        let mut s = Sketch::new();
        assert_eq!(s.mean(), None);
        for x in [0.0, 1.0, 2.5, 4.5] {
            s.add(x);
        }
        assert_eq!((s.mean(), s.count()), (Some(2.0), 4));
        let mut other = Sketch::new();
        other.add(12.0);
        s.merge(&other);
        assert_eq!((s.mean(), s.count()), (Some(4.0), 5));
    }
}
