//! What tests need of the machine: programs, rights, files. A test that lacks one says why it is skipped. In continuous
//! integration, where the environment has `CI`, it fails instead, so nothing is skipped there unnoticed.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::PathBuf;

/// Says why a test, or a part of it, is skipped; the caller then returns. In continuous integration it fails.
///
/// # Panics
///
/// If the environment has `CI`.
#[track_caller]
pub fn skip(why: impl Display) {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "continuous integration must have it: {why}");
    say(format_args!("skipped: {why}"));
}

/// Prints a line that is seen even if the test passes. What the macros for printing write is then thrown away.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether all these programs are installed. If not, says which are missing and where they come from, as [`skip`] does.
#[must_use]
#[track_caller]
pub fn programs(names: &[&str]) -> bool {
    let missing = missing(names);
    if !missing.is_empty() {
        skip(&missing);
    }
    missing.is_empty()
}

/// The programs that are not installed, with their Debian packages; empty if all are there.
#[must_use]
pub fn missing(names: &[&str]) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let gone = names
        .iter()
        .filter(|name| !folders.iter().any(|f| f.join(name).exists()));
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/run");
    let ci = std::fs::read_to_string(ci).unwrap_or_default();
    let mut text = String::new();
    for name in gone {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name} is not installed");
        if let Some(package) = package(&ci, name) {
            let _ = write!(text, " (Debian: apt-get install {package})");
        }
    }
    text
}

/// The package of a program. `.ci/run` has a line `want PROGRAM PACKAGE` for each.
fn package<'a>(ci: &'a str, program: &str) -> Option<&'a str> {
    let wanted = |line: &'a str| line.trim().strip_prefix("want ")?.split_once(' ');
    let mut rows = ci.lines().filter_map(wanted);
    rows.find(|(name, _)| *name == program).map(|(_, p)| p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let text = "want cc gcc libc6-dev\ntests)\n  want nc netcat-openbsd\n# want no more\n";
        assert_eq!(package(text, "nc"), Some("netcat-openbsd"));
        assert_eq!(package(text, "cc"), Some("gcc libc6-dev"));
        assert_eq!(package(text, "no"), None);
        assert_eq!(missing(&["sh", "cargo"]), "");
        let gone = missing(&["no-such-program", "sh", "nor-this"]);
        let each = "no-such-program is not installed, nor-this is not installed";
        assert_eq!(gone, each);
        let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/run");
        let ci = std::fs::read_to_string(ci).unwrap();
        assert_eq!(package(&ci, "ping"), Some("iputils-ping"));
    }

    /// Runs this test again as another process, whose environment has or lacks `CI`.
    #[test]
    fn what_is_missing_fails_in_continuous_integration_and_is_said_elsewhere() {
        if std::env::var_os("NEEDS_INSIDE").is_some() {
            assert!(!programs(&["no-such-program"]));
            return;
        }
        let name = "what_is_missing_fails_in_continuous_integration_and_is_said_elsewhere";
        for (ci, fails) in [("true", true), ("", false)] {
            let out = std::process::Command::new(std::env::current_exe().unwrap())
                .arg(name)
                .env("CI", ci)
                .env("NEEDS_INSIDE", "")
                .output()
                .unwrap();
            assert_eq!(out.status.success(), !fails);
            let said = [out.stdout, out.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            let words = match fails {
                true => "continuous integration must have it: no-such-program is not installed",
                false => "skipped: no-such-program is not installed",
            };
            assert!(said.contains(words), "{said}");
        }
    }
}
