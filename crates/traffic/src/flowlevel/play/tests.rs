//! Playback follows the model, however it is driven.

use swell_base::{Dur, Time};

use super::super::tests::{configure, imitate, options, trace, trace_of};
use super::super::{FlowModel, Histogram, Options, Uniflow};
use super::*;

mod slow;

fn model() -> FlowModel {
    configure(&trace(1, 400, 600).records, options())
}

fn player(model: &FlowModel, playback: Playback, seed: u64) -> Player {
    Player::new(Plan::new(model, &playback).unwrap(), seed, Share::ALL)
}

fn all(player: &mut Player, until: Time) -> Vec<Due> {
    std::iter::from_fn(|| player.pop(until)).collect()
}

fn transfers(due: &[Due]) -> Vec<Transfer> {
    due.iter()
        .filter_map(|d| match d {
            Due::Transfer(t) => Some(*t),
            Due::Datagrams(_) => None,
        })
        .collect()
}

fn seconds(s: u64) -> Time {
    Time::ZERO + Dur::from_secs(s)
}

/// The requirements for a replayed trace: flows and bytes within 3 % over the run, bytes within 5 % in 95
/// % of the intervals. The bound on connections per interval is moderate, because sessions are random.
#[test]
fn known_traces_are_met_over_the_run_and_in_each_interval() {
    // In the second and third trace the largest files are a tenth and more than a half of an interval.
    // They have as few sessions as in the notes on the released program (its mean error was 20 %, the
    // worst 82 %).
    for (sessions, tail, most) in [(400, 1.3, 5e6), (40, 1.2, 1e6), (60, 1.1, 1e7)] {
        let t = trace_of(1, sessions, 600, tail, most);
        let model = configure(&t.records, options());
        // The last interval contains only the ends of connections that began in the tenth.
        let intervals = &model.tcp.intervals[..10];
        let (mut off, mut seen) = (0, 0);
        for seed in 0..10 {
            let played = imitate(&model, seed);
            let connections: u64 = played.iter().map(|p| p.connections).sum();
            let bytes: f64 = played.iter().map(|p| p.bytes).sum();
            let flows = t.records.len() as f64;
            let over_the_run = [connections as f64 / flows, bytes / t.sizes];
            assert!(
                over_the_run.iter().all(|r| (r - 1.0).abs() < 0.03),
                "{sessions} sessions, seed {seed}: {over_the_run:?}"
            );
            for (p, i) in played.iter().zip(intervals) {
                seen += 1;
                off += u32::from((p.bytes / i.bytes as f64 - 1.0).abs() > 0.05);
                let ratio = p.connections as f64 / i.connections as f64;
                assert!((ratio - 1.0).abs() < 0.1, "{sessions} sessions: {ratio}");
            }
        }
        assert!(
            off * 20 <= seen,
            "{sessions} sessions: {off} of {seen} intervals are off by more than 5 %"
        );
    }
}

/// Largest distance between a distribution and the values drawn from it.
fn kolmogorov(drawn: &mut [f64], law: &Law) -> f64 {
    drawn.sort_by(f64::total_cmp);
    let n = drawn.len() as f64;
    (1..1_000)
        .map(|i| {
            let p = f64::from(i) / 1_000.0;
            let below = drawn.partition_point(|&x| x <= law.quantile(p)) as f64 / n;
            (below - p).abs()
        })
        .fold(0.0, f64::max)
}

#[test]
fn files_given_to_volumes_follow_their_law_and_gaps_theirs() {
    for (sessions, tail) in [(400, 1.3), (60, 1.1)] {
        let records = trace_of(1, sessions, 600, tail, 1e7).records;
        let model = configure(&records, options());
        let due = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
        let mut sizes: Vec<f64> = due.iter().map(|t| t.down as f64).collect();
        let law = model.tcp.down.law().unwrap();
        let (n, largest) = (
            sizes.len() as f64,
            sizes.iter().copied().fold(0.0, f64::max),
        );
        // One in ten independent samples would be farther than 1.22 / sqrt(n). This one is drawn without
        // replacement, and tilted by a few percent.
        let distance = kolmogorov(&mut sizes, &law);
        assert!(
            distance < 1.22 / n.sqrt(),
            "sizes of {sessions}: {distance}"
        );
        // The largest files are those of the distribution, once each.
        assert!(largest > 0.98 * law.quantile(1.0), "{largest}");
        let mut last = std::collections::BTreeMap::new();
        let mut gaps: Vec<f64> = Vec::new();
        for t in &due {
            if let Some(before) = last.insert(t.session, t.at) {
                gaps.push(t.at.since(before).as_nanos() as f64 / 1e3);
            }
        }
        let of_gaps = kolmogorov(&mut gaps, &model.gap_law().unwrap());
        assert!(of_gaps < 1.22 / n.sqrt(), "gaps of {sessions}: {of_gaps}");
    }
}

/// A file longer than an interval is counted in the intervals in which it is sent, and others leave space
/// for it.
#[test]
fn a_file_longer_than_an_interval_is_counted_where_it_is() {
    let mut records = trace_of(1, 40, 600, 1.3, 1e5).records;
    let size = records.iter().map(|r| r.forward.bytes).sum::<u64>() / 4;
    let mut long = records[0];
    // Over minutes 2 to 4, at a steady rate.
    let (first, last) = (121_000_000_000, 299_000_000_000);
    long.forward = Uniflow {
        packets: size / 1_500,
        bytes: size,
        first,
        last,
        ..long.forward
    };
    long.source = 77_777;
    // All other files are as slow.
    for r in &mut records {
        let takes = r.forward.bytes as f64 * (last - first) as f64 / size as f64;
        r.forward.last = r.forward.first + takes as i64;
    }
    records.push(long);
    records.sort_by_key(|r| r.forward.last);
    let model = configure(&records, options());
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let (mut off, mut seen) = (0, 0);
    for seed in 0..10 {
        let mut carried = vec![0.0; plan.intervals()];
        for t in transfers(&all(
            &mut player(&model, Playback::default(), seed),
            Time::MAX,
        )) {
            // Bytes flow at the rate of the records.
            let rate = size as f64 / ((last - first) as f64 / 1e9);
            let takes = t.down as f64 / rate;
            let begin = t.at.as_secs_f64();
            for (i, bytes) in carried.iter_mut().enumerate() {
                let [from, to] = [i, i + 1].map(|i| {
                    plan.rounds
                        .starts_at(i as u64)
                        .as_secs_f64()
                        .clamp(begin, begin + takes)
                        - begin
                });
                *bytes += t.down as f64 * (to - from) / takes.max(1e-9);
            }
        }
        for (bytes, interval) in carried.iter().zip(&model.tcp.intervals[..10]) {
            seen += 1;
            off += u32::from((bytes / interval.bytes as f64 - 1.0).abs() > 0.05);
        }
    }
    assert!(off * 20 <= seen, "{off} of {seen}");
}

/// The bytes that intervals carry, including those of later rounds, if every file flows at `rate`.
fn carried(plan: &Plan, played: &[Transfer], rate: f64, intervals: u64) -> Vec<f64> {
    let starts: Vec<f64> = (0..=intervals)
        .map(|i| plan.rounds.starts_at(i).as_secs_f64())
        .collect();
    let mut carried = vec![0.0; intervals as usize];
    for t in played {
        let begin = t.at.as_secs_f64();
        let end = begin + t.down as f64 / rate;
        let first = starts.partition_point(|&s| s <= begin) - 1;
        for i in first..carried.len() {
            let time = (starts[i + 1].min(end) - starts[i].max(begin)).max(0.0);
            carried[i] += rate * time;
        }
    }
    carried
}

/// Files ten times as large take ten times as long. The part beyond the end of a round belongs to the next
/// round.
#[test]
fn larger_files_are_counted_where_they_are_and_over_the_end_of_a_round() {
    let mut model = model();
    // The largest take two intervals.
    let rate = 10.0 * 5e6 / 120.0;
    let mut rates = Histogram::default();
    rates.add(rate as u64);
    model.tcp.rates = rates;
    // Without the last interval, which contains only the ends of connections that began in the tenth.
    model.tcp.intervals.truncate(10);
    model.span = [model.start, model.start + 600_000_000_000];
    let playback = Playback {
        sizes: 10.0,
        cycle: true,
        ..Playback::default()
    };
    let plan = Plan::new(&model, &playback).unwrap();
    let (mut off, mut seen, mut firsts) = (0, 0, 0.0);
    for seed in 0..10 {
        let due = transfers(&all(&mut player(&model, playback, seed), seconds(1_800)));
        for (i, bytes) in carried(&plan, &due, rate, 30).iter().enumerate() {
            let ratio = bytes / (10.0 * model.tcp.intervals[i % 10].bytes as f64);
            seen += 1;
            off += u32::from((ratio - 1.0).abs() > 0.05);
            if i == 10 || i == 20 {
                firsts += ratio / 20.0;
            }
        }
    }
    assert!(off * 20 <= seen, "{off} of {seen}");
    assert!((firsts - 1.0).abs() < 0.02, "{firsts}");
}

/// Many small intervals: sizes still follow the trace's distribution, and volumes are met as far as few
/// files allow.
#[test]
fn many_small_intervals_keep_the_law() {
    // Interval in seconds, with about seven connections in the shortest, and the error bound of 95 % of
    // the intervals.
    for (interval, bar) in [(3, 0.45), (9, 0.25), (36, 0.05), (120, 0.05)] {
        let options = Options {
            interval: Dur::from_secs(interval),
            ..options()
        };
        let model = configure(&trace_of(1, 20, 12_960, 1.3, 1e6).records, options);
        let law = model.tcp.down.law().unwrap();
        let plan = Plan::new(&model, &Playback::default()).unwrap();
        let due = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
        let carried = carried(&plan, &due, 1e12, 12_960 / interval);
        let mut errors: Vec<f64> = carried
            .iter()
            .zip(&model.tcp.intervals)
            .map(|(bytes, i)| (bytes / i.bytes as f64 - 1.0).abs())
            .collect();
        errors.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = due.iter().map(|t| t.down as f64).collect();
        let n = sizes.len() as f64;
        let distance = kolmogorov(&mut sizes, &law);
        let most = errors[errors.len() * 95 / 100];
        // One in ten independent samples would be farther.
        assert!(
            distance < 1.22 / n.sqrt(),
            "{interval} s: {distance} of {n}"
        );
        assert!(most < bar, "{interval} s: {most}");
    }
}

/// Gaps continue across intervals, so that as many connections begin as the plan expects.
#[test]
fn few_connections_in_an_interval_are_as_many_as_expected() {
    let options = Options {
        interval: Dur::from_secs(3),
        ..options()
    };
    let model = configure(&trace_of(1, 20, 6_000, 1.3, 1e6).records, options);
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let expected: f64 = (0..2_000).map(|i| plan.expected(i)).sum();
    for of in [1, 4] {
        let mut sum = 0;
        for index in 0..of {
            let mut part = Player::new(plan.clone(), 5, Share { index, of });
            sum += transfers(&all(&mut part, Time::MAX)).len();
        }
        // 40,000 independent gaps would have a standard error of 0.5 %; stratified ones have a fraction of
        // that.
        let ratio = sum as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.005, "{of} shares: {ratio}");
    }
}

#[test]
fn it_does_not_matter_when_one_asks() {
    let model = model();
    let mut late = player(&model, Playback::default(), 3);
    let mut early = player(&model, Playback::default(), 3);
    let expected = all(&mut late, Time::MAX);
    let mut polled = Vec::new();
    while let Some(at) = early.poll_at() {
        polled.extend(all(&mut early, at));
    }
    assert_eq!(polled, expected);
    assert!(transfers(&expected).is_sorted_by_key(|t| t.at));
    assert_ne!(
        expected,
        all(&mut player(&model, Playback::default(), 4), Time::MAX)
    );
}

#[test]
fn shares_together_are_the_whole() {
    let model = model();
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let whole = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
    let mut sum = 0;
    let mut carried = vec![0.0; plan.intervals()];
    for index in 0..3 {
        let mut part = Player::new(plan.clone(), 1, Share { index, of: 3 });
        let own = transfers(&all(&mut part, Time::MAX));
        for t in &own {
            carried[plan.index(t.at) as usize] += t.down as f64;
        }
        assert!(own.iter().all(|t| t.session % 3 == u64::from(index)));
        sum += own.len();
    }
    // Hosts that share the sessions share the files: together they carry the volume of an interval.
    for (bytes, interval) in carried.iter().zip(&model.tcp.intervals[..10]) {
        let ratio = bytes / interval.bytes as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }
    // The same distribution, other draws.
    assert!(
        (sum as f64 / whole.len() as f64 - 1.0).abs() < 0.01,
        "{sum} {}",
        whole.len()
    );
    let part = |of, all| {
        (0..of)
            .map(|index| Share { index, of }.part(all))
            .sum::<u64>()
    };
    assert!((1..9).all(|of| (0..30).all(|n| part(of, n) == n)));
}

#[test]
fn the_first_interval_has_no_start_to_make_up_for() {
    let model = model();
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let expected = plan.expected(0);
    let mut in_first_second = 0;
    for seed in 0..20 {
        let due = all(&mut player(&model, Playback::default(), seed), seconds(1));
        in_first_second += due.len();
    }
    // Some 2,660 starts of some 400 sessions: a standard error of 2 %.
    let share = in_first_second as f64 / 20.0 / (expected / 60.0);
    assert!((0.94..1.06).contains(&share), "{share}");
}

#[test]
fn knobs_turn_what_they_say() {
    let model = model();
    let base = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
    let with = |playback| transfers(&all(&mut player(&model, playback, 1), Time::MAX));
    let bytes = |t: &[Transfer]| t.iter().map(|t| t.down as f64).sum::<f64>();
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.02;
    let n = base.len() as f64;
    let plain = Playback::default();
    let more = with(Playback { load: 2.5, ..plain });
    assert!(near(more.len() as f64, 2.5 * n) && near(bytes(&more), 2.5 * bytes(&base)));
    let short = with(Playback {
        compression: 10.0,
        ..plain
    });
    assert!(near(short.len() as f64, n / 10.0), "{}", short.len());
    assert!(short.iter().all(|t| t.at < seconds(66)));
    let large = with(Playback {
        sizes: 3.0,
        ..plain
    });
    assert!(near(bytes(&large), 3.0 * bytes(&base)) && large.len() == base.len());
    let slow = with(Playback { gaps: 2.0, ..plain });
    assert!(near(slow.len() as f64, n / 2.0));
    let later = Plan::new(&model, &Playback { first: 4, ..plain }).unwrap();
    let full = Plan::new(&model, &plain).unwrap();
    assert_eq!(later.sessions(Time::ZERO), full.sessions(seconds(4 * 60)));
    let round = Plan::new(
        &model,
        &Playback {
            cycle: true,
            ..plain
        },
    )
    .unwrap();
    assert_eq!(
        round.sessions(seconds(61) + model.duration() * 5),
        full.sessions(seconds(61))
    );
    assert_eq!(
        (round.length(), full.length()),
        (None, Some(model.duration()))
    );
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        let error = Plan::new(&model, &Playback { load: bad, ..plain });
        assert!(matches!(error, Err(PlanError::Factor { what: "load", .. })));
    }
}

#[test]
fn a_session_keeps_its_hosts_for_an_interval_and_ranks_follow_their_popularity() {
    let mut model = model();
    model.tcp.destinations = Popularity::new([60, 30, 10]);
    let plan = Plan::new(&model, &Playback::default()).unwrap();
    let due = transfers(&all(&mut player(&model, Playback::default(), 1), Time::MAX));
    let mut chosen = [0u32; 3];
    let mut last = std::collections::BTreeMap::new();
    for t in &due {
        assert!(t.source < 400 && t.destination < 3);
        let interval = plan.index(t.at);
        let now = (interval, t.source, t.destination);
        let before = last.insert(t.session, now);
        assert_eq!(t.kept, before.is_some_and(|b| b.0 == interval));
        if t.kept {
            assert_eq!(before, Some(now));
        } else {
            chosen[t.destination as usize] += 1;
        }
    }
    let all = f64::from(chosen.iter().sum::<u32>());
    for (n, share) in chosen.into_iter().zip([0.6, 0.3, 0.1]) {
        // Some 4,000 choices: three standard errors are at most 0.024.
        assert!((f64::from(n) / all - share).abs() < 0.024, "{chosen:?}");
    }
}

#[test]
fn the_load_can_be_changed_on_the_way() {
    let model = model();
    let mut p = player(&model, Playback::default(), 1);
    let before = all(&mut p, seconds(120)).len() as f64;
    let double = Plan::new(
        &model,
        &Playback {
            load: 2.0,
            ..Playback::default()
        },
    )
    .unwrap();
    p.change(double, seconds(120));
    let after = all(&mut p, seconds(240)).len() as f64;
    assert!((after / before - 2.0).abs() < 0.1, "{before} {after}");
    let none = Plan::new(
        &model,
        &Playback {
            load: 0.01,
            ..Playback::default()
        },
    )
    .unwrap();
    p.change(none, seconds(240));
    let least = all(&mut p, seconds(360)).len() as f64;
    assert!(least / before < 0.02, "{before} {least}");
    assert_eq!(p.active(), p.plan().sessions(seconds(300)));
}

#[test]
fn what_the_released_program_draws_too_late_is_missing() {
    let mut released = model();
    released.profile = Profile::Harpoon;
    let plan = Plan::new(&released, &Playback::default()).unwrap();
    let expected: f64 = (0..10).map(|i| plan.expected(i)).sum();
    let mut p = Player::new(plan, 1, Share::ALL);
    let n = all(&mut p, seconds(600)).len() as f64;
    // Half a second of jitter, and three seconds of waiting at the end of each minute: 0.5 + 3 of 60
    // (section 2.5 of the notes on the program; 5 to 6 % there).
    let short = 1.0 - n / expected;
    assert!((0.035..0.085).contains(&short), "{short}");
}

mod any {
    use super::super::super::tests::any::any_record;
    use super::super::super::{Configurator, Options};
    use super::*;
    use crate::model::Provenance;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_can_be_learnt_can_be_played(
            records in prop::collection::vec(any_record(), 0..40),
            harpoon in any::<bool>(),
            cycle in any::<bool>(),
            load in 0.01f64..10.0,
        ) {
            let profile = if harpoon { Profile::Harpoon } else { Profile::Fixed };
            let mut c = Configurator::new(Options { profile, ..options() });
            records.iter().for_each(|r| c.add(r));
            let Ok(model) = c.finish("any", Provenance::default()) else { return Ok(()) };
            let playback = Playback { load, cycle, ..Playback::default() };
            let Ok(plan) = Plan::new(&model, &playback) else { return Ok(()) };
            let mut p = Player::new(plan, 1, Share::ALL);
            let mut last = Time::ZERO;
            for _ in 0..2_000 {
                let Some(at) = p.poll_at().filter(|&at| at < seconds(86_400)) else { break };
                prop_assert!(at >= last);
                last = at;
                if let Some(Due::Datagrams(source)) = p.pop(at) {
                    for e in source.pace(1).take(100) {
                        prop_assert!(e.at >= source.at && e.at < source.until);
                    }
                }
            }
        }
    }
}
