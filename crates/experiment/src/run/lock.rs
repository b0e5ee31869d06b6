//! Locks: one writer for each run directory.
//!
//! The operating system holds the locks and releases them when the process ends, for whatever reason. A run without
//! shards locks the directory exclusively. Shards share the directory lock, and each locks its own part exclusively.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::shard::Shard;
use crate::store::{StoreError, at};

/// Name of the directory's lock file. It is never removed, because that would be a race.
pub const LOCK: &str = ".lock";
/// What a lock begins with that is held exclusively, or was; the number of the process follows. Others are empty.
const HOLDER: &str = "process ";
/// Directory for the results of finished shards and for their locks.
pub(super) const SHARDS: &str = "shards";
/// Name in it of the lock that shards take while they set up the directory.
pub(super) const SETUP: &str = "setup.lock";
/// Time between two attempts to take a lock that another process holds.
const POLL: Duration = Duration::from_millis(100);
/// Further attempts before a busy lock is an error. A forked child shares the locks of its parent until it calls exec,
/// so a lock that was just released may still appear held.
const TRIES: u32 = 5;

/// A locked directory, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _files: Vec<File>,
    /// The file that shards lock while they set up the directory.
    setup: Option<PathBuf>,
}

/// Whether a directory's lock is the program's, or is not there. A file of this name may be the user's.
pub fn is_own(dir: &Path) -> bool {
    let path = dir.join(LOCK);
    match path.metadata() {
        Ok(there) if there.is_file() => {
            let mut begin = Vec::new();
            let read = File::open(&path)
                .and_then(|file| file.take(HOLDER.len() as u64).read_to_end(&mut begin));
            read.is_ok() && HOLDER.as_bytes().starts_with(&begin)
        }
        Ok(_) => false,
        Err(_) => path.symlink_metadata().is_err(),
    }
}

/// Why a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes to the directory.
    #[error("{} is in use by another swell{by}", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
        /// Which process, if known; begins with a space.
        by: String,
    },
    /// A file system error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Lock {
    /// Locks all of `dir`, or the part of `shard`. Creates the directory if needed.
    ///
    /// # Errors
    /// If another process holds the lock, or the file system does not support locks.
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
            setup = Some(parts.join(SETUP));
        }
        Ok(Lock {
            _files: files,
            setup,
        })
    }

    /// Waits until no other shard is setting up the directory. Other shards wait until the result is dropped. `None` if
    /// it was cancelled.
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
    /// An exclusive lock.
    Alone,
    /// A shared lock.
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
            // Only an exclusive holder writes its name. The name is optional, so a read error does not matter.
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
        let name = format!("{HOLDER}{}\n", std::process::id());
        let mut note = || {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(name.as_bytes())
        };
        note().map_err(at(path))?;
    } else {
        // Remove the name of the last exclusive holder.
        file.set_len(0).map_err(at(path))?;
    }
    Ok(file)
}
