//! Grids of many small runs, each of which yields a row of numbers. Studies consist of them.
//!
//! They share cores, lock and shards with the runs of a plan. Each row goes into a table as soon as its run finishes,
//! so an interrupted study resumes where it stopped.
//!
//! The table is a CSV file with a header: the columns that identify a run, `settings`, then its numbers.
//! `settings` is a fingerprint of everything else that the numbers depend on. A row is reused only if its
//! fingerprint is that of the requested run. Each shard has its own table beside the main one.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

mod files;
mod seen;

pub use files::{Columns, Options, of_shards};
pub use seen::{Seen, is_begun, plan_of};

use super::lock::{Lock, LockError};
use super::pool;
use files::whole;

/// A run: its key, its other settings, and its results. Its columns are [`Columns`].
pub trait Task: Sync {
    /// The values of [`Columns::keys`]: words and numbers without comma or line break.
    fn key(&self) -> Vec<String>;
    /// Everything the numbers depend on beyond the key, in any stable notation.
    fn settings(&self) -> String;
    /// Its cost relative to other runs, in any unit.
    fn cost(&self) -> f64;
    /// Executes it. Returns one number for each of [`Columns::numbers`]; NaN where there is none.
    ///
    /// # Errors
    /// A sentence that says why there are no results.
    fn run(&self) -> Result<Vec<f64>, String>;
}

/// Progress of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Finished runs, including those found in the table.
    pub done: usize,
    /// All runs.
    pub runs: usize,
    /// Runs found in the table.
    pub kept: usize,
    /// Finished share of the cost of all runs, 0..=1.
    pub share: f64,
}

/// How a call of [`Grid::run`] ended.
#[derive(Clone, Debug, PartialEq)]
pub enum GridOutcome {
    /// The numbers of every run, in the order of the runs.
    Complete(Vec<Vec<f64>>),
    /// It was stopped; finished runs are in the table.
    Interrupted {
        /// Runs in the table.
        finished: usize,
        /// Requested runs.
        runs: usize,
    },
    /// The shard is finished. A call without a shard joins the tables.
    Shard {
        /// Runs in the tables, from all shards.
        finished: usize,
        /// Requested runs.
        runs: usize,
    },
}

/// Why a grid could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// Another process holds the lock of the directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The table cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The table.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// The table is not one of this study, or is malformed.
    #[error("{path}, line {line}: {reason}")]
    Table {
        /// The table.
        path: PathBuf,
        /// Line number, from one.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A run failed; those that finished before it are in the table.
    #[error("{key}: {reason}")]
    Run {
        /// Which.
        key: String,
        /// Why.
        reason: String,
    },
}

/// A table of runs, locked.
pub struct Grid<'o> {
    options: &'o Options,
    columns: Columns,
    /// Rows by key and fingerprint.
    held: Rows,
    _lock: Lock,
}

impl<'o> Grid<'o> {
    /// Locks the directory and reads its tables, including those of shards.
    ///
    /// # Errors
    /// If the directory is in use, or a table cannot be read or belongs to another study.
    pub fn open(columns: Columns, options: &'o Options) -> Result<Grid<'o>, GridError> {
        let path = &options.file;
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
        let lock = Lock::take(dir.unwrap_or(Path::new(".")), options.shard)?;
        let mut held = Rows::new();
        if options.fresh {
            of_shards(path).iter().try_for_each(removed)?;
        } else {
            for table in std::iter::once(path.clone()).chain(of_shards(path)) {
                held.append(&mut read(&table, &columns)?);
            }
        }
        seen::mark(options, &columns).map_err(|error| GridError::Io {
            path: path.clone(),
            error,
        })?;
        Ok(Grid {
            options,
            columns,
            held,
            _lock: lock,
        })
    }

    /// Executes every cell that is not in the table yet, `jobs` at a time, the most expensive first. It calls
    /// `progress` after each cell and `stop` before each.
    ///
    /// # Errors
    /// If the table cannot be written or a run failed. The results of the other runs are in the table.
    pub fn run<C: Task>(
        mut self,
        cells: &[C],
        progress: &(dyn Fn(Progress) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<GridOutcome, GridError> {
        let shard = self.options.shard;
        let own = self.options.own(&self.options.file);
        let io = |error| GridError::Io {
            path: own.clone(),
            error,
        };
        let wanted: Vec<String> = cells.iter().map(name).collect();
        let mut results: Vec<Option<Vec<f64>>> =
            wanted.iter().map(|n| self.held.remove(n)).collect();
        let mine: Vec<usize> = (0..cells.len())
            .filter(|&i| shard.is_none_or(|s| s.takes(i)))
            .collect();
        let mut todo = mine.clone();
        todo.retain(|&i| results[i].is_none());
        // A long run that starts last would leave the other cores idle.
        todo.sort_by(|&a, &b| cells[b].cost().total_cmp(&cells[a].cost()));
        let cost = |places: &[usize]| places.iter().map(|&i| cells[i].cost()).sum::<f64>();
        let total = cost(&mine);
        let kept = mine.len() - todo.len();
        let tell = |done: usize, spent: f64| {
            progress(Progress {
                done,
                runs: mine.len(),
                kept,
                share: if total > 0.0 { spent / total } else { 1.0 },
            });
        };
        let spared = total - cost(&todo);
        tell(kept, spared);
        let state = Mutex::new(State {
            out: append(&own, self.options.fresh, &self.columns).map_err(io)?,
            done: kept,
            cost: spared,
        });
        seen::plan(self.options, &self.columns, &wanted).map_err(io)?;
        let work = |_: usize, &i: &usize| -> Result<Vec<f64>, GridError> {
            let numbers = cells[i].run().map_err(|reason| GridError::Run {
                key: cells[i].key().join(", "),
                reason,
            })?;
            let mut state = pool::lock(&state);
            let row = line(&wanted[i], &numbers);
            state.out.write_all(row.as_bytes()).map_err(io)?;
            state.done += 1;
            state.cost += cells[i].cost();
            tell(state.done, state.cost);
            Ok(numbers)
        };
        let fresh = pool::over_cores(self.options.jobs, &todo, &work, stop)?;
        for (i, numbers) in todo.into_iter().zip(fresh) {
            results[i] = numbers;
        }
        let finished = results.iter().flatten().count();
        let runs = cells.len();
        if mine.iter().any(|&i| results[i].is_none()) {
            return Ok(GridOutcome::Interrupted { finished, runs });
        }
        if shard.is_some() {
            return Ok(GridOutcome::Shard { finished, runs });
        }
        let complete: Vec<Vec<f64>> = results.into_iter().flatten().collect();
        // Threads finish in any order; sort the finished table.
        tidy(&own, &wanted, &complete, &self.held, &self.columns).map_err(io)?;
        of_shards(&own).iter().try_for_each(removed)?;
        Ok(GridOutcome::Complete(complete))
    }
}

fn removed(path: &PathBuf) -> Result<(), GridError> {
    fs::remove_file(path).map_err(|error| GridError::Io {
        path: path.clone(),
        error,
    })
}

/// Rows of a table by key and fingerprint.
type Rows = BTreeMap<String, Vec<f64>>;

/// State shared by the workers.
struct State {
    out: File,
    done: usize,
    cost: f64,
}

/// Key and fingerprint of a run, as written in the table.
pub fn name<C: Task>(cell: &C) -> String {
    format!("{},{:016x}", cell.key().join(","), fingerprint(cell))
}

/// A fingerprint of version and settings.
fn fingerprint<C: Task>(cell: &C) -> u64 {
    hash(&format!(
        "{} {}",
        env!("CARGO_PKG_VERSION"),
        cell.settings()
    ))
}

/// FNV-1a (Fowler, Noll & Vo; RFC 9923).
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn header(columns: &Columns) -> String {
    let (keys, numbers) = (columns.keys.join(","), columns.numbers.join(","));
    format!("{keys},settings,{numbers}\n")
}

fn line(name: &str, numbers: &[f64]) -> String {
    let numbers: Vec<String> = numbers
        .iter()
        .map(|n| {
            if n.is_nan() {
                String::new()
            } else {
                n.to_string()
            }
        })
        .collect();
    format!("{name},{}\n", numbers.join(","))
}

/// The rows of a table by key and fingerprint; none if there is no table. Ignores a last line without a line break:
/// the study was killed while it wrote that line.
fn read(path: &Path, columns: &Columns) -> Result<Rows, GridError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Rows::new()),
        Err(error) => {
            return Err(GridError::Io {
                path: path.to_owned(),
                error,
            });
        }
    };
    let wrong = |line: usize, reason| GridError::Table {
        path: path.to_owned(),
        line,
        reason,
    };
    let mut rows = Rows::new();
    for (i, row) in text.split_inclusive('\n').enumerate() {
        if i == 0 {
            if row != header(columns) {
                return Err(wrong(1, "not the columns of this study"));
            }
            continue;
        }
        let Some(row) = row.strip_suffix('\n') else {
            break;
        };
        let fields: Vec<&str> = row.split(',').collect();
        let named = columns.keys.len() + 1;
        if fields.len() != named + columns.numbers.len() {
            return Err(wrong(i + 1, "not as many fields as columns"));
        }
        let numbers: Result<Vec<f64>, _> = fields[named..]
            .iter()
            .map(|f| {
                if f.is_empty() {
                    Ok(f64::NAN)
                } else {
                    f.parse()
                }
            })
            .collect();
        let numbers = numbers.map_err(|_| wrong(i + 1, "not a number"))?;
        rows.insert(fields[..named].join(","), numbers);
    }
    Ok(rows)
}

/// Opens the table for appending, after its last complete line.
fn append(path: &Path, fresh: bool, columns: &Columns) -> io::Result<File> {
    let old = if fresh {
        String::new()
    } else {
        fs::read_to_string(path).unwrap_or_default()
    };
    if old.is_empty() {
        let mut file = File::create(path)?;
        file.write_all(header(columns).as_bytes())?;
        return Ok(file);
    }
    let whole = old.rfind('\n').map_or(0, |end| end + 1);
    let file = OpenOptions::new().append(true).open(path)?;
    file.set_len(whole as u64)?;
    Ok(file)
}

/// Rewrites the table: the requested runs in their order, then the other rows that it held.
fn tidy(
    path: &Path,
    names: &[String],
    complete: &[Vec<f64>],
    others: &Rows,
    columns: &Columns,
) -> io::Result<()> {
    let mut text = header(columns);
    for (name, numbers) in names.iter().zip(complete) {
        text += &line(name, numbers);
    }
    for (name, numbers) in others {
        text += &line(name, numbers);
    }
    whole(path, path, &text)
}

#[cfg(test)]
mod tests;
