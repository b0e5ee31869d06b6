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
    let why = format!("{} is missing; set SWELL_TRACES", path.display());
    match made("MANIFEST.tsv") {
        // The real captures are not public, so the tests that need a certain one cannot run everywhere.
        Some(_) => swell_needs::say(format_args!("skipped: {why}")),
        None => swell_needs::skip(format_args!("{why}, or run scripts/traces")),
    }
    None
}

/// A file or folder made by `scripts/traces`.
pub fn made(name: &str) -> Option<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/traces");
    let path = PathBuf::from(dir).join(name);
    path.exists().then_some(path)
}
