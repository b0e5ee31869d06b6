//! The empirical distribution of complete samples: quantiles, CDF, points for plots.
//!
//! Units: those of the samples. Source: R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages",
//! The American Statistician 50 (1996), definition 7: with order statistics x_1..x_n and h = (n-1)p,
//! the quantile is x_{k+1} + (h-k)(x_{k+2} - x_{k+1}), k = floor(h). Validation: NumPy, in `python-tests`.

use crate::moments;

/// Sorted samples without NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ecdf {
    sorted: Vec<f64>,
}

impl Ecdf {
    /// The distribution of `samples`; NaN is dropped.
    pub fn new(mut samples: Vec<f64>) -> Ecdf {
        samples.retain(|x| !x.is_nan());
        samples.sort_unstable_by(f64::total_cmp);
        Ecdf { sorted: samples }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The samples in ascending order.
    pub fn samples(&self) -> &[f64] {
        &self.sorted
    }

    /// The type 7 quantile for `p` in 0..=1; `None` without samples or for other `p`.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if self.sorted.is_empty() || !(0.0..=1.0).contains(&p) {
            return None;
        }
        let h = (self.sorted.len() - 1) as f64 * p;
        let below = h as usize;
        let low = self.sorted[below];
        let high = self.sorted[(below + 1).min(self.sorted.len() - 1)];
        Some(between(low, high, h - below as f64))
    }

    /// The share of samples at or below `x`, 0..=1; zero without samples.
    pub fn cdf(&self, x: f64) -> f64 {
        if self.sorted.is_empty() {
            return 0.0;
        }
        self.sorted.partition_point(|&s| s <= x) as f64 / self.sorted.len() as f64
    }

    /// The mean; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        moments::mean(&self.sorted)
    }

    /// The standard deviation (divisor n - 1); `None` for fewer than two samples.
    pub fn sd(&self) -> Option<f64> {
        moments::sd(&self.sorted)
    }

    /// The coefficient of variation; `None` for fewer than two samples or a mean of zero.
    pub fn cov(&self) -> Option<f64> {
        moments::cov(&self.sorted)
    }

    /// At most `limit` points (value, share of samples at or below it) for a plot, ascending in both, without
    /// repeated values. The first and last step are kept if `limit` is at least two. The others are spread evenly
    /// over the *ranks*, so the plotted curve is off by at most 1/(limit - 1).
    pub fn points(&self, limit: usize) -> Vec<(f64, f64)> {
        let n = self.sorted.len();
        let wanted = limit.min(n);
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(wanted);
        for i in 0..wanted {
            // Ranks 0 and n - 1 are the first and the last point; a single point is the last.
            let rank = if wanted == 1 {
                n - 1
            } else {
                ((n - 1) as u128 * i as u128 / (wanted - 1) as u128) as usize
            };
            let value = self.sorted[rank];
            if points.last().is_none_or(|&(last, _)| last < value) {
                points.push((value, self.cdf(value)));
            }
        }
        points
    }
}

/// The value at the fraction `f` (0..=1) of the way from `low` to `high`; exact at both ends and safe for equal
/// infinities.
pub(crate) fn between(low: f64, high: f64, f: f64) -> f64 {
    if f == 0.0 || low == high {
        low
    } else {
        low + (high - low) * f
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn type_seven_by_hand() {
        // quantile(c(1, 2, 4, 8), c(0, .1, .25, .5, .9, 1)) in R.
        let e = Ecdf::new(vec![8.0, 1.0, 4.0, 2.0]);
        for (p, q) in [
            (0.0, 1.0),
            (0.1, 1.3),
            (0.25, 1.75),
            (0.5, 3.0),
            (0.9, 6.8),
            (1.0, 8.0),
        ] {
            let got = e.quantile(p).unwrap();
            assert!((got - q).abs() < 1e-15 * 8.0, "{p}: {got} {q}");
        }
        assert_eq!(e.quantile(1.1), None);
        assert_eq!(e.quantile(f64::NAN), None);
        assert_eq!(Ecdf::new(vec![f64::NAN]).quantile(0.5), None);
        assert_eq!(Ecdf::new(vec![7.0]).quantile(0.3), Some(7.0));
        let never = Ecdf::new(vec![1.0, f64::INFINITY, f64::INFINITY]);
        assert_eq!(never.quantile(0.9), Some(f64::INFINITY));
    }

    #[test]
    fn cdf_counts_what_is_at_or_below() {
        let e = Ecdf::new(vec![1.0, 2.0, 2.0, 3.0]);
        assert_eq!(
            [0.5, 1.0, 2.0, 2.5, 3.0].map(|x| e.cdf(x)),
            [0.0, 0.25, 0.75, 0.75, 1.0]
        );
    }

    #[test]
    fn thinned_points_stay_within_their_promise() {
        let mut s = Stream::new(5, "points");
        for (n, limit) in [(1usize, 10usize), (7, 10), (1000, 20), (5000, 200)] {
            let e = Ecdf::new((0..n).map(|_| (s.exponential(9.0) * 4.0).round()).collect());
            let points = e.points(limit);
            assert!(points.len() <= limit);
            assert_eq!(points[0].0, e.samples()[0]);
            assert_eq!(*points.last().unwrap(), (e.samples()[n - 1], 1.0));
            let mut drawn = 0.0;
            for w in points.windows(2) {
                assert!(w[0].0 < w[1].0 && w[0].1 < w[1].1);
                // Between two plotted points the true CDF stays between their heights, and at most 1/(limit - 1) of
                // the samples lie strictly between them.
                let inside = e
                    .samples()
                    .iter()
                    .filter(|&&x| w[0].0 < x && x < w[1].0)
                    .count() as f64;
                drawn = f64::max(drawn, inside / n as f64);
            }
            assert!(drawn <= 1.0 / (limit - 1) as f64, "{n} {limit}: {drawn}");
        }
        assert!(Ecdf::default().points(10).is_empty());
        assert!(Ecdf::new(vec![1.0]).points(0).is_empty());
    }

    #[test]
    fn moments_by_hand() {
        let e = Ecdf::new(vec![8.0, 1.0, 4.0, 3.0]);
        assert_eq!(e.mean(), Some(4.0));
        // Squares of 4, -3, 0 and -1 over three.
        let sd = (26.0f64 / 3.0).sqrt();
        assert!((e.sd().expect("four samples") - sd).abs() < 1e-12);
        assert!((e.cov().expect("four samples") - sd / 4.0).abs() < 1e-12);
        assert_eq!(
            [0.9, 1.0, 3.5, 8.0].map(|x| e.cdf(x)),
            [0.0, 0.25, 0.5, 1.0]
        );
        let nothing = Ecdf::new(Vec::new());
        assert_eq!(
            (nothing.mean(), nothing.sd(), nothing.cdf(1.0)),
            (None, None, 0.0)
        );
    }
}
