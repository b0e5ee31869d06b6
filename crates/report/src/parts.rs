//! The parts of a page: cells, tables, pictures and sections.

use minijinja::Value;
use serde::Serialize;
use swell_verdict::Known;

use crate::chart::Canvas;
use crate::data::{Condition, FEW_SAMPLES, ForegroundData, Interval, ReportData};
use crate::human::{Quantity, significant};
use crate::palette::{self, Role};

/// Width of a picture on a wide page, pixels.
pub(crate) const WIDE: f64 = 700.0;
/// Width of a picture on a narrow page, pixels.
pub(crate) const NARROW: f64 = 360.0;

/// A cell of a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    text: String,
    small: String,
    slot: Option<usize>,
    /// Links to pictures on the page: names and texts.
    links: Vec<(String, String)>,
}

/// A table of numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A picture with its caption and numbers, in a wide and a narrow version.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) lead: String,
    pub(crate) caption: String,
    /// The heading under which it is collapsed; empty if it is visible.
    pub(crate) folded: String,
    /// Its packed Vega-Lite specification; empty if there is none.
    pub(crate) vega: String,
    pub(crate) wide: Vec<Value>,
    pub(crate) narrow: Vec<Value>,
    pub(crate) numbers: Option<Table>,
    /// Whether its pictures show nothing, so that there is nothing to save or to list.
    pub(crate) empty: bool,
}

/// A part of a section: any of a heading, a text, tables, pictures, code and facts.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Part {
    pub(crate) heading: String,
    pub(crate) text: String,
    pub(crate) tables: Vec<Table>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) summary: String,
    pub(crate) code: String,
    pub(crate) facts: Vec<(String, String)>,
}

/// A section.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) what: String,
    pub(crate) parts: Vec<Part>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: clean(&text.into()),
            small: String::new(),
            slot: None,
            links: Vec::new(),
        }
    }
    pub(crate) fn small(mut self, small: impl Into<String>) -> Cell {
        self.small = clean(&small.into());
        self
    }
    pub(crate) fn slot(mut self, slot: usize) -> Cell {
        self.slot = Some(slot);
        self
    }
    /// Adds a link to the picture of this name.
    pub(crate) fn link(mut self, picture: &str, text: &str) -> Cell {
        self.links.push((picture.to_owned(), clean(text)));
        self
    }
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        Table {
            head: head.iter().map(|h| clean(h)).collect(),
            rows: Vec::new(),
        }
    }

    /// Whether there is a number beside the first column, which names the row.
    fn has_numbers(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|r| r.iter().skip(1));
        cells.any(|c| c.text.contains(|t: char| t.is_ascii_digit()))
    }
}

impl Figure {
    /// Both versions of one picture; `draw` gets the width and whether it is the narrow one.
    pub(crate) fn both(
        id: &str,
        lead: &str,
        caption: &str,
        draw: impl Fn(&dyn Fn(&str, f64) -> Canvas, f64) -> Vec<String>,
    ) -> Figure {
        let drawn = |width: f64, suffix: &str| {
            let canvas = |part: &str, height: f64| {
                Canvas::inline(&format!("{id}{part}-{suffix}"), width, height)
            };
            draw(&canvas, width)
        };
        let safe = |all: Vec<String>| all.into_iter().map(Value::from_safe_string).collect();
        let wide = drawn(WIDE, "w");
        let nothing = format!("class=\"{}\"", crate::chart::NOTHING);
        Figure {
            id: id.into(),
            lead: lead.into(),
            caption: caption.into(),
            folded: String::new(),
            vega: String::new(),
            empty: wide.iter().all(|svg| svg.contains(&nothing)),
            wide: safe(wide),
            narrow: safe(drawn(NARROW, "n")),
            numbers: None,
        }
    }
    pub(crate) fn folded(mut self, under: String) -> Figure {
        self.folded = under;
        self
    }
    pub(crate) fn vega(mut self, spec: &serde_json::Value) -> Figure {
        if !self.empty {
            self.vega = crate::vega::packed(spec);
        }
        self
    }
    pub(crate) fn numbers(mut self, table: Table) -> Figure {
        // A logarithmic axis shows nothing of zeros, which are numbers all the same.
        self.numbers = Some(table).filter(|t| !self.empty || t.has_numbers());
        self
    }
}

/// Text without control characters; the template escapes the rest.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(crate::svg::printable).collect()
}

/// Interval in brackets, in the unit of `value` but without repeating it; an open end is `?`. Its spaces are
/// non-breaking, so that a narrow column shows it on a line of its own.
pub(crate) fn interval(quantity: Quantity, value: f64, low: f64, high: f64) -> String {
    if low == 0.0 && high.is_infinite() {
        return "no interval".into();
    }
    let (unit, _) = quantity.unit(value);
    let show = |v: f64| match quantity {
        _ if !v.is_finite() => "?".into(),
        Quantity::Ratio => Quantity::Ratio.show(v, 3).replace('×', ""),
        _ => significant(v / unit, 3),
    };
    format!("[{}\u{a0}…\u{a0}{}]", show(low), show(high))
}

/// A slowdown and its interval. If only one bound is known, the text is `≥` or `≤` that bound.
pub(crate) fn slowdown(s: &Interval) -> (String, String) {
    let factor = Quantity::Ratio.show(s.value, 3);
    match Known::of_ends(s.value, [s.low, s.high]) {
        Known::AtLeast(_) => (format!("≥ {factor}"), "a bound".into()),
        Known::AtMost(_) => (format!("≤ {factor}"), "a bound".into()),
        Known::Interval | Known::Value => {
            (factor, interval(Quantity::Ratio, s.value, s.low, s.high))
        }
    }
}

/// A background's name, look and role, with the measurements against it.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) slot: usize,
    pub(crate) role: Role,
    pub(crate) condition: &'a Condition,
}

/// The palette slot of each background.
pub(crate) fn slots(data: &ReportData) -> Vec<usize> {
    palette::slots(&data.backgrounds.iter().map(|b| b.role).collect::<Vec<_>>())
}

/// The conditions of a foreground with the names of their backgrounds.
pub(crate) fn named<'a>(
    data: &'a ReportData,
    foreground: &'a ForegroundData,
    slots: &[usize],
) -> Vec<Named<'a>> {
    data.backgrounds
        .iter()
        .zip(&foreground.conditions)
        .zip(slots)
        .map(|((background, condition), &slot)| Named {
            name: &background.name,
            slot,
            role: background.role,
            condition,
        })
        .collect()
}

/// Whether there are too few samples for a tail.
pub(crate) fn few(condition: &Condition) -> bool {
    condition.samples < FEW_SAMPLES
}
