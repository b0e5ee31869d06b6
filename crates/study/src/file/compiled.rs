//! A study file with compiled expressions, and the variables of a combination.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::{AST, Engine, Scope};
use swell_base::Warning;
use swell_experiment::Traces;
use swell_experiment::store::Measured;

use super::captures;
use super::format::{Claim, Scalar, StudyFile};
use super::origin::{Origin, TableLocation};
use super::script;

/// Measured rates of backgrounds, by name.
pub(super) type Rates = BTreeMap<String, Measured>;

/// Cache of background measurements while the program runs: many runs of a study share their backgrounds.
#[derive(Debug, Default)]
pub(super) struct Measurements(Mutex<BTreeMap<String, Measurement>>);

/// Rates, and the warnings of their measurement.
pub(super) type Measurement = (Rates, Vec<Warning>);

impl Measurements {
    /// The measurement with this key, if there is one.
    pub(super) fn get(&self, key: &str) -> Option<Measurement> {
        self.lock().get(key).cloned()
    }

    /// Stores a measurement.
    pub(super) fn put(&self, key: String, measured: Measurement) {
        self.lock().insert(key, measured);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Measurement>> {
        // A panic elsewhere cannot leave the map half-written, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A study file with compiled expressions.
pub(super) struct Compiled {
    pub file: StudyFile,
    /// Interpreter of measures, which knows result tables.
    pub engine: Engine,
    pub measures: Vec<AST>,
    /// User functions for expressions about numbers of runs.
    pub functions: AST,
    pub claims: Vec<(Claim, TableLocation)>,
    /// The name of the study file in messages, and its text.
    pub origin: Arc<Origin>,
    /// Captures that were read.
    pub traces: Arc<Traces>,
    /// Measured rates of backgrounds.
    pub measured: Measurements,
    /// Facts and doubts about captures named on the command line.
    pub captures: captures::About,
}

impl Compiled {
    /// An interpreter of expressions about numbers of runs.
    pub(super) fn asker(&self) -> Engine {
        let mut engine = script::engine();
        script::know(&mut engine, &self.functions);
        engine
    }

    /// A table of the study file.
    pub(super) fn place(&self, key: String) -> TableLocation {
        self.origin.place(key)
    }
}

/// The variables of a combination.
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

/// The variables of a scope by name, for claims and figures.
pub(super) fn entries(scope: Scope<'static>) -> rhai::Map {
    let each = scope.into_iter();
    each.map(|(name, value, _)| (name.as_str().into(), value))
        .collect()
}
