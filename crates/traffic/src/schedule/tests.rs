#![expect(
    clippy::shadow_unrelated,
    reason = "one name for what is measured again after each change"
)]

use super::*;
use crate::Session;
use crate::testing::{any_model, model, session};
use proptest::prelude::*;
use swell_base::Rate;

fn hundred() -> Model {
    // Sessions are concentrated at the start and at the end: two of three are in the first and last
    // tenths.
    let sessions = (0..120u64)
        .map(|i| {
            let ms = match i {
                0..40 => i * 20,
                40..80 => 1_000 + (i - 40) * 200,
                _ => 9_000 + (i - 80) * 20,
            };
            session((i % 2) as u32, Dur::from_millis(ms), 1_000 + i * i)
        })
        .collect();
    model(Dur::from_secs(10), sessions)
}

fn draw(m: &Model, k: f64, phase: Option<Dur>, seed: u64, horizon: Dur) -> Schedule {
    let knobs = Knobs {
        sessions: k,
        phase,
        ..Knobs::default()
    };
    Schedule::draw(m, &knobs, seed, horizon, &Network::default()).unwrap()
}

fn counts(m: &Model, s: &Schedule) -> Vec<u32> {
    let mut counts = vec![0; m.sessions.len()];
    s.starts
        .iter()
        .for_each(|s| counts[s.session as usize] += 1);
    counts
}

#[test]
fn a_whole_cycle_holds_each_session_k_times() {
    let m = hundred();
    for k in [1.0, 2.0, 3.0] {
        let s = draw(&m, k, Some(Dur::ZERO), 5, m.duration);
        assert!(counts(&m, &s).iter().all(|&c| f64::from(c) == k));
    }
    for k in [0.0, 0.3, 1.5, 2.71] {
        for seed in 0..20 {
            let s = draw(&m, k, Some(Dur::ZERO), seed, m.duration);
            let counts = counts(&m, &s);
            assert!(
                counts
                    .iter()
                    .all(|&c| f64::from(c) == k.floor() || f64::from(c) == k.floor() + 1.0)
            );
            // Within one of the expectation for each of the two classes.
            let total: u32 = counts.iter().sum();
            assert!((f64::from(total) - 120.0 * k).abs() <= 2.0, "{k}: {total}");
        }
    }
}

#[test]
fn fractions_choose_every_session_equally_often() {
    let m = hundred();
    let mut sum = vec![0u32; 120];
    let n = 2_000;
    for seed in 0..n {
        let s = draw(&m, 0.3, Some(Dur::ZERO), seed, m.duration);
        for (a, b) in sum.iter_mut().zip(counts(&m, &s)) {
            *a += b;
        }
    }
    // Binomial(2000, 0.3) has a standard deviation of 20.5; five of them.
    for (i, &c) in sum.iter().enumerate() {
        assert!((f64::from(c) - 600.0).abs() < 103.0, "session {i}: {c}");
    }
}

#[test]
fn a_schedule_is_a_function_of_its_arguments() {
    let m = hundred();
    let a = draw(&m, 1.5, None, 1, Dur::from_secs(35));
    assert_eq!(a, draw(&m, 1.5, None, 1, Dur::from_secs(35)));
    assert_ne!(a.starts, draw(&m, 1.5, None, 2, Dur::from_secs(35)).starts);
    // A longer run begins like a shorter one.
    let longer = draw(&m, 1.5, None, 1, Dur::from_secs(70));
    assert_eq!(longer.starts[..a.starts.len()], a.starts);
    // Each pass has another phase.
    let s = draw(&m, 1.0, None, 1, Dur::from_secs(20));
    let order = |from: usize| s.starts[from..from + 120].iter().map(|s| s.session);
    assert!(!order(0).eq(order(120)));
}

#[test]
fn the_phase_shifts_the_model_under_the_run() {
    let m = hundred();
    let s = draw(&m, 1.0, Some(Dur::from_secs(5)), 3, Dur::from_secs(10));
    assert_eq!(s.phase, Dur::from_secs(5));
    // The recorded starts, from the middle on.
    let recorded = |s: &Start| {
        let at = (s.at.as_nanos() + 5_000_000_000) % 10_000_000_000;
        at == m.sessions[s.session as usize].start.as_nanos()
    };
    assert!(s.starts.iter().all(recorded));
    let early = s
        .starts
        .iter()
        .filter(|s| s.at < Time::from_nanos(5_000_000_000))
        .count();
    assert_eq!(early, 60);
    assert_eq!(s.starts.len(), 120);
    assert!(s.starts.is_sorted());
    let knobs = Knobs {
        phase: Some(Dur::from_secs(10)),
        ..Knobs::default()
    };
    assert!(matches!(
        Schedule::draw(&m, &knobs, 1, m.duration, &Network::default()),
        Err(DrawError::Phase { .. })
    ));
}

#[test]
fn copies_are_numbered() {
    let m = hundred();
    let s = draw(&m, 2.0, Some(Dur::ZERO), 3, m.duration);
    for i in 0..120 {
        let copies: Vec<u32> = s
            .starts
            .iter()
            .filter(|s| s.session == i)
            .map(|s| s.copy)
            .collect();
        assert_eq!(copies.iter().sum::<u32>(), 1);
        assert_eq!(copies.len(), 2);
    }
}

#[test]
fn weights_multiply_sessions() {
    let mut m = hundred();
    m.sessions.iter_mut().for_each(|s| s.weight = 4.0);
    let s = draw(&m, 0.5, Some(Dur::ZERO), 3, m.duration);
    assert!(counts(&m, &s).iter().all(|&c| c == 2));
}

#[test]
fn impossible_draws_are_refused() {
    let m = hundred();
    let with = |sessions: f64| Knobs {
        sessions,
        ..Knobs::default()
    };
    for k in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Schedule::draw(&m, &with(k), 1, m.duration, &Network::default()),
            Err(DrawError::Factor(_))
        ));
    }
    assert!(matches!(
        Schedule::draw(&m, &with(1e9), 1, m.duration, &Network::default()),
        Err(DrawError::TooMany(_))
    ));
    assert!(matches!(
        Schedule::draw(&m, &with(1.0), 1, Dur::MAX, &Network::default()),
        Err(DrawError::TooMany(_))
    ));
    // Few sessions would be played, but the model is too short for the run.
    let short = Schedule::draw(&m, &with(1e-12), 1, Dur::MAX, &Network::default());
    assert!(
        matches!(short, Err(DrawError::TooShort { sessions: 120, .. })),
        "{short:?}"
    );
    // A single packet repeats every microsecond.
    let mut lone = hundred();
    lone.sessions.truncate(1);
    lone.sessions[0].start = Dur::ZERO;
    lone.duration = Dur::from_micros(1);
    let minute = Dur::from_secs(60);
    let again = Schedule::draw(&lone, &with(1.0), 1, minute, &Network::default());
    assert!(
        matches!(again, Err(DrawError::TooShort { sessions: 1, .. })),
        "{again:?}"
    );
    assert_eq!(lone.rates(), [0.0; 2]);
    let empty = model(Dur::ZERO, Vec::new());
    let s = Schedule::draw(
        &empty,
        &with(1.0),
        1,
        Dur::from_secs(1),
        &Network::default(),
    )
    .unwrap();
    assert!(s.starts.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_sound_model_can_be_drawn(mut m in any_model(), seed: u64, k in 0.0..3.0f64, cycles in 0.0..3.0f64) {
        m.sessions.iter_mut().for_each(|s| s.weight = s.weight.min(3.0));
        // A recording is about as long as its sessions.
        let ends = m.sessions.iter().map(|s| Groups::of(&m, s, &Network::default()).end);
        m.duration = m.duration.max(ends.max().unwrap_or(Dur::ZERO) / 2);
        let horizon = m.duration.scale(cycles);
        let knobs = Knobs { sessions: k, ..Knobs::default() };
        let s = Schedule::draw(&m, &knobs, seed, horizon, &Network::default()).unwrap();
        prop_assert!(s.starts.is_sorted());
        prop_assert!(s.starts.iter().all(|s| (s.session as usize) < m.sessions.len()));
        prop_assert!(s.starts.iter().all(|s| s.at.as_nanos() < horizon.as_nanos()));
        prop_assert!(s.entered.iter().all(|e| (e.session as usize) < m.sessions.len()));
    }
}

#[test]
fn phases_are_uniform_over_seeds_and_copies() {
    let m = hundred();
    let mut phases: Vec<f64> = Vec::new();
    for seed in 0..500 {
        let s = draw(&m, 4.0, None, seed, m.duration);
        // The phase of each copy.
        for copy in 0..4 {
            let start = s.starts.iter().find(|s| s.copy == copy).unwrap();
            let recorded = m.sessions[start.session as usize].start.as_nanos();
            let length = m.duration.as_nanos();
            let phase = (recorded + length - start.at.as_nanos() % length) % length;
            phases.push(phase as f64 / length as f64);
        }
    }
    phases.sort_by(f64::total_cmp);
    let n = phases.len() as f64;
    let distance = (phases.iter().enumerate())
        .map(|(i, &p)| (p - i as f64 / n).abs().max((p - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    // Kolmogorov: 1.95 / sqrt(n) is exceeded once in a thousand.
    assert!(distance < 1.95 / n.sqrt(), "{distance}");
}

/// Sessions that last long relative to the recording: 20 ms to 9 s of 10 s.
fn lasting() -> Model {
    let mut m = hundred();
    m.client_paths[0].down = Some(swell_base::Rate::from_bps(8_000_000));
    for (i, s) in m.sessions.iter_mut().enumerate() {
        if let crate::Exchange::Sequential(turns) = &mut s.groups[0].connections[0].exchange {
            turns[0].response = 75_000 * i as u64;
        }
    }
    m
}

#[test]
fn one_turn_of_the_circle_holds_every_byte_once() {
    let network = Network::default();
    // Sessions of one transfer, and sessions with transfers that continue beside a second group.
    let mut beside = lasting();
    for s in &mut beside.sessions {
        let mut second = s.groups[0].clone();
        second.think = Dur::from_millis(300);
        s.groups[0].connections[0].overlap = Some([1, 0]);
        s.groups.push(second);
    }
    for (m, k, seed) in [
        (lasting(), 1.0, 1),
        (lasting(), 1.0, 2),
        (lasting(), 3.0, 3),
        (beside, 2.0, 4),
    ] {
        let once = m.rates().map(|bps| bps / 8.0 * 10.0);
        let s = draw(&m, k, None, seed, m.duration);
        let played = s.volume(&m, &network, Dur::ZERO, m.duration);
        for d in 0..2 {
            let share = played[d] / (k * once[d]);
            assert!((share - 1.0).abs() < 1e-9, "{k} {seed} {d}: {share}");
        }
    }
}

#[test]
fn the_beginning_carries_what_the_end_does() {
    let m = lasting();
    let network = Network::default();
    let (mut first, mut last, seeds) = (0.0, 0.0, 400);
    for seed in 0..seeds {
        let s = draw(&m, 1.0, None, seed, Dur::from_secs(30));
        let secs = Dur::from_secs;
        first += s.volume(&m, &network, Dur::ZERO, secs(1))[1];
        last += s.volume(&m, &network, secs(29), secs(30))[1];
    }
    let mean = m.rates()[1] / 8.0 * f64::from(seeds as u32);
    assert!((first / mean - 1.0).abs() < 0.05, "{}", first / mean);
    assert!((last / mean - 1.0).abs() < 0.05, "{}", last / mean);
}

/// A user who is there for most of the recording comes once at a time, even where a slow network makes it last for several
/// recordings.
#[test]
fn lasting_sessions_follow_each_other() {
    let think = |mut s: Session, seconds: u64| {
        let mut second = s.groups[0].clone();
        second.think = Dur::from_secs(seconds);
        s.groups.push(second);
        s
    };
    let sessions = vec![
        think(session(0, Dur::ZERO, 50_000), 9),
        think(session(0, Dur::ZERO, 50_000), 1),
    ];
    let m = model(Dur::from_secs(10), sessions);
    let slow = Network {
        rates: [Some(Rate::from_bps(8_000)); 2],
        ..Network::default()
    };
    for seed in 0..20 {
        let knobs = Knobs::default();
        let s = Schedule::draw(&m, &knobs, seed, Dur::from_secs(40), &slow).unwrap();
        assert!(s.lasting[0].is_some() && s.lasting[1].is_none());
        let starts = |which: u32| s.starts.iter().filter(|s| s.session == which).count();
        assert!(starts(0) <= 1 && starts(1) == 4);
        // Over 50 s each, of which the short ones have several at once.
        let entered = |which: u32| s.entered.iter().filter(|e| e.session == which).count();
        assert!(entered(0) <= 1);
        assert!(entered(1) > 3);
        // A slow network makes them come less often, and others not.
        let [_, down] = s.rates(&m);
        assert!(down < 0.7 * m.rates()[1], "{down} {}", m.rates()[1]);
    }
}

/// Longer think times make no user of a short visit one who is always there.
#[test]
fn lasting_is_decided_by_the_recording() {
    let mut visit = session(0, Dur::ZERO, 50_000);
    let mut second = visit.groups[0].clone();
    second.think = Dur::from_secs(2);
    visit.groups.push(second);
    let m = model(Dur::from_secs(10), vec![visit]);
    let knobs = Knobs {
        think: 4.0,
        ..Knobs::default()
    };
    let varied = m.varied(&knobs, 1);
    let s = Schedule::draw(&varied, &knobs, 1, m.duration, &Network::default()).unwrap();
    assert_eq!(s.lasting, [None]);
    let s = Schedule::draw(
        &varied,
        &Knobs::default(),
        1,
        m.duration,
        &Network::default(),
    )
    .unwrap();
    assert!(s.lasting[0].is_some());
}
