//! Real captures, if available: `SWELL_TRACES`, or `../shared/traces` beside the workspace. Otherwise
//! captures made by `scripts/traces` are used, unless a test needs a certain capture.
#![expect(
    clippy::disallowed_methods,
    reason = "the traces lie where the tester has them"
)]

use std::path::PathBuf;

/// A file or folder of the real captures, or of the made ones. If it is missing, the test fails under
/// `CI`, and otherwise reports that it is skipped.
pub fn trace(name: &str) -> Option<PathBuf> {
    let dir = std::env::var("SWELL_TRACES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces").to_string()
    });
    let path = PathBuf::from(dir).join(name);
    if path.exists() {
        return Some(path);
    }
    if let Some(made) = made(name) {
        return Some(made);
    }
    assert!(
        std::env::var_os("CI").is_none() || made("MANIFEST.tsv").is_some(),
        "{} is missing: set SWELL_TRACES, or run scripts/traces",
        path.display()
    );
    say(&format!(
        "skipped: {} is missing; set SWELL_TRACES",
        path.display()
    ));
    None
}

/// A file or folder made by `scripts/traces`.
pub fn made(name: &str) -> Option<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/traces");
    let path = PathBuf::from(dir).join(name);
    path.exists().then_some(path)
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub fn say(text: &str) {
    eprintln!("{text}");
}
