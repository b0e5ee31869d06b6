//! Variation of counts per bin with the bin width, and their autocorrelation.
//!
//! Units: counts of any quantity (packets, bytes); lags and widths in bins. Source: D. R. Cox, P. A. W. Lewis, "The
//! Statistical Analysis of Series of Events" (1966), for the index of dispersion for counts; G. Box, G. Jenkins,
//! "Time Series Analysis" (1970), section 2.1.5, for the autocorrelation estimate (divisor n at every lag).
//! Validation: Poisson laws below, NumPy in `python-tests`.

use serde::{Deserialize, Serialize};

use crate::moments;

/// The spread of counts at one bin width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// The width, in original bins.
    pub width: u64,
    /// Number of such bins.
    pub bins: u64,
    /// The coefficient of variation of the counts. A Poisson process with mean count m has 1/sqrt(m).
    pub cov: f64,
    /// The index of dispersion for counts, variance over mean. A Poisson process has 1 at every width;
    /// in bytes of packets with sizes S it is the mean of S^2 over the mean of S.
    pub idc: f64,
}

/// Sums of `width` consecutive counts; an incomplete last bin is dropped. Empty for a width of zero.
pub fn aggregate(counts: &[f64], width: usize) -> Vec<f64> {
    if width == 0 {
        return Vec::new();
    }
    counts.chunks_exact(width).map(|c| c.iter().sum()).collect()
}

/// Coefficient of variation and index of dispersion of counts in bins of `width` original bins. `None`
/// with fewer than two such bins or a mean of zero.
pub fn dispersion(counts: &[f64], width: usize) -> Option<Dispersion> {
    let sums = aggregate(counts, width);
    let mean = moments::mean(&sums)?;
    let variance = moments::variance(&sums)?;
    (mean != 0.0).then(|| Dispersion {
        width: width as u64,
        bins: sums.len() as u64,
        cov: variance.sqrt() / mean,
        idc: variance / mean,
    })
}

/// [`dispersion`] at widths 1, 2, 4, .. while at least `min_bins` bins are left.
pub fn dispersions(counts: &[f64], min_bins: usize) -> Vec<Dispersion> {
    let mut sums = counts.to_vec();
    let mut width = 1;
    let mut found = Vec::new();
    while sums.len() >= min_bins.max(2) {
        match dispersion(&sums, 1) {
            Some(d) => found.push(Dispersion { width, ..d }),
            None => break,
        }
        sums = aggregate(&sums, 2);
        width *= 2;
    }
    found
}

/// The autocorrelation at lags 0..=`max_lag`, as far as there are samples; lag 0 is 1. Empty for constant samples.
/// Time O(n * max_lag).
pub fn autocorrelation(samples: &[f64], max_lag: usize) -> Vec<f64> {
    let Some(mean) = moments::mean(samples) else {
        return Vec::new();
    };
    let centred: Vec<f64> = samples.iter().map(|x| x - mean).collect();
    let covariance = |lag: usize| -> f64 {
        centred
            .iter()
            .zip(&centred[lag..])
            .map(|(a, b)| a * b)
            .sum()
    };
    let variance = covariance(0);
    if variance.is_nan() || variance <= 0.0 {
        return Vec::new();
    }
    (0..=max_lag.min(samples.len() - 1))
        .map(|lag| covariance(lag) / variance)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn poisson_counts_have_an_index_of_one_at_every_width() {
        let mut s = Stream::new(1, "idc");
        let mut counts = vec![0.0; 1 << 15];
        let mut t = s.exponential(0.5);
        while let Some(bin) = counts.get_mut(t as usize) {
            *bin += 1.0;
            t += s.exponential(0.5);
        }
        let all = dispersions(&counts, 100);
        assert_eq!(
            all.iter().map(|d| d.width).collect::<Vec<_>>(),
            [1, 2, 4, 8, 16, 32, 64, 128, 256]
        );
        for d in all {
            // The index times (n-1) is nearly chi-square with a standard deviation of sqrt(2/n). The bound is four of
            // these.
            let sd = (2.0 / d.bins as f64).sqrt();
            assert!((d.idc - 1.0).abs() < 4.0 * sd, "{d:?}");
            let poisson = 1.0 / (2.0 * d.width as f64).sqrt();
            assert!((d.cov / poisson - 1.0).abs() < 4.0 * sd, "{d:?}");
            let direct = dispersion(&counts, d.width as usize).unwrap();
            assert!((direct.idc / d.idc - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn an_autoregression_forgets_geometrically() {
        let mut s = Stream::new(2, "ar");
        let mut x = 0.0;
        let series: Vec<f64> = (0..100_000)
            .map(|_| {
                x = 0.7 * x + s.exponential(1.0);
                x
            })
            .collect();
        let r = autocorrelation(&series, 5);
        for (lag, got) in r.iter().enumerate() {
            // Bartlett's standard error is below sqrt((1 + a^2)/(1 - a^2)/n) = 0.0054.
            assert!(
                (got - 0.7f64.powi(lag as i32)).abs() < 4.0 * 0.0054,
                "{lag}: {got}"
            );
        }
    }

    #[test]
    fn by_hand_and_degenerate() {
        assert_eq!(aggregate(&[1.0, 2.0, 3.0, 4.0, 5.0], 2), [3.0, 7.0]);
        assert_eq!(autocorrelation(&[1.0, 2.0, 3.0], 9), [1.0, 0.0, -0.5]);
        assert!(autocorrelation(&[2.0; 9], 3).is_empty() && autocorrelation(&[], 3).is_empty());
        assert!(aggregate(&[1.0], 0).is_empty());
        assert_eq!(
            (dispersion(&[1.0, 2.0], 2), dispersion(&[0.0, 0.0], 1)),
            (None, None)
        );
        assert!(dispersions(&[], 0).is_empty());
    }
}
