//! The ledgers of a study, and its figures as tables.

use comfy_table::{CellAlignment, ColumnConstraint, Table, Width};
use swell_study::{Axis, Entry, Estimate, Finding, Heatmap, Ledger, Picture, Unit, Verdict};

use super::text::{WIDTH, list, wrapped};

/// Widths of cells: of a verdict, and of what the paper says.
const FINDING: usize = 12;
const PAPER: usize = 12;

/// A ledger: for each claim and each column the verdict and the number that decides. If there are more columns than a
/// terminal is wide, the others are in tables of their own. Below is why claims are not tested.
pub(crate) fn ledger(ledger: &Ledger, reference: &str) -> String {
    let ids = ledger.entries.iter().map(|e| e.id.chars().count());
    let id = ids.max().unwrap_or(0).clamp(1, 12);
    let columns = ledger.columns.len();
    // A claim has at least as much room as a verdict, and columns have a space between them.
    let first = columns.min((WIDTH - id - 2 - FINDING - PAPER - 1) / (FINDING + 1));
    let mut parts = vec![claims(ledger, id, first)];
    let more = (WIDTH - id) / (FINDING + 1);
    let mut next = first;
    while next < columns {
        let end = columns.min(next + more);
        parts.push(others(ledger, id, next..end));
        next = end;
    }
    let mut findings = ledger.entries.iter().flat_map(|e| &e.findings);
    let beside = match findings.any(|f| !f.beside().is_empty()) {
        true => format!("; in brackets {reference} by the same rule"),
        false => String::new(),
    };
    let tables: Vec<String> = parts.iter().map(Table::to_string).collect();
    let mut text = format!("{}{beside}\n{}", ledger.title, tables.join("\n"));
    for reason in reasons(ledger) {
        text += &format!("\n{}", wrapped(&reason));
    }
    text
}

/// The first columns, with claims and what the paper says.
fn claims(ledger: &Ledger, id: usize, columns: usize) -> Table {
    let mut header = vec!["", "claim", "paper"];
    header.extend(ledger.columns.iter().take(columns).map(String::as_str));
    let mut table = list(&header);
    let narrow = if columns > 2 { FINDING } else { FINDING + 3 };
    let taken = id + PAPER + columns * narrow + header.len();
    let wide = WIDTH.saturating_sub(taken).max(FINDING);
    shape(&mut table, &[id, wide, PAPER], narrow);
    for entry in &ledger.entries {
        let mut row = vec![entry.id.clone(), entry.claim.clone(), entry.paper.clone()];
        row.extend(entry.findings.iter().take(columns).map(cell));
        table.add_row(row);
    }
    table
}

/// Further columns.
fn others(ledger: &Ledger, id: usize, columns: std::ops::Range<usize>) -> Table {
    let of = |entry: &Entry| -> Vec<String> {
        let mut row = vec![entry.id.clone()];
        let own = entry.findings.get(columns.clone()).unwrap_or_default();
        row.extend(own.iter().map(cell));
        row
    };
    let mut header = vec![""];
    let names = ledger.columns.get(columns.clone()).unwrap_or_default();
    header.extend(names.iter().map(String::as_str));
    let mut table = list(&header);
    shape(&mut table, &[id], FINDING);
    table.add_rows(ledger.entries.iter().map(of));
    table
}

/// Sets widths: those of texts, and of all columns after them.
fn shape(table: &mut Table, texts: &[usize], narrow: usize) {
    let widths = texts.iter().copied().chain(std::iter::repeat(narrow));
    for ((i, column), width) in table.column_iter_mut().enumerate().zip(widths) {
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width as u16)));
        if i < texts.len() {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
}

fn cell(f: &Finding) -> String {
    let mut text = f.words();
    if !f.value.is_empty() {
        text += &format!("\n{}", f.value);
    }
    let beside = f.beside().join("\n");
    if !beside.is_empty() {
        text += &format!("\n({beside})");
    }
    text
}

/// Why claims are not tested: for each reason, in which columns which claims.
fn reasons(ledger: &Ledger) -> Vec<String> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for entry in &ledger.entries {
        let mut own: Vec<(&str, Vec<&str>)> = Vec::new();
        for (column, finding) in ledger.columns.iter().zip(&entry.findings) {
            if finding.verdict != Verdict::NotTested || finding.detail.is_empty() {
                continue;
            }
            match own.iter_mut().find(|(why, _)| *why == finding.detail) {
                Some((_, columns)) => columns.push(column),
                None => own.push((&finding.detail, vec![column])),
            }
        }
        for (why, columns) in own {
            let text = format!("in {}: {why}", columns.join(", "));
            match all.iter_mut().find(|(known, _)| *known == text) {
                Some((_, ids)) => ids.push(&entry.id),
                None => all.push((text, vec![&entry.id])),
            }
        }
    }
    let each = all.into_iter();
    each.map(|(why, ids)| format!("not tested: {} {why}", ids.join(", ")))
        .collect()
}

/// The points of a picture: a row for each place on the axis, a column for each line, with 95 % intervals. Reference
/// curves, which nobody measured, are left out.
pub(crate) fn picture(picture: &Picture) -> String {
    if let Some(map) = &picture.heatmap {
        return heatmap(picture, map);
    }
    let lines = || picture.lines.iter().filter(|line| line.measured);
    let mut header = vec![format!("{}{}", picture.x.title, unit(&picture.x).0)];
    header.extend(lines().map(|line| line.name.clone()));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = list(&header);
    let mut places: Vec<f64> = Vec::new();
    for &(x, _) in lines().flat_map(|line| &line.points) {
        if !places.contains(&x) {
            places.push(x);
        }
    }
    places.sort_by(f64::total_cmp);
    for place in places {
        let group = picture.bars.get(place as usize);
        let mut row = vec![group.map_or_else(|| number(place, &picture.x), Clone::clone)];
        row.extend(lines().map(|line| {
            let own = line.points.iter().find(|p| p.0 == place);
            own.map_or_else(|| "-".to_owned(), |p| estimate(&p.1, &picture.y))
        }));
        table.add_row(row);
    }
    format!(
        "{}{}; in brackets 95 % intervals\n{table}",
        picture.title,
        unit(&picture.y).0
    )
}

/// The cells of a heat map: a row for each.
fn heatmap(picture: &Picture, map: &Heatmap) -> String {
    let titled = |axis: &Axis| format!("{}{}", axis.title, unit(axis).0);
    let axes = [&map.across, &picture.x, &picture.y].map(titled);
    let mut header = vec![""];
    header.extend(axes.iter().map(String::as_str));
    header.extend(["ratio", "answer"]);
    let mut table = list(&header);
    for panel in &map.panels {
        for cell in &panel.cells {
            let ratio = Axis {
                title: String::new(),
                unit: Unit::Plain,
                log: true,
            };
            let answer = cell.answer.map_or("-", |a| a.words());
            table.add_row(vec![
                panel.row.clone(),
                number(panel.across, &map.across),
                number(cell.x, &picture.x),
                number(cell.y, &picture.y),
                estimate(&cell.value, &ratio),
                match cell.framed {
                    true => format!("{answer}; {}", map.frame),
                    false => answer.to_owned(),
                },
            ]);
        }
    }
    format!(
        "{}: {}; in brackets 95 % intervals\n{table}",
        picture.title, map.value
    )
}

/// A mean with its interval.
fn estimate(e: &Estimate, axis: &Axis) -> String {
    match e.interval {
        Some([low, high]) => format!(
            "{} ({} to {})",
            number(e.value, axis),
            number(low, axis),
            number(high, axis)
        ),
        None => number(e.value, axis),
    }
}

/// The unit in which numbers of an axis are printed, after its title, and how many of it a unit of the axis is.
fn unit(axis: &Axis) -> (&'static str, f64) {
    match axis.unit {
        Unit::Plain => ("", 1.0),
        Unit::Share => (", %", 100.0),
        Unit::Seconds => (", ms", 1e3),
        Unit::Bytes => (", kB", 1e-3),
        Unit::BitsPerSecond => (", Mbit/s", 1e-6),
    }
}

/// A number in the unit that the title of the table names: three significant digits.
fn number(x: f64, axis: &Axis) -> String {
    let x = x * unit(axis).1;
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let decimals = (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    match x == x.trunc() {
        true => format!("{x:.0}"),
        false => format!("{x:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use swell_study::Line;

    use super::*;

    fn made_up(columns: usize) -> Ledger {
        let finding = |i: usize| match i {
            0 => Finding {
                detail: "asked of c1 alone".into(),
                ..Finding::not_tested()
            },
            _ => Finding {
                verdict: Verdict::Holds,
                tentative: true,
                value: format!("× {i}.25"),
                ..Finding::not_tested()
            },
        };
        let entry = |id: &str| Entry {
            id: id.into(),
            claim: "a claim that is long enough to be wrapped in any width".into(),
            paper: "figure 12(a), in the middle of the page".into(),
            rule: "equal".into(),
            findings: (0..columns).map(finding).collect(),
        };
        Ledger {
            title: "Claims".into(),
            columns: (0..columns).map(|i| format!("c{i}")).collect(),
            entries: vec![entry("S4.10a"), entry("S4.10b")],
        }
    }

    #[test]
    fn a_ledger_fits_into_a_terminal_with_all_its_values_and_reasons() {
        for columns in [1, 2, 3, 4, 6, 11] {
            let text = ledger(&made_up(columns), "");
            let widest = text.lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(WIDTH), "{columns}: {widest:?}\n{text}");
            for i in 1..columns {
                let value = format!("× {i}.25");
                assert_eq!(text.matches(&value).count(), 2, "{value}\n{text}");
            }
            let why = "not tested: S4.10a, S4.10b in c0: asked of c1 alone";
            assert!(text.ends_with(why), "{text}");
        }
    }

    #[test]
    fn a_picture_has_a_row_for_each_place_and_its_intervals() {
        let axis = |title: &str, unit| Axis {
            title: title.into(),
            unit,
            log: false,
        };
        let line = |name: &str, points: &[(f64, &[f64])]| Line {
            name: name.into(),
            slot: 1,
            points: points
                .iter()
                .map(|(x, values)| (*x, Estimate::of(values.iter().copied()).unwrap()))
                .collect(),
            measured: true,
        };
        let reference = Line {
            measured: false,
            ..line("reference", &[(0.001, &[1.0]), (0.002, &[1.0])])
        };
        let text = picture(&Picture {
            name: "wait".into(),
            title: "Wait".into(),
            caption: String::new(),
            x: axis("timescale", Unit::Seconds),
            y: axis("wait", Unit::Seconds),
            lines: vec![
                line(
                    "voice",
                    &[(0.016, &[0.002]), (0.004, &[0.001, 0.001, 0.001])],
                ),
                line("web", &[(0.016, &[0.010, 0.014])]),
                reference,
            ],
            bars: Vec::new(),
            heatmap: None,
        });
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(rows[0], "Wait, ms; in brackets 95 % intervals");
        assert!(text.contains("timescale, ms") && !text.contains("reference"));
        assert!(!rows.iter().any(|r| r.starts_with("1 ")));
        let row = |begins: &str| {
            let own = rows
                .iter()
                .find(|r| r.split_whitespace().next() == Some(begins));
            own.map(|r| r.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(row("4").as_deref(), Some("4 1 (1 to 1) -"));
        // Two values 4 ms apart: 12.706 standard errors of 2 ms.
        assert_eq!(row("16").as_deref(), Some("16 2 12 (-13.4 to 37.4)"));
    }
}
