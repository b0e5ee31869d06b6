//! Failures of commands, and their exit codes.

pub(crate) use groundswell::Error as Fail;
use groundswell::Kind;

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
