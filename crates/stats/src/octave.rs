//! Energy per octave: the points of a log-scale diagram.
//!
//! Source: P. Abry, D. Veitch, "Wavelet analysis of long-range-dependent traffic", IEEE Trans. Inf. Theory
//! 44 (1998); the bias and variance of the logarithm under Gaussian independent coefficients from
//! D. Veitch, P. Abry, "A wavelet-based joint estimator of the parameters of long-range dependence", IEEE
//! Trans. Inf. Theory 45 (1999), section III.
//!
//! Units: `energy` is in squared units of the counts; `y` is its base-2 logarithm, so one octave of energy (a factor
//! of two, 3 dB) is 1. Octave j of bins of width d is the timescale 2^j d. Diagrams with different normalisations
//! differ in level: compare differences, not levels. Octaves 1 and 2 treat a discrete sequence as the approximation
//! of a continuous process (D. Veitch, M. Taqqu, P. Abry, "Meaningful MRA initialization for discrete time series",
//! Signal Processing 80 (2000)), which biases them. Fit slopes from octave 3 upwards.
//!
//! Not modelled: heavy-tailed coefficients. The standard deviation of `y` assumes Gaussian ones.
//! Validation: golden values and Poisson counts below, fractional Gaussian noise in `tests/laws.rs`,
//! PyWavelets in `python-tests`.

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};
use swell_base::Dur;

use crate::special::{digamma, hurwitz_zeta};
use crate::wavelet::pyramid;

/// One octave of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Octave {
    /// The octave; 1 is the finest. The timescale is 2^j bins.
    pub j: u32,
    /// Number of wavelet coefficients that lie wholly inside the data.
    pub n: u64,
    /// Their mean square.
    pub energy: f64,
}

impl Octave {
    /// log2 of the energy, corrected for the bias of the logarithm: log2(mu_j) - g_j with g_j = psi(n/2)/ln 2 -
    /// log2(n/2). Negative infinity without energy.
    pub fn y(&self) -> f64 {
        libm::log2(self.energy) - bias(self.n)
    }

    /// The standard deviation of [`y`](Octave::y): sqrt(zeta(2, n/2)) / ln 2.
    pub fn sd(&self) -> f64 {
        variance(self.n).sqrt()
    }

    /// The 95 % interval of [`y`](Octave::y).
    pub fn interval(&self) -> (f64, f64) {
        let (y, half) = (self.y(), 1.959_963_984_540_054 * self.sd());
        (y - half, y + half)
    }

    /// The timescale: 2^j bins of width `bin`.
    pub fn timescale(&self, bin: Dur) -> Dur {
        bin * 1u64.checked_shl(self.j).unwrap_or(u64::MAX)
    }
}

/// g_j for `n` coefficients, in octaves; about -1/(n ln 2).
fn bias(n: u64) -> f64 {
    let half = n as f64 / 2.0;
    digamma(half) / LN_2 - libm::log2(half)
}

/// Var y_j for `n` coefficients; about 2/(n ln^2 2).
fn variance(n: u64) -> f64 {
    hurwitz_zeta(n as f64 / 2.0) / (LN_2 * LN_2)
}

/// The energies of counts per bin, finest octave first, for Daubechies wavelets with `vanishing` vanishing moments
/// (1..=10, 3 is customary). Contains every octave that has a coefficient wholly inside the data. NaN or infinite
/// samples make the octaves that depend on them NaN.
pub fn energies(samples: &[f64], vanishing: usize) -> Vec<Octave> {
    let mut octaves: Vec<Octave> = Vec::new();
    pyramid(samples, vanishing, |j, d| {
        if octaves.len() < j as usize {
            octaves.push(Octave {
                j,
                n: 0,
                energy: 0.0,
            });
        }
        let octave = &mut octaves[j as usize - 1];
        octave.n += 1;
        octave.energy += d * d;
    });
    for octave in &mut octaves {
        octave.energy /= octave.n as f64;
    }
    octaves
}

/// Joins the octaves of independent series (replications): mean squares weighted by their counts.
pub fn pool(series: &[Vec<Octave>]) -> Vec<Octave> {
    let mut pooled: Vec<Octave> = Vec::new();
    for octave in series.iter().flatten().filter(|o| o.n > 0) {
        match pooled.binary_search_by_key(&octave.j, |o| o.j) {
            Ok(at) => {
                let sum = &mut pooled[at];
                let n = sum.n + octave.n;
                sum.energy =
                    (sum.energy * sum.n as f64 + octave.energy * octave.n as f64) / n as f64;
                sum.n = n;
            }
            Err(at) => pooled.insert(at, *octave),
        }
    }
    pooled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wavelet::details;
    use swell_base::Stream;

    #[test]
    fn golden_bias_and_variance() {
        // Computed with SciPy's digamma and zeta, rounded to five decimals.
        for (n, g, v) in [
            (2, -0.83275, 3.42371),
            (4, -0.39005, 1.34235),
            (8, -0.18781, 0.59074),
            (16, -0.09204, 0.27711),
            (32, -0.04555, 0.13424),
            (64, -0.02266, 0.06607),
            (128, -0.01130, 0.03278),
            (1024, -0.00141, 0.00407),
        ] {
            assert!((bias(n) - g).abs() <= 5.1e-6, "{n}: {}", bias(n));
            assert!((variance(n) - v).abs() <= 5.1e-6, "{n}: {}", variance(n));
        }
    }

    #[test]
    fn energies_are_the_mean_squares_of_the_coefficients() {
        let mut s = Stream::new(1, "energies");
        let x: Vec<f64> = (0..1000).map(|_| s.exponential(2.0)).collect();
        let octaves = energies(&x, 2);
        let all = details(&x, 2);
        assert_eq!(octaves.len(), all.len());
        for (o, d) in octaves.iter().zip(&all) {
            assert_eq!(o.n, d.len() as u64);
            let mean = d.iter().map(|c| c * c).sum::<f64>() / d.len() as f64;
            assert!((o.energy / mean - 1.0).abs() < 1e-12);
        }
        assert!(energies(&[], 3).is_empty());
    }

    #[test]
    fn poisson_counts_are_flat_at_their_variance() {
        // Counts with mean 4 per bin from exponential gaps; the energy of every octave is the variance, 4.
        let mut s = Stream::new(2, "poisson");
        let mut counts = vec![0.0; 1 << 16];
        let mut t = s.exponential(0.25);
        while let Some(bin) = counts.get_mut(t as usize) {
            *bin += 1.0;
            t += s.exponential(0.25);
        }
        let mut chi2 = 0.0;
        let octaves = energies(&counts, 3);
        let judged = octaves.iter().filter(|o| o.n >= 30);
        for o in judged.clone() {
            // The counts have kurtosis 3 + 1/4, which widens the standard deviation at octave 1 by 6 %, and less
            // above. The bound is four standard deviations.
            let z = (o.y() - 2.0) / o.sd();
            assert!(z.abs() < 4.0, "{o:?}: {z}");
            chi2 += z * z;
        }
        // 99.9 % point of chi-square with ten degrees of freedom (octaves 1..=10).
        assert_eq!(judged.count(), 10);
        assert!(chi2 < 29.6, "{chi2}");
    }

    #[test]
    fn pooling_is_the_mean_over_all_coefficients() {
        let a = vec![
            Octave {
                j: 1,
                n: 3,
                energy: 2.0,
            },
            Octave {
                j: 2,
                n: 1,
                energy: 8.0,
            },
        ];
        let b = vec![Octave {
            j: 1,
            n: 1,
            energy: 6.0,
        }];
        let want = vec![
            Octave {
                j: 1,
                n: 4,
                energy: 3.0,
            },
            Octave {
                j: 2,
                n: 1,
                energy: 8.0,
            },
        ];
        assert_eq!(pool(&[a.clone(), b.clone()]), want);
        assert_eq!(pool(&[b, a]), want);
        assert!(pool(&[]).is_empty());
    }

    #[test]
    fn timescales_are_powers_of_two_bins() {
        let o = Octave {
            j: 3,
            n: 1,
            energy: 1.0,
        };
        assert_eq!(o.timescale(Dur::from_micros(500)), Dur::from_millis(4));
        assert_eq!(
            Octave { j: 90, ..o }.timescale(Dur::from_millis(1)),
            Dur::MAX
        );
    }
}
