//! Data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swell_base::{Severity, Warning};

use crate::fail::Fail;
use crate::{interrupt, tables};

/// Prints data. A reader that has seen enough (a closed pipe) is not an error. Any other failure, such as a
/// full disk, ends the program with exit code 1: output that was lost must not look like success.
pub(crate) fn data(text: &str) {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Fail::failed(format!("standard output: {e}")).say();
            std::process::exit(1);
        }
        _ => {}
    }
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

/// How often progress is reported where standard error is not a terminal, as in a log file.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Progress for logs: where standard error is not a terminal, a line a minute.
pub(crate) struct Log {
    began: Instant,
    /// When the last line was due; `None` on a terminal, which has a progress bar instead.
    last: Option<Mutex<Instant>>,
}

impl Log {
    /// Starts the clock.
    pub(crate) fn new() -> Log {
        let began = Instant::now();
        Log {
            began,
            last: (!io::stderr().is_terminal()).then(|| Mutex::new(began)),
        }
    }

    /// Prints `text` and the time so far, if a minute has passed since the last line.
    pub(crate) fn report(&self, text: impl FnOnce() -> String) {
        let Some(last) = &self.last else { return };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < REPORT_EVERY {
            return;
        }
        *last = Instant::now();
        let minutes = self.began.elapsed().as_secs() / 60;
        say(&format!("{} after {minutes} min", text()));
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
