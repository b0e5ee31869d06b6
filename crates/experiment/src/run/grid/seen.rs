//! Progress of a grid, for an observer while other processes run it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::files::{Columns, Options, of_shards, whole};

/// Progress of a grid as its files show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The columns that identify a run.
    pub keys: Vec<String>,
    /// Every requested run, in order: its key, and whether it is finished.
    pub runs: Vec<(Vec<String>, bool)>,
    /// When it was last started.
    pub begun: SystemTime,
}

/// The file with the names of the requested runs.
pub fn plan_of(table: &Path) -> PathBuf {
    table.with_extension("plan")
}

/// Whether a grid with this table was begun, so that table and files beside it are its own: one with these columns that
/// identify a run, or another one that has requested runs. Otherwise the file of the plan may be the user's.
pub fn is_begun(table: &Path, keys: &[String]) -> bool {
    let text = fs::read_to_string(plan_of(table)).unwrap_or_default();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let columns = first.split(',').count();
    let is_name = |line: &str| {
        let fingerprint = line.split(',').nth(columns);
        fingerprint.is_some_and(|last| last.len() == 16 && u64::from_str_radix(last, 16).is_ok())
    };
    let mut names = lines.peekable();
    !first.is_empty() && (first == keys.join(",") || (names.peek().is_some() && names.all(is_name)))
}

/// Marks the directory as that of a grid, before anything else is written there.
pub(super) fn mark(options: &Options, columns: &Columns) -> io::Result<()> {
    match is_begun(&options.file, &columns.keys) {
        true => Ok(()),
        false => plan(options, columns, &[]),
    }
}

/// Writes the names of the requested runs.
pub(super) fn plan(options: &Options, columns: &Columns, names: &[String]) -> io::Result<()> {
    let path = plan_of(&options.file);
    let keys = columns.keys.join(",");
    let lines = std::iter::once(&keys).chain(names);
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    whole(&path, &options.own(&path), &text)
}

impl Seen {
    /// Reads the progress of the grid with this table. It may be running, in one process or in shards.
    ///
    /// # Errors
    /// If it was never started, or one of its files cannot be read.
    pub fn of(table: &Path) -> io::Result<Seen> {
        let path = plan_of(table);
        let text = fs::read_to_string(&path)?;
        let begun = path.metadata()?.modified()?;
        let mut lines = text.lines();
        let keys = lines.next().unwrap_or_default().split(',');
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        let mut there = BTreeSet::new();
        for part in std::iter::once(table.to_owned()).chain(of_shards(table)) {
            // If a shard's table disappears meanwhile, its rows have moved to the main table.
            let rows = fs::read_to_string(part).unwrap_or_default();
            // A last line without a line break is still being written.
            let finished = rows.split_inclusive('\n').filter(|r| r.ends_with('\n'));
            there.extend(finished.skip(1).map(|row| name(row, keys.len()).to_owned()));
        }
        let runs = lines.map(|line| {
            let key = line.split(',').take(keys.len()).map(str::to_owned);
            (key.collect(), there.contains(line))
        });
        Ok(Seen {
            runs: runs.collect(),
            keys,
            begun,
        })
    }
}

/// The key and the fingerprint of a row: its first fields.
fn name(row: &str, keys: usize) -> &str {
    let end = row.match_indices(',').nth(keys).map(|(at, _)| at);
    end.map_or(row, |at| &row[..at])
}
