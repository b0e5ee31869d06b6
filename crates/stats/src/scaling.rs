//! The slope of a log-scale diagram: scaling exponent and Hurst parameter.
//!
//! Source: D. Veitch, P. Abry (1999), as in [`octave`](crate::Octave), section III (weighted regression). The lowest
//! octave is chosen after D. Veitch, P. Abry, M. Taqqu, "On the automatic selection of the onset of scaling",
//! Fractals 11 (2003): the goodness of fit Q is computed for candidate onsets, and the first one after its sharp rise
//! is taken.
//!
//! Units: none. alpha = 2H - 1 for the counts of a long-range dependent process; 0 for independent ones.
//! Not modelled: multifractal scaling, moments other than the second.
//! Validation: fractional Gaussian noise in `tests/laws.rs`.

use serde::{Deserialize, Serialize};

use crate::octave::{Octave, energies, variance};
use crate::special::chi2_tail;
use crate::wavelet::MAX_VANISHING;

/// A straight line through octaves `j1..=j2` of a log-scale diagram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The lowest octave of the fit.
    pub j1: u32,
    /// The highest.
    pub j2: u32,
    /// The slope.
    pub alpha: f64,
    /// Its standard deviation under Gaussian coefficients.
    pub alpha_sd: f64,
    /// The value of the line at octave zero, in log2 of energy.
    pub intercept: f64,
    /// Goodness of fit: the probability of residuals at least as large, 0..=1. Below 0.05 the octaves
    /// do not lie on a line.
    pub q: f64,
}

/// The reason why there is no slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// A line with a goodness of fit needs three points.
    #[error("octaves {j1}..={j2} hold {usable} with energy; a fit needs three")]
    TooFew {
        /// The lowest octave asked for.
        j1: u32,
        /// The highest.
        j2: u32,
        /// How many of them can be used.
        usable: usize,
    },
    /// No range of octaves up to the coarsest lies on a line (Q > 0.05).
    #[error("no range of octaves up to {j2} lies on a line")]
    NoLine {
        /// The coarsest octave.
        j2: u32,
    },
}

/// A fit worse than this is not a line.
const Q_MIN: f64 = 0.05;
/// If Q still rises by this factor at the next onset, it has not levelled off.
const Q_RISE: f64 = 10.0;

/// The coarsest octave of an automatic fit has at least this many coefficients. With fewer, the logarithm of their
/// mean square is strongly skewed. Weights, intervals and Q assume it to be normal and would be misleading.
pub const MIN_COEFFICIENTS: u64 = 8;

impl Scaling {
    /// The coarsest octave with [`MIN_COEFFICIENTS`] coefficients; zero if there is none.
    pub fn coarsest(octaves: &[Octave]) -> u32 {
        octaves
            .iter()
            .filter(|o| o.n >= MIN_COEFFICIENTS)
            .map(|o| o.j)
            .max()
            .unwrap_or(0)
    }

    /// The weighted least-squares line over octaves `j1..=j2`; octaves without energy are left out.
    pub fn fit(octaves: &[Octave], j1: u32, j2: u32) -> Result<Scaling, FitError> {
        let points: Vec<(f64, f64, f64)> = octaves
            .iter()
            .filter(|o| (j1..=j2).contains(&o.j) && o.n > 0 && o.y().is_finite())
            .map(|o| (f64::from(o.j), o.y(), variance(o.n)))
            .collect();
        if points.len() < 3 {
            return Err(FitError::TooFew {
                j1,
                j2,
                usable: points.len(),
            });
        }
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(j, y, v)| f(j, y) / v).sum()
        };
        let (s0, s1, s2) = (sum(&|_, _| 1.0), sum(&|j, _| j), sum(&|j, _| j * j));
        let determinant = s0 * s2 - s1 * s1;
        let weight = |j: f64, v: f64| (s0 * j - s1) / v / determinant;
        let alpha: f64 = points.iter().map(|&(j, y, v)| weight(j, v) * y).sum();
        let alpha_variance: f64 = points
            .iter()
            .map(|&(j, _, v)| v * weight(j, v).powi(2))
            .sum();
        let intercept = (sum(&|_, y| y) - alpha * s1) / s0;
        let residual = sum(&|j, y| (y - intercept - alpha * j).powi(2));
        Ok(Scaling {
            j1,
            j2,
            alpha,
            alpha_sd: alpha_variance.sqrt(),
            intercept,
            q: chi2_tail(residual, (points.len() - 2) as f64),
        })
    }

    /// The line from the automatically chosen onset to the coarsest octave with [`MIN_COEFFICIENTS`]. The onset is
    /// the smallest j1 with Q above 0.05 for which the next onset raises Q at most tenfold.
    pub fn choose(octaves: &[Octave]) -> Result<Scaling, FitError> {
        let first = octaves.iter().map(|o| o.j).min().unwrap_or(1);
        let last = Scaling::coarsest(octaves);
        let mut next = Scaling::fit(octaves, first, last)?;
        for j1 in first..last {
            let here = next;
            match Scaling::fit(octaves, j1 + 1, last) {
                Ok(f) => next = f,
                // Three points are left, so there is no later onset to compare with.
                Err(_) if here.q > Q_MIN => return Ok(here),
                Err(_) => break,
            }
            if here.q > Q_MIN && next.q <= Q_RISE * here.q {
                return Ok(here);
            }
        }
        Err(FitError::NoLine { j2: last })
    }

    /// The slope of a series with as many vanishing moments as it needs. Starting at `vanishing` (3 is customary),
    /// one is added until N > (alpha + 1)/2 and one more changes the slope by less than its standard deviation. This
    /// removes polynomial trends: with Haar wavelets a parabola gives a perfect line of slope 3. Returns the number
    /// of moments used and the line. If the slope never settles, returns the last one found.
    pub fn estimate(samples: &[f64], vanishing: usize) -> Result<(usize, Scaling), FitError> {
        let first = vanishing.clamp(1, MAX_VANISHING);
        let mut found = Scaling::choose(&energies(samples, first)).map(|fit| (first, fit));
        for n in first + 1..=MAX_VANISHING {
            // A longer filter may leave too few octaves, or no line: try the next one.
            let Ok(more) = Scaling::choose(&energies(samples, n)) else {
                continue;
            };
            if let Ok((moments, fit)) = found {
                let enough = moments as f64 > (fit.alpha + 1.0) / 2.0;
                if enough && (more.alpha - fit.alpha).abs() < fit.alpha_sd {
                    break;
                }
            }
            found = Ok((n, more));
        }
        found
    }

    /// The Hurst parameter, (alpha + 1)/2: meaningful for 0 < alpha < 1.
    pub fn hurst(&self) -> f64 {
        (self.alpha + 1.0) / 2.0
    }

    /// The standard deviation of [`hurst`](Scaling::hurst).
    pub fn hurst_sd(&self) -> f64 {
        self.alpha_sd / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(alpha: f64, bend: impl Fn(u32) -> f64) -> Vec<Octave> {
        (1..=12)
            .map(|j| {
                let n = 1 << (14 - j);
                let flat = Octave { j, n, energy: 1.0 };
                let y = 3.0 + alpha * f64::from(j) + bend(j);
                Octave {
                    energy: libm::exp2(y - flat.y()),
                    ..flat
                }
            })
            .collect()
    }

    #[test]
    fn an_exact_line_is_found_exactly() {
        let fit = Scaling::fit(&line(0.6, |_| 0.0), 1, 12).unwrap();
        assert!((fit.alpha - 0.6).abs() < 1e-12 && (fit.intercept - 3.0).abs() < 1e-12);
        assert!((fit.hurst() - 0.8).abs() < 1e-12 && fit.q > 0.999_999);
    }

    #[test]
    fn the_onset_is_where_the_bend_ends() {
        let bent = line(0.6, |j| if j < 5 { 0.5 * f64::from(5 - j) } else { 0.0 });
        let fit = Scaling::choose(&bent).unwrap();
        // Octave 12 has only four coefficients.
        assert_eq!((fit.j1, fit.j2), (5, 11));
        assert!((fit.alpha - 0.6).abs() < 1e-12);
        let wild = line(0.0, |j| if j % 2 == 0 { 9.0 } else { 0.0 });
        assert!(matches!(
            Scaling::choose(&wild),
            Err(FitError::NoLine { j2: 11 })
        ));
    }

    #[test]
    fn too_little_is_said() {
        let few = &line(0.5, |_| 0.0)[..2];
        assert_eq!(
            Scaling::choose(few),
            Err(FitError::TooFew {
                j1: 1,
                j2: 2,
                usable: 2
            })
        );
        assert!(Scaling::choose(&[]).is_err());
        let constant = energies(&[0.0; 1000], 3);
        assert!(matches!(
            Scaling::fit(&constant, 1, 9),
            Err(FitError::TooFew { usable: 0, .. })
        ));
        assert!(Scaling::estimate(&[1.0, 2.0], 3).is_err());
    }
}
