//! Output: data to standard output, messages to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swell_base::{Severity, Warning};

use crate::fail::{Fail, code};
use crate::tables;

/// Prints data. A reader that has closed the pipe is not an error. Any other failure, such as a full disk, ends the
/// program with exit code 1, because lost output must not look like success.
pub(crate) fn data(text: &str) {
    bytes(format!("{text}\n").as_bytes());
}

/// The same for data that is no text, such as a picture.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            failure(&Fail::failed(format!("standard output: {e}")));
            std::process::exit(1);
        }
        _ => {}
    }
}

/// Prints JSON.
pub(crate) fn json(value: &serde_json::Value) {
    data(&format!("{value:#}"));
}

/// Whether messages are JSON events for a program.
static EVENTS: AtomicBool = AtomicBool::new(false);

/// Turns JSON events on or off.
pub(crate) fn events_wanted(wanted: bool) {
    EVENTS.store(wanted, Ordering::Relaxed);
}

/// Whether messages are JSON events.
pub(crate) fn events() -> bool {
    EVENTS.load(Ordering::Relaxed)
}

/// Writes a line of JSON to standard error.
pub(crate) fn event(value: &serde_json::Value) {
    let _ = writeln!(io::stderr().lock(), "{value}");
}

/// Prints a message.
pub(crate) fn say(text: &str) {
    if events() {
        return event(&serde_json::json!({"event": "message", "text": text}));
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Reports a failure on standard error.
pub(crate) fn failure(fail: &Fail) {
    if events() {
        return event(&serde_json::json!({
            "event": "error", "code": code(fail), "message": fail.message, "hint": fail.hint,
            "file": fail.problems.as_ref().map(|p| &p.file),
            "problems": fail.problems.as_ref().map(|p| &p.problems),
        }));
    }
    say(&format!("error: {}", fail.message));
    if let Some(hint) = &fail.hint {
        say(&format!("hint: {hint}"));
    }
}

/// Prints warnings.
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

/// A progress bar on standard error; hidden if that is not a terminal.
pub(crate) fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), draw_target());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// The target of progress bars: standard error, or none if that is not a terminal.
pub(crate) fn draw_target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() && !events() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Interval of progress reports if standard error is not a terminal, as in a log file.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Interval of progress events for a program.
const EVENT_EVERY: Duration = Duration::from_millis(200);

/// Progress for logs and programs: a line per minute if standard error is not a terminal, or events.
pub(crate) struct Log {
    began: Instant,
    /// When the last line was due; `None` on a terminal, which has a progress bar.
    last: Option<Mutex<Instant>>,
}

impl Log {
    /// Whether a line is due in a log file; then the next one is due a while later. Programs get events instead.
    fn due(&self, every: Duration) -> bool {
        let Some(last) = &self.last else { return false };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.elapsed() >= every;
        if due {
            *last = Instant::now();
        }
        due
    }

    /// Says how far work is that does not consist of runs, if a line is due in a log file.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if !events() && self.due(REPORT_EVERY) {
            let minutes = self.began.elapsed().as_secs() / 60;
            say(&format!("{} after {minutes} min", what()));
        }
    }

    /// Starts the clock.
    pub(crate) fn new() -> Log {
        let began = Instant::now();
        Log {
            began,
            last: (events() || !io::stderr().is_terminal()).then(|| Mutex::new(began)),
        }
    }

    /// Reports that `done` of `all` runs of a stage are done, if a report is due.
    pub(crate) fn report(&self, stage: &str, done: f64, all: f64) {
        if self.last.is_none() {
            return;
        }
        let every = if events() { EVENT_EVERY } else { REPORT_EVERY };
        if !(self.due(every) || events() && done >= all) {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_one_line_per_interval_and_a_terminal_none() {
        let log = Log {
            began: Instant::now(),
            last: Some(Mutex::new(Instant::now())),
        };
        assert!(!log.due(Duration::from_secs(3600)));
        assert!(log.due(Duration::ZERO));
        assert!(!log.due(Duration::from_secs(3600)));
        let terminal = Log { last: None, ..log };
        assert!(!terminal.due(Duration::ZERO));
    }
}
