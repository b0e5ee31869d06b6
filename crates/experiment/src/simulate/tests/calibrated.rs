//! Rates of backgrounds: what calibration finds is what runs carry.

use swell_base::{Code, Direction, Dur};

use super::*;
use crate::made_up::MadeUp;
use crate::run::{self, Options, RunOutcome};
use crate::store::Results;
use crate::test_support;

/// An experiment over these links without a foreground.
fn file(links: &str, backgrounds: &str, run: &str) -> String {
    format!(
        "name = \"rates\"\n{links}\n[[foreground]]\nname = \"nobody\"\nkind = \"none\"\n{backgrounds}\n\
         [run]\nreplications = 2\n{run}\n"
    )
}

const ONE: &str = "[network]\nrate = \"20Mbit\"\ndelay = \"10ms\"";
const TWO: &str = "[[links]]\nname = \"one\"\nrate = \"20Mbit\"\ndelay = \"5ms\"\n\
                   [[links]]\nname = \"two\"\nrate = \"50Mbit\"\ndelay = \"5ms\"";
const SHORT: &str = "warmup = \"2s\"\nduration = \"12s\"";

fn resolve(text: &str) -> Plan {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let tiny = scratch.path().join("tiny.json");
    std::fs::write(tiny, test_support::model(20_000_000)).expect("it can be written");
    Plan::resolve(text, "x.toml", scratch.path()).expect("a good file")
}

/// All runs of an experiment.
fn results_of(text: &str) -> Results {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let options = Options {
        dir: scratch.path().join("run"),
        threads: 2,
        fresh: true,
        shard: None,
    };
    match run::run(&resolve(text), &Simulator, &options, &|_| {}, &|| false) {
        Ok(RunOutcome::Complete(results)) => *results,
        other => panic!("{other:?}"),
    }
}

/// Background bits per second that left the first link down, in each run of a background.
fn carried(results: &Results, background: &str) -> Vec<f64> {
    let runs = (results.runs.iter()).filter(|r| r.cell.background == background);
    runs.map(|r| {
        let links = r.observed.links.iter();
        let down = links
            .clone()
            .find(|l| l.direction == Direction::Down)
            .expect("a link");
        down.departed[1] as f64 * 8.0 / down.duration
    })
    .collect()
}

/// A part of `both` crosses another link, and one flows the other way round.
#[test]
fn the_rate_of_a_mix_is_the_sum_of_its_parts_on_their_own_paths() {
    let parts = "[[background]]\nname = \"a\"\nkind = \"cbr\"\nrate = \"4Mbit\"\npath = [\"one\"]\n\
        [[background]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"20Mbit\"\npath = [\"two\"]\n\
        [[background]]\nname = \"c\"\nkind = \"cbr\"\nrate = \"6Mbit\"\nrate_up = \"1Mbit\"\npath = [\"two\"]\nreversed = true\n\
        [[background]]\nname = \"both\"\nkind = \"mix\"\nof = [\"a\", \"b\", \"c\"]";
    let plan = resolve(&file(TWO, parts, SHORT));
    let mut all = plan.file.background.iter();
    let mix = all.find(|b| b.name() == "both").expect("it is there");
    let spec = plan.alone(mix, 0, None, &BTreeMap::new());
    let simulated = Simulator.measure(&spec, &|_| {}, &|| false);
    let made_up = MadeUp::default().measure(&spec, &|_| {}, &|| false);
    for measured in [simulated, made_up] {
        let measured = measured.expect("it runs");
        assert!(
            (measured.down_bps / 30e6 - 1.0).abs() < 0.02,
            "{measured:?}"
        );
        assert!((measured.up_bps / 1e6 - 1.0).abs() < 0.02, "{measured:?}");
        assert_eq!(measured.lost, 0.0);
    }
}

/// A rate fits where it was measured, and may be too high for another path. In windows it is not that of the other traffic,
/// so the file is not refused.
#[test]
fn a_matched_rate_that_its_own_path_does_not_carry_is_a_doubt() {
    let like = |name: &str, path: &str| {
        format!(
            "[[background]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"match:a\"\npath = [\"{path}\"]\n"
        )
    };
    let a =
        "[[background]]\nname = \"a\"\nkind = \"poisson\"\nrate = \"30Mbit\"\npath = [\"two\"]\n";
    let text = file(
        TWO,
        &(a.to_owned()
            + &like("far", "one")
            + "active = { on = \"1h\", off = \"1s\" }\n"
            + &like("near", "two")),
        SHORT,
    );
    let results = results_of(&text);
    let warnings = results.manifest.warnings.iter();
    let lossy: Vec<&str> = warnings
        .filter(|w| w.code == Code::OpenLoopLoss)
        .map(|w| w.message.as_str())
        .collect();
    assert_eq!(lossy.len(), 1, "{lossy:?}");
    // 30 Mbit/s into 20: a third is lost, less the queue that fills first.
    assert!(lossy[0].starts_with("background far loses 3"), "{lossy:?}");
    assert!(!results.manifest.measured.contains_key("near"));
}

/// From this phase on, the model has about half of its mean rate.
#[test]
fn a_rate_with_a_phase_is_that_of_the_runs() {
    let learnt = "[[background]]\nname = \"users\"\nkind = \"learnt\"\nmodel = \"access-link\"\nrate = \"5Mbit\"\nphase = \"60s\"";
    let results = results_of(&file(ONE, learnt, "warmup = \"5s\"\nduration = \"30s\""));
    let measured = &results.manifest.measured["users"];
    assert!((measured.down_bps / 5e6 - 1.0).abs() < 0.05, "{measured:?}");
    let runs = carried(&results, "users");
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    assert!((mean / 5e6 - 1.0).abs() < 0.1, "{runs:?}");
    let notes = results.manifest.run_warnings.iter();
    let same: Vec<u32> = notes
        .filter(|w| w.warning.code == Code::SamePhase)
        .map(|w| w.cell.replication)
        .collect();
    assert_eq!(same, [1]);
}

/// Pieces of runs are shorter than sixteen times the timescale, so whole runs are measured.
#[test]
fn a_background_with_energy_at_a_long_timescale_is_measured() {
    let poisson = "[[background]]\nname = \"slow\"\nkind = \"poisson\"\nrate = \"500kbit\"\nload = \"carried\"\nenergy = { at = \"1024ms\", db = 6 }";
    let results = results_of(&file(ONE, poisson, "warmup = \"2s\"\nduration = \"20s\""));
    let measured = &results.manifest.measured["slow"];
    assert!((measured.down_bps / 5e5 - 1.0).abs() < 0.05, "{measured:?}");
}

#[test]
fn packets_that_flow_up_only_miss_no_rate() {
    let up = "[[background]]\nname = \"up\"\nkind = \"cbr\"\ntransport = \"tcp\"\nrate = \"0Mbit\"\nrate_up = \"5Mbit\"";
    let results = results_of(&file(ONE, up, SHORT));
    let missed = |w: &&swell_base::Warning| w.code == Code::RateMissed;
    assert!(results.manifest.warnings.iter().find(missed).is_none());
    let measured = &results.manifest.measured["up"];
    assert!((measured.up_bps / 5e6 - 1.0).abs() < 0.05, "{measured:?}");
}

/// With whole first periods, 145 % of the rate would be sent in this fifth of a second.
#[test]
fn on_off_sources_have_their_rate_from_the_beginning() {
    let many =
        "[[background]]\nname = \"many\"\nkind = \"on-off\"\nrate = \"10Mbit\"\nsources = 10000";
    let run = "warmup = \"0s\"\nduration = \"1s\"\nbins = \"100ms\"";
    let (_, observed) = run_of(&file(ONE, many, run), 0);
    let window =
        |b: &&crate::observe::Bin| b.direction == Direction::Down && (0.69..0.89).contains(&b.time);
    let bytes: u64 = (observed.bins.iter().filter(window))
        .map(|b| b.arrived[1])
        .sum();
    let rate = bytes as f64 * 8.0 / 0.2;
    assert!((rate / 10e6 - 1.0).abs() < 0.2, "{rate}");
}

/// The only server of the tiny model sends 2 Mbit/s.
#[test]
fn an_access_below_the_rate_of_a_host_is_a_doubt() {
    for (access, doubts) in [("1Mbit", true), ("3Mbit", false)] {
        let learnt = format!(
            "[[background]]\nname = \"users\"\nkind = \"learnt\"\nmodel = \"tiny.json\"\naccess = \"{access}\""
        );
        let plan = resolve(&file(ONE, &learnt, SHORT));
        let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).expect("a run");
        let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
        let codes: Vec<&str> = observed.warnings.iter().map(|w| w.code.as_str()).collect();
        assert_eq!(codes.contains(&"narrow-access"), doubts, "{codes:?}");
    }
}

/// A replay of a background that sends in windows has its windows.
#[test]
fn windows_are_replayed_as_windows() {
    let parts = "[[background]]\nname = \"windowed\"\nkind = \"cbr\"\nrate = \"5Mbit\"\nactive = { from = \"2s\", on = \"3s\", off = \"3s\" }\n\
        [[background]]\nname = \"again\"\nkind = \"replay\"\nof = \"windowed\"\nphase = \"0s\"";
    let plan = resolve(&file(ONE, parts, SHORT));
    let mut cells = plan.cells.iter();
    let cell = cells.find(|c| c.background == "again").expect("it is run");
    let spec = plan.spec(cell, &BTreeMap::new()).expect("a run");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("it runs");
    let bytes = |from: f64, to: f64| -> u64 {
        let bins = observed
            .bins
            .iter()
            .filter(|b| b.direction == Direction::Down);
        let within = bins.filter(|b| b.time >= from - 1e-9 && b.time < to - 1e-9);
        within.map(|b| b.arrived[1]).sum()
    };
    // The capture begins after the warm-up of two seconds.
    assert_eq!(bytes(3.1, 6.0), 0);
    assert!(bytes(0.1, 3.0) > 1_700_000 && bytes(6.1, 9.0) > 1_700_000);
    assert_eq!(spec.duration, Dur::from_secs(12));
}
