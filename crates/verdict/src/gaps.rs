//! Percentiles that fall into a gap of the values.
//!
//! An application that fetches a small response and a large one in turn has a median between the two. Whether a run ends
//! after the one or the other decides on which side, and all runs with equal seeds end alike. The difference is then as
//! large as the gap and the same in every run, though the network did nothing. Where both conditions have such a gap, a
//! ratio that is no larger shows no difference.

use swell_stats::{KaplanMeier, Observation, PairedRatio};

use super::MARGIN;

/// Whether `ratio`, that of percentile `p` of these observations under two conditions, is beyond the margin and no larger
/// than a gap that both have there.
pub(super) fn explains(ratio: &PairedRatio, groups: [&[Vec<Observation>]; 2], p: f64) -> bool {
    let apart = ratio.value().ln().abs();
    let margin = MARGIN.ln_1p();
    apart > margin
        && groups
            .into_iter()
            .all(|of| apart <= margin + gap(of, p).ln())
}

/// The largest ratio of two neighbouring values at percentile `p` of all runs together, at least one; infinite where a
/// value is not above zero, or nothing is seen beyond. A run has an uncertain number of values below the percentile, by a
/// standard deviation of the binomial distribution and at least by one, so the gap may lie that far off.
fn gap(of: &[Vec<Observation>], p: f64) -> f64 {
    let all: Vec<Observation> = of.iter().flatten().copied().collect();
    let each = all.len() as f64 / of.len().max(1) as f64;
    let noise = (each * p * (1.0 - p)).sqrt().max(1.0) / each;
    let steps = KaplanMeier::new(all).steps();
    let near = |share: f64| (share - p).abs() <= noise + ROUNDING && share < 1.0 - ROUNDING;
    let beyond = steps.iter().skip(1).map(|s| s.value);
    let pairs = steps.iter().zip(beyond.chain([f64::INFINITY]));
    let ratio = |low: f64, high: f64| if low > 0.0 { high / low } else { f64::INFINITY };
    let found = pairs.filter(|(s, _)| near(s.cdf));
    match steps.is_empty() {
        true => f64::INFINITY,
        false => found.fold(1.0, |most, (s, high)| ratio(s.value, high).max(most)),
    }
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

    #[test]
    fn a_gap_is_the_step_between_two_kinds() {
        let turns = runs(21, |i| if i % 2 == 0 { 0.1 } else { 1.0 });
        assert!((gap(&turns, 0.5) - 10.0).abs() < 1e-9);
        // At p90 there are large ones only.
        assert_eq!(gap(&turns, 0.9), 1.0);
        let one_in_ten = runs(100, |i| if i % 10 == 9 { 1.0 } else { 0.1 });
        assert!((gap(&one_in_ten, 0.9) - 10.0).abs() < 1e-9);
        assert_eq!(gap(&one_in_ten, 0.5), 1.0);
        assert_eq!(gap(&runs(9, |_| 0.0), 0.5), 1.0);
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
            assert!(gap(&smooth, p) < 1.05, "{p}: {}", gap(&smooth, p));
        }
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
