//! A directory has one writer, or several shards that produce the same result together.

use std::sync::Mutex;

use super::*;

fn shard(k: u32, n: u32) -> Option<Shard> {
    Some(Shard::new(k, n).unwrap())
}

fn done(plan: &Plan, options: &Options) -> RunOutcome {
    run(plan, &MadeUp::default(), options, &|_| {}, &|| false).unwrap()
}

/// All files of a directory except locks and the manifest, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let name = |p: &std::path::PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
    let kept = entries.filter(|p| name(p) != LOCK && name(p) != Manifest::FILE);
    let mut all: Vec<_> = kept
        .map(|p| (name(&p), std::fs::read(&p).unwrap_or_default()))
        .collect();
    all.sort();
    all
}

#[test]
fn shards_leave_what_one_machine_does_whatever_their_number_and_order() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(5));
    let one = options(&scratch, "one", 2);
    let whole = complete(&plan, &one);
    let orders: [&[(u32, u32)]; 4] = [
        &[(1, 1)],
        &[(3, 3), (1, 3), (2, 3)],
        // More shards than replications, only some of them, one of them twice, and one of another number of shards.
        &[(7, 40), (2, 40), (2, 40), (1, 2)],
        &[],
    ];
    for (i, order) in orders.into_iter().enumerate() {
        let base = options(&scratch, &format!("s{i}"), 2);
        for &(k, n) in order {
            let own = Options {
                shard: shard(k, n),
                ..base.clone()
            };
            let ended = done(&plan, &own);
            assert!(
                matches!(ended, RunOutcome::Shard { runs: 15, .. }),
                "{ended:?}"
            );
        }
        let joined = complete(&plan, &base);
        assert!(files(&base.dir) == files(&one.dir), "{order:?}");
        assert_eq!(joined.manifest.cells, whole.manifest.cells);
        assert_eq!(joined.manifest.measured, whole.manifest.measured);
    }
}

/// Directories of single runs, and all files below a directory.
fn counts(dir: &Path) -> (usize, usize) {
    fn below(dir: &Path) -> usize {
        let Ok(entries) = std::fs::read_dir(dir) else {
            return 0;
        };
        let each = entries.flatten().map(|e| match e.path() {
            path if path.is_dir() => below(&path),
            _ => 1,
        });
        each.sum()
    }
    let single = std::fs::read_dir(dir.join("cells"));
    (single.map_or(0, Iterator::count), below(dir))
}

#[test]
fn many_runs_have_few_files_while_they_run() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(90));
    let whole = options(&scratch, "whole", 2);
    let most = Mutex::new((0, 0));
    let count = |dir: &Path| {
        let (single, files) = counts(dir);
        let mut most = most.lock().unwrap();
        *most = (most.0.max(single), most.1.max(files));
    };
    let counted = |dir: &Path, event: &Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            count(dir);
        }
    };
    let backend = MadeUp::default();
    let on_event = |event: Event<'_>| counted(&whole.dir, &event);
    let ended = run(&plan, &backend, &whole, &on_event, &|| false).unwrap();
    assert!(matches!(ended, RunOutcome::Complete(_)));
    assert_eq!(plan.cells.len(), 270);
    let (single, files) = *most.lock().unwrap();
    assert!((90..=102).contains(&single), "{single} runs by themselves");
    // 1600 of single runs otherwise; what was measured has a file for each replication.
    assert!(files < 850, "{files} files");
    assert!(counts(&whole.dir) < (1, 10));

    // A shard with sets of its own goes on where it stopped, and its tables are those of the whole.
    let parted = options(&scratch, "parted", 2);
    let first = Options {
        shard: shard(1, 2),
        ..parted.clone()
    };
    let finished = AtomicUsize::new(0);
    let counting = |event: Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            finished.fetch_add(1, Ordering::SeqCst);
        }
    };
    let stop = || finished.load(Ordering::SeqCst) >= 120;
    let cut = run(&plan, &backend, &first, &counting, &stop).unwrap();
    let RunOutcome::Interrupted { finished: kept, .. } = cut else {
        panic!("{cut:?}")
    };
    assert!(
        (120..135).contains(&kept) && counts(&parted.dir).0 < 35,
        "{kept}"
    );
    let seen = Progress::of(&parted.dir).unwrap();
    assert_eq!(seen.finished.iter().filter(|f| **f).count(), kept);
    let RunOutcome::Shard { finished: all, .. } = done(&plan, &first) else {
        panic!("the shard is not finished")
    };
    assert_eq!((all, counts(&parted.dir).0), (135, 0));
    complete(&plan, &parted);
    assert!(self::files(&parted.dir) == self::files(&whole.dir));
}

#[test]
fn every_machine_may_have_a_directory_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(3));
    let one = options(&scratch, "one", 1);
    complete(&plan, &one);
    let gathered = options(&scratch, "gathered", 1);
    std::fs::create_dir_all(gathered.dir.join(lock::SHARDS)).unwrap();
    for k in [2, 1] {
        let mut machine = options(&scratch, &format!("machine{k}"), 1);
        machine.shard = shard(k, 2);
        done(&plan, &machine);
        // One set of tables for all its runs.
        assert_eq!(
            std::fs::read_dir(machine.dir.join("cells"))
                .unwrap()
                .count(),
            0
        );
        let label = format!("{k}-of-2");
        let from = machine.dir.join(lock::SHARDS).join(&label);
        std::fs::rename(from, gathered.dir.join(lock::SHARDS).join(&label)).unwrap();
    }
    let begun = AtomicUsize::new(0);
    let count = |event: Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            begun.fetch_add(1, Ordering::SeqCst);
        }
    };
    run(&plan, &MadeUp::default(), &gathered, &count, &|| false).unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 0);
    assert!(files(&gathered.dir) == files(&one.dir));
}

#[test]
fn a_shard_that_was_interrupted_or_failed_is_made_up_for() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(4));
    let one = options(&scratch, "one", 1);
    complete(&plan, &one);
    let base = options(&scratch, "cut", 1);
    let first = Options {
        shard: shard(1, 2),
        ..base.clone()
    };
    let runs = AtomicUsize::new(0);
    let count = |event: Event<'_>| {
        if matches!(event, Event::Finished(_)) {
            runs.fetch_add(1, Ordering::SeqCst);
        }
    };
    let stop = || runs.load(Ordering::SeqCst) >= 2;
    let ended = run(&plan, &MadeUp::default(), &first, &count, &stop).unwrap();
    assert!(
        matches!(
            ended,
            RunOutcome::Interrupted {
                finished: 2,
                runs: 12,
                ..
            }
        ),
        "{ended:?}"
    );
    // The other half contains the failing run, and keeps the runs that finished before it. The backend has the same
    // name, so that the experiment's hash is the same.
    let second = Options {
        shard: shard(2, 2),
        ..base.clone()
    };
    struct Fails;
    impl Backend for Fails {
        fn name(&self) -> &'static str {
            MadeUp::default().name()
        }
        fn run(
            &self,
            spec: &crate::RunSpec,
            progress: &dyn Fn(f64),
            cancelled: &dyn Fn() -> bool,
        ) -> Result<crate::observe::Observations, RunError> {
            Broken.run(spec, progress, cancelled)
        }
        // The offered load must also be the same, because it determines the scaling.
        fn offered(
            &self,
            spec: &crate::RunSpec,
        ) -> Result<Option<crate::backend::Offered>, RunError> {
            MadeUp::default().offered(spec)
        }
    }
    let failure = run(&plan, &Fails, &second, &|_| {}, &|| false).unwrap_err();
    assert!(failure.to_string().contains("caught fire"), "{failure}");
    complete(&plan, &base);
    assert!(files(&base.dir) == files(&one.dir));
}

#[test]
fn shards_of_another_experiment_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let first = plan(&scratch, &experiment(2));
    let base = options(&scratch, "r", 1);
    let own = Options {
        shard: shard(1, 2),
        ..base.clone()
    };
    done(&first, &own);
    for file in [Manifest::FILE, "experiment.toml"] {
        std::fs::remove_file(base.dir.join(file)).unwrap();
    }
    for sub in ["measured", "models"] {
        std::fs::remove_dir_all(base.dir.join(sub)).unwrap();
    }
    let other = plan(&scratch, &experiment(2).replace("20Mbit", "30Mbit"));
    let failure = run(&other, &MadeUp::default(), &base, &|_| {}, &|| false).unwrap_err();
    assert!(
        failure.to_string().contains("1-of-2 holds runs of another"),
        "{failure}"
    );
    let fresh = Options {
        fresh: true,
        ..base
    };
    // Clearing was interrupted.
    std::fs::write(
        fresh.dir.join(Manifest::FILE),
        super::super::resume::CLEARING,
    )
    .unwrap();
    complete(&other, &fresh);
}

#[test]
fn a_directory_has_one_writer_or_shards() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("r");
    let alone = Lock::take(&dir, None).unwrap();
    for other in [None, shard(1, 2)] {
        let refused = Lock::take(&dir, other).unwrap_err().to_string();
        let process = std::process::id();
        assert_eq!(
            refused,
            format!(
                "{} is in use by another swell (process {process})",
                dir.display()
            )
        );
    }
    drop(alone);
    let first = Lock::take(&dir, shard(1, 2)).unwrap();
    let second = Lock::take(&dir, shard(2, 2)).unwrap();
    assert!(Lock::take(&dir, shard(2, 2)).is_err());
    assert!(Lock::take(&dir, None).is_err());
    drop(second);
    drop(first);
    let plan = plan(&scratch, &experiment(1));
    let options = options(&scratch, "r", 1);
    let held = Lock::take(&dir, None).unwrap();
    let failure = run(&plan, &MadeUp::default(), &options, &|_| {}, &|| false).unwrap_err();
    assert!(
        matches!(failure, Failure::Lock(LockError::Busy { .. })),
        "{failure}"
    );
    // Nothing was touched.
    assert_eq!(
        std::fs::read_dir(&dir).unwrap().count(),
        2,
        "the lock and the shards' locks"
    );
    drop(held);
    complete(&plan, &options);
}

#[test]
fn shards_that_begin_together_measure_once() {
    struct Counted(AtomicUsize);
    impl Backend for Counted {
        fn name(&self) -> &'static str {
            MadeUp::default().name()
        }
        fn run(
            &self,
            spec: &crate::RunSpec,
            progress: &dyn Fn(f64),
            cancelled: &dyn Fn() -> bool,
        ) -> Result<crate::observe::Observations, RunError> {
            MadeUp::default().run(spec, progress, cancelled)
        }
        fn measure(
            &self,
            spec: &crate::RunSpec,
            progress: &dyn Fn(f64),
            cancelled: &dyn Fn() -> bool,
        ) -> Result<crate::backend::MeasuredRates, RunError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            MadeUp::default().measure(spec, progress, cancelled)
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(4));
    let alone = Counted(AtomicUsize::new(0));
    run(
        &plan,
        &alone,
        &options(&scratch, "one", 1),
        &|_| {},
        &|| false,
    )
    .unwrap();
    let together = Counted(AtomicUsize::new(0));
    let base = options(&scratch, "together", 1);
    std::thread::scope(|scope| {
        for k in 1..=3 {
            let own = Options {
                shard: shard(k, 3),
                ..base.clone()
            };
            let (plan, together) = (&plan, &together);
            scope.spawn(move || run(plan, together, &own, &|_| {}, &|| false).unwrap());
        }
    });
    assert_eq!(
        together.0.load(Ordering::SeqCst),
        alone.0.load(Ordering::SeqCst)
    );
    complete(&plan, &base);
    assert!(files(&base.dir) == files(&scratch.path().join("one")));
}

#[test]
fn a_damaged_shard_says_what_to_delete() {
    for file in ["runs.json", "requests.parquet"] {
        let scratch = tempfile::tempdir().unwrap();
        let plan = plan(&scratch, &experiment(2));
        let base = options(&scratch, "r", 1);
        for k in [1, 2] {
            let own = Options {
                shard: shard(k, 2),
                ..base.clone()
            };
            done(&plan, &own);
        }
        let set = base.dir.join(lock::SHARDS).join("1-of-2");
        std::fs::write(set.join(file), "{").unwrap();
        let failure = run(&plan, &MadeUp::default(), &base, &|_| {}, &|| false).unwrap_err();
        let said = failure.to_string();
        assert!(
            said.contains(&format!("delete {}", set.display())),
            "{said}"
        );
        // What it says works.
        std::fs::remove_dir_all(set).unwrap();
        complete(&plan, &base);
    }
}

#[test]
fn a_directory_that_was_changed_is_not_read() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let base = options(&scratch, "r", 1);
    complete(&plan, &base);
    let refused = || Results::load(&base.dir).unwrap_err().to_string();
    let change = |file: &str, from: &str, to: &str| {
        let path = base.dir.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    };
    change("experiment.toml", "rate = \"20Mbit\"", "rate = \"21Mbit\"");
    assert!(
        refused().contains("experiment.toml: changed since the runs"),
        "{}",
        refused()
    );
    change("experiment.toml", "rate = \"21Mbit\"", "rate = \"20Mbit\"");
    Results::load(&base.dir).unwrap();
    let own = format!("\"format\": {}", Manifest::FORMAT);
    change(Manifest::FILE, &own, "\"format\": 999");
    let why = format!("format 999 is not {}", Manifest::FORMAT);
    assert!(refused().contains(&why), "{}", refused());
}

#[test]
fn a_shard_that_waits_for_another_says_what_is_there() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let own = Options {
        shard: shard(1, 2),
        ..options(&scratch, "r", 1)
    };
    done(&plan, &own);
    let other = Lock::take(&own.dir, shard(2, 2)).unwrap();
    let setup = other.setup(&|| false).unwrap();
    assert!(setup.is_some());
    let ended = run(&plan, &MadeUp::default(), &own, &|_| {}, &|| true).unwrap();
    let RunOutcome::Interrupted { finished, runs, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!((finished, runs), (3, 6));
}

/// Results are gathered from machines, one of which died while it joined its runs, and by a copy that was cut short.
#[test]
fn what_shards_left_unfinished_is_no_obstacle() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(3));
    let other = Options {
        shard: shard(2, 2),
        ..options(&scratch, "other", 1)
    };
    let one = options(&scratch, "one", 1);
    complete(&plan, &one);
    for own in [None, shard(1, 2)] {
        done(&plan, &other);
        let gathered = options(&scratch, if own.is_some() { "s" } else { "r" }, 1);
        let shards = gathered.dir.join("shards");
        std::fs::create_dir_all(&shards).unwrap();
        std::fs::rename(other.dir.join("shards/2-of-2"), shards.join("2-of-2")).unwrap();
        let unfinished = ["1-of-2.partial/runs.json", "1-of-3/flows.parquet"];
        let others = ["00001-of-00002.tar", "poetry.lock", "4-of-3", "1-of-2.tar"];
        for name in unfinished.into_iter().chain(others) {
            let path = shards.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{").unwrap();
        }
        // They would be removed.
        let fresh = Options {
            fresh: true,
            ..gathered.clone()
        };
        let failure = run(&plan, &MadeUp::default(), &fresh, &|_| {}, &|| false).unwrap_err();
        assert!(matches!(failure, Failure::Unknown { .. }), "{failure}");
        if own.is_some() {
            let part = Options {
                shard: own,
                ..gathered.clone()
            };
            let ended = done(&plan, &part);
            assert!(
                matches!(ended, RunOutcome::Shard { runs: 9, .. }),
                "{ended:?}"
            );
        }
        complete(&plan, &gathered);
        assert!(tables(&gathered.dir) == tables(&one.dir));
        // What is no set of this program's stays.
        for name in others.into_iter().chain(["1-of-3/flows.parquet"]) {
            assert!(shards.join(name).exists(), "{name}");
        }
        for gone in ["1-of-2.partial", "2-of-2", "setup.lock", "1-of-2.lock"] {
            assert!(!shards.join(gone).exists(), "{gone}");
        }
    }
}
