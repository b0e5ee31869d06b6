//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a run directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A table could not be written or read.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        source: parquet::errors::ParquetError,
    },
    /// A table lacks a column, or a cell of it holds something unknown.
    #[error("{}: {reason}", path.display())]
    Table {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// The manifest is no manifest.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The resolved experiment does not read.
    #[error("{0}")]
    Experiment(#[from] crate::file::Problems),
    /// The directory holds no finished run.
    #[error("{}: {reason}", path.display())]
    NoRun {
        /// Which directory.
        path: PathBuf,
        /// Why it is none.
        reason: &'static str,
    },
}

/// Turns an I/O error into one that says which file.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError::Io {
        path: path.to_owned(),
        source,
    }
}
