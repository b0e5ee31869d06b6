//! Distances between two samples.
//!
//! Units: Kolmogorov-Smirnov has none (0..=1); Wasserstein-1 is in octaves (factors of two). Source: the definitions.
//! Validation: SciPy, in `python-tests`.
//!
//! A distance means little without the distance of the original from itself (two halves, two seeds): report both.

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

/// The Wasserstein-1 (earth mover's) distance of the base-2 logarithms, in octaves: the area between their CDFs, which
/// is the mean number of doublings by which mass must move. `None` if either sample is empty or has a value that is not positive and finite.
pub fn wasserstein_log2(a: &Ecdf, b: &Ecdf) -> Option<f64> {
    let log = |e: &Ecdf| -> Option<Vec<f64>> {
        e.samples()
            .iter()
            .map(|&x| (x > 0.0).then(|| libm::log2(x)))
            .collect()
    };
    wasserstein_sorted(&log(a)?, &log(b)?)
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
        assert_eq!(
            wasserstein_log2(&e(&[1.0, 8.0]), &e(&[4.0, 32.0])),
            Some(2.0)
        );
    }

    #[test]
    fn what_has_no_distance_says_so() {
        let empty = Ecdf::default();
        assert_eq!(
            (ks(&empty, &e(&[1.0])), wasserstein_log2(&e(&[1.0]), &empty)),
            (None, None)
        );
        assert_eq!(wasserstein_log2(&e(&[f64::INFINITY]), &e(&[1.0])), None);
        assert_eq!(ks(&e(&[f64::INFINITY]), &e(&[1.0])), Some(1.0));
        assert_eq!(wasserstein_log2(&e(&[0.0, 1.0]), &e(&[1.0])), None);
    }

    #[test]
    fn a_shift_moves_everything_by_itself() {
        let mut s = Stream::new(1, "shift");
        let x: Vec<f64> = (0..500).map(|_| s.exponential(1.0)).collect();
        let scaled = Ecdf::new(x.iter().map(|v| v * 8.0).collect());
        let x = Ecdf::new(x);
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
