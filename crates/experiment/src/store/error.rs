//! Errors of run directories.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a run directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file system error.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A table cannot be written or read.
    #[error(transparent)]
    Table(#[from] swell_table::TableError),
    /// A file holds something else than it should.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// The manifest is malformed.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The resolved experiment cannot be read.
    #[error("{0}")]
    Experiment(#[from] crate::file::Problems),
    /// The results of a shard are damaged.
    #[error("{source}\nthe results of this shard are damaged; delete {}, and its runs are done again", dir.display())]
    Shard {
        /// Its directory.
        dir: PathBuf,
        /// What was wrong.
        source: Box<StoreError>,
    },
    /// The result of a run is damaged.
    #[error("{source}\nthe result of this run is damaged; delete {}, and it is done again", dir.display())]
    Run {
        /// Its directory.
        dir: PathBuf,
        /// What was wrong.
        source: Box<StoreError>,
    },
    /// The directory holds no finished run.
    #[error("{}: {reason}", path.display())]
    NoRun {
        /// Which directory.
        path: PathBuf,
        /// Why there is none.
        reason: &'static str,
    },
}

/// Adds the path to an I/O error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError::Io {
        path: path.to_owned(),
        source,
    }
}
