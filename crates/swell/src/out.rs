//! Data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swell_base::{Severity, Warning};

use crate::fail::Fail;
use crate::{interrupt, tables};

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
        let text = format!("{weight}: {} [{}]", w.message, w.code);
        say(&tables::wrapped(&text));
    }
}

/// A progress bar on standard error; nothing where that is no terminal.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), draw_target());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Where progress is drawn: standard error, or nowhere if that is no terminal.
pub(crate) fn draw_target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Whether the directory is there in which `path` is to be made. A path that was typed is not made
/// up to its last part: it may be mistyped.
pub(crate) fn parent_exists(path: &Path) -> Result<(), Fail> {
    let parent = path.parent().unwrap_or(Path::new(""));
    if parent.as_os_str().is_empty() || parent.is_dir() {
        return Ok(());
    }
    let name = parent.display();
    let fail = Fail::usage(format!("there is no directory {name}"));
    Err(fail.hint(format!("`mkdir -p {name}` makes it")))
}

/// Writes a file so that it is there as a whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    let fail = |e: io::Error| Fail::failed(format!("{}: {e}", path.display()));
    parent_exists(path)?;
    let _held = interrupt::held();
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, bytes).map_err(fail)?;
    std::fs::rename(&partial, path).map_err(fail)
}
