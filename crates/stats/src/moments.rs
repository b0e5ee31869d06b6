//! Mean, variance, standard deviation and coefficient of variation.
//!
//! Units: those of the samples (squared for the variance); the coefficient of variation has none. Two passes keep the
//! precision of a small spread around a large mean. Validation: NumPy, in `python-tests`.

/// The arithmetic mean; `None` for no samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() {
        return None;
    }
    Some(samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The unbiased variance (divisor n - 1); `None` for fewer than two samples.
pub fn variance(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let centre = mean(samples)?;
    let squares: f64 = samples.iter().map(|x| (x - centre) * (x - centre)).sum();
    Some(squares / (samples.len() - 1) as f64)
}

/// The standard deviation (divisor n - 1); `None` for fewer than two samples.
pub fn sd(samples: &[f64]) -> Option<f64> {
    variance(samples).map(f64::sqrt)
}

/// The coefficient of variation: standard deviation over mean. `None` for fewer than two samples or a
/// mean of zero. Counts of a Poisson process with mean m have 1/sqrt(m).
pub fn cov(samples: &[f64]) -> Option<f64> {
    let centre = mean(samples)?;
    let spread = sd(samples)?;
    (centre != 0.0).then_some(spread / centre)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn by_hand() {
        let x = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&x), Some(5.0));
        assert_eq!(variance(&x), Some(32.0 / 7.0));
        assert_eq!(cov(&x), Some((32.0f64 / 7.0).sqrt() / 5.0));
        assert_eq!(
            (mean(&[]), sd(&[1.0]), cov(&[-1.0, 1.0])),
            (None, None, None)
        );
    }

    #[test]
    fn a_small_spread_around_a_large_mean_survives() {
        assert_eq!(variance(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]), Some(1.0));
    }

    #[test]
    fn exponential_samples_have_a_coefficient_of_one() {
        let mut s = Stream::new(3, "cov");
        let x: Vec<f64> = (0..100_000).map(|_| s.exponential(5.0)).collect();
        // The standard error is 1/sqrt(n) = 0.0032 (delta method, exponential); the bound is four of these.
        let c = cov(&x).unwrap();
        assert!((c - 1.0).abs() < 0.0127, "{c}");
    }
}
