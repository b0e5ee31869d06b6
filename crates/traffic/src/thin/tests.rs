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
    assert_eq!(m.thinned(12_000, 1), m);
}

/// A budget of items does not limit the text: sessions of a scan have few items each.
#[test]
fn what_is_dropped_for_the_text_of_a_model_is_stood_for() {
    let m = heavy();
    let whole = m.to_json().len();
    for most in [whole, whole / 2] {
        let mut thinner = Thinner::new(usize::MAX, 1);
        m.sessions.iter().for_each(|s| thinner.push(s.clone()));
        assert!(thinner.fit(most));
        let (sessions, thinning) = thinner.finish();
        assert_eq!(thinning.map(|t| t.kept), Some(sessions.len() as u64));
        let kept = Model {
            sessions,
            ..m.clone()
        };
        let text = kept.to_json().len();
        assert!(most / 2 < text && text <= most, "{text} of {most}");
        assert!((bytes(&kept) / bytes(&m) - 1.0).abs() < 1e-6);
    }
    let mut thinner = Thinner::new(usize::MAX, 1);
    m.sessions.iter().for_each(|s| thinner.push(s.clone()));
    assert!(!thinner.fit(2 * whole));
}

#[test]
fn counts_and_bytes_are_met_and_the_largest_stay() {
    let m = heavy();
    let largest = m.sessions.iter().map(|s| s.bytes()[1]).max();
    let over = |of: &Model, size: u64| -> f64 {
        let large = of.sessions.iter().filter(|s| s.bytes()[1] > size);
        large.map(|s| s.weight).sum()
    };
    let n = 100;
    let mut tail = [0.0; 3];
    let mut cost_of = [0.0; 2];
    for seed in 0..n {
        let t = m.thinned(2_000, seed);
        assert!(t.sessions.iter().map(Session::items).sum::<usize>() <= 2_000);
        assert!(t.check().is_ok());
        assert_eq!(t.sessions.iter().map(|s| s.bytes()[1]).max(), largest);
        let count = t.sessions.iter().map(|s| s.weight).sum::<f64>();
        assert!((count / 3_000.0 - 1.0).abs() < 1e-6, "{count}");
        assert!((bytes(&t) / bytes(&m) - 1.0).abs() < 1e-6);
        let cost = t.provenance.thinning.unwrap();
        assert_eq!((cost.kept, cost.seen), (t.sessions.len() as u64, 3_000));
        cost_of[0] += cost.w1_connections / n as f64;
        cost_of[1] += cost.w1_bytes / n as f64;
        for (sum, size) in tail.iter_mut().zip([1_000, 10_000, 100_000]) {
            *sum += over(&t, size) / n as f64;
        }
    }
    // A sixth is kept, of sizes over ten octaves.
    assert!(cost_of[0] < 0.1 && cost_of[1] < 0.1, "{cost_of:?}");
    // On average over the samples, the number of sessions of each size is right.
    for (mean, size) in tail.into_iter().zip([1_000, 10_000, 100_000]) {
        let want = over(&m, size);
        assert!(
            (mean / want - 1.0).abs() < 0.03,
            "{mean} for {want} over {size}"
        );
    }
}

#[test]
fn huge_weights_stay_finite() {
    let mut m = heavy();
    for s in &mut m.sessions {
        s.weight = 1e308;
    }
    let t = m.thinned(2_000, 1);
    let most = t.sessions.iter().map(|s| s.weight).fold(0.0, f64::max);
    assert!(
        most <= 1e15 && t.sessions.iter().all(|s| s.weight > 0.0),
        "{most}"
    );
    assert!(t.check().is_ok());
    let cost = t.provenance.thinning.unwrap();
    assert!(cost.w1_bytes.is_finite() && cost.w1_connections.is_finite());
}

/// A class of a hundred small sessions beside one of thousands. Each keeps its load in both directions,
/// and the small class keeps most of its sessions.
#[test]
fn classes_keep_their_own() {
    let mut m = heavy();
    for i in 0..100u64 {
        m.sessions.push(session(1, Dur::from_millis(i), 700 + i));
    }
    m.sessions.sort_by_key(|s| s.start);
    let t = m.thinned(2_000, 5);
    for class in [0, 1] {
        let sum = |of: &Model, d: usize| -> f64 {
            let own = of.sessions.iter().filter(|s| s.class == class);
            own.map(|s| s.weight * s.bytes()[d] as f64).sum()
        };
        for d in [0, 1] {
            assert!((sum(&t, d) / sum(&m, d) - 1.0).abs() < 1e-6);
        }
    }
    // In proportion to the items it would be 16.
    let kept = t.sessions.iter().filter(|s| s.class == 1).count();
    assert!((70..=100).contains(&kept), "{kept}");
}

/// A model file may name any size.
#[test]
fn the_largest_sizes_have_a_bin() {
    let mut m = heavy();
    for s in &mut m.sessions[..2] {
        if let crate::Exchange::Sequential(turns) = &mut s.groups[0].connections[0].exchange {
            (turns[0].request, turns[0].response) = (u64::MAX, u64::MAX);
        }
    }
    let t = m.thinned(2_000, 1);
    assert!(t.check().is_ok());
    assert_eq!(
        t.sessions
            .iter()
            .filter(|s| s.bytes()[1] == u64::MAX)
            .count(),
        2
    );
}
