//! Temporary directories that are removed when their process ends, for any reason.
//!
//! A live owner holds a lock on its directory (flock(2)), which the kernel releases when the owner ends. Process IDs
//! would not work: containers and nested namespaces that share the temporary files have different IDs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of all their names. Earlier versions remove everything that starts with `swell-`, whether locked or not.
const PREFIX: &str = "swell.";

/// A temporary directory. It is removed when this value is dropped. If the process is killed, the next process that
/// creates one removes it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The directory itself, locked.
    _lock: File,
}

impl Scratch {
    /// Creates a directory among the machine's temporary files.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> io::Result<Scratch> {
        Scratch::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Scratch> {
        sweep_in(place);
        loop {
            if let Some(scratch) = Scratch::at(place.join(name()))? {
                return Ok(scratch);
            }
        }
    }

    /// Creates and locks the directory `path`. Returns `None` if another process was faster.
    fn at(path: PathBuf) -> io::Result<Option<Scratch>> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        }
        // Between the two steps, a process that cleans up may have found it unlocked and removed it.
        let opened = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match opened.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // If the file system has no locks, no process can clean up there.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mine = opened.metadata()?;
        let same =
            fs::metadata(&path).is_ok_and(|m| (m.dev(), m.ino()) == (mine.dev(), mine.ino()));
        Ok(same.then_some(Scratch {
            path,
            _lock: opened,
        }))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it cannot be removed now, the next process will try.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A name that this process has not used before.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let epoch = std::time::SystemTime::UNIX_EPOCH;
    let nanos = epoch.elapsed().map_or(0, |d| d.as_nanos());
    format!("{PREFIX}{}-{nanos}-{number}", std::process::id())
}

/// Directories of this program in `place`, from any process.
fn all(place: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(place).ok();
    let ours = |e: &fs::DirEntry| {
        let name = e.file_name();
        let parts = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        parts.is_some_and(|p| {
            p.split('-').count() == 3 && p.split('-').all(|n| n.parse::<u128>().is_ok())
        }) && e.file_type().is_ok_and(|t| t.is_dir())
    };
    let entries = entries.into_iter().flatten().flatten();
    entries.filter(ours).map(|e| e.path())
}

/// Removes directories whose processes have ended; returns their number.
pub fn sweep() -> usize {
    sweep_in(&std::env::temp_dir())
}

fn sweep_in(place: &Path) -> usize {
    let removed = |path: &PathBuf| {
        // No living process holds the directory. It stays locked until it is removed.
        let lock = File::open(path).ok()?;
        lock.try_lock().ok()?;
        fs::remove_dir_all(path).ok()
    };
    all(place).filter_map(|p| removed(&p)).count()
}

/// Directories whose owners are alive.
pub fn live() -> Vec<PathBuf> {
    live_in(&std::env::temp_dir())
}

fn live_in(place: &Path) -> Vec<PathBuf> {
    let held = |path: &PathBuf| {
        File::open(path).is_ok_and(|f| matches!(f.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    all(place).filter(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_removed_and_what_lives_stays() {
        // A separate folder, because other processes on this machine clean up the common one.
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let mine = Scratch::new_in(place).unwrap();
        // No process has this ID: it exceeds the kernel's maximum (proc_sys_kernel(5), pid_max).
        let dead = place.join(format!("{PREFIX}4194305-7-0"));
        fs::create_dir_all(dead.join("inside")).unwrap();
        // The view from a container: the owner lives in another one, and no process here has its ID.
        let elsewhere = Scratch::at(place.join(format!("{PREFIX}4194306-7-0")))
            .unwrap()
            .unwrap();
        let other = place.join(format!("{PREFIX}not-ours"));
        fs::create_dir_all(&other).unwrap();
        let found = live_in(place);
        sweep_in(place);
        assert!(mine.path().exists() && other.exists() && elsewhere.path().exists());
        assert!(found.contains(&mine.path) && found.contains(&elsewhere.path));
        assert!(!dead.exists() && !found.contains(&dead));
        fs::remove_dir(&other).unwrap();
        let path = mine.path().to_owned();
        drop(mine);
        assert!(!path.exists());
    }

    #[test]
    fn makers_and_sweepers_in_each_others_way_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let made = Scratch::new_in(place).unwrap();
                        fs::write(made.path().join("file"), "kept").unwrap();
                        sweep_in(place);
                        assert!(made.path().join("file").exists());
                    }
                });
            }
        });
    }
}
