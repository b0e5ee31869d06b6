//! Names in a run directory: which files are the program's own. Everything else in it is the user's.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::lock::{self, LOCK, SETUP, SHARDS};
use super::shard::Shard;
use crate::store::{KEPT, StoreError, TABLES, at, is_temporary};

/// Directory of finished runs.
pub(super) const CELLS: &str = "cells";
/// Directory of measurements of backgrounds alone.
pub(super) const MEASURED: &str = "measured";
/// Directory of copies of models.
pub(super) const MODELS: &str = "models";
/// The resolved experiment.
pub(super) const EXPERIMENT: &str = "experiment.toml";

pub(super) const CELL_FACTS: &str = "run.json";
/// Directory of packet traces.
pub(super) const PACKETS: &str = "packets";
/// Directory of flow records.
pub(super) const RECORDS: &str = "records";
/// Directory for the output of programs.
pub const OUTPUT: &str = "output";
/// File name of the list of runs in a set.
pub(super) const RUNS: &str = "runs.json";

const DIRS: [&str; 7] = [CELLS, MEASURED, SHARDS, MODELS, PACKETS, RECORDS, OUTPUT];

/// Names of files that a run writes beside its manifest.
pub(super) fn files() -> impl Iterator<Item = String> {
    let tables = TABLES.into_iter().chain(KEPT);
    let named = [EXPERIMENT, "report.html"].map(String::from);
    named
        .into_iter()
        .chain(tables.map(|table| format!("{table}.parquet")))
}

/// What is in a directory under names that a run writes or removes. Without a manifest, it is the user's. Empty
/// directories and the program's locks are no obstacle: they lose nothing. Nor is what may have been gathered from shards on other
/// machines, whole or not: sets say of which experiment they are, and nothing else there is removed. With `fresh`, even
/// sets would be removed.
pub(super) fn taken(root: &Path, fresh: bool) -> Result<Vec<String>, StoreError> {
    // Something else in its place is an error of the lock.
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let lock = (!lock::is_own(root)).then(|| LOCK.to_owned());
    let there = |name: &String| root.join(name).symlink_metadata().is_ok();
    let mut found: Vec<String> = lock.into_iter().chain(files().filter(there)).collect();
    for sub in DIRS {
        let path = root.join(sub);
        let held = |entry: io::Result<fs::DirEntry>| {
            sub != SHARDS
                || (fresh && entry.is_ok_and(|e| !is_lock(&e.file_name().to_string_lossy())))
        };
        match fs::read_dir(&path) {
            Ok(mut entries) => found.extend(entries.any(held).then(|| sub.to_owned())),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if e.kind() == ErrorKind::NotADirectory => found.push(sub.to_owned()),
            Err(e) => return Err(at(&path)(e)),
        }
    }
    Ok(found)
}

/// Whether a directory is empty, or has only what a call leaves that ended before its manifest was there.
///
/// # Errors
/// Those of the file system.
pub fn is_unused(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !(is_temporary(&name) || (name == LOCK && lock::is_own(dir))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what runs have put into the directories of a run directory, and the directories that are then empty.
/// `copies` are the names of copies of models.
pub(super) fn remove_all(root: &Path, copies: &[String]) -> Result<(), StoreError> {
    remove(&root.join(MODELS), |name| {
        copies.iter().any(|c| c == name) || is_temporary(name)
    })?;
    let mut others = DIRS.into_iter().filter(|sub| *sub != MODELS);
    others.try_for_each(|sub| remove_in(root, sub))
}

/// Removes what runs have put into one of the directories, and the directory if it is then empty.
pub(super) fn remove_in(root: &Path, sub: &str) -> Result<(), StoreError> {
    let dir = root.join(sub);
    remove(&dir, |name| is_own(&dir, sub, name))
}

/// Removes those entries of a directory, and the directory if it is then empty.
pub(super) fn remove(dir: &Path, is_own: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        // A file of this name is not the program's.
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => {
            return Ok(());
        }
        Err(e) => return Err(at(dir)(e)),
    };
    for entry in entries {
        let entry = entry.map_err(at(dir))?;
        if entry.file_name().to_str().is_some_and(&is_own) {
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = match is_dir {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            gone(removed).map_err(at(&path))?;
        }
    }
    // Fails if something of the user's is left in it, which is intended.
    let _ = fs::remove_dir(dir);
    Ok(())
}

/// The result of a removal. That it is gone already is no failure.
pub(super) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether runs make an entry of this name in the directory `sub`, whose path is `dir`. Names of runs begin with their
/// number, of five digits at least.
fn is_own(dir: &Path, sub: &str, name: &str) -> bool {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &name[digits..];
    match sub {
        CELLS => digits >= 5 && (rest.is_empty() || rest.starts_with('.')),
        PACKETS | RECORDS | OUTPUT => digits >= 5 && rest.starts_with('-'),
        MEASURED => {
            // Earlier versions had temporary files without the beginning of the others.
            let ends = ["-run.json", "-run.partial", "-piece.json", "-piece.partial"];
            let ends_so = ends.iter().any(|end| rest.ends_with(end));
            is_temporary(name) || (digits > 0 && rest.starts_with('-') && ends_so)
        }
        // Without its list of runs, nothing says that a directory is a set: the user may have put it there.
        SHARDS => match after_label(name) {
            Some(".partial") => true,
            Some(number) if number.is_empty() || number[1..].parse::<u32>().is_ok() => {
                dir.join(name).join(RUNS).exists()
            }
            _ => is_lock(name),
        },
        _ => false,
    }
}

/// Whether this is the name of a lock of shards.
fn is_lock(name: &str) -> bool {
    name == SETUP || after_label(name) == Some(".lock")
}

/// What follows the label of a shard in a name: nothing, or a dot and an ending.
fn after_label(name: &str) -> Option<&str> {
    let (label, ending) = name.split_at(name.find('.').unwrap_or(name.len()));
    let (index, of) = label.split_once("-of-")?;
    let shard = Shard::new(index.parse().ok()?, of.parse().ok()?)?;
    (shard.label() == label).then_some(ending)
}

/// Whether this is the name of the copy of a model: the number of its part comes first.
pub(super) fn is_copy(name: &str) -> bool {
    let number = name.strip_prefix("foreground-").unwrap_or(name);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && number[digits..].starts_with('-') && !name.contains('/')
}
