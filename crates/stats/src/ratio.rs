//! The ratio of a percentile under two conditions, and the decisions based on it.
//!
//! **Estimand.** The geometric mean over replications of Q_p(with) / Q_p(without), where both quantiles are those of
//! one replication. Replications are paired: number k of one condition and number k of the other share their seed, or
//! their block in time. The logarithms of the paired ratios are independent and roughly normal. Student's t therefore
//! gives intervals with the nominal coverage even with five replications; the tests of this file measure that.
//!
//! Replications of two experiments that share no seeds are independent samples. The estimand is then the ratio of the
//! geometric means, with Welch's interval (B. L. Welch, Biometrika 34 (1947)): [`PairedRatio::independent`].
//!
//! **Censoring.** A quantile beyond the last completion of a run is only known as a lower bound. Neighbouring
//! replications are then merged until the quantile of every group is known, as long as [`MIN_REPLICATIONS`] groups
//! remain. If that does not help, bounds are used as quantiles and the ratio itself is a bound: [`Known`].
//!
//! **Few observations.** A run of ten requests has no 95th percentile but their largest. For tails, replications are
//! merged in the same way until every group is expected to have an observation beyond the quantile.
//!
//! **Decisions.** One-sided p-values for "the ratio is above" and "below a threshold", and Hommel's correction for
//! several of them ([`hommel`]; G. Hommel, Biometrika 75 (1988)). Equivalence is shown by two one-sided tests (D. J.
//! Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987)): an interval of level 1 - 2 alpha inside
//! the margin rejects both at level alpha.

use serde::{Deserialize, Serialize};

use crate::replications::MIN_REPLICATIONS;
use crate::special::{t_cdf, t_quantile};
use crate::survival::{KaplanMeier, Observation};

/// How much of a ratio is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Its value.
    Value,
    /// A lower bound: some quantiles in the numerator are lower bounds.
    AtLeast,
    /// An upper bound: some quantiles in the denominator are lower bounds.
    AtMost,
}

/// A ratio over paired replications, or over two independent samples of replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Mean of the logarithms.
    mean: f64,
    /// Standard deviation of the logarithms (divisor n - 1); NaN for a single group. For independent samples: the
    /// standard deviation of the smaller sample's number of pairs that gives the same standard error.
    sd: f64,
    /// Degrees of freedom of the standard error.
    freedom: f64,
    /// Number of groups of replications; of independent samples, the smaller number.
    groups: usize,
    /// Number of replications.
    replications: usize,
    known: Known,
}

/// Standard errors of logarithms below this are those of rounding.
const ROUNDING: f64 = 1e-9;

/// The largest probability that a pair of independent values, each one of two, lies apart in a given way.
const ALIKE: f64 = 0.25;

/// Larger numbers of replications are not recommended to the user.
const MOST_REPLICATIONS: usize = 10_000;

/// The value of one group under one condition.
#[derive(Clone, Copy)]
enum Value {
    Exact(f64),
    AtLeast(f64),
}

impl PairedRatio {
    /// The ratio of the `p`-quantiles of `with` and `without`. Each holds the observations of one replication per
    /// entry, in pairs. Lower bounds must be finite: pass the observed time.
    ///
    /// `None` if the numbers of replications differ, a replication of either has no observation, a quantile is not
    /// positive, or both quantiles of the ratio are only bounds.
    pub fn of(
        with: &[Vec<Observation>],
        without: &[Vec<Observation>],
        p: f64,
    ) -> Option<PairedRatio> {
        let n = with.len();
        if n == 0 || n != without.len() {
            return None;
        }
        // The smallest groups in which every quantile is known; those of the least size if there is none.
        let largest = (n / MIN_REPLICATIONS).max(1);
        let least = least_size(with, p).max(least_size(without, p));
        let mut found = None;
        for size in least..=largest {
            let over = quantiles(with, p, n / size)?;
            let under = quantiles(without, p, n / size)?;
            let done = exact(&over) && exact(&under);
            if done || found.is_none() {
                found = Some((over, under));
            }
            if done {
                break;
            }
        }
        let (over, under) = found?;
        let known = known(&over, &under)?;
        PairedRatio::from_values(&bare(&over), &bare(&under), n, known)
    }

    /// As [`of`](Self::of), for two independent samples of replications; their numbers may differ.
    ///
    /// `None` if one is empty, a replication of either has no observation, a quantile is not positive, or both
    /// quantiles of the ratio are only bounds.
    pub fn independent(
        with: &[Vec<Observation>],
        without: &[Vec<Observation>],
        p: f64,
    ) -> Option<PairedRatio> {
        let smallest = |of: &[Vec<Observation>]| {
            let largest = (of.len() / MIN_REPLICATIONS).max(1);
            let mut found = None;
            for size in least_size(of, p)..=largest {
                let values = quantiles(of, p, of.len() / size)?;
                let done = exact(&values);
                if done || found.is_none() {
                    found = Some(values);
                }
                if done {
                    break;
                }
            }
            found
        };
        let (over, under) = (smallest(with)?, smallest(without)?);
        let known = known(&over, &under)?;
        let replications = with.len().min(without.len());
        PairedRatio::welch(&bare(&over), &bare(&under), replications, known)
    }

    /// The ratio of a measure with one value per replication, for two independent samples.
    ///
    /// `None` if one is empty, or a value is not positive and finite.
    pub fn independent_values(with: &[f64], without: &[f64]) -> Option<PairedRatio> {
        let replications = with.len().min(without.len());
        PairedRatio::welch(with, without, replications, Known::Value)
    }

    fn welch(
        with: &[f64],
        without: &[f64],
        replications: usize,
        known: Known,
    ) -> Option<PairedRatio> {
        let sound = |x: &f64| x.is_finite() && *x > 0.0;
        if with.is_empty() || without.is_empty() || !with.iter().chain(without).all(sound) {
            return None;
        }
        // Mean, squared standard error and degrees of freedom of one sample.
        let sample = |values: &[f64]| {
            let n = values.len() as f64;
            let logs = values.iter().map(|&x| libm::log(x));
            let mean = logs.clone().sum::<f64>() / n;
            let squares: f64 = logs.map(|x| (x - mean) * (x - mean)).sum();
            (mean, squares / (n - 1.0) / n, n - 1.0)
        };
        let ((m, a, f), (k, b, g)) = (sample(with), sample(without));
        let groups = with.len().min(without.len());
        Some(PairedRatio {
            mean: m - k,
            sd: libm::sqrt((a + b) * groups as f64),
            freedom: match a + b {
                // Nothing varies.
                0.0 => f + g,
                both => both * both / (a * a / f + b * b / g),
            },
            groups,
            replications,
            known,
        })
    }

    /// The ratio of a measure with one value per replication, for paired replications.
    ///
    /// `None` if the numbers of replications differ, there are none, or a value is not positive and finite.
    pub fn of_values(with: &[f64], without: &[f64]) -> Option<PairedRatio> {
        PairedRatio::from_values(with, without, with.len(), Known::Value)
    }

    fn from_values(
        with: &[f64],
        without: &[f64],
        replications: usize,
        known: Known,
    ) -> Option<PairedRatio> {
        let groups = with.len();
        let sound = |x: &f64| x.is_finite() && *x > 0.0;
        if groups == 0 || groups != without.len() || !with.iter().chain(without).all(sound) {
            return None;
        }
        let logs = with.iter().zip(without).map(|(a, b)| libm::log(a / b));
        let mean = logs.clone().sum::<f64>() / groups as f64;
        let squares: f64 = logs.map(|x| (x - mean) * (x - mean)).sum();
        Some(PairedRatio {
            mean,
            sd: libm::sqrt(squares / (groups as f64 - 1.0)),
            freedom: groups as f64 - 1.0,
            groups,
            replications,
            known,
        })
    }

    /// The geometric mean of the ratios, or a bound of it.
    pub fn value(&self) -> f64 {
        libm::exp(self.mean)
    }

    /// How much of the ratio is known.
    pub fn known(&self) -> Known {
        self.known
    }

    /// Replications behind it.
    pub fn replications(&self) -> usize {
        self.replications
    }

    /// Student's two-sided interval of the given level, such as 0.95. An unknown end is zero or infinite; with a
    /// single group both are.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        if self.groups < 2 {
            return (0.0, f64::INFINITY);
        }
        let half = t_quantile(0.5 + level / 2.0, self.freedom) * self.error();
        let low = libm::exp(self.mean - half);
        let high = libm::exp(self.mean + half);
        match self.known {
            Known::Value => (low, high),
            Known::AtLeast => (low, f64::INFINITY),
            Known::AtMost => (0.0, high),
        }
    }

    /// The p-value of "the ratio is at most `threshold`": small where it is above.
    pub fn p_above(&self, threshold: f64) -> f64 {
        match self.known {
            Known::AtMost => 1.0,
            _ => self.tail(self.mean - libm::log(threshold)),
        }
    }

    /// The p-value of "the ratio is at least `threshold`": small where it is below.
    pub fn p_below(&self, threshold: f64) -> f64 {
        match self.known {
            Known::AtLeast => 1.0,
            _ => self.tail(libm::log(threshold) - self.mean),
        }
    }

    /// The probability of a mean at least `distance` beyond the threshold if the true value is the threshold.
    fn tail(&self, distance: f64) -> f64 {
        if self.groups < 2 {
            return 1.0;
        }
        let error = self.error();
        if error < ROUNDING {
            // Nothing varies, so the value seems to be the truth. But where values are often one of two, all pairs may
            // lie apart in the same way by chance.
            return match distance > 0.0 {
                true => libm::pow(ALIKE, self.groups as f64),
                false => 1.0,
            };
        }
        1.0 - t_cdf(distance / error, self.freedom)
    }

    /// Whether the interval of level 1 - 2 `alpha` lies inside 1/(1 + `margin`) to 1 + `margin`, with at least
    /// [`MIN_REPLICATIONS`] groups: fewer cannot show that something makes no difference.
    pub fn equivalent(&self, margin: f64, alpha: f64) -> bool {
        let (low, high) = self.interval(1.0 - 2.0 * alpha);
        self.groups >= MIN_REPLICATIONS && low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin
    }

    /// The p-value of "the ratio lies outside 1/(1 + `margin`) to 1 + `margin`": the larger p-value of two one-sided
    /// tests. It is 1 with fewer than [`MIN_REPLICATIONS`] groups.
    pub fn p_equivalent(&self, margin: f64) -> f64 {
        if self.groups < MIN_REPLICATIONS {
            return 1.0;
        }
        self.p_below(1.0 + margin)
            .max(self.p_above(1.0 / (1.0 + margin)))
    }

    /// Approximate number of replications that would show, at level `alpha`, on which side of the margin the ratio
    /// lies. Assumes that value and variation stay as observed. At least [`MIN_REPLICATIONS`]; `None` with a single
    /// group, if the ratio is a bound, or if more than 10 000 would be needed.
    pub fn replications_to_decide(&self, margin: f64, alpha: f64) -> Option<usize> {
        if self.groups < 2 || self.known != Known::Value {
            return None;
        }
        let each = self.replications as f64 / self.groups as f64;
        let distance = (libm::log1p(margin) - self.mean.abs()).abs();
        let enough = |n: usize| {
            t_quantile(1.0 - alpha, n as f64 - 1.0) * self.sd / libm::sqrt(n as f64) <= distance
        };
        let (mut few, mut many) = (MIN_REPLICATIONS - 1, MIN_REPLICATIONS);
        while !enough(many) {
            if many >= MOST_REPLICATIONS {
                return None;
            }
            (few, many) = (many, (2 * many).min(MOST_REPLICATIONS));
        }
        while many - few > 1 {
            let middle = usize::midpoint(few, many);
            match enough(middle) {
                true => many = middle,
                false => few = middle,
            }
        }
        Some((many as f64 * each).ceil() as usize)
    }

    /// Approximate number of replications that would narrow the 95 % interval to a factor of 1 + `margin` either way:
    /// (t s / log(1 + margin))^2. `None` with a single group or if the ratio is a bound.
    pub fn replications_for(&self, margin: f64) -> Option<usize> {
        if self.groups < 2 || self.known != Known::Value {
            return None;
        }
        let each = self.replications as f64 / self.groups as f64;
        let wanted = t_quantile(0.975, self.freedom) * self.sd / libm::log(1.0 + margin);
        Some((wanted * wanted * each).ceil().max(1.0) as usize)
    }

    fn error(&self) -> f64 {
        self.sd / libm::sqrt(self.groups as f64)
    }
}

/// The number of neighbouring replications that are merged at least, so that each group has an observation beyond quantile
/// `p`; as many as leave [`MIN_REPLICATIONS`] groups if none does. Every replication has a median.
fn least_size(of: &[Vec<Observation>], p: f64) -> usize {
    let largest = (of.len() / MIN_REPLICATIONS).max(1);
    // `1 - p` is not exact.
    let wanted = (1.0 / p.min(1.0 - p) - 1e-6).ceil() as usize;
    let plenty = |size: &usize| {
        let mut all = groups(of, of.len() / size);
        all.all(|own| own.iter().map(Vec::len).sum::<usize>() >= wanted)
    };
    match p == 0.5 {
        true => 1,
        false => (1..largest).find(plenty).unwrap_or(largest),
    }
}

/// `number` groups of neighbouring replications of about equal size.
fn groups(of: &[Vec<Observation>], number: usize) -> impl Iterator<Item = &[Vec<Observation>]> {
    (0..number).map(move |g| &of[g * of.len() / number..(g + 1) * of.len() / number])
}

fn exact(values: &[Value]) -> bool {
    values.iter().all(|v| matches!(v, Value::Exact(_)))
}

fn bare(values: &[Value]) -> Vec<f64> {
    let bare = |v: &Value| match v {
        Value::Exact(x) | Value::AtLeast(x) => *x,
    };
    values.iter().map(bare).collect()
}

/// What is known of the ratio of these quantiles; `None` if both are bounds.
fn known(over: &[Value], under: &[Value]) -> Option<Known> {
    match (exact(over), exact(under)) {
        (true, true) => Some(Known::Value),
        (false, true) => Some(Known::AtLeast),
        (true, false) => Some(Known::AtMost),
        (false, false) => None,
    }
}

/// The quantiles of `number` groups of neighbouring replications of about equal size; `None` if a replication has no
/// observations.
fn quantiles(of: &[Vec<Observation>], p: f64, number: usize) -> Option<Vec<Value>> {
    groups(of, number)
        .map(|own| {
            // Replications have equal weight, so each needs observations.
            if own.iter().any(Vec::is_empty) {
                return None;
            }
            let all = || own.iter().flatten().copied();
            match KaplanMeier::new(all()).quantile(p) {
                Some(exact) => Some(Value::Exact(exact)),
                None => {
                    // Treats all observations as complete at their last value, which gives the smallest possible
                    // quantile.
                    let seen = KaplanMeier::new(all().map(|o| Observation::complete(o.value)));
                    Some(Value::AtLeast(seen.quantile(p)?))
                }
            }
        })
        .collect()
}

/// Hommel's adjusted p-values, in the order of `ps`: hypotheses with a value of at most alpha may be rejected
/// together at level alpha.
///
/// This is the closure of Simes' test (Biometrika 73 (1986)): it is applied to every set of hypotheses. It rejects at
/// least as much as Holm's correction. It holds the level if the tests are independent or positively dependent, as
/// percentiles of the same requests are, and for two-sided tests in general (S. K. Sarkar, Annals of Statistics 26
/// (1998)). Holm's correction holds it always. The gain is largest for many measures of the same effect: if all of
/// them agree, none is corrected.
pub fn hommel(ps: &[f64]) -> Vec<f64> {
    let n = ps.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let sorted: Vec<f64> = order.iter().map(|&i| ps[i]).collect();
    let simes = |from: usize, size: usize| {
        let own = sorted[from..].iter().zip(1..);
        own.map(|(p, rank)| p * size as f64 / f64::from(rank))
            .fold(f64::INFINITY, f64::min)
    };
    // The hardest set of `size` hypotheses that contains the i-th one consists of it and the largest others.
    let mut adjusted = sorted.clone();
    for size in 1..=n {
        let first = n - size;
        let all = simes(first, size);
        for (i, own) in adjusted.iter_mut().enumerate() {
            let hardest = match i < first {
                // It comes before the size - 1 largest.
                true => {
                    let rest = sorted[first + 1..].iter().zip(2u32..);
                    rest.map(|(p, rank)| p * size as f64 / f64::from(rank))
                        .fold(sorted[i] * size as f64, f64::min)
                }
                false => all,
            };
            *own = own.max(hardest.min(1.0));
        }
    }
    let mut out = vec![1.0; n];
    for (&i, p) in order.iter().zip(adjusted) {
        out[i] = p;
    }
    out
}

#[cfg(test)]
mod tests;
