//! Options of a grid, and its files: the table, and those of shards beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::run::shard::Shard;
use crate::store::temporary;

/// Names of the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Those that identify a run.
    pub keys: Vec<String>,
    /// Those of its numbers.
    pub numbers: Vec<String>,
}

/// How a grid is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The table. Its directory must be there.
    pub file: PathBuf,
    /// Runs at the same time, at least one.
    pub jobs: usize,
    /// Discard the rows in the table. Not to be used with a shard, because other shards may be running.
    pub fresh: bool,
    /// Execute only this part of the runs; all of them if `None`.
    pub shard: Option<Shard>,
}

impl Options {
    /// The file to write instead of `file`: that of the shard, or `file` itself.
    pub fn own(&self, file: &Path) -> PathBuf {
        match self.shard {
            None => file.to_owned(),
            Some(shard) => of_shard(file, &shard.label()),
        }
    }
}

fn of_shard(file: &Path, label: &str) -> PathBuf {
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    file.with_extension(format!("{label}.{ending}"))
}

/// The existing files of shards beside a file, sorted: for example `runs.2-of-4.csv` beside `runs.csv`.
pub fn of_shards(file: &Path) -> Vec<PathBuf> {
    let dir = file.parent().filter(|d| !d.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(dir.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let is_shard = |path: &PathBuf| {
        let found = name(path).unwrap_or_default();
        let label = found.split('.').rev().nth(1).unwrap_or_default();
        let numbers = label.split_once("-of-");
        let shard = numbers.and_then(|(k, n)| Shard::new(k.parse().ok()?, n.parse().ok()?));
        shard.is_some() && name(&of_shard(file, label)) == Some(found.clone())
    };
    let mut all: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(is_shard)
        .collect();
    all.sort();
    all
}

/// Writes a file atomically. The temporary file is named after `own`, because other processes may write the same file.
pub(super) fn whole(path: &Path, own: &Path, text: &str) -> io::Result<()> {
    let partial = temporary(own);
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}
