//! Runs that are not stationary.

use super::open::judged;
use super::*;
use swell_base::Direction;
use swell_experiment::observe::Bin;

/// Background bytes in bins of 100 ms; `load` computes them from the elapsed share of the run.
fn loaded(results: &mut Results, load: impl Fn(f64, &mut swell_base::Stream) -> f64) {
    for run in &mut results.runs {
        let cell = &run.cell;
        let mut rng = swell_base::Stream::indexed(5, &cell.background, cell.replication.into());
        run.observed.bins = (0..220u32)
            .map(|i| Bin {
                link: "bottleneck".into(),
                time: f64::from(i) * 0.1,
                direction: Direction::Down,
                departed: [0, (1e5 * load(f64::from(i) / 220.0, &mut rng)) as u64],
                ..Bin::default()
            })
            .collect();
    }
}

#[test]
fn a_load_that_rises_throughout_the_runs_leaves_the_answer_open() {
    let mut results = results(5, |_, _| 1.0);
    loaded(&mut results, |_, rng| 0.5 + rng.uniform());
    assert_eq!(judged(&results).matters, Answer::No);
    loaded(&mut results, |gone, rng| gone * (0.5 + rng.uniform()));
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    assert!(full_text(&v).contains("is not steady"), "{}", full_text(&v));
}

#[test]
fn a_slowdown_that_grows_during_the_runs_leaves_the_answer_open() {
    let mut results = results(10, |_, _| 1.0);
    // If everything gets faster, this is the application's own warm-up, not a drift of the traffic's effect.
    let scale = |all: &mut Results, only: Option<&str>, factor: fn(u32) -> f64| {
        for run in &mut all.runs {
            if only.is_none_or(|b| b == run.cell.background) {
                for r in &mut run.observed.requests {
                    r.last_byte = r.start + factor(r.index) * (r.last_byte - r.start);
                    r.observed_until = r.last_byte;
                }
            }
        }
    };
    scale(&mut results, None, |i| if i < 50 { 2.0 } else { 1.0 });
    assert_eq!(judged(&results).matters, Answer::No);
    scale(&mut results, Some("learnt"), |i| {
        if i < 50 { 0.85 } else { 1.15 }
    });
    let v = judged(&results);
    let learnt = &v.backgrounds[2];
    assert!(
        learnt.open[0].contains("request times is not steady"),
        "{}",
        full_text(&v)
    );
    assert_ne!(learnt.matters, Some(Answer::No));
}

/// Stationary loads with very heavy tails: Pareto bursts of shape 1.2.
#[test]
fn what_is_bursty_and_stationary_does_not_drift() {
    let mut alarms = 0;
    for world in 0..60u64 {
        let mut results = results(5, |_, _| 1.0);
        for run in &mut results.runs {
            run.observed.requests.truncate(3);
        }
        loaded(&mut results, |_, rng| {
            for _ in 0..world {
                rng.uniform();
            }
            (1.0 - rng.uniform()).powf(-1.0 / 1.2).min(1e3)
        });
        let v = judged(&results);
        let drifts = |b: &&BackgroundVerdict| b.open.iter().any(|o| o.contains("is not steady"));
        alarms += v.backgrounds.iter().filter(drifts).count();
    }
    // 120 tests at 1 %.
    assert!(alarms <= 4, "{alarms}");
}

/// A run that ends 3 ms into its third bin. What was seen of that bin is no fall of the load.
#[test]
fn a_bin_of_which_a_part_was_watched_is_no_drift() {
    let mut results = results(5, |_, _| 1.0);
    loaded(&mut results, |_, rng| 0.9 + 0.2 * rng.uniform());
    for run in &mut results.runs {
        run.observed.bins.retain(|b| (1.95..2.25).contains(&b.time));
        run.observed.bins[2].departed[1] /= 30;
        run.observed.links[0].duration = 0.203;
    }
    let text = full_text(&judged(&results));
    assert!(!text.contains("is not steady"), "{text}");
    // A whole bin is one.
    for run in &mut results.runs {
        run.observed.links[0].duration = 0.3;
    }
    let whole = full_text(&judged(&results));
    assert!(whole.contains("is not steady"), "{whole}");
}
