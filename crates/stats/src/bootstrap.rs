//! Intervals by resampling replications.
//!
//! Samples within a replication are dependent, so whole replications are drawn with replacement (the cluster
//! bootstrap: A. C. Davison, D. V. Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8). If two
//! conditions share their seeds, replications of the same number are drawn together (paired): an effect of the seed
//! on both conditions cancels in their ratio. Intervals:
//!
//! * [`Method::Percentile`]: B. Efron (1979). Too narrow for few replications.
//! * [`Method::Expanded`] (the default): percentile, but with the tail Phi(-sqrt(n/(n-1)) t_{n-1}) instead of the
//!   nominal one; T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69
//!   (2015). For the mean of a normal sample it has the width of Student's interval.
//! * [`Method::Bca`]: bias-corrected and accelerated, B. Efron, JASA 82 (1987); acceleration from the
//!   jackknife over replications.
//!
//! Results have the unit of the statistic. Resampling is deterministic: random streams are named and seeded.
//!
//! **How many replications?** At least [`MIN_REPLICATIONS`](crate::MIN_REPLICATIONS), better ten. The table gives the
//! share of nominal 95 % intervals that contained the true median, in 3000 synthetic data sets of lognormal samples
//! (20 per run, log standard deviation 1 within a run and 0.5 between runs):
//!
//! | replications | 3 | 5 | 10 | 20 |
//! |---|---|---|---|---|
//! | percentile | 0.75 | 0.82 | 0.90 | 0.93 |
//! | expanded | 0.77 | 0.91 | 0.93 | 0.94 |
//! | BCa | 0.73 | 0.82 | 0.90 | 0.92 |
//!
//! Width shrinks with the square root of the number: see [`Estimate::replications_for`]. More samples within a run do
//! not replace runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Stream;

use crate::ecdf::Ecdf;
use crate::replications::Replications;
use crate::special::{normal_cdf, normal_quantile, t_quantile};

/// How the ends of an interval are read from the resamples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The nominal quantiles.
    Percentile,
    /// Quantiles further out, for few replications.
    #[default]
    Expanded,
    /// Quantiles moved for bias and skewness.
    Bca,
}

/// Whether replications with equal numbers in two conditions are pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// They share seeds and are drawn together.
    Paired,
    /// They share no seeds and are drawn independently.
    Unpaired,
}

/// The error when replications that cannot be paired are compared as pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{left} and {right} replications cannot be paired; compare them unpaired")]
pub struct PairingError {
    /// Replications of the first condition.
    pub left: usize,
    /// Replications of the second.
    pub right: usize,
}

/// A statistic with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The statistic of all replications.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; infinite where it is not identifiable (unfinished requests): null in JSON.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// The confidence level, such as 0.95.
    pub level: f64,
    /// How many replications stand behind it (the smaller number of two conditions).
    pub replications: usize,
}

impl Estimate {
    /// About how many replications give an interval no wider than +-`relative` of the value, by the
    /// square-root law. `None` for a value of zero, an infinite interval or `relative` <= 0.
    pub fn replications_for(&self, relative: f64) -> Option<usize> {
        let half = (self.high - self.low) / 2.0 / self.value.abs();
        if !half.is_finite() || relative.is_nan() || relative <= 0.0 {
            return None;
        }
        let ratio = half / relative;
        Some((self.replications as f64 * ratio * ratio).ceil() as usize)
    }
}

/// A bootstrap: seed, number of resamples, confidence level, method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Seeds the streams.
    pub seed: u64,
    /// How many resamples; with 2000 the ends of a 95 % interval sit at ranks 50 +- 7.
    pub resamples: u32,
    /// The confidence level, between 0 and 1.
    pub level: f64,
    /// How the ends of an interval are computed.
    pub method: Method,
}

impl Bootstrap {
    /// 2000 resamples, 95 %, expanded percentile.
    pub fn seeded(seed: u64) -> Bootstrap {
        Bootstrap {
            seed,
            resamples: 2000,
            level: 0.95,
            method: Method::Expanded,
        }
    }

    /// Quantiles of the pooled samples, one per entry of `ps`; `None` where the quantile itself is not
    /// identifiable.
    pub fn quantiles(&self, of: &Replications, ps: &[f64]) -> Vec<Option<Estimate>> {
        self.estimate("quantiles", &[of.count()], |w| {
            of.weighted_quantiles(w[0], ps)
                .into_iter()
                .map(unidentified)
                .collect()
        })
    }

    /// The mean of the pooled complete samples.
    pub fn mean(&self, of: &Replications) -> Option<Estimate> {
        self.estimate("mean", &[of.count()], |w| {
            vec![of.weighted_mean(w[0]).unwrap_or(f64::NAN)]
        })
        .pop()
        .flatten()
    }

    /// The slowdown: quantile p of `behind` (with background traffic) divided by quantile p of `alone`, one per entry
    /// of `ps` (1 = no difference). `None` if either is not identifiable or the quantile of `alone` is zero.
    pub fn slowdown(
        &self,
        behind: &Replications,
        alone: &Replications,
        ps: &[f64],
        pairing: Pairing,
    ) -> Result<Vec<Option<Estimate>>, PairingError> {
        self.two_sample("slowdown", behind, alone, pairing, |wb, wa| {
            let b = behind
                .weighted_quantiles(wb, ps)
                .into_iter()
                .map(unidentified);
            let a = alone.weighted_quantiles(wa, ps);
            b.zip(a)
                .map(|(b, a)| b / a.filter(|&a| a != 0.0).unwrap_or(f64::NAN))
                .collect()
        })
    }

    /// The difference of quantiles, `behind` minus `alone`, one per entry of `ps`.
    pub fn difference(
        &self,
        behind: &Replications,
        alone: &Replications,
        ps: &[f64],
        pairing: Pairing,
    ) -> Result<Vec<Option<Estimate>>, PairingError> {
        self.two_sample("difference", behind, alone, pairing, |wb, wa| {
            let b = behind
                .weighted_quantiles(wb, ps)
                .into_iter()
                .map(unidentified);
            let a = alone.weighted_quantiles(wa, ps);
            b.zip(a).map(|(b, a)| b - a.unwrap_or(f64::NAN)).collect()
        })
    }

    fn two_sample(
        &self,
        name: &str,
        a: &Replications,
        b: &Replications,
        pairing: Pairing,
        statistic: impl Fn(&[u32], &[u32]) -> Vec<f64>,
    ) -> Result<Vec<Option<Estimate>>, PairingError> {
        match pairing {
            Pairing::Unpaired => {
                Ok(self.estimate(name, &[a.count(), b.count()], |w| statistic(w[0], w[1])))
            }
            Pairing::Paired if a.count() != b.count() => Err(PairingError {
                left: a.count(),
                right: b.count(),
            }),
            Pairing::Paired => Ok(self.estimate(name, &[a.count()], |w| statistic(w[0], w[0]))),
        }
    }

    /// Estimates any vector of statistics of independently drawn strata. `strata[s]` is the number of replications in
    /// stratum s. `statistic` gets, for each stratum, how often each replication is taken; for the estimate itself
    /// all are one. It must always return the same number of values: NaN if undefined, infinity if too large to be
    /// identified. `name` separates the random streams of different questions.
    ///
    /// `None` if the value itself is not finite, or if more than one per cent of the resamples are undefined.
    pub fn estimate(
        &self,
        name: &str,
        strata: &[usize],
        statistic: impl Fn(&[&[u32]]) -> Vec<f64>,
    ) -> Vec<Option<Estimate>> {
        let ones: Vec<Vec<u32>> = strata.iter().map(|&n| vec![1; n]).collect();
        let values = statistic(&borrow(&ones));
        if strata.contains(&0) {
            return vec![None; values.len()];
        }
        let mut columns = vec![Vec::with_capacity(self.resamples as usize); values.len()];
        let mut stream = Stream::new(self.seed, &format!("bootstrap/{name}"));
        let mut weights = ones.clone();
        for _ in 0..self.resamples {
            for w in &mut weights {
                w.fill(0);
                let n = w.len();
                for _ in 0..n {
                    w[stream.below(n as u64) as usize] += 1;
                }
            }
            for (column, x) in columns.iter_mut().zip(statistic(&borrow(&weights))) {
                column.push(x);
            }
        }
        let jackknife = match self.method {
            Method::Bca => leave_one_out(&ones, &statistic),
            _ => Vec::new(),
        };
        let replications = strata.iter().copied().min().unwrap_or(0);
        values
            .into_iter()
            .zip(columns)
            .enumerate()
            .map(|(i, (value, column))| {
                let drawn = column.len();
                let resampled = Ecdf::new(column);
                let undefined = drawn - resampled.len();
                if !value.is_finite() || drawn == 0 || undefined * 100 > drawn {
                    return None;
                }
                let tail = (1.0 - self.level) / 2.0;
                let (low, high) = match self.method {
                    Method::Percentile => (tail, 1.0 - tail),
                    Method::Expanded => {
                        let p = expanded_tail(tail, replications);
                        (p, 1.0 - p)
                    }
                    Method::Bca => {
                        let left_out: Vec<f64> = jackknife.iter().map(|row| row[i]).collect();
                        bca_tails(tail, value, &resampled, &left_out)
                    }
                };
                Some(Estimate {
                    value,
                    low: resampled.quantile(low)?,
                    high: resampled.quantile(high)?,
                    level: self.level,
                    replications,
                })
            })
            .collect()
    }
}

/// A quantile beyond the last completion is larger than all observed values.
fn unidentified(quantile: Option<f64>) -> f64 {
    quantile.unwrap_or(f64::INFINITY)
}

fn borrow(weights: &[Vec<u32>]) -> Vec<&[u32]> {
    weights.iter().map(Vec::as_slice).collect()
}

/// Hesterberg's tail. One replication has no spread and gets the extremes.
pub(crate) fn expanded_tail(tail: f64, replications: usize) -> f64 {
    if replications < 2 {
        return 0.0;
    }
    let n = replications as f64;
    normal_cdf((n / (n - 1.0)).sqrt() * t_quantile(tail, n - 1.0))
}

/// The statistic without each replication in turn.
fn leave_one_out(ones: &[Vec<u32>], statistic: &impl Fn(&[&[u32]]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let mut weights = ones.to_vec();
    let mut rows = Vec::new();
    for s in 0..weights.len() {
        for r in 0..weights[s].len() {
            weights[s][r] = 0;
            rows.push(statistic(&borrow(&weights)));
            weights[s][r] = 1;
        }
    }
    rows
}

/// After Efron (1987): the two probabilities at which BCa reads the resamples. Falls back to the nominal ones if bias
/// or acceleration is undefined (all resamples on one side, or no spread).
fn bca_tails(tail: f64, value: f64, resampled: &Ecdf, left_out: &[f64]) -> (f64, f64) {
    let samples = resampled.samples();
    let below = samples.partition_point(|&x| x < value) as f64;
    let ties = samples.partition_point(|&x| x <= value) as f64 - below;
    let bias = normal_quantile((below + ties / 2.0) / samples.len() as f64);
    let centre = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let (square, cube) = left_out.iter().fold((0.0, 0.0), |(s, c), x| {
        let d = centre - x;
        (s + d * d, c + d * d * d)
    });
    let acceleration = cube / (6.0 * square * square.sqrt());
    let moved = |p: f64| {
        let z = bias + normal_quantile(p);
        normal_cdf(bias + z / (1.0 - acceleration * z))
    };
    let (low, high) = (moved(tail), moved(1.0 - tail));
    if low.is_finite() && high.is_finite() && low < high {
        (low, high)
    } else {
        (tail, 1.0 - tail)
    }
}

#[cfg(test)]
mod tests;
