//! A study file with its expressions read, and what those know of a combination.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::{AST, Engine, Scope};
use swell_experiment::Traces;
use swell_experiment::store::Measured;

use super::captures;
use super::format::{Claim, Scalar, StudyFile};
use super::origin::{Origin, Place};
use super::script;

/// What backgrounds were measured to send, by name.
pub(super) type Rates = BTreeMap<String, Measured>;

/// What was measured before runs, kept while the program runs: many runs of a study have their backgrounds in common.
#[derive(Debug, Default)]
pub(super) struct Measurements(Mutex<BTreeMap<String, Rates>>);

impl Measurements {
    /// What was measured of this, if it was.
    pub(super) fn get(&self, key: &str) -> Option<Rates> {
        self.lock().get(key).cloned()
    }

    /// Keeps it.
    pub(super) fn put(&self, key: String, rates: Rates) {
        self.lock().insert(key, rates);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Rates>> {
        // Whatever panicked elsewhere, what is in here is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A study file with its expressions read.
pub(super) struct Compiled {
    pub file: StudyFile,
    /// Of measures: tables are known.
    pub engine: Engine,
    pub measures: Vec<AST>,
    /// What expressions about numbers of runs may call.
    pub functions: AST,
    pub claims: Vec<(Claim, Place)>,
    /// What messages call the study file, and its text.
    pub origin: Arc<Origin>,
    /// Captures that were read.
    pub traces: Arc<Traces>,
    /// What backgrounds were measured to send.
    pub measured: Measurements,
    /// What is said of those named on the command line.
    pub captures: captures::About,
}

impl Compiled {
    /// A parser and interpreter of expressions about numbers of runs.
    pub(super) fn asker(&self) -> Engine {
        let mut engine = script::engine();
        script::know(&mut engine, &self.functions);
        engine
    }

    /// A table of the study file.
    pub(super) fn place(&self, key: String) -> Place {
        self.origin.place(key)
    }
}

/// What expressions know of a combination.
pub(super) fn scope(
    study: &StudyFile,
    (column, line): (usize, usize),
    axes: &[f64],
) -> Scope<'static> {
    let (column, line) = (&study.column[column], &study.line[line]);
    let mut known: BTreeMap<&str, rhai::Dynamic> = BTreeMap::new();
    for with in [&study.with, &column.with, &line.with] {
        known.extend(with.iter().map(|(k, v)| (&**k, dynamic(v))));
    }
    for (axis, value) in study.axis.iter().zip(axes) {
        known.insert(&axis.name, (*value).into());
    }
    known.insert("column", column.name.clone().into());
    known.insert("line", line.name.clone().into());
    let mut scope = Scope::new();
    for (name, value) in known {
        scope.push_dynamic(name.to_owned(), value);
    }
    scope
}

pub(super) fn dynamic(value: &Scalar) -> rhai::Dynamic {
    match value {
        Scalar::Switch(b) => (*b).into(),
        Scalar::Number(x) => (*x).into(),
        Scalar::Text(t) => t.clone().into(),
    }
}

/// What a scope holds, for claims and figures: by name.
pub(super) fn entries(scope: Scope<'static>) -> rhai::Map {
    let each = scope.into_iter();
    each.map(|(name, value, _)| (name.as_str().into(), value))
        .collect()
}
