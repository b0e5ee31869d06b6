//! Tests the rules of the router study on known numbers.

use std::sync::Mutex;

use swell_base::{Code, Warning};
use swell_experiment::observe::{MeasureSample, Observations};
use swell_experiment::run::grid::Progress;

use super::*;
use crate::bundled::Bundled;
use crate::file::bench::{Bench, Bencher, Load, RouterBench, Size};
use crate::{Ledger, Verdict};

/// The numbers that routers are asked for.
const ROUTER: &[&str] = &[
    "asked",
    "offered",
    "forwarded",
    "loss",
    "busy",
    "packets",
    "back",
    "dropped",
    "not_taken",
    "sink_missed",
    "run_mean",
    "run_max",
    "after_loss",
    "late",
    "short",
];

/// Lengths of the intervals: the last is short, because the generator had nothing more to send.
const SECONDS: [f64; 3] = [1.0, 1.0, 1e-6];

/// What the intervals have of numbers whose mean over the run is asked for.
fn whole(
    number: impl Fn(&RouterBench, &str) -> Vec<f64>,
    run: &RouterBench,
) -> impl Iterator<Item = (&'static str, Vec<f64>)> {
    let sums = [
        ("offered_bytes", "offered", 8.0),
        ("forwarded_bytes", "forwarded", 8.0),
        ("busy_seconds", "busy", 1.0),
    ];
    let sums = sums.map(|(sum, name, parts)| {
        let each = number(run, name).into_iter().zip(SECONDS);
        (
            sum,
            each.map(|(rate, seconds)| rate * seconds / parts).collect(),
        )
    });
    sums.into_iter().chain([("seconds", SECONDS.to_vec())])
}

/// A bencher that returns given numbers and records the benches that it was asked to run.
struct Known<F>(F, Mutex<Vec<Bench>>);

impl<F: Fn(&RouterBench, &str) -> Vec<f64> + Sync> Bencher for Known<F> {
    fn play(&self, bench: &Bench, _: u64) -> Result<Observations, String> {
        self.1.lock().unwrap().push(bench.clone());
        let seen: Vec<(&str, Vec<f64>)> = match bench {
            Bench::Router(router) => {
                let number = |name: &&'static str| (*name, (self.0)(router, name));
                ROUTER
                    .iter()
                    .map(number)
                    .chain(whole(&self.0, router))
                    .collect()
            }
            Bench::Agents(_) => vec![
                ("bulk", vec![4e8]),
                ("active", vec![5_000.0]),
                ("reloaded_from", vec![2_500.0]),
                ("reloaded_to", vec![5_000.0]),
                ("memory_client", vec![9e6]),
                ("memory_server", vec![9e6]),
                ("idle_client", vec![1e6]),
                ("idle_server", vec![1e6]),
                ("program_client", vec![1e6]),
                ("program_server", vec![1e6]),
                ("done", vec![1.0]),
                ("failed", vec![0.0]),
                ("late", vec![0.0]),
                ("stopped", vec![1.0]),
            ],
        };
        let rows = seen.into_iter().flat_map(|(name, values)| {
            values.into_iter().map(|value| MeasureSample {
                measure: name.to_owned(),
                value,
                at: 60.0,
            })
        });
        let constant = matches!(
            bench,
            Bench::Router(RouterBench {
                load: Load::Constant { .. },
                ..
            })
        );
        let doubt = Warning::warning(Code::TapOverflown, "packets were not seen");
        Ok(Observations {
            measures: rows.collect(),
            warnings: constant.then_some(doubt).into_iter().collect(),
            ..Observations::default()
        })
    }
}

fn played(
    quick: bool,
    number: impl Fn(&RouterBench, &str) -> Vec<f64> + Sync,
) -> (Study, Vec<Bench>, usize) {
    let overrides = Overrides {
        quick,
        ..Overrides::default()
    };
    let study = Bundled::named("router").unwrap().study(&overrides).unwrap();
    assert!(study.is_of_hosts());
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        file: dir.path().join("runs.csv"),
        jobs: 2,
        fresh: false,
        shard: None,
    };
    let known = Known(number, Mutex::default());
    let go = || false;
    let ended = study.run_on(Some(&known), &options, &|_| {}, &go).unwrap();
    let GridOutcome::Complete(numbers) = ended else {
        panic!("{ended:?}")
    };
    // Runs that the table has are not repeated.
    let kept = Mutex::new(0);
    let tell = |p: Progress| *kept.lock().unwrap() = p.kept;
    let again = study.run_on(Some(&known), &options, &tell, &go).unwrap();
    assert_eq!(
        again.complete().map(|n| format!("{n:?}")),
        Some(format!("{numbers:?}"))
    );
    let asked = known.1.into_inner().unwrap();
    assert_eq!(asked.len(), numbers.len());
    (study.study(&numbers), asked, numbers.len())
}

trait Complete {
    fn complete(self) -> Option<Vec<Vec<f64>>>;
}

impl Complete for GridOutcome {
    fn complete(self) -> Option<Vec<Vec<f64>>> {
        match self {
            GridOutcome::Complete(numbers) => Some(numbers),
            _ => None,
        }
    }
}

/// Two values with this mean and standard deviation.
fn spread(mean: f64, sd: f64) -> Vec<f64> {
    let off = sd / 2f64.sqrt();
    vec![mean - off, mean + off]
}

/// Numbers as in the paper's figures: sessions at high load lose packets in bursts, the generator loses none.
fn like_the_paper(run: &RouterBench, name: &str) -> Vec<f64> {
    let (sessions, high) = match &run.load {
        Load::Sessions { share, .. } => (true, *share > 0.8),
        Load::Constant { .. } => (false, false),
    };
    let poor = match &run.load {
        Load::Constant { size, burst, .. } => *burst >= 697 || *size == Size::All(40),
        Load::Sessions { .. } => false,
    };
    let table = f64::from(run.routes).log2();
    let loss = match (sessions, high, poor) {
        (true, true, _) => 0.02,
        (_, _, true) => 0.1,
        _ => 0.0,
    };
    match name {
        "asked" => vec![90e6],
        "offered" => vec![90e6, 90e6, 5e9],
        "forwarded" if sessions && high => spread(80e6, 5e6 * table),
        "forwarded" if sessions => spread(90e6, 5e6 * table),
        "forwarded" if poor => spread(70e6, 1e4),
        "forwarded" => spread(90e6, 1e4),
        "loss" => spread(loss, if sessions { 0.02 } else { 0.001 }),
        "dropped" => spread(50_000.0 * loss, 0.0),
        "packets" => spread(50_000.0 * (1.0 - loss), 0.0),
        "after_loss" => vec![0.5],
        "short" => vec![0.0],
        "busy" if sessions => spread(table / 100.0, 0.05),
        "busy" => spread(table / 100.0, 0.01),
        _ => vec![1.0],
    }
}

fn verdicts(ledger: &Ledger) -> Vec<(&str, Vec<Verdict>)> {
    let of = |e: &crate::Entry| e.findings.iter().map(|f| f.verdict).collect();
    let entries = ledger.entries.iter();
    entries.map(|e| (&*e.id, of(e))).collect()
}

#[test]
fn the_paper_s_router_holds_everywhere() {
    let (study, asked, runs) = played(false, like_the_paper);
    assert_eq!(runs, 27);
    assert!(
        study
            .doubts
            .iter()
            .all(|d| !d.code.as_str().ends_with("-failed")),
        "{:?}",
        study.doubts
    );
    let (holds, none) = (Verdict::Holds, Verdict::NotTested);
    // Warnings are kept with the runs, also with those that were set late.
    let doubt = study.doubts.iter().find(|d| d.code == Code::TapOverflown);
    assert_eq!(
        doubt.map(|d| &*d.message),
        Some("packets were not seen (17 of 27 runs)")
    );
    for (id, found) in verdicts(&study.ledgers[0]) {
        let expected = match id {
            "S4.10f" => [none, holds, holds, holds],
            // The largest table is compared with the smallest by flooding both, so only its column has a verdict.
            "S4.10g" => [none, none, none, holds],
            _ => [holds; 4],
        };
        assert_eq!(found, expected, "{id}");
    }
    for (id, found) in verdicts(&study.ledgers[1]) {
        assert_eq!(found, [holds; 6], "{id}");
    }
    for (id, found) in verdicts(&study.ledgers[2]) {
        assert_eq!(found, [holds], "{id}");
    }
    let pictures: Vec<&crate::Picture> = study.sections.iter().flat_map(|s| &s.pictures).collect();
    assert_eq!(pictures.len(), 10);
    let by_table = |p: &&&crate::Picture| p.name == "rate-by-table-high-32768";
    let line = &pictures.iter().find(by_table).unwrap().lines[0];
    let [low, high] = line.points[1].1.interval.unwrap();
    assert_eq!((line.points.len(), high - low), (4, 2.0 * 5e7));
    assert!(study.real_time);
    // The mix is exact in every hundred, and even within.
    let mixed = asked.iter().find_map(|b| match b {
        Bench::Router(RouterBench {
            load:
                Load::Constant {
                    size: Size::Each(sizes),
                    ..
                },
            ..
        }) => Some(sizes),
        _ => None,
    });
    let of = |sizes: &[u16], size| sizes.iter().filter(|s| **s == size).count();
    let mixed = mixed.unwrap();
    assert_eq!([40, 576, 1500].map(|size| of(mixed, size)), [61, 17, 22]);
    for ten in mixed.windows(10) {
        assert!((2..=3).contains(&of(ten, 1500)), "{ten:?}");
    }
    // The generator offers the measured rate of the sessions, except when it floods.
    let rates = asked.iter().filter_map(|b| match b {
        Bench::Router(RouterBench {
            load: Load::Constant { rate, .. },
            ..
        }) => Some(rate.bps()),
        _ => None,
    });
    let rates: Vec<u64> = rates.collect();
    assert_eq!(rates.iter().filter(|r| **r == 200_000_000).count(), 2);
    assert_eq!(rates.iter().filter(|r| **r == 90_000_000).count(), 15);
    intervals_hold_whole_bursts(&asked);
}

fn intervals_hold_whole_bursts(asked: &[Bench]) {
    let mut bursts = 0;
    for bench in asked {
        let Bench::Router(router) = bench else {
            continue;
        };
        let every = router.every.as_secs_f64();
        match &router.load {
            Load::Constant { burst, rate, .. } if *burst > 1 => {
                let bits = f64::from(*burst) * 2.0 * 1_514.0 * 8.0;
                let held = every * rate.bps() as f64 / bits;
                assert!((held - held.round()).abs() < 1e-4, "{burst}: {held}");
                assert!((0.3..0.7).contains(&every), "{burst}: {every}");
                bursts += 1;
            }
            _ => assert_eq!(every, 0.5),
        }
    }
    assert_eq!(bursts, 4);
}

#[test]
fn bursts_that_are_further_apart_than_intervals_do_not_tell_what_varies() {
    // At 2 Mbit/s a burst of 930 packets of two sources lasts over 11 s. The load of so few bursts is off, too; why it
    // is comes first.
    let slow = |run: &RouterBench, name: &str| match name {
        "offered" if matches!(run.load, Load::Constant { burst: 930, .. }) => vec![1.8e6; 3],
        "asked" | "offered" => vec![2e6; 3],
        "forwarded" => spread(2e6, 2e5),
        "loss" => spread(0.1, 0.05),
        "interval" | "short" => vec![0.0],
        _ => vec![1.0],
    };
    let (study, asked, _) = played(true, slow);
    let every = asked.iter().filter_map(|b| match b {
        Bench::Router(router) => Some(router.every.as_secs_f64()),
        Bench::Agents(_) => None,
    });
    assert!(every.into_iter().all(|every| every == 0.25));
    let ledger = &study.ledgers[1];
    for id in ["S4.10i", "S4.10j"] {
        let entry = ledger.entries.iter().find(|e| e.id == id).unwrap();
        let finding = &entry.findings[0];
        assert_eq!(finding.verdict, Verdict::NotTested, "{id}");
        assert!(
            finding.detail.contains("11.3 s apart"),
            "{}",
            finding.detail
        );
    }
}

/// Lines with `late` keys are not known in the first pass, but they are runs of the study.
#[test]
fn progress_and_interruptions_tell_of_all_runs() {
    let study = Bundled::named("router").unwrap();
    let study = study.study(&Overrides::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        file: dir.path().join("runs.csv"),
        jobs: 1,
        fresh: false,
        shard: None,
    };
    let known = Known(like_the_paper, Mutex::default());
    let told = Mutex::new(Vec::new());
    let tell = |p: Progress| told.lock().unwrap().push((p.kept, p.done, p.runs));
    let until = |runs: usize| {
        let enough = || known.1.lock().unwrap().len() >= runs;
        let ended = study.run_on(Some(&known), &options, &tell, &enough);
        (ended.unwrap(), std::mem::take(&mut *told.lock().unwrap()))
    };
    let stopped = |finished| GridOutcome::Interrupted { finished, runs: 27 };
    let first = until(3);
    assert_eq!(first.0, stopped(3));
    assert_eq!(first.1, [(0, 0, 27), (0, 1, 27), (0, 2, 27), (0, 3, 27)]);
    // Nine more of the first pass, then two that are set late: runs of the first pass were not there before.
    let second = until(14);
    assert_eq!(second.0, stopped(14));
    let kept = |t: &(usize, usize, usize)| (t.0, t.2) == (3, 27);
    assert!(second.1.iter().all(kept), "{:?}", second.1);
    assert_eq!(until(usize::MAX).1.last(), Some(&(14, 27, 27)));
}

/// Not the generator's fault: it offers what the sessions did.
#[test]
fn sessions_that_offer_another_load_are_not_judged() {
    let (study, ..) = played(true, |run, name| match (&run.load, name) {
        (Load::Sessions { share, .. }, "asked") if *share > 0.8 => vec![86e6],
        _ => like_the_paper(run, name),
    });
    let of = |id: &str, ledger: usize| {
        let mut entries = study.ledgers[ledger].entries.iter();
        let entry = entries.find(|e| e.id == id).unwrap();
        (entry.findings[0].verdict, entry.findings[0].detail.clone())
    };
    assert_eq!(of("S4.10a", 0).0, Verdict::Holds, "the low load is right");
    for (id, ledger) in [
        ("S4.10b", 0),
        ("S4.10c", 0),
        ("S4.10d", 0),
        ("S4.10e", 0),
        ("S4.10j", 1),
    ] {
        let (verdict, why) = of(id, ledger);
        assert_eq!(verdict, Verdict::NotTested, "{id}");
        let expected = "sessions-high offered 90.0 Mbit/s, and was to offer 86.0 Mbit/s";
        assert_eq!(why, expected, "{id}");
    }
}

#[test]
fn a_router_that_treats_all_alike_does_not_hold() {
    let (study, ..) = played(false, |_, name| match name {
        "loss" | "run_max" | "run_mean" | "after_loss" | "dropped" | "short" => vec![0.0; 2],
        "forwarded" => spread(90.0, 0.1),
        "busy" => spread(90.0, 90.0),
        _ => vec![90.0; 2],
    });
    let found = verdicts(&study.ledgers[0]);
    let of = |id: &str| found.iter().find(|t| t.0 == id).unwrap().1[3];
    for id in ["S4.10b", "S4.10c", "S4.10e", "S4.10f", "S4.10g"] {
        assert_eq!(of(id), Verdict::DoesNotHold, "{id}");
    }
    assert_eq!(of("S4.10a"), Verdict::Holds);
    assert_eq!(of("S4.10d"), Verdict::NotTested, "nothing was lost");
}

#[test]
fn a_generator_that_falls_short_is_not_judged() {
    let (study, ..) = played(true, |run, name| match (&run.load, name) {
        (
            Load::Constant {
                size: Size::All(40),
                ..
            },
            "short",
        ) => vec![0.5],
        _ => like_the_paper(run, name),
    });
    let ledger = &study.ledgers[1];
    assert_eq!(ledger.columns, ["930", "40-bytes"]);
    for (id, found) in verdicts(ledger) {
        assert_eq!(found, [Verdict::Holds, Verdict::NotTested], "{id}");
    }
    let why = &ledger.entries[0].findings[1].detail;
    assert!(why.contains("left out 50.0 %"), "{why}");
    assert_eq!(study.ledgers[0].columns, ["32768"]);
}

#[test]
fn what_is_simulated_and_what_is_not_are_not_mixed() {
    let late = said(
        "[[line]]\nname = \"codel\"",
        "[[line]]\nlate = [\"a=1\"]\nname = \"codel\"",
    );
    assert!(late.contains("only a bench is set late"), "{late}");
    let wrong = |text: &str| Bench::read(text).unwrap_err();
    assert!(wrong("bench = 'router'\nroutes = 3").contains("line"));
    let router = |line: &str| {
        let all = "bench = 'router'\nroutes = 4\nline = '10Mbit'\nqueue = 9\nduration = '3s'\nwarmup = '1s'\n\
                   every = '1s'\nload = { kind = 'constant', size = [1500, 40], burst = 2, rate = '1Mbit' }\n";
        let (before, after) = all.split_once(line.split_once('=').unwrap().0).unwrap();
        let rest = after.split_once('\n').unwrap().1;
        wrong(&format!("{before}{line}\n{rest}"))
    };
    assert!(router("routes = 3").contains("3 routes"));
    for interval in [
        "warmup = '3s'",
        "warmup = '2100ms'",
        "every = '2s'",
        "every = '0s'",
    ] {
        assert!(router(interval).contains("after the warm-up"), "{interval}");
    }
    assert!(router("line = '10bit'").contains("between 1Mbit"));
    for load in ["size = 35", "size = []", "size = 40, burst = 0"] {
        let load = format!("load = {{ kind = 'constant', rate = '1Mbit', {load} }}");
        assert!(router(&load).contains("at least 36"), "{load}");
    }
    assert!(wrong("bench = 'switch'").contains("switch"));
    assert_eq!(Bench::read("name = 'x'"), Ok(None));
}
