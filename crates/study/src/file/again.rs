//! Figures of a run's own tables. What was not kept of a run is simulated again.

use super::asked::Asked;
use super::format::Figure;
use super::points::wrong;
use super::source::{Source, Wrong};
use crate::{Estimate, Line};

/// Runs of a picture: each may take as long as it took before, and more curves than these cannot be distinguished.
const MOST: usize = 20;

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
            "{} runs in a picture of points, at most {MOST} are drawn: choose some by lines, columns or where",
            rows.len()
        );
        return Err(wrong(&why));
    }
    for &(line, i, row) in &rows {
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
            let points = (source.points)(i, text)?;
            // A line has its colour in every picture of the figure; the runs of a single line get different colours.
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
