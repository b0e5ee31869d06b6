//! Real captures, where they are: `SWELL_TRACES`, or `../shared/traces` beside the workspace.

use std::path::PathBuf;

/// A file or folder of the real captures. Without it a test fails under `CI`, and else says that it is skipped.
pub fn trace(name: &str) -> Option<PathBuf> {
    let dir = std::env::var("SWELL_TRACES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces").to_string()
    });
    let path = PathBuf::from(dir).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing: set SWELL_TRACES",
        path.display()
    );
    say(&format!(
        "skipped: {} is missing; set SWELL_TRACES",
        path.display()
    ));
    None
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn say(text: &str) {
    eprintln!("{text}");
}
