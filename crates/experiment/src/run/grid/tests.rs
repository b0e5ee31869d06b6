use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::run::shard::Shard;

/// Squares its number and counts its calls.
struct Square<'c> {
    n: u32,
    settings: &'static str,
    runs: &'c AtomicUsize,
}

impl Task for Square<'_> {
    fn key(&self) -> Vec<String> {
        vec![self.n.to_string()]
    }
    fn settings(&self) -> String {
        self.settings.into()
    }
    fn cost(&self) -> f64 {
        f64::from(self.n)
    }
    fn run(&self) -> Result<Vec<f64>, String> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(vec![f64::from(self.n * self.n) / 3.0, f64::NAN])
    }
}

fn run(
    cells: &[Square<'_>],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<GridOutcome, GridError> {
    let columns = Columns {
        keys: vec!["n".into()],
        numbers: ["square", "nothing"].map(String::from).to_vec(),
    };
    Grid::open(columns, options)?.run(cells, progress, stop)
}

fn cells<'c>(runs: &'c AtomicUsize, settings: &'static str) -> Vec<Square<'c>> {
    (0..8).map(|n| Square { n, settings, runs }).collect()
}

fn options(dir: &tempfile::TempDir) -> Options {
    Options {
        file: dir.path().join("runs.csv"),
        jobs: 3,
        fresh: false,
        shard: None,
    }
}

const GO: fn() -> bool = || false;

fn squares(ended: GridOutcome) -> Vec<f64> {
    match ended {
        GridOutcome::Complete(rows) => rows.iter().map(|r| r[0]).collect(),
        GridOutcome::Interrupted { .. } | GridOutcome::Shard { .. } => Vec::new(),
    }
}

#[test]
fn what_is_finished_is_kept_and_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(&dir);
    let count = AtomicUsize::new(0);
    let all = cells(&count, "a");
    let stop = || count.load(Ordering::Relaxed) >= 3;
    let ended = run(&all, &options, &|_| {}, &stop).unwrap();
    let GridOutcome::Interrupted { finished, runs } = ended else {
        panic!("it was stopped");
    };
    // Active workers finish their runs.
    assert!((3..=5).contains(&finished), "{finished}");
    assert_eq!(runs, 8);
    // A truncated row runs again.
    let text = fs::read_to_string(&options.file).unwrap();
    fs::write(&options.file, &text[..text.len() - 2]).unwrap();

    let seen = Mutex::new(Vec::new());
    let tell = |p: Progress| seen.lock().unwrap().push(p);
    let again = run(&all, &options, &tell, &GO).unwrap();
    let expected: Vec<f64> = (0..8).map(|n| f64::from(n * n) / 3.0).collect();
    assert_eq!(squares(again), expected);
    assert_eq!(count.load(Ordering::Relaxed), 8 + 1);
    let seen = seen.into_inner().unwrap();
    assert_eq!((seen[0].done, seen[0].kept), (finished - 1, finished - 1));
    let last = seen[seen.len() - 1];
    assert_eq!((last.done, last.runs), (8, 8));
    assert!((last.share - 1.0).abs() < 1e-12);

    let whole = fs::read_to_string(&options.file).unwrap();
    assert_eq!(
        squares(run(&all, &options, &|_| {}, &GO).unwrap()),
        expected
    );
    assert_eq!(count.load(Ordering::Relaxed), 9);
    assert_eq!(fs::read_to_string(&options.file).unwrap(), whole);
}

#[test]
fn who_looks_sees_which_runs_are_finished_wherever_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let whole = options(&dir);
    assert!(Seen::of(&whole.file).is_err());
    let count = AtomicUsize::new(0);
    let finished = || {
        let seen = Seen::of(&whole.file).unwrap();
        assert_eq!(seen.keys, ["n"]);
        let keys: Vec<&str> = seen.runs.iter().map(|(key, _)| &*key[0]).collect();
        assert_eq!(keys, ["0", "1", "2", "3", "4", "5", "6", "7"]);
        seen.runs.iter().map(|r| r.1).collect::<Vec<bool>>()
    };
    // Results for other settings are not reused.
    run(&cells(&count, "a"), &whole, &|_| {}, &GO).unwrap();
    let shard = Options {
        shard: Shard::new(2, 4),
        jobs: 1,
        ..whole.clone()
    };
    run(&cells(&count, "b"), &shard, &|_| {}, &GO).unwrap();
    let done = |places: &[usize]| (0..8).map(|i| places.contains(&i)).collect::<Vec<bool>>();
    assert_eq!(finished(), done(&[1, 5]));
    // An incomplete row does not count. The most expensive run came first.
    let own = of_shards(&whole.file).remove(0);
    let rows = fs::read_to_string(&own).unwrap();
    fs::write(&own, &rows[..rows.len() - 1]).unwrap();
    assert_eq!(finished(), done(&[5]));
    run(&cells(&count, "b"), &whole, &|_| {}, &GO).unwrap();
    assert_eq!(finished(), [true; 8]);
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let [one, four] = [1, 4].map(|jobs| {
        let dir = tempfile::tempdir().unwrap();
        let count = AtomicUsize::new(0);
        let options = Options {
            jobs,
            ..options(&dir)
        };
        run(&cells(&count, "a"), &options, &|_| {}, &GO).unwrap();
        fs::read_to_string(&options.file).unwrap()
    });
    assert_eq!(one, four);
    assert!(one.starts_with("n,settings,square,nothing\n0,"));
}

#[test]
fn other_settings_and_fresh_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(&dir);
    let count = AtomicUsize::new(0);
    let done = |settings, with: &Options| {
        run(&cells(&count, settings), with, &|_| {}, &GO).unwrap();
        count.swap(0, Ordering::Relaxed)
    };
    assert_eq!(done("a", &options), 8);
    assert_eq!(done("b", &options), 8);
    // The existing rows are still there.
    assert_eq!(done("a", &options), 0);
    let fresh = Options {
        fresh: true,
        ..options.clone()
    };
    assert_eq!(done("a", &fresh), 8);
    assert_eq!(done("b", &options), 8);
}

#[test]
fn a_table_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(&dir);
    let count = AtomicUsize::new(0);
    for (text, at) in [
        ("a,b\n", 1),
        ("n,settings,square,nothing\n1,2,3\n", 2),
        ("n,settings,square,nothing\n1,2,3,\n1,2,x,\n", 3),
    ] {
        fs::write(&options.file, text).unwrap();
        let error = run(&cells(&count, "a"), &options, &|_| {}, &GO).unwrap_err();
        let GridError::Table { line, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(line, at, "{text:?}");
        assert_eq!(fs::read_to_string(&options.file).unwrap(), text);
    }
}

#[test]
fn shards_leave_the_table_that_one_machine_does() {
    let scratch = tempfile::tempdir().unwrap();
    let one = options(&scratch);
    let count = AtomicUsize::new(0);
    run(&cells(&count, "a"), &one, &|_| {}, &GO).unwrap();
    let whole = fs::read_to_string(&one.file).unwrap();
    for order in [vec![(2, 2), (1, 2)], vec![(3, 9), (1, 9), (2, 3)]] {
        let dir = tempfile::tempdir().unwrap();
        let joined = options(&dir);
        for (k, n) in order {
            let own = Options {
                shard: Shard::new(k, n),
                ..joined.clone()
            };
            let ended = run(&cells(&count, "a"), &own, &|_| {}, &GO).unwrap();
            assert!(
                matches!(ended, GridOutcome::Shard { runs: 8, .. }),
                "{ended:?}"
            );
            assert!(!joined.file.exists());
        }
        let there = of_shards(&joined.file);
        let rows = there
            .iter()
            .map(|p| fs::read_to_string(p).unwrap().lines().count() - 1);
        let rows: usize = rows.sum();
        let before = count.load(Ordering::Relaxed);
        run(&cells(&count, "a"), &joined, &|_| {}, &GO).unwrap();
        // Only runs that no shard has done.
        assert_eq!(count.load(Ordering::Relaxed) - before, 8 - rows);
        assert_eq!(fs::read_to_string(&joined.file).unwrap(), whole);
        assert_eq!(of_shards(&joined.file), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_ran_beside_a_failure_is_kept() {
    struct Third(u32);
    impl Task for Third {
        fn key(&self) -> Vec<String> {
            vec![self.0.to_string()]
        }
        fn settings(&self) -> String {
            String::new()
        }
        fn cost(&self) -> f64 {
            f64::from(10 - self.0)
        }
        fn run(&self) -> Result<Vec<f64>, String> {
            if self.0 == 2 {
                Err("no".into())
            } else {
                Ok(vec![1.0])
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        jobs: 1,
        ..options(&dir)
    };
    let columns = Columns {
        keys: vec!["n".into()],
        numbers: vec!["x".into()],
    };
    let tasks: Vec<Third> = (0..5).map(Third).collect();
    let grid = Grid::open(columns, &options).unwrap();
    let error = grid.run(&tasks, &|_| {}, &GO).unwrap_err();
    assert_eq!(error.to_string(), "2: no");
    assert_eq!(
        fs::read_to_string(&options.file).unwrap().lines().count(),
        1 + 2
    );
}
