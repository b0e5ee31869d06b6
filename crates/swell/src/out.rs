//! Data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swell_base::{Severity, Warning};

use crate::fail::Fail;

/// Prints data. A reader that has seen enough (a closed pipe) is no error.
pub(crate) fn data(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints JSON.
pub(crate) fn json(value: &serde_json::Value) {
    data(&format!("{value:#}"));
}

/// Says something.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what to doubt.
pub(crate) fn warnings(warnings: &[Warning]) {
    for w in warnings {
        let weight = match w.severity {
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        say(&format!("{weight}: {} [{}]", w.message, w.code));
    }
}

/// A progress bar on standard error; nothing where that is no terminal.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Writes a file so that it is there as a whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    let fail = |e: io::Error| Fail::failed(format!("{}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, bytes).map_err(fail)?;
    std::fs::rename(&partial, path).map_err(fail)
}
