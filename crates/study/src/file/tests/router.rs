//! Tests the rules of the router study on known numbers.

use std::sync::Mutex;

use serde_json::{Value, json};
use swell_experiment::run::grid::Progress;

use super::*;
use crate::bundled::Bundled;
use crate::file::bench::{AGENTS, Bench, Bencher, Load, ROUTER, RouterBench, Size};
use crate::{Ledger, Verdict};

/// A bencher that returns given numbers and records the benches that it was asked to run.
struct Known<F>(F, Mutex<Vec<Bench>>);

impl<F: Fn(&RouterBench, &str) -> f64 + Sync> Bencher for Known<F> {
    fn play(&self, bench: &Bench, _: u64) -> Result<Value, String> {
        self.1.lock().unwrap().push(bench.clone());
        let Bench::Router(router) = bench else {
            let number = |name: &&str| match *name {
                "bulk" => 4e8,
                "active" | "reloaded_to" => 5_000.0,
                "reloaded_from" => 2_500.0,
                "memory_client" | "memory_server" => 9e6,
                "failed" | "late" => 0.0,
                _ => 1.0,
            };
            return Ok(AGENTS.iter().map(|n| (*n, json!(number(n)))).collect());
        };
        let numbers = ROUTER[0].iter().map(|n| (*n, json!((self.0)(router, n))));
        let lists = ROUTER[1].iter().map(|n| (*n, json!([1.0, 2.0])));
        Ok(numbers.chain(lists).collect())
    }
}

fn played(
    quick: bool,
    number: impl Fn(&RouterBench, &str) -> f64 + Sync,
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
    let ended = study.play(&known, &options, &|_| {}, &go).unwrap();
    let GridOutcome::Complete(numbers) = ended else {
        panic!("{ended:?}")
    };
    // Runs that the table has are not repeated.
    let kept = Mutex::new(0);
    let tell = |p: Progress| *kept.lock().unwrap() = p.kept;
    let again = study.play(&known, &options, &tell, &go).unwrap();
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

/// Numbers as in the paper's figures: sessions at high load lose packets in bursts, the generator loses none.
fn like_the_paper(run: &RouterBench, name: &str) -> f64 {
    let (sessions, high) = match &run.load {
        Load::Sessions { share, .. } => (true, *share > 0.8),
        Load::Constant { .. } => (false, false),
    };
    let poor = match run.load {
        Load::Constant { size, burst, .. } => burst >= 697 || size == Size::Bytes(40),
        Load::Sessions { .. } => false,
    };
    let table = f64::from(run.routes).log2();
    match name {
        "offered" => 90e6,
        "forwarded" if sessions && high => 80e6,
        "forwarded" if poor => 70e6,
        "forwarded" => 90e6,
        "forwarded_sd" if sessions => 5e6 * table,
        "forwarded_sd" => 1e4,
        "loss" if sessions && high => 0.02,
        "loss" if poor => 0.1,
        "loss" | "short" => 0.0,
        "loss_sd" if sessions => 0.02,
        "loss_sd" => 0.001,
        "after_loss" => 0.5,
        "lost" => 1_000.0,
        "busy_sd" if sessions => 0.05,
        "busy_sd" => 0.01,
        "us_per_packet" => table,
        _ => 1.0,
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
}

#[test]
fn a_router_that_treats_all_alike_does_not_hold() {
    let (study, ..) = played(false, |_, name| match name {
        "loss" | "loss_sd" | "run_max" | "run_mean" | "after_loss" | "lost" | "short" => 0.0,
        "forwarded_sd" => 0.1,
        _ => 90.0,
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
                size: Size::Bytes(40),
                ..
            },
            "short",
        ) => 0.5,
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
    assert!(wrong("bench = 'switch'").contains("switch"));
    assert_eq!(Bench::read("name = 'x'"), Ok(None));
}
