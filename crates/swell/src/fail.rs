//! How a command fails.

use std::fmt::Display;

use groundswell::{Error, Kind};
use swell_experiment::file::Problems;

use crate::out;

/// Why a command did not do what it was asked, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Fail {
    pub code: u8,
    pub message: String,
    pub hint: Option<String>,
    /// Where an experiment file is wrong, if one is.
    pub problems: Option<Problems>,
}

impl Fail {
    /// The exit code of an interruption, as shells have it: 128 + SIGINT.
    pub(crate) const INTERRUPTED: u8 = 130;

    /// It went wrong: exit code 1.
    pub(crate) fn failed(message: impl Display) -> Fail {
        Fail {
            code: 1,
            message: message.to_string(),
            hint: None,
            problems: None,
        }
    }
    /// What was asked makes no sense, or a file does not read: exit code 2.
    pub(crate) fn usage(message: impl Display) -> Fail {
        Fail {
            code: 2,
            ..Fail::failed(message)
        }
    }
    /// An experiment file is wrong: exit code 2.
    pub(crate) fn problems(problems: Problems) -> Fail {
        Error::problems(problems).into()
    }
    /// The user interrupted it.
    pub(crate) fn interrupted(message: impl Display) -> Fail {
        Fail {
            code: Fail::INTERRUPTED,
            ..Fail::failed(message)
        }
    }
    /// Says it on standard error.
    pub(crate) fn say(&self) {
        if out::events() {
            return out::event(&serde_json::json!({
                "event": "error", "code": self.code, "message": self.message, "hint": self.hint,
                "file": self.problems.as_ref().map(|p| &p.file),
                "problems": self.problems.as_ref().map(|p| &p.problems),
            }));
        }
        out::say(&format!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            out::say(&format!("hint: {hint}"));
        }
    }
    /// With what would help.
    pub(crate) fn hint(self, hint: impl Display) -> Fail {
        Fail {
            hint: Some(hint.to_string()),
            ..self
        }
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        Fail {
            code: match error.kind {
                Kind::Failed => 1,
                Kind::Usage => 2,
                Kind::Interrupted => Fail::INTERRUPTED,
            },
            message: error.message,
            hint: error.hint,
            problems: error.problems,
        }
    }
}
