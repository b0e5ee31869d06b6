//! Claims judged on numbers that are known, and loads that are met.

use swell_traffic::flowlevel::{Configurator, Direction, FlowModel, Options, Record};

use swell_base::Dur;

use super::bench::*;
use super::*;
use crate::{Ledger, Verdict};
use swell_experiment::run::grid::Cell;

fn setting() -> Setting {
    Setting {
        line: Rate::from_bps(100_000_000),
        queue: 512,
        span: Dur::from_secs(22),
        settle: Dur::from_secs(2),
        every: Dur::from_secs(1),
        model: "isi-2pm".to_owned(),
        today: false,
    }
}

/// Numbers as the paper's figures have them: sessions at high load lose packets in trains, the generator none.
fn like_the_paper(bench: Bench) -> Vec<f64> {
    let sessions = bench.sent == Sent::Sessions;
    let high = bench.regime == Regime::High;
    let (long, small) = match bench.sent {
        Sent::Constant { mix, burst } => (burst >= 697, mix == Mix::Small),
        Sent::Sessions => (false, false),
    };
    let number = |name: &&str| match *name {
        "offered" => 90e6,
        "forwarded" if sessions && high => 80e6,
        "forwarded" if long || small => 70e6,
        "forwarded" => 90e6,
        "forwarded_sd" if sessions => 5e6 * f64::from(bench.routes).log2(),
        "forwarded_sd" => 1e4,
        "loss" if sessions && high => 0.02,
        "loss" if long || small => 0.1,
        "loss" => 0.0,
        "loss_sd" if sessions => 0.02,
        "loss_sd" => 0.001,
        "after_loss" => 0.5,
        "lost" => 1_000.0,
        "busy_sd" if sessions => 0.05,
        "busy_sd" => 0.01,
        "us_per_packet" => f64::from(bench.routes).log2(),
        "short" => 0.0,
        _ => 1.0,
    };
    NUMBERS.iter().map(number).collect()
}

fn runs(numbers: impl Fn(Bench) -> Vec<f64>) -> Vec<(Bench, Vec<f64>)> {
    let all = first(false).into_iter().chain(second(false));
    all.map(|b| (b, numbers(b))).collect()
}

fn verdicts(ledger: &Ledger) -> Vec<(String, Vec<Verdict>)> {
    let of = |e: &crate::Entry| e.findings.iter().map(|f| f.verdict).collect();
    ledger
        .entries
        .iter()
        .map(|e| (e.id.clone(), of(e)))
        .collect()
}

#[test]
fn the_paper_s_router_holds_everywhere() {
    let study = study(
        &setting(),
        &runs(like_the_paper),
        None,
        Vec::new(),
        "command".into(),
    );
    let (holds, none) = (Verdict::Holds, Verdict::NotTested);
    for (id, found) in verdicts(&study.ledgers[0]) {
        let expected = match id.as_str() {
            "S4.10f" => [none, holds, holds, holds],
            // The smallest and the largest are flooded.
            "S4.10g" => [none, none, none, holds],
            _ => [holds; 4],
        };
        assert_eq!(found, expected, "{id}");
    }
    for (id, found) in verdicts(&study.ledgers[1]) {
        assert_eq!(found, [holds; 6], "{id}");
    }
    assert!(study.real_time && study.sections.iter().all(|s| !s.pictures.is_empty()));
    for picture in study.sections.iter().flat_map(|s| &s.pictures) {
        assert!(
            picture.lines.iter().all(|l| !l.points.is_empty()),
            "{}",
            picture.name
        );
    }
}

#[test]
fn a_router_that_treats_all_alike_does_not_hold() {
    let alike = |_| -> Vec<f64> {
        let number = |name: &&str| match *name {
            "loss" | "loss_sd" | "run_max" | "run_mean" | "after_loss" | "lost" | "short" => 0.0,
            "forwarded_sd" => 0.1,
            _ => 90.0,
        };
        NUMBERS.iter().map(number).collect()
    };
    let study = study(&setting(), &runs(alike), None, Vec::new(), "command".into());
    let table = verdicts(&study.ledgers[0]);
    let of = |id: &str| table.iter().find(|t| t.0 == id).unwrap().1[3];
    for id in ["S4.10b", "S4.10c", "S4.10e", "S4.10f", "S4.10g"] {
        assert_eq!(of(id), Verdict::DoesNotHold, "{id}");
    }
    assert_eq!(of("S4.10a"), Verdict::Holds);
    assert_eq!(of("S4.10d"), Verdict::NotTested, "nothing was lost");
    // Nothing was run.
    let none = super::study(&setting(), &[], None, Vec::new(), "command".into());
    assert!(none.ledgers.iter().all(|l| l.columns.is_empty()));
}

#[test]
fn of_a_generator_that_falls_short_nothing_is_said() {
    let small = Bench::constant(Mix::Small, 1, Regime::High, TABLE);
    let short = |bench| {
        let mut numbers = like_the_paper(bench);
        if bench == small {
            let at = NUMBERS.iter().position(|n| *n == "short").unwrap();
            numbers[at] = 0.5;
        }
        numbers
    };
    let study = study(&setting(), &runs(short), None, Vec::new(), "command".into());
    assert!(study.doubts.iter().any(|d| d.code == "generator-short"));
    for (id, found) in verdicts(&study.ledgers[1]) {
        assert_eq!(
            (found[4], found[5]),
            (Verdict::NotTested, Verdict::Holds),
            "{id}"
        );
    }
}

#[test]
fn capacity_is_judged_by_what_was_measured() {
    let good = Capacity {
        bulk: Some(Rate::from_bps(400_000_000)),
        sessions: 5_000,
        active: 5_000,
        done: 9_000,
        failed: 0,
        late: 1e-3,
        memory: Some([9_000_000, 8_000_000]),
        idle: [5.0, 5.0],
        reloaded: Some([2_500, 5_000]),
        stopped: true,
    };
    let judged = |capacity: &Capacity| -> Vec<Verdict> {
        let found = verdicts(&claims::capacity(capacity));
        found.into_iter().map(|f| f.1[0]).collect()
    };
    let (holds, kind, fails) = (Verdict::Holds, Verdict::InPart, Verdict::DoesNotHold);
    assert_eq!(judged(&good), [holds; 4]);
    let poor = Capacity {
        bulk: Some(Rate::from_bps(50_000_000)),
        failed: 1,
        memory: Some([30_000_000, 8_000_000]),
        reloaded: Some([2_500, 2_500]),
        ..good
    };
    assert_eq!(judged(&poor), [fails, fails, kind, kind]);
    assert_eq!(judged(&Capacity::default())[0], Verdict::NotTested);
}

#[test]
fn runs_are_told_apart_and_each_generator_has_sessions_to_match() {
    let setting = setting();
    let nobody = |_: &Bench, _: Rate| None;
    for quick in [false, true] {
        let cell = |bench| BenchCell {
            bench,
            load: Rate::from_bps(1_000_000),
            setting: &setting,
            player: &nobody,
        };
        let all: Vec<Bench> = first(quick).into_iter().chain(second(quick)).collect();
        let mut keys: Vec<_> = all.iter().map(|b| cell(*b).key()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.len());
        for bench in second(quick).iter().filter(|b| !b.floods()) {
            assert!(
                first(quick).contains(&Bench::sessions(bench.regime, bench.routes)),
                "{bench:?}"
            );
        }
        assert_eq!(cell(all[0]).run().len(), NUMBERS.len());
    }
    let offers = |rate: f64| {
        let number = |n: &&str| if *n == "offered" { rate } else { 0.0 };
        NUMBERS.iter().map(number).collect::<Vec<f64>>()
    };
    assert_eq!(
        offered(&offers(59_996_000.0)),
        Some(Rate::from_bps(60_000_000))
    );
    assert_eq!(offered(&offers(f64::NAN)), None);
}

/// A connection a second, of thirty pairs in turn, with files from 1 to 500 kB.
fn learnt() -> FlowModel {
    let mut configurator = Configurator::new(Options::default());
    for i in 0..3_000i64 {
        // Sizes from 1 to 500 kB; a connection a second, of thirty pairs.
        let payload = 1_000 * (1 + (i as u64 * 7_919) % 500);
        let packets = payload.div_ceil(1_448) + 2;
        let start = i * 1_000_000_000;
        configurator.add(&Record {
            source: 1,
            destination: 100 + i as u128 % 30,
            source_port: 80,
            destination_port: 2_000 + i as u16,
            protocol: 6,
            header: 52,
            forward: Direction {
                packets,
                bytes: payload + 52 * packets,
                flags: Some(0x1b),
                first: start,
                last: start + 500_000_000,
            },
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    let model = configurator
        .finish("many", Default::default())
        .expect("it holds sessions");
    load::everywhere(model)
}

#[test]
fn sessions_are_as_many_as_offer_the_rate() {
    let learnt = learnt();
    for (percent, settle) in [(60, 0), (60, 2), (90, 2)] {
        let wanted = Wanted {
            rate: Rate::from_bps(percent * 500_000),
            line: Rate::from_bps(50_000_000),
            span: Dur::from_secs(12),
            settle: Dur::from_secs(settle),
        };
        let model = at_rate(&learnt, &wanted);
        let offered = load::offered(&model, &wanted).expect("it has sessions");
        let target = wanted.rate.bps() as f64;
        assert!(
            (offered / target - 1.0).abs() < 0.03,
            "{percent}: {offered}"
        );
        assert_eq!(model.tcp.sources.hosts(), load::HOSTS);
    }
}

#[test]
fn a_line_serves_no_more_than_it_can() {
    let wanted = Wanted {
        rate: Rate::from_bps(50_000_000),
        line: Rate::from_bps(50_000_000),
        span: Dur::from_secs(12),
        settle: Dur::from_secs(2),
    };
    let many = at_rate(&learnt(), &wanted);
    // As many sessions on a tenth of the line: full, and no fuller.
    let narrow = Wanted {
        line: Rate::from_bps(5_000_000),
        ..wanted
    };
    let offered = load::offered(&many, &narrow).expect("it has sessions");
    assert!((offered / 5e6 - 1.0).abs() < 1e-6, "{offered}");
}
