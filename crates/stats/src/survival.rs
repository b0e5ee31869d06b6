//! Right-censored samples: Kaplan-Meier distribution and quantiles.
//!
//! A request that is unfinished when the run ends took *at least* the observed time. Dropping it makes a slow network
//! look fast; treating it as finished makes a short run look fast. Units: those of the values.
//!
//! Source: E. L. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", JASA 53
//! (1958); the equivalent redistribution of each censored observation's mass over everything to its right
//! is B. Efron, "The two sample problem with censored data", Berkeley Symposium (1967). Completions come
//! before censorings of the same value.
//!
//! **Quantiles.** After redistribution an observation of mass m stands for m equal samples; the quantile is
//! the type 7 quantile of those. Without censoring that is exactly [`Ecdf::quantile`](crate::Ecdf).
//! Mass beyond the last completion belongs to no value, so the quantiles there are not identifiable: `None`.
//!
//! Not modelled: informative censoring. A run that ends because it is slow breaks the assumption.

use serde::{Deserialize, Serialize};

use crate::ecdf::between;

/// A measured value, or a lower bound of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The value, or the point where observation ended.
    pub value: f64,
    /// Whether the event occurred; if not, the value is a lower bound.
    pub complete: bool,
}

impl Observation {
    /// A finished observation.
    pub fn complete(value: f64) -> Observation {
        Observation {
            value,
            complete: true,
        }
    }
    /// A lower bound: unfinished after `value`.
    pub fn at_least(value: f64) -> Observation {
        Observation {
            value,
            complete: false,
        }
    }
}

/// One step of a Kaplan-Meier curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurvivalStep {
    /// A value at which something completed.
    pub value: f64,
    /// The probability of a value at or below it, 0..=1.
    pub cdf: f64,
}

/// The distribution of right-censored samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KaplanMeier {
    sorted: Sorted,
}

impl KaplanMeier {
    /// The distribution of `observations`; NaN is dropped.
    pub fn new(observations: impl IntoIterator<Item = Observation>) -> KaplanMeier {
        KaplanMeier {
            sorted: Sorted::new(observations.into_iter().map(|o| (o, 0))),
        }
    }

    /// How many observations there are, complete or not.
    pub fn len(&self) -> usize {
        self.sorted.items.len()
    }

    /// Whether there is no observation.
    pub fn is_empty(&self) -> bool {
        self.sorted.items.is_empty()
    }

    /// The quantile for `p` in 0..=1; `None` where it is not identifiable or `p` is outside.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        self.sorted.quantiles(&[1], &[p])[0]
    }

    /// The curve, one step per distinct completed value, ascending.
    pub fn steps(&self) -> Vec<SurvivalStep> {
        self.walk().collect()
    }

    /// The probability of a value at or below `x`. Beyond the last completion this is a lower bound.
    pub fn cdf(&self, x: f64) -> f64 {
        let below = self.walk().take_while(|s| s.value <= x);
        below.last().map_or(0.0, |s| s.cdf)
    }

    fn walk(&self) -> impl Iterator<Item = SurvivalStep> {
        let mut rest = &self.sorted.items[..];
        let mut survival = 1.0;
        std::iter::from_fn(move || {
            loop {
                let value = rest.first()?.value;
                let at_risk = rest.len() as f64;
                let (same, beyond) = rest.split_at(rest.partition_point(|o| o.value == value));
                rest = beyond;
                let done = same.iter().filter(|o| o.complete).count() as f64;
                if done > 0.0 {
                    survival *= 1.0 - done / at_risk;
                    let cdf = 1.0 - survival;
                    return Some(SurvivalStep { value, cdf });
                }
            }
        })
    }
}

/// Observations in ascending order, completions first among equals, each with its cluster (replication).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sorted {
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    value: f64,
    cluster: u32,
    complete: bool,
}

impl Sorted {
    pub(crate) fn new(observations: impl Iterator<Item = (Observation, u32)>) -> Sorted {
        let mut items: Vec<Item> = observations
            .filter(|(o, _)| !o.value.is_nan())
            // Adding zero turns -0.0 into 0.0, so that the total order agrees with equality.
            .map(|(o, cluster)| Item {
                value: o.value + 0.0,
                cluster,
                complete: o.complete,
            })
            .collect();
        items.sort_by(|a, b| {
            a.value
                .total_cmp(&b.value)
                .then(b.complete.cmp(&a.complete))
        });
        Sorted { items }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn censored(&self) -> usize {
        self.items.iter().filter(|i| !i.complete).count()
    }

    pub(crate) fn complete_values(&self) -> impl Iterator<Item = f64> {
        self.items.iter().filter(|i| i.complete).map(|i| i.value)
    }

    /// The quantiles of the multiset in which every observation of cluster c occurs `weights[c]` times
    /// (no weight: never), one per entry of `ps`, in one pass over the sorted items.
    pub(crate) fn quantiles(&self, weights: &[u32], ps: &[f64]) -> Vec<Option<f64>> {
        let weight = |i: &Item| u64::from(weights.get(i.cluster as usize).copied().unwrap_or(0));
        let total: u64 = self.items.iter().map(weight).sum();
        let mut found = vec![None; ps.len()];
        if total == 0 {
            return found;
        }
        let last = (total - 1) as f64;
        // Positions are exact integers until the first censored item. After it, mass is a product of ratios, and the
        // final position may differ from `last` by rounding.
        let slack = 1e-12 * total as f64;
        let mut targets: Vec<(f64, usize)> = ps
            .iter()
            .enumerate()
            .filter(|(_, p)| (0.0..=1.0).contains(*p))
            .map(|(i, p)| (last * p, i))
            .collect();
        targets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut targets = targets.into_iter().peekable();

        let mut remaining = total;
        let mut mass = 1.0;
        let mut position = 0.0;
        let mut previous: Option<(f64, f64)> = None;
        for item in &self.items {
            let copies = weight(item);
            if copies == 0 {
                continue;
            }
            remaining -= copies;
            if !item.complete {
                if remaining == 0 {
                    break;
                }
                mass *= (remaining + copies) as f64 / remaining as f64;
                continue;
            }
            // This value accounts for the order statistics `position` to `end`.
            let end = position + copies as f64 * mass - 1.0;
            while let Some(&(h, i)) = targets.peek()
                && h <= end + slack
            {
                found[i] = Some(match previous {
                    Some((at, value)) if h < position => {
                        between(value, item.value, (h - at) / (position - at))
                    }
                    _ => item.value,
                });
                targets.next();
            }
            if targets.peek().is_none() {
                break;
            }
            previous = Some((end, item.value));
            position = end + 1.0;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecdf;
    use swell_base::Stream;

    #[test]
    fn without_censoring_it_is_the_plain_quantile_to_the_bit() {
        let mut s = Stream::new(2, "km");
        for n in [1, 2, 3, 10, 101] {
            let x: Vec<f64> = (0..n).map(|_| (s.exponential(3.0) * 5.0).round()).collect();
            let km = KaplanMeier::new(x.iter().copied().map(Observation::complete));
            let e = Ecdf::new(x);
            for i in 0..=40 {
                let p = f64::from(i) / 40.0;
                let (a, b) = (km.quantile(p).unwrap(), e.quantile(p).unwrap());
                assert!((a - b).abs() <= 1e-14 * b.abs(), "{n} {p}: {a} {b}");
            }
        }
    }

    #[test]
    fn the_leukaemia_trial() {
        // 6-MP arm of Freireich et al. (1963), as in every survival textbook (Cox & Oakes 1984):
        // survival 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448.
        let done = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0];
        let open = [
            6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ];
        let km = KaplanMeier::new(
            done.map(Observation::complete)
                .into_iter()
                .chain(open.map(Observation::at_least)),
        );
        let steps = km.steps();
        let want = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448];
        assert_eq!(steps.len(), want.len());
        for (s, w) in steps.iter().zip(want) {
            assert!((1.0 - s.cdf - w).abs() < 0.0005 + 1e-9, "{s:?} {w}");
        }
        assert_eq!(km.len(), 21);
        assert_eq!(km.cdf(5.0), 0.0);
        assert_eq!(km.cdf(100.0), steps[6].cdf);
        // The median is where survival passes one half; p75 was never reached.
        assert_eq!(km.quantile(0.75), None);
        let median = km.quantile(0.5).unwrap();
        assert!((22.0..=23.0).contains(&median), "{median}");
    }

    #[test]
    fn copies_of_a_cluster_are_copies_of_its_observations() {
        let mut s = Stream::new(9, "copies");
        let mut clusters: Vec<Vec<Observation>> = Vec::new();
        for _ in 0..4 {
            clusters.push(
                (0..30)
                    .map(|_| Observation {
                        value: (s.exponential(1.0) * 20.0).round(),
                        complete: s.chance(0.8),
                    })
                    .collect(),
            );
        }
        let tagged = clusters
            .iter()
            .zip(0u32..)
            .flat_map(|(c, k)| c.iter().map(move |o| (*o, k)));
        let sorted = Sorted::new(tagged);
        let weights = [2, 0, 3, 1];
        let expanded = KaplanMeier::new(
            clusters
                .iter()
                .zip(weights)
                .flat_map(|(c, w)| std::iter::repeat_n(c.clone(), w as usize).flatten()),
        );
        let ps: Vec<f64> = (0..=50).rev().map(|i| f64::from(i) / 50.0).collect();
        let got = sorted.quantiles(&weights, &ps);
        assert!(got.iter().any(Option::is_some));
        for (p, q) in ps.iter().zip(got) {
            match (q, expanded.quantile(*p)) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9, "{p}: {a} {b}"),
                (a, b) => assert_eq!(a, b, "{p}"),
            }
        }
    }

    #[test]
    fn censoring_by_an_independent_clock_is_undone() {
        // Exponential times with mean 1, censored by an exponential window with mean 2: one third is censored, and
        // the median stays ln 2. Its standard error is about sqrt(V) with V = S^2 * integral dF/(S^2 G n) / f^2 =
        // (e^{1.5 ln 2} - 1)/(1.5 n) = 1.2190/n.
        let mut s = Stream::new(4, "window");
        let n = 20_000;
        let km = KaplanMeier::new((0..n).map(|_| {
            let (t, window) = (s.exponential(1.0), s.exponential(2.0));
            Observation {
                value: t.min(window),
                complete: t <= window,
            }
        }));
        let error = km.quantile(0.5).unwrap() - std::f64::consts::LN_2;
        assert!(
            error.abs() < 4.0 * (1.2190f64 / f64::from(n)).sqrt(),
            "{error}"
        );
    }

    #[test]
    fn completions_come_before_censorings_of_the_same_value() {
        // The open request was still running when the other finished at 1, so all its mass goes to 2.
        let km = KaplanMeier::new([
            Observation::at_least(1.0),
            Observation::complete(2.0),
            Observation::complete(1.0),
        ]);
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|p| km.quantile(p)),
            [1.0, 1.5, 2.0, 2.0].map(Some)
        );
        assert!((km.cdf(1.0) - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_completed_means_nothing_known() {
        let km = KaplanMeier::new([1.0, 2.0].map(Observation::at_least));
        assert_eq!(km.quantile(0.0), None);
        assert!(km.steps().is_empty());
        assert_eq!(KaplanMeier::default().quantile(0.5), None);
    }
}
