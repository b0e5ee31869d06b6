//! Interaction with the shell: failing pipes and disks, completions, manual pages.

use std::fs::OpenOptions;

use super::{Scratch, run, swell, text};

#[test]
fn output_to_a_full_disk_is_a_failure() {
    let dir = Scratch::new("full-disk");
    // clap prints help and version itself.
    for asked in ["models", "--help", "--version"] {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            swell_needs::skip("there is no /dev/full here");
            return;
        };
        let done = swell(&dir).arg(asked).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{asked}");
        assert!(text(&done.stderr).contains("standard output: No space left"));
    }
}

/// Writing to a device must not replace it by a file through a rename; a link stays a link.
#[test]
fn a_device_and_a_link_stay_what_they_are() {
    let dir = Scratch::new("devices");
    std::os::unix::fs::symlink("/dev/full", dir.0.join("full.svg")).unwrap();
    dir.write("old.svg", "old");
    std::os::unix::fs::symlink("old.svg", dir.0.join("link.svg")).unwrap();
    let show = |to: &str| run(&dir, &["show", "access-link", "--svg", to]);
    if std::path::Path::new("/dev/full").exists() {
        let full = show("full.svg");
        assert_eq!(full.status.code(), Some(1), "{}", text(&full.stderr));
        assert!(text(&full.stderr).contains("full.svg: No space left"));
    } else {
        swell_needs::skip("there is no /dev/full here");
    }
    assert!(show("link.svg").status.success());
    for link in ["full.svg", "link.svg"] {
        assert!(dir.0.join(link).is_symlink(), "{link}");
    }
    let drawn = std::fs::read_to_string(dir.0.join("old.svg")).unwrap();
    assert!(drawn.contains("</svg>"));
    // What cannot be written is refused before the work, and leaves no partial file.
    std::fs::create_dir(dir.0.join("there.svg")).unwrap();
    assert_eq!(show("there.svg").status.code(), Some(2));
    let partial = std::fs::read_dir(&dir.0).unwrap().flatten();
    assert!(
        !partial
            .into_iter()
            .any(|e| e.path().extension().is_some_and(|x| x == "partial"))
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_not_an_error() {
    let dir = Scratch::new("closed-pipe");
    let mut child = swell(&dir)
        .arg("schema")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let dir = Scratch::new("completions");
    let bash = run(&dir, &["completions", "bash"]);
    assert_eq!(bash.status.code(), Some(0));
    let bash = text(&bash.stdout);
    assert!(run(&dir, &["man", "."]).status.success());
    for command in [
        "run", "under", "learn", "show", "generate", "study", "doctor",
    ] {
        assert!(
            bash.contains(&format!("swell__subcmd__{command}"))
                || bash.contains(&format!("swell__{command}")),
            "{command}"
        );
        let page = std::fs::read_to_string(dir.0.join(format!("swell-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(run(&dir, &["man", "new"]).status.success());
    assert!(dir.0.join("new/swell-run.1").exists());
    // A file is not a place for pages.
    assert_eq!(run(&dir, &["man", "swell.1"]).status.code(), Some(2));
}

#[test]
fn a_picture_without_a_file_to_draw_to_is_a_mistake() {
    let dir = Scratch::new("picture");
    let done = run(&dir, &["show", "access-link", "--picture", "sizes"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("--svg"));
}

#[test]
fn what_is_there_but_is_not_a_file_does_not_suggest_itself() {
    let dir = Scratch::new("unreadable");
    std::fs::create_dir(dir.0.join("mine.toml")).unwrap();
    let done = run(&dir, &["run", "mine.toml"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains("mine.toml: Is a directory"), "{said}");
    assert!(!said.contains("did you mean"), "{said}");
}

/// The bench has a row for each bundled model, fits a terminal, and says what a variant varies.
#[test]
fn the_bench_tells_models_apart() {
    let dir = Scratch::new("bench");
    let done = run(&dir, &["models", "--bench"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let row = |name: &str| {
        let found = table.lines().find(|l| l.starts_with(&format!("{name} ")));
        found
            .unwrap_or_else(|| panic!("{name}: {table}"))
            .to_owned()
    };
    assert!(row("auckland-hb").contains("4, 4, 4"));
    assert!(row("isi-2pm").contains("100 %"));
    assert!(row("access-link").contains(" of "));
    // Every model has an energy; in parentheses where there was no trace.
    for name in swell_experiment::bundled::models() {
        let row = row(name);
        let energy = row.split_whitespace().nth(3).unwrap();
        let number = energy.trim_matches(['(', ')']);
        assert!(number.parse::<f64>().is_ok(), "{row}");
        assert_eq!(energy.starts_with('('), !row.contains(" of "), "{row}");
    }
    assert!(row("mawi").ends_with("100, 100 %"));
}
