//! Coherence of two series at each octave: how far they rise and fall together.
//!
//! Source: B. Whitcher, P. Guttorp, D. B. Percival, "Wavelet analysis of covariance with application to atmospheric time
//! series", J. Geophys. Res. 105 (2000), section 3: the covariance and correlation of the wavelet coefficients of two
//! series at each octave, and the interval by Fisher's z with n - 3. Its square is the squared wavelet coherence of
//! C. Torrence, P. J. Webster, "Interdecadal changes in the ENSO-monsoon system", J. Climate 12 (1999), for real
//! coefficients, averaged over the whole series. Here the coefficients are the decimated ones of [`energies`], which are
//! less correlated than those of a transform at every shift.
//!
//! If two series share a part and nothing else depends on the other, the coherence of an octave is the product of the two
//! shares of its energy that the common part has: `E_c^2 / (E_1 E_2)`.
//!
//! A delay between the series lowers it at timescales shorter than a few delays, because real coefficients have no phase.
//! Not modelled: heavy-tailed coefficients. The interval assumes Gaussian ones, as that of a log-scale diagram does.
//! Validation: closed forms below; numpy's correlation of PyWavelets' coefficients in `python-tests`.
//!
//! [`energies`]: crate::energies

use serde::{Deserialize, Serialize};
use swell_base::Dur;

use crate::wavelet::pyramid;

/// What two series have in common at one octave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coherence {
    /// The octave; 1 is the finest. The timescale is 2^j bins.
    pub j: u32,
    /// Number of pairs of wavelet coefficients that lie wholly inside the data.
    pub n: u64,
    /// Mean squared coefficient of each series.
    pub energies: [f64; 2],
    /// Mean product of the coefficients.
    pub covariance: f64,
}

impl Coherence {
    /// The correlation of the coefficients, from -1 to 1; NaN if a series has no energy here.
    pub fn correlation(&self) -> f64 {
        let [a, b] = self.energies;
        (self.covariance / (a * b).sqrt()).clamp(-1.0, 1.0)
    }

    /// The squared correlation, from 0 (nothing in common) to 1. Series with nothing in common have 1/n on average.
    pub fn coherence(&self) -> f64 {
        self.correlation().powi(2)
    }

    /// The 95 % interval of [`coherence`](Coherence::coherence), from Fisher's z; 0 to 1 of less than four pairs.
    pub fn interval(&self) -> (f64, f64) {
        if self.n < 4 {
            return (0.0, 1.0);
        }
        let half = 1.959_963_984_540_054 / ((self.n - 3) as f64).sqrt();
        let z = libm::atanh(self.correlation());
        let (low, high) = (libm::tanh(z - half), libm::tanh(z + half));
        let most = low.powi(2).max(high.powi(2));
        if low <= 0.0 && high >= 0.0 {
            (0.0, most)
        } else {
            (low.powi(2).min(high.powi(2)), most)
        }
    }

    /// The timescale: 2^j bins of width `bin`.
    pub fn timescale(&self, bin: Dur) -> Dur {
        bin * 1u64.checked_shl(self.j).unwrap_or(u64::MAX)
    }
}

/// What two series of counts in the same bins have in common at each octave, finest first, by Daubechies wavelets with
/// `vanishing` vanishing moments (1..=10, 3 is customary). Bins that only the longer series has do not count.
pub fn coherences(x: &[f64], y: &[f64], vanishing: usize) -> Vec<Coherence> {
    let common = x.len().min(y.len());
    let mut of_x = Vec::with_capacity(common);
    pyramid(&x[..common], vanishing, |_, d| of_x.push(d));
    let mut found: Vec<Coherence> = Vec::new();
    let mut next = of_x.into_iter();
    pyramid(&y[..common], vanishing, |j, b| {
        // Series of one length have as many coefficients in each octave.
        let a = next.next().unwrap_or(f64::NAN);
        if found.last().is_none_or(|o| o.j < j) {
            found.push(Coherence {
                j,
                n: 0,
                energies: [0.0; 2],
                covariance: 0.0,
            });
        }
        if let Some(octave) = found.last_mut() {
            octave.n += 1;
            octave.energies[0] += a * a;
            octave.energies[1] += b * b;
            octave.covariance += a * b;
        }
    });
    for octave in &mut found {
        let n = octave.n as f64;
        octave.energies = octave.energies.map(|e| e / n);
        octave.covariance /= n;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octave::energies;
    use swell_base::Stream;

    fn noise(name: &str, n: usize, scale: f64) -> Vec<f64> {
        let mut rng = Stream::new(7, name);
        (0..n).map(|_| scale * rng.exponential(1.0)).collect()
    }

    fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + b).collect()
    }

    #[test]
    fn a_series_is_coherent_with_itself_whatever_its_unit() {
        let x = noise("x", 3000, 1.0);
        let scaled: Vec<f64> = x.iter().map(|v| 7.0 - 3.0 * v).collect();
        let octaves = coherences(&x, &scaled, 3);
        let alone = energies(&x, 3);
        assert_eq!(octaves.len(), alone.len());
        for (o, e) in octaves.iter().zip(&alone) {
            assert_eq!((o.j, o.n), (e.j, e.n));
            assert!((o.energies[0] / e.energy - 1.0).abs() < 1e-12);
            assert!((o.correlation() + 1.0).abs() < 1e-9, "{o:?}");
            assert!((o.coherence() - 1.0).abs() < 1e-9, "{o:?}");
            assert!(o.interval().1 <= 1.0);
        }
    }

    /// White noise of known variances: every octave has the same shares.
    #[test]
    fn what_two_series_share_is_the_product_of_its_shares_of_their_energy() {
        let n = 1 << 15;
        let common = noise("common", n, 2.0);
        let x = sum(&common, &noise("left", n, 1.0));
        let y = sum(&common, &noise("right", n, 3.0));
        let truth: f64 = 4.0 * 4.0 / ((4.0 + 1.0) * (4.0 + 9.0));
        let octaves = coherences(&x, &y, 3);
        let judged = octaves.iter().filter(|o| o.n >= 30);
        assert!(judged.clone().count() >= 8);
        let mut covered = 0;
        for o in judged.clone() {
            let sd = 2.0 * truth.sqrt() * (1.0 - truth) / (o.n as f64).sqrt();
            assert!((o.coherence() - truth).abs() < 4.0 * sd, "{o:?}");
            let (low, high) = o.interval();
            covered += usize::from(low <= truth && truth <= high);
        }
        assert!(covered + 2 >= judged.count());
    }

    #[test]
    fn series_with_nothing_in_common_have_an_nth_on_average() {
        let runs = 200;
        let mut sums = [0.0; 3];
        let mut counts = [0; 3];
        for i in 0..runs {
            let x = noise(&format!("x{i}"), 256, 1.0);
            let y = noise(&format!("y{i}"), 256, 1.0);
            for (o, (sum, count)) in coherences(&x, &y, 1)
                .iter()
                .zip(sums.iter_mut().zip(&mut counts))
            {
                *sum += o.coherence() * o.n as f64;
                *count += 1;
                assert!(o.interval().0 <= o.coherence() && o.coherence() <= o.interval().1);
            }
        }
        for (sum, count) in sums.iter().zip(counts) {
            let mean = sum / f64::from(count);
            // The standard deviation of chi-square with one degree of freedom is sqrt(2).
            assert!((mean - 1.0).abs() < 4.0 * (2.0 / f64::from(runs)).sqrt());
        }
    }

    #[test]
    fn the_shorter_series_decides_and_silence_has_no_coherence() {
        let x = noise("x", 100, 1.0);
        assert_eq!(
            coherences(&x, &x[..64], 2),
            coherences(&x[..64], &x[..64], 2)
        );
        assert!(coherences(&x, &[], 3).is_empty());
        let silent = coherences(&x, &[0.0; 100], 3);
        assert!(silent.iter().all(|o| o.coherence().is_nan()));
        assert_eq!(
            silent[0].timescale(Dur::from_millis(1)),
            Dur::from_millis(2)
        );
    }
}
