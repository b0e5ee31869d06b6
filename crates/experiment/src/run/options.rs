//! How to run a plan, what is told meanwhile, and why it may fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::lock::LockError;
use super::shard::Shard;
use crate::backend::RunError;
use crate::observe::Cell;
use crate::store::{Measured, StoreError};

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run directory; made if it is not there.
    pub dir: PathBuf,
    /// Number of threads; each executes one run at a time.
    pub threads: usize,
    /// Delete the results in the directory, of this experiment or of another one. Not to be used with a shard, because
    /// other processes may be working there.
    pub fresh: bool,
    /// Execute only this part of the runs; all of them if `None`.
    pub shard: Option<Shard>,
}

/// Events while a plan runs. The callback is called from several threads.
pub enum Event<'e> {
    /// A stage begins: `measuring`, `running`, or `repeating` for runs that are spoilt ([`Backend::is_spoilt`]).
    Stage {
        /// Its name.
        name: &'static str,
        /// Runs in it.
        runs: usize,
        /// Runs that an earlier session finished.
        finished: usize,
    },
    /// Number of finished runs of the stage, including the finished fractions of active runs.
    Progress(f64),
    /// A run is finished.
    Finished(&'e Cell),
}

/// Why a plan could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process holds the lock of the run directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The run directory holds another experiment.
    #[error("{} holds runs of another experiment:{}", dir.display(), listed(differences))]
    Other {
        /// The directory.
        dir: PathBuf,
        /// Differences between the two experiments.
        differences: Vec<Difference>,
    },
    /// The run directory has no manifest, and files or directories of names that a run writes. They may be the user's.
    #[error("{} holds no run, and a run there would write over {}", dir.display(), found.join(", "))]
    Unknown {
        /// The directory.
        dir: PathBuf,
        /// Names of what is in it.
        found: Vec<String>,
    },
    /// A run failed.
    #[error("{}: {reason}", named(cell))]
    Run {
        /// Which run.
        cell: Cell,
        /// Why.
        reason: RunError,
    },
}

fn named(cell: &Cell) -> String {
    match cell.foreground.as_str() {
        "" => format!(
            "measuring {}, replication {}",
            cell.background, cell.replication
        ),
        foreground => format!(
            "{foreground} against {}, replication {}",
            cell.background, cell.replication
        ),
    }
}

/// A difference between the directory's experiment and the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs: `version`, `backend`, a setting of it, a key of the experiment, or a model.
    pub what: String,
    /// The value in the directory.
    pub there: String,
    /// The current value.
    pub here: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: there {}, here {}", self.what, self.there, self.here)
    }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

/// Measured rates of backgrounds alone, by name.
pub(super) type Rates = BTreeMap<String, Measured>;
