//! Requests of several sizes, of which a run may hold one more or less.

use super::equal::ratios;
use super::open::{judged, program};
use super::*;

/// Runs of `length` seconds of a client that fetches the `objects` in turn and thinks for 0.1 s. They have so many bytes,
/// and take so many seconds alone and beside traffic. A fetch goes on for longer than a run if it takes forever.
fn cycle(length: f64, objects: &[(u64, f64, f64)]) -> Results {
    let mut results = results(5, |_, _| 1.0);
    let listed: Vec<String> = objects.iter().map(|o| format!("\"{}B\"", o.0)).collect();
    let text = experiment(5).replace("\"100kB\"", &format!("[{}]", listed.join(", ")));
    results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
    for run in &mut results.runs {
        let mut rng = swell_base::Stream::indexed(4, "turns", run.cell.replication.into());
        let (mut at, end) = (2.0, 2.0 + length);
        run.observed.requests.clear();
        for index in 0u32.. {
            let (bytes, alone, beside) = objects[index as usize % objects.len()];
            let usual = if run.cell.background == "none" {
                alone
            } else {
                beside
            };
            let took = usual * (1.0 + 0.01 * rng.uniform());
            if at >= end {
                break;
            }
            let done = at + took < end;
            let until = (at + took).min(end);
            run.observed.requests.push(Request {
                client: 0,
                index,
                start: at,
                connected: at,
                first_byte: at,
                last_byte: until,
                observed_until: until,
                bytes: (bytes as f64 * (until - at) / took) as u64,
                retransmissions: 0,
                outcome: if done {
                    Outcome::Done
                } else {
                    Outcome::Unfinished
                },
            });
            at += took + 0.1;
        }
    }
    results
}

/// The same with 10 kB and 1 MB, which take 0.08 s and 1 s alone. The background makes these longer by `factors`.
fn turns(length: f64, factors: [f64; 2]) -> Results {
    let slower = |bytes, took, factor| (bytes, took, took * factor);
    cycle(
        length,
        &[
            slower(10_000, 0.08, factors[0]),
            slower(1_000_000, 1.0, factors[1]),
        ],
    )
}

/// Nineteen small objects and a large one, which takes 3 s alone and `beside` traffic.
fn seldom_large(length: f64, beside: f64) -> Results {
    let mut objects = vec![(10_000, 0.05, 0.05); 19];
    objects.push((4_000_000, 3.0, beside));
    cycle(length, &objects)
}

/// A run ends shortly before or after it begins the last of a few large requests, and before or after that one is done.
#[test]
fn what_the_end_of_a_run_cuts_off_does_not_change_a_mean() {
    let means = |v: &ForegroundVerdict| -> Vec<f64> {
        let all = v.backgrounds[1].compared();
        let own = all.filter(|j| j.measure.starts_with("mean time"));
        own.map(|j| j.ratio.value).collect()
    };
    let mut judged_means = 0;
    for tenths in 30u32..140 {
        let length = f64::from(tenths) / 10.0;
        for mut results in [
            seldom_large(length, 3.15),
            cycle(length, &[(4_000_000, 3.0, 3.15)]),
        ] {
            for known in [true, false] {
                if !known {
                    program(&mut results, &[]);
                }
                let v = judged(&results);
                assert_ne!(v.matters, Answer::Yes, "{length}: {}", full_text(&v));
                let means = means(&v);
                judged_means += means.len();
                let close = |x: &f64| (0.9..1.1).contains(x);
                assert!(!known || means.iter().all(close), "{length}: {means:?}");
            }
        }
    }
    assert!(judged_means > 50, "{judged_means}");
    // One that hangs is not a short one.
    for beside in [4.0, 1e9] {
        let v = judged(&seldom_large(16.0, beside));
        let mean = v.backgrounds[1].judged.iter();
        let mut mean = mean.filter(|j| j.measure == "mean time");
        assert!(mean.next().is_some_and(Judgement::worse), "{v:?}");
        assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    }
}

/// The number of requests in a run decides on which side of the gap between the sizes their median lies. It is odd alone
/// and even beside traffic, or the other way round, in all runs alike.
#[test]
fn a_median_between_two_sizes_shows_no_difference() {
    let mut flips = 0;
    for tenths in 140u32..160 {
        let mut results = turns(f64::from(tenths) / 10.0, [1.0, 1.02]);
        let v = judged(&results);
        assert_ne!(v.matters, Answer::Yes, "{tenths}: {}", full_text(&v));
        let b = &v.backgrounds[1];
        let times = |all: &[Judgement]| all.iter().filter(|j| j.measure == "time").count();
        // Each size is judged, and what is said of all of them is shown beside it.
        assert_eq!(times(&b.judged), 0);
        assert!(times(&b.beside) > 0);
        let apart = |j: &Judgement| (j.ratio.value.ln()).abs() > 0.5;
        flips += usize::from(b.beside.iter().any(apart));

        // The sizes of what a program fetches are not known.
        program(&mut results, &[]);
        let program = judged(&results);
        let text = full_text(&program);
        assert_ne!(program.matters, Answer::Yes, "{tenths}: {text}");
    }
    assert!(flips > 0);
}

#[test]
fn a_gap_is_told_and_does_not_hide_a_difference() {
    let mut gaps = 0;
    for tenths in 140u32..160 {
        let mut results = turns(f64::from(tenths) / 10.0, [1.0, 1.02]);
        program(&mut results, &[]);
        let open = &judged(&results).backgrounds[1].open;
        gaps += usize::from(open.iter().any(|o| o.contains("falls into a gap")));
        for known in [true, false] {
            let mut slow = turns(f64::from(tenths) / 10.0, [1.3, 1.3]);
            if !known {
                program(&mut slow, &[]);
            }
            let v = judged(&slow);
            assert_eq!(v.matters, Answer::Yes, "{tenths}: {}", full_text(&v));
        }
    }
    assert!(gaps > 0);
}

/// In 5 s the client completes eight requests or so, and which one it ends with changes their rate by a tenth.
#[test]
fn the_size_of_the_last_request_is_no_rate() {
    let mut open = 0;
    for tenths in 45u32..70 {
        for known in [true, false] {
            let mut results = turns(f64::from(tenths) / 10.0, [1.0, 1.03]);
            if !known {
                program(&mut results, &[]);
            }
            let v = judged(&results);
            assert_ne!(v.matters, Answer::Yes, "{tenths}: {}", full_text(&v));
            let told = |o: &String| o.contains("requests are not alike");
            open += usize::from(v.backgrounds[1].open.iter().any(told));
        }
    }
    assert!(open > 0);
}

/// Pages that are given up before the run ends are not parts of completed ones.
#[test]
fn what_is_given_up_is_not_completed() {
    let mut results = results(5, |_, _| 1.0);
    for run in &mut results.runs {
        let alone = run.cell.background == "none";
        for r in &mut run.observed.requests {
            let given_up = !alone && r.index % 4 == 0 && r.index < 90;
            if given_up {
                (r.outcome, r.observed_until) = (Outcome::Unfinished, r.start + 0.15);
            }
        }
    }
    let v = judged(&results);
    let rate = v.backgrounds[1]
        .judged
        .iter()
        .find(|j| j.measure == "request rate");
    let rate = rate.unwrap();
    assert!((rate.ratio.value - 0.77).abs() < 0.02, "{rate:?}");
}

/// A client that fetches 10 kB in 10 ms and 30 kB in 30 ms in turn. `jam` says for each request beside traffic, by its
/// replication and index, how long it takes if it meets a jam.
fn jams(jam: impl Fn(u32, u32) -> Option<f64>) -> Results {
    let mut results = results(10, |_, _| 1.0);
    let text = experiment(10).replace("object = \"100kB\"", "object = [\"10kB\", \"30kB\"]");
    results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
    for run in &mut results.runs {
        let beside = run.cell.background == "learnt";
        for r in &mut run.observed.requests {
            let took = if r.index % 2 == 0 { 0.01 } else { 0.03 };
            let jammed = jam(run.cell.replication, r.index).filter(|_| beside);
            r.last_byte = r.start + jammed.unwrap_or(took);
            r.observed_until = r.last_byte;
        }
    }
    results
}

fn measure<'v>(v: &'v ForegroundVerdict, name: &str) -> Option<&'v Judgement> {
    v.backgrounds[2].judged.iter().find(|j| j.measure == name)
}

/// Jams that few requests meet show in the mean of their size, and in no percentile.
#[test]
fn a_jam_among_two_sizes_is_no_equality() {
    let v = judged(&jams(|_, index| (index % 26 == 0).then_some(2.0)));
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    let mean = measure(&v, "mean time of 10kB");
    assert!(mean.is_some_and(Judgement::worse), "{mean:?}");
}

/// One jam in each run, which either size may meet. The mean of each varies from run to run, that of both does not.
#[test]
fn a_jam_that_either_size_meets_shows_in_the_mean_of_both() {
    let v = judged(&jams(|replication, index| {
        (index == 10 + replication % 2).then_some(2.0)
    }));
    let mean = measure(&v, "mean time");
    assert!(mean.is_some_and(Judgement::worse), "{mean:?}");
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
}

/// One jam among fifty requests, so short that few of them do not take most of the time.
#[test]
fn a_short_jam_of_few_of_two_sizes_shows_in_the_mean_of_both() {
    let v = judged(&jams(|replication, index| {
        (index % 50 == 7 + replication % 2).then_some(0.3)
    }));
    let mean = measure(&v, "mean time");
    assert!(mean.is_some_and(Judgement::worse), "{mean:?}");
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
}

/// A program that fetches 200 kB, or 1 kB after a fetch that was slow.
#[test]
fn a_program_that_asks_for_less_is_not_faster() {
    let mut results = results(6, |_, _| 1.0);
    program(&mut results, &[]);
    let mut slower = results.clone();
    for (adapts, of) in [(true, &mut results), (false, &mut slower)] {
        for run in &mut of.runs {
            let beside = run.cell.background != "none";
            for r in &mut run.observed.requests {
                let small = adapts && beside && r.index % 3 != 0;
                // Headers differ by a few bytes.
                r.bytes = if small { 1_000 } else { 200_000 } + u64::from(r.index % 7);
                let took = if small { 0.01 } else { 0.1 };
                r.last_byte = r.start + if beside { 1.5 * took } else { took };
                r.observed_until = r.last_byte;
            }
        }
    }
    let v = judged(&results);
    let b = &v.backgrounds[1];
    let of_time = |all: &[Judgement]| all.iter().any(|j| j.measure == "time");
    assert!(!of_time(&b.judged) && of_time(&b.beside), "{b:?}");
    assert!(b.judged.iter().any(|j| j.measure == "goodput" && j.worse()));
    assert!(
        b.open.iter().any(|o| o.contains("other sizes")),
        "{:?}",
        b.open
    );
    // The same requests, only slower.
    let same = &judged(&slower).backgrounds[1];
    assert!(same.judged.iter().any(|j| j.measure == "time" && j.worse()));
    assert!(
        !same.open.iter().any(|o| o.contains("other sizes")),
        "{:?}",
        same.open
    );
}

/// Whether the times of a program are not compared, because its responses have other sizes beside traffic. `bytes` gives
/// the size of a response: whether it is beside traffic, its replication and its index.
fn unlike(bytes: impl Fn(bool, u32, u32) -> u64) -> (bool, BackgroundVerdict) {
    let mut results = results(6, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        for r in &mut run.observed.requests {
            r.bytes = bytes(run.cell.background != "none", run.cell.replication, r.index);
        }
    }
    let b = judged(&results).backgrounds.remove(1);
    let told = b.open.iter().any(|o| o.contains("other sizes"));
    let aside = |j: &Judgement| j.measure == "time";
    assert_eq!(told, b.beside.iter().any(aside));
    (told, b)
}

/// Sizes may differ at random, by a few bytes, or from run to run.
#[test]
fn responses_that_differ_by_chance_are_compared() {
    let at_random = |beside: bool, replication: u32, index: u32| {
        let of = u64::from(replication) * 1000 + u64::from(index);
        let mut rng = swell_base::Stream::indexed(u64::from(beside), "sizes", of);
        (1e4 / (1.0 - rng.uniform())) as u64
    };
    assert!(!unlike(at_random).0);
    // A number in each answer has another digit.
    assert!(!unlike(|beside, _, _| if beside { 24 } else { 20 }).0);
    // All responses of a run are large or small, and more runs have small ones beside traffic.
    let each_run = |beside: bool, replication: u32, _: u32| match (beside, replication) {
        (false, 0 | 1 | 3) | (true, 2 | 4) => 1_000_000,
        _ => 10_000,
    };
    assert!(!unlike(each_run).0);
}

/// Sizes differ, their mean does not.
#[test]
fn goodput_is_judged_where_sizes_differ_about_one_mean() {
    let spread = |beside: bool, _: u32, index: u32| match (beside, index % 2) {
        (true, 0) => 50_000,
        (true, _) => 150_000,
        (false, _) => 100_000,
    };
    let (told, b) = unlike(spread);
    let goodput = b.judged.iter().find(|j| j.measure == "goodput");
    assert!(told && goodput.is_some_and(|j| j.equal), "{b:?}");
    assert_eq!(b.matters, Some(Answer::Unclear));
}

/// A client requests a small object and a large one in turn. Only the small ones become slower, by a half; neither the
/// median nor the tail of all requests shows it.
#[test]
fn each_of_several_sizes_counts() {
    let made = |sizes: &str| {
        let mut results = results(10, |_, _| 1.0);
        let text = super::experiment(10).replace("object = \"100kB\"", sizes);
        results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
        for run in &mut results.runs {
            let slower = if run.cell.background == "none" {
                1.0
            } else {
                1.5
            };
            for r in &mut run.observed.requests {
                let small = r.index % 2 == 0;
                let took = if small { 0.01 * slower } else { 0.1 };
                // The median of all lies among the large ones.
                r.last_byte = r.start + if r.index % 10 == 8 { 0.1 } else { took };
                r.observed_until = r.last_byte;
            }
        }
        judged(&results)
    };
    assert_eq!(made("object = \"100kB\"").matters, Answer::No);
    let v = made("object = [\"2kB\", \"1MB\"]");
    assert_eq!(v.matters, Answer::Yes, "{}", full_text(&v));
    assert!(
        ratios(&v, "time of 2kB")
            .iter()
            .any(|r| (r - 1.5).abs() < 0.01)
    );
}

/// A program fetches over two connections at once, the second request begun at half of the first: in 0.15 s it receives
/// what one request alone receives in 0.1 s, twice.
#[test]
fn goodput_counts_the_time_of_requests_that_overlap_once() {
    let mut results = results(5, |_, _| 1.0);
    super::open::program(&mut results, &[]);
    let requests = &mut results.runs[0].observed.requests;
    for r in requests.iter_mut() {
        let pair = f64::from(r.index / 2);
        r.start = 2.0 + 0.3 * pair + 0.05 * f64::from(r.index % 2);
        (r.outcome, r.bytes) = (Outcome::Done, 75_000);
        (r.last_byte, r.observed_until) = (r.start + 0.1, r.start + 0.1);
    }
    // The order of the rows does not matter.
    requests.reverse();
    let goodput =
        |run: &RunResult| crate::values::value(&swell_experiment::measure::GOODPUT, run).unwrap();
    assert!((goodput(&results.runs[0]) - 8e6).abs() < 1.0);
    let first_of_pair = |r: &Request| r.index.is_multiple_of(2);
    results.runs[0].observed.requests.retain(first_of_pair);
    assert!((goodput(&results.runs[0]) - 6e6).abs() < 1.0);
}
