//! What `swell under -o` may overwrite.

use crate::under::emulates;
use crate::{Scratch, ran, run, text};

#[test]
fn a_run_directory_is_written_over_by_its_own_command_alone() {
    let dir = Scratch::new("kept");
    if !emulates(&dir) {
        return;
    }
    let under = |more: &[&str], command: &str| {
        let args = [
            &["under", "none", "-q", "-o", "here"],
            more,
            &["--", command],
        ]
        .concat();
        run(&dir, &args)
    };
    let code = |more: &[&str], command: &str| under(more, command).status.code();
    assert_eq!(code(&[], "true"), Some(0));
    let manifest = || std::fs::read(dir.0.join("here/manifest.json")).unwrap();
    // The same command runs again.
    assert_eq!(code(&[], "true"), Some(0));
    let before = manifest();
    let other = under(&[], "false");
    assert_eq!(other.status.code(), Some(2));
    let said = text(&other.stderr);
    assert!(
        said.contains("another command") && said.contains("--fresh"),
        "{said}"
    );
    assert_eq!(manifest(), before);
    // With --fresh the exit code is the program's own.
    assert_eq!(code(&["--fresh"], "false"), Some(1));
    assert_ne!(manifest(), before);
    // A directory with foreign files is never overwritten.
    std::fs::create_dir(dir.0.join("mine")).unwrap();
    dir.write("mine/letter", "kept");
    for more in [&[][..], &["--fresh"]] {
        let args = [
            &["under", "none", "-q", "-o", "mine"],
            more,
            &["--", "true"],
        ]
        .concat();
        assert_eq!(run(&dir, &args).status.code(), Some(2));
    }
    assert_eq!(std::fs::read(dir.0.join("mine/letter")).unwrap(), b"kept");
    assert_eq!(std::fs::read_dir(dir.0.join("mine")).unwrap().count(), 1);
}

/// An experiment that takes a moment.
const SMALL: &str = "# my comment\nname = \"small\"\n[network]\nrate = \"10Mbit\"\n[[foreground]]\nname = \"p\"\n\
    kind = \"web\"\nobject = \"20kB\"\n[[background]]\nname = \"none\"\nkind = \"none\"\n[run]\nreplications = 2\n\
    warmup = \"1s\"\nduration = \"3s\"\n";

#[test]
fn a_run_writes_over_nothing_that_is_the_users() {
    let dir = Scratch::new("users-own");
    let read = |name: &str| std::fs::read_to_string(dir.0.join(name)).unwrap();
    for sub in ["p", "q/models", "r"] {
        std::fs::create_dir_all(dir.0.join(sub)).unwrap();
    }
    dir.write("p/experiment.toml", SMALL);
    dir.write("p/report.html", "mine");
    dir.write("q/models/my.json", "mine");
    dir.write("r/small.toml", SMALL);
    for (to, named) in [("p", "experiment.toml, report.html"), ("q", "models")] {
        for more in [&[][..], &["--fresh"], &["--shard", "1/2"]] {
            let args = [&["run", "p/experiment.toml", "-o", to], more].concat();
            let out = run(&dir, &args);
            assert_eq!(out.status.code(), Some(2), "{more:?}");
            let said = text(&out.stderr);
            assert!(said.contains(&format!("write over {named}\n")), "{said}");
            assert!(said.contains(&format!("such as {to}/small")), "{said}");
        }
    }
    assert_eq!(read("p/experiment.toml"), SMALL);
    assert_eq!(
        [read("p/report.html"), read("q/models/my.json")],
        ["mine"; 2]
    );
    assert_eq!(std::fs::read_dir(dir.0.join("p")).unwrap().count(), 2);
    // Beside an experiment of another name there is room, and what is put there later stays.
    let runs = |more: &[&str]| {
        let args = [&["run", "r/small.toml", "-o", "r"], more].concat();
        let out = run(&dir, &args);
        assert!(ran(&out), "{}", text(&out.stderr));
    };
    runs(&[]);
    for sub in ["r/cells", "r/models"] {
        std::fs::create_dir_all(dir.0.join(sub)).unwrap();
        dir.write(&format!("{sub}/notes.txt"), "mine");
    }
    runs(&["--fresh", "--set", "network.rate=11Mbit"]);
    assert_eq!(read("r/small.toml"), SMALL);
    assert_eq!(
        [read("r/cells/notes.txt"), read("r/models/notes.txt")],
        ["mine"; 2]
    );
}

#[test]
fn what_is_damaged_is_told_with_what_helps() {
    let dir = Scratch::new("damaged");
    dir.write("small.toml", SMALL);
    let refused = |args: &[&str], says: &[&str]| {
        let out = run(&dir, args);
        let said = text(&out.stderr);
        assert!([Some(1), Some(2)].contains(&out.status.code()), "{said}");
        for says in says {
            assert!(said.contains(says), "no {says} in {said}");
        }
        said
    };
    let again = ["run", "small.toml", "-o", "r"];
    assert!(ran(&run(&dir, &again)));
    std::fs::remove_file(dir.0.join("r/bins.parquet")).unwrap();
    refused(&again, &["bins.parquet", "hint: --fresh"]);
    refused(&["show", "r"], &["bins.parquet", "with --fresh"]);
    dir.write("r/bins.parquet", "no table");
    refused(&again, &["bins.parquet", "hint: --fresh"]);
    dir.write("r/manifest.json", "{");
    // Nobody knows whose this is, so --fresh would not help.
    let said = refused(&again, &["manifest.json: EOF", "move the directory away"]);
    assert!(!said.contains("--fresh"), "{said}");
}

#[test]
fn a_study_writes_over_nothing_that_is_the_users() {
    let dir = Scratch::new("users-study");
    for (name, file) in [
        ("a", "runs.csv"),
        ("b", "report.html"),
        ("c", "pictures/cat.png"),
        ("d", "runs.points.csv"),
        ("e", "runs.plan"),
        ("f", ".lock"),
    ] {
        let own = dir.0.join(name).join(file);
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "mine\n").unwrap();
        for more in [&[][..], &["--fresh"]] {
            let args = [&["study", "buffers", "--quick", "-o", name], more].concat();
            let out = run(&dir, &args);
            assert_eq!(out.status.code(), Some(2), "{name}");
            let said = text(&out.stderr);
            assert!(
                said.contains("holds no study") && !said.contains("--fresh"),
                "{said}"
            );
            assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine\n");
            assert_eq!(std::fs::read_dir(dir.0.join(name)).unwrap().count(), 1);
        }
    }
}

#[test]
fn test_cases_are_printed_where_their_file_is_a_dash() {
    let dir = Scratch::new("junit-dash");
    dir.write("small.toml", SMALL);
    let args = ["run", "small.toml", "--junit", "-"];
    let out = run(&dir, &args);
    assert!(ran(&out), "{}", text(&out.stderr));
    let printed = text(&out.stdout);
    assert!(
        printed.starts_with("<?xml") && printed.ends_with("</testsuites>\n"),
        "{printed}"
    );
    assert!(!dir.0.join("-").exists());
    let both = run(&dir, &[&args[..], &["--json"]].concat());
    assert_eq!(both.status.code(), Some(2));
}
