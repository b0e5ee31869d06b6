//! What the shell around the program sees: pipes and disks that fail, completions, manual pages.

use std::fs::OpenOptions;

use super::{Scratch, run, swell, text};

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn output_to_a_full_disk_is_a_failure() {
    let dir = Scratch::new("full-disk");
    // Help and version are what clap prints by itself.
    for asked in ["models", "--help", "--version"] {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            println!("skipped: there is no /dev/full here");
            return;
        };
        let done = swell(&dir).arg(asked).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{asked}");
        assert!(text(&done.stderr).contains("standard output: No space left"));
    }
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
    assert_eq!(run(&dir, &["man", "nowhere"]).status.code(), Some(1));
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
