//! Which expressions of figures are evaluated for which runs, as far as this is known before any run.

use std::sync::Arc;

use rhai::{AST, Engine, Scope};
use swell_experiment::run::grid;

use super::cells::FileCell;
use super::compiled::{self, Compiled};
use super::format::{Figure, StudyFile};
use super::group::Group;
use super::script;
use super::source;

/// The points that figures need of the first run of a combination.
pub(super) struct Wants {
    /// Its key and fingerprint.
    pub name: String,
    /// Expressions of figures that show this run.
    pub surely: Vec<String>,
    /// Expressions of figures for which only the numbers of runs decide whether they show this run.
    pub perhaps: Vec<String>,
}

/// A figure of points and the combinations that it may show.
struct Shown<'f> {
    lines: Vec<usize>,
    columns: Vec<usize>,
    filter: Option<(&'f str, Option<AST>)>,
    texts: Vec<&'f String>,
}

/// The points needed of every combination, as far as known before any run; `None` if `stop` answers true.
pub(super) fn wanted(
    compiled: &Arc<Compiled>,
    groups: &[Arc<Group>],
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<Wants>> {
    let study: &StudyFile = &compiled.file;
    let engine = script::engine();
    let figures = study.figure.iter().filter(|f| !f.points.is_empty());
    let figures: Vec<Shown<'_>> = figures.map(|f| Shown::new(study, &engine, f)).collect();
    let mut all = Vec::new();
    for group in groups {
        let mut wants = Wants {
            name: grid::name(&FileCell::new(compiled, group, group.seed)),
            surely: Vec::new(),
            perhaps: Vec::new(),
        };
        let known = compiled::scope(study, (group.column, group.line), &group.axes);
        for figure in &figures {
            if stop() {
                return None;
            }
            let list = match figure.shows(&engine, group, &known) {
                Some(true) => &mut wants.surely,
                Some(false) => continue,
                None => &mut wants.perhaps,
            };
            for text in &figure.texts {
                if !list.contains(text) {
                    list.push((*text).clone());
                }
            }
        }
        all.push(wants);
    }
    Some(all)
}

impl<'f> Shown<'f> {
    fn new(study: &StudyFile, engine: &Engine, figure: &'f Figure) -> Shown<'f> {
        let lines = study.line.iter().map(|l| &*l.name);
        let columns = study.column.iter().map(|c| &*c.name);
        let filter = figure.filter.as_deref();
        Shown {
            lines: source::chosen(figure.lines.as_deref(), lines),
            columns: source::chosen(figure.columns.as_deref(), columns),
            filter: filter.map(|text| (text, script::compile(engine, text).ok())),
            texts: figure.points.values().collect(),
        }
    }

    /// Whether the figure shows a combination; `None` if that depends on the numbers of runs.
    fn shows(&self, engine: &Engine, group: &Group, known: &Scope<'static>) -> Option<bool> {
        if !self.lines.contains(&group.line) || !self.columns.contains(&group.column) {
            return Some(false);
        }
        let Some((text, ast)) = &self.filter else {
            return Some(true);
        };
        // Statements may change variables, so each gets its own copy.
        let answer = script::value(engine, ast.as_ref()?, &mut known.clone(), text);
        script::truth(&answer.ok()?).ok()
    }
}
