//! The error type of this crate.

use std::fmt::Display;

use swell_experiment::file::Problems;

/// An error: its kind, a message and a hint.
#[derive(Clone, Debug)]
pub struct Error {
    /// Its kind.
    pub kind: Kind,
    /// What went wrong.
    pub message: String,
    /// What would help, if known, in terms of the command `swell`.
    pub hint: Option<String>,
    /// The problems of an experiment file, if it has any.
    pub problems: Option<Problems>,
}

/// The kind of an error, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A failure at run time: a full disk, a host that does not answer.
    Failed,
    /// Invalid usage, or a file that cannot be read.
    Usage,
    /// The caller interrupted it.
    Interrupted,
    /// The program could not be started; the value is the exit code that a shell returns for this.
    Program(u8),
}

impl Error {
    fn new(kind: Kind, message: impl Display) -> Error {
        Error {
            kind,
            message: message.to_string(),
            hint: None,
            problems: None,
        }
    }

    /// A failure at run time.
    pub fn failed(message: impl Display) -> Error {
        Error::new(Kind::Failed, message)
    }

    /// Invalid usage, or a file that cannot be read.
    pub fn usage(message: impl Display) -> Error {
        Error::new(Kind::Usage, message)
    }

    /// The caller interrupted it.
    pub fn interrupted(message: impl Display) -> Error {
        Error::new(Kind::Interrupted, message)
    }

    /// An experiment file is wrong.
    pub fn problems(problems: Problems) -> Error {
        Error {
            problems: Some(problems.clone()),
            ..Error::usage(problems)
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Display) -> Error {
        Error {
            hint: Some(hint.to_string()),
            ..self
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
