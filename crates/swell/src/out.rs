//! Data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swell_base::{Severity, Warning};

use crate::fail::{self, Fail};
use crate::{interrupt, tables};

/// Prints data. A reader that has seen enough (a closed pipe) is not an error. Any other failure, such as a
/// full disk, ends the program with exit code 1: output that was lost must not look like success.
pub(crate) fn data(text: &str) {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            fail::say(&Fail::failed(format!("standard output: {e}")));
            std::process::exit(1);
        }
        _ => {}
    }
}

/// Prints JSON.
pub(crate) fn json(value: &serde_json::Value) {
    data(&format!("{value:#}"));
}

/// Whether talk is for a program.
static EVENTS: AtomicBool = AtomicBool::new(false);

/// From now on talk is JSON, if `wanted`.
pub(crate) fn events_wanted(wanted: bool) {
    EVENTS.store(wanted, Ordering::Relaxed);
}

/// Whether talk is JSON.
pub(crate) fn events() -> bool {
    EVENTS.load(Ordering::Relaxed)
}

/// A line of JSON on standard error.
pub(crate) fn event(value: &serde_json::Value) {
    let _ = writeln!(io::stderr().lock(), "{value}");
}

/// Says something.
pub(crate) fn say(text: &str) {
    if events() {
        return event(&serde_json::json!({"event": "message", "text": text}));
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what to doubt.
pub(crate) fn warnings(warnings: &[Warning]) {
    for w in warnings {
        if events() {
            event(&serde_json::json!({"event": "warning", "warning": w}));
            continue;
        }
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
    if io::stderr().is_terminal() && !events() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// How often progress is reported where standard error is not a terminal, as in a log file.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// How often progress is reported to a program.
const EVENT_EVERY: Duration = Duration::from_millis(200);

/// Progress for logs: where standard error is not a terminal, a line a minute; for programs, events.
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
            last: (events() || !io::stderr().is_terminal()).then(|| Mutex::new(began)),
        }
    }

    /// Reports that `done` of `all` runs of a stage are done, if it is time to.
    pub(crate) fn report(&self, stage: &str, done: f64, all: f64) {
        let Some(last) = &self.last else { return };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = if events() { EVENT_EVERY } else { REPORT_EVERY };
        if last.elapsed() < due && !(events() && done >= all) {
            return;
        }
        *last = Instant::now();
        if events() {
            return event(&serde_json::json!({
                "event": "progress", "stage": stage, "done": done, "runs": all,
                "seconds": self.began.elapsed().as_secs_f64(),
            }));
        }
        let minutes = self.began.elapsed().as_secs() / 60;
        say(&format!(
            "{stage}: {} of {} runs after {minutes} min",
            done as u64, all as u64
        ));
    }
}

/// Whether a path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes a file so that it is there as a whole or not at all, whenever Ctrl-C comes.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    let _held = interrupt::held();
    groundswell::files::write(path, bytes)
}
