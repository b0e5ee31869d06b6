//! Figures of a run's own tables: the run is simulated again for them.

use rhai::{Array, Dynamic};

use super::asked::Asked;
use super::cells;
use super::draw::Wrong;
use super::format::Figure;
use super::read::Compiled;
use super::reference::Numbers;
use super::script::{self, Trouble};
use super::tables::Tables;
use crate::{Estimate, Line};

/// Runs of a picture: each takes as long as it took before and keeps its tables, and more curves than these
/// nobody tells apart.
const MOST: usize = 20;

/// What figures and tables are made of.
pub(super) struct Source<'a> {
    pub compiled: &'a Compiled,
    pub numbers: &'a Numbers,
    /// The tables of the first run of a row, and its length in seconds; else why there are none.
    pub again: &'a dyn Fn(usize) -> Result<(Tables, f64), String>,
}

/// The lines of a figure of points in one column.
pub(super) fn lines(
    source: &Source<'_>,
    asked: &Asked<'_>,
    figure: &Figure,
    column: usize,
    lines: &[usize],
) -> Result<Vec<Line>, Wrong> {
    let compiled = source.compiled;
    let mut drawn = Vec::new();
    let mut rows = Vec::new();
    for &line in lines {
        for (i, row) in source.numbers.rows.iter().enumerate() {
            if row.place == (column, line) && asked.scope(compiled, row)?.is_some() {
                rows.push((line, i, row));
            }
        }
    }
    if rows.len() > MOST {
        let why = format!(
            "{} runs would be simulated again for a picture, at most {MOST} are: choose some by lines, columns \
             or where",
            rows.len()
        );
        return Err(wrong(&why));
    }
    for &(line, i, row) in &rows {
        let (tables, seconds) = (source.again)(i).map_err(|why| wrong(&why))?;
        let own = &compiled.file.line[line];
        let mut name = own.label.clone().unwrap_or_else(|| own.name.clone());
        // Only what tells the runs of this line apart.
        let beside = || rows.iter().filter(|r| r.0 == line).map(|r| r.2);
        let mut at = String::new();
        for (k, axis) in compiled.file.axis.iter().enumerate() {
            if beside().any(|other| other.axes[k] != row.axes[k]) {
                at += &format!(", {} = {}", axis.name, row.axes[k]);
            }
        }
        name += &at;
        for (k, (label, text)) in figure.points.iter().enumerate() {
            let mut known = cells::scope_of(compiled, row, tables.clone(), seconds);
            let ast = script::compile(&compiled.engine, text).map_err(|t| ("points", t))?;
            let found = script::value(&compiled.engine, &ast, &mut known, text);
            // A line has its colour in every picture of the figure; the runs of the only one are told apart.
            let place = match lines {
                [_] => drawn.len(),
                _ => k + figure.points.len() * lines.iter().position(|l| *l == line).unwrap_or(0),
            };
            drawn.push(Line {
                name: match (lines.len(), figure.points.len()) {
                    (_, 1) => name.clone(),
                    (1, _) => format!("{label}{at}"),
                    _ => format!("{name}, {label}"),
                },
                slot: 1 + place % 7,
                points: points(found.map_err(|t| ("points", t))?)?,
                measured: false,
            });
        }
    }
    Ok(drawn)
}

fn points(found: Dynamic) -> Result<Vec<(f64, Estimate)>, Wrong> {
    let list = |value: Dynamic| {
        let kind = value.type_name();
        let why = format!("a {kind} is no list of [x, y]");
        value.try_cast::<Array>().ok_or_else(|| wrong(&why))
    };
    let mut all = Vec::new();
    for item in list(found)? {
        let pair = list(item)?;
        let [first, second] = &pair[..] else {
            return Err(wrong("a point is [x, y]"));
        };
        let both = script::number(first).zip(script::number(second));
        let (x, y) = both.ok_or_else(|| wrong("a point is [x, y], two numbers"))?;
        if x.is_finite() && y.is_finite() {
            all.push((x, Estimate::exact(y)));
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(all)
}

fn wrong(why: &str) -> Wrong {
    ("points", Trouble::Wrong(why.to_owned()))
}
