//! Rates of backgrounds: what calibration finds is what runs carry.

use swell_base::Dur;

use super::*;
use crate::made_up::MadeUp;
use crate::run::{self, Ended, Options};
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
        Ok(Ended::Complete(results)) => *results,
        other => panic!("{other:?}"),
    }
}

/// Background bits per second that left the first link down, in each run of a background.
fn carried(results: &Results, background: &str) -> Vec<f64> {
    let runs = (results.runs.iter()).filter(|r| r.cell.background == background);
    runs.map(|r| {
        let links = r.observed.links.iter();
        let down = links.clone().find(|l| l.direction == 1).expect("a link");
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

/// With whole first periods, 145 % of the rate would be sent in this fifth of a second.
#[test]
fn on_off_sources_have_their_rate_from_the_beginning() {
    let many =
        "[[background]]\nname = \"many\"\nkind = \"on-off\"\nrate = \"10Mbit\"\nsources = 10000";
    let run = "warmup = \"0s\"\nduration = \"1s\"\nbins = \"100ms\"";
    let (_, observed) = run_of(&file(ONE, many, run), 0);
    let window = |b: &&crate::observe::Bin| b.direction == 1 && (0.69..0.89).contains(&b.time);
    let bytes: u64 = (observed.bins.iter().filter(window))
        .map(|b| b.arrived[1])
        .sum();
    let rate = bytes as f64 * 8.0 / 0.2;
    assert!((rate / 10e6 - 1.0).abs() < 0.2, "{rate}");
}
