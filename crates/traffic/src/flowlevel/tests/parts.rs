//! Intervals that are played in part.

use super::*;

/// A trace of 190 seconds that begins 10 seconds into its first interval and ends 20 seconds into its
/// fourth.
#[test]
fn intervals_that_were_seen_in_part_are_played_in_part() {
    let mut t = trace(5, 400, 190);
    for r in &mut t.records {
        r.forward.first += 10 * SECOND;
        r.forward.last += 10 * SECOND;
    }
    let model = configure(&t.records, options());
    let seconds = model.duration().as_secs_f64();
    assert!((190.0..191.0).contains(&seconds), "{seconds}");
    assert_eq!(model.tcp.intervals.len(), 4);
    // A constant load gives a constant number of sessions.
    let sessions: Vec<f64> = model
        .tcp
        .intervals
        .iter()
        .map(|i| i.sessions as f64)
        .collect();
    let mean = sessions.iter().sum::<f64>() / 4.0;
    // Some 2,700 Pareto sizes (1.3, cut at 5 MB) in the shortest interval.
    assert!(
        sessions.iter().all(|s| (s / mean - 1.0).abs() < 0.4),
        "{sessions:?}"
    );
    let (connections, bytes) = played(&model, 1);
    assert!((connections / t.records.len() as f64 - 1.0).abs() < 0.03);
    assert!((bytes / t.sizes - 1.0).abs() < 0.03);
    // In a cycle there is no silence between the end and the beginning.
    let playback = Playback {
        cycle: true,
        ..Playback::default()
    };
    let plan = Plan::new(&model, &playback).unwrap();
    let round = model.duration();
    let index = |at: u64| plan.index(swell_base::Time::ZERO + round * 3 + Dur::from_secs(at));
    assert_eq!([0, 49, 50, 170, 189].map(index), [12, 12, 13, 15, 15]);
}

/// A quiet minute, and a busy one with datagrams: a part of the playback has the rate of its own intervals.
#[test]
fn a_part_of_a_playback_has_its_own_rate() {
    let mut records = trace_of(5, 60, 60, 2.5, 1e5).records;
    for mut r in trace_of(6, 600, 59, 2.5, 1e5).records {
        r.forward.first += 60 * SECOND;
        r.forward.last += 60 * SECOND;
        records.push(r);
    }
    for client in 0..200 {
        let at = 62.0 + client as f64 / 10.0;
        records.push(datagrams(client, 53, at, 100, 30.0));
    }
    records.sort_by_key(|r| r.forward.last);
    let model = configure(&records, options());
    let endless = Playback {
        cycle: true,
        ..Playback::default()
    };
    let rates = |playback: &Playback, from: u64, to: u64| {
        model.played_rates_between(playback, Dur::from_secs(from), Dur::from_secs(to))
    };
    let near = |x: f64, y: f64, bar: f64| assert!((x / y - 1.0).abs() < bar, "{x} {y}");
    let [up, down] = model.played_rates(&endless);
    let round = model.duration().as_secs_f64();
    assert!((119.0..121.0).contains(&round), "{round}");
    // What the player really starts: datagrams up, files down.
    let started = |playback: &Playback, from: u64, to: u64| {
        let [begin, end] = [from, to].map(|s| swell_base::Time::ZERO + Dur::from_secs(s));
        let mut bytes = [0; 2];
        for seed in 1..=20 {
            let plan = Plan::new(&model, playback).unwrap();
            let mut player = Player::new(plan, seed, Share::ALL);
            while let Some(due) = player.pop(end) {
                match due {
                    Due::Transfer(t) if (begin..end).contains(&t.at) => bytes[1] += t.down,
                    Due::Transfer(_) => {}
                    Due::Datagrams(source) => {
                        let within = source.pace(seed).filter(|e| (begin..end).contains(&e.at));
                        let sent = within.map(|e| u64::from(e.up) * u64::from(source.up.payload));
                        bytes[0] += sent.sum::<u64>();
                    }
                }
            }
        }
        bytes.map(|b| b as f64 / 20.0 * 8.0 / (to - from) as f64)
    };
    let faster = Playback {
        compression: 2.0,
        load: 3.0,
        ..endless
    };
    let later = Playback {
        first: 1,
        ..endless
    };
    // Rates are told by whole intervals, in which the load of datagrams that live for half of one varies.
    for (playback, from, to, whole) in [
        (&endless, 0, 55, false),
        (&endless, 20, 100, false),
        (&endless, 0, 60, true),
        (&endless, 60, 119, true),
        (&faster, 5, 25, false),
        (&faster, 0, 600, true),
        (&later, 0, 50, true),
    ] {
        let (told, came) = (rates(playback, from, to), started(playback, from, to));
        near(told[1], came[1], 0.06);
        if whole {
            near(told[0], came[0], 0.06);
        }
    }
    near(rates(&endless, 0, 1_000_000)[1], down, 1e-3);
    // Ten times as many sessions in the second half.
    near(rates(&endless, 0, 50)[1], down / 5.5, 0.15);
    near(rates(&endless, 0, 1_000_000)[0], up, 1e-3);
    // Datagrams that begin late in the second minute go on at the beginning of the first.
    assert!(rates(&endless, 65, 115)[0] > 1.5 * up);
}

/// A burst at the very end of a trace is not a rate.
#[test]
fn an_interval_of_an_instant_is_played_for_a_tenth_of_its_length() {
    let mut records = trace(6, 50, 59).records;
    let last = file(1, 2, 3_000, 60 * SECOND, 1_000_000);
    records.push(Record {
        forward: Uniflow {
            last: last.forward.first,
            ..last.forward
        },
        ..last
    });
    let model = configure(&records, options());
    let silent = Dur::from_nanos(model.span[0] as u64);
    assert_eq!(model.duration() + silent, Dur::from_secs(66));
}
