//! Failures of commands, and their exit codes.

pub(crate) use groundswell::Error as Fail;
use groundswell::Kind;

use crate::out;

/// The exit code after an interruption, as in shells: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code for a failure.
pub(crate) fn code(fail: &Fail) -> u8 {
    match fail.kind {
        Kind::Failed => 1,
        Kind::Usage => 2,
        Kind::Interrupted => INTERRUPTED,
        Kind::Program(code) => code,
    }
}

/// Reports a failure on standard error.
pub(crate) fn say(fail: &Fail) {
    if out::events() {
        return out::event(&serde_json::json!({
            "event": "error", "code": code(fail), "message": fail.message, "hint": fail.hint,
            "file": fail.problems.as_ref().map(|p| &p.file),
            "problems": fail.problems.as_ref().map(|p| &p.problems),
        }));
    }
    out::say(&format!("error: {}", fail.message));
    if let Some(hint) = &fail.hint {
        out::say(&format!("hint: {hint}"));
    }
}
