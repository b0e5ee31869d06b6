//! Evaluation of the expressions of a figure or a table, one run at a time.

use rhai::{AST, Dynamic, Engine, Scope};

use super::compiled::Compiled;
use super::format::Figure;
use super::reference::Row;
use super::results;
use super::script::{self, Trouble};
use super::source::{Source, Wrong};
use crate::Estimate;

/// A compiled expression with its text and its key in the study file.
struct Question<'f> {
    key: &'static str,
    text: &'f str,
    ast: AST,
}

/// Which vertical number of a figure: `y` or `curve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Y,
    Curve,
}

/// The expressions of a figure about the runs of one column.
pub(super) struct Asked<'f> {
    engine: Engine,
    filter: Option<Question<'f>>,
    x: Option<Question<'f>>,
    numbers: [Option<Question<'f>>; 2],
    at: Option<&'f [f64]>,
}

impl<'f> Asked<'f> {
    /// Compiles the expressions of a figure. Without `x`, the horizontal number is the value of `axis`.
    pub(super) fn new(
        source: &Source<'_>,
        column: usize,
        figure: &'f Figure,
        axis: Option<&'f str>,
    ) -> Result<Asked<'f>, Wrong> {
        let mut asked = Asked::filtered(source, column, figure.filter.as_deref())?;
        asked.at = figure.at.as_deref();
        let x = figure.x.as_deref().or(axis).filter(|_| figure.at.is_none());
        asked.x = x.map(|t| asked.read("x", t)).transpose()?;
        let y = figure.y.as_deref().map(|t| asked.read("y", t));
        let curve = figure.curve.as_deref().map(|t| asked.read("curve", t));
        asked.numbers = [y.transpose()?, curve.transpose()?];
        Ok(asked)
    }

    /// Compiles only the filter that selects runs.
    pub(super) fn filtered(
        source: &Source<'_>,
        column: usize,
        filter: Option<&'f str>,
    ) -> Result<Asked<'f>, Wrong> {
        let mut engine = source.compiled.asker();
        source.views.register(column, &mut engine);
        let mut asked = Asked {
            engine,
            filter: None,
            x: None,
            numbers: [None, None],
            at: None,
        };
        asked.filter = filter.map(|t| asked.read("where", t)).transpose()?;
        Ok(asked)
    }

    fn read(&self, key: &'static str, text: &'f str) -> Result<Question<'f>, Wrong> {
        let ast = script::compile(&self.engine, text).map_err(|t| (key, t))?;
        Ok(Question { key, text, ast })
    }

    fn ask(&self, question: &Question<'_>, scope: &mut Scope<'_>) -> Result<Dynamic, Wrong> {
        let asked = script::value(&self.engine, &question.ast, scope, question.text);
        asked.map_err(|t| (question.key, t))
    }

    /// The variables of a run; `None` if the filter excludes the run.
    pub(super) fn scope(
        &self,
        compiled: &Compiled,
        row: &Row,
    ) -> Result<Option<Scope<'static>>, Wrong> {
        let known = results::known(compiled, row);
        let mut scope = Scope::new();
        for (name, value) in &known {
            scope.push_dynamic(name.to_string(), value.clone());
        }
        scope.push("run", known);
        if let Some(filter) = &self.filter {
            let answer = self.ask(filter, &mut scope)?;
            if !script::truth(&answer).map_err(|t| (filter.key, t))? {
                return Ok(None);
            }
        }
        Ok(Some(scope))
    }

    /// The points of a run.
    pub(super) fn points(
        &self,
        compiled: &Compiled,
        row: &Row,
        which: Which,
    ) -> Result<Vec<(f64, Estimate)>, Wrong> {
        let Some(number) = &self.numbers[which as usize] else {
            return Ok(Vec::new());
        };
        let Some(mut scope) = self.scope(compiled, row)? else {
            return Ok(Vec::new());
        };
        let incomplete = lacks(compiled, row);
        let xs: Vec<f64> = match (self.at, &self.x) {
            (Some(at), _) => at.to_vec(),
            (None, Some(x)) => match self.ask(x, &mut scope) {
                Err(_) if incomplete => return Ok(Vec::new()),
                found => {
                    let known = found.map_err(|w| explained(compiled, row, w))?;
                    vec![
                        script::number(&known)
                            .or_else(|| script::estimate(&known).map(|e| e.value))
                            .ok_or_else(|| none(x.key, &known))?,
                    ]
                }
            },
            (None, None) => Vec::new(),
        };
        let mut points = Vec::new();
        for x in xs {
            scope.push("x", x);
            let found = match self.ask(number, &mut scope) {
                Err(_) if incomplete => continue,
                Err((_, Trouble::NotThere(_))) => continue,
                found => found.map_err(|w| explained(compiled, row, w))?,
            };
            let y = script::estimate(&found).ok_or_else(|| none(number.key, &found))?;
            if x.is_finite() && y.value.is_finite() {
                points.push((x, y));
            }
        }
        Ok(points)
    }

    /// The value of another expression, which may need numbers that the run does not have: then `None`.
    pub(super) fn optional(
        &self,
        compiled: &Compiled,
        row: &Row,
        (key, text): (&'static str, &str),
        scope: &mut Scope<'_>,
    ) -> Result<Option<Dynamic>, Wrong> {
        match self.value(key, text, scope) {
            Err((_, Trouble::NotThere(_))) => Ok(None),
            Err(_) if lacks(compiled, row) => Ok(None),
            found => found.map(Some).map_err(|w| explained(compiled, row, w)),
        }
    }

    /// The value of another expression for a run that passed the filter.
    pub(super) fn value(
        &self,
        key: &'static str,
        text: &str,
        scope: &mut Scope<'_>,
    ) -> Result<Dynamic, Wrong> {
        let ast = script::compile(&self.engine, text).map_err(|t| (key, t))?;
        script::value(&self.engine, &ast, scope, text).map_err(|t| (key, t))
    }
}

/// Whether a run has no number for a measure of its line. Such a measure is not in scope, so its name is unknown there.
fn lacks(compiled: &Compiled, row: &Row) -> bool {
    let study = &compiled.file;
    let own = &study.line[row.place.1];
    let mut all = row.numbers.iter().zip(&study.measure);
    all.any(|(known, m)| known.is_none() && own.has(&m.name))
}

/// Replaces "unknown name" by an explanation if the study has the measure but the run's line does not.
fn explained(compiled: &Compiled, row: &Row, wrong: Wrong) -> Wrong {
    let study = &compiled.file;
    let own = &study.line[row.place.1];
    match wrong {
        (key, Trouble::Wrong(why))
            if (study.measure.iter())
                .any(|m| !own.has(&m.name) && why.contains(&format!("`{}`", m.name))) =>
        {
            let line = &own.name;
            let why = format!("{why}; the line `{line}` has no such measure: name other lines");
            (key, Trouble::Wrong(why))
        }
        other => other,
    }
}

fn none(key: &'static str, found: &Dynamic) -> Wrong {
    let why = format!("a {} is not a number", found.type_name());
    (key, Trouble::Wrong(why))
}
