//! A study: its ledger, its pictures, its page.

use minijinja::context;
use swell_base::Severity;
use swell_study::{Finding, Ledger, Picture, Study, Unit, Verdict};

use crate::chart::{Axis, Bar, BarChart, BarGroup, Canvas, Curve, Shape, XyChart};
use crate::human::significant;
use crate::page;
use crate::parts::{Cell, Figure, Part, Section, Table};

mod heat;
mod text;

use text::{capital, number, quantity};

/// The page about a study: its doubts, ledgers, and pictures with their numbers.
pub fn study_html(study: &Study) -> String {
    let mut sections: Vec<Section> = study
        .ledgers
        .iter()
        .enumerate()
        .map(|(i, ledger)| ledger_section(ledger, i, study))
        .collect();
    sections.extend(study.sections.iter().enumerate().map(|(i, s)| {
        Section {
            id: format!("section{i}"),
            title: s.title.clone(),
            what: s.what.clone(),
            parts: [
                Part {
                    figures: s.pictures.iter().map(figure).collect(),
                    ..Part::default()
                },
                Part {
                    tables: s.tables.iter().take(1).map(table).collect(),
                    ..Part::default()
                },
            ]
            .into_iter()
            .chain(s.tables.iter().skip(1).map(|t| Part {
                heading: t.title.clone(),
                tables: vec![table(t)],
                ..Part::default()
            }))
            .collect(),
        }
    }));
    sections.push(Section {
        id: "rerun".into(),
        title: "How to run it again".into(),
        what: if study.real_time {
            "Measured as time went by, on this machine: the same command gives other numbers."
        } else {
            "Equal command and version give equal numbers, bit for bit."
        }
        .into(),
        parts: vec![Part {
            code: study.command.clone(),
            facts: study.facts.clone(),
            ..Part::default()
        }],
    });
    let doubts = |grave: bool| -> Vec<minijinja::Value> {
        let mine = study
            .doubts
            .iter()
            .filter(|d| (d.severity == Severity::Warning) == grave);
        mine.map(|d| {
            context! { grave => grave, code => d.code.as_str(), message => &d.message, place => "" }
        })
        .collect()
    };
    let extra = context! {
        report => true,
        answers => sentences(study)
            .into_iter()
            .map(|text| context! { said => vec![context! { text => text }] })
            .collect::<Vec<minijinja::Value>>(),
        grave => !doubts(true).is_empty(),
        unfolded => doubts(true).len().max(page::UNFOLDED),
        more => page::more(
            [true, false].into_iter().flat_map(|grave| vec![grave; doubts(grave).len()]),
            doubts(true).len().max(page::UNFOLDED),
        ),
        doubts => [doubts(true), doubts(false)].concat(),
    };
    page::html(&study.title, &study.paper, extra, &sections)
}

/// A picture of a study.
pub fn study_svg(picture: &Picture, canvas: &Canvas) -> String {
    match &picture.heatmap {
        Some(map) => heat::chart(picture, map).svg(canvas),
        None if !picture.bars.is_empty() => bars(picture).svg(canvas),
        None => chart(picture).svg(canvas),
    }
}

/// The height that a picture of a study needs at the width of a canvas; `None` if any will do.
pub fn study_height(picture: &Picture, canvas: &Canvas) -> Option<f64> {
    let map = picture.heatmap.as_ref()?;
    Some(heat::chart(picture, map).height(canvas))
}

/// A picture of a study as a Vega-Lite specification.
pub fn study_vega(picture: &Picture) -> serde_json::Value {
    match &picture.heatmap {
        Some(map) => heat::chart(picture, map).vega(),
        None if !picture.bars.is_empty() => bars(picture).vega(),
        None => chart(picture).vega(),
    }
}

/// Summary of the verdicts of all ledgers, column by column.
fn sentences(study: &Study) -> Vec<String> {
    let mut columns: Vec<&str> = Vec::new();
    for name in study.ledgers.iter().flat_map(|l| &l.columns) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let each: Vec<String> = columns.iter().map(|name| sentence(study, name)).collect();
    match each.is_empty() {
        true => Vec::new(),
        false => vec![each.join(" ")],
    }
}

/// Summary of the verdicts in a column, which several ledgers may have.
fn sentence(study: &Study, name: &str) -> String {
    let all: Vec<&Finding> = study
        .ledgers
        .iter()
        .flat_map(|ledger| {
            let column = ledger.columns.iter().position(|c| c == name);
            let entries = ledger.entries.iter();
            entries.filter_map(move |e| e.findings.get(column?))
        })
        .collect();
    let of = |verdict: Verdict| all.iter().filter(|f| f.verdict == verdict).count();
    let tentative = all.iter().filter(|f| f.tentative).count();
    let open = of(Verdict::NotTested);
    let tested = all.len() - open;
    let how = match tentative > 0 && tentative == tested {
        true => " tentatively",
        false => "",
    };
    let mut text = format!(
        "{name}: {} of {} claims hold{how}, {} in part, {} not",
        of(Verdict::Holds),
        all.len(),
        of(Verdict::InPart),
        of(Verdict::DoesNotHold)
    );
    if open > 0 {
        text += &format!(", {open} not tested");
    }
    if tentative > 0 && tentative < tested {
        text += &format!(", {tentative} of these verdicts tentative");
    }
    text + "."
}

fn ledger_section(ledger: &Ledger, index: usize, study: &Study) -> Section {
    let reference = &study.reference;
    let mut head = vec!["", "claim", "paper"];
    head.extend(ledger.columns.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for entry in &ledger.entries {
        let mut row = vec![
            Cell::text(&entry.id),
            Cell::text(&entry.claim).small(match &*entry.rule {
                "" => "No rule: nothing here could answer it yet.".to_owned(),
                rule => format!("Rule: {rule}."),
            }),
            Cell::text(&entry.paper),
        ];
        row.extend(entry.findings.iter().map(|f| finding(f, study)));
        table.rows.push(row);
    }
    let mut what = vec!["Each verdict follows from its rule.".to_owned()];
    if !study.real_time {
        what.push("Intervals are of 95 %, over seeds.".into());
    }
    if let Some(apart) = ledger.apart() {
        let verdicts = match &*apart {
            [] => "the same verdicts as ours".to_owned(),
            claims => format!("another verdict than ours on {}", claims.join(", ")),
        };
        what.push(format!(
            "What {reference} says under the same defaults stands beside, where it was run, with what the same rule \
             makes of the numbers that it has: {verdicts}."
        ));
    }
    Section {
        id: format!("ledger{index}"),
        title: ledger.title.clone(),
        what: what.join(" "),
        parts: vec![Part {
            tables: vec![table],
            ..Part::default()
        }],
    }
}

fn finding(f: &Finding, study: &Study) -> Cell {
    let reference = &study.reference;
    let mut small = f.detail.clone();
    let beside = f.beside().join(" ");
    if !beside.is_empty() {
        if !small.is_empty() {
            small += "; ";
        }
        small += &format!("{reference}: {beside}");
    }
    let mut cell = Cell::text(format!("{} {}", f.words(), f.value).trim()).small(small);
    let named = |name: &String| {
        let mut all = study.sections.iter().flat_map(|s| &s.pictures);
        all.find(|p| p.name == *name)
    };
    for name in &f.pictures {
        if let Some(picture) = named(name) {
            // Shorten "Figure 2: loss" to "Figure 2".
            let short = picture.title.split_once(':').map_or("Picture", |t| t.0);
            cell = cell.link(name, short);
        }
    }
    cell
}

fn table(t: &swell_study::Table) -> Table {
    let head: Vec<&str> = t.head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    let rows = t.rows.iter();
    table.rows = rows.map(|r| r.iter().map(Cell::text).collect()).collect();
    table
}

fn figure(picture: &Picture) -> Figure {
    let lead = format!("{}.", picture.title);
    Figure::both(&picture.name, &lead, &picture.caption, |canvas, width| {
        let height = if width < 500.0 { 380.0 } else { 400.0 };
        let height = study_height(picture, &canvas("", height)).unwrap_or(height);
        vec![study_svg(picture, &canvas("", height))]
    })
    .vega(&study_vega(picture))
    .numbers(numbers(picture))
}

/// Largest end of an interval that is that of a share of a whole, rather than of an excess, which has no largest value.
const SLIGHT: f64 = 1.1;

fn chart(picture: &Picture) -> XyChart {
    let points = || picture.lines.iter().flat_map(|l| &l.points);
    let xs = || points().map(|p| p.0);
    // The axes cover every line and interval, the reference included.
    let share = picture.y.unit == Unit::Share;
    let ys = || {
        points().flat_map(move |(_, e)| {
            // An interval that ends slightly above one does not make a share exceed one. An excess over something else
            // may well do.
            let high = match share && e.high() <= SLIGHT {
                true => e.high().min(e.value.max(1.0)),
                false => e.high(),
            };
            [e.low(), e.value, high]
        })
    };
    let make = |axis: &swell_study::Axis, values: &mut dyn Iterator<Item = f64>, zero: bool| {
        let quantity = quantity(axis.unit);
        if axis.log {
            Axis::log(&capital(&axis.title), quantity, values)
        } else {
            Axis::linear(&capital(&axis.title), quantity, values, zero)
        }
    };
    let alone = named(picture);
    let curves = picture.lines.iter().map(|line| Curve {
        name: line.name.clone(),
        note: String::new(),
        slot: line.slot,
        shape: if alone && line.measured {
            Shape::Named
        } else if line.measured {
            Shape::Intervals
        } else {
            Shape::Line
        },
        points: line.points.iter().map(|p| (p.0, p.1.value)).collect(),
        band: line
            .points
            .iter()
            .filter_map(|(x, e)| Some((*x, e.interval?[0], e.interval?[1])))
            .collect(),
    });
    let zero = picture.y.unit != Unit::BitsPerSecond;
    let y = make(&picture.y, &mut ys(), zero);
    XyChart {
        title: picture.title.clone(),
        description: picture.caption.clone(),
        x: make(&picture.x, &mut xs(), false).padded(0.02),
        y: if zero {
            y.nice(300.0)
        } else {
            y.padded(0.04).nice(300.0)
        },
        curves: curves.collect(),
        marks: Vec::new(),
        link: picture.name.clone(),
    }
}

/// A picture of grouped bars from zero, with intervals.
fn bars(picture: &Picture) -> BarChart {
    let lines = || picture.lines.iter().filter(|l| l.measured);
    let bar = |line: &swell_study::Line, group: usize| {
        let point = line.points.iter().find(|p| p.0 == group as f64);
        point.map_or_else(
            || Bar::of(f64::NAN),
            |(_, e)| match e.interval {
                Some([lo, hi]) => Bar {
                    lo,
                    hi,
                    ..Bar::of(e.value)
                },
                None => Bar::of(e.value),
            },
        )
    };
    let groups = picture.bars.iter().enumerate().map(|(i, name)| BarGroup {
        name: name.clone(),
        bars: lines().map(|line| bar(line, i)).collect(),
    });
    BarChart {
        title: picture.title.clone(),
        description: picture.caption.clone(),
        y_title: capital(&picture.y.title),
        quantity: quantity(picture.y.unit),
        reference: 0.0,
        at_least: (0.0, 0.0),
        stacked: false,
        series: lines().map(|l| (l.name.clone(), l.slot)).collect(),
        groups: groups.collect(),
    }
}

/// Whether the picture has several measured lines of a single point each. Then there is no line to follow, and names
/// stand beside the points.
fn named(picture: &Picture) -> bool {
    let mut measured = picture.lines.iter().filter(|l| l.measured);
    let many = measured.clone().count() > 2;
    many && measured.all(|l| l.points.len() == 1)
}

/// The measured points: a row for each x and a column for each line.
fn numbers(picture: &Picture) -> Table {
    if let Some(map) = &picture.heatmap {
        return heat::numbers(picture, map);
    }
    let measured: Vec<_> = picture.lines.iter().filter(|l| l.measured).collect();
    let mut head = vec![picture.x.title.as_str()];
    head.extend(measured.iter().map(|l| l.name.as_str()));
    let mut table = Table::new(&head);
    let mut xs: Vec<f64> = measured
        .iter()
        .flat_map(|l| &l.points)
        .map(|p| p.0)
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    for x in xs {
        let group = picture.bars.get(x as usize);
        let mut row = vec![Cell::text(
            group.map_or_else(|| significant(x, 3), Clone::clone),
        )];
        row.extend(measured.iter().map(|line| {
            let point = line.points.iter().find(|p| p.0 == x);
            point.map_or_else(
                || Cell::text("–"),
                |(_, e)| number(e, quantity(picture.y.unit)),
            )
        }));
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests;
