//! Percentiles that fall into a gap of the values.
//!
//! An application that fetches a small response and a large one in turn has a median between the two. Whether a run ends
//! after the one or the other decides on which side, and all runs with equal seeds end alike. The difference is then as
//! large as the gap and the same in every run, though the network did nothing. Where both conditions have such a gap, a
//! ratio that is no larger shows no difference.

use swell_stats::{KaplanMeier, Observation, PairedRatio};

use super::answer::MARGIN;

/// Whether `ratio`, that of percentile `p` of these observations under two conditions, is beyond the margin and no larger
/// than a gap that both have there, below which the shares of values differ by one request per run at most. A larger
/// difference of the shares is what the network did.
pub(super) fn explains(ratio: &PairedRatio, groups: [&[Vec<Observation>]; 2], p: f64) -> bool {
    let apart = ratio.value().ln().abs();
    if apart <= MARGIN.ln_1p() {
        return false;
    }
    let [(over, many), (under, few)] = groups.map(|of| gaps(of, p, apart));
    let alike = |a: f64, b: f64| (a - b).abs() <= 1.0 / many.min(few) + ROUNDING;
    over.iter().any(|&a| under.iter().any(|&b| alike(a, b)))
}

/// The shares of values below the gaps near percentile `p` of all runs together that explain a ratio whose logarithm is
/// `apart`, and the mean number of values in a run. A gap is as wide as the ratio of the two values beside it; it is
/// infinite where one is not above zero, or nothing is seen beyond. A run has an uncertain number of values below the
/// percentile, by a standard deviation of the binomial distribution and at least by one, so the gap may lie that far
/// off. Single values beside all others are no gap between two kinds.
fn gaps(of: &[Vec<Observation>], p: f64, apart: f64) -> (Vec<f64>, f64) {
    let all: Vec<Observation> = of.iter().flatten().copied().collect();
    let each = all.len() as f64 / of.len().max(1) as f64;
    let noise = (each * p * (1.0 - p)).sqrt().max(1.0) / each;
    let steps = KaplanMeier::new(all).steps();
    let kind = 0.5 / each - ROUNDING;
    let near =
        |share: f64| (share - p).abs() <= noise + ROUNDING && (kind..=1.0 - kind).contains(&share);
    let beyond = steps.iter().skip(1).map(|s| s.value);
    let pairs = steps.iter().zip(beyond.chain([f64::INFINITY]));
    let ratio = |low: f64, high: f64| if low > 0.0 { high / low } else { f64::INFINITY };
    let wide = |low: f64, high: f64| apart <= MARGIN.ln_1p() + ratio(low, high).ln();
    let found = pairs.filter(|(s, high)| near(s.cdf) && wide(s.value, *high));
    (found.map(|(s, _)| s.cdf).collect(), each)
}

/// Shares are sums and products of fractions.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(n: usize, value: impl Fn(usize) -> f64) -> Vec<Vec<Observation>> {
        let own: Vec<Observation> = (0..n).map(|i| Observation::complete(value(i))).collect();
        vec![own; 5]
    }

    /// The shares below gaps that explain a ratio.
    fn shares(of: &[Vec<Observation>], p: f64, ratio: f64) -> Vec<f64> {
        gaps(of, p, ratio.ln()).0
    }

    #[test]
    fn a_gap_is_the_step_between_two_kinds() {
        let turns = runs(21, |i| if i % 2 == 0 { 0.1 } else { 1.0 });
        let [share] = shares(&turns, 0.5, 10.0)[..] else {
            panic!("one gap")
        };
        assert!((share - 11.0 / 21.0).abs() < 1e-9);
        // A ratio beyond it is none of the gap's, and at p90 there are large ones only.
        assert!(shares(&turns, 0.5, 11.1).is_empty());
        assert!(shares(&turns, 0.9, 1.2).is_empty());
        let one_in_ten = runs(100, |i| if i % 10 == 9 { 1.0 } else { 0.1 });
        assert_eq!(shares(&one_in_ten, 0.9, 10.0).len(), 1);
        assert!(shares(&one_in_ten, 0.5, 1.2).is_empty());
        assert!(shares(&runs(9, |_| 0.0), 0.5, 1.2).is_empty());
    }

    #[test]
    fn smooth_values_have_no_gap() {
        // Quantiles of an exponential distribution, a different set in each run.
        let smooth: Vec<Vec<Observation>> = (0..5)
            .map(|k| {
                let share = |i: usize| (i as f64 + 0.2 * f64::from(k) + 0.1) / 100.0;
                let value = |i| Observation::complete(-(1.0 - share(i)).ln());
                (0..100).map(value).collect()
            })
            .collect();
        for p in [0.5, 0.9, 0.95] {
            assert!(shares(&smooth, p, 1.2).is_empty(), "{p}");
        }
    }

    /// Time-outs make a gap under both conditions. Where twice as many requests wait for one, that is a difference.
    #[test]
    fn more_on_the_far_side_of_a_gap_is_a_difference() {
        let late = |share: f64| {
            runs(
                100,
                move |i| if (i as f64) < 100.0 * share { 0.4 } else { 0.1 },
            )
        };
        let (many, few) = (late(0.13), late(0.07));
        let ratio = PairedRatio::of(&many, &few, 0.9).unwrap();
        assert!(ratio.value() > 3.9);
        assert!(!explains(&ratio, [&many, &few], 0.9));
        // One request more is chance.
        let (more, less) = (late(0.105), late(0.1));
        let flip = PairedRatio::of(&more, &less, 0.9).unwrap();
        assert!(flip.value() < 1.1 || explains(&flip, [&more, &less], 0.9));
    }

    #[test]
    fn a_ratio_beyond_the_gap_or_without_one_is_a_difference() {
        let short = runs(21, |i| if i % 2 == 0 { 0.1 } else { 1.0 });
        let long = runs(21, |i| if i % 2 == 1 { 0.1 } else { 1.0 });
        let apart = |a: &[Vec<Observation>], b: &[Vec<Observation>]| {
            let ratio = PairedRatio::of(a, b, 0.5).unwrap();
            explains(&ratio, [a, b], 0.5)
        };
        assert!(apart(&short, &long) && apart(&long, &short));
        let slow = runs(21, |i| if i % 2 == 1 { 5.0 } else { 50.0 });
        assert!(!apart(&slow, &short));
        // One kind against two.
        let one = runs(21, |_| 0.1);
        assert!(!apart(&long, &one));
        // Within the margin there is nothing to explain.
        assert!(!apart(&short, &short));
    }
}
