//! Answers that come at a pace of the server's, and uploads at that of the client.

use super::open::{judged, program};
use super::*;
use swell_experiment::observe::Bin;

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

/// The bins of 100 ms of a run in which these bytes leave the only link, each at its time.
fn binned(direction: Direction, sent: &[(f64, u64)]) -> Vec<Bin> {
    let width = 0.1;
    let mut bins: Vec<Bin> = (0..230)
        .map(|i| Bin {
            time: f64::from(i) * width,
            link: "bottleneck".into(),
            direction,
            ..Bin::default()
        })
        .collect();
    for (at, bytes) in sent {
        bins[(at / width) as usize].departed[0] += bytes;
    }
    bins
}

/// Answers whose head of 250 bytes comes after 60 ms, and their body of 20 kB after a time that `body` computes from the
/// number of the request, in so many equal pieces.
fn with_heads(body: impl Fn(u32) -> (f64, u32)) -> Results {
    let mut made = served(|i| (0.06, body(i).0, 20_250));
    for run in &mut made.runs {
        let mut sent = Vec::new();
        for r in &run.observed.requests {
            let (took, pieces) = body(r.index);
            sent.push((r.first_byte - 0.02, 320));
            let each = (1..=pieces).map(|k| took * f64::from(k) / f64::from(pieces));
            let one = 21_000 / u64::from(pieces);
            sent.extend(each.map(|after| (r.first_byte + after - 0.02, one)));
        }
        run.observed.bins = binned(Direction::Down, &sent);
    }
    made
}

/// A server that sends the head of its answer at once, and computes the body.
#[test]
fn a_head_that_comes_at_once_is_no_pace_of_the_server() {
    let took = |i: u32| 0.45 + 0.03 * f64::from(i % 5);
    let whole = judged(&with_heads(|i| (took(i), 1)));
    assert_eq!(whole.matters, Answer::No, "{}", full_text(&whole));
    // The same body in pieces, over all of the time or with pauses, comes at the server's pace.
    for pieces in [2, 3, 20] {
        let v = judged(&with_heads(|i| (took(i), pieces)));
        assert_eq!(v.matters, Answer::Unclear, "{pieces}: {}", full_text(&v));
    }
}

/// Uploads of which `sent` computes when the pieces are sent, seconds after the request began, and how large they are. Each
/// is answered `answered` seconds after its last piece. Beside traffic, this takes 3 % longer, as pieces before would.
fn uploaded(sent: impl Fn(u32) -> Vec<(f64, u64)>, answered: f64) -> Results {
    let mut made = served(|_| (0.1, 0.0, 200));
    for run in &mut made.runs {
        let mut all = Vec::new();
        for r in &mut run.observed.requests {
            let own = sent(r.index);
            let slower = if run.cell.background == "none" {
                1.0
            } else {
                1.03
            };
            let last = own.last().map_or(0.0, |piece| piece.0);
            r.last_byte = r.start + last + answered * slower;
            (r.first_byte, r.observed_until) = (r.last_byte, r.last_byte);
            let start = r.start;
            all.extend(own.into_iter().map(|(at, bytes)| (start + at, bytes)));
        }
        let bytes = all.iter().map(|piece| piece.1).sum();
        let mut up = run.observed.links[0].clone();
        (up.direction, up.arrived[0], up.departed[0]) = (Direction::Up, bytes, bytes);
        up.arrived_packets[0] = bytes / 1400;
        run.observed.links.push(up);
        run.observed.bins = binned(Direction::Up, &all);
    }
    made
}

/// A camera that sends clips while it records them: their last piece tells nothing of those before.
#[test]
fn uploads_at_the_pace_of_the_client_show_no_absence_of_harm() {
    let pieces = |i: u32| 4 + i % 3;
    for apart in [0.1, 0.25] {
        let each = |i| (0..pieces(i)).map(|k| (f64::from(k) * apart, 10_000));
        let mut clips = uploaded(|i| each(i).collect(), 0.05);
        let v = judged(&clips);
        assert_eq!(v.matters, Answer::Unclear, "{apart}: {}", full_text(&v));
        assert!(v.sentence.contains("a pace of its own"), "{}", v.sentence);
        // Harm that they show is harm.
        for run in &mut clips.runs {
            for r in &mut run.observed.requests {
                let alone = run.cell.background == "none";
                r.last_byte += if alone { 0.0 } else { 0.4 };
                (r.first_byte, r.observed_until) = (r.last_byte, r.last_byte);
            }
        }
        assert_eq!(judged(&clips).matters, Answer::Yes);
    }
}

/// A server that computes half a second before it answers an upload, and uploads that take as long as the network needs.
#[test]
fn uploads_in_one_go_are_judged() {
    for answered in [0.05, 0.6] {
        let upload = |i: u32| {
            let segments = 30 + i % 7;
            let each = (0..segments).map(|k| (0.004 * f64::from(k), 1400));
            each.collect::<Vec<_>>()
        };
        let v = judged(&uploaded(upload, answered));
        assert_eq!(v.matters, Answer::No, "{answered}: {}", full_text(&v));
    }
}

/// Runs of a program that begins for most of a second, and then uploads without an answer: the run itself is timed.
#[test]
fn uploads_after_a_slow_beginning_are_judged() {
    for (apart, answer) in [(0.004, Answer::No), (0.02, Answer::Unclear)] {
        let upload = |i: u32| {
            let begins = 0.6 + 0.05 * f64::from(i % 4);
            let each = (0..30 + i % 7).map(|k| (begins + apart * f64::from(k), 1400));
            each.collect::<Vec<_>>()
        };
        let mut runs = uploaded(upload, 0.01);
        for run in &mut runs.runs {
            for r in &mut run.observed.requests {
                r.first_byte = f64::NAN;
            }
        }
        let v = judged(&runs);
        assert_eq!(v.matters, answer, "{apart}: {}", full_text(&v));
    }
}

/// A few uploads are far larger than the others, and take as long as the link needs for them.
#[test]
fn uploads_of_unequal_sizes_are_judged() {
    let upload = |i: u32| {
        let pieces = if i.is_multiple_of(10) { 220 } else { 2 };
        let each = (0..pieces).map(|k| (0.004 * f64::from(k), 10_000));
        each.collect::<Vec<_>>()
    };
    let v = judged(&uploaded(upload, 0.05));
    assert!(!v.sentence.contains("a pace of its own"), "{}", v.sentence);
}
