//! Directories that go away with their process, however it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What the names of all of them begin with.
const PREFIX: &str = "swell-";

/// A directory for what nobody keeps. It is removed with this value; if the process is killed, the next
/// one that makes a directory removes it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new directory among the machine's temporary files.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> io::Result<Scratch> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        sweep();
        let own = std::process::id();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Process numbers come again; the time of the start tells one from another.
        let name = format!("{PREFIX}{own}-{}-{number}", started(own).unwrap_or(0));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now, the next one will try to.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what processes left that are gone; returns how many directories.
pub fn sweep() -> usize {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return 0;
    };
    let orphaned = |e: &fs::DirEntry| {
        let name = e.file_name();
        let mut parts = name.to_str()?.strip_prefix(PREFIX)?.split('-');
        let (pid, begun): (u32, u64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (started(pid) != Some(begun)).then_some(())
    };
    let entries = entries.flatten().filter(|e| orphaned(e).is_some());
    entries
        .filter(|e| fs::remove_dir_all(e.path()).is_ok())
        .count()
}

/// When a process was started, in ticks since the machine was; `None` if there is none of that number
/// (proc_pid_stat(5), field 22; the second one may hold blanks, and ends with the last bracket).
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_lives_stays() {
        let mine = Scratch::new().unwrap();
        // No process has this number: it is above the kernel's largest (proc_sys_kernel(5), pid_max).
        let dead = std::env::temp_dir().join(format!("{PREFIX}4194305-7-0"));
        fs::create_dir_all(dead.join("inside")).unwrap();
        // Mine, but of an earlier process of the same number.
        let before = std::env::temp_dir().join(format!("{PREFIX}{}-1-0", std::process::id()));
        fs::create_dir_all(&before).unwrap();
        let other = std::env::temp_dir().join(format!("{PREFIX}not-ours"));
        fs::create_dir_all(&other).unwrap();
        sweep();
        assert!(mine.path().exists() && other.exists());
        assert!(!dead.exists() && !before.exists());
        fs::remove_dir(&other).unwrap();
        let path = mine.path().to_owned();
        drop(mine);
        assert!(!path.exists());
    }
}
