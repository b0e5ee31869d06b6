//! Samples of one condition, grouped by replication, and the limits of what they support.
//!
//! A replication is one run with one seed. Samples of a run share its traffic and are dependent, so the run is the
//! unit of resampling; see [`Bootstrap`](crate::Bootstrap). Units: those of the samples.

use swell_base::{Code, Warning};

use crate::survival::{Observation, Sorted};

/// Intervals from fewer replications are unreliable: the bootstrap then has at most 2n-1 choose n distinct resamples
/// (35 for four), and the t quantile that widens it exceeds 3.
pub const MIN_REPLICATIONS: usize = 5;

/// A percentile needs about this many samples beyond it: with ten, the number beyond varies by a third.
pub const MIN_TAIL_SAMPLES: f64 = 10.0;

/// Number of `samples` beyond percentile `p`, on its nearer side: 10 of 100 for 0.9. Shares such as 0.1 are not exact
/// in binary, so 100 × (1 − 0.9) is slightly less than ten without rounding.
pub fn samples_beyond(samples: usize, p: f64) -> f64 {
    (samples as f64 * p.min(1.0 - p) * 1e9).round() / 1e9
}

/// The samples of one condition, grouped by replication and sorted once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replications {
    count: usize,
    sorted: Sorted,
}

impl Replications {
    /// Groups of complete samples, one per replication; NaN is dropped. A replication without samples
    /// still counts as one.
    pub fn new(groups: &[Vec<f64>]) -> Replications {
        Replications::build(
            groups.len(),
            groups
                .iter()
                .map(|g| g.iter().copied().map(Observation::complete)),
        )
    }

    /// Groups of samples, some of which are lower bounds; quantiles are then Kaplan-Meier's.
    pub fn censored(groups: &[Vec<Observation>]) -> Replications {
        Replications::build(groups.len(), groups.iter().map(|g| g.iter().copied()))
    }

    fn build<G: Iterator<Item = Observation>>(
        count: usize,
        groups: impl Iterator<Item = G>,
    ) -> Replications {
        let tagged = groups.zip(0u32..);
        Replications {
            count,
            sorted: Sorted::new(tagged.flat_map(|(g, k)| g.map(move |o| (o, k)))),
        }
    }

    /// How many replications there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many samples there are over all replications, complete or not.
    pub fn samples(&self) -> usize {
        self.sorted.len()
    }

    /// How many samples are only lower bounds.
    pub fn censored_samples(&self) -> usize {
        self.sorted.censored()
    }

    /// The complete values of all replications in ascending order.
    pub fn complete_values(&self) -> Vec<f64> {
        self.sorted.complete_values().collect()
    }

    /// The quantile of the pooled samples for `p` in 0..=1; `None` where it is not identifiable.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        self.weighted_quantiles(&vec![1; self.count], &[p])[0]
    }

    /// The quantiles for every `p` when replication r is taken `weights[r]` times.
    pub fn weighted_quantiles(&self, weights: &[u32], ps: &[f64]) -> Vec<Option<f64>> {
        self.sorted.quantiles(weights, ps)
    }

    /// Reasons to doubt the quantiles `ps` of these samples: `few-replications`, `few-samples` (fewer than
    /// [`MIN_TAIL_SAMPLES`] beyond a percentile) and `censored-quantile` (beyond the last completion), in this order.
    pub fn doubts(&self, ps: &[f64]) -> Vec<Warning> {
        let mut doubts = Vec::new();
        if self.count < MIN_REPLICATIONS {
            doubts.push(Warning::warning(
                Code::FewReplications,
                format!(
                    "{} replications: intervals need at least {MIN_REPLICATIONS}; run more seeds",
                    self.count
                ),
            ));
        }
        for &p in ps {
            let beyond = samples_beyond(self.samples(), p);
            if beyond < MIN_TAIL_SAMPLES {
                doubts.push(Warning::warning(
                    Code::FewSamples,
                    format!(
                        "{}: {beyond:.1} of {} samples lie beyond it; {MIN_TAIL_SAMPLES} are wanted",
                        quantile_name(p),
                        self.samples()
                    ),
                ));
            }
            if self.censored_samples() > 0 && self.quantile(p).is_none() {
                doubts.push(Warning::warning(
                    Code::CensoredQuantile,
                    format!(
                        "{}: not identifiable, {} of {} samples were unfinished; a longer run helps where its end cut them off, a longer `every` where the next one did",
                        quantile_name(p),
                        self.censored_samples(),
                        self.samples()
                    ),
                ));
            }
        }
        doubts
    }
}

/// The name of the quantile for `p` in 0..=1: `p50`, `p99.9`. Its number is in percent, to ten decimals, because 0.57 in
/// binary is slightly less than 57 %.
///
/// ```
/// assert_eq!(swell_stats::quantile_name(0.999), "p99.9");
/// ```
pub fn quantile_name(p: f64) -> String {
    format!("p{}", (p * 1e12).round() / 1e10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_one_pool_everything() {
        let r = Replications::new(&[vec![1.0, 5.0], vec![], vec![3.0, f64::NAN]]);
        assert_eq!((r.count(), r.samples()), (3, 3));
        assert_eq!(r.quantile(0.5), Some(3.0));
        assert_eq!(r.weighted_quantiles(&[0, 5, 0], &[0.5]), vec![None]);
        assert_eq!(
            r.weighted_quantiles(&[1, 0, 0], &[1.0, 0.0, 2.0]),
            vec![Some(5.0), Some(1.0), None]
        );
    }

    #[test]
    fn no_quantile_below_all_is_called_p100() {
        let names = [0.0, 0.05, 0.5, 0.57, 0.999, 0.999_999, 1.0].map(quantile_name);
        assert_eq!(
            names,
            ["p0", "p5", "p50", "p57", "p99.9", "p99.9999", "p100"]
        );
    }

    #[test]
    fn doubts_name_their_numbers() {
        let few = Replications::new(&vec![vec![1.0; 30]; 4]);
        let codes: Vec<Code> = few
            .doubts(&[0.5, 0.95])
            .into_iter()
            .map(|w| w.code)
            .collect();
        assert_eq!(codes, [Code::FewReplications, Code::FewSamples]);
        assert!(few.doubts(&[0.05])[1].message.starts_with("p5: 6.0 of 120"));
        assert!(
            few.doubts(&[0.95])[1]
                .message
                .starts_with("p95: 6.0 of 120")
        );
        assert!(
            Replications::new(&vec![vec![1.0; 40]; 5])
                .doubts(&[0.05, 0.5, 0.95])
                .is_empty()
        );
        // Exactly the required number: in binary, 100 × (1 − 0.9) is slightly less than ten.
        assert!(
            Replications::new(&vec![vec![1.0; 20]; 5])
                .doubts(&[0.9, 0.1])
                .is_empty()
        );
        let stuck = Replications::censored(&vec![
            vec![
                Observation::complete(1.0),
                Observation::at_least(2.0)
            ];
            50
        ]);
        assert_eq!(stuck.doubts(&[0.25]).len(), 0);
        let doubt = &stuck.doubts(&[0.75])[0];
        assert_eq!(doubt.code, Code::CensoredQuantile);
        // Samples may be cut off by something other than the end of the run, so a longer run may not help.
        assert!(
            doubt.message.ends_with(
                "helps where its end cut them off, a longer `every` where the next one did"
            ),
            "{}",
            doubt.message
        );
    }
}
