//! Permutation tests: is the difference between two conditions more than random variation of their replications?
//!
//! The tests permute *replications*, because samples within one are dependent. Source: R. A. Fisher, "The Design of
//! Experiments" (1935), section 21 (sign flips of paired differences); E. J. G. Pitman (1937) (labels); B. Phipson,
//! G. K. Smyth, "Permutation p-values should never be zero" (2010) for (1 + hits)/(1 + draws). All arrangements are
//! enumerated if there are at most `resamples` of them; otherwise they are drawn at random. Validation: hand-counted
//! cases and levels below.
//!
//! Few replications have little power: five pairs reach p = 2/32 at best, five against five p = 2/252.

use serde::{Deserialize, Serialize};
use swell_base::Stream;

/// A permutation test: seed and effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permutation {
    /// Seeds the stream of drawn arrangements.
    pub seed: u64,
    /// The largest number of arrangements to evaluate.
    pub resamples: u32,
}

/// The result of a permutation test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PValue {
    /// The statistic as observed.
    pub statistic: f64,
    /// The share of arrangements with a statistic at least as large, including the observed one.
    pub p: f64,
    /// Whether all arrangements were evaluated.
    pub exact: bool,
}

impl Permutation {
    /// 10 000 arrangements: exact up to 13 pairs, or 7 against 7 (3432 arrangements).
    pub fn seeded(seed: u64) -> Permutation {
        Permutation {
            seed,
            resamples: 10_000,
        }
    }

    /// Two-sided test of "the paired differences are symmetric about zero": `differences[r]` is, for
    /// example, the difference of the medians of replication r. Statistic: |mean|. `None` for no
    /// differences or ones that are not finite.
    pub fn paired(&self, differences: &[f64]) -> Option<PValue> {
        let n = differences.len();
        if n == 0 || differences.iter().any(|d| !d.is_finite()) {
            return None;
        }
        let statistic = |flipped: &[bool]| -> f64 {
            let sum: f64 = differences
                .iter()
                .zip(flipped)
                .map(|(d, &f)| if f { -d } else { *d })
                .sum();
            sum.abs() / n as f64
        };
        let observed = statistic(&vec![false; n]);
        let all = 1u64
            .checked_shl(n as u32)
            .filter(|&all| all <= u64::from(self.resamples));
        let mut flips = vec![false; n];
        let mut count = Count::new(observed);
        if let Some(all) = all {
            for code in 0..all {
                for (i, f) in flips.iter_mut().enumerate() {
                    *f = code >> i & 1 == 1;
                }
                count.add(statistic(&flips));
            }
            return Some(count.exact());
        }
        let mut stream = Stream::new(self.seed, "permutation/paired");
        for _ in 0..self.resamples {
            flips.fill_with(|| stream.bits() >> 63 == 1);
            count.add(statistic(&flips));
        }
        Some(count.drawn())
    }

    /// Two-sided test of "both conditions have the same law": `a` and `b` hold one value per replication.
    /// Statistic: |difference of means|. `None` if either is empty or a value is not finite.
    pub fn unpaired(&self, a: &[f64], b: &[f64]) -> Option<PValue> {
        let all: Vec<f64> = a.iter().chain(b).copied().collect();
        if a.is_empty() || b.is_empty() || all.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let total: f64 = all.iter().sum();
        self.labels(a.len(), b.len(), |first| {
            let sum: f64 = all
                .iter()
                .zip(first)
                .filter(|(_, f)| **f)
                .map(|(x, _)| x)
                .sum();
            (sum / a.len() as f64 - (total - sum) / b.len() as f64).abs()
        })
    }

    /// Tests any statistic of two groups of replications that is large when they differ, such as a distance between
    /// the pooled samples. `statistic` gets, for each of the replications 0..a+b, whether it is in the first group;
    /// as observed, the first `a` are. `None` if either group is empty or the observed statistic is NaN.
    pub fn labels(&self, a: usize, b: usize, statistic: impl Fn(&[bool]) -> f64) -> Option<PValue> {
        let mut first: Vec<bool> = (0..a + b).map(|i| i < a).collect();
        let observed = statistic(&first);
        if a == 0 || b == 0 || observed.is_nan() {
            return None;
        }
        let mut count = Count::new(observed);
        if combinations(a + b, a) <= f64::from(self.resamples) {
            loop {
                count.add(statistic(&first));
                if !next_arrangement(&mut first) {
                    return Some(count.exact());
                }
            }
        }
        let mut stream = Stream::new(self.seed, "permutation/labels");
        for _ in 0..self.resamples {
            stream.shuffle(&mut first);
            count.add(statistic(&first));
        }
        Some(count.drawn())
    }
}

struct Count {
    observed: f64,
    /// Tolerant bound, because rounding makes arrangements differ that are equal in exact arithmetic.
    threshold: f64,
    hits: u64,
    seen: u64,
}

impl Count {
    fn new(observed: f64) -> Count {
        Count {
            observed,
            threshold: observed - 1e-12 * observed.abs(),
            hits: 0,
            seen: 0,
        }
    }
    fn add(&mut self, statistic: f64) {
        self.seen += 1;
        self.hits += u64::from(statistic >= self.threshold);
    }
    fn exact(&self) -> PValue {
        PValue {
            statistic: self.observed,
            p: self.hits as f64 / self.seen as f64,
            exact: true,
        }
    }
    fn drawn(&self) -> PValue {
        let p = (self.hits + 1) as f64 / (self.seen + 1) as f64;
        PValue {
            statistic: self.observed,
            p,
            exact: false,
        }
    }
}

/// n choose k as a float, because only its magnitude matters.
fn combinations(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)
}

/// The next arrangement in the order in which `true` moves right; false after the last.
fn next_arrangement(first: &mut [bool]) -> bool {
    let n = first.len();
    // The rightmost `true` with a `false` after it moves one place; those right of it follow directly.
    let Some(at) = (0..n.saturating_sub(1))
        .rev()
        .find(|&i| first[i] && !first[i + 1])
    else {
        return false;
    };
    let right = first[at + 2..].iter().filter(|&&f| f).count();
    first[at] = false;
    for (i, f) in first[at + 1..].iter_mut().enumerate() {
        *f = i <= right;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_by_hand() {
        let t = Permutation::seeded(1);
        // All have one sign: only the two uniform flips are as extreme.
        let p = t.paired(&[1.0, 2.0, 3.0, 0.5, 0.25]).unwrap();
        assert_eq!((p.p, p.exact, p.statistic), (2.0 / 32.0, true, 1.35));
        // Complete separation of 5 against 5: two of 252.
        let q = t
            .unpaired(&[1.0, 2.0, 3.0, 4.0, 5.0], &[11.0, 12.0, 13.0, 14.0, 15.0])
            .unwrap();
        assert!((q.p - 2.0 / 252.0).abs() < 1e-15 && q.exact, "{q:?}");
        assert_eq!(t.unpaired(&[1.0, 1.0], &[1.0, 1.0, 1.0]).unwrap().p, 1.0);
        assert_eq!(
            (
                t.paired(&[]),
                t.paired(&[f64::NAN]),
                t.unpaired(&[], &[1.0])
            ),
            (None, None, None)
        );
    }

    #[test]
    fn every_arrangement_is_visited_once() {
        let mut first: Vec<bool> = (0..7).map(|i| i < 3).collect();
        let mut seen = vec![first.clone()];
        while next_arrangement(&mut first) {
            assert_eq!(first.iter().filter(|&&f| f).count(), 3);
            seen.push(first.clone());
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 35);
    }

    #[test]
    fn drawn_arrangements_agree_with_all_of_them() {
        let d: Vec<f64> = (0..12).map(|i| f64::from(i) - 3.0).collect();
        let exact = Permutation {
            seed: 1,
            resamples: 4096,
        }
        .paired(&d)
        .unwrap();
        let drawn = Permutation {
            seed: 1,
            resamples: 4095,
        }
        .paired(&d)
        .unwrap();
        assert!(exact.exact && !drawn.exact);
        let sd = (exact.p * (1.0 - exact.p) / 4095.0).sqrt();
        assert!(
            (exact.p - drawn.p).abs() < 4.0 * sd + 1.0 / 4096.0,
            "{exact:?} {drawn:?}"
        );
    }

    #[test]
    fn without_a_difference_five_percent_are_significant() {
        let mut s = Stream::new(4, "null");
        let mut hits = 0;
        for seed in 0..1000 {
            let a: Vec<f64> = (0..5).map(|_| s.exponential(1.0)).collect();
            let b: Vec<f64> = (0..5).map(|_| s.exponential(1.0)).collect();
            hits += i32::from(Permutation::seeded(seed).unpaired(&a, &b).unwrap().p <= 0.05);
        }
        // 12 of 252 arrangements: 4.76 %, with a binomial standard deviation of 6.7 in 1000.
        assert!((21..=75).contains(&hits), "{hits}");
    }
}
