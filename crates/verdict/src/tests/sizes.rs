//! Requests of several sizes, of which a run may hold one more or less.

use super::open::{judged, program};
use super::*;

/// Runs of `length` seconds of a client that fetches 10 kB and 1 MB in turn and thinks for 0.1 s. Alone it takes 0.08 s
/// and 1 s; the background makes the small ones and the large ones longer by `factors`.
fn turns(length: f64, factors: [f64; 2]) -> Results {
    let mut results = results(5, |_, _| 1.0);
    let text = experiment(5).replace("\"100kB\"", "[\"10kB\", \"1MB\"]");
    results.experiment.foreground = file::read(&text, "x").unwrap().foreground;
    for run in &mut results.runs {
        let mut rng = swell_base::Stream::indexed(4, "turns", run.cell.replication.into());
        let alone = run.cell.background == "none";
        let (mut at, end) = (2.0, 2.0 + length);
        run.observed.requests.clear();
        for index in 0u32.. {
            let kind = index as usize % 2;
            let factor = if alone { 1.0 } else { factors[kind] };
            let took = [0.08, 1.0][kind] * factor * (1.0 + 0.01 * rng.uniform());
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
                bytes: ([1e4, 1e6][kind] * (until - at) / took) as u64,
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
    let poisson = &judged(&slower).backgrounds[1];
    assert!(
        poisson
            .judged
            .iter()
            .any(|j| j.measure == "time" && j.worse())
    );
    assert!(
        !poisson.open.iter().any(|o| o.contains("other sizes")),
        "{:?}",
        poisson.open
    );
}
