//! What neither percentiles nor means tell: how many there are, and what did not end.

use super::open::{judged, program};
use super::*;
use swell_experiment::observe::MeasureSample;

/// Twenty small requests, then a download that the end of the run cuts off. Traffic halves what it receives.
#[test]
fn a_download_that_never_ends_is_judged_by_what_it_carries() {
    let cut_off = |bytes: fn(&str) -> u64| {
        let mut results = results(10, |_, _| 1.0);
        program(&mut results, &[]);
        for run in &mut results.runs {
            let requests = &mut run.observed.requests;
            requests.truncate(21);
            for r in requests.iter_mut() {
                (r.start, r.last_byte) = (2.0, 2.05 + f64::from(r.index) / 1e3);
                r.observed_until = r.last_byte;
            }
            let bulk = &mut requests[20];
            (bulk.outcome, bulk.observed_until) = (Outcome::Unfinished, 22.0);
            bulk.bytes = bytes(&run.cell.background);
        }
        judged(&results)
    };
    let halved = cut_off(|b| if b == "none" { 10_000_000 } else { 5_000_000 });
    assert_eq!(halved.matters, Answer::Yes, "{}", full_text(&halved));
    assert!(
        full_text(&halved).contains("goodput"),
        "{}",
        full_text(&halved)
    );
    // As much in the same time is no difference.
    let equal = cut_off(|_| 10_000_000);
    assert_eq!(equal.matters, Answer::No, "{}", full_text(&equal));
}

/// A download that ends without traffic only, long or of less than half of the time, and cut off later or earlier than it
/// took alone. The other requests do not differ.
#[test]
fn a_download_that_ends_under_one_condition_leaves_the_answer_open() {
    for (took, cut) in [(19.0, 19.5), (5.0, 4.5), (5.0, 5.5)] {
        let mut results = results(10, |_, _| 1.0);
        for run in &mut results.runs {
            let bulk = &mut run.observed.requests[99];
            (bulk.start, bulk.last_byte) = (2.0, 2.0 + took);
            bulk.observed_until = bulk.last_byte;
            if run.cell.background == "learnt" {
                (bulk.outcome, bulk.observed_until) = (Outcome::Unfinished, 2.0 + cut);
            }
        }
        assert_left_open(&results);
    }
}

/// Of a few long requests that do not differ, the end of each run cuts one off.
#[test]
fn long_requests_of_which_most_end_leave_nothing_open() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        for (i, took) in [(33, 4.0), (66, 4.0), (99, 3.0)] {
            let long = &mut run.observed.requests[i];
            (long.start, long.last_byte) = (2.0, 2.0 + took);
            long.observed_until = long.last_byte;
        }
        run.observed.requests[99].outcome = Outcome::Unfinished;
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::No, "{}", full_text(&v));
}

fn assert_left_open(results: &Results) {
    let v = judged(results);
    let said = "the longest requests did not finish";
    let learnt = v.backgrounds.iter().find(|b| b.background == "learnt");
    let learnt = learnt.unwrap();
    assert_eq!(learnt.matters, Some(Answer::Unclear), "{}", full_text(&v));
    assert!(learnt.open.iter().any(|r| r.contains(said)), "{learnt:?}");
}

/// Of objects of two sizes, one never ends.
#[test]
fn a_size_that_never_ends_leaves_the_answer_open() {
    let mut results = results(10, |_, _| 1.0);
    let text = experiment(10).replace("\"100kB\"", "[\"100kB\", \"1GB\"]");
    results.experiment = file::read(&text, "x").unwrap();
    for r in results
        .runs
        .iter_mut()
        .flat_map(|r| &mut r.observed.requests)
    {
        if r.index == 99 {
            // So short that it takes little of the time.
            (r.start, r.outcome, r.observed_until) = (21.9, Outcome::Unfinished, 22.0);
        } else if r.index % 2 == 1 {
            r.index -= 1;
        }
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "the median of time of 1GB is beyond what was watched";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// A player reports each stall: two alone and ten beside traffic, all of the same length.
#[test]
fn events_are_counted() {
    let stalls = |number: fn(&str) -> u32| {
        let mut results = results(10, |_, _| 1.0);
        program(&mut results, &["stall"]);
        for run in &mut results.runs {
            run.observed.measures = (0..number(&run.cell.background))
                .map(|i| MeasureSample {
                    measure: "stall".into(),
                    value: 0.4,
                    at: 2.0 + f64::from(i),
                })
                .collect();
        }
        judged(&results)
    };
    assert_eq!(stalls(|_| 2).matters, Answer::No);
    for (few, many) in [(2, 10), (20, 100)] {
        let v = match few {
            2 => stalls(|b| if b == "none" { 2 } else { 10 }),
            _ => stalls(|b| if b == "none" { 20 } else { 100 }),
        };
        assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
        let said = format!("stall has {many}.0 values in a run with it and {few}.0 without");
        assert!(full_text(&v).contains(&said), "{}", full_text(&v));
    }
}

/// An application that gets nothing beside traffic.
#[test]
fn starvation_is_a_difference() {
    let mut results = results(5, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        run.observed.requests.truncate(1);
        let r = &mut run.observed.requests[0];
        (r.start, r.outcome) = (2.0, Outcome::Unfinished);
        (r.last_byte, r.observed_until) = (22.0, 22.0);
        r.bytes = if run.cell.background == "none" {
            25_000_000
        } else {
            0
        };
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    assert!(full_text(&v).contains("goodput"), "{}", full_text(&v));
}

/// The late run of a background is no replication of it.
#[test]
fn late_runs_are_not_counted_as_replications() {
    let mut results = results(20, |_, _| 1.0);
    for run in results.runs.iter().filter(|r| r.cell.replication < 12) {
        let warning = swell_experiment::store::RunWarning {
            cell: run.cell.clone(),
            warning: Warning::warning(Code::EmulatorLate, "late"),
        };
        results.manifest.run_warnings.push(warning);
    }
    let v = judged(&results);
    assert_eq!(v.sureness.replications, 8);
    assert!(v.backgrounds.iter().all(|b| b.replications == 8));
}
