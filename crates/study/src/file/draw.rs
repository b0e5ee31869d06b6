//! Figures: draws pictures from numbers.

use rhai::Scope;
use swell_base::{Code, Warning};
use swell_experiment::file::Problems;

use super::again;
use super::asked::{Asked, Which};
use super::compiled::Compiled;
use super::format::{By, Column, Figure, StudyFile};
use super::heat;
use super::lists;
use super::origin::TableLocation;
use super::reference::Row;
use super::script::{self, Trouble};
use super::source::{Source, Wrong, chosen};
use super::units::Units;
use crate::{Axis, Line, Picture, Section};

/// Default section of figures.
const SECTION: &str = "Figures";
/// Number of points of a curve.
const CURVE: u32 = 100;

/// The sections in the order in which figures first name them.
pub(super) fn sections(source: &Source<'_>, doubts: &mut Vec<Warning>) -> Vec<Section> {
    let compiled = source.compiled;
    let mut sections: Vec<Section> = Vec::new();
    for figure in &compiled.file.figure {
        let drawn = match draw(source, figure) {
            Ok(drawn) => drawn,
            Err((_, Trouble::NotThere(why) | Trouble::Wrong(why))) => {
                let text = format!("figure {} could not be drawn: {why}", figure.name);
                doubts.push(Warning::warning(Code::FigureFailed, text));
                continue;
            }
        };
        let title = figure.section.as_deref().unwrap_or(SECTION);
        match sections.iter_mut().find(|s| s.title == title) {
            Some(section) => section.pictures.extend(drawn),
            None => sections.push(Section {
                title: title.to_owned(),
                what: said(compiled, title),
                pictures: drawn,
                tables: Vec::new(),
            }),
        }
    }
    for spec in &compiled.file.table {
        let made = match lists::tables(source, spec) {
            Ok(made) => made,
            Err((_, Trouble::NotThere(why) | Trouble::Wrong(why))) => {
                let text = format!("table {} could not be made: {why}", spec.title);
                doubts.push(Warning::warning(Code::TableFailed, text));
                continue;
            }
        };
        match sections.iter_mut().find(|s| s.title == spec.section) {
            Some(section) => section.tables.extend(made),
            None => sections.push(Section {
                title: spec.section.clone(),
                what: said(compiled, &spec.section),
                pictures: Vec::new(),
                tables: made,
            }),
        }
    }
    sections.retain(|s| !(s.pictures.is_empty() && s.tables.is_empty()));
    sections
}

/// The study's text for a section.
fn said(compiled: &Compiled, title: &str) -> String {
    let mut all = compiled.file.section.iter();
    let mine = all.find(|s| s.title == title);
    mine.map_or_else(String::new, |s| s.what.clone())
}

/// Draws every figure with made-up numbers, so that errors show before any run.
pub(super) fn rehearse(source: &Source<'_>) -> Result<(), Problems> {
    let compiled = source.compiled;
    let study = &compiled.file;
    for (i, section) in study.section.iter().enumerate() {
        let of = |f: &Figure| f.section.as_deref().unwrap_or(SECTION) == section.title;
        let there = study.table.iter().any(|t| t.section == section.title);
        if !study.figure.iter().any(of) && !there {
            let place = compiled.place(format!("section[{i}]"));
            return Err(place.problem("title", "no figure or table stands in this section"));
        }
    }
    for (i, figure) in study.figure.iter().enumerate() {
        let place = compiled.place(format!("figure[{i}]"));
        named(
            &place,
            study,
            figure.lines.as_ref(),
            figure.columns.as_ref(),
        )?;
        if let Some((key, why)) = heat::refused(figure) {
            return Err(place.problem(key, why));
        }
        if figure.y.is_some() != figure.points.is_empty() {
            return Err(place.problem("y", "a figure has either y or points"));
        }
        if !figure.points.is_empty() && figure.by == By::Column {
            return Err(place.problem("by", "points are drawn by line"));
        }
        if !figure.points.is_empty() {
            beside_points(&place, figure)?;
        }
        if figure.curve.is_some() && figure.curve_label.is_empty() {
            return Err(place.problem("curve", "a curve has a curve_label, for the legend"));
        }
        let lines = figure.lines.as_ref().map_or(0, Vec::len);
        if !figure.labels.is_empty() && figure.labels.len() != lines {
            return Err(place.problem("labels", "there are as many labels as lines"));
        }
        if !figure.bars.is_empty() {
            as_bars(&place, figure)?;
        }
        let needs_x = figure.points.is_empty() && figure.at.is_none();
        if needs_x && figure.x.is_none() && study.axis.is_empty() {
            return Err(place.problem("x", "there is no axis: write x or at"));
        }
        if let Err((key, Trouble::Wrong(why))) = draw(source, figure) {
            return Err(place.problem(key, &why));
        }
    }
    for (i, spec) in study.table.iter().enumerate() {
        let place = compiled.place(format!("table[{i}]"));
        named(&place, study, spec.lines.as_ref(), spec.columns.as_ref())?;
        if let Err((key, Trouble::Wrong(why))) = lists::tables(source, spec) {
            return Err(place.problem(key, &why));
        }
    }
    Ok(())
}

/// Rejects keys that have no effect in a figure of bars.
fn as_bars(place: &TableLocation, figure: &Figure) -> Result<(), Problems> {
    let keys = [
        ("points", !figure.points.is_empty()),
        ("heatmap", figure.heatmap.is_some()),
        ("curve", figure.curve.is_some()),
        ("reference", figure.reference.is_some()),
        ("x_log", figure.x_log),
        ("y_log", figure.y_log),
    ];
    match keys.iter().find(|(_, there)| *there) {
        Some((key, _)) => {
            let why = format!("bars are all that such a figure shows: leave out {key}");
            Err(place.problem(key, &why))
        }
        None => Ok(()),
    }
}

/// Rejects a bar that belongs to no group.
fn grouped(figure: &Figure, lines: &[Line]) -> Result<(), Wrong> {
    let groups = figure.bars.len();
    let is_group = |x: f64| x >= 0.0 && x.fract() == 0.0 && x < groups as f64;
    let mut all = lines.iter().flat_map(|l| &l.points);
    match all.find(|(x, _)| groups > 0 && !is_group(*x)) {
        Some((x, _)) => {
            let why = format!(
                "{x} is none of the groups, which are numbered 0 to {}",
                groups - 1
            );
            Err(("x", Trouble::Wrong(why)))
        }
        None => Ok(()),
    }
}

/// Rejects keys that have no effect in a figure of points, which has its own x.
fn beside_points(place: &TableLocation, figure: &Figure) -> Result<(), Problems> {
    let keys = [
        ("x", figure.x.is_some()),
        ("at", figure.at.is_some()),
        ("curve", figure.curve.is_some()),
        ("curve_label", !figure.curve_label.is_empty()),
        ("reference", figure.reference.is_some()),
        ("reference_label", !figure.reference_label.is_empty()),
    ];
    match keys.iter().find(|(_, there)| *there) {
        Some((key, _)) => {
            let why = format!("points are all that such a figure shows: leave out {key}");
            Err(place.problem(key, &why))
        }
        None => Ok(()),
    }
}

/// Checks that the named lines and columns exist.
fn named(
    place: &TableLocation,
    study: &StudyFile,
    lines: Option<&Vec<String>>,
    columns: Option<&Vec<String>>,
) -> Result<(), Problems> {
    let mut lines = lines.into_iter().flatten();
    if let Some(name) = lines.find(|n| !study.line.iter().any(|l| l.name == **n)) {
        return Err(place.problem("lines", &format!("no line is called `{name}`")));
    }
    let mut columns = columns.into_iter().flatten();
    if let Some(name) = columns.find(|n| !study.column.iter().any(|c| c.name == **n)) {
        return Err(place.problem("columns", &format!("no column is called `{name}`")));
    }
    Ok(())
}

fn draw(source: &Source<'_>, figure: &Figure) -> Result<Vec<Picture>, Wrong> {
    let (compiled, numbers) = (source.compiled, source.numbers);
    let study = &compiled.file;
    let lines: Vec<usize> = chosen(figure.lines.as_deref(), study.line.iter().map(|l| &*l.name));
    let columns = chosen(
        figure.columns.as_deref(),
        study.column.iter().map(|c| &*c.name),
    );
    if let Some(spec) = &figure.heatmap {
        let mut pictures = Vec::new();
        for &c in &columns {
            let own = (study.column.len() > 1).then_some(&study.column[c]);
            if let Some(heatmap) = heat::map(source, figure, spec, c, &lines)? {
                pictures.push(Picture {
                    heatmap: Some(heatmap),
                    ..picture(figure, own, Vec::new())
                });
            }
        }
        return Ok(pictures);
    }
    let line = |asked: &Asked<'_>, name: String, slot: usize, rows: &dyn Fn(&&Row) -> bool| {
        let of = |which: Which| {
            let mut points = Vec::new();
            for row in numbers.rows.iter().filter(rows) {
                points.extend(asked.points(compiled, row, which)?);
            }
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Ok::<_, Wrong>(points)
        };
        let curve = Line {
            name: match figure.labels.is_empty() {
                true => format!("{name}, {}", figure.curve_label),
                false => figure.curve_label.clone(),
            },
            // Slots beyond those of all lines: theory and measurement may coincide and must look different.
            slot: 1 + (slot + lines.len().max(columns.len())) % 7,
            points: of(Which::Curve)?,
            measured: false,
        };
        let measured = Line {
            name: figure.labels.get(slot).cloned().unwrap_or(name),
            slot: 1 + slot % 7,
            points: of(Which::Y)?,
            measured: true,
        };
        let there = [measured, curve].into_iter();
        Ok::<_, Wrong>(there.filter(|l| !l.points.is_empty()).collect::<Vec<_>>())
    };
    let axis = study.axis.first().map(|a| &*a.name);
    let asked = |c: usize| Asked::new(source, c, figure, axis);
    let mut pictures = Vec::new();
    let mut add = |suffix: Option<&Column>, curves: Vec<Line>, measured: Vec<Line>| {
        if !measured.is_empty() {
            let all = curves.into_iter().chain(measured).collect();
            pictures.push(picture(figure, suffix, all));
        }
    };
    let curve = |c: usize, measured: &[Line]| reference(source, figure, c, measured);
    match figure.by {
        By::Line if !figure.points.is_empty() => {
            for &c in &columns {
                let drawn = again::lines(source, &asked(c)?, figure, c, &lines)?;
                let one = study.column.len() == 1;
                add((!one).then_some(&study.column[c]), Vec::new(), drawn);
            }
        }
        By::Line => {
            for &c in &columns {
                let asked = asked(c)?;
                let mut drawn = Vec::new();
                for (slot, &l) in lines.iter().enumerate() {
                    let own = &study.line[l];
                    let name = own.label.clone().unwrap_or_else(|| own.name.clone());
                    drawn.extend(line(&asked, name, slot, &|r| r.place == (c, l))?);
                }
                let one = study.column.len() == 1;
                let curves = curve(c, &drawn)?.into_iter().collect();
                add((!one).then_some(&study.column[c]), curves, drawn);
            }
        }
        By::Column => {
            let mut drawn: Vec<Line> = Vec::new();
            let mut of = Vec::new();
            for (slot, &c) in columns.iter().enumerate() {
                let own = &study.column[c];
                let name = own.label.clone().unwrap_or_else(|| own.name.clone());
                let mine = |r: &&Row| r.place.0 == c && lines.contains(&r.place.1);
                for one in line(&asked(c)?, name, slot, &mine)? {
                    drawn.push(one);
                    of.push(c);
                }
            }
            let mut curves = Vec::new();
            let measured = of.iter().zip(&drawn).filter(|(_, own)| own.measured);
            for (&c, beside) in measured {
                curves.extend(curve(c, &drawn)?.map(|own| (own, beside)));
            }
            let curves = by_column(curves);
            add(None, curves, drawn);
        }
    }
    for own in &pictures {
        grouped(figure, &own.lines)?;
    }
    Ok(pictures)
}

/// A single curve if it is the same for all columns; otherwise each curve gets the look of its column's line.
fn by_column(mut curves: Vec<(Line, &Line)>) -> Vec<Line> {
    if curves.windows(2).all(|w| w[0].0.points == w[1].0.points) {
        curves.truncate(1);
        return curves.into_iter().map(|(curve, _)| curve).collect();
    }
    let each = curves.into_iter().map(|(curve, line)| Line {
        name: format!("{}, {}", curve.name, line.name),
        slot: line.slot,
        ..curve
    });
    each.collect()
}

fn picture(figure: &Figure, column: Option<&Column>, lines: Vec<Line>) -> Picture {
    let axis = |title: &str, unit: Units, log| Axis {
        title: title.to_owned(),
        unit: unit.of_axis(),
        log,
    };
    let name = figure.picture(column);
    let mut title = figure.title.clone();
    if let Some(column) = column {
        title += &format!(", {}", column.label.as_ref().unwrap_or(&column.name));
    }
    Picture {
        name,
        title,
        caption: figure.caption.clone(),
        x: axis(&figure.x_title, figure.x_unit, figure.x_log),
        y: axis(&figure.y_title, figure.y_unit, figure.y_log),
        lines,
        bars: figure.bars.clone(),
        heatmap: None,
    }
}

/// The reference curve over the range of the lines; `None` if it needs runs that do not exist.
fn reference(
    source: &Source<'_>,
    figure: &Figure,
    column: usize,
    lines: &[Line],
) -> Result<Option<Line>, Wrong> {
    let Some(text) = &figure.reference else {
        return Ok(None);
    };
    let mut engine = source.compiled.asker();
    source.views.register(column, &mut engine);
    let ast = script::compile(&engine, text).map_err(|t| ("reference", t))?;
    let xs = lines.iter().flat_map(|l| &l.points).map(|p| p.0);
    let low = xs.clone().fold(f64::INFINITY, f64::min);
    let high = xs.fold(f64::NEG_INFINITY, f64::max);
    let mut points = Vec::new();
    for i in 0..=CURVE {
        let share = f64::from(i) / f64::from(CURVE);
        let x = if figure.x_log && low > 0.0 {
            low * (high / low).powf(share)
        } else {
            low + (high - low) * share
        };
        let mut scope = Scope::new();
        scope.push("x", x);
        let found = match script::value(&engine, &ast, &mut scope, text) {
            Err(Trouble::NotThere(_)) => return Ok(None),
            found => found.map_err(|t| ("reference", t))?,
        };
        let none = || {
            let why = format!("a {} is not a number", found.type_name());
            ("reference", Trouble::Wrong(why))
        };
        let y = script::estimate(&found).ok_or_else(none)?;
        if y.value.is_finite() {
            points.push((x, y));
        }
    }
    Ok((!points.is_empty()).then(|| Line {
        name: match figure.reference_label.as_str() {
            "" => text.clone(),
            label => label.to_owned(),
        },
        slot: 0,
        points,
        measured: false,
    }))
}
