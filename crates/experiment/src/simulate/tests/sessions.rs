//! Sessions of a flow-level model written by the tests.

use std::fs;

use swell_base::{Code, Dur};
use swell_traffic::flowlevel::{Configurator, FlowModel, Options, Record, Uniflow};

use super::*;

/// Sixty clients that fetch 50 kB every three seconds for a minute: 8 Mbit/s down.
fn model() -> FlowModel {
    model_with(|_| true)
}

/// The same with only those fetches, by their number, that are `kept`.
fn model_with(kept: impl Fn(i64) -> bool) -> FlowModel {
    let mut c = Configurator::new(Options {
        interval: Dur::from_secs(20),
        ..Options::default()
    });
    for i in (0..1_200i64).filter(|&i| kept(i)) {
        let (client, first) = (i % 60, i * 50_000_000);
        c.add(&Record {
            source: 1_000,
            destination: client as u128,
            source_port: 80,
            destination_port: 2_000 + i as u16,
            protocol: 6,
            header: 40,
            forward: Uniflow {
                packets: 40,
                bytes: 50_000 + 40 * 40,
                flags: Some(0x1b),
                first,
                last: first + 100_000_000,
            },
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    c.finish("fetches", Default::default())
        .expect("there are files")
}

fn file(settings: &str) -> String {
    format!(
        r#"
name = "test"
[network]
rate = "100Mbit"
delay = "5ms"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "fetches"
kind = "sessions"
model = "fetches.json"
{settings}
[run]
replications = 2
warmup = "5s"
duration = "45s"
"#
    )
}

fn resolve(settings: &str) -> (tempfile::TempDir, Result<Plan, crate::file::Problems>) {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let path = scratch.path().join("fetches.json");
    fs::write(path, model().to_json()).expect("it can be written");
    let plan = Plan::resolve(&file(settings), "x.toml", scratch.path());
    (scratch, plan)
}

/// A run that ends in the model's first interval, which has a tenth of the load of the others.
#[test]
fn a_rate_is_that_of_the_intervals_that_a_run_plays() {
    let quiet = model_with(|i| i >= 400 || (i / 60) % 7 == 0);
    let played = |keys: &str| {
        let scratch = tempfile::tempdir().expect("a temporary directory can be made");
        let path = scratch.path().join("fetches.json");
        fs::write(path, quiet.to_json()).expect("it can be written");
        let text = file(&format!("rate = \"4Mbit\"\n{keys}")).replace("45s", "19s");
        let plan = Plan::resolve(&text, "x.toml", scratch.path()).expect("a good file");
        let options = crate::run::Options {
            dir: scratch.path().join("run"),
            threads: 2,
            fresh: false,
            shard: None,
        };
        let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false);
        let crate::run::RunOutcome::Complete(results) = ended.expect("it runs") else {
            panic!("nobody cancelled it")
        };
        results.manifest
    };
    // Offered: nothing is measured, and headers add some percent.
    let offered = played("load = \"offered\"");
    let came = offered.measured["fetches"].down_bps / 4e6;
    assert!((0.9..1.25).contains(&came), "{offered:?}");
    let carried = played("");
    let found = &carried.measured["fetches"];
    assert!((found.down_bps / 4e6 - 1.0).abs() < 0.05, "{found:?}");
    assert!(carried.warnings.iter().all(|w| w.code != Code::RateMissed));
    // From the second interval on there are as many sessions as the model says.
    let later = played("first = 1");
    let sessions = |m: &crate::store::Manifest| m.measured["fetches"].sessions.expect("scaled");
    let ratio = sessions(&carried) / sessions(&later);
    assert!((3.0..12.0).contains(&ratio), "{ratio}");
}

/// The first minute of an hour has a sixth less than its mean, most of it in datagrams of long lives.
#[test]
fn an_offered_rate_is_that_of_the_first_minute_of_an_hour() {
    let text = file("rate = \"5Mbit\"\nload = \"offered\"")
        .replace("fetches.json", "access-hour")
        .replace("45s", "65s");
    let plan = Plan::resolve(&text, "x.toml", std::path::Path::new(".")).expect("a good file");
    let background = &plan.file.background[0];
    let pace = Some(5e6 / plan.native_bps(background, &BTreeMap::new()));
    let measured = [0, 1].map(|replication| {
        let spec = plan.alone(background, replication, pace, &BTreeMap::new());
        let rates = Simulator.measure(&spec, &|_| {}, &|| false);
        rates.expect("it runs").down_bps
    });
    let mean = measured.iter().sum::<f64>() / 2.0;
    // Headers add some percent.
    assert!((0.9..1.2).contains(&(mean / 5e6)), "{measured:?}");
}

fn files(settings: &str) -> Vec<(u64, f64)> {
    let (_keep, plan) = resolve(settings);
    let plan = plan.expect("a good file");
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a run");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
    assert!(observed.flows.iter().all(|f| f.class == "file"));
    observed.flows.iter().map(|f| (f.down, f.start)).collect()
}

#[test]
fn sessions_are_played_at_the_load_asked_for() {
    let once = files("");
    // Twenty per second for fifty seconds, warm-up included.
    let n = once.len() as f64;
    assert!((850.0..1_100.0).contains(&n), "{n}");
    assert!(once.iter().filter(|f| f.0 == 50_000).count() as f64 > 0.95 * n);
    let twice = files("sessions = 2").len() as f64;
    assert!((twice / n - 2.0).abs() < 0.2, "{twice} {n}");
}

#[test]
fn a_rate_is_reached_and_bad_settings_are_refused() {
    let (scratch, plan) = resolve("rate = \"4Mbit\"");
    let options = crate::run::Options {
        dir: scratch.path().join("run"),
        threads: 2,
        fresh: false,
        shard: None,
    };
    let plan = plan.expect("a good file");
    let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false).expect("it runs");
    let crate::run::RunOutcome::Complete(results) = ended else {
        panic!("{ended:?}")
    };
    let measured = &results.manifest.measured["fetches"];
    assert!((measured.down_bps / 4e6 - 1.0).abs() < 0.05, "{measured:?}");
    // Each replication was measured as a whole, and has its own rate.
    for (replication, &bps) in (0..).zip(&measured.down_bps_each) {
        let spec = plan.alone(
            &plan.file.background[0],
            replication,
            measured.sessions,
            &BTreeMap::new(),
        );
        let own = Simulator
            .measure(&spec, &|_| {}, &|| false)
            .expect("it runs");
        assert_eq!(own.down_bps, bps, "{replication}");
    }
    assert_eq!(measured.down_bps_each.len(), 2);
    assert_ne!(measured.down_bps_each[0], measured.down_bps_each[1]);
    assert_eq!(results.manifest.models["fetches"].name, "fetches");
    // The run directory contains the model, and its experiment file finds it.
    let again = Plan::resolve(&results.experiment_toml, "again", &options.dir);
    assert_eq!(
        again.expect("it resolves").hash("simulated"),
        plan.hash("simulated")
    );
    for (settings, says) in [
        ("sessions = 0", "no factor"),
        ("rate = \"1Mbit\"\nsessions = 2", "both set the load"),
        ("first = 99", "there is no interval 99"),
        ("compression = 1e9", "compression"),
    ] {
        let problems = resolve(settings).1.expect_err("a bad file").to_string();
        assert!(problems.contains(says), "{settings}: {problems}");
    }
}

/// Headers add a few percent to what the model offers.
#[test]
fn an_offered_rate_counts_the_factors_on_sizes_and_gaps() {
    for keys in ["sizes = 4", "gaps = 0.25", "sizes = 0.5\ngaps = 2"] {
        let settings = format!("rate = \"4Mbit\"\nload = \"offered\"\n{keys}");
        let (scratch, plan) = resolve(&settings);
        let options = crate::run::Options {
            dir: scratch.path().join("run"),
            threads: 2,
            fresh: false,
            shard: None,
        };
        let plan = plan.expect("a good file");
        let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false);
        let Ok(crate::run::RunOutcome::Complete(results)) = ended else {
            panic!("{ended:?}")
        };
        let measured = &results.manifest.measured["fetches"];
        assert!(
            (measured.down_bps / 4e6 - 1.0).abs() < 0.1,
            "{keys}: {measured:?}"
        );
    }
}

#[test]
fn a_run_begins_with_transfers_in_progress() {
    // 2.5 MB every half second at the remaining share of 100 Mbit/s. Without transfers that began before the run, its
    // first two seconds carry less.
    let (_keep, plan) = resolve("sizes = 50\nsessions = 0.1");
    let plan = plan.expect("a good file");
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for seed in 0..40 {
        let mut cell = plan.cells[0].clone();
        cell.seed = seed;
        let spec = RunSpec {
            foreground: None,
            warmup: Dur::ZERO,
            duration: Dur::from_secs(12),
            ..plan.spec(&cell, &BTreeMap::new()).expect("a run")
        };
        let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
        let carried = |from: f64, to: f64| {
            let bins = observed.bins.iter();
            let inside = bins.filter(|b| {
                b.direction == swell_base::Direction::Down && b.time >= from && b.time < to
            });
            inside.map(|b| b.departed[1] as f64).sum::<f64>()
        };
        first.push(carried(0.0, 2.0));
        last.push(carried(10.0, 12.0));
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let differences: Vec<f64> = first.iter().zip(&last).map(|(a, b)| a - b).collect();
    let spread = differences.iter().map(|d| d * d).sum::<f64>().sqrt() / 40.0;
    assert!(
        mean(&differences).abs() < 3.0 * spread,
        "{} {}",
        mean(&first),
        mean(&last)
    );
    assert!(spread < 0.3 * mean(&last), "{spread} {}", mean(&last));
}

const COPY: &str = r#"
[[background]]
name = "copy"
kind = "imitation"
of = "fetches"
interval = "15s"
"#;

#[test]
fn exported_records_count_every_byte_and_are_files_that_read() {
    let (scratch, plan) = resolve("");
    let mut plan = plan.expect("a good file");
    plan.file.run.keep.records = Some(crate::exporter::Exporter::default());
    plan.cells.truncate(1);
    let options = crate::run::Options {
        dir: scratch.path().join("run"),
        threads: 1,
        fresh: false,
        shard: None,
    };
    let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false);
    let Ok(crate::run::RunOutcome::Complete(_)) = ended else {
        panic!("{ended:?}")
    };
    let mut files = fs::read_dir(options.dir.join("records")).expect("it is there");
    let file = files.next().expect("a file").expect("its name").path();
    let file = fs::File::open(file).expect("it can be read");
    let mut reader = swell_capture::flow::FlowReader::new(file).expect("flow records");
    let mut sum = [0; 2];
    while let Some(record) = reader.next_record().expect("a record") {
        sum = [sum[0] + record.packets, sum[1] + record.bytes];
    }
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a run");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
    let departed = observed.bins.iter().flat_map(|b| b.departed).sum::<u64>();
    // Some packets depart at the very end of the run, after the last bin.
    assert!(
        sum[1].abs_diff(departed) <= 2 * 1_500 && sum[0] > 10_000,
        "{sum:?} {departed}"
    );
}

#[test]
fn a_background_is_imitated_from_its_flow_records() {
    let text = file("").replace("[run]", &format!("{COPY}\n[run]"));
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let path = scratch.path().join("fetches.json");
    fs::write(path, model().to_json()).expect("it can be written");
    let plan = Plan::resolve(&text, "x.toml", scratch.path()).expect("a good file");
    let carried = |name: &str| {
        let cell = plan.cells.iter().find(|c| c.background == name);
        let spec = plan.spec(cell.expect("it is run"), &BTreeMap::new());
        let spec = RunSpec {
            foreground: None,
            ..spec.expect("a run")
        };
        let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
        observed.links[1].departed[1] as f64
    };
    let (original, copy) = (carried("fetches"), carried("copy"));
    assert!((copy / original - 1.0).abs() < 0.05, "{copy} {original}");
    assert_eq!(
        plan.inputs["copy"].facts.source,
        "flow records of background fetches"
    );

    for (of, says) in [
        ("nobody", "no background is called `nobody`"),
        ("copy", "`copy` is not imitated"),
    ] {
        let text = text.replace("of = \"fetches\"", &format!("of = \"{of}\""));
        let problems = Plan::resolve(&text, "x.toml", scratch.path());
        let problems = problems.expect_err("a bad file").to_string();
        assert!(problems.contains(says), "{problems}");
    }
}

/// Bursts of a thousand datagrams at an instant, which the records say.
fn bursts() -> FlowModel {
    let mut c = Configurator::new(Options {
        interval: Dur::from_secs(20),
        ..Options::default()
    });
    for i in 0..40i64 {
        let first = i * 2_000_000_000;
        c.add(&Record {
            source: 1_000,
            destination: 1,
            source_port: 5_004,
            destination_port: 6_000,
            protocol: 17,
            header: 28,
            forward: Uniflow {
                packets: 1_000,
                bytes: 1_000 * 1_028,
                flags: None,
                first,
                last: first,
            },
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    c.finish("bursts", Default::default())
        .expect("there are datagrams")
}

#[test]
fn datagrams_of_a_model_that_are_lost_alone_raise_a_doubt() {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    for (model, doubts) in [(bursts(), true), (model(), false)] {
        let path = scratch.path().join("fetches.json");
        fs::write(path, model.to_json()).expect("it can be written");
        let text = file("").replace("100Mbit", "10Mbit");
        let plan = Plan::resolve(&text, "x.toml", scratch.path()).expect("a good file");
        let options = crate::run::Options {
            dir: scratch.path().join(format!("run {doubts}")),
            threads: 2,
            fresh: false,
            shard: None,
        };
        let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false);
        let Ok(crate::run::RunOutcome::Complete(results)) = ended else {
            panic!("{ended:?}")
        };
        let warnings = &results.manifest.warnings;
        let lossy = warnings.iter().any(|w| w.code == Code::OpenLoopLoss);
        assert_eq!(lossy, doubts, "{warnings:?}");
    }
}

/// Who opens a flow may be who sends. An imitation sends in the direction of the original.
#[test]
fn imitations_keep_the_direction_of_traffic_in_one_direction() {
    let backgrounds = [
        "kind = \"greedy\"\nconnections = 2\naccess = \"1Mbit\"",
        "kind = \"cbr\"\nrate = \"2Mbit\"",
        "kind = \"poisson\"\nrate = \"4Mbit\"\nrate_up = \"1Mbit\"",
    ];
    for original in backgrounds {
        let text = format!(
            "name = \"x\"\n[network]\nrate = \"100Mbit\"\ndelay = \"5ms\"\n\
             [[foreground]]\nname = \"f\"\nkind = \"none\"\n\
             [[background]]\nname = \"original\"\n{original}\n\
             [[background]]\nname = \"copy\"\nkind = \"imitation\"\nof = \"original\"\ninterval = \"15s\"\n\
             [run]\nwarmup = \"2s\"\nduration = \"32s\"\n"
        );
        let scratch = tempfile::tempdir().expect("a temporary directory can be made");
        let plan = Plan::resolve(&text, "x.toml", scratch.path()).expect("a good file");
        let carried = |name: &str| {
            let cell = plan.cells.iter().find(|c| c.background == name);
            let spec = plan.spec(cell.expect("it is run"), &BTreeMap::new());
            let spec = spec.expect("a run");
            let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
            [0, 1].map(|way| observed.links[way].departed[1] as f64)
        };
        let (own, copy) = (carried("original"), carried("copy"));
        let most = own[0].max(own[1]);
        for (a, b) in own.into_iter().zip(copy) {
            // Acknowledgements are not the same.
            let good = match a > 0.1 * most {
                true => (b / a - 1.0).abs() < 0.25,
                false => b < 0.1 * most,
            };
            assert!(good, "{text}: {own:?} {copy:?}");
        }
    }
}

/// Ten downloads of a minute at 0.5 Mbit/s carry 5 Mbit/s all the time, however fast the link is.
#[test]
fn long_downloads_do_not_come_in_bursts() {
    let mut learner = Configurator::new(Options {
        interval: Dur::from_secs(20),
        ..Options::default()
    });
    for i in 0..10i64 {
        let first = i * 100_000_000;
        learner.add(&Record {
            source: 1_000,
            destination: i as u128,
            source_port: 80,
            destination_port: 2_000 + i as u16,
            protocol: 6,
            header: 0,
            forward: Uniflow {
                packets: 2_600,
                bytes: 3_750_000,
                flags: Some(0x1b),
                first,
                last: first + 60_000_000_000,
            },
            reverse: None,
            continues: false,
            sampling: 1.0,
        });
    }
    let model = learner.finish("slow", Default::default()).expect("files");
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    fs::write(scratch.path().join("fetches.json"), model.to_json()).expect("it can be written");
    let plan = Plan::resolve(&file(""), "x.toml", scratch.path()).expect("a good file");
    let cell = plan.cells.iter().find(|c| c.background == "fetches");
    let spec = plan.spec(cell.expect("it is run"), &BTreeMap::new());
    let spec = RunSpec {
        foreground: None,
        ..spec.expect("a run")
    };
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
    let down = &observed.links[1];
    let rate = down.departed[1] as f64 * 8.0 / down.duration / 1e6;
    assert!((4.5..6.0).contains(&rate), "{rate} Mbit/s");
    assert_eq!(down.dropped, [0, 0]);
}

/// 400 connections of half a minute each carry 29 Mbit/s for two minutes. If intervals follow one another ten times as fast,
/// most transfers in progress began two rounds earlier.
#[test]
fn a_run_begins_with_the_long_transfers_of_the_rounds_before_it() {
    let model = |[up, down]: [u64; 2]| {
        let mut learner = Configurator::new(Options {
            interval: Dur::from_secs(10),
            ..Options::default()
        });
        for i in 0..400i64 {
            let first = i * 225_000_000;
            let side = |bytes: u64| Uniflow {
                packets: 1_500,
                bytes,
                flags: Some(0x1b),
                first,
                last: first + 30_000_000_000,
            };
            learner.add(&Record {
                source: i as u128 % 40,
                destination: 1_000,
                source_port: 2_000 + i as u16,
                destination_port: 80,
                protocol: 6,
                header: 0,
                forward: side(up),
                reverse: Some(side(down)),
                continues: false,
                sampling: 1.0,
            });
        }
        learner.finish("slow", Default::default()).expect("files")
    };
    for (bytes, compression) in [
        ([100_000, 1_000_000], 1.0),
        ([500_000, 500_000], 1.0),
        ([100_000, 1_000_000], 10.0),
    ] {
        let model = model(bytes);
        let scratch = tempfile::tempdir().expect("a temporary directory can be made");
        fs::write(scratch.path().join("fetches.json"), model.to_json()).expect("it can be written");
        let text = file(&format!("compression = {compression}"));
        let plan = Plan::resolve(&text, "x.toml", scratch.path()).expect("a good file");
        let cell = plan.cells.iter().find(|c| c.background == "fetches");
        let spec = plan.spec(cell.expect("it is run"), &BTreeMap::new());
        // A whole round.
        let duration = Dur::from_secs(if compression > 1.0 { 12 } else { 120 });
        let spec = RunSpec {
            foreground: None,
            warmup: Dur::ZERO,
            duration,
            ..spec.expect("a run")
        };
        let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
        let playback = swell_traffic::flowlevel::Playback {
            compression,
            cycle: true,
            ..Default::default()
        };
        let wanted = model.played_rates_between(&playback, Dur::ZERO, duration);
        // Payload that arrived, also of transfers that the end of the run cut off.
        let carried = observed
            .flows
            .iter()
            .fold([0, 0], |sum, f| [sum[0] + f.up, sum[1] + f.down]);
        let ratios =
            [0, 1].map(|way| carried[way] as f64 * 8.0 / duration.as_secs_f64() / wanted[way]);
        let good = |r: &f64| (0.85..1.15).contains(r);
        assert!(
            ratios.iter().all(good),
            "{bytes:?} {compression}: {ratios:?} of {wanted:?}"
        );
    }
}
