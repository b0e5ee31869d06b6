//! What `fresh` removes, and whose inputs a plan has.

use super::*;
use crate::kinds::{Input, Traffic};

fn fresh(scratch: &TempDir) -> Options {
    Options {
        fresh: true,
        ..options(scratch, "r", 1)
    }
}

#[test]
fn results_of_an_unknown_experiment_are_not_taken_over() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(&scratch, "r", 1);
    cut_short(&scratch, &options);
    std::fs::remove_file(options.dir.join(Manifest::FILE)).unwrap();
    std::fs::create_dir(options.dir.join(RECORDS)).unwrap();
    let other = plan(&scratch, &experiment(2).replace("20Mbit", "30Mbit"));
    let failure = run(&other, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
    let text = failure.to_string();
    let said = "would write over experiment.toml, cells, measured, models";
    assert!(text.ends_with(said), "{text}");
    assert!(!options.dir.join(Manifest::FILE).exists());
    let fresh = Options {
        fresh: true,
        ..options.clone()
    };
    // Without a manifest, the directory need not be of runs only.
    let unknown = run(&other, &MadeUp::default(), &fresh, &|_| {}, &|| false).unwrap_err();
    assert!(matches!(unknown, Failure::Unknown { .. }), "{unknown}");
    for sub in ["cells", "measured", "models"] {
        std::fs::remove_dir_all(options.dir.join(sub)).unwrap();
    }
    std::fs::remove_file(options.dir.join("experiment.toml")).unwrap();
    complete(&other, &fresh);
    assert!(options.dir.join(RECORDS).exists());
    let clean = super::options(&scratch, "clean", 1);
    complete(&other, &clean);
    assert!(tables(&options.dir) == tables(&clean.dir));
    // Tables alone are results, too.
    std::fs::remove_file(options.dir.join(Manifest::FILE)).unwrap();
    let again = run(&other, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
    assert!(again.to_string().contains("requests.parquet"), "{again}");
}

#[test]
fn an_interrupted_clearing_leaves_nothing_to_another_experiment() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(&scratch, "r", 1);
    cut_short(&scratch, &options);
    // What cannot be removed interrupts it.
    let obstacle = options.dir.join("requests.parquet");
    std::fs::create_dir(&obstacle).unwrap();
    let other = plan(&scratch, &experiment(2).replace("20Mbit", "30Mbit"));
    let fresh = Options {
        fresh: true,
        ..options.clone()
    };
    run(&other, &MadeUp::default(), &fresh, &|_| {}, &|| false).unwrap_err();
    assert!(
        std::fs::read_dir(options.dir.join("cells"))
            .unwrap()
            .count()
            >= 3
    );
    std::fs::remove_dir(&obstacle).unwrap();
    for text in [experiment(2), experiment(2).replace("20Mbit", "30Mbit")] {
        let resumed = plan(&scratch, &text);
        let failure = run(&resumed, &Broken, &options, &|_| {}, &|| false).unwrap_err();
        assert!(matches!(failure, Failure::Other { .. }), "{failure}");
    }
    complete(&other, &fresh);
    let clean = super::options(&scratch, "clean", 1);
    complete(&other, &clean);
    assert!(tables(&options.dir) == tables(&clean.dir));
}

/// Directories of the user may have names that runs use.
#[test]
fn a_directory_of_others_is_not_cleared() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(1));
    let options = fresh(&scratch);
    let own = ["models/own.json", "output/own.txt", "cells/own.txt"];
    for file in own.map(|file| options.dir.join(file)) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    let all_there = || own.iter().all(|file| options.dir.join(file).exists());
    let manifest = options.dir.join(Manifest::FILE);
    for foreign in [
        r#"{"name": "an extension", "version": "2.1"}"#,
        "{}",
        "[]",
        "no JSON",
        "",
    ] {
        std::fs::write(&manifest, foreign).unwrap();
        let failure = run(&plan, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
        let text = failure.to_string();
        assert!(
            text.contains("nothing in this directory is removed"),
            "{text}"
        );
        assert_eq!(std::fs::read_to_string(&manifest).unwrap(), foreign);
        assert!(all_there());
    }
    // Without a manifest, nothing says that these are results.
    std::fs::remove_file(&manifest).unwrap();
    let failure = run(&plan, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
    let text = failure.to_string();
    assert!(text.ends_with("over cells, models, output"), "{text}");
    assert!(all_there());
    // Where no name is taken, the directory is used, and what else is there stays.
    for sub in ["cells", "models", "output"] {
        std::fs::remove_dir_all(options.dir.join(sub)).unwrap();
    }
    let others = [
        "mine.toml",
        "notes/cells",
        "manifest.partial",
        "experiment.partial",
        "requests.partial",
    ];
    for name in others {
        std::fs::create_dir_all(options.dir.join(name).parent().unwrap()).unwrap();
        std::fs::write(options.dir.join(name), "mine").unwrap();
    }
    complete(&plan, &options);
    complete(&plan, &options);
    // An interrupted call left it.
    let temporary = options.dir.join(".swell-manifest.json.partial");
    std::fs::write(&temporary, "{").unwrap();
    complete(&plan, &options);
    assert!(!temporary.exists());
    for name in others {
        let kept = std::fs::read_to_string(options.dir.join(name)).unwrap();
        assert_eq!(kept, "mine", "{name}");
    }
}

/// A directory that is not the program's stays as it is, with and without `fresh`, and for shards.
#[test]
fn what_the_user_has_under_the_names_of_runs_is_not_written_over() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(1));
    for name in [
        "experiment.toml",
        "report.html",
        "flows.parquet",
        "models/own.json",
        "packets/own.pcap",
        "records",
        ".lock",
    ] {
        let dir = scratch.path().join(name.replace('/', "-"));
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "mine").unwrap();
        for (fresh, shard) in [(false, None), (true, None), (false, Shard::new(1, 2))] {
            let options = Options {
                dir: dir.clone(),
                threads: 1,
                fresh,
                shard,
            };
            let failure = run(&plan, &Broken, &options, &|_| {}, &|| false).unwrap_err();
            assert!(matches!(failure, Failure::Unknown { .. }), "{failure}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        }
    }
}

/// Files of the user's in a directory of runs.
#[test]
fn what_the_user_adds_to_a_run_directory_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let options = fresh(&scratch);
    let first = plan(&scratch, &experiment(1));
    cut_short(&scratch, &options);
    let own = [
        "cells/notes.txt",
        "measured/notes.txt",
        "models/own.json",
        "models/0-own.json",
        "output/notes.txt",
        "records/2024-notes.txt",
    ];
    for file in own.map(|file| options.dir.join(file)) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    let made = [
        "output/00000-a-b-0/log",
        "packets/00000-a-b-0.pcapng",
        "packets/00000-a-b-0.link.pcapng.partial",
        "records/00001-a-b-0.ipfix",
        "models/.swell-2-tiny.json.partial",
        "measured/.swell-2-0-0-run.json.partial",
        "shards/1-of-2/runs.json",
        "shards/1-of-2.lock",
    ];
    for file in made.map(|file| options.dir.join(file)) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
    }
    let there = |names: &[&str]| {
        let exists = |name: &&&str| options.dir.join(name).exists();
        names.iter().filter(exists).count()
    };
    assert_eq!(there(&["models/2-tiny.json"]), 1);
    let learnt = "[[background]]\nname = \"learnt\"\nkind = \"learnt\"\nmodel = \"tiny.json\"\nrate = \"8Mbit\"\n";
    let without = experiment(1).replace("match:learnt", "2Mbit");
    let other = plan(&scratch, &without.replace(learnt, ""));
    complete(&other, &options);
    assert_eq!(there(&own), own.len());
    assert_eq!(there(&made), 0);
    assert_eq!(there(&["models/2-tiny.json", "packets", "shards"]), 0);
    assert_eq!(
        std::fs::read_dir(options.dir.join("cells"))
            .unwrap()
            .count(),
        1
    );
    complete(&first, &options);
    assert_eq!(there(&own), own.len());
}

/// A call that ends between the manifest and the other files is resumed.
#[test]
fn a_directory_that_was_not_set_up_to_its_end_is_used() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(&scratch, "r", 1);
    cut_short(&scratch, &options);
    std::fs::remove_file(options.dir.join("experiment.toml")).unwrap();
    std::fs::remove_dir_all(options.dir.join("models")).unwrap();
    let again = plan(&scratch, &experiment(2));
    let failure = run(&again, &Broken, &options, &|_| {}, &|| false).unwrap_err();
    assert!(matches!(failure, Failure::Run { .. }), "{failure}");
    for name in ["experiment.toml", "models/2-tiny.json"] {
        assert!(options.dir.join(name).exists(), "{name}");
    }
}

/// Without the experiment, nothing says which copies of models the runs had.
#[test]
fn a_cleared_directory_has_the_models_of_its_new_run() {
    let scratch = tempfile::tempdir().unwrap();
    let options = fresh(&scratch);
    for damage in [None, Some("name = "), Some("")] {
        complete(&plan(&scratch, &experiment(1)), &options);
        let toml = options.dir.join("experiment.toml");
        match damage {
            None => std::fs::remove_file(&toml).unwrap(),
            Some(text) => std::fs::write(&toml, text).unwrap(),
        }
        // Another model, whose file is as long.
        let other = model(30_000_000);
        assert_eq!(other.len(), model(20_000_000).len());
        std::fs::write(scratch.path().join("tiny.json"), &other).unwrap();
        let again = Plan::resolve(&experiment(1), "x.toml", scratch.path()).unwrap();
        complete(&again, &options);
        let copy = std::fs::read_to_string(options.dir.join("models/2-tiny.json")).unwrap();
        assert!(copy == other, "{damage:?}");
        // The copies of the next call are found, too.
        assert_eq!(std::fs::read_to_string(&toml).unwrap(), again.toml);
    }
}

#[test]
fn a_directory_of_runs_of_another_format_is_cleared() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(1));
    let options = fresh(&scratch);
    complete(&plan, &options);
    let manifest = options.dir.join(Manifest::FILE);
    let text = std::fs::read_to_string(&manifest).unwrap();
    let own = format!("\"format\": {}", Manifest::FORMAT);
    let later = text.replacen(&own, "\"format\": 999", 1);
    assert_ne!(text, later);
    std::fs::write(&manifest, later).unwrap();
    let resumed = Options {
        fresh: false,
        ..options.clone()
    };
    let failure = run(&plan, &MadeUp::default(), &resumed, &|_| {}, &|| false).unwrap_err();
    let error = failure.to_string();
    let said = format!(
        "manifest.json: there format 999, here format {}",
        Manifest::FORMAT
    );
    assert!(error.contains(&said), "{error}");
    complete(&plan, &options);
}

/// A background may be called like a foreground, with any words before it.
#[test]
fn a_foreground_has_its_own_page() {
    let page = |list: &str, name: &str, page: &str| {
        format!("[[{list}]]\nname = \"{name}\"\nkind = \"page\"\npage = \"{page}\"\n")
    };
    let text = format!(
        "name = \"x\"\n[network]\nrate = \"20Mbit\"\n{}{}[[background]]\nname = \"none\"\nkind = \"none\"\n",
        page("foreground", "p", "article"),
        page("background", "foreground p", "shop"),
    );
    let plan = Plan::resolve(&text, "x.toml", Path::new("")).unwrap();
    let spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    let played = |traffic: &Traffic| traffic.fetches().unwrap().sizes[0].0;
    let read = |inputs: &BTreeMap<String, Input>, name: &str| match &inputs[name].data {
        Data::Page(all) => all.iter().map(|object| object.size).sum::<u64>(),
        other => panic!("{other:?}"),
    };
    let foreground = played(&spec.foreground.as_ref().unwrap().traffic);
    let background = played(&spec.background[0].traffic);
    assert_ne!(foreground, background);
    assert_eq!(foreground, read(&plan.foreground_inputs, "p"));
    assert_eq!(background, read(&plan.inputs, "foreground p"));
    let facts: BTreeMap<_, _> = plan.facts().collect();
    let names = ["foreground foreground p", "foreground p"].map(|of| &*facts[of].name);
    assert_eq!(names, ["bundled article", "bundled shop"]);
}

/// Without an application that sends, the round trip is the longest of a background, not that over all links.
#[test]
fn the_round_trip_is_that_of_a_background_where_no_foreground_sends() {
    let link =
        |name: &str| format!("[[links]]\nname = \"{name}\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n");
    let cbr = |name: &str, path: &str| {
        format!(
            "[[background]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"1Mbit\"\npath = {path}\n"
        )
    };
    let text = format!(
        "name = \"x\"\n{}{}{}[[foreground]]\nname = \"f\"\nkind = \"none\"\n{}{}",
        link("a"),
        link("b"),
        link("c"),
        cbr("one", "[\"a\"]"),
        cbr("two", "[\"b\", \"c\"]"),
    );
    let plan = Plan::resolve(&text, "x.toml", Path::new("")).unwrap();
    // Two links of 10 ms and two access paths of 5 ms, twice each.
    assert_eq!(plan.rtt().to_string(), "60ms");
}

#[test]
fn files_have_names_that_a_file_system_takes() {
    let cell = |foreground: &str| Cell {
        foreground: foreground.into(),
        background: foreground.into(),
        replication: 4_000_000_000,
        seed: 1,
    };
    assert_eq!(name(7, &cell("a b")), "00007-a_b-a_b-4000000000");
    for letter in ["a", "\u{e9}", "\u{6f22}", "\u{20000}"] {
        let name = name(7, &cell(&letter.repeat(100)));
        assert!(name.len() <= 140, "{name}");
        assert!(name.contains(&letter.repeat(15)), "{name}");
    }
}

/// Two emulated calls of one experiment may have other settings, which the experiment does not have.
#[test]
fn runs_with_other_settings_of_the_backend_are_other_runs() {
    struct Stretched(f64);
    impl Backend for Stretched {
        fn name(&self) -> &'static str {
            "stretched"
        }
        fn settings(&self) -> BTreeMap<String, String> {
            BTreeMap::from([("stretch".to_owned(), self.0.to_string())])
        }
        fn run(
            &self,
            spec: &RunSpec,
            progress: &dyn Fn(f64),
            cancelled: &dyn Fn() -> bool,
        ) -> Result<crate::observe::Observations, RunError> {
            MadeUp::default().run(spec, progress, cancelled)
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let first = plan(&scratch, &experiment(2));
    let done = |name: &str, plan: &Plan, stretch: f64| {
        let options = options(&scratch, name, 1);
        match run(plan, &Stretched(stretch), &options, &|_| {}, &|| false) {
            Ok(RunOutcome::Complete(results)) => Ok(*results),
            Ok(other) => panic!("{other:?}"),
            Err(failure) => Err(failure.to_string()),
        }
    };
    let mut one = done("r", &first, 1.0).unwrap();
    assert!(done("r", &first, 1.0).is_ok());
    let refused = done("r", &first, 2.0).unwrap_err();
    assert!(refused.ends_with("stretch: there 1, here 2"), "{refused}");
    let later = plan(&scratch, &experiment(2).replace("seed = 7", "seed = 99"));
    let other = done("s", &later, 2.0).unwrap();
    let unlike = one.clone().join(other.clone()).unwrap_err().to_string();
    assert!(unlike.contains("stretch"), "{unlike}");
    // Directories of earlier versions do not know theirs.
    one.manifest.settings.clear();
    one.manifest.save(&one.dir).unwrap();
    assert!(one.join(other).is_ok());
    assert!(done("r", &first, 2.0).is_ok());
}
