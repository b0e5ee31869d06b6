//! Ctrl-C: what it ends, what is kept.
//!
//! Most commands leave one thing, as a whole or not at all, and end at once. While an experiment runs,
//! the first Ctrl-C is a wish that the runs look at, so that what is finished is kept; the second
//! ends the program.

use std::io::{self, IsTerminal};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fail::{self, Fail};
use crate::out;

/// What the next Ctrl-C does.
enum Answer {
    /// End the program, saying this.
    End(Fail),
    /// Let whoever asks [`wished`] come to an end.
    Wish,
}

static ANSWER: Mutex<Option<Answer>> = Mutex::new(None);
static WISHED: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C from now on.
pub(crate) fn listen() -> Result<(), Fail> {
    let heard = || {
        let answer = answer();
        match &*answer {
            Some(Answer::Wish) if !WISHED.swap(true, Ordering::Relaxed) => return,
            Some(Answer::Wish) | None => {}
            Some(Answer::End(fail)) => {
                if io::stderr().is_terminal() {
                    // Behind the progress bar.
                    out::say("");
                }
                fail::say(fail);
            }
        }
        exit(fail::INTERRUPTED.into());
    };
    ctrlc::set_handler(heard).map_err(|e| Fail::failed(format!("cannot listen for Ctrl-C: {e}")))
}

/// From now on the end of whoever started this process is a Ctrl-C: a program that is killed leaves no runs behind.
pub(crate) fn with_parent() {
    // Where the kernel does not know it, runs end by themselves, later.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT));
}

/// From now on Ctrl-C ends the program with these words.
pub(crate) fn ends(message: &str, hint: &str) {
    *answer() = Some(Answer::End(Fail::interrupted(message).hint(hint)));
}

/// From now on Ctrl-C is a wish.
pub(crate) fn wishes() {
    *answer() = Some(Answer::Wish);
}

/// Whether Ctrl-C was pressed since [`wishes`].
pub(crate) fn wished() -> bool {
    WISHED.load(Ordering::Relaxed)
}

/// Ctrl-C waits as long as this is held: for what must not be half done.
pub(crate) fn held() -> impl Drop {
    answer()
}

/// Its holders do not panic, and an answer is whole at any time.
fn answer() -> MutexGuard<'static, Option<Answer>> {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner)
}
