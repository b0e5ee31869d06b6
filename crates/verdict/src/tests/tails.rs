//! Harm in fewer values than the last percentile that is judged lies beyond.

use super::equal::{delay, packets};
use super::open::judged;
use super::*;
use swell_base::Direction;
use swell_experiment::measure::MeasureSample;

/// A program that reports a hundred values per run of the measure `x` with this floor.
fn reporting(floor: f64, value: impl Fn(&str, u32) -> f64) -> ForegroundVerdict {
    let mut results = results(6, |_, _| 1.0);
    let text = experiment(6).replace(
        "kind = \"web\"\nobject = \"100kB\"",
        &format!(
            "kind = \"program\"\nclient = {{ command = \"true\" }}\n[[foreground.reported]]\nname = \"x\"\n\
             better = \"lower\"\nfloor = {floor:?}"
        ),
    );
    let text = text.replace("network = ", "backend = \"emulated\"\nnetwork = ");
    results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
    for run in &mut results.runs {
        let sample = |i: u32| MeasureSample {
            measure: "x".into(),
            value: value(&run.cell.background, i),
            at: 2.0 + 0.1 * f64::from(i),
        };
        run.observed.measures = (0..100).map(sample).collect();
    }
    judged(&results)
}

fn of_learnt(v: &ForegroundVerdict) -> &BackgroundVerdict {
    v.backgrounds
        .iter()
        .find(|b| b.background == "learnt")
        .unwrap()
}

/// Of talk spurts one in fifty is lost: 2 % of the speech, where 0.1 % matters.
#[test]
fn harm_in_a_few_of_many_values_shows_in_their_mean() {
    let lost = |b: &str, i: u32| f64::from(u8::from(b == "learnt" && i % 50 == 7));
    let v = reporting(0.01, lost);
    let b = of_learnt(&v);
    assert_eq!(b.matters, Some(Answer::Yes), "{}", full_text(&v));
    let mean = |j: &&Judgement| j.measure == "x" && j.statistic == Statistic::Mean;
    let found = b.judged.iter().find(mean).unwrap();
    assert!((found.with.unwrap().value - 0.02).abs() < 1e-9, "{found:?}");
    assert!((found.ratio.value - 3.0).abs() < 1e-9, "{found:?}");
    assert!(full_text(&v).contains("x is 0.0200 against 0"));
    // The same however much of it there is without traffic, if it is less than half of the sum.
    let more = |background: &str, i: u32| 0.05 + lost(background, i);
    let both = reporting(0.01, more);
    assert_eq!(
        of_learnt(&both).matters,
        Some(Answer::Yes),
        "{}",
        full_text(&both)
    );
}

/// Without a floor a mean counts as that of request times does: where no percentile covers most of the sum.
#[test]
fn a_mean_without_a_floor_counts_where_a_few_values_are_most_of_it() {
    let jam = |long: f64| {
        move |b: &str, i: u32| {
            if b == "learnt" && i % 50 == 7 {
                long
            } else {
                1.0
            }
        }
    };
    for (long, answer) in [(200.0, Answer::Yes), (20.0, Answer::No)] {
        let v = reporting(0.0, jam(long));
        let b = of_learnt(&v);
        assert_eq!(b.matters, Some(answer), "{}", full_text(&v));
        // Thresholds may name it in any case.
        let mean = |j: &&Judgement| j.measure == "x" && j.statistic == Statistic::Mean;
        assert!(b.compared().any(|j| mean(&j)));
    }
}

/// Of 192 requests behind each background, one in sixteen takes longer: p90 is judged, and p95 has too few.
#[test]
fn what_is_seen_beyond_the_last_percentile_that_is_judged_is_no_equality() {
    let jammed = |factor: f64| {
        let mut results = results(12, |_, _| 1.0);
        for run in &mut results.runs {
            run.observed.requests.truncate(16);
            for r in &mut run.observed.requests {
                let slow = run.cell.background == "learnt" && r.index == 7;
                r.last_byte = r.start + if slow { 0.1 * factor } else { 0.1 };
                r.observed_until = r.last_byte;
            }
        }
        Verdict::of(&results).foregrounds.remove(0)
    };
    let same = jammed(1.0);
    let text = full_text(&same);
    assert_eq!(of_learnt(&same).matters, Some(Answer::No), "{text}");
    let v = jammed(5.0);
    let b = of_learnt(&v);
    assert_eq!(b.matters, Some(Answer::Unclear), "{}", full_text(&v));
    let reason = "192 requests are too few for p95, which wants 200, and the p95 seen is ";
    assert!(b.open.iter().any(|o| o.starts_with(reason)), "{:?}", b.open);
}

/// A sentence on what is not settled names what is open, and not what is equal.
#[test]
fn what_is_open_is_named_first() {
    let mut results = results(8, |_, _| 1.0);
    for run in &mut results.runs {
        let odd = run.cell.background == "learnt" && run.cell.replication % 2 == 1;
        for r in &mut run.observed.requests {
            // The few slow requests take longer or shorter, from run to run.
            let tail = match (r.index % 8, odd) {
                (0, true) => 0.3,
                (0, false) => 0.2,
                _ => 0.1,
            };
            (r.last_byte, r.observed_until) = (r.start + tail, r.start + tail);
        }
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let b = of_learnt(&v);
    let told = side::telling(&b.judged.iter().collect::<Vec<_>>());
    assert!(told.iter().all(|j| !j.equal), "{told:?}");
    let median = |j: &Judgement| j.statistic == Statistic::Percentile(0.5);
    assert!(b.judged.iter().any(|j| median(j) && j.equal));
}

/// Of 15 packets in each run one is late, or of all runs' 150 packets ten: p90 is judged, and p95 has too few.
#[test]
fn what_few_packets_wait_beyond_the_last_percentile_is_no_equality() {
    let with = |late: f64| {
        let mut results = packets(|_| Some(0.01));
        for run in &mut results.runs {
            let beside = run.cell.background != "none";
            let usual = &mut run.observed.delays[0];
            (usual.packets, usual.delayed) = (14, 14.0 * 0.01);
            let mut own = delay(Direction::Down, if beside { late } else { 0.01 });
            (own.packets, own.delayed) = (1, own.from);
            run.observed.delays.push(own);
        }
        judged(&results)
    };
    let same = with(0.01);
    assert_eq!(same.matters, Answer::No, "{}", full_text(&same));
    let v = with(0.02);
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    let said =
        "150 packets are too few for the p95 of delay, which wants 200, and the p95 seen is ";
    let open = &v.backgrounds[1].open;
    assert!(open.iter().any(|o| o.starts_with(said)), "{open:?}");
}

/// Results beside so many backgrounds that one sentence for all of them is too long.
fn beside_many() -> Results {
    let mut results = results(6, |_, _| 1.0);
    let others = ["other", "third", "fourth"];
    for name in others {
        let text = experiment(6).replace("name = \"poisson\"", &format!("name = \"{name}\""));
        let other = file::read(&text, "x").unwrap().background.remove(1);
        results.experiment.background.push(other);
    }
    let of_poisson: Vec<RunResult> = results.of("web", "poisson").cloned().collect();
    let copies = others.iter().flat_map(|name| {
        of_poisson.iter().cloned().map(|mut run| {
            run.cell.background = (*name).into();
            run
        })
    });
    results.runs.extend(copies);
    results
}

/// Beside many backgrounds nothing that is judged differs, and only the tail is missing. The reason is the answer, and not
/// a figure that is settled.
#[test]
fn a_settled_figure_is_not_quoted_as_open() {
    let mut results = beside_many();
    for run in &mut results.runs {
        run.observed.requests.truncate(10);
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    assert_eq!(v.matters, Answer::Unclear);
    let said = "is not settled: 60 requests are too few for p90, which wants 100.";
    let text = &v.paragraphs[0].text;
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("the largest change"), "{text}");
}

/// p90 differs in some runs only, and there are too few requests for p95, which is no reason to leave it out.
#[test]
fn too_few_requests_for_one_percentile_do_not_hide_another() {
    let mut results = beside_many();
    for run in &mut results.runs {
        run.observed.requests.truncate(30);
        let late = run.cell.background == "learnt" && run.cell.replication < 2;
        for r in run
            .observed
            .requests
            .iter_mut()
            .filter(|r| r.index % 7 == 0)
        {
            r.last_byte = r.start + if late { 0.3 } else { 0.11 };
            r.observed_until = r.last_byte;
        }
    }
    let v = Verdict::of(&results).foregrounds.remove(0);
    let open = of_learnt(&v).open.join("; ");
    assert!(open.contains("180 requests are too few for p95"), "{open}");
    let text = &v.paragraphs[0].text;
    assert!(
        text.contains("the largest change is with learnt, where the p90"),
        "{text}"
    );
    assert!(!text.contains("left out"), "{text}");
}

/// One request in fifty hangs for a while beside traffic: no decisive percentile shows it. The mean does, and p99 where
/// there are a thousand requests.
#[test]
fn harm_to_one_request_in_fifty_is_harm() {
    let hung = |requests: usize, took: f64| {
        let mut results = results(10, |_, _| 1.0);
        for run in &mut results.runs {
            run.observed.requests.truncate(requests);
            let beside = run.cell.background == "learnt";
            let all = run.observed.requests.iter_mut();
            for r in all.filter(|r| beside && r.index % 50 == 7) {
                r.last_byte = r.start + took;
                r.observed_until = r.last_byte;
            }
        }
        judged(&results)
    };
    let of = |v: &ForegroundVerdict, statistic: Statistic| {
        let mut all = of_learnt(v).judged.iter();
        all.any(|j| j.statistic == statistic && j.measure.contains("time") && j.worse())
    };
    let (mean, p99) = (Statistic::Mean, Statistic::Percentile(0.99));
    for (requests, took, found) in [(50, 1.5, [true, false]), (100, 0.3, [false, true])] {
        let v = hung(requests, took);
        assert_eq!(
            of_learnt(&v).matters,
            Some(Answer::Yes),
            "{}",
            full_text(&v)
        );
        assert_eq!([mean, p99].map(|s| of(&v, s)), found, "{}", full_text(&v));
    }
    let v = hung(100, 0.1);
    assert_eq!(of_learnt(&v).matters, Some(Answer::No), "{}", full_text(&v));
}

/// Both sides need a thousand requests: with fewer, the text says that p99 was not looked at.
#[test]
fn too_few_requests_for_p99_are_told_of_either_side() {
    for (learnt, none) in [(100, 100), (100, 99), (99, 100)] {
        let mut results = results(10, |_, _| 1.0);
        for run in &mut results.runs {
            let few = match &*run.cell.background {
                "learnt" => learnt,
                "none" => none,
                _ => 100,
            };
            run.observed.requests.truncate(few);
        }
        let v = judged(&results);
        let text = full_text(&v);
        assert_eq!(v.matters, Answer::No, "{text}");
        let p99 = |j: &Judgement| j.statistic == Statistic::Percentile(0.99);
        let looked_at = of_learnt(&v).compared().any(p99);
        assert_eq!(looked_at, learnt.min(none) == 100, "{text}");
        assert_eq!(
            text.contains("p99 takes 1000 requests"),
            !looked_at,
            "{text}"
        );
    }
}

/// Of two sizes the smaller one takes longer in half of the runs and not as long in the others: its median is seen beyond
/// the margin by chance. One in twenty-five of the others hangs, which is harm nevertheless.
#[test]
fn chance_in_one_size_hides_no_harm_to_another() {
    let of = |hung: f64| {
        let mut results = results(10, |_, _| 1.0);
        let text = experiment(10).replace("\"100kB\"", "[\"1kB\", \"100kB\"]");
        results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
        for run in &mut results.runs {
            let beside = run.cell.background == "learnt";
            let odd = run.cell.replication % 2 == 1;
            for r in &mut run.observed.requests {
                let took = match (r.index % 2, beside) {
                    (0, true) => 0.01 * if odd { 1.6 } else { 0.85 },
                    (0, false) => 0.01,
                    (_, true) if r.index % 50 == 7 => 0.1 + hung,
                    _ => 0.1,
                };
                r.last_byte = r.start + took;
                r.observed_until = r.last_byte;
            }
        }
        judged(&results)
    };
    for (hung, answer) in [(1.5, Answer::Yes), (0.0, Answer::Unclear)] {
        let v = of(hung);
        assert_eq!(of_learnt(&v).matters, Some(answer), "{}", full_text(&v));
    }
}

/// One request in a hundred is larger, and a run beside traffic holds one small request less: p99 lies in the gap between
/// them.
#[test]
fn a_gap_between_two_kinds_at_p99_is_no_harm() {
    let mut results = results(10, |_, _| 1.0);
    for run in &mut results.runs {
        let beside = run.cell.background == "learnt";
        run.observed.requests.truncate(101);
        if beside {
            run.observed.requests.truncate(100);
        }
        for r in &mut run.observed.requests {
            let took = if r.index == 99 { 1.4 } else { 1.0 };
            r.last_byte = r.start + took;
            r.observed_until = r.last_byte;
        }
    }
    let v = judged(&results);
    assert_eq!(of_learnt(&v).matters, Some(Answer::No), "{}", full_text(&v));
    // Thresholds may name it nevertheless.
    let p99 = |j: &&Judgement| j.measure == "time" && j.statistic == Statistic::Percentile(0.99);
    assert!(of_learnt(&v).beside.iter().any(|j| p99(&j)));
}
