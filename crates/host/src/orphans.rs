//! Processes that go on after the program that started them has ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// A process as proc_pid_stat(5) shows it.
struct Known {
    parent: u32,
    name: String,
}

/// Names of the descendants of process `first`, sorted. The first process of a host starts none itself. It becomes the
/// parent of processes whose parents have ended (pid_namespaces(7)).
///
/// # Errors
/// If /proc cannot be read.
pub fn descendants(first: u32) -> io::Result<Vec<String>> {
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
    Ok(below(&all, first))
}

fn below(all: &BTreeMap<u32, Known>, first: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut parents = vec![first];
    while let Some(parent) = parents.pop() {
        for (&pid, known) in all.iter().filter(|(_, k)| k.parent == parent) {
            parents.push(pid);
            names.push(known.name.clone());
        }
    }
    names.sort();
    names
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
        let all = [(2, 1, "d"), (3, 2, "c"), (4, 9, "b"), (5, 1, "a")];
        let all = all.map(|(pid, parent, name): (u32, u32, &str)| {
            let name = name.to_owned();
            (pid, Known { parent, name })
        });
        assert_eq!(below(&BTreeMap::from(all), 1), ["a", "c", "d"]);
    }
}
