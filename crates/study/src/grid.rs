//! Many runs over the cores, kept in a table as they finish, so that an interrupted study goes on
//! where it stopped.
//!
//! The table is a CSV file with a header: the columns that name a run, `settings`, then its numbers.
//! `settings` is a fingerprint of everything else that the numbers depend on; a row whose fingerprint
//! is not that of the run asked for is not used again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run: what it is called, what it depends on, what it gives.
pub trait Cell: Sync {
    /// Names of the columns that identify a run.
    const KEYS: &'static [&'static str];
    /// Names of the columns of its numbers.
    const NUMBERS: &'static [&'static str];

    /// The values of [`Cell::KEYS`]: words and numbers without comma or line break.
    fn key(&self) -> Vec<String>;
    /// Everything the numbers depend on beyond the key, in any stable notation.
    fn settings(&self) -> String;
    /// What it costs compared with others, in any unit.
    fn cost(&self) -> f64;
    /// Does it. One number for each of [`Cell::NUMBERS`]; NaN where there is none.
    fn run(&self) -> Vec<f64>;
}

/// A run of a study that is not known before it is read from a file: it may fail, and its columns are
/// [`Columns`]. Every [`Cell`] is one.
pub trait Task: Sync {
    /// The values of [`Columns::keys`]: words and numbers without comma or line break.
    fn key(&self) -> Vec<String>;
    /// As [`Cell::settings`].
    fn settings(&self) -> String;
    /// As [`Cell::cost`].
    fn cost(&self) -> f64;
    /// Does it. One number for each of [`Columns::numbers`].
    ///
    /// # Errors
    /// A sentence that says why there are no numbers.
    fn run(&self) -> Result<Vec<f64>, String>;
}

impl<C: Cell> Task for C {
    fn key(&self) -> Vec<String> {
        Cell::key(self)
    }
    fn settings(&self) -> String {
        Cell::settings(self)
    }
    fn cost(&self) -> f64 {
        Cell::cost(self)
    }
    fn run(&self) -> Result<Vec<f64>, String> {
        Ok(Cell::run(self))
    }
}

/// Names of the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Those that identify a run.
    pub keys: Vec<String>,
    /// Those of its numbers.
    pub numbers: Vec<String>,
}

impl Columns {
    fn of<C: Cell>() -> Columns {
        let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        Columns {
            keys: owned(C::KEYS),
            numbers: owned(C::NUMBERS),
        }
    }
}

/// How a grid is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The table. Its directory must be there.
    pub file: PathBuf,
    /// Runs at the same time, at least one.
    pub jobs: usize,
    /// Forget what the table holds.
    pub fresh: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Runs done, those found in the table included.
    pub done: usize,
    /// All runs.
    pub runs: usize,
    /// Runs found in the table.
    pub kept: usize,
    /// Share of the cost of all runs that is done, 0..=1.
    pub share: f64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The numbers of every run, in the order of the runs.
    Complete(Vec<Vec<f64>>),
    /// It was stopped; what is finished is in the table.
    Interrupted {
        /// Runs that are in the table.
        finished: usize,
        /// Runs asked for.
        runs: usize,
    },
}

/// Why a grid could not be run.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// The table cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The table.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The table is one of something else.
    #[error("{path}, line {line}: {reason}")]
    Table {
        /// The table.
        path: PathBuf,
        /// Counted from one.
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

/// Runs every cell that is not in the table yet, `jobs` at a time, the dearest first. `progress` is
/// called after each; `stop` is asked before each.
///
/// # Errors
/// When the table cannot be read or written, or holds something else.
pub fn run<C: Cell>(
    cells: &[C],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Ended, GridError> {
    run_tasks(&Columns::of::<C>(), cells, options, progress, stop)
}

/// As [`run`], for runs that may fail, in a table of any columns.
///
/// # Errors
/// As [`run`], and when a run failed.
pub fn run_tasks<C: Task>(
    columns: &Columns,
    cells: &[C],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Ended, GridError> {
    let kept = held(columns, options)?;
    run_beside(kept, columns, cells, options, progress, stop)
}

/// As [`run_tasks`], beside what [`held`] found in the table.
pub(crate) fn run_beside<C: Task>(
    mut kept: Rows,
    columns: &Columns,
    cells: &[C],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Ended, GridError> {
    let path = &options.file;
    let io = |error| GridError::Io {
        path: path.clone(),
        error,
    };
    let wanted: Vec<String> = cells.iter().map(name).collect();
    let mut results: Vec<Option<Vec<f64>>> = wanted.iter().map(|n| kept.remove(n)).collect();
    let todo: Vec<usize> = {
        let mut todo: Vec<usize> = (0..cells.len()).filter(|&i| results[i].is_none()).collect();
        // A long run begun last would leave the other cores without work.
        todo.sort_by(|&a, &b| cells[b].cost().total_cmp(&cells[a].cost()));
        todo
    };
    let total: f64 = cells.iter().map(Task::cost).sum();
    let spared = total - todo.iter().map(|&i| cells[i].cost()).sum::<f64>();
    let state = Mutex::new(State {
        out: append(path, options.fresh, columns).map_err(io)?,
        fresh: Vec::new(),
        cost: spared,
        failed: None,
    });
    let first = cells.len() - todo.len();
    let tell = |done: usize, cost: f64| {
        progress(Progress {
            done,
            runs: cells.len(),
            kept: first,
            share: if total > 0.0 { cost / total } else { 1.0 },
        });
    };
    tell(first, spared);
    let next = AtomicUsize::new(0);
    let worker = || {
        while !stop() && lock(&state).failed.is_none() {
            let Some(&i) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let numbers = cells[i].run();
            let mut state = lock(&state);
            if state.failed.is_some() {
                return;
            }
            let numbers = match numbers {
                Ok(numbers) => numbers,
                Err(reason) => {
                    let key = cells[i].key().join(", ");
                    state.failed = Some(GridError::Run { key, reason });
                    return;
                }
            };
            if let Err(error) = state.out.write_all(line(&wanted[i], &numbers).as_bytes()) {
                state.failed = Some(io(error));
                return;
            }
            state.fresh.push((i, numbers));
            state.cost += cells[i].cost();
            tell(first + state.fresh.len(), state.cost);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.min(todo.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let state = state
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(error) = state.failed {
        return Err(error);
    }
    let finished = first + state.fresh.len();
    for (i, numbers) in state.fresh {
        results[i] = Some(numbers);
    }
    let Some(complete) = results.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(Ended::Interrupted {
            finished,
            runs: cells.len(),
        });
    };
    // Threads finish in any order; the finished table has one.
    tidy(path, &wanted, &complete, &kept, columns).map_err(io)?;
    Ok(Ended::Complete(complete))
}

/// Rows of a table by key and fingerprint.
pub(crate) type Rows = BTreeMap<String, Vec<f64>>;

/// What the table holds; nothing where there is none, or it is thrown away.
///
/// # Errors
/// When the table cannot be read, or holds something else.
pub(crate) fn held(columns: &Columns, options: &Options) -> Result<Rows, GridError> {
    if options.fresh {
        return Ok(Rows::new());
    }
    read(&options.file, columns)
}

/// What the workers share.
struct State {
    out: File,
    /// What was run, by index.
    fresh: Vec<(usize, Vec<f64>)>,
    cost: f64,
    failed: Option<GridError>,
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    // A panic in another worker ends the program through the scope; what it left in here is whole.
    state
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Key and fingerprint of a run, as they stand in the table.
pub(crate) fn name<C: Task>(cell: &C) -> String {
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
pub(crate) fn hash(text: &str) -> u64 {
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

/// The rows of a table by key and fingerprint; none where there is no table. A last line without an
/// end was being written when the study was ended.
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

/// The table, open at its end, after a whole line.
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

/// Writes the table anew: the runs asked for in their order, then what else it held.
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
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}

#[cfg(test)]
mod tests;
