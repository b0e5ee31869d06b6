//! Tables of the page with a row for each run.

use rhai::Dynamic;

use super::asked::Asked;
use super::format::{By, CellSpec, TableSpec};
use super::script::{self, Trouble};
use super::source::{Source, Wrong, chosen};
use super::units::written;
use crate::Table;

/// One table for each column that has such runs.
pub(super) fn tables(source: &Source<'_>, spec: &TableSpec) -> Result<Vec<Table>, Wrong> {
    let study = &source.compiled.file;
    let lines = chosen(spec.lines.as_deref(), study.line.iter().map(|l| &*l.name));
    let columns = study.column.iter().map(|c| &*c.name);
    let mut all: Vec<Table> = Vec::new();
    let head = spec.cell.iter().map(|cell| cell.head.clone());
    let head: Vec<String> = [String::new()].into_iter().chain(head).collect();
    for c in chosen(spec.columns.as_deref(), columns) {
        let asked = Asked::filtered(source, c, spec.filter.as_deref())?;
        let mut rows = Vec::new();
        for &l in &lines {
            let own = &study.line[l];
            let mine = source.numbers.rows.iter().filter(|r| r.place == (c, l));
            for row in mine {
                let Some(mut scope) = asked.scope(source.compiled, row)? else {
                    continue;
                };
                let column = &study.column[c];
                let name = match spec.by {
                    By::Line => own.label.as_ref().unwrap_or(&own.name),
                    By::Column => column.label.as_ref().unwrap_or(&column.name),
                };
                // A measure without a number in any run is not in scope, so its name is unknown here.
                let lacks = |why: &str| {
                    let mut each = row.numbers.iter().zip(&study.measure);
                    each.any(|(known, m)| known.is_none() && why.contains(&format!("`{}`", m.name)))
                };
                let mut texts = vec![name.clone()];
                for cell in &spec.cell {
                    let found = match asked.value("cell", &cell.value, &mut scope) {
                        Err((_, Trouble::Wrong(why))) if lacks(&why) => Dynamic::UNIT,
                        Err((_, Trouble::NotThere(_))) => Dynamic::UNIT,
                        found => found?,
                    };
                    texts.push(text(cell, &found)?);
                }
                rows.push(texts);
            }
        }
        if rows.is_empty() {
            continue;
        }
        if let (By::Column, Some(one)) = (spec.by, all.last_mut()) {
            one.rows.extend(rows);
            continue;
        }
        let own = &study.column[c];
        let title = match (study.column.len(), spec.by) {
            (1, _) | (_, By::Column) => spec.title.clone(),
            _ => format!(
                "{}, {}",
                spec.title,
                own.label.as_ref().unwrap_or(&own.name)
            ),
        };
        all.push(Table {
            title,
            head: head.clone(),
            rows,
        });
    }
    Ok(all)
}

fn text(cell: &CellSpec, found: &Dynamic) -> Result<String, Wrong> {
    if found.is_unit() {
        return Ok("–".to_owned());
    }
    if let Some(e) = script::estimate(found) {
        return Ok(written(cell.unit, e.value));
    }
    let kind = |kind| {
        let why = format!("a {kind} is neither a number nor a text");
        ("cell", Trouble::Wrong(why))
    };
    found.clone().into_string().map_err(kind)
}
