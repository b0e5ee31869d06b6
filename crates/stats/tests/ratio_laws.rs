//! Laws of paired ratios, over random replications with unfinished requests.

use proptest::prelude::*;
use swell_stats::{Known, Observation, PairedRatio, hommel};

/// Replications of observations: values within a factor of 1000, one in eight a lower bound.
fn runs(n: usize) -> impl Strategy<Value = Vec<Vec<Observation>>> {
    let one = (-3.0f64..4.0, 0u8..8).prop_map(|(log, kind)| match kind {
        0 => Observation::at_least(log.exp()),
        _ => Observation::complete(log.exp()),
    });
    prop::collection::vec(prop::collection::vec(one, 5..30), n..=n)
}

fn both() -> impl Strategy<Value = (Vec<Vec<Observation>>, Vec<Vec<Observation>>)> {
    (1usize..12).prop_flat_map(|n| (runs(n), runs(n)))
}

fn percentile() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.05, 0.5, 0.9, 0.95])
}

fn scaled(of: &[Vec<Observation>], k: f64) -> Vec<Vec<Observation>> {
    let one = |o: &Observation| Observation {
        value: o.value * k,
        ..*o
    };
    of.iter().map(|run| run.iter().map(one).collect()).collect()
}

fn near(a: f64, b: f64) -> bool {
    a == b || (a / b - 1.0).abs() < 1e-9
}

proptest! {
    /// Swapping the conditions inverts the ratio and its interval and exchanges the p-values.
    #[test]
    fn swapping_the_conditions_inverts_everything((with, without) in both(), p in percentile()) {
        let (a, b) = (PairedRatio::of(&with, &without, p), PairedRatio::of(&without, &with, p));
        prop_assert_eq!(a.is_some(), b.is_some());
        if let (Some(a), Some(b)) = (a, b) {
            prop_assert!(near(a.value(), 1.0 / b.value()));
            let turned = match a.known() {
                Known::Value => Known::Value,
                Known::AtLeast => Known::AtMost,
                Known::AtMost => Known::AtLeast,
            };
            prop_assert_eq!(b.known(), turned);
            let ((low, high), (other_low, other_high)) = (a.interval(0.95), b.interval(0.95));
            prop_assert!(near(low, 1.0 / other_high) && near(high, 1.0 / other_low));
            prop_assert!((a.p_above(1.1) - b.p_below(1.0 / 1.1)).abs() < 1e-9);
            prop_assert_eq!(a.equivalent(0.1, 0.05), b.equivalent(0.1, 0.05));
        }
    }

    /// The ratio does not depend on the unit; scaling one condition scales it.
    #[test]
    fn the_unit_does_not_matter((with, without) in both(), p in percentile(), k in 1e-3f64..1e3) {
        let a = PairedRatio::of(&with, &without, p);
        let same = PairedRatio::of(&scaled(&with, k), &scaled(&without, k), p);
        let longer = PairedRatio::of(&scaled(&with, k), &without, p);
        prop_assert_eq!(a.is_some(), same.is_some());
        if let (Some(a), Some(same), Some(longer)) = (a, same, longer) {
            prop_assert!(near(a.value(), same.value()));
            prop_assert!((a.p_above(1.1) - same.p_above(1.1)).abs() < 1e-6);
            prop_assert!(near(a.value() * k, longer.value()));
        }
    }

    /// Pairs may come in any order, if the percentile of every run is known. Twenty observations have a tail.
    #[test]
    fn the_order_of_replications_does_not_matter((with, without) in both(), p in percentile(), turn in 0usize..12) {
        let complete = |of: &[Vec<Observation>]| -> Vec<Vec<Observation>> {
            let one = |o: &Observation| Observation::complete(o.value);
            let four_times = |run: &Vec<Observation>| run.repeat(4).iter().map(one).collect();
            of.iter().map(four_times).collect()
        };
        let (mut over, mut under) = (complete(&with), complete(&without));
        let a = PairedRatio::of(&over, &under, p).expect("all is complete");
        let turn = turn % over.len();
        over.rotate_left(turn);
        under.rotate_left(turn);
        over.reverse();
        under.reverse();
        let b = PairedRatio::of(&over, &under, p).expect("all is complete");
        prop_assert!(near(a.value(), b.value()));
        let (x, y) = (a.interval(0.95), b.interval(0.95));
        prop_assert!((x.0 - y.0).abs() <= 1e-6 * x.0.abs() && (x.1 == y.1 || (x.1 / y.1 - 1.0).abs() < 1e-6));
    }

    /// A slower request never makes the application look faster.
    #[test]
    fn what_takes_longer_is_no_less((with, without) in both(), p in percentile(), own in 0usize..12, which in 0usize..30, k in 1.0f64..50.0) {
        let complete: Vec<Vec<Observation>> = with
            .iter()
            .map(|run| run.iter().map(|o| Observation::complete(o.value)).collect())
            .collect();
        let mut slower = complete.clone();
        let own = own % slower.len();
        let which = which % slower[own].len();
        slower[own][which].value *= k;
        if let (Some(a), Some(b)) = (PairedRatio::of(&complete, &without, p), PairedRatio::of(&slower, &without, p)) {
            prop_assert!(b.value() >= a.value() * (1.0 - 1e-12));
        }
    }

    /// A higher level gives a wider interval around the value. p-values are probabilities and monotonic in the
    /// threshold.
    #[test]
    fn intervals_nest_and_p_values_are_probabilities((with, without) in both(), p in percentile(), threshold in 0.2f64..5.0) {
        if let Some(r) = PairedRatio::of(&with, &without, p) {
            let (narrow, wide) = (r.interval(0.8), r.interval(0.99));
            prop_assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1);
            for x in [r.p_above(threshold), r.p_below(threshold)] {
                prop_assert!((0.0..=1.0).contains(&x), "{x}");
            }
            prop_assert!(r.p_above(threshold * 1.5) >= r.p_above(threshold));
            prop_assert!(r.p_below(threshold * 1.5) <= r.p_below(threshold));
        }
    }

    /// Corrected p-values are not smaller, at most one, in the same order, and equal to those of the closed test.
    #[test]
    fn hommels_correction_is_the_closure(ps in prop::collection::vec(0.0f64..1.0, 0..8)) {
        let adjusted = hommel(&ps);
        prop_assert_eq!(adjusted.len(), ps.len());
        for (i, (raw, own)) in ps.iter().zip(&adjusted).enumerate() {
            prop_assert!(own >= raw && *own <= 1.0);
            for (j, other) in ps.iter().enumerate() {
                prop_assert!(raw > other || adjusted[i] <= adjusted[j]);
            }
            // Every set that contains it, by Simes' test.
            let hardest = (0u32..1 << ps.len())
                .filter(|set| set & (1 << i) != 0)
                .map(|set| {
                    let mut members: Vec<f64> = (0..ps.len())
                        .filter(|k| set & (1 << k) != 0)
                        .map(|k| ps[k])
                        .collect();
                    members.sort_by(f64::total_cmp);
                    let size = members.len() as f64;
                    let ranked = members.iter().zip(1..);
                    ranked.map(|(p, rank)| p * size / f64::from(rank)).fold(1.0, f64::min)
                })
                .fold(0.0, f64::max);
            prop_assert!((own - hardest).abs() < 1e-12, "{own} {hardest} of {ps:?}");
        }
    }
}
