//! One writer for each run directory.
//!
//! The operating system keeps the locks and drops them with the process, however it ends. A run of everything locks
//! the directory for itself. Shards share it with each other, and each locks its own part.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::shard::Shard;
use crate::store::{StoreError, at};

/// Name of the directory's lock file. It stays: to remove it would be a race.
pub const LOCK: &str = ".lock";
/// Where shards keep what they have finished, and their locks.
pub(super) const SHARDS: &str = "shards";
/// Between two looks at a lock that another shard holds.
const POLL: Duration = Duration::from_millis(100);
/// Looks at a lock before it is refused. Who starts a program shares its locks with the new process until that executes
/// the program, so a lock that was just given back may still seem held.
const TRIES: u32 = 5;

/// A locked directory, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _files: Vec<File>,
    /// What shards lock while they set the directory up.
    setup: Option<PathBuf>,
}

/// Why a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes there.
    #[error("{} is in use by another swell{by}", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// Which process, where it is known; begins with a blank.
        by: String,
    },
    /// The file system said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Lock {
    /// Locks `dir`, which is made if it is not there: all of it, or the part of `shard`.
    ///
    /// # Errors
    /// Where another process has it, or the file system has no locks.
    pub fn take(dir: &Path, shard: Option<Shard>) -> Result<Lock, LockError> {
        fs::create_dir_all(dir).map_err(at(dir))?;
        let whole = Kind::of(shard.is_none());
        let mut files = vec![locked(dir, &dir.join(LOCK), whole)?];
        let mut setup = None;
        if let Some(shard) = shard {
            let parts = dir.join(SHARDS);
            fs::create_dir_all(&parts).map_err(at(&parts))?;
            let own = parts.join(format!("{}.lock", shard.label()));
            files.push(locked(dir, &own, Kind::Alone)?);
            setup = Some(parts.join("setup.lock"));
        }
        Ok(Lock {
            _files: files,
            setup,
        })
    }

    /// Waits until no other shard sets the directory up; the result keeps others waiting until it is dropped. `None`
    /// where it was cancelled.
    pub(super) fn setup(
        &self,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Option<File>>, StoreError> {
        let Some(path) = &self.setup else {
            return Ok(Some(None));
        };
        let file = open(path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Some(file))),
                Err(TryLockError::WouldBlock) if cancelled() => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
                Err(TryLockError::Error(error)) => return Err(at(path)(error)),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Nobody else.
    Alone,
    /// With others that share it.
    Shared,
}

impl Kind {
    fn of(alone: bool) -> Kind {
        if alone { Kind::Alone } else { Kind::Shared }
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(at(path))
}

fn locked(dir: &Path, path: &Path, kind: Kind) -> Result<File, LockError> {
    let mut file = open(path)?;
    let take = || match kind {
        Kind::Alone => file.try_lock(),
        Kind::Shared => file.try_lock_shared(),
    };
    let mut result = take();
    for _ in 0..TRIES {
        if !matches!(result, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(POLL);
        result = take();
    }
    match result {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut by = String::new();
            // Only who locks alone leaves its name. A lock is refused with or without it.
            let _ = file.read_to_string(&mut by);
            let by = match by.trim() {
                "" => String::new(),
                name => format!(" ({name})"),
            };
            return Err(LockError::Busy {
                dir: dir.to_owned(),
                by,
            });
        }
        Err(TryLockError::Error(error)) => return Err(at(path)(error).into()),
    }
    if kind == Kind::Alone {
        let name = format!("process {}\n", std::process::id());
        let mut note = || {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(name.as_bytes())
        };
        note().map_err(at(path))?;
    } else {
        // The name of who had it alone before would be wrong.
        file.set_len(0).map_err(at(path))?;
    }
    Ok(file)
}
