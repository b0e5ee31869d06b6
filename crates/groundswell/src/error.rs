//! Why something could not be done.

use std::fmt::Display;

use swell_experiment::file::Problems;

/// Why something could not be done.
#[derive(Clone, Debug)]
pub struct Error {
    /// Whose fault it is.
    pub kind: Kind,
    /// What went wrong.
    pub message: String,
    /// What would help, if that is known, in words of the command `swell`.
    pub hint: Option<String>,
    /// Where an experiment file is wrong, if one is.
    pub problems: Option<Problems>,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It went wrong on the way: a full disk, a host that does not answer.
    Failed,
    /// What was asked makes no sense, or a file does not read.
    Usage,
    /// The caller interrupted it.
    Interrupted,
    /// The program that was to run could not be started; with what a shell returns for that.
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

    /// It went wrong.
    pub fn failed(message: impl Display) -> Error {
        Error::new(Kind::Failed, message)
    }

    /// What was asked makes no sense, or a file does not read.
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

    /// With what would help.
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
