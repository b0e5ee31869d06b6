//! The page: its sections in order, with their pictures and tables.

mod links;

use std::sync::LazyLock;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};

use crate::data::{Doubt, ForegroundData, QUANTILES, ReportData};
use crate::human::{Quantity, count};
use crate::parts::{Cell, Part, Section, Table, clean, few, interval, named, slots, slowdown};
use crate::{figures, palette, waterfall};

/// The template. Names ending in `.html` enable escaping.
const TEMPLATE: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The environment with the page's template.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment
        .add_template("page.html", TEMPLATE)
        .expect("the template is part of the program, and the tests render it");
    environment
});

/// The whole page.
pub fn page(data: &ReportData) -> String {
    whole(data, &sections(data, Answers::Above))
}

/// Where the picture and the measures of each foreground are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Below its answer, at the top of the page.
    Above,
    /// In its section: the answers are not about one foreground each.
    InSections,
}

/// Everything below the answers.
pub(crate) fn sections(data: &ReportData, answers: Answers) -> Vec<Section> {
    let slots = slots(data);
    let mut sections: Vec<Section> = data
        .foregrounds
        .iter()
        .enumerate()
        .map(|(i, foreground)| {
            let mut section = foreground_section(data, foreground, i, &slots);
            if answers == Answers::InSections {
                let own = answer(data, foreground, i, &slots);
                section.parts.splice(0..0, own);
            }
            section
        })
        .collect();
    sections.extend([
        links::network_section(data),
        links::load_section(data, &slots),
    ]);
    sections.push(rerun_section(data));
    sections
}

/// A page with these sections below its answers, with [`Answers::Above`].
fn whole(data: &ReportData, sections: &[Section]) -> String {
    let slots = slots(data);
    let parts = |i: usize| {
        let own = data.foregrounds.get(i);
        own.map_or_else(Vec::new, |f| answer(data, f, i, &slots))
    };
    with_parts(data, sections, parts)
}

/// A page with these sections below its answers, and these parts below answer `i`.
pub(crate) fn with_parts(
    data: &ReportData,
    sections: &[Section],
    parts: impl Fn(usize) -> Vec<Part>,
) -> String {
    let mut ordered: Vec<&Doubt> = data.doubts.iter().collect();
    ordered.sort_by_key(|d| (d.of_model, !d.grave));
    let doubts: Vec<Value> = ordered
        .iter()
        .map(|d| {
            context! {
                grave => d.grave,
                code => clean(d.code.as_str()),
                message => clean(&d.message),
                place => clean(&d.place),
            }
        })
        .collect();
    // Warnings that could change the answer are never folded away.
    let warnings = ordered.iter().filter(|d| d.grave && !d.of_model).count();
    let answers = data.verdict.iter().enumerate();
    let answers: Vec<Value> = answers
        .map(|(i, said)| {
            let said: Vec<Value> = said
                .iter()
                .map(|p| {
                    let lines: Vec<String> = p.lines.iter().map(|l| clean(l)).collect();
                    context! { text => clean(&p.text), lines => lines }
                })
                .collect();
            // Of several foregrounds each has a heading, for the answers to differ at a glance.
            let several = data.verdict.len() > 1 && data.verdict.len() == data.foregrounds.len();
            let own = data.foregrounds.get(i).filter(|_| several);
            let name = own.map_or_else(String::new, |f| clean(&f.name));
            context! { name => name, said => said, parts => Value::from(Serde(parts(i))) }
        })
        .collect();
    html(
        &data.title,
        &data.note,
        context! {
            report => true,
            answers => answers,
            grave => warnings > 0,
            unfolded => warnings.max(UNFOLDED),
            more => more(ordered.iter().map(|d| d.grave), warnings.max(UNFOLDED)),
            doubts => doubts,
        },
        sections,
    )
}

/// So many doubts are shown, whatever they are; of the others only warnings.
pub(crate) const UNFOLDED: usize = 3;

/// What is folded away behind the first `unfolded` doubts, of which `grave` says which are warnings. The verdict counts
/// warnings alone.
pub(crate) fn more(grave: impl Iterator<Item = bool>, unfolded: usize) -> String {
    let folded: Vec<bool> = grave.skip(unfolded).collect();
    let warnings = folded.iter().filter(|weighs| **weighs).count();
    let said = |n: usize, more: &str, what: &str| {
        (n > 0).then(|| format!("{n}{more} {what}{}", if n == 1 { "" } else { "s" }))
    };
    let each = [
        said(warnings, " more", "warning"),
        said(
            folded.len() - warnings,
            if warnings > 0 { "" } else { " more" },
            "note",
        ),
    ];
    each.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The content below the answer: one picture, and one table of everything measured.
fn answer(
    data: &ReportData,
    foreground: &ForegroundData,
    index: usize,
    slots: &[usize],
) -> Vec<Part> {
    let named = named(data, foreground, slots);
    let mut parts = Vec::new();
    let id = format!("f{index}");
    // Lines at 0 % alone say less than the measure that decides.
    let finished = foreground.conditions.iter().any(|c| !c.steps.is_empty());
    let effects = (!finished)
        .then(|| figures::effects(&id, &named, &foreground.measures, &data.against))
        .flatten();
    if foreground.conditions.iter().any(|c| c.samples > 0) {
        let measured = effects.is_some();
        let mut cdf = effects.unwrap_or_else(|| figures::cdf(&id, &named));
        if data.verdict.len() > 1 && !measured {
            cdf.lead = format!("How long requests of {} take.", clean(&foreground.name));
        }
        let waterfall = waterfall::figure(&id, &named);
        parts.push(Part {
            figures: [cdf].into_iter().chain(waterfall).collect(),
            ..Part::default()
        });
    } else if let Some(effects) = effects {
        parts.push(Part {
            figures: vec![effects],
            ..Part::default()
        });
    }
    if !foreground.measures.is_empty() {
        parts.push(Part {
            tables: vec![measure_table(data, foreground)],
            ..Part::default()
        });
    }
    parts
}

/// More backgrounds than this are listed vertically: side by side they would be wider than the page.
const SIDE_BY_SIDE: usize = 4;

/// Every measure with every background.
fn measure_table(data: &ReportData, foreground: &ForegroundData) -> Table {
    let names: Vec<&str> = data.backgrounds.iter().map(|b| b.name.as_str()).collect();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for row in &foreground.measures {
        let show = |value: f64| {
            let number = row.quantity.show(value, 3);
            if row.unit.is_empty() {
                number
            } else {
                format!("{number}\u{a0}{}", row.unit)
            }
        };
        let mut cells = vec![Cell::text(&row.name)];
        cells.extend(row.cells.iter().map(|c| {
            let value = c.value.map_or_else(|| "–".into(), |v| show(v.value));
            let small = match (c.ratio, c.value) {
                (Some(ratio), _) => {
                    let (factor, interval) = slowdown(&ratio);
                    let mark = if c.differs { ", differs" } else { "" };
                    format!("{factor} {interval}{mark}")
                }
                (None, Some(v)) => interval(row.quantity, v.value, v.low, v.high),
                (None, None) => String::new(),
            };
            Cell::text(value).small(small)
        }));
        rows.push(cells);
    }
    if names.len() <= SIDE_BY_SIDE {
        let mut table = Table::new(&[&["Measure"], &names[..]].concat());
        table.rows = rows;
        return table;
    }
    let measures: Vec<&str> = foreground
        .measures
        .iter()
        .map(|m| m.name.as_str())
        .collect();
    let mut table = Table::new(&[&["Background"], &measures[..]].concat());
    table.rows = (0..names.len())
        .map(|b| {
            let cells = rows.iter().filter_map(|row| row.get(b + 1)).cloned();
            std::iter::once(Cell::text(names[b])).chain(cells).collect()
        })
        .collect();
    table
}

/// A page of sections, with `extra` variables for the template.
pub(crate) fn html(title: &str, note: &str, extra: Value, sections: &[Section]) -> String {
    let all = context! {
        title => clean(title),
        note => clean(note),
        style => Value::from_safe_string(format!("{}{CSS}", palette::page_css())),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        version => env!("CARGO_PKG_VERSION"),
        sections => Value::from(Serde(sections)),
        ..extra
    };
    ENVIRONMENT
        .get_template("page.html")
        .and_then(|template| template.render(all))
        .expect("the template uses only what is given here, and the tests render every part of it")
}

fn foreground_section(
    data: &ReportData,
    foreground: &ForegroundData,
    index: usize,
    slots: &[usize],
) -> Section {
    let id = format!("f{index}");
    let named = named(data, foreground, slots);
    let times = vec![
        Part {
            heading: "Completion times".into(),
            text: format!(
                "Quantiles of the completion time of all runs together. Below each: how many \
                 times as long as with {}, the geometric mean over runs with its \
                 95 % interval; for the reference itself, the bootstrap interval of the time.",
                clean(&data.against)
            ),
            tables: vec![quantile_table(data, foreground, slots)],
            ..Part::default()
        },
        Part {
            heading: "Slowdown".into(),
            figures: vec![figures::slowdown(&id, &named, &data.against)],
            ..Part::default()
        },
    ];
    let traffic = vec![
        Part {
            heading: "Burstiness of the background".into(),
            figures: figures::energies(&id, &named),
            ..Part::default()
        },
        Part {
            heading: "The bottleneck over time".into(),
            figures: figures::timelines(&id, &named),
            ..Part::default()
        },
    ];
    // A foreground without requests has no times.
    let requests = foreground.conditions.iter().any(|c| c.samples > 0);
    let times = times.into_iter().filter(|_| requests);
    Section {
        id,
        title: clean(&foreground.name),
        what: clean(&foreground.what),
        parts: times.chain(traffic).collect(),
    }
}

fn quantile_table(data: &ReportData, foreground: &ForegroundData, slots: &[usize]) -> Table {
    let mut table = Table::new(&["Background", "p5", "p50", "p90", "p95", "n"]);
    for ((background, condition), &slot) in data
        .backgrounds
        .iter()
        .zip(&foreground.conditions)
        .zip(slots)
    {
        let mut row = vec![
            Cell::text(&background.name)
                .small(&background.what)
                .slot(slot),
        ];
        for i in 0..QUANTILES.len() {
            let Some(time) = condition.quantiles[i] else {
                let small = match &condition.slowdown[i] {
                    None if few(condition) => "too few".into(),
                    Some(s) => format!("{}, not identifiable", slowdown(s).0),
                    None => "not identifiable".into(),
                };
                row.push(Cell::text("–").small(small));
                continue;
            };
            let small = match &condition.slowdown[i] {
                Some(s) => {
                    let (factor, interval) = slowdown(s);
                    format!("{factor} {interval}")
                }
                None => interval(Quantity::Duration, time.value, time.low, time.high),
            };
            row.push(Cell::text(Quantity::Duration.show(time.value, 3)).small(small));
        }
        let (valid, runs) = (condition.replications, condition.runs);
        let mut notes = vec![match valid == runs {
            true => format!("{runs} runs"),
            false => format!("{valid} of {runs} runs, the others were late"),
        }];
        if condition.unfinished > 0 {
            notes.push(format!("{} unfinished", count(condition.unfinished as u64)));
        }
        if condition.failed > 0 {
            notes.push(format!("{} failed", count(condition.failed as u64)));
        }
        row.push(Cell::text(count(condition.samples as u64)).small(notes.join(", ")));
        table.rows.push(row);
    }
    table
}

fn rerun_section(data: &ReportData) -> Section {
    Section {
        id: "rerun".into(),
        title: "The experiment, and how to run it again".into(),
        what: clean(&data.rerun.what),
        parts: vec![
            Part {
                code: clean(&data.rerun.command),
                facts: data
                    .rerun
                    .facts
                    .iter()
                    .map(|(k, v)| (clean(k), clean(v)))
                    .collect(),
                ..Part::default()
            },
            Part {
                summary: "The experiment, resolved".into(),
                code: clean(&data.experiment),
                ..Part::default()
            },
        ],
    }
}

#[cfg(test)]
mod tests;
