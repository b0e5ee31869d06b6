//! Shows the contents of a model, a trace or a run directory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use swell_capture::flow::{ENOUGH_TO_TELL, holds_flow_records};
use swell_experiment::{Results, bundled};
use swell_verdict::Verdict;

use crate::Error;
use crate::learn::{self, Learnt};
use crate::model::{AnyModel, missing};
use crate::run::is_lost;

/// What a path turned out to be.
pub enum Shown {
    /// Run directories, judged together.
    Run(Box<Results>, Box<Verdict>),
    /// A model.
    Model(AnyModel),
    /// A trace with the model learnt from it.
    Trace(Learnt),
}

/// Opens a run directory, a bundled model, a model file or a trace; `-` is a trace on standard input. `more` are run
/// directories of the same experiment with other seeds, judged together with the first. `progress` gets the number of
/// bytes of a trace just read.
///
/// # Errors
/// If there is no such path or model, it cannot be read, or runs do not belong together.
pub fn open(
    what: &Path,
    more: &[PathBuf],
    progress: impl Fn(u64) + Send + Sync + 'static,
) -> Result<Shown, Error> {
    if what.is_dir() {
        let mut all = results(what)?;
        for dir in more {
            all = all.join(results(dir)?).map_err(Error::usage)?;
        }
        let verdict = Verdict::of(&all);
        return Ok(Shown::Run(Box::new(all), Box::new(verdict)));
    }
    if let Some(more) = more.first() {
        let message = format!(
            "{}: only run directories are shown together",
            more.display()
        );
        return Err(Error::usage(message));
    }
    let named = |name: &str| bundled::model(name).or_else(|| bundled::flow_model(name));
    let is_bundled = what.to_str().and_then(named).is_some();
    if is_bundled || looks_like_a_model(what) {
        return AnyModel::open(what).map(Shown::Model);
    }
    // An error other than absence, such as a directory that must not be searched, is told where the file is opened.
    if matches!(what.try_exists(), Ok(false)) && what.as_os_str() != "-" {
        return Err(missing(what));
    }
    if what.extension().is_some_and(|e| e == "toml") {
        // A file that cannot be read cannot be run either.
        let read = std::fs::File::open(what);
        read.map_err(|e| Error::usage(format!("{}: {e}", what.display())))?;
        let fail = Error::usage(format!(
            "{}: this is no run directory, model or trace",
            what.display()
        ));
        let file = what.display();
        return Err(fail.hint(format!(
            "`swell run {file}` runs an experiment, `swell study file {file}` a study"
        )));
    }
    let options = learn::Options::default();
    learn::learn(&[what.to_owned()], &options, progress).map(Shown::Trace)
}

/// Reads a run directory.
///
/// # Errors
/// If it holds no run, or an incomplete one.
pub fn results(dir: &Path) -> Result<Results, Error> {
    Results::load(dir).map_err(|error| {
        let lost = is_lost(&error);
        let fail = Error::usage(error);
        match lost {
            true => fail.hint("the command that made these runs makes them anew with --fresh"),
            false => fail,
        }
    })
}

/// Whether a path looks like a model file: by its name, or because it starts with a brace. Of traces only flow records
/// may do so.
fn looks_like_a_model(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(path).map(|f| f.take(ENOUGH_TO_TELL as u64));
    if file.and_then(|mut f| f.read_to_end(&mut head)).is_ok() && holds_flow_records(&head) {
        return false;
    }
    let name = path.to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.zst") || head.starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_to_be_run() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let path = scratch.path().join("mine.toml");
        std::fs::write(&path, "name = \"mine\"").unwrap();
        let Err(error) = open(&path, &[], |_| {}) else {
            panic!("it is shown");
        };
        let hint = error.hint.unwrap_or_default();
        assert!(hint.starts_with("`swell run "), "{hint}");
    }
}
