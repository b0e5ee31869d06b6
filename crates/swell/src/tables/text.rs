//! Numbers and text in the width of a terminal.

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use swell_verdict::Paragraph;

pub(super) const WIDTH: usize = 80;

/// A table with one line per row.
pub(super) fn list(header: &[&str]) -> Table {
    let mut list = table(header);
    list.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    list
}

/// Whether a table is too wide for a terminal.
pub(super) fn too_wide(table: &Table) -> bool {
    table.lines().any(|line| line.chars().count() > WIDTH)
}

/// A table with several lines per row.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(header.to_vec());
    for (i, column) in table.column_iter_mut().enumerate() {
        // The separator between columns is enough space in 80 columns.
        column.set_padding((0, 0));
        if i > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Three significant digits of any size.
pub(super) fn plain(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => significant(x),
        _ => format!("{x:.2e}"),
    }
}

/// A ratio in at most four characters below 10 000.
pub(super) fn ratio(x: f64) -> String {
    match x {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x if x > 0.0 && x < 0.005 => format!("{x:.0e}"),
        _ => format!("{x:.2}"),
    }
}

/// A rate in Mbit/s: a tenth, or two digits of less.
pub(super) fn rate(bps: f64) -> String {
    match bps / 1e6 {
        0.0 => "0".into(),
        x if x < 1e-4 => "<0.0001".into(),
        x if x < 0.1 => format!("{:.*}", (1.0 - x.log10().floor()) as usize, x),
        x => format!("{x:.1}"),
    }
}

/// Millions, to three digits.
pub(super) fn mega(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x < 1e3 => "<0.001".into(),
        _ => significant(x / 1e6),
    }
}

/// Three significant digits, thousandths at least; one of less.
pub(super) fn significant(x: f64) -> String {
    match x.abs() {
        small if small > 0.0 && small < 5e-4 => format!("{x:.0e}"),
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x if x >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Wraps text at 80 columns.
pub(crate) fn wrapped(text: &str) -> String {
    indented(text, "", "")
}

/// Wraps text at 80 columns; the first line begins with `first`, the others with `rest`.
pub(super) fn indented(text: &str, first: &str, rest: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut begun = false;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{rest}{word}"));
        } else {
            if begun {
                line.push(' ');
            }
            line.push_str(word);
        }
        begun = true;
    }
    lines.join("\n")
}

/// An answer and its lines.
pub(super) fn paragraph(p: &Paragraph) -> String {
    let mut text = wrapped(&p.text);
    text.push('\n');
    for line in &p.lines {
        text += &indented(line, "  ", "    ");
        text.push('\n');
    }
    text
}
