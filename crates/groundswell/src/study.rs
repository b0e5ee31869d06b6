//! Runs studies: experiments over combinations, compared with a paper.

use std::path::{Path, PathBuf};

use swell_experiment::run::grid::{self, GridError};
pub use swell_experiment::run::grid::{Options, Progress};
use swell_experiment::run::{LOCK, LockError, is_own_lock};
pub use swell_study::Study;
pub use swell_study::bundled::Bundled;
pub use swell_study::file::{FileStudy, Overrides};
use swell_study::file::{StudyError, bench::Bencher};

use crate::Error;
use crate::files::{may_be_made, write};
use crate::run::{busy, own_directory};

#[cfg(feature = "agents")]
mod bench;
#[cfg(not(feature = "agents"))]
#[path = "study/without_agents.rs"]
mod bench;
#[cfg(feature = "agents")]
mod capacity;
#[cfg(feature = "agents")]
mod load;

pub use bench::Hosts;

/// Name of the table of runs in a study's directory.
pub const RUNS: &str = "runs.csv";

/// The outcome of a study's runs.
pub enum Outcome {
    /// All runs are complete: their numbers.
    Complete(Vec<Vec<f64>>),
    /// A shard is complete.
    Shard {
        /// Runs completed.
        finished: usize,
        /// Runs of the study.
        runs: usize,
    },
}

/// Reads the study in this file.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path, overrides: &Overrides) -> Result<FileStudy, Error> {
    FileStudy::read(path, overrides).map_err(unread)
}

/// The bundled study of this name.
///
/// # Errors
/// If there is none.
pub fn bundled(name: &str) -> Result<&'static Bundled, Error> {
    Bundled::named(name)
        .ok_or_else(|| Error::failed(format!("this program carries no study {name}")))
}

/// A bundled study, ready to run.
///
/// # Errors
/// If the overrides do not fit this study.
pub fn carried(study: &Bundled, overrides: &Overrides) -> Result<FileStudy, Error> {
    study.study(overrides).map_err(unread)
}

fn unread(error: StudyError) -> Error {
    match error {
        StudyError::Io { .. } | StudyError::Capture { .. } => Error::failed(error),
        _ => Error::usage(error),
    }
}

/// Writes the files of a study into a directory and returns their paths.
///
/// # Errors
/// If one of them exists already, or cannot be written.
pub fn write_files(study: &Bundled, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    may_be_made(dir)?;
    let paths: Vec<PathBuf> = study.files.iter().map(|f| dir.join(f.0)).collect();
    if let Some(there) = paths.iter().find(|p| p.exists()) {
        let fail = Error::usage(format!("{} is there already", there.display()));
        return Err(
            fail.hint("name a directory that is new: a study that was changed is not overwritten")
        );
    }
    std::fs::create_dir_all(dir).map_err(|e| Error::failed(format!("{}: {e}", dir.display())))?;
    for (path, (_, text)) in paths.iter().zip(study.files) {
        write(path, text.as_bytes())?;
    }
    Ok(paths)
}

/// Directory of pictures in a study's directory.
pub const PICTURES: &str = "pictures";

/// Checks that a study may use this directory: it holds one, or nothing under the names that a study writes.
///
/// # Errors
/// If it has files of such names that no study marks as its own.
pub fn usable(dir: &Path, fresh: bool, study: &FileStudy) -> Result<(), Error> {
    let runs = dir.join(RUNS);
    if study.is_begun(&runs) {
        return Ok(());
    }
    let mut found: Vec<PathBuf> = FileStudy::files(&runs);
    found.push(dir.join("report.html"));
    found.retain(|file| file.symlink_metadata().is_ok());
    if !is_own_lock(dir) {
        found.push(dir.join(LOCK));
    }
    // Results of shards are joined, and may have been gathered from other machines.
    if fresh {
        found.extend(
            FileStudy::files(&runs)
                .iter()
                .flat_map(|file| grid::of_shards(file)),
        );
    }
    let pictures = dir.join(PICTURES);
    let empty = std::fs::read_dir(&pictures).map(|mut all| all.next().is_none());
    if !empty.unwrap_or(!pictures.exists()) {
        found.push(pictures);
    }
    if found.is_empty() {
        return Ok(());
    }
    let names = found.iter().filter_map(|file| file.file_name());
    let names: Vec<_> = names.map(|n| n.to_string_lossy()).collect();
    let message = format!(
        "{} holds no study, and a study there would write over {}",
        dir.display(),
        names.join(", ")
    );
    Err(Error::usage(message).hint(own_directory(dir, study.name())))
}

/// Performs the missing runs. Studies on hosts ([`FileStudy::is_of_hosts`]) need `hosts`.
///
/// # Errors
/// If it was cancelled, a run fails, or the table belongs to another study, is in use or cannot be written.
pub fn run(
    study: &FileStudy,
    hosts: Option<&Hosts<'_>>,
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, Error> {
    if study.is_of_hosts() && options.shard.is_some() {
        return Err(Error::usage(
            "runs on real hosts are not divided into shards",
        ));
    }
    let bencher = hosts.map(|hosts| hosts as &dyn Bencher);
    match study.run_on(bencher, options, progress, cancelled) {
        Ok(grid::GridOutcome::Complete(numbers)) => Ok(Outcome::Complete(numbers)),
        Ok(grid::GridOutcome::Shard { finished, runs }) => Ok(Outcome::Shard { finished, runs }),
        Ok(grid::GridOutcome::Interrupted { finished, runs }) => Err(Error::interrupted(format!(
            "interrupted; {finished} of {runs} runs are kept in {}",
            options.file.parent().unwrap_or(&options.file).display()
        ))
        .hint("the same command goes on where it stopped")),
        Err(error @ GridError::Table { .. }) => {
            Err(Error::usage(error).hint("--fresh throws it away; -o DIR writes elsewhere"))
        }
        Err(error @ GridError::Run { .. }) => {
            Err(Error::failed(error).hint("finished runs are kept; the same command goes on"))
        }
        Err(error @ GridError::Lock(LockError::Busy { .. })) => Err(busy(error)),
        Err(error) => Err(Error::failed(error)),
    }
}

/// The default directory of its runs: the name, then its changes.
pub fn directory(study: &FileStudy, quick: bool) -> PathBuf {
    let mut called = format!("study-{}", study.name());
    for change in study.changes() {
        // Only characters that are valid in file names everywhere, and not too many.
        let plain = change.chars().take(40);
        let plain = plain.map(|c| match c.is_ascii_alphanumeric() || c == '.' {
            true => c,
            false => '-',
        });
        called.push('-');
        called.extend(plain);
    }
    if quick {
        called += "-quick";
    }
    Path::new("runs").join(called)
}
