//! Files are planned with bounded work, and their load is counted once.

use super::super::super::tests::{configure, options, trace};
use super::super::super::{FlowModel, Histogram, Playback};
use super::super::rounds::Rounds;
use super::remaining::tilted;
use super::*;

fn model() -> FlowModel {
    configure(&trace(1, 400, 600).records, options())
}

/// Sets the rate of all large files, bytes per second.
fn at_rate(model: &mut FlowModel, rate: u64) {
    let mut rates = Histogram::default();
    rates.add(rate);
    model.tcp.rates = rates;
}

#[test]
fn files_longer_than_all_intervals_cost_bounded_work() {
    for (rate, cycle) in [(1, false), (1, true), (10_000, true), (1_000_000, false)] {
        let mut model = model();
        at_rate(&mut model, rate);
        let n = 200_000;
        let busy = model.tcp.intervals[3];
        model.tcp.intervals = vec![busy; n];
        let playback = Playback {
            cycle,
            ..Playback::default()
        };
        let plan = Plan::new(&model, &playback).unwrap();
        let files = Files::new(
            (plan.down.as_ref().unwrap(), &plan.rates[1]),
            &plan,
            1.0,
            1,
            &[],
        );
        assert!(!files.large.is_empty());
        // At most `NEAR` steps per file up to a limit, then one per try. In addition, a pass over all
        // intervals whenever the number of files has doubled.
        let bound = (1 << 22) + 65_536 * 19 + 18 * n as u64;
        assert!(files.steps <= bound, "{} at {rate} B/s", files.steps);
    }
}

/// The loads of files equal those of a walk over all seconds of each file.
#[test]
fn loads_of_files_are_those_of_a_walk_over_their_intervals() {
    let model = model();
    for cycle in [false, true] {
        let playback = Playback {
            cycle,
            compression: 7.0,
            ..Playback::default()
        };
        let plan = Plan::new(&model, &playback).unwrap();
        // More intervals than a file updates individually.
        let plan = Plan {
            rounds: Rounds {
                intervals: 100,
                ..plan.rounds
            },
            sessions: vec![5; 100],
            volumes: vec![1.0; 100],
            ..plan
        };
        let n = 100;
        let begins: Vec<f64> = (0..=n)
            .map(|i| plan.rounds.starts_at(i).as_secs_f64())
            .collect();
        let mut stream = Stream::new(3, "files");
        let mut deficit = Deficit::new(&plan.rounds, vec![1e6; n as usize], |_| true);
        let (mut loads, mut later) = (vec![0.0; n as usize], vec![0.0; n as usize]);
        for rank in 0..50 {
            let file = LargeFile {
                size: 1e6 * stream.uniform(),
                takes: stream.exponential(60.0 * begins[1]),
                uniform: stream.uniform(),
            };
            let first = deficit.choose(file, &mut stream).unwrap();
            let begin =
                begins[first] + deficit.place(file, first) * (begins[first + 1] - begins[first]);
            deficit.give(file, first, rank);
            for round in 0..9 {
                for i in 0..n as usize {
                    let [from, to] = [begins[i], begins[i + 1]].map(|b| {
                        (b + f64::from(round) * begins[n as usize]).clamp(begin, begin + file.takes)
                    });
                    let bytes = file.size * (to - from) / file.takes;
                    if round == 0 {
                        loads[i] += bytes;
                    } else {
                        later[i] += bytes;
                    }
                }
            }
        }
        let (lacks, next) = deficit.finish();
        for (lack, load) in lacks.iter().zip(&loads) {
            assert!((1e6 - lack - load).abs() < 1.0, "{lack} {load}");
        }
        assert_eq!(next.is_empty(), !cycle);
        for (told, walked) in next.iter().zip(&later) {
            assert!((told - walked).abs() < 1.0, "{told} {walked}");
        }
    }
}

/// With any number of files per interval, large ones are sent at their positions. Small ones follow the
/// stratified distribution to the end, and the volume is met.
#[test]
fn a_million_files_of_an_interval_are_given_out_one_by_one() {
    let mut model = model();
    model.tcp.intervals = vec![model.tcp.intervals[3]; 3];
    // Large files, each a hundredth of an interval's volume in this playback.
    (0..20).for_each(|_| model.tcp.down.complete.add(100_000_000));
    let playback = Playback {
        load: 150.0,
        ..Playback::default()
    };
    let plan = Plan::new(&model, &playback).unwrap();
    let law = plan.down.as_ref().unwrap();
    let files = Files::new((law, &plan.rates[1]), &plan, 1.0, 1, &[]);
    let wanted = files.intervals[1];
    let n = wanted.files;
    assert!(n > 1 << 20 && wanted.large > 100, "{wanted:?}");
    let sessions = plan.sessions[1];
    let (mut bytes, mut sent, mut small) = (0.0, 0, Vec::new());
    for index in 0..2 {
        let share = Share { index, of: 2 };
        let mut remaining = files.of_interval(1, sessions, share, Remaining::default());
        let mut stream = Stream::new(u64::from(index), "sizes");
        let places: Vec<f64> = files
            .large
            .iter()
            .filter(|l| l.interval == 1)
            .map(|l| l.place)
            .collect();
        let (mut large, transfers) = (0, share.part(n));
        for i in 0..transfers {
            let place = i as f64 / transfers as f64;
            let q = remaining.draw(place, &mut stream).quantile;
            bytes += law.quantile(q);
            sent += 1;
            if q >= files.border {
                large += 1;
                let due = places.iter().filter(|&&p| p <= place).count();
                assert!(large <= due, "{large} at {place}");
            } else {
                small.push(q / files.border);
            }
        }
    }
    assert_eq!(sent, n);
    let ratio = bytes / plan.volumes[1];
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // Every part of the tilted distribution once.
    small.sort_by(f64::total_cmp);
    let parts = (wanted.files - wanted.large) as f64;
    let distance =
        |(i, u): (usize, &f64)| (u - tilted((i as f64 + 0.5) / parts, wanted.tilt)).abs();
    let farthest = small.iter().enumerate().map(distance).fold(0.0, f64::max);
    // The number of files of a share may differ slightly from the number of its parts.
    assert!(farthest < 0.005, "{farthest}");
}
