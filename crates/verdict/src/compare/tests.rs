use std::path::{Path, PathBuf};

use swell_stats::PairedRatio;

use super::super::{request_observations, valid_runs};
use super::*;
use swell_experiment::run::{Options, RunOutcome, run};
use swell_experiment::{Plan, Simulator};

fn results(dir: &Path, rate: &str, seed: u64, replications: u32) -> Results {
    let text = format!(
        r#"
name = "compared"
[network]
rate = "{rate}"
delay = "5ms"
[[foreground]]
name = "web"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "2Mbit"
[run]
warmup = "1s"
duration = "6s"
seed = {seed}
replications = {replications}
"#
    );
    simulated(&text, dir.join(format!("{rate}-{seed}-{replications}")))
}

fn simulated(text: &str, dir: PathBuf) -> Results {
    let plan = Plan::resolve(text, "test", Path::new("")).unwrap();
    let options = Options {
        dir,
        threads: 1,
        fresh: false,
        shard: None,
    };
    match run(&plan, &Simulator, &options, &|_| {}, &|| false).unwrap() {
        RunOutcome::Complete(results) => *results,
        other => panic!("{other:?}"),
    }
}

fn of(first: &Results, second: &Results) -> RunComparison {
    RunComparison::of([first, second], ["a", "b"])
}

/// The ratio of the median beside Poisson traffic.
fn median(c: &RunComparison) -> Estimate {
    let mut all = c.conditions.iter();
    let beside = all.find(|own| own.background == "poisson").unwrap();
    let mut judged = beside.judged.iter();
    let median = judged.find(|j| j.statistic == judge::Statistic::Percentile(0.5));
    median.unwrap().ratio
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let scratch = tempfile::tempdir().unwrap();
    let one = results(scratch.path(), "10Mbit", 1, 5);
    let c = of(&one, &one);
    assert!(c.changes.is_empty() && c.paired);
    assert_eq!(c.differs, Answer::No, "{c:?}");
    assert!(c.equal_tables.contains(&"requests".to_owned()), "{c:?}");
    let ratios = c.conditions.iter().flat_map(|own| &own.judged);
    assert!(ratios.clone().count() > 0);
    assert!(ratios.clone().all(|j| j.ratio.value == 1.0 && j.equal));
}

/// A key that changes nothing leaves the tables as they are, and other seeds do not.
#[test]
fn tables_that_are_equal_bit_for_bit_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let one = results(scratch.path(), "10Mbit", 1, 1);
    let again = results(&scratch.path().join("again"), "10Mbit", 1, 1);
    let tables = of(&one, &again).equal_tables;
    assert!(tables.is_sorted() && tables.len() > 2, "{tables:?}");
    let other = results(scratch.path(), "10Mbit", 2, 1);
    let others = of(&one, &other).equal_tables;
    assert!(!others.contains(&"requests".to_owned()), "{others:?}");
}

#[test]
fn what_a_slower_link_does_is_the_verdicts_statistic_of_pairs_of_equal_seed() {
    let scratch = tempfile::tempdir().unwrap();
    let fast = results(scratch.path(), "10Mbit", 1, 5);
    let slow = results(scratch.path(), "5Mbit", 1, 5);
    let c = of(&fast, &slow);
    assert!(c.paired);
    assert_eq!(c.differs, Answer::Yes);
    let [change] = &c.changes[..] else {
        panic!("{:?}", c.changes)
    };
    assert_eq!(change.key, "network.rate");
    assert_eq!(
        (change.first.as_deref(), change.second.as_deref()),
        (Some("10Mbit"), Some("5Mbit"))
    );
    assert_eq!(
        c.beside("network.rate").count() + c.beside("network").count(),
        0
    );
    assert_eq!(c.beside("network.queue").count(), 1);
    let [one, other] =
        [&fast, &slow].map(|r| request_observations(&valid_runs(r, "web", "poisson")));
    let by_hand = PairedRatio::of(&other, &one, 0.5).unwrap();
    let ratio = median(&c);
    assert_eq!(ratio.value, by_hand.value());
    assert_eq!((ratio.low, ratio.high), by_hand.interval(0.95));
    assert!(ratio.low > 1.1, "{ratio:?}");
    // The opposite comparison gives the inverse.
    let back = median(&of(&slow, &fast));
    assert!((back.value * ratio.value - 1.0).abs() < 1e-9);
}

#[test]
fn seeds_decide_what_is_a_pair() {
    let scratch = tempfile::tempdir().unwrap();
    let one = results(scratch.path(), "10Mbit", 1, 5);
    // Seeds 2 to 4 are three of the five, at other positions.
    let some = results(scratch.path(), "10Mbit", 2, 3);
    let c = of(&one, &some);
    assert!(c.paired);
    let ratios = c.conditions.iter().flat_map(|own| &own.judged);
    assert!(
        ratios
            .clone()
            .all(|j| j.ratio.value == 1.0 && j.ratio.replications == 3)
    );
    assert_eq!(c.conditions[0].replications, [3, 3]);
    assert!(c.doubts.iter().any(|d| d.code == Code::FewReplications));
    let tentative = "With only 3 replications all of this is tentative. ";
    assert!(c.said.text.starts_with(tentative), "{}", c.said.text);
    // Seeds 4 to 11 share only two of five, so there are no pairs, and all replications of both count.
    let others = results(scratch.path(), "10Mbit", 4, 8);
    let apart = of(&one, &others);
    assert!(!apart.paired && apart.changes.is_empty());
    assert_eq!(apart.seeds_in_common, 2);
    // Seeds 4 to 11 and 6 to 13 share six of eight.
    let most = of(&others, &results(scratch.path(), "10Mbit", 6, 8));
    assert!(most.paired && most.seeds_in_common == 6);
    assert_eq!(most.conditions[0].replications, [6, 6]);
    assert_eq!(apart.conditions[0].replications, [5, 8]);
    assert_ne!(apart.differs, Answer::Yes, "{apart:?}");
    let [a, b] = [&one, &others].map(|r| request_observations(&valid_runs(r, "web", "poisson")));
    let by_hand = PairedRatio::independent(&b, &a, 0.5).unwrap();
    assert_eq!(median(&apart).value, by_hand.value());
}

#[test]
fn more_than_one_change_is_a_doubt_and_what_one_lacks_is_one_change() {
    let scratch = tempfile::tempdir().unwrap();
    let one = results(scratch.path(), "10Mbit", 1, 2);
    let mut other = results(scratch.path(), "5Mbit", 1, 2);
    assert!(
        of(&one, &other)
            .doubts
            .iter()
            .all(|d| d.code != Code::SeveralChanges)
    );
    // A background that only one experiment has is not compared, so it explains no difference.
    other.experiment.background.pop();
    let c = of(&one, &other);
    let keys: Vec<&str> = c.changes.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["background.poisson", "network.rate"]);
    assert_eq!(c.changes[0].first.as_deref(), Some("poisson"));
    assert_eq!(c.changes[0].second, None);
    assert_eq!(c.conditions.len(), 1);
    assert!(c.doubts.iter().all(|d| d.code != Code::SeveralChanges));
    other.manifest.version = "another".into();
    let more = of(&one, &other);
    let doubt = more
        .doubts
        .iter()
        .find(|d| d.code == Code::SeveralChanges)
        .unwrap();
    assert!(
        doubt.message.contains("network.rate, version"),
        "{}",
        doubt.message
    );
}

/// A measure that one of the runs defines in another way is not compared, and that is said.
#[test]
fn measures_that_are_not_the_same_leave_the_answer_open() {
    let dir = tempfile::tempdir().unwrap();
    let first = results(dir.path(), "20Mbit", 1, 5);
    let mut second = results(dir.path(), "20Mbit", 6, 5);
    second.manifest = first.manifest.clone();
    let c = of(&first, &first);
    assert_eq!(c.differs, Answer::No, "{}", c.said.text);
    let probe = swell_experiment::file::read(
        "name = \"x\"\nnetwork = { rate = \"20Mbit\", delay = \"5ms\" }\nforeground = [{ name = \"web\", kind = \"page\" }]\n\
         background = [{ name = \"none\", kind = \"none\" }]\n",
        "x",
    );
    let mut other = first;
    let same = RunComparison::of([&other, &other], ["a", "b"]);
    assert_eq!(same.differs, Answer::No);
    other.manifest.backend = MadeUp::NAME.into();
    let made_up = RunComparison::of([&other, &other], ["a", "b"]);
    assert!(
        made_up
            .said
            .text
            .starts_with("Every number of a and b is made up.")
    );
    assert!(made_up.doubts.iter().any(|d| d.code == Code::MadeUp));
    second.experiment.foreground = probe.unwrap().foreground;
    let apart = RunComparison::of([&other, &second], ["a", "b"]);
    let open = &apart.conditions[0].open;
    assert!(
        open.iter()
            .any(|o| o == "first byte is not measured in the same way in both"),
        "{open:?}"
    );
}

/// A foreground that takes another path is looked for there.
#[test]
fn each_run_is_read_at_its_own_path() {
    let scratch = tempfile::tempdir().unwrap();
    let over = |path: &str| {
        let text = format!(
            r#"
name = "path"
[network]
rtt = "40ms"
[[links]]
name = "x"
rate = "10Mbit"
delay = "5ms"
[[links]]
name = "y"
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "bulk"
kind = "greedy"
path = ["{path}"]
[[background]]
name = "none"
kind = "none"
[[background]]
name = "both"
kind = "poisson"
rate = "1Mbit"
[run]
replications = 5
warmup = "1s"
duration = "2s"
"#
        );
        simulated(&text, scratch.path().join(path))
    };
    let c = of(&over("x"), &over("y"));
    let goodput = c.conditions[0]
        .judged
        .iter()
        .find(|j| j.measure == "goodput");
    assert_eq!(goodput.unwrap().ratio.value, 1.0, "{c:?}");
    assert_ne!(c.differs, Answer::Yes);
}

/// Run directories of earlier versions, and emulated ones, do not say which bytes were of use.
#[test]
fn bytes_of_use_are_not_compared_with_packets() {
    let scratch = tempfile::tempdir().unwrap();
    let text = r#"
name = "bulk"
network = { rate = "10Mbit", rtt = "40ms" }
foreground = [{ name = "bulk", kind = "greedy", tcp = { mss = "300B" } }]
background = [{ name = "none", kind = "none" }]
run = { replications = 5, warmup = "1s", duration = "3s" }
"#;
    let new = simulated(text, scratch.path().join("bulk"));
    let mut old = new.clone();
    for run in &mut old.runs {
        run.observed.measures.clear();
    }
    let goodput = |first, second| {
        let c = of(first, second);
        assert_ne!(c.differs, Answer::Yes, "{c:?}");
        let judged = c.conditions[0].judged.clone();
        let own = judged.into_iter().find(|j| j.measure == "goodput").unwrap();
        assert_eq!(own.ratio.value, 1.0, "{own:?}");
        own.with.unwrap().value
    };
    let packets = goodput(&old, &new);
    assert_eq!(packets, goodput(&old, &old));
    assert!(goodput(&new, &new) < 0.9 * packets);
}

/// Two runs whose foregrounds have no name in common.
#[test]
fn nothing_in_common_is_not_settled() {
    let scratch = tempfile::tempdir().unwrap();
    let one = results(scratch.path(), "10Mbit", 1, 2);
    let mut other = one.clone();
    let named = one
        .experiment_toml
        .replace("name = \"web\"", "name = \"other\"");
    other.experiment.foreground = swell_experiment::file::read(&named, "x")
        .unwrap()
        .foreground;
    let c = of(&one, &other);
    assert!(c.conditions.is_empty());
    assert_eq!(c.differs, Answer::Unclear);
    assert_eq!(c.said.text, "Whether b differs from a is not settled.");
}
