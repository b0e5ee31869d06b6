use super::*;
use crate::testing::{model, session};
use swell_base::Dur;

/// 3000 sessions with a Pareto tail of exponent 1.2.
fn heavy() -> Model {
    let mut rng = Stream::new(3, "heavy");
    let sessions = (0..3_000)
        .map(|i| {
            let size = 500.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.2);
            session(0, Dur::from_millis(i), size as u64)
        })
        .collect();
    model(Dur::from_secs(10), sessions)
}

fn bytes(m: &Model) -> f64 {
    m.sessions
        .iter()
        .map(|s| s.weight * s.bytes()[1] as f64)
        .sum()
}

#[test]
fn what_fits_is_left_alone() {
    let m = heavy();
    assert_eq!(m.thinned(6_000, 1), m);
}

#[test]
fn counts_and_bytes_are_unbiased_and_the_largest_stay() {
    let m = heavy();
    let largest = m.sessions.iter().map(|s| s.bytes()[1]).max();
    let (mut count, mut sum) = (0.0, 0.0);
    let n = 200;
    for seed in 0..n {
        let t = m.thinned(1_000, seed);
        assert!(t.sessions.iter().map(Session::items).sum::<usize>() <= 1_000);
        assert!(t.check().is_ok());
        assert_eq!(t.sessions.iter().map(|s| s.bytes()[1]).max(), largest);
        count += t.sessions.iter().map(|s| s.weight).sum::<f64>() / n as f64;
        sum += bytes(&t) / n as f64;
    }
    // 500 of 3000 are kept; the relative error of one estimate is below 1/sqrt(500 - 1) = 4.5 %
    // for sums of size (Szegedy 2006) and about as large for counts; of the mean of 200, 0.3 %.
    assert!((count / 3_000.0 - 1.0).abs() < 0.012, "{count}");
    assert!((sum / bytes(&m) - 1.0).abs() < 0.012, "{sum} {}", bytes(&m));
}
