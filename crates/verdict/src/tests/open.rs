//! Reasons against the answer "does not matter".

use super::answer::DECISIVE;
use super::*;
use swell_base::Direction;
use swell_experiment::observe::{Bin, MeasureSample};
use swell_experiment::store::Measured;

/// The same results for a real program that reports the measures `names`; those with a star are primary.
pub(super) fn program(results: &mut Results, names: &[&str]) {
    let reported: String = names
        .iter()
        .map(|n| {
            let (name, primary) = (n.trim_end_matches('*'), n.ends_with('*'));
            format!("[[foreground.reported]]\nname = \"{name}\"\nbetter = \"lower\"\nprimary = {primary}\n")
        })
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

pub(super) fn judged(results: &Results) -> ForegroundVerdict {
    Verdict::of(results).foregrounds.remove(0)
}

/// Gives every run a value of p99; `value` computes it from background and replication.
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
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "is not settled: p99 was reported in 9 of 10 runs";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    // A difference of another measure remains valid.
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
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said = "p99 is not above zero in 8 of 10 runs";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
    // Events that never happened are not mentioned beside others.
    report(&mut results, |_, _| Some(0.0));
    let text = full_text(&judged(&results));
    assert!(text.contains("median"), "{text}");
    assert!(
        !text.contains("p99 is 1") && !text.contains("p99 ×"),
        "{text}"
    );
    // Errors that never happen do not differ.
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
                // One in eight is slow, so the median stays.
                value: 20.0 * if i % 8 == 0 { slow } else { 1.0 },
                at: f64::from(i),
            })
            .collect();
    }
    let v = judged(&results);
    let of = |name: &str| v.backgrounds.iter().find(|b| b.background == name).unwrap();
    assert_eq!(of("poisson").matters, Some(Answer::No), "{}", full_text(&v));
    assert_eq!(of("learnt").matters, Some(Answer::Yes), "{}", full_text(&v));
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
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let failures = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "failures");
    let failures = failures.unwrap();
    assert!(failures.worse() && (failures.ratio.value - 5.0).abs() < 1e-9);
    assert!(full_text(&v).contains("failures"), "{}", full_text(&v));
}

/// A download that stops after three seconds on its own clock: it takes about as long, but receives half.
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
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let goodput = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "goodput");
    assert!((goodput.unwrap().ratio.value - 0.5).abs() < 1e-9);
}

#[test]
fn a_load_that_is_missed_on_its_way_up_is_no_basis_for_an_answer() {
    let mut results = results(10, |_, _| 1.0);
    let swell_experiment::file::Part::Poisson(poisson) = &mut results.experiment.background[1].0
    else {
        panic!("the second is Poisson")
    };
    poisson.rate = "4Mbit".parse().unwrap();
    poisson.rate_up = Some("4Mbit".parse().unwrap());
    for run in &mut results.runs {
        let offered = |direction: Direction, bits: u64| LinkTotals {
            link: "bottleneck".into(),
            direction,
            duration: 20.0,
            rate: 20e6,
            arrived: [0, bits / 8 * 20],
            departed: [0, bits / 8 * 20],
            ..LinkTotals::default()
        };
        run.observed.links = vec![
            offered(Direction::Up, 4_000_000),
            offered(Direction::Down, 4_000_000),
        ];
    }
    let answer = |of: &Results| judged(of).backgrounds[1].matters;
    assert_eq!(answer(&results), Some(Answer::No));
    for run in &mut results.runs {
        run.observed.links[0].arrived[1] /= 2;
    }
    let v = judged(&results);
    assert_eq!(v.backgrounds[1].matters, Some(Answer::Unclear));
    let said = "4.00 Mbit/s of poisson were requested up and 2.00 offered";
    assert!(full_text(&v).contains(said), "{}", full_text(&v));
}

/// 16 Mbit/s alone, 8 Mbit/s beside the application, on a link of 20 Mbit/s.
#[test]
fn traffic_that_gives_way_though_there_is_room_shows_no_absence_of_harm() {
    let learnt = |of: &Results| {
        let v = judged(of);
        (v.backgrounds[2].matters, full_text(&v))
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
    // The same holds if the draws of these runs offered less than requested, and were carried completely.
    let mut drawn = gives_way(1.0);
    if let Some(measured) = drawn.manifest.measured.get_mut("learnt") {
        (measured.target_bps, measured.expected_bps) = (Some(16e6), Some(16e6));
        (measured.down_bps, measured.down_bps_each) = (8e6, vec![8e6]);
    }
    let (unclear, because) = learnt(&drawn);
    assert_eq!(unclear, Some(Answer::Unclear), "{because}");
    assert!(because.contains(said), "{because}");
    // If half the load already makes requests slower, that is an answer.
    assert_eq!(learnt(&gives_way(2.0)).0, Some(Answer::Yes));
    // If the application used the rest of the link, this is normal for responsive traffic, so the answer stands and the
    // text mentions the load.
    for run in &mut same.runs {
        run.observed.links[0].departed[0] = 28_000_000;
    }
    let (then, words) = learnt(&same);
    assert_eq!(then, Some(Answer::No), "{words}");
    assert!(
        words.contains("learnt (8.0 of 16.0 Mbit/s down) does not matter"),
        "{words}"
    );
}

/// With traffic the tail is worse, and the median is better, but not significantly.
#[test]
fn the_sentence_tells_median_and_tail_where_they_go_different_ways() {
    let v = verdict(10, |kind, rank| match kind {
        "learnt" if rank > 0.8 => 3.0,
        "learnt" => 0.85,
        _ => 1.0,
    });
    assert_eq!(v.matters, Answer::Yes);
    let said = full_text(&v);
    let (_, with) = said.split_once("with learnt").unwrap();
    assert!(with.contains("the median request takes 0.85"), "{with}");
    assert!(with.contains("the p95 takes"), "{with}");
}

/// Pings and database queries are mostly headers, so their bit rate is not what matters.
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
    let of_requests = |n: &String| n == "time" || n == "request rate";
    assert!(names(&results).iter().all(of_requests));
    // A telephone call is a stream, although its packets are small.
    for run in &mut results.runs {
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0]) = (500_000, 500_000);
    }
    assert!(names(&results).iter().any(|n| n == "goodput"));
}

/// A call of constant rate has the same rate when every packet is late, so an equal rate is no evidence. This does not
/// apply to a stream that fills the link, nor to one that reports its own measures.
#[test]
fn a_stream_of_its_own_pace_is_not_judged_by_what_it_carries_alone() {
    let made = |bytes: u64, names: &[&str]| {
        let mut results = results(6, |_, _| 1.0);
        program(&mut results, names);
        for run in &mut results.runs {
            for r in &mut run.observed.requests {
                (r.outcome, r.last_byte) = (Outcome::Done, r.start + 1.0);
                r.observed_until = r.last_byte;
            }
            let link = &mut run.observed.links[0];
            (link.rate, link.arrived[0], link.departed[0]) = (20e6, bytes, bytes);
        }
        report(&mut results, |_, _| Some(20.0));
        judged(&results)
    };
    let paced = made(1_000_000, &[]);
    assert_eq!(paced.matters, Answer::Unclear);
    assert!(
        paced.sentence.contains("a pace of its own"),
        "{}",
        paced.sentence
    );
    assert_eq!(made(45_000_000, &[]).matters, Answer::No);
    assert_eq!(made(1_000_000, &["p99"]).matters, Answer::No);
}

/// A client that waits for each answer: where nothing delays it, all exchanges take the same time, and that is an answer.
#[test]
fn exchanges_of_constant_time_are_judged_by_their_time() {
    let mut results = results(6, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        for r in &mut run.observed.requests {
            (r.first_byte, r.last_byte) = (r.start + 0.08, r.start + 0.0801);
            (r.observed_until, r.outcome, r.bytes) = (r.last_byte, Outcome::Done, 1000);
        }
        let link = &mut run.observed.links[0];
        (link.rate, link.arrived[0], link.departed[0]) = (20e6, 120_000, 120_000);
    }
    // An upload of fixed time, at a pace of its own, whose only answer comes at the end.
    let mut paced = results.clone();
    for run in &mut paced.runs {
        run.observed.requests.truncate(1);
        let link = &mut run.observed.links[0];
        (link.arrived[0], link.departed[0]) = (2_000_000, 2_000_000);
        link.arrived_packets[0] = 1500;
    }
    let upload = judged(&paced);
    assert_eq!(upload.matters, Answer::Unclear, "{}", upload.sentence);
    assert!(
        upload.sentence.contains("a pace of its own"),
        "{}",
        upload.sentence
    );
    let v = judged(&results);
    assert_eq!(v.matters, Answer::No, "{}", v.sentence);
    let measures: Vec<&str> = v.backgrounds[1]
        .judged
        .iter()
        .map(|j| &*j.measure)
        .collect();
    assert!(measures.iter().all(|m| *m == "time"), "{measures:?}");
}

/// Nine measures that do not differ, and one that does. Its difference is significant alone, but not among ten.
#[test]
fn a_primary_measure_does_not_pay_for_the_others() {
    let names: Vec<String> = (0..10).map(|i| format!("m{i}")).collect();
    let made = |primary: bool| {
        let mut results = results(5, |_, _| 1.0);
        let mut each: Vec<&str> = names.iter().map(String::as_str).collect();
        if primary {
            each[3] = "m3*";
        }
        program(&mut results, &each);
        for run in &mut results.runs {
            run.observed.requests.clear();
            run.observed.links[0].arrived_packets[0] = 1;
            let slower = run.cell.background != "none";
            run.observed.measures = (0..10)
                .map(|i| {
                    let noise =
                        0.12 * ((f64::from(run.cell.replication) * 2.4 + f64::from(i)).sin());
                    let factor = if slower && i == 3 {
                        1.27 * noise.exp()
                    } else {
                        1.0
                    };
                    MeasureSample {
                        measure: format!("m{i}"),
                        value: 10.0 * factor,
                        at: 1.0,
                    }
                })
                .collect();
        }
        judged(&results)
    };
    assert_eq!(
        made(false).matters,
        Answer::Unclear,
        "{}",
        full_text(&made(false))
    );
    let v = made(true);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    // Equivalence still needs all of them.
    assert_eq!(v.backgrounds[1].judged.len(), 10);
}

/// The bytes of an upload belong to no response, but are sent while a request waits for one. A call sends at other
/// times.
#[test]
fn an_upload_is_in_time_where_its_answer_is() {
    let made = |at: f64| {
        let mut results = results(6, |_, _| 1.0);
        program(&mut results, &[]);
        for run in &mut results.runs {
            let link = &mut run.observed.links[0];
            (link.rate, link.arrived[0], link.departed[0]) = (20e6, 2_000_000, 2_000_000);
            link.arrived_packets[0] = 1500;
            let request = run.observed.requests[0].start;
            run.observed.bins = [request + at, request + at + 0.01]
                .map(|time| Bin {
                    time,
                    direction: Direction::Down,
                    departed: [1_000_000, 0],
                    ..Bin::default()
                })
                .to_vec();
        }
        judged(&results)
    };
    assert_eq!(made(0.0).matters, Answer::No);
    let call = made(0.12);
    assert_eq!(call.matters, Answer::Unclear);
    assert!(
        call.sentence.contains("a pace of its own"),
        "{}",
        call.sentence
    );
}

/// A copy of many files: thirty small requests, and one that takes most of the time. No percentile covers it.
#[test]
fn one_long_request_among_many_short_ones_counts() {
    let made = |factor: f64| {
        let mut results = results(6, |_, _| 1.0);
        program(&mut results, &[]);
        for run in &mut results.runs {
            let slower = run.cell.background != "none";
            run.observed.requests.truncate(31);
            let last = &mut run.observed.requests[30];
            last.last_byte = last.start + if slower { 6.0 * factor } else { 6.0 };
            last.observed_until = last.last_byte;
        }
        judged(&results)
    };
    let v = made(2.0);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    assert!(v.sentence.contains("mean time is 1."), "{}", v.sentence);
    assert_eq!(made(1.0).matters, Answer::No);
}

/// Results of a foreground of `kind`, with the same name as the others.
pub(super) fn built_in(kind: &str, replications: u32) -> Results {
    let mut results = results(replications, |_, _| 1.0);
    let text = format!(
        "name = \"x\"\n[network]\nrate = \"20Mbit\"\n[[foreground]]\nname = \"web\"\nkind = \"{kind}\"\n\
         [[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nduration = \"80s\"\n"
    );
    results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
    results
}

/// A stream with uneven packet arrivals that its viewer does not notice.
#[test]
fn no_answer_rests_on_what_is_shown_beside() {
    let mut results = built_in("stream", 5);
    let mut set = |late: f64| {
        for run in &mut results.runs {
            run.observed.requests.clear();
            let beside = run.cell.background != "none";
            let sample = |measure: &str, value: f64| MeasureSample {
                measure: measure.into(),
                value,
                at: 1.0,
            };
            let mut rows = vec![sample("late frame share", if beside { late } else { 0.0 })];
            for nothing in ["lost frame share", "stall time", "stall count", "start-up"] {
                rows.push(sample(nothing, 0.0));
            }
            for i in 0..50 {
                let value = if beside { 0.02 } else { 0.0 };
                rows.push(sample("jitter", value + f64::from(i) * 1e-6));
            }
            run.observed.measures = rows;
        }
        judged(&results)
    };
    let v = set(0.0);
    assert_eq!(v.matters, Answer::No, "{}", full_text(&v));
    let b = &v.backgrounds[1];
    let jitter = |j: &&Judgement| j.measure == "jitter";
    assert!(!b.judged.iter().any(|j| jitter(&j)));
    // The measure is still shown, with a ratio of values plus a millisecond.
    let shown: Vec<&Judgement> = b.compared().filter(jitter).collect();
    // Its mean, because it has a floor, and percentiles.
    assert_eq!(shown.len(), 1 + DECISIVE.len());
    assert!(shown.iter().all(|j| j.differs() && j.ratio.value > 15.0));
    assert!(!full_text(&v).contains("jitter"));
    let few = |d: &swell_base::Warning| d.code == Code::FewSamples;
    assert!(!v.doubts.iter().any(few), "{:?}", v.doubts);
    assert_eq!(set(0.05).matters, Answer::Yes);
}

/// A page in which only the first byte is slower.
#[test]
fn first_bytes_are_judged_where_pages_have_them() {
    let mut results = built_in("page", 5);
    let set = |of: &mut Results, factor: f64| {
        for run in &mut of.runs {
            let slower = if run.cell.background == "none" {
                1.0
            } else {
                factor
            };
            for r in &mut run.observed.requests {
                r.first_byte = r.start + 0.01 * slower;
            }
        }
    };
    set(&mut results, 1.0);
    assert_eq!(judged(&results).matters, Answer::No);
    set(&mut results, 2.0);
    let v = judged(&results);
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let first = |j: &&Judgement| j.measure == "first byte";
    let mut ratios = v.backgrounds[1].judged.iter().filter(first);
    assert!(ratios.clone().count() > 1 && ratios.all(|j| (j.ratio.value - 2.0).abs() < 1e-9));
    // Requests without an answer are slower than all others.
    for run in &mut results.runs {
        if run.cell.background != "none" {
            for r in run.observed.requests.iter_mut().skip(60) {
                (r.first_byte, r.outcome) = (f64::NAN, Outcome::Failed);
            }
        }
    }
    assert_eq!(judged(&results).matters, Answer::Yes);
}

/// A model that lacks harm of its trace does not show that there is none; what it does harm remains true.
#[test]
fn a_model_that_lacks_traffic_of_its_trace_leaves_no_open() {
    let answers = |code: Code, slower: f64| {
        let mut results = results(10, |kind, _| if kind == "learnt" { slower } else { 1.0 });
        let facts = swell_experiment::store::ModelFacts {
            name: "polls".into(),
            warnings: vec![swell_base::Warning::warning(code, "text")],
            ..Default::default()
        };
        results.manifest.models.insert("learnt".into(), facts);
        results.experiment.run.suite = Some("learnt".into());
        let v = judged(&results);
        let own = v.backgrounds.iter().find(|b| b.background == "learnt");
        let cheapest = v.suite.as_ref().unwrap().cheapest.clone();
        (own.unwrap().matters, cheapest, full_text(&v))
    };
    let (matters, cheapest, _) = answers(Code::ShortTrace, 1.0);
    assert_eq!(
        (matters, cheapest.as_deref()),
        (Some(Answer::No), Some("none"))
    );
    for (code, _) in crate::validity::LACKING {
        let (unclear, nothing, text) = answers(code.clone(), 1.0);
        assert_eq!((unclear, nothing), (Some(Answer::Unclear), None), "{text}");
        assert!(
            text.contains("the model polls lacks") && text.contains(code.as_str()),
            "{text}"
        );
        assert_eq!(answers(code, 2.0).0, Some(Answer::Yes));
    }
    // Larger bursts than the trace's do harm of their own.
    for slower in [1.0, 2.0] {
        let (unclear, nothing, text) = answers(Code::TurnsMerged, slower);
        assert_eq!((unclear, nothing), (Some(Answer::Unclear), None), "{text}");
        assert!(text.contains("the model polls has larger bursts"), "{text}");
    }
}
