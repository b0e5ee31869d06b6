//! Figures of points, drawn from the tables of single runs. A run whose points were not kept is simulated again.

use super::asked::Asked;
use super::format::Figure;
use super::points::wrong;
use super::source::{Source, Wrong};
use crate::{Estimate, Line};

/// Maximum number of runs in a picture. Each may have to be simulated again, and more curves cannot be told apart.
const MOST: usize = 20;

/// The lines of a figure of points for one column.
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
            "{} runs in a picture of points, at most {MOST} are drawn: choose some by lines, columns or where",
            rows.len()
        );
        return Err(wrong(&why));
    }
    for &(line, i, row) in &rows {
        let own = &compiled.file.line[line];
        let mut name = own.label.clone().unwrap_or_else(|| own.name.clone());
        // The label names only the axes in which the runs of this line differ.
        let beside = || rows.iter().filter(|r| r.0 == line).map(|r| r.2);
        let mut at = String::new();
        for (k, axis) in compiled.file.axis.iter().enumerate() {
            if beside().any(|other| other.axes[k] != row.axes[k]) {
                at += &format!(", {} = {}", axis.name, row.axes[k]);
            }
        }
        name += &at;
        for (k, (label, text)) in figure.points.iter().enumerate() {
            let points = (source.points)(i, text)?;
            // A line keeps its colour in every picture of the figure. The runs of a single line get different colours.
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
                points: points
                    .iter()
                    .map(|p| (p[0], Estimate::exact(p[1])))
                    .collect(),
                measured: false,
            });
        }
    }
    Ok(drawn)
}
