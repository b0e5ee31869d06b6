//! What the judged measures cover, and what they cannot.

use super::open::{judged, program};
use super::*;
use swell_base::{Code, Direction, Warning};
use swell_experiment::measure::{Better, Measure};
use swell_experiment::observe::{MeasureSample, PartTotals};
use swell_experiment::store::RunWarning;

/// Ten runs of a client that waits for each answer of 20 ms, up to 500 ms where `slow` says so.
fn closed_loop(slow: impl Fn(&str, u32) -> bool) -> Results {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        let mut at = 2.0;
        run.observed.requests.clear();
        for index in 0.. {
            let took = match slow(&run.cell.background, index) {
                true => 0.4,
                false => 0.02 + 0.001 * f64::from(index % 7),
            };
            if at + took > 22.0 {
                break;
            }
            run.observed.requests.push(Request {
                client: 0,
                index,
                start: at,
                connected: at,
                first_byte: at + took,
                last_byte: at + took,
                observed_until: at + took,
                bytes: 1000,
                retransmissions: 0,
                outcome: Outcome::Done,
            });
            at += took;
        }
    }
    results
}

fn warn(results: &mut Results, code: Code, background: &str) {
    let cells = results.runs.iter().map(|r| r.cell.clone());
    results.manifest.run_warnings = cells
        .filter(|c| c.background == background)
        .map(|cell| RunWarning {
            cell,
            warning: Warning::note(code.clone(), "x"),
        })
        .collect();
}

/// One request in 25 is slow, which no judged percentile covers. A program makes fewer requests, as `web` does.
#[test]
fn a_program_that_waits_for_answers_is_judged_by_its_rate() {
    let mut results = closed_loop(|b, i| b == "learnt" && i % 25 == 0);
    program(&mut results, &[]);
    let v = judged(&results);
    let of = |name: &str| v.backgrounds.iter().find(|b| b.background == name).unwrap();
    assert_eq!(of("learnt").matters, Some(Answer::Yes), "{}", full_text(&v));
    assert_eq!(of("poisson").matters, Some(Answer::No), "{}", full_text(&v));
    let rates = of("learnt")
        .judged
        .iter()
        .filter(|j| j.measure == "request rate");
    assert_eq!(rates.count(), 1);
}

/// Five requests of 3.98 s fit into a run of 20 s, and four of 4.02 s: that is 1 % more, and not a fifth.
#[test]
fn whole_numbers_of_requests_are_not_their_rate() {
    let mut results = results(6, |_, _| 1.0);
    for run in &mut results.runs {
        let took = if run.cell.background == "none" {
            3.98
        } else {
            4.02
        };
        let one = |index: u32| {
            let start = 2.0 + took * f64::from(index);
            let end = (start + took).min(22.0);
            Request {
                client: 0,
                index,
                start,
                connected: start,
                first_byte: end,
                last_byte: end,
                observed_until: end,
                bytes: 1,
                retransmissions: 0,
                outcome: if start + took <= 22.0 {
                    Outcome::Done
                } else {
                    Outcome::Unfinished
                },
            }
        };
        run.observed.requests = (0..5).map(one).collect();
    }
    let v = judged(&results);
    assert_ne!(v.matters, Answer::Yes, "{}", full_text(&v));
}

/// Twenty clients that think for most of the time wait for nothing: how many requests they make is chance.
#[test]
fn clients_that_think_are_not_judged_by_their_rate() {
    let mut results = results(10, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        let mut rng =
            swell_base::Stream::indexed(9, &run.cell.background, run.cell.replication.into());
        let keep = 60 + rng.below(40) as usize;
        run.observed.requests.truncate(keep);
    }
    let v = judged(&results);
    let mut all = v.backgrounds.iter().flat_map(|b| &b.judged);
    assert!(
        all.all(|j| j.measure != "request rate"),
        "{}",
        full_text(&v)
    );
    assert_eq!(v.matters, Answer::No, "{}", full_text(&v));
}

/// If the client fails only beside traffic, what it did until then says little.
#[test]
fn a_client_that_fails_only_beside_traffic_leaves_the_answer_open() {
    let mut results = closed_loop(|_, _| false);
    program(&mut results, &[]);
    assert_eq!(judged(&results).matters, Answer::No);
    warn(&mut results, Code::ClientFailed, "poisson");
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "the client ended with an error in 10 of 10 runs with it, and in 0 of 10 without";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// Pipelined requests that merge into one beside traffic are not slow requests.
#[test]
fn requests_that_are_not_the_same_are_not_compared() {
    let mut results = closed_loop(|_, _| false);
    program(&mut results, &[]);
    for run in &mut results.runs {
        if run.cell.background == "poisson" {
            let all = &mut run.observed.requests;
            let until = all.last().unwrap().last_byte;
            all.truncate(1);
            (all[0].last_byte, all[0].observed_until, all[0].bytes) = (until, until, 500_000);
        }
    }
    warn(&mut results, Code::MergedRequests, "poisson");
    let v = judged(&results);
    let poisson = &v.backgrounds[1];
    assert_eq!(poisson.matters, Some(Answer::Unclear), "{}", full_text(&v));
    assert!(
        poisson.withheld[0].contains("timed as one"),
        "{:?}",
        poisson.withheld
    );
}

/// Gives every run a hundred values of `rtt`.
fn values(results: &mut Results, value: impl Fn(&str, u32, u32) -> f64) {
    for run in &mut results.runs {
        let of = |i: u32| MeasureSample {
            measure: "rtt".into(),
            value: value(&run.cell.background, run.cell.replication, i),
            at: f64::from(i),
        };
        run.observed.measures = (0..100).map(of).collect();
    }
}

/// A single zero among a thousand values does not hide their tail.
#[test]
fn a_zero_does_not_hide_the_tail() {
    let mut results = results(10, |_, _| 1.0);
    program(&mut results, &["rtt"]);
    let tail = |b: &str, i: u32| if b == "learnt" && i >= 88 { 30.0 } else { 20.0 };
    for zero in [false, true] {
        values(&mut results, |b, r, i| match zero && r == 0 && i == 0 {
            true => 0.0,
            false => tail(b, i),
        });
        let v = judged(&results);
        assert_eq!(v.matters, Answer::Yes, "{zero}: {}", full_text(&v));
    }
    // Where half of the values are zero, the mean is judged, and nobody may say that nothing differs.
    values(&mut results, |_, _, i| f64::from(i % 2));
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear);
    assert!(full_text(&v).contains("want a floor"), "{}", full_text(&v));
}

#[test]
fn what_never_happened_is_told() {
    let measure = Measure::sampled("stall time", "s", Better::Lower, 1.0);
    let mut results = results(10, |_, _| 1.0);
    program(&mut results, &["stall time"]);
    for run in &mut results.runs {
        run.observed.measures = vec![MeasureSample {
            measure: measure.name.to_string(),
            value: 0.0,
            at: 0.0,
        }];
    }
    let v = judged(&results);
    let note = v.doubts.iter().find(|d| d.code == Code::NeverSeen).unwrap();
    // 0.741^10 = 0.05.
    assert!(
        note.message.contains("fewer than 26 % of the runs"),
        "{note:?}"
    );
}

/// Every download of the largest of many sizes finishes alone, and none beside traffic. The mean time counts them as if
/// they had ended with the run.
#[test]
fn a_mean_of_unfinished_times_is_not_taken_for_the_time() {
    let long = |r: &Request| r.index % 40 == 39;
    let mut results = results(10, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        for r in &mut run.observed.requests {
            (r.start, r.last_byte) = (2.0, if long(r) { 20.0 } else { 2.1 });
            r.observed_until = r.last_byte;
            if long(r) && run.cell.background != "none" {
                (r.outcome, r.observed_until) = (Outcome::Unfinished, 20.5);
            }
        }
    }
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    assert!(
        full_text(&v).contains("mean times are lower bounds"),
        "{}",
        full_text(&v)
    );
}

/// Of fewer than twenty requests, no percentile but the median is known, wherever it is asked for.
#[test]
fn few_requests_have_no_tail() {
    let mut results = results(5, |_, _| 1.0);
    for run in &mut results.runs {
        run.observed.requests.truncate(3);
    }
    let v = judged(&results);
    for q in &v.backgrounds[1].quantiles {
        let known = q.p == 0.5;
        assert_eq!(
            (q.seconds.is_some(), q.slowdown.is_some()),
            (known, known),
            "{q:?}"
        );
    }
    // However narrow the interval of the median is, sweeps go on until there is a tail.
    assert_eq!(v.sureness.widest, Some(f64::INFINITY));
}

/// With fewer requests in a jam, percentiles of their times may fall: that is not what the sentence begins with.
#[test]
fn what_is_worse_comes_first() {
    let slow = |b: &str, i: u32| match b {
        "learnt" => i.is_multiple_of(50),
        _ => i.is_multiple_of(18),
    };
    let mut results = closed_loop(slow);
    for run in &mut results.runs {
        if run.cell.background == "learnt" {
            for r in &mut run.observed.requests {
                // Requests are rarer, for example because the server is not reached for a second.
                r.start *= 2.0;
                r.last_byte += r.start / 2.0;
                r.observed_until = r.last_byte;
            }
        }
    }
    let v = judged(&results);
    let first = &v.paragraphs[0].text;
    assert!(first.contains("request rate is 0."), "{first}");
}

/// A mix whose parts share one path is as wanted only if each part is.
#[test]
fn a_silent_part_of_a_mix_is_told() {
    let mut results = results(5, |_, _| 1.0);
    let text = experiment(5).replace(
        "kind = \"learnt\"\nmodel = \"tiny.json\"\nrate = \"8Mbit\"",
        "kind = \"mix\"\nof = [\"poisson\", \"bursts\"]\n[[background]]\nname = \"bursts\"\nkind = \"cbr\"\nrate = \"1Mbit\"",
    );
    let text = text.replace("match:learnt", "8Mbit");
    results.experiment.background = file::read(&text, "x").unwrap().background;
    for run in &mut results.runs {
        let part = |part: &str, bytes| PartTotals {
            part: part.into(),
            role: "background".into(),
            link: "bottleneck".into(),
            direction: Direction::Down,
            duration: 20.0,
            arrived: bytes,
            departed: bytes,
            ..PartTotals::default()
        };
        run.observed.parts = vec![part("poisson", 20_000_000), part("bursts", 0)];
        run.observed.links[0].arrived = [0, 20_000_000];
    }
    let v = judged(&results);
    let mix = v
        .backgrounds
        .iter()
        .find(|b| b.background == "learnt")
        .unwrap();
    assert_eq!(mix.matters, Some(Answer::Unclear), "{}", full_text(&v));
    let said = "bursts sent nothing after the warm-up";
    assert!(mix.withheld.iter().any(|w| w == said), "{:?}", mix.withheld);
    assert_eq!(mix.requested_bps[1], Some(9e6));
    // Beside other parts it has another draw than alone, so it may carry more.
    let alone = swell_experiment::store::Measured {
        down_bps: 4e6,
        down_bps_each: vec![4e6],
        ..swell_experiment::store::Measured::default()
    };
    results.manifest.measured.insert("poisson".into(), alone);
    for run in &mut results.runs {
        let bursts = run.observed.parts.last_mut().unwrap();
        (bursts.arrived, bursts.departed) = (2_500_000, 2_500_000);
    }
    let beside = judged(&results);
    let of = |name: &str| {
        beside
            .backgrounds
            .iter()
            .find(|b| b.background == name)
            .unwrap()
    };
    assert_eq!(of("learnt").withheld, [""; 0]);
    assert!(of("poisson").withheld[0].contains("was to carry"));
}
