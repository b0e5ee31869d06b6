//! What `swell under -o` may overwrite.

use crate::under::emulates;
use crate::{Scratch, run, text};

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
