//! Intervals by resampling replications.
//!
//! Samples within a replication are dependent, so whole replications are drawn with replacement (the cluster
//! bootstrap: A. C. Davison, D. V. Hinkley, "Bootstrap Methods and their Application" (1997), section 3.8). The
//! interval is the percentile interval of B. Efron (1979), expanded for few replications: its tail is
//! Phi(-sqrt(n/(n-1)) t_{n-1}) instead of the nominal one (T. C. Hesterberg, "What Teachers Should Know About the
//! Bootstrap", The American Statistician 69 (2015)). For the mean of a normal sample it has the width of Student's.
//!
//! Results have the unit of the statistic. Resampling is deterministic: random streams are named and seeded.
//!
//! **How many replications?** At least [`MIN_REPLICATIONS`](crate::MIN_REPLICATIONS), better ten. The table gives the
//! share of nominal 95 % intervals that contained the true median, in 3000 synthetic data sets of lognormal samples
//! (20 per run, log standard deviation 1 within a run and 0.5 between runs):
//!
//! | replications | 3 | 5 | 10 | 20 |
//! |---|---|---|---|---|
//! | plain percentile | 0.75 | 0.82 | 0.90 | 0.93 |
//! | expanded | 0.77 | 0.91 | 0.93 | 0.94 |
//!
//! Width shrinks with the square root of the number. More samples within a run do not replace runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Stream;

use crate::ecdf::Ecdf;
use crate::replications::Replications;
use crate::special::{normal_cdf, t_quantile};

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

/// A bootstrap: seed, number of resamples, confidence level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Seeds the streams.
    pub seed: u64,
    /// How many resamples; with 2000 the ends of a 95 % interval sit at ranks 50 +- 7.
    pub resamples: u32,
    /// The confidence level, between 0 and 1.
    pub level: f64,
}

impl Bootstrap {
    /// 2000 resamples, 95 %.
    pub fn seeded(seed: u64) -> Bootstrap {
        Bootstrap {
            seed,
            resamples: 2000,
            level: 0.95,
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
        let mut known: BTreeMap<Vec<u32>, Vec<f64>> = BTreeMap::new();
        for _ in 0..self.resamples {
            for w in &mut weights {
                w.fill(0);
                let n = w.len();
                for _ in 0..n {
                    w[stream.below(n as u64) as usize] += 1;
                }
            }
            // Few replications are drawn in few ways: five in 126.
            let drawn = known.entry(weights.concat());
            let drawn = drawn.or_insert_with(|| statistic(&borrow(&weights)));
            for (column, x) in columns.iter_mut().zip(drawn) {
                column.push(*x);
            }
        }
        let replications = strata.iter().copied().min().unwrap_or(0);
        values
            .into_iter()
            .zip(columns)
            .map(|(value, column)| {
                let drawn = column.len();
                let resampled = Ecdf::new(column);
                let undefined = drawn - resampled.len();
                if !value.is_finite() || drawn == 0 || undefined * 100 > drawn {
                    return None;
                }
                let tail = expanded_tail((1.0 - self.level) / 2.0, replications);
                Some(Estimate {
                    value,
                    low: resampled.quantile(tail)?,
                    high: resampled.quantile(1.0 - tail)?,
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
fn expanded_tail(tail: f64, replications: usize) -> f64 {
    if replications < 2 {
        return 0.0;
    }
    let n = replications as f64;
    normal_cdf((n / (n - 1.0)).sqrt() * t_quantile(tail, n - 1.0))
}

#[cfg(test)]
mod tests;
