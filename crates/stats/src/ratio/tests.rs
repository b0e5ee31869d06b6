use swell_base::Stream;

use super::*;

fn complete(values: &[f64]) -> Vec<Observation> {
    values.iter().copied().map(Observation::complete).collect()
}

#[test]
fn the_interval_is_students_of_the_logarithms() {
    // Ratios e^0, e^0.1, e^0.2: mean 0.1, sd 0.1, t(0.975, 2) = 4.302653.
    let with: Vec<f64> = [0.0, 0.1, 0.2].map(f64::exp).to_vec();
    let r = PairedRatio::of_values(&with, &[1.0; 3]).unwrap();
    let half = 4.302_652_73 * 0.1 / 3f64.sqrt();
    let (low, high) = r.interval(0.95);
    assert!((r.value() / 0.1f64.exp() - 1.0).abs() < 1e-12);
    assert!((low.ln() - (0.1 - half)).abs() < 1e-7);
    assert!((high.ln() - (0.1 + half)).abs() < 1e-7);
    // The p-value at an end of the 95 % interval is 2.5 %.
    assert!((r.p_above(low) - 0.025).abs() < 1e-7);
    assert!((r.p_below(high) - 0.025).abs() < 1e-7);
    // (4.3027 * 0.1 / ln 1.1)^2 = 20.4.
    assert_eq!(r.replications_for(0.1), Some(21));
}

/// Two pairs of equal values prove nothing: of values that are either 4 or 5, one in eight gives them by chance.
#[test]
fn two_equal_ratios_are_no_proof() {
    let of = |n: usize| PairedRatio::of_values(&vec![5.0; n], &vec![4.0; n]).unwrap();
    assert_eq!(of(2).p_above(1.1), 1.0 / 16.0);
    assert_eq!(of(3).p_above(1.1), 1.0 / 64.0);
    assert_eq!(of(3).p_above(1.3), 1.0);
}

/// Times are differences of instants, so equal ones differ by rounding.
#[test]
fn ratios_that_differ_by_rounding_are_equal_ones() {
    let start = [1.1, 2.3, 3.7];
    let took = start.map(|s| (s + 5.0) - s);
    assert!(took.iter().any(|t| *t != took[0]));
    let r = PairedRatio::of_values(&took, &[4.0; 3]).unwrap();
    assert_eq!(r.p_above(1.1), 1.0 / 64.0);
}

/// A run of one request has no tail of its own: the percentiles of groups of runs are compared.
#[test]
fn a_tail_is_that_of_enough_requests() {
    let alone = vec![complete(&[1.0]); 100];
    let slow = |i: usize| if i.is_multiple_of(13) { 2.0 } else { 1.0 };
    let beside: Vec<_> = (0..100).map(|i| complete(&[slow(i)])).collect();
    let of = |p: f64| PairedRatio::of(&beside, &alone, p).unwrap();
    // Eight of a hundred take twice the time.
    assert!(of(0.5).equivalent(0.1, 0.05));
    assert!(!of(0.95).equivalent(0.1, 0.05), "{:?}", of(0.95));
    assert!(of(0.95).value() > 1.4);
    let two = PairedRatio::independent(&beside, &alone, 0.95).unwrap();
    assert!(two.value() > 1.4);
    // Twenty requests of a run have a tail.
    let many: Vec<_> = (0..5).map(|_| complete(&[1.0; 20])).collect();
    assert_eq!(PairedRatio::of(&many, &many, 0.95).unwrap().groups, 5);
}

#[test]
fn few_replications_never_show_that_nothing_differs() {
    for n in 1..MIN_REPLICATIONS {
        let r = PairedRatio::of_values(&vec![1.0; n], &vec![1.0; n]).unwrap();
        assert!(!r.equivalent(0.1, 0.05), "{n}");
    }
    let enough = PairedRatio::of_values(&[1.0; 5], &[1.0; 5]).unwrap();
    assert!(enough.equivalent(0.1, 0.05));
    assert_eq!(enough.p_above(1.1), 1.0);
    // A faster application is not equivalent either.
    let faster = PairedRatio::of_values(&[0.62; 5], &[1.0; 5]).unwrap();
    assert!(!faster.equivalent(0.1, 0.05));
    assert!(faster.p_below(1.0 / 1.1) < 0.001);
}

#[test]
fn one_replication_tells_a_value_and_no_interval() {
    let r = PairedRatio::of_values(&[2.0], &[1.0]).unwrap();
    assert_eq!(r.value(), 2.0);
    assert_eq!(r.interval(0.95), (0.0, f64::INFINITY));
    assert_eq!((r.p_above(1.0), r.p_below(9.0)), (1.0, 1.0));
    assert_eq!(r.replications_for(0.1), None);
}

#[test]
fn bounds_above_the_line_bound_the_ratio_from_below() {
    let stuck = vec![Observation::complete(2.0), Observation::at_least(8.0)];
    let with = vec![stuck; 4];
    let without = vec![complete(&[1.0, 1.0]); 4];
    let r = PairedRatio::of(&with, &without, 0.95).unwrap();
    assert_eq!(r.known(), Known::AtLeast);
    assert_eq!(r.interval(0.95).1, f64::INFINITY);
    assert!(r.interval(0.95).0 > 7.0, "{r:?}");
    assert_eq!((r.p_above(1.1), r.p_below(100.0)), (0.25f64.powi(4), 1.0));
    let turned = PairedRatio::of(&without, &with, 0.95).unwrap();
    assert_eq!(turned.known(), Known::AtMost);
    assert_eq!(turned.interval(0.95).0, 0.0);
    assert_eq!(
        (turned.p_below(1.0), turned.p_above(0.01)),
        (0.25f64.powi(4), 1.0)
    );
    assert!(!r.equivalent(100.0, 0.05) && !turned.equivalent(100.0, 0.05));
    // Bound over bound gives no information.
    assert_eq!(PairedRatio::of(&with, &with, 0.95), None);
}

#[test]
fn replications_are_joined_until_every_group_tells_its_quantile() {
    // In each single run p90 is censored; two merged runs determine it.
    let whole = complete(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let mut cut = whole.clone();
    cut[1] = Observation::complete(1.0);
    cut[4] = Observation::at_least(4.5);
    let with: Vec<_> = (0..10)
        .map(|k| {
            if k % 2 == 0 {
                cut.clone()
            } else {
                whole.clone()
            }
        })
        .collect();
    let without = vec![whole; 10];
    let r = PairedRatio::of(&with, &without, 0.8).unwrap();
    assert_eq!(
        (r.known(), r.groups, r.replications()),
        (Known::Value, 5, 10)
    );
}

#[test]
fn what_cannot_be_paired_has_no_ratio() {
    let one = complete(&[1.0]);
    assert_eq!(PairedRatio::of(&[], &[], 0.5), None);
    assert_eq!(PairedRatio::of(std::slice::from_ref(&one), &[], 0.5), None);
    assert_eq!(PairedRatio::of(&[Vec::new()], &[one], 0.5), None);
    assert_eq!(PairedRatio::of_values(&[1.0, 0.0], &[1.0, 1.0]), None);
    assert_eq!(PairedRatio::of_values(&[f64::INFINITY], &[1.0]), None);
}

#[test]
fn hommel_corrects_as_the_closure_of_simes_tests_does() {
    // R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "hommel") and two more.
    let near = |ps: &[f64], want: &[f64]| {
        for (got, expected) in hommel(ps).iter().zip(want) {
            assert!((got - expected).abs() < 1e-12, "{ps:?}: {:?}", hommel(ps));
        }
    };
    near(&[0.01, 0.02, 0.03, 0.04, 0.05], &[0.05; 5]);
    near(&[0.01, 0.04, 0.03], &[0.03, 0.04, 0.04]);
    near(&[0.6, 0.5], &[0.6, 0.6]);
    assert!(hommel(&[]).is_empty());
}

/// Standard normal.
fn normal(s: &mut Stream) -> f64 {
    let (u, v) = (1.0 - s.uniform(), s.uniform());
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(std::f64::consts::TAU * v)
}

/// Requests of one run: dependent, lognormal with a Pareto tail, the last one censored; median e^`run`.
fn requests(s: &mut Stream, run: f64) -> Vec<Observation> {
    let mut level = normal(s);
    let mut all: Vec<Observation> = (0..60)
        .map(|_| {
            level = 0.6 * level + 0.8 * normal(s);
            let tail = if s.uniform() < 0.05 {
                libm::pow(1.0 - s.uniform(), -1.0 / 1.5)
            } else {
                1.0
            };
            Observation::complete(libm::exp(run + 0.5 * level) * tail)
        })
        .collect();
    if let Some(last) = all.last_mut() {
        *last = Observation::at_least(last.value * s.uniform());
    }
    all
}

/// Coverage and error rates on synthetic data like the product's. Both conditions have the same distribution up to a
/// factor, so the mean of the log ratios of their quantiles is exactly that of the factor.
#[test]
fn intervals_cover_and_decisions_err_as_seldom_as_they_claim() {
    let mut s = Stream::new(7, "coverage");
    for (n, worlds) in [(5, 500), (10, 300)] {
        for p in [0.5, 0.9, 0.95] {
            let (mut covered, mut matters, mut equal) = (0, 0, 0);
            for _ in 0..worlds {
                let mut runs = |mean: f64| -> Vec<Vec<Observation>> {
                    (0..n)
                        .map(|_| {
                            let run = mean + 0.25 * normal(&mut s);
                            requests(&mut s, run)
                        })
                        .collect()
                };
                let (with, without) = (runs(libm::log(1.3)), runs(0.0));
                let r = PairedRatio::of(&with, &without, p).unwrap();
                let (low, high) = r.interval(0.95);
                covered += usize::from(low <= 1.3 && 1.3 <= high);
                equal += usize::from(r.equivalent(0.1, 0.05));
                let edge = PairedRatio::of(&runs(libm::log(1.1)), &without, p).unwrap();
                matters += usize::from(edge.p_above(1.1) <= 0.05);
            }
            // 500 data sets: a standard deviation of 1 %.
            let share = |k: usize| k as f64 / worlds as f64;
            assert!(share(covered) >= 0.93, "n {n} p {p}: {}", share(covered));
            assert!(share(equal) <= 0.05, "n {n} p {p}: {}", share(equal));
            assert!(share(matters) <= 0.08, "n {n} p {p}: {}", share(matters));
        }
    }
}

#[test]
fn independent_samples_are_compared_as_by_welch() {
    // SciPy 1.17: ttest_ind of the logarithms, equal_var=False.
    let (with, without) = ([1.2, 1.5, 0.9, 2.0, 1.1, 1.7], [0.8, 1.0, 0.7, 0.95]);
    let r = PairedRatio::independent_values(&with, &without).unwrap();
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    near(r.value(), 1.580_956_284_839_106_6);
    near(r.interval(0.95).0, 1.128_055_240_272_974_4);
    near(r.interval(0.95).1, 2.215_691_825_488_478);
    near(r.p_above(1.0), 0.014_129_793_048_747_766 / 2.0);
    near(r.p_above(1.1), 0.019_135_268_537_550_32);
    // The same as medians of runs with one observation each, and the inverse with the conditions swapped.
    let runs = |values: &[f64]| -> Vec<_> { values.iter().map(|&x| complete(&[x])).collect() };
    let (over, under) = (runs(&with), runs(&without));
    assert_eq!(PairedRatio::independent(&over, &under, 0.5), Some(r));
    let turned = PairedRatio::independent(&under, &over, 0.5).unwrap();
    near(turned.value(), 1.0 / r.value());
    near(turned.interval(0.95).0, 1.0 / r.interval(0.95).1);
    // An empty sample, a single replication, and values without variation.
    assert_eq!(PairedRatio::independent(&over, &[], 0.5), None);
    let one = PairedRatio::independent_values(&with, &[1.0]).unwrap();
    assert_eq!(one.interval(0.95), (0.0, f64::INFINITY));
    let constant = PairedRatio::independent_values(&[2.0; 5], &[1.0; 9]).unwrap();
    assert!(constant.p_above(1.9) < 0.001 && constant.p_above(2.1) == 1.0);
    assert!(!constant.equivalent(0.1, 0.05) && constant.equivalent(1.1, 0.05));
}

#[test]
fn intervals_of_independent_samples_cover_whatever_their_sizes_and_spreads() {
    let mut s = Stream::new(11, "welch");
    for (n, m, spread) in [(5, 5, 1.0), (5, 12, 3.0), (12, 5, 3.0)] {
        let mut covered = 0_u32;
        for _ in 0..400 {
            let mut runs = |k: usize, mean: f64, sd: f64| -> Vec<Vec<Observation>> {
                let run = |_| {
                    let level = mean + sd * normal(&mut s);
                    requests(&mut s, level)
                };
                (0..k).map(run).collect()
            };
            let (with, without) = (runs(n, libm::log(1.3), 0.1 * spread), runs(m, 0.0, 0.1));
            let r = PairedRatio::independent(&with, &without, 0.9).unwrap();
            let (low, high) = r.interval(0.95);
            covered += u32::from(low <= 1.3 && 1.3 <= high);
        }
        // 400 data sets: a standard deviation of 1.1 %.
        let share = f64::from(covered) / 400.0;
        assert!(share >= 0.92, "{n} and {m}: {share}");
    }
}

#[test]
fn the_p_value_of_equivalence_and_its_intervals_agree() {
    let mut s = Stream::new(4, "equivalence");
    for _ in 0..200 {
        let shift = 0.2 * (s.uniform() - 0.5);
        let with: Vec<f64> = (0..6)
            .map(|_| (shift + 0.1 * (s.uniform() - 0.5)).exp())
            .collect();
        let r = PairedRatio::of_values(&with, &[1.0; 6]).unwrap();
        for alpha in [0.01, 0.05, 0.2] {
            let p = r.p_equivalent(0.1);
            assert_eq!(r.equivalent(0.1, alpha), p <= alpha, "{alpha} {p}");
        }
    }
    let four = PairedRatio::of_values(&[1.0; 4], &[1.0; 4]).unwrap();
    assert_eq!(four.p_equivalent(0.1), 1.0);
}

#[test]
fn so_many_replications_decide_as_were_promised() {
    // Logarithms with mean 0 and standard deviation 0.1: t(0.95, n - 1) * 0.1 / sqrt(n) is 0.1016 for n = 5 and
    // 0.0823 for n = 6; the margin is 0.0953.
    let spread = [-0.1, 0.1, -0.1, 0.1, 0.0].map(|x: f64| x.exp());
    let r = PairedRatio::of_values(&spread, &[1.0; 5]).unwrap();
    assert_eq!(r.replications_to_decide(0.1, 0.05), Some(6));
    // A stricter level, or a value near the margin on either side, needs more.
    let strict = r.replications_to_decide(0.1, 0.005).unwrap();
    assert!(strict > 6, "{strict}");
    let at = |shift: f64| {
        let own: Vec<f64> = spread.iter().map(|x| x * shift.exp()).collect();
        let own = PairedRatio::of_values(&own, &[1.0; 5]).unwrap();
        own.replications_to_decide(0.1, 0.05)
    };
    assert!(at(0.08) > Some(50), "{:?}", at(0.08));
    assert!(at(0.11) > Some(50), "{:?}", at(0.11));
    // On the margin no number is enough; far beyond it, few are.
    assert_eq!(at(1.1f64.ln()), None);
    assert_eq!(at(1.0), Some(MIN_REPLICATIONS));
}

/// Logarithms of mean 0 and sd `s` times the root of 10/9 want (1.645 sd / 0.0953)^2 replications: 7005 and 11 918.
#[test]
fn up_to_ten_thousand_replications_are_promised() {
    let wanted = |s: f64| {
        let values: Vec<f64> = (0..10)
            .map(|i| if i % 2 == 0 { s.exp() } else { (-s).exp() })
            .collect();
        let ratio = PairedRatio::of_values(&values, &[1.0; 10]).unwrap();
        ratio.replications_to_decide(0.1, 0.05)
    };
    let many = wanted(4.6);
    assert!(
        many.is_some_and(|n| (6_900..7_100).contains(&n)),
        "{many:?}"
    );
    assert_eq!(wanted(6.0), None);
}
