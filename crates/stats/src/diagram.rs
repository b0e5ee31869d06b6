//! Intervals for log-scale diagrams that do not assume Gaussian coefficients.
//!
//! [`Octave::interval`] is exact for independent Gaussian coefficients. Coefficients of real counts are neither: with
//! [`kurtosis`] k the standard deviation is about sqrt((k - 1)/2) times as large. There are two remedies, both in
//! base-2 logarithms of energy (1 = 3 dB):
//!
//! * [`Bootstrap::diagram`]: replications are resampled, as for every other statistic. Preferred.
//! * [`Bootstrap::octave`]: blocks of neighbouring coefficients of one series are resampled (the moving block
//!   bootstrap, H. R. Künsch, Annals of Statistics 17 (1989)), for a trace that exists only once. Blocks have n^(1/3)
//!   coefficients, the order that minimises the error of the variance in that paper.
//!
//! Validation: the tests below compare widths with theory for Gaussian and heavy-tailed coefficients.

use swell_base::Stream;

use crate::bootstrap::{Bootstrap, Estimate, expanded_tail};
use crate::ecdf::Ecdf;
use crate::moments::kurtosis;
use crate::octave::Octave;

/// With fewer blocks than this there is no interval.
const MIN_BLOCKS: usize = 8;

impl Bootstrap {
    /// The pooled diagram of replications with intervals over them: per octave its number j and the
    /// estimate of y_j. `None` where an octave has no energy.
    pub fn diagram(&self, series: &[Vec<Octave>]) -> Vec<(u32, Option<Estimate>)> {
        let mut octaves: Vec<u32> = series.iter().flatten().map(|o| o.j).collect();
        octaves.sort_unstable();
        octaves.dedup();
        let estimates = self.estimate("diagram", &[series.len()], |weights| {
            octaves
                .iter()
                .map(|&j| pooled_y(series, weights[0], j))
                .collect()
        });
        octaves.iter().copied().zip(estimates).collect()
    }

    /// y_j of one octave from its coefficients in time order (see [`details`](crate::details)), with the
    /// block-bootstrap interval. `None` for fewer than 8 blocks (16 coefficients) or no energy. In the estimate,
    /// `replications` is the number of blocks.
    pub fn octave(&self, j: u32, coefficients: &[f64]) -> Option<Estimate> {
        let n = coefficients.len();
        let block = (libm::cbrt(n as f64) as usize).max(1);
        let blocks = n / block;
        if blocks < MIN_BLOCKS {
            return None;
        }
        let y = |sum: f64, count: usize| {
            Octave {
                j,
                n: n as u64,
                energy: sum / count as f64,
            }
            .y()
        };
        // With running sums, the energy of a block is one subtraction.
        let mut running = Vec::with_capacity(n + 1);
        running.push(0.0);
        let mut sum = 0.0;
        for d in coefficients {
            sum += d * d;
            running.push(sum);
        }
        let value = y(sum, n);
        let mut stream = Stream::indexed(self.seed, "bootstrap/octave", u64::from(j));
        let drawn = (0..self.resamples)
            .map(|_| {
                let energy: f64 = (0..blocks)
                    .map(|_| {
                        let start = stream.below((n - block + 1) as u64) as usize;
                        running[start + block] - running[start]
                    })
                    .sum();
                // Clamped because the difference of two running sums may round below zero.
                y(energy.max(0.0), blocks * block)
            })
            .collect();
        let drawn = Ecdf::new(drawn);
        let tail = expanded_tail((1.0 - self.level) / 2.0, blocks);
        value.is_finite().then_some(Estimate {
            value,
            low: drawn.quantile(tail)?,
            high: drawn.quantile(1.0 - tail)?,
            level: self.level,
            replications: blocks,
        })
    }
}

/// Factor by which the true interval is wider than [`Octave::interval`] because of the kurtosis k of the
/// coefficients: sqrt((k - 1)/2), which is 1 for Gaussian ones. `None` for constant coefficients.
pub fn interval_inflation(coefficients: &[f64]) -> Option<f64> {
    kurtosis(coefficients).map(|k| ((k - 1.0) / 2.0).max(0.0).sqrt())
}

/// y of octave `j` when replication r is taken `weights[r]` times; NaN without coefficients.
fn pooled_y(series: &[Vec<Octave>], weights: &[u32], j: u32) -> f64 {
    let mut pooled = Octave {
        j,
        n: 0,
        energy: 0.0,
    };
    for (octaves, &w) in series.iter().zip(weights) {
        for o in octaves.iter().filter(|o| o.j == j) {
            let n = o.n * u64::from(w);
            pooled.n += n;
            pooled.energy += o.energy * n as f64;
        }
    }
    pooled.energy /= pooled.n as f64;
    if pooled.n == 0 { f64::NAN } else { pooled.y() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octave::{energies, pool};

    fn normal(s: &mut Stream) -> f64 {
        let r = (-2.0 * libm::log(1.0 - s.uniform())).sqrt();
        r * libm::cos(std::f64::consts::TAU * s.uniform())
    }

    /// Width of the block interval divided by that of the Gaussian one.
    fn relative_width(coefficients: &[f64]) -> f64 {
        let n = coefficients.len() as u64;
        let energy = coefficients.iter().map(|d| d * d).sum::<f64>() / n as f64;
        let octave = Octave { j: 1, n, energy };
        let e = Bootstrap::seeded(1).octave(1, coefficients).unwrap();
        assert!((e.value - octave.y()).abs() < 1e-12);
        let (low, high) = octave.interval();
        (e.high - e.low) / (high - low)
    }

    #[test]
    fn gaussian_coefficients_need_no_other_interval() {
        let mut s = Stream::new(1, "gauss");
        let x: Vec<f64> = (0..8000).map(|_| normal(&mut s)).collect();
        // 400 blocks estimate a standard deviation to 1/sqrt(800) = 3.5 %, and 2000 resamples its tails to 3 %.
        let ratio = relative_width(&x);
        assert!((0.86..=1.14).contains(&ratio), "{ratio}");
        assert!((interval_inflation(&x).unwrap() - 1.0).abs() < 0.06);
    }

    #[test]
    fn heavy_tails_and_memory_widen_it() {
        // Laplace coefficients have kurtosis 6: sqrt(5/2) = 1.58 times wider.
        let mut s = Stream::new(2, "laplace");
        let mut draw = || s.exponential(1.0) - s.exponential(1.0);
        let x: Vec<f64> = (0..8000).map(|_| draw()).collect();
        let ratio = relative_width(&x);
        assert!((1.58 * 0.86..=1.58 * 1.14).contains(&ratio), "{ratio}");
        // Every square occurs four times in a row, so the standard deviation of their mean doubles again. Blocks of
        // 20 capture all but one eighth of that.
        let repeated: Vec<f64> = x[..2000].iter().flat_map(|&d| [d, -d, d, -d]).collect();
        let more = relative_width(&repeated) / ratio;
        assert!((1.6..=2.3).contains(&more), "{more}");
    }

    #[test]
    fn replications_give_the_width_that_theory_gives_for_independent_counts() {
        let mut s = Stream::new(3, "diagram");
        let series: Vec<Vec<Octave>> = (0..40)
            .map(|_| {
                let x: Vec<f64> = (0..512).map(|_| normal(&mut s)).collect();
                energies(&x, 2)
            })
            .collect();
        let pooled = pool(&series);
        let found = Bootstrap::seeded(1).diagram(&series);
        assert_eq!(found.len(), pooled.len());
        for ((j, e), o) in found.iter().zip(&pooled) {
            let e = e.unwrap();
            assert!(*j == o.j && (e.value - o.y()).abs() < 1e-12);
            // 40 replications give a standard deviation to 11 %; the bound is four of these, and t instead of normal
            // adds 3 %.
            let ratio = (e.high - e.low) / (2.0 * 1.96 * o.sd());
            assert!((0.56..=1.5).contains(&ratio), "{o:?}: {ratio}");
        }
    }

    #[test]
    fn nothing_comes_from_nothing() {
        let boot = Bootstrap::seeded(1);
        assert!(boot.diagram(&[]).is_empty());
        assert_eq!(
            (boot.octave(1, &[1.0; 15]), boot.octave(1, &[0.0; 99])),
            (None, None)
        );
        assert!(boot.octave(1, &[1.0; 16]).is_some());
        let silent = vec![
            vec![Octave {
                j: 1,
                n: 4,
                energy: 0.0
            }];
            6
        ];
        assert_eq!(boot.diagram(&silent), vec![(1, None)]);
    }
}
