//! Why a study file cannot be run.

use std::path::PathBuf;

use swell_experiment::file::Problems;

/// Why a study file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The study file, or one of claims, is wrong.
    #[error("{0}")]
    File(#[from] Problems),
    /// An experiment is wrong once a combination has set its keys.
    #[error("{runs}: {problem}")]
    Experiment {
        /// The combination.
        runs: String,
        /// What is wrong.
        problem: String,
    },
    /// A value of `with` cannot be set as requested.
    #[error("--with {assignment}: {reason}")]
    With {
        /// The request.
        assignment: String,
        /// Why.
        reason: String,
    },
    /// The study has no such column.
    #[error("no column is called `{name}`; {hint}")]
    Column {
        /// The request.
        name: String,
        /// A hint with the existing names.
        hint: String,
    },
    /// A capture named on the command line cannot be used.
    #[error("{path}: {reason}")]
    Capture {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The table of reference numbers is wrong.
    #[error("{path}, line {line}: {reason}")]
    Reference {
        /// The table.
        path: PathBuf,
        /// Counted from one.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}
