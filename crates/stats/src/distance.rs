//! Distances between two samples and between two compositions.
//!
//! Units: Kolmogorov-Smirnov and Jensen-Shannon have none (0..=1); Wasserstein-1 is in the unit of the
//! samples, or in octaves (factors of two) on logarithms. Source: the definitions; J. Lin, "Divergence
//! measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37 (1991). Validation: SciPy, in
//! `python-tests`.
//!
//! A distance means little without the distance of the original from itself (two halves, two seeds): report both. For
//! a p-value over replications see [`Permutation`](crate::Permutation).

use crate::ecdf::Ecdf;

/// The Kolmogorov-Smirnov statistic: the largest difference of the two CDFs, 0..=1. `None` if either
/// sample is empty.
pub fn ks(a: &Ecdf, b: &Ecdf) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut largest: f64 = 0.0;
    walk(a.samples(), b.samples(), |_, _, fa, fb| {
        largest = largest.max((fa - fb).abs())
    });
    Some(largest)
}

/// The Wasserstein-1 (earth mover's) distance: the area between the two CDFs, in the unit of the samples.
/// `None` if either sample is empty or has an infinite value.
pub fn wasserstein(a: &Ecdf, b: &Ecdf) -> Option<f64> {
    wasserstein_sorted(a.samples(), b.samples())
}

/// The Wasserstein-1 distance of the base-2 logarithms, in octaves: the mean number of doublings by which mass must
/// move. `None` if either sample is empty or has a value that is not positive and finite.
pub fn wasserstein_log2(a: &Ecdf, b: &Ecdf) -> Option<f64> {
    let log = |e: &Ecdf| -> Option<Vec<f64>> {
        e.samples()
            .iter()
            .map(|&x| (x > 0.0).then(|| libm::log2(x)))
            .collect()
    };
    wasserstein_sorted(&log(a)?, &log(b)?)
}

/// The Jensen-Shannon divergence of two compositions, in bits, 0..=1. `a[i]` and `b[i]` are the weights (counts,
/// bytes) of category i; the shorter slice is padded with zeros. `None` if either has no weight, or a weight that is
/// negative or not finite.
pub fn jensen_shannon(a: &[f64], b: &[f64]) -> Option<f64> {
    let total = |w: &[f64]| -> Option<f64> {
        let sum: f64 = w.iter().sum();
        (w.iter().all(|x| *x >= 0.0) && sum > 0.0 && sum.is_finite()).then_some(sum)
    };
    let (sum_a, sum_b) = (total(a)?, total(b)?);
    let share = |w: &[f64], i: usize, sum: f64| w.get(i).map_or(0.0, |x| x / sum);
    // x log2(x/m), which tends to zero as x does.
    let term = |x: f64, m: f64| if x > 0.0 { x * libm::log2(x / m) } else { 0.0 };
    let bits: f64 = (0..a.len().max(b.len()))
        .map(|i| {
            let (p, q) = (share(a, i, sum_a), share(b, i, sum_b));
            let m = (p + q) / 2.0;
            (term(p, m) + term(q, m)) / 2.0
        })
        .sum();
    // Rounding may exceed the range by an ulp.
    Some(bits.clamp(0.0, 1.0))
}

fn wasserstein_sorted(a: &[f64], b: &[f64]) -> Option<f64> {
    let ends = [a.first(), a.last(), b.first(), b.last()];
    if ends.iter().any(|x| x.is_none_or(|x| !x.is_finite())) {
        return None;
    }
    let mut area = 0.0;
    walk(a, b, |x, next, fa, fb| {
        if let Some(next) = next {
            area += (fa - fb).abs() * (next - x);
        }
    });
    Some(area)
}

/// Calls `each(x, next distinct value, F_a(x), F_b(x))` for every distinct value of both samples, ascending.
fn walk(a: &[f64], b: &[f64], mut each: impl FnMut(f64, Option<f64>, f64, f64)) {
    let smaller = |i: usize, j: usize| match (a.get(i), b.get(j)) {
        (Some(&x), Some(&y)) => Some(x.min(y)),
        (x, y) => x.or(y).copied(),
    };
    let (mut i, mut j) = (0, 0);
    while let Some(x) = smaller(i, j) {
        i += a[i..].iter().take_while(|&&v| v == x).count();
        j += b[j..].iter().take_while(|&&v| v == x).count();
        each(
            x,
            smaller(i, j),
            i as f64 / a.len() as f64,
            j as f64 / b.len() as f64,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    fn e(x: &[f64]) -> Ecdf {
        Ecdf::new(x.to_vec())
    }

    #[test]
    fn by_hand() {
        let (a, b) = (e(&[1.0, 2.0, 3.0, 4.0]), e(&[3.0, 4.0]));
        assert_eq!(
            (ks(&a, &b), ks(&b, &a), ks(&a, &a)),
            (Some(0.5), Some(0.5), Some(0.0))
        );
        // Half the mass moves by two, or each quarter by two at most: mean 2.5 against 3.5.
        assert_eq!(wasserstein(&a, &b), Some(1.0));
        assert_eq!(
            wasserstein_log2(&e(&[1.0, 8.0]), &e(&[4.0, 32.0])),
            Some(2.0)
        );
        assert_eq!(jensen_shannon(&[1.0, 0.0], &[0.0, 7.0]), Some(1.0));
        assert_eq!(jensen_shannon(&[1.0, 3.0], &[2.0, 6.0, 0.0]), Some(0.0));
    }

    #[test]
    fn what_has_no_distance_says_so() {
        let empty = Ecdf::default();
        assert_eq!(
            (ks(&empty, &e(&[1.0])), wasserstein(&e(&[1.0]), &empty)),
            (None, None)
        );
        assert_eq!(wasserstein(&e(&[f64::INFINITY]), &e(&[1.0])), None);
        assert_eq!(ks(&e(&[f64::INFINITY]), &e(&[1.0])), Some(1.0));
        assert_eq!(wasserstein_log2(&e(&[0.0, 1.0]), &e(&[1.0])), None);
        assert_eq!(jensen_shannon(&[0.0], &[1.0]), None);
        assert_eq!(jensen_shannon(&[-1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn a_shift_moves_everything_by_itself() {
        let mut s = Stream::new(1, "shift");
        let x: Vec<f64> = (0..500).map(|_| s.exponential(1.0)).collect();
        let moved = Ecdf::new(x.iter().map(|v| v + 3.0).collect());
        let scaled = Ecdf::new(x.iter().map(|v| v * 8.0).collect());
        let x = Ecdf::new(x);
        assert!((wasserstein(&x, &moved).unwrap() - 3.0).abs() < 1e-12);
        assert!((wasserstein_log2(&scaled, &x).unwrap() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn ks_of_equal_laws_keeps_its_level() {
        // Smirnov (1939): for n = m = 400 the 5 % point is 1.358 * sqrt(2/400) = 0.0960. In 1000 trials the number of
        // rejections has a binomial standard deviation of 7. The statistic is discrete, so there are slightly fewer.
        let mut s = Stream::new(2, "level");
        let mut sample = || Ecdf::new((0..400).map(|_| s.exponential(1.0)).collect());
        let over = (0..1000)
            .filter(|_| ks(&sample(), &sample()).unwrap() > 0.0960)
            .count();
        assert!((22..=71).contains(&over), "{over}");
    }
}
