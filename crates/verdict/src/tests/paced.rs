//! Answers that come at a pace of the server's.

use super::open::{judged, program};
use super::*;

/// Ten runs of twenty requests over a link of 20 Mbit/s with a round trip of 40 ms. `answer` computes, from the number of
/// the request, how long the first byte takes and how long the others, seconds, and the bytes of the answer. Beside
/// traffic all of it is 3 % slower.
fn served(answer: impl Fn(u32) -> (f64, f64, u64)) -> Results {
    let mut results = results(10, |_, _| 1.0);
    program(&mut results, &[]);
    for run in &mut results.runs {
        let slower = match &*run.cell.background {
            "none" => 1.0,
            _ => 1.03,
        };
        run.observed.requests.truncate(20);
        let mut sent = 0;
        for r in &mut run.observed.requests {
            let (first, others, bytes) = answer(r.index);
            r.start = 2.0 + f64::from(r.index);
            r.connected = r.start + 0.04;
            r.first_byte = r.start + first * slower;
            r.last_byte = r.first_byte + others * slower;
            (r.observed_until, r.bytes) = (r.last_byte, bytes);
            r.outcome = Outcome::Done;
            sent += bytes;
        }
        let link = &mut run.observed.links[0];
        (link.rate, link.arrived[0], link.departed[0]) = (20e6, sent, sent);
        link.arrived_packets[0] = sent / 1000;
    }
    results
}

/// Feeds of 28 to 40 ticks of 200 bytes, one every 10 ms. Their last tick tells nothing of those before.
#[test]
fn feeds_of_unequal_length_show_no_absence_of_harm() {
    let ticks = |i: u32| 28 + 3 * (i % 5);
    let mut feeds = served(|i| (0.08, 0.01 * f64::from(ticks(i)), 200 * u64::from(ticks(i))));
    let v = judged(&feeds);
    let said = "a pace of its own";
    assert_eq!(v.matters, Answer::Unclear, "{}", full_text(&v));
    assert!(v.sentence.contains(said), "{}", v.sentence);
    // Nor do they show that Poisson traffic is enough.
    assert!(v.comparisons.iter().all(|c| c.enough == Answer::Unclear));
    // Harm that they show is harm.
    for run in &mut feeds.runs {
        for r in &mut run.observed.requests {
            let alone = run.cell.background == "none";
            r.last_byte += if alone { 0.0 } else { 0.4 };
            r.observed_until = r.last_byte;
        }
    }
    assert_eq!(judged(&feeds).matters, Answer::Yes);
}

/// A download in slow start: 300 kB in five round trips after the first byte.
#[test]
fn slow_start_is_no_pace_of_the_server() {
    let v = judged(&served(|i| (0.08, 0.32 + 0.01 * f64::from(i % 5), 300_000)));
    assert_eq!(v.matters, Answer::No, "{}", full_text(&v));
    // On a path that loses packets, a window is a few segments.
    let mut lossy = served(|i| (0.08, 2.0 + 0.1 * f64::from(i % 5), 300_000));
    assert_eq!(judged(&lossy).matters, Answer::Unclear);
    for run in &mut lossy.runs {
        run.observed.links[0].dropped[0] = 50;
    }
    assert_eq!(judged(&lossy).matters, Answer::No);
}

/// A server that computes for half a second before it answers.
#[test]
fn time_before_the_answer_is_no_pace() {
    let v = judged(&served(|i| (0.5 + 0.02 * f64::from(i % 5), 0.05, 30_000)));
    assert_eq!(v.matters, Answer::No, "{}", full_text(&v));
}
