//! The processes of a host, and those among them that go on after the program that started them has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Host;
use super::program::lock;

/// A process as proc_pid_stat(5) shows it.
struct Known {
    parent: u32,
    name: String,
}

/// Longest pause between two looks at the processes that are to end.
const PAUSE: Duration = Duration::from_millis(20);
/// A process that was killed ends within this time, unless it waits for a disk that does not answer.
const KILLED: Duration = Duration::from_secs(1);

impl Host {
    /// Names of the processes in the host whose starter has ended, and of what they started: daemons and background
    /// jobs of programs that have ended.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn orphans(&self) -> io::Result<Vec<String>> {
        let first = self.init.id();
        // The children of the first process, if the kernel lists them (proc_pid_children(5)). Usually there are none.
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        if children.is_ok_and(|c| c.trim().is_empty()) {
            return Ok(Vec::new());
        }
        let all = processes()?;
        let below = below(&all, first).into_iter();
        let mut names: Vec<String> = below.map(|pid| all[&pid].name.clone()).collect();
        names.sort();
        Ok(names)
    }

    /// Ends all programs of the host and everything that they have started, daemons too. Each process gets SIGTERM; what
    /// still runs after `grace` is killed. What a program starts to clean up after SIGTERM gets none: it has until then.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn end_programs(&self, grace: Duration) -> io::Result<()> {
        let begun = Instant::now();
        self.terminate()?;
        let mut pause = Duration::from_millis(1);
        let mut gone = 0;
        while begun.elapsed() < grace + KILLED {
            let running = self.running()?;
            // A process whose parent ends while /proc is read may be missing once.
            gone = if running.is_empty() { gone + 1 } else { 0 };
            if gone == 2 {
                break;
            }
            if begun.elapsed() >= grace {
                running.iter().for_each(|id| send(*id, Signal::KILL));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        }
        Ok(())
    }

    /// Sends SIGTERM to all that runs, a parent before its children: it starts nothing more where one of them ends.
    fn terminate(&self) -> io::Result<()> {
        let mut known = BTreeSet::new();
        // A process whose parent ends while /proc is read may be missing once.
        for id in [self.running()?, self.running()?].concat() {
            if known.insert(id) {
                send(id, Signal::TERM);
            }
        }
        Ok(())
    }

    /// All processes of the host but the first, each after its parent.
    fn running(&self) -> io::Result<Vec<u32>> {
        let all = processes()?;
        let mut running = below(&all, self.init.id());
        let programs = self.programs.lock();
        for program in programs.unwrap_or_else(PoisonError::into_inner).iter() {
            let mut child = lock(program);
            // Only until it is reaped, its number is certainly its own.
            if child.try_wait()?.is_none() {
                running.extend(all.contains_key(&child.id()).then_some(child.id()));
                running.extend(below(&all, child.id()));
            }
        }
        Ok(running)
    }
}

/// Sends a signal to a process, which may have ended meanwhile.
fn send(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// All processes of the machine, by their number.
fn processes() -> io::Result<BTreeMap<u32, Known>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended since the directory was read.
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(known) = parsed(&String::from_utf8_lossy(&stat)) {
            all.insert(pid, known);
        }
    }
    Ok(all)
}

/// The descendants of process `first`, each after its parent. The first process of a host starts none itself. It becomes
/// the parent of processes whose parents have ended (pid_namespaces(7)).
fn below(all: &BTreeMap<u32, Known>, first: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![first];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, k)| k.parent == parent);
        for (&pid, _) in children {
            parents.push(pid);
            found.push(pid);
        }
    }
    found
}

/// Parses a line of /proc/PID/stat; `None` for a process that has ended and was not reaped. The name may itself hold
/// spaces and parentheses.
fn parsed(stat: &str) -> Option<Known> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    let mut fields = after.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then(|| Known {
        parent,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let known = |stat| parsed(stat).map(|k| (k.parent, k.name));
        let odd = known("12 (a) (b) S 7 12 12 0 -1 4194560");
        assert_eq!(odd, Some((7, "a) (b".to_owned())));
        assert_eq!(known("12 (gone) Z 7 12 12 0"), None);
        for wrong in ["", "12", "12 (a", "12 (a) S", "12 (a) S x 1"] {
            assert_eq!(known(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn children_of_children_count_and_strangers_do_not() {
        let all = [(2, 1), (3, 2), (4, 9), (5, 1)].map(|(pid, parent): (u32, u32)| {
            let name = String::new();
            (pid, Known { parent, name })
        });
        let mut found = below(&BTreeMap::from(all), 1);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 5]);
    }
}
