//! Special functions used by the estimators and their tail probabilities.
//!
//! Digamma and Student's t come from `statrs`, the error function from `libm` (that
//! of `statrs` is accurate to 1e-11 only). The Hurwitz zeta function uses Euler-Maclaurin summation (F. Johansson,
//! "Rigorous high-precision computation of the Hurwitz zeta function", Numerical Algorithms 69 (2015)). Validation:
//! closed forms below, SciPy in `python-tests`.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::gamma;

/// B_{2k} / (2k)! for k = 1..6 (Bernoulli numbers 1/6, -1/30, 1/42, -1/30, 5/66, -691/2730).
const BERNOULLI_OVER_FACTORIAL: [f64; 6] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
];

/// zeta(2, a) = sum over k >= 0 of 1/(k + a)^2 for a > 0: the variance of the logarithm of a Gamma(a)
/// variable. Infinite at zero, NaN below.
///
/// The first terms are added until a >= 12; the rest is the Euler-Maclaurin tail
/// 1/x + 1/(2x^2) + sum_k B_2k / x^(2k+1), whose seventh term is below 2e-15 of the value there.
pub fn hurwitz_zeta(a: f64) -> f64 {
    if a.is_nan() || a < 0.0 {
        return f64::NAN;
    }
    let mut sum = 0.0;
    let mut x = a;
    while x < 12.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let mut tail = 1.0 / x + 0.5 / (x * x);
    // The k-th term is B_2k/(2k)! times the rising factorial 2*3*..*2k = (2k)! over x^(2k+1).
    let mut power = x;
    let mut factorial = 1.0;
    for (i, c) in BERNOULLI_OVER_FACTORIAL.iter().enumerate() {
        let k = (i + 1) as f64;
        factorial *= (2.0 * k - 1.0) * (2.0 * k);
        power *= x * x;
        tail += c * factorial / power;
    }
    sum + tail
}

/// The logarithmic derivative of the gamma function.
pub(crate) fn digamma(x: f64) -> f64 {
    gamma::digamma(x)
}

/// The standard normal distribution function.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The inverse of [`normal_cdf`]: infinite at 0 and 1, NaN outside.
#[cfg(test)]
pub(crate) fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * p)
}

/// The quantile of Student's t distribution with `freedom` degrees; NaN for `freedom` <= 0 or `p`
/// outside 0..=1.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// The distribution function of Student's t with `freedom` degrees; NaN for `freedom` <= 0 or NaN.
pub fn t_cdf(x: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.cdf(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn zeta_closed_forms() {
        for (a, want) in [
            (1.0, PI * PI / 6.0),
            (0.5, PI * PI / 2.0),
            (2.0, PI * PI / 6.0 - 1.0),
            // zeta(2, 1/4) = pi^2 + 8 Catalan.
            (0.25, PI * PI + 8.0 * 0.915_965_594_177_219),
        ] {
            let got = hurwitz_zeta(a);
            assert!((got / want - 1.0).abs() < 4e-15, "{a}: {got} {want}");
        }
        assert_eq!(hurwitz_zeta(0.0), f64::INFINITY);
        assert!(hurwitz_zeta(-1.0).is_nan() && hurwitz_zeta(f64::NAN).is_nan());
    }

    #[test]
    fn zeta_recurrence() {
        for i in 1..400 {
            let a = f64::from(i) * 0.37;
            let difference = hurwitz_zeta(a) - hurwitz_zeta(a + 1.0);
            // Cancellation leaves an absolute error of a few ulps of the larger term.
            assert!(
                (difference - 1.0 / (a * a)).abs() < 4e-15 * hurwitz_zeta(a),
                "{a}"
            );
        }
    }

    #[test]
    fn tails() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((normal_cdf(1.959_963_984_540_054) - 0.975).abs() < 1e-12);
        assert!((t_quantile(0.975, 9.0) - 2.262_157_162_740_992).abs() < 1e-9);
        assert!(t_quantile(0.5, 0.0).is_nan());
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }
}
