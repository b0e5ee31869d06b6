use super::*;
use crate::special::normal_quantile;
use crate::survival::Observation;

/// Standard normal by Box and Muller.
fn normal(s: &mut Stream) -> f64 {
    (-2.0 * libm::log(1.0 - s.uniform())).sqrt() * libm::cos(std::f64::consts::TAU * s.uniform())
}

/// `runs` replications of `n` lognormal samples around a run effect with the given log standard deviation.
fn world(s: &mut Stream, runs: usize, n: usize, effect: f64) -> Vec<Vec<f64>> {
    (0..runs)
        .map(|_| {
            let run = effect * normal(s);
            (0..n).map(|_| libm::exp(run + normal(s))).collect()
        })
        .collect()
}

#[test]
fn equal_seeds_give_equal_intervals() {
    let mut s = Stream::new(1, "data");
    let r = Replications::new(&world(&mut s, 8, 50, 0.2));
    let a = Bootstrap::seeded(7).quantiles(&r, &[0.5, 0.9]);
    assert_eq!(a, Bootstrap::seeded(7).quantiles(&r, &[0.5, 0.9]));
    assert_ne!(a, Bootstrap::seeded(8).quantiles(&r, &[0.5, 0.9]));
    for e in a.into_iter().flatten() {
        assert!(e.low < e.value && e.value < e.high && e.replications == 8);
    }
}

fn mean(boot: Bootstrap, groups: &[Vec<f64>]) -> Option<Estimate> {
    let mean = |w: &[&[u32]]| {
        let taken = || groups.iter().zip(w[0]).map(|(g, &k)| (g, f64::from(k)));
        let sum: f64 = taken().map(|(g, k)| k * g.iter().sum::<f64>()).sum();
        let n: f64 = taken().map(|(g, k)| k * g.len() as f64).sum();
        vec![sum / n]
    };
    boot.estimate("mean", &[groups.len()], mean)[0]
}

/// What was drawn before is not computed again, and nothing else changes.
#[test]
fn each_draw_is_computed_once() {
    let mut s = Stream::new(2, "draws");
    let r = Replications::new(&world(&mut s, 4, 10, 0.5));
    let computed = std::cell::Cell::new(0);
    let boot = Bootstrap::seeded(3);
    let found = boot.estimate("quantiles", &[4], |w| {
        computed.set(computed.get() + 1);
        let each = r.weighted_quantiles(w[0], &[0.5]);
        each.into_iter().map(unidentified).collect()
    });
    // 35 draws, and the value itself.
    assert_eq!(computed.get(), 36);
    assert_eq!(found, boot.quantiles(&r, &[0.5]));
}

/// Share of `trials` synthetic data sets in which the interval of the median contains the true median.
fn coverage(runs: usize, trials: u32) -> f64 {
    let mut s = Stream::new(3, "coverage");
    let mut hits = 0u32;
    for seed in 0..u64::from(trials) {
        let r = Replications::new(&world(&mut s, runs, 20, 0.5));
        let boot = Bootstrap {
            resamples: 400,
            ..Bootstrap::seeded(seed)
        };
        let e = boot.quantiles(&r, &[0.5])[0].unwrap();
        // Run effect and noise are symmetric in the logarithm, so the pooled median is one.
        hits += u32::from(e.low <= 1.0 && 1.0 <= e.high);
    }
    f64::from(hits) / f64::from(trials)
}

#[test]
fn expanded_intervals_over_ten_replications_cover_what_they_say() {
    // The long-run shares are 0.931 and 0.905 (module docs). The standard errors of 600 trials are 0.0104 and 0.012;
    // the bounds are three of these.
    let ten = coverage(10, 600);
    assert!((0.900..=0.962).contains(&ten), "{ten}");
    let five = coverage(5, 600);
    assert!((0.869..=0.941).contains(&five), "{five}");
}

#[test]
fn unfinished_requests_open_the_interval_upwards() {
    let mut s = Stream::new(6, "open");
    let groups: Vec<Vec<Observation>> = (0..8)
        .map(|_| {
            (0..20)
                .map(|_| {
                    let t = s.exponential(1.0);
                    Observation {
                        value: t.min(1.5),
                        complete: t <= 1.5,
                    }
                })
                .collect()
        })
        .collect();
    let r = Replications::censored(&groups);
    // Just below the share of finished samples the quantile is identifiable, but its upper end is not.
    let finished = 1.0 - r.censored_samples() as f64 / r.samples() as f64;
    let e = Bootstrap::seeded(1).quantiles(&r, &[0.5, finished - 0.01, 0.95]);
    assert!(e[0].unwrap().high.is_finite());
    let edge = e[1].unwrap();
    assert!(
        edge.low < edge.value && edge.high == f64::INFINITY,
        "{edge:?}"
    );
    assert_eq!(e[2], None);
}

#[test]
fn degenerate_inputs_give_no_estimate_and_no_panic() {
    let boot = Bootstrap::seeded(1);
    assert_eq!(boot.quantiles(&Replications::default(), &[0.5]), vec![None]);
    assert_eq!(mean(boot, &[vec![]]), None);
    let one = mean(boot, &[vec![2.0]]).unwrap();
    assert_eq!((one.low, one.high), (2.0, 2.0));
    let none = Bootstrap {
        resamples: 0,
        ..boot
    };
    assert_eq!(mean(none, &[vec![0.0], vec![0.0]]), None);
}

#[test]
fn expanded_intervals_of_a_mean_have_the_width_of_students() {
    // Resampled means of n values have the standard deviation s/sqrt(n) * sqrt((n-1)/n); Student's half width is t
    // s/sqrt(n).
    for n in [2usize, 5, 10, 50] {
        let m = n as f64;
        let half = -normal_quantile(expanded_tail(0.025, n)) * ((m - 1.0) / m).sqrt();
        let student = t_quantile(0.975, m - 1.0);
        assert!((half / student - 1.0).abs() < 1e-6, "{n}: {half} {student}");
    }
    // Resampling agrees with that. The mean of 300 values is nearly normal, and 4000 resamples give the ends to 2 %.
    let mut s = Stream::new(8, "student");
    let groups: Vec<Vec<f64>> = (0..300).map(|_| vec![normal(&mut s)]).collect();
    let values: Vec<f64> = groups.iter().flatten().copied().collect();
    let boot = Bootstrap {
        resamples: 4000,
        ..Bootstrap::seeded(1)
    };
    let e = mean(boot, &groups).unwrap();
    let student = 2.0 * t_quantile(0.975, 299.0) * crate::sd(&values).unwrap() / 300f64.sqrt();
    assert!(
        ((e.high - e.low) / student - 1.0).abs() < 0.06,
        "{e:?} {student}"
    );
}
