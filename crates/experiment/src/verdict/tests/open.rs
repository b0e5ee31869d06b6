//! What stands against "does not matter".

use super::*;
use crate::observe::{Bin, MeasureSample};
use crate::store::Measured;

/// The same results, of a real program that reports `names`.
fn program(results: &mut Results, names: &[&str]) {
    let reported: String = names
        .iter()
        .map(|n| format!("[[foreground.reported]]\nname = \"{n}\"\nbetter = \"lower\"\n"))
        .collect();
    let text = format!(
        "name = \"x\"\nbackend = \"emulated\"\n[network]\nrate = \"20Mbit\"\n[[foreground]]\nname = \"web\"\n\
         kind = \"program\"\nclient = {{ command = \"true\" }}\n{reported}[[background]]\nname = \"none\"\nkind = \"none\"\n\
         [run]\nduration = \"22s\"\n"
    );
    let file = file::read(&text, "x").unwrap();
    results.experiment.foreground = file.foreground;
    assert!(results.experiment.foreground[0].program().is_some());
}

fn judged(results: &Results) -> ForegroundVerdict {
    Verdict::of(results).foregrounds.remove(0)
}

/// Gives every run a value of p99, as `value` says of its background and replication.
fn report(results: &mut Results, value: impl Fn(&str, u32) -> Option<f64>) {
    for run in &mut results.runs {
        let of = value(&run.cell.background, run.cell.replication);
        run.observed.measures = of
            .map(|x| MeasureSample {
                measure: "p99".into(),
                value: x,
                at: 20.0,
            })
            .into_iter()
            .collect();
    }
}

#[test]
fn a_measure_that_some_runs_lack_leaves_the_answer_open() {
    let mut results = results(5, |_, _| 1.0);
    program(&mut results, &["p99"]);
    report(&mut results, |_, _| Some(20.0));
    assert_eq!(judged(&results).matters, Answer::No);
    report(&mut results, |b, r| (b == "none" || r != 3).then_some(20.0));
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", v.sentence);
    let said = "settles nothing: p99 was reported in 9 of 10 runs";
    assert!(v.sentence.contains(said), "{}", v.sentence);
    // A difference that is shown elsewhere stands.
    for run in results
        .runs
        .iter_mut()
        .filter(|r| r.cell.background != "none")
    {
        for r in &mut run.observed.requests {
            r.last_byte = r.start + 2.0 * (r.last_byte - r.start);
        }
    }
    assert_eq!(judged(&results).matters, Answer::Yes);
}

#[test]
fn a_measure_that_is_nothing_in_some_runs_leaves_the_answer_open() {
    let mut results = results(5, |_, _| 1.0);
    program(&mut results, &["p99"]);
    report(&mut results, |b, r| {
        Some(if b == "none" || r > 1 { 0.0 } else { 7.0 })
    });
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", v.sentence);
    let said = "p99 is not above zero in 8 of 10 runs";
    assert!(v.sentence.contains(said), "{}", v.sentence);
    // Errors that never happen are as rare with traffic as without.
    report(&mut results, |_, _| Some(0.0));
    assert_eq!(judged(&results).matters, Answer::No);
}

#[test]
fn a_program_that_reports_many_values_is_judged_by_their_tail() {
    let mut results = results(5, |_, _| 1.0);
    program(&mut results, &["rtt"]);
    for run in &mut results.runs {
        let slow = if run.cell.background == "learnt" {
            3.0
        } else {
            1.0
        };
        run.observed.measures = (0..40)
            .map(|i| MeasureSample {
                measure: "rtt".into(),
                // One in eight is slow: the median stays.
                value: 20.0 * if i % 8 == 0 { slow } else { 1.0 },
                at: f64::from(i),
            })
            .collect();
    }
    let v = judged(&results);
    let of = |name: &str| v.backgrounds.iter().find(|b| b.background == name).unwrap();
    assert_eq!(of("poisson").matters, Some(Answer::No), "{}", v.sentence);
    assert_eq!(of("learnt").matters, Some(Answer::Yes), "{}", v.sentence);
    let ratio = |p: f64| {
        let found = of("learnt")
            .judged
            .iter()
            .find(|j| j.measure == "rtt" && j.statistic == Statistic::Percentile(p));
        found.unwrap().ratio.value
    };
    assert!((ratio(0.5) - 1.0).abs() < 1e-9 && (ratio(0.95) - 3.0).abs() < 1e-9);
}

#[test]
fn requests_that_fail_matter_though_the_others_take_no_longer() {
    let mut results = results(10, |_, _| 1.0);
    for run in results
        .runs
        .iter_mut()
        .filter(|r| r.cell.background != "none")
    {
        for request in run
            .observed
            .requests
            .iter_mut()
            .filter(|r| r.index % 25 == 7)
        {
            request.outcome = Outcome::Failed;
            request.last_byte = f64::NAN;
        }
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Yes, "{}", v.sentence);
    let failures = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "failures");
    let failures = failures.unwrap();
    assert!(failures.worse() && (failures.ratio.value - 5.0).abs() < 1e-9);
    assert!(v.sentence.contains("failures"), "{}", v.sentence);
}

/// A download that stops after three seconds, by its own clock: it takes as long, about, and gets half.
#[test]
fn a_request_of_fixed_duration_that_gets_less_is_judged_by_what_it_gets() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        let alone = run.cell.background == "none";
        run.observed.requests.truncate(1);
        for request in &mut run.observed.requests {
            let took = 3.0 + 0.05 * f64::from(run.cell.replication % 3);
            request.outcome = Outcome::Done;
            request.last_byte = request.start + took;
            request.observed_until = request.last_byte;
            request.bytes = if alone { 7_000_000 } else { 3_500_000 };
        }
    }
    program(&mut results, &[]);
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Yes, "{}", v.sentence);
    let goodput = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "goodput");
    assert!((goodput.unwrap().ratio.value - 0.5).abs() < 1e-9);
}

#[test]
fn a_load_that_is_missed_on_its_way_up_is_no_basis_for_an_answer() {
    let mut results = results(10, |_, _| 1.0);
    let crate::file::Part::Poisson(poisson) = &mut results.experiment.background[1].0 else {
        panic!("the second is Poisson")
    };
    poisson.rate = "4Mbit".parse().unwrap();
    poisson.rate_up = Some("4Mbit".parse().unwrap());
    for run in &mut results.runs {
        let offered = |direction: u8, bits: u64| LinkTotals {
            direction,
            duration: 20.0,
            rate: 20e6,
            arrived: [0, bits / 8 * 20],
            departed: [0, bits / 8 * 20],
            ..LinkTotals::default()
        };
        run.observed.links = vec![offered(0, 4_000_000), offered(1, 4_000_000)];
    }
    let answer = |of: &Results| judged(of).backgrounds[1].matters;
    assert_eq!(answer(&results), Some(Answer::No));
    for run in &mut results.runs {
        run.observed.links[0].arrived[1] /= 2;
    }
    let v = judged(&results);
    assert_eq!(v.backgrounds[1].matters, Some(Answer::Unclear));
    let said = "4.00 Mbit/s of poisson were requested up and 2.00 offered";
    assert!(v.sentence.contains(said), "{}", v.sentence);
}

/// 16 Mbit/s when alone, 8 beside the application, on a link of 20.
#[test]
fn traffic_that_gives_way_though_there_is_room_shows_no_absence_of_harm() {
    let learnt = |of: &Results| {
        let v = judged(of);
        (v.backgrounds[2].matters, v.sentence)
    };
    let gives_way = |slow: f64| {
        let mut results = results(10, |kind, _| if kind == "none" { 1.0 } else { slow });
        let measured = Measured {
            up_bps: 0.0,
            down_bps: 16e6,
            down_bps_each: vec![16e6],
            target_bps: None,
            sessions: Some(2.0),
            ..Measured::default()
        };
        results.manifest.measured.insert("learnt".into(), measured);
        results
    };
    let mut same = gives_way(1.0);
    let (answer, sentence) = learnt(&same);
    assert_eq!(answer, Some(Answer::Unclear), "{sentence}");
    let said = "learnt carried 8.00 of 16.00 Mbit/s down beside it, though the link had room";
    assert!(sentence.contains(said), "{sentence}");
    // What is slower already with half of it is slower.
    assert_eq!(learnt(&gives_way(2.0)).0, Some(Answer::Yes));
    // Where the application took the rest, that is what responsive traffic does: it is said and counts.
    for run in &mut same.runs {
        run.observed.links[0].departed[0] = 28_000_000;
    }
    let (then, words) = learnt(&same);
    assert_eq!(then, Some(Answer::No), "{words}");
    assert!(
        words.contains("with learnt (8.0 of 16.0 Mbit/s down"),
        "{words}"
    );
}

/// Background bytes in bins of 100 ms: `load` of the share of the run gone.
fn loaded(results: &mut Results, load: impl Fn(f64, &mut swell_base::Stream) -> f64) {
    for run in &mut results.runs {
        let cell = &run.cell;
        let mut rng = swell_base::Stream::indexed(5, &cell.background, cell.replication.into());
        run.observed.bins = (0..220u32)
            .map(|i| Bin {
                time: f64::from(i) * 0.1,
                direction: 1,
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
    assert_eq!(v.matters, Answer::Unclear, "{}", v.sentence);
    assert!(v.sentence.contains("is not steady"), "{}", v.sentence);
}

#[test]
fn a_slowdown_that_grows_during_the_runs_leaves_the_answer_open() {
    let mut results = results(10, |_, _| 1.0);
    // Everything gets faster: that is the application's own warm-up, and no drift of what the traffic does.
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
        v.sentence
    );
    assert_ne!(learnt.matters, Some(Answer::No));
}

/// Stationary loads with tails as heavy as they come: Pareto bursts of shape 1.2.
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
        alarms += v.backgrounds.iter().filter(|b| !b.open.is_empty()).count();
    }
    // 120 tests at 1 %.
    assert!(alarms <= 4, "{alarms}");
}

/// The median is better with traffic, by what is no proof, and the tail is worse.
#[test]
fn the_sentence_tells_median_and_tail_where_they_go_different_ways() {
    let v = verdict(10, |kind, rank| match kind {
        "learnt" if rank > 0.8 => 3.0,
        "learnt" => 0.85,
        _ => 1.0,
    });
    assert_eq!(v.matters, Answer::Yes);
    let (_, with) = v.sentence.split_once("with learnt").unwrap();
    assert!(with.contains("the median request takes 0.85"), "{with}");
    assert!(with.contains("the p95 takes"), "{with}");
}

/// Pings and questions to a database are mostly headers: how many bits they carry is not what they are for.
#[test]
fn small_requests_are_not_judged_by_what_they_carry() {
    let mut results = results(5, |_, _| 1.0);
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0]) = (168_000, 168_000);
        link.arrived_packets[0] = 2000;
    }
    let names = |of: &Results| -> Vec<String> {
        let v = judged(of);
        let all = v.backgrounds.iter().flat_map(|b| &b.judged);
        all.map(|j| j.measure.clone()).collect()
    };
    assert!(names(&results).iter().all(|n| n == "time"));
    // A telephone call is a stream, though its packets are small.
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0]) = (500_000, 500_000);
    }
    assert!(names(&results).iter().any(|n| n == "goodput"));
}
