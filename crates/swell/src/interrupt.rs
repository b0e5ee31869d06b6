//! Handling of Ctrl-C.
//!
//! Most commands write a single output atomically, so they end at once. While an experiment runs, the first Ctrl-C is
//! only a request that the runs poll, so that completed runs are kept. The second one ends the program.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fail::{self, Fail};
use crate::out;

/// What the next Ctrl-C does.
enum Answer {
    /// End the program with this message.
    End(Fail),
    /// Set the flag that [`wished`] returns, so that the runs end in order.
    Wish,
}

static ANSWER: Mutex<Option<Answer>> = Mutex::new(None);
static WISHED: AtomicBool = AtomicBool::new(false);

/// Installs the Ctrl-C handler.
pub(crate) fn listen() -> Result<(), Fail> {
    let heard = || {
        let answer = answer();
        match &*answer {
            Some(Answer::Wish) if !WISHED.swap(true, Ordering::Relaxed) => return,
            Some(Answer::Wish) | None => {}
            Some(Answer::End(fail)) => {
                if io::stderr().is_terminal() {
                    // End the line of the progress bar.
                    out::say("");
                }
                out::failure(fail);
            }
        }
        exit(fail::INTERRUPTED.into());
    };
    ctrlc::set_handler(heard).map_err(|e| Fail::failed(format!("cannot listen for Ctrl-C: {e}")))
}

/// Makes the death of the parent process act as Ctrl-C, so that a killed program leaves no runs behind.
pub(crate) fn with_parent() {
    // Without kernel support, runs still end by themselves, but later.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT));
}

/// Makes Ctrl-C end the program with this message.
pub(crate) fn ends(message: &str, hint: &str) {
    *answer() = Some(Answer::End(Fail::interrupted(message).hint(hint)));
}

/// Makes the next Ctrl-C a request to stop, which [`wished`] reports.
pub(crate) fn wishes() {
    *answer() = Some(Answer::Wish);
}

/// Whether Ctrl-C was pressed since [`wishes`].
pub(crate) fn wished() -> bool {
    WISHED.load(Ordering::Relaxed)
}

/// Delays Ctrl-C while the guard is held, for operations that must not be interrupted halfway.
pub(crate) fn held() -> impl Drop {
    answer()
}

/// Writes a file atomically, even if Ctrl-C arrives meanwhile.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    let _held = held();
    groundswell::files::write(path, bytes)
}

/// Locks the current response. Holders do not panic, and the value is always valid, so a poisoned lock is safe.
fn answer() -> MutexGuard<'static, Option<Answer>> {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner)
}
