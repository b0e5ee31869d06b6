//! How far a grid is, for somebody who looks at it while others run it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Columns, Options, of_shards, whole};

/// How far a grid is.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The columns that identify a run.
    pub keys: Vec<String>,
    /// Every run that was asked for, in order: its key, and whether it is finished.
    pub runs: Vec<(Vec<String>, bool)>,
    /// When it was last begun.
    pub begun: SystemTime,
}

/// Where the names of the runs that are asked for stand.
fn plan_of(table: &Path) -> PathBuf {
    table.with_extension("plan")
}

/// Writes which runs are asked for.
pub(super) fn plan(options: &Options, columns: &Columns, names: &[String]) -> io::Result<()> {
    let path = plan_of(&options.file);
    let text = format!("{}\n{}\n", columns.keys.join(","), names.join("\n"));
    whole(&path, &options.own(&path), &text)
}

impl Seen {
    /// Looks at the grid of this table; it may be under way, in one process or in shards.
    ///
    /// # Errors
    /// Where it was never begun, or a file of it does not read.
    pub fn of(table: &Path) -> io::Result<Seen> {
        let path = plan_of(table);
        let text = fs::read_to_string(&path)?;
        let begun = path.metadata()?.modified()?;
        let mut lines = text.lines();
        let keys = lines.next().unwrap_or_default().split(',');
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        let mut there = BTreeSet::new();
        for part in std::iter::once(table.to_owned()).chain(of_shards(table)) {
            // A table that goes away meanwhile was joined to the other.
            let rows = fs::read_to_string(part).unwrap_or_default();
            // A last line without an end is being written.
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
