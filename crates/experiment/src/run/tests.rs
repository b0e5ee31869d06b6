mod clearing;
mod loads;
mod shards;
mod spoilt;

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::own::CELL_FACTS;
use super::*;
use crate::kinds::{Data, PacketsTraffic, SessionsTraffic};
use crate::made_up::MadeUp;
use crate::store::Measured;
use crate::test_support::{experiment, model};

/// The model of the learnt background.
fn read_model(plan: &Plan) -> &swell_traffic::Model {
    match &plan.inputs["learnt"].data {
        Data::Model(model) => &model.model,
        other => panic!("{other:?}"),
    }
}

fn plan(scratch: &TempDir, text: &str) -> Plan {
    std::fs::write(scratch.path().join("tiny.json"), model(20_000_000)).unwrap();
    match Plan::resolve(text, "x.toml", scratch.path()) {
        Ok(plan) => plan,
        Err(problems) => panic!("{problems}"),
    }
}

fn options(scratch: &TempDir, name: &str, threads: usize) -> Options {
    Options {
        dir: scratch.path().join(name),
        threads,
        fresh: false,
        shard: None,
    }
}

fn complete(plan: &Plan, options: &Options) -> Results {
    match run(plan, &MadeUp::default(), options, &|_| {}, &|| false) {
        Ok(RunOutcome::Complete(results)) => *results,
        other => panic!("{other:?}"),
    }
}

/// The mean rates that the background of a run offers, up and down, bits per second.
fn offered(spec: &RunSpec) -> [f64; 2] {
    let offered = crate::backend::offered(spec).expect("traffic that can be built");
    offered.expect("a known rate").mean
}

/// All tables as bytes.
fn tables(dir: &Path) -> Vec<Vec<u8>> {
    crate::store::TABLES
        .iter()
        .map(|t| std::fs::read(dir.join(format!("{t}.parquet"))).unwrap())
        .collect()
}

#[test]
fn tables_do_not_depend_on_the_number_of_threads() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(4));
    let mut seen = Vec::new();
    for threads in [1, 2, 5] {
        let options = options(&scratch, &format!("t{threads}"), threads);
        complete(&plan, &options);
        seen.push(tables(&options.dir));
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

#[test]
fn an_interrupted_run_keeps_what_is_finished_and_goes_on_from_there() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(4));
    let whole = options(&scratch, "whole", 2);
    complete(&plan, &whole);

    let cut = options(&scratch, "cut", 2);
    let done = AtomicUsize::new(0);
    let count = |event: Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            done.fetch_add(1, Ordering::SeqCst);
        }
    };
    let stop = || done.load(Ordering::SeqCst) >= 3;
    let slow = MadeUp {
        pause: Duration::from_millis(20),
    };
    let ended = run(&plan, &slow, &cut, &count, &stop).unwrap();
    let RunOutcome::Interrupted { finished, runs, .. } = ended else {
        panic!("{ended:?}")
    };
    assert!((3..runs).contains(&finished), "{finished} of {runs}");
    assert!(
        Results::load(&cut.dir)
            .unwrap_err()
            .to_string()
            .contains("not finished")
    );

    let again = AtomicUsize::new(0);
    let count_again = |event: Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            again.fetch_add(1, Ordering::SeqCst);
        }
    };
    let ended_again = run(&plan, &slow, &cut, &count_again, &|| false).unwrap();
    assert!(matches!(ended_again, RunOutcome::Complete(_)));
    assert_eq!(again.load(Ordering::SeqCst), runs - finished);
    assert!(tables(&whole.dir) == tables(&cut.dir));
}

#[test]
fn what_was_measured_is_kept_when_measuring_is_interrupted() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(12));
    let options = options(&scratch, "cut", 1);
    let shares = std::sync::Mutex::new(0.0);
    let watch = |event: Event<'_>| {
        if let Event::Progress(done) = event {
            *shares.lock().unwrap() = done;
        }
    };
    let stop = || *shares.lock().unwrap() >= 2.0;
    let ended = run(&plan, &MadeUp::default(), &options, &watch, &stop).unwrap();
    let RunOutcome::Interrupted {
        finished,
        runs,
        measured,
    } = ended
    else {
        panic!("{ended:?}")
    };
    assert_eq!((finished, runs, measured), (0, 36, 2));
}

#[test]
fn a_finished_run_is_not_run_again() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let options = options(&scratch, "r", 2);
    let first = complete(&plan, &options);
    let ran = AtomicUsize::new(0);
    let count = |_: Event<'_>| {
        ran.fetch_add(1, Ordering::SeqCst);
    };
    let ended = run(&plan, &MadeUp::default(), &options, &count, &|| false).unwrap();
    let RunOutcome::Complete(second) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(first.manifest, second.manifest);
}

#[test]
fn another_experiment_in_the_directory_is_refused_and_named() {
    let scratch = tempfile::tempdir().unwrap();
    let first = plan(&scratch, &experiment(2));
    let mut options = options(&scratch, "r", 1);
    complete(&first, &options);
    let other = plan(&scratch, &experiment(2).replace("20Mbit", "30Mbit"));
    let failure = run(&other, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
    let text = failure.to_string();
    assert!(
        text.contains("network.rate: there \"20Mbit\", here \"30Mbit\""),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");
    // With `fresh` it starts over, but keeps other files in the directory.
    std::fs::write(options.dir.join("notes.txt"), "mine").unwrap();
    options.fresh = true;
    complete(&other, &options);
    assert!(options.dir.join("notes.txt").exists());
}

#[test]
fn sessions_are_scaled_until_the_rate_is_reached_and_others_match_it() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(12));
    let results = complete(&plan, &options(&scratch, "r", 2));
    let learnt = &results.manifest.measured["learnt"];
    assert_eq!(learnt.target_bps, Some(8e6));
    assert!((learnt.down_bps / 8e6 - 1.0).abs() < 0.02, "{learnt:?}");
    // The made-up load grows with the 0.9th power of sessions, from the model's own at 1.
    let native = read_model(&plan).rates()[1];
    let expected = (8e6f64 / native).powf(1.0 / 0.9);
    assert!(
        (learnt.sessions.unwrap() / expected - 1.0).abs() < 0.05,
        "{learnt:?}"
    );
    let spec = plan
        .spec(&results.runs[12].cell, &results.manifest.measured)
        .unwrap();
    let rates = offered(&spec);
    assert!((rates[1] - learnt.down_bps).abs() <= 1.0);
    assert!((rates[0] - learnt.up_bps).abs() <= 1.0);
    assert!(
        !results
            .manifest
            .warnings
            .iter()
            .any(|w| w.code == Code::RateMissed)
    );
}

/// A saturated link: no number of sessions reaches the target.
struct Saturated;

impl Backend for Saturated {
    fn name(&self) -> &'static str {
        "saturated"
    }
    fn run(
        &self,
        spec: &crate::RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<crate::observe::Observations, RunError> {
        let mut observed = MadeUp::default().run(spec, progress, cancelled)?;
        for link in &mut observed.links {
            link.departed[1] = link.departed[1].min((5e6 / 8.0 * link.duration) as u64);
        }
        Ok(observed)
    }
}

#[test]
fn a_rate_out_of_reach_is_a_doubt() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let ended = run(
        &plan,
        &Saturated,
        &options(&scratch, "r", 1),
        &|_| {},
        &|| false,
    )
    .unwrap();
    let RunOutcome::Complete(results) = ended else {
        panic!("{ended:?}")
    };
    let doubt = results
        .manifest
        .warnings
        .iter()
        .find(|w| w.code == Code::RateMissed)
        .unwrap();
    let said = &doubt.message;
    assert!(said.contains("8.00 Mbit/s were asked for"), "{said}");
    assert!(said.contains("the network carries no more"), "{said}");
    // The sessions offer the requested rate, and no more.
    let learnt = &results.manifest.measured["learnt"];
    // The carried share of a few draws times the mean of all draws: close to the 5 Mbit/s that are carried.
    assert!(learnt.expected_bps.unwrap() < 5.2e6, "{learnt:?}");
    let nominal = 8e6 / read_model(&plan).rates()[1];
    assert!(
        (learnt.sessions.unwrap() / nominal - 1.0).abs() < 1e-6,
        "{learnt:?}"
    );
}

/// A backend that fails at one run.
struct Broken;

impl Backend for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn run(
        &self,
        spec: &crate::RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<crate::observe::Observations, RunError> {
        if spec.cell.background == "poisson" && spec.cell.replication == 1 {
            return Err(RunError::Failed("the link caught fire".into()));
        }
        MadeUp::default().run(spec, progress, cancelled)
    }
}

#[test]
fn a_failed_run_is_named_and_the_finished_ones_are_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let options = options(&scratch, "r", 1);
    let failure = run(&plan, &Broken, &options, &|_| {}, &|| false).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "web against poisson, replication 1: the link caught fire"
    );
    // The first block of three conditions ran before the second one, in which a run fails.
    let cells = std::fs::read_dir(options.dir.join("cells")).unwrap();
    assert!((3..6).contains(&cells.count()));
}

/// Results of an experiment in which a run failed: finished runs, measurements and an unfinished manifest.
fn cut_short(scratch: &TempDir, options: &Options) {
    let first = plan(scratch, &experiment(2));
    run(&first, &Broken, options, &|_| {}, &|| false).unwrap_err();
    assert!(
        std::fs::read_dir(options.dir.join("cells"))
            .unwrap()
            .count()
            >= 3
    );
}

#[test]
fn a_result_is_that_of_its_run() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(&scratch, "r", 1);
    cut_short(&scratch, &options);
    let mut cells = std::fs::read_dir(options.dir.join("cells")).unwrap();
    let facts = cells.next().unwrap().unwrap().path().join(CELL_FACTS);
    let text = std::fs::read_to_string(&facts).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["cell"]["seed"] = 99.into();
    std::fs::write(&facts, json.to_string()).unwrap();
    /// The name of [`Broken`], so that the experiment's hash is the same.
    struct Repaired;
    impl Backend for Repaired {
        fn name(&self) -> &'static str {
            Broken.name()
        }
        fn run(
            &self,
            spec: &crate::RunSpec,
            progress: &dyn Fn(f64),
            cancelled: &dyn Fn() -> bool,
        ) -> Result<crate::observe::Observations, RunError> {
            MadeUp::default().run(spec, progress, cancelled)
        }
    }
    let plan = plan(&scratch, &experiment(2));
    let failure = run(&plan, &Repaired, &options, &|_| {}, &|| false).unwrap_err();
    let said = failure.to_string();
    assert!(said.contains("a result of another run"), "{said}");
    // Without it the run is done again.
    let cell = facts.parent().unwrap();
    let advice = format!("delete {}, and it is done again", cell.display());
    assert!(said.ends_with(&advice), "{said}");
    std::fs::remove_dir_all(cell).unwrap();
    run(&plan, &Repaired, &options, &|_| {}, &|| false).unwrap();
}

#[test]
fn only_measurements_count_as_measured() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(&scratch, "r", 1);
    cut_short(&scratch, &options);
    let measured = options.dir.join("measured");
    let before = std::fs::read_dir(&measured).unwrap().count();
    assert!(before > 0);
    std::fs::write(measured.join("2-0-0000000000000000.partial"), "{").unwrap();
    let progress = Progress::of(&options.dir).unwrap();
    assert_eq!(progress.measured, before);
    assert!((3..6).contains(&progress.finished.iter().filter(|&&f| f).count()));
}

#[test]
fn the_run_directory_is_an_experiment_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let first = plan(&scratch, &experiment(2));
    let options = options(&scratch, "r", 1);
    complete(&first, &options);
    let text = std::fs::read_to_string(options.dir.join("experiment.toml")).unwrap();
    let again = Plan::resolve(&text, "experiment.toml", &options.dir).unwrap();
    assert_eq!(again.cells, first.cells);
    assert_eq!(
        again.inputs["learnt"].facts.hash,
        first.inputs["learnt"].facts.hash
    );
}

#[test]
fn seeds_are_equal_in_every_background() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(3));
    for cell in &plan.cells {
        assert_eq!(cell.seed, 7 + u64::from(cell.replication));
    }
    assert_eq!(plan.cells.len(), 9);
}

#[test]
fn a_queue_in_bdp_is_resolved_with_the_round_trip() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(1));
    // 20 Mbit/s times 40 ms are 100 000 bytes.
    assert_eq!(plan.links()[0].directions[1].queue.to_string(), "100kB");
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    // 40 ms minus twice 10 ms, divided by four crossings.
    assert_eq!(spec.foreground.unwrap().delay().to_string(), "5ms");
}

/// Hosts of a data centre are as near to their switch as it is to others, in the file that a run keeps, too.
#[test]
fn access_paths_of_a_leaf_spine_are_short() {
    let scratch = tempfile::tempdir().unwrap();
    let path = "path = [\"leaf1-spine1\", \"leaf2-spine1 reversed\"]";
    let text = format!(
        "name = \"x\"\nnetwork = {{ preset = \"leaf-spine\", rate = \"1Gbit\" }}\n[[foreground]]\nname = \"f\"\nkind = \"web\"\nobject = \"64kB\"\n{path}\n\
         [[background]]\nname = \"b\"\nkind = \"poisson\"\nrate = \"100Mbit\"\n{path}\n\
         [[background]]\nname = \"right\"\nkind = \"poisson\"\nrate = \"100Mbit\"\ndelay_right = \"1us\"\n{path}\n\
         [[background]]\nname = \"sessions\"\nkind = \"sessions\"\nmodel = \"access-hour\"\n{path}\n[run]\nduration = \"12s\"\n"
    );
    let first = plan(&scratch, &text);
    let mut written = first.file.clone();
    written.write_out();
    // A run keeps the model beside its file.
    let kept = written.to_toml();
    let kept = kept.replace("models/2-access-hour.json.zst", "access-hour");
    for plan in [first, plan(&scratch, &kept)] {
        let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
        let delays = spec.background.iter().map(|b| b.traffic.delay());
        let delays: Vec<String> = delays
            .chain(spec.foreground.iter().map(|f| f.traffic.delay()))
            .map(|delay| delay.to_string())
            .collect();
        assert_eq!(delays, ["5us", "5us"]);
        // Four crossings of access paths and four of links.
        assert_eq!(plan.rtt().to_string(), "40us");
        let of = |name: &str| {
            let cell = plan.cells.iter().find(|c| c.background == name).unwrap();
            let own = plan.spec(cell, &BTreeMap::new()).unwrap();
            own.background[0].traffic.clone()
        };
        let (right, sessions) = (of("right"), of("sessions"));
        let right = (&*right as &dyn Any).downcast_ref::<PacketsTraffic>();
        let right = right.expect("packets");
        let sessions = (&*sessions as &dyn Any).downcast_ref::<SessionsTraffic>();
        let sessions = sessions.expect("sessions");
        assert_eq!(right.delays.map(|d| d.to_string()), ["5us", "1us"]);
        assert_eq!(sessions.delay.to_string(), "5us");
        let listed = plan.file.background.iter().find(|b| b.name() == "right");
        let mean = listed.and_then(|b| b.delay(&plan.file.network));
        assert_eq!(mean.map(|d| d.to_string()).as_deref(), Some("3us"));
    }
}

#[test]
fn a_queue_that_nobody_chose_holds_ten_packets_at_least() {
    let scratch = tempfile::tempdir().unwrap();
    let slow = experiment(1)
        .replace("rate = \"20Mbit\"", "rate = \"1Mbit\"")
        .replace("rate = \"8Mbit\"", "rate = \"800kbit\"");
    // One bandwidth-delay product is 5000 bytes: three packets.
    let queues = |text: &str| {
        let links = plan(&scratch, text).links();
        links[0].directions.each_ref().map(|l| l.queue.to_string())
    };
    assert_eq!(queues(&slow), ["15kB", "15kB"]);
    let chosen = slow.replace("rate = \"1Mbit\"", "rate = \"1Mbit\"\nqueue = \"1BDP\"");
    assert_eq!(queues(&chosen), ["5kB", "5kB"]);
    let one = slow.replace(
        "rate = \"1Mbit\"",
        "rate = \"1Mbit\"\ndown = { queue = \"1BDP\" }",
    );
    assert_eq!(queues(&one), ["15kB", "5kB"]);
}

#[test]
fn an_unknown_model_is_a_problem_of_its_line() {
    let scratch = tempfile::tempdir().unwrap();
    let text = experiment(1).replace("tiny.json", "tine.json");
    let problems = Plan::resolve(&text, "x.toml", scratch.path()).unwrap_err();
    let shown = problems.to_string();
    assert!(
        shown.contains("no bundled model and no file is called `tine.json`"),
        "{shown}"
    );
    assert!(shown.contains("(key background[2].model)"), "{shown}");
    std::fs::write(scratch.path().join("tine.json"), "{").unwrap();
    let damaged = Plan::resolve(&text, "x.toml", scratch.path())
        .unwrap_err()
        .to_string();
    assert!(damaged.contains("model `tine.json`: "), "{damaged}");
}

#[test]
fn backgrounds_to_measure_are_the_matched_and_the_scaled() {
    let scratch = tempfile::tempdir().unwrap();
    let names = |text: &str| -> Vec<String> {
        let plan = plan(&scratch, text);
        plan.to_measure()
            .iter()
            .map(|b| b.name().to_owned())
            .collect()
    };
    assert_eq!(names(&experiment(1)), ["learnt"]);
    let fixed = experiment(1)
        .replace("match:learnt", "5Mbit")
        .replace("rate = \"8Mbit\"", "");
    assert_eq!(names(&fixed), Vec::<String>::new());
}

#[test]
fn a_matched_rate_is_the_mean_or_that_of_the_seed() {
    let scratch = tempfile::tempdir().unwrap();
    let measured = std::collections::BTreeMap::from([(
        "learnt".to_owned(),
        Measured {
            up_bps: 2e5,
            down_bps: 2e6,
            up_bps_each: vec![1e5, 2e5, 3e5],
            down_bps_each: vec![1e6, 2e6, 3e6],
            ..Measured::default()
        },
    )]);
    let rates = |text: &str| -> Vec<[u64; 2]> {
        let plan = plan(&scratch, text);
        let cells = plan.cells.iter().filter(|c| c.background == "poisson");
        let spec = cells.map(|cell| plan.spec(cell, &measured).unwrap());
        spec.map(|spec| offered(&spec).map(|bps| bps as u64))
            .collect()
    };
    let mean = experiment(3);
    assert_eq!(rates(&mean), [[200_000, 2_000_000]; 3]);
    let own = "rate = \"match:learnt\"";
    let paired = mean.replace(own, &format!("{own}\nmatch = \"per-seed\""));
    let expected = [
        [100_000, 1_000_000],
        [200_000, 2_000_000],
        [300_000, 3_000_000],
    ];
    assert_eq!(rates(&paired), expected);
    // Without a match to another background there are no pairs.
    let alone = paired.replace(own, "rate = \"5Mbit\"");
    let problems = Plan::resolve(&alone, "x.toml", scratch.path()).unwrap_err();
    assert!(
        problems.to_string().contains("no other background"),
        "{problems}"
    );
}

#[test]
fn every_kind_takes_the_rate_of_another() {
    let scratch = tempfile::tempdir().unwrap();
    let more = r#"
[[background]]
name = "again"
kind = "learnt"
model = "tiny.json"
rate = "match:learnt"
[[background]]
name = "bursts"
kind = "on-off"
rate = "match:learnt"
[[background]]
name = "even"
kind = "cbr"
rate = "4Mbit"
load = "carried"
[run]
"#;
    let plan = plan(&scratch, &experiment(4).replace("[run]\n", more));
    let measured = complete(&plan, &options(&scratch, "r", 2))
        .manifest
        .measured;
    let learnt = measured["learnt"].down_bps;
    assert_eq!(measured["again"].target_bps, Some(learnt));
    assert!(
        (measured["again"].down_bps / learnt - 1.0).abs() < 0.1,
        "{measured:?}"
    );
    let cell = plan
        .cells
        .iter()
        .find(|c| c.background == "bursts")
        .unwrap();
    let spec = plan.spec(cell, &measured).unwrap();
    assert!((offered(&spec)[1] - learnt).abs() <= 1.0);
    // Packets with a requested carried rate are measured and scaled.
    assert_eq!(measured["even"].target_bps, Some(4e6));
    assert!(measured["even"].factor.is_some());
    assert_eq!(measured["again"].factor, None);
}
