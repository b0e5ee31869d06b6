//! Heat maps: a cell for each run.

use rhai::{Dynamic, Scope};

use super::asked::Asked;
use super::format::{By, Figure};
use super::reference::Row;
use super::script::{self, Trouble};
use super::source::{Source, Wrong};
use crate::{Answer, Axis, Estimate, HeatCell, Heatmap, Panel};

mod keys;

pub use keys::HeatmapSpec;

/// A key that has no effect in a heat map or that a heat map needs, and what to do about it.
pub(super) fn refused(figure: &Figure) -> Option<(&'static str, &'static str)> {
    let spec = figure.heatmap.as_ref()?;
    let there = [
        ("at", figure.at.is_some()),
        ("curve", figure.curve.is_some()),
        ("curve_label", !figure.curve_label.is_empty()),
        ("points", !figure.points.is_empty()),
        ("x_log", figure.x_log),
        ("y_log", figure.y_log),
        ("reference", figure.reference.is_some()),
        ("reference_label", !figure.reference_label.is_empty()),
    ];
    if let Some((key, _)) = there.iter().find(|(_, there)| *there) {
        return Some((key, "a heat map has no such key: leave it out"));
    }
    if figure.by == By::Column {
        return Some(("by", "the panels of a heat map are lines: leave it out"));
    }
    if figure.x.is_none() || figure.y.is_none() {
        let missing = if figure.x.is_none() { "x" } else { "y" };
        return Some((
            missing,
            "the cells of a heat map have places: write x and y",
        ));
    }
    if spec.frame.is_some() == spec.frame_label.is_empty() {
        return Some(("heatmap", "a frame and its frame_label belong together"));
    }
    None
}

/// The heat map of one column; `None` without a cell.
pub(super) fn map(
    source: &Source<'_>,
    figure: &Figure,
    spec: &HeatmapSpec,
    column: usize,
    lines: &[usize],
) -> Result<Option<Heatmap>, Wrong> {
    let asked = Asked::filtered(source, column, figure.filter.as_deref())?;
    let mut panels: Vec<Panel> = Vec::new();
    for &line in lines {
        let own = &source.compiled.file.line[line];
        let name = own.label.as_ref().unwrap_or(&own.name);
        let mut mine: Vec<Panel> = Vec::new();
        for row in &source.numbers.rows {
            if row.place != (column, line) {
                continue;
            }
            let Some((across, cell)) = cell(source, &asked, figure, spec, row)? else {
                continue;
            };
            let panel = mine.iter_mut().find(|p| p.across == across);
            let Some(panel) = panel else {
                mine.push(Panel {
                    row: name.clone(),
                    across,
                    cells: vec![cell],
                });
                continue;
            };
            if panel.cells.iter().any(|c| (c.x, c.y) == (cell.x, cell.y)) {
                let why = format!(
                    "several runs of `{}` are at {} of one panel: choose by where",
                    own.name,
                    place(&cell)
                );
                return Err(("heatmap", Trouble::Wrong(why)));
            }
            panel.cells.push(cell);
        }
        mine.sort_by(|a, b| a.across.total_cmp(&b.across));
        panels.extend(mine);
    }
    let heatmap = Heatmap {
        across: Axis {
            title: spec.across_title.clone(),
            unit: spec.across_unit.of_axis(),
            log: false,
        },
        value: spec.value_title.clone(),
        frame: spec.frame_label.clone(),
        panels,
    };
    Ok((!heatmap.panels.is_empty()).then_some(heatmap))
}

fn place(cell: &HeatCell) -> String {
    format!("x {}, y {}", cell.x, cell.y)
}

/// The panel and the cell of a run; `None` if it is not drawn, or lacks a number.
fn cell(
    source: &Source<'_>,
    asked: &Asked<'_>,
    figure: &Figure,
    spec: &HeatmapSpec,
    row: &Row,
) -> Result<Option<(f64, HeatCell)>, Wrong> {
    let compiled = source.compiled;
    let Some(mut scope) = asked.scope(compiled, row)? else {
        return Ok(None);
    };
    let ask = |key: &'static str, text: &str, known: &mut Scope<'_>| {
        asked.optional(compiled, row, (key, text), known)
    };
    let mut numbers = Vec::new();
    for (key, text) in [
        ("x", figure.x.as_deref().unwrap_or_default()),
        ("y", figure.y.as_deref().unwrap_or_default()),
        ("heatmap.across", &*spec.across),
        ("heatmap.value", &*spec.value),
    ] {
        let Some(found) = ask(key, text, &mut scope)? else {
            return Ok(None);
        };
        numbers.push(number(key, &found)?);
    }
    let &[x, y, across, value] = &*numbers else {
        return Ok(None);
    };
    let (x, y, across) = (x.value, y.value, across.value);
    if ![x, y, across, value.value].iter().all(|v| v.is_finite()) {
        return Ok(None);
    }
    let answer = match &spec.answer {
        None => None,
        Some(text) => match ask("heatmap.answer", text, &mut scope)? {
            Some(found) => Some(answer(&found)?),
            None => Some(Answer::CannotTell),
        },
    };
    let framed = match &spec.frame {
        None => false,
        Some(text) => match ask("heatmap.frame", text, &mut scope)? {
            Some(found) => script::truth(&found).map_err(|t| ("heatmap.frame", t))?,
            None => false,
        },
    };
    let cell = HeatCell {
        x,
        y,
        value,
        answer,
        framed,
    };
    Ok(Some((across, cell)))
}

fn number(key: &'static str, found: &Dynamic) -> Result<Estimate, Wrong> {
    let why = || format!("a {} is not a number", found.type_name());
    script::estimate(found).ok_or_else(|| (key, Trouble::Wrong(why())))
}

fn answer(found: &Dynamic) -> Result<Answer, Wrong> {
    let text = found.clone().into_string().unwrap_or_default();
    let known = Answer::ALL.into_iter().find(|a| a.words() == text);
    known.ok_or_else(|| {
        let all = Answer::ALL.map(|a| format!("`{}`", a.words())).join(", ");
        let why = format!("an answer is one of {all}, not `{found}`");
        ("heatmap.answer", Trouble::Wrong(why))
    })
}
