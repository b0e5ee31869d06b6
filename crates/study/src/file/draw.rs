//! Figures: from numbers to pictures.

use rhai::{AST, Dynamic, Engine, Scope};
use swell_base::Warning;
use swell_experiment::file::Problems;

use super::format::{By, Column, Figure};
use super::read::Compiled;
use super::reference::{Numbers, Row};
use super::results;
use super::script::{self, Trouble};
use crate::{Axis, Estimate, Line, Picture, Section};

/// The section of figures that name none.
const SECTION: &str = "Figures";
/// Points of a curve.
const CURVE: u32 = 100;

/// Which key of a figure is wrong, and why.
type Wrong = (&'static str, Trouble);

/// Sections in the order in which figures name them.
pub(super) fn sections(
    compiled: &Compiled,
    numbers: &Numbers,
    doubts: &mut Vec<Warning>,
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for figure in &compiled.file.figure {
        let drawn = match draw(compiled, numbers, figure) {
            Ok(drawn) => drawn,
            Err((_, Trouble::NotThere(why) | Trouble::Wrong(why))) => {
                let text = format!("figure {} could not be drawn: {why}", figure.name);
                doubts.push(Warning::warning("figure-failed", text));
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
    sections.retain(|s| !s.pictures.is_empty());
    sections
}

/// What the study says of a section.
fn said(compiled: &Compiled, title: &str) -> String {
    let mut all = compiled.file.section.iter();
    let mine = all.find(|s| s.title == title);
    mine.map_or_else(String::new, |s| s.what.clone())
}

/// Draws every figure of numbers of the right shape.
pub(super) fn rehearse(compiled: &Compiled, numbers: &Numbers) -> Result<(), Problems> {
    let study = &compiled.file;
    for (i, section) in study.section.iter().enumerate() {
        let of = |f: &Figure| f.section.as_deref().unwrap_or(SECTION) == section.title;
        if !study.figure.iter().any(of) {
            let place = compiled.place(format!("section[{i}]"));
            return Err(place.problem("title", "no figure stands in this section"));
        }
    }
    for (i, figure) in study.figure.iter().enumerate() {
        let place = compiled.place(format!("figure[{i}]"));
        let lines = figure.lines.iter().flatten();
        if let Some(name) = lines
            .clone()
            .find(|n| !study.line.iter().any(|l| l.name == **n))
        {
            return Err(place.problem("lines", &format!("no line is called `{name}`")));
        }
        let columns = figure.columns.iter().flatten();
        if let Some(name) = columns
            .clone()
            .find(|n| !study.column.iter().any(|c| c.name == **n))
        {
            return Err(place.problem("columns", &format!("no column is called `{name}`")));
        }
        if figure.x.is_none() && figure.at.is_none() && study.axis.is_empty() {
            return Err(place.problem("x", "there is no axis: write x or at"));
        }
        if let Err((key, Trouble::Wrong(why))) = draw(compiled, numbers, figure) {
            return Err(place.problem(key, &why));
        }
    }
    Ok(())
}

/// The expressions of a figure.
struct Asked<'f> {
    engine: Engine,
    filter: Option<(AST, &'f str)>,
    x: Option<(AST, &'f str)>,
    y: (AST, &'f str),
    at: Option<&'f [f64]>,
}

impl<'f> Asked<'f> {
    fn new(figure: &'f Figure, axis: Option<&'f str>) -> Result<Asked<'f>, Wrong> {
        let engine = script::engine();
        let read = |key: &'static str, text: &'f str| {
            let ast = script::compile(&engine, text).map_err(|t| (key, t))?;
            Ok::<_, Wrong>((ast, text))
        };
        let filter = figure
            .filter
            .as_deref()
            .map(|t| read("where", t))
            .transpose()?;
        let x = figure.x.as_deref().or(axis).filter(|_| figure.at.is_none());
        let x = x.map(|t| read("x", t)).transpose()?;
        let y = read("y", &figure.y)?;
        Ok(Asked {
            filter,
            x,
            y,
            at: figure.at.as_deref(),
            engine,
        })
    }

    fn ask(
        &self,
        key: &'static str,
        (ast, text): &(AST, &str),
        scope: &mut Scope<'_>,
    ) -> Result<Dynamic, Wrong> {
        script::value(&self.engine, ast, scope, text).map_err(|t| (key, t))
    }

    /// The points that a row gives.
    fn points(&self, compiled: &Compiled, row: &Row) -> Result<Vec<(f64, Estimate)>, Wrong> {
        let known = results::known(compiled, row);
        let mut scope = Scope::new();
        for (name, value) in &known {
            scope.push_dynamic(name.to_string(), value.clone());
        }
        scope.push("run", known);
        if let Some(filter) = &self.filter {
            let answer = self.ask("where", filter, &mut scope)?;
            let kind = |kind| {
                let why = format!("a {kind} is no answer: write what is true or false");
                ("where", Trouble::Wrong(why))
            };
            if !answer.as_bool().map_err(kind)? {
                return Ok(Vec::new());
            }
        }
        let xs: Vec<f64> = match (self.at, &self.x) {
            (Some(at), _) => at.to_vec(),
            (None, Some(x)) => {
                let found = self.ask("x", x, &mut scope)?;
                let none = || {
                    (
                        "x",
                        Trouble::Wrong(format!("a {} is no number", found.type_name())),
                    )
                };
                vec![script::number(&found).ok_or_else(none)?]
            }
            (None, None) => Vec::new(),
        };
        let mut points = Vec::new();
        for x in xs {
            scope.push("x", x);
            let found = match self.ask("y", &self.y, &mut scope) {
                // A measure that no run had a number for has no name here.
                Err(_) if row.numbers.iter().any(Option::is_none) => continue,
                found => found?,
            };
            let none = || {
                (
                    "y",
                    Trouble::Wrong(format!("a {} is no number", found.type_name())),
                )
            };
            let y = script::estimate(&found).ok_or_else(none)?;
            if x.is_finite() && y.value.is_finite() {
                points.push((x, y));
            }
        }
        Ok(points)
    }
}

fn draw(compiled: &Compiled, numbers: &Numbers, figure: &Figure) -> Result<Vec<Picture>, Wrong> {
    let study = &compiled.file;
    let asked = Asked::new(figure, study.axis.first().map(|a| &*a.name))?;
    let lines: Vec<usize> = chosen(figure.lines.as_deref(), study.line.iter().map(|l| &*l.name));
    let columns = chosen(
        figure.columns.as_deref(),
        study.column.iter().map(|c| &*c.name),
    );
    let line = |name: String, slot: usize, rows: &dyn Fn(&&Row) -> bool| {
        let mut points = Vec::new();
        for row in numbers.rows.iter().filter(rows) {
            points.extend(asked.points(compiled, row)?);
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok::<_, Wrong>((!points.is_empty()).then_some(Line {
            name,
            slot: 1 + slot % 7,
            points,
            measured: true,
        }))
    };
    let mut pictures = Vec::new();
    let mut add = |suffix: Option<&Column>, curves: Vec<Line>, measured: Vec<Line>| {
        if !measured.is_empty() {
            let all = curves.into_iter().chain(measured).collect();
            pictures.push(picture(figure, suffix, all));
        }
    };
    let curve = |c: usize, measured: &[Line]| reference(compiled, numbers, figure, c, measured);
    match figure.by {
        By::Line => {
            for &c in &columns {
                let mut drawn = Vec::new();
                for (slot, &l) in lines.iter().enumerate() {
                    let own = &study.line[l];
                    let name = own.label.clone().unwrap_or_else(|| own.name.clone());
                    drawn.extend(line(name, slot, &|r| r.place == (c, l))?);
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
                if let Some(line) = line(name, slot, &mine)? {
                    drawn.push(line);
                    of.push(c);
                }
            }
            let mut curves = Vec::new();
            for (&c, beside) in of.iter().zip(&drawn) {
                curves.extend(curve(c, &drawn)?.map(|own| (own, beside)));
            }
            let curves = by_column(curves);
            add(None, curves, drawn);
        }
    }
    Ok(pictures)
}

/// One curve where all columns have the same; else each with the look of its column's line.
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

/// The places of names, in the order in which they are chosen; all without a choice.
fn chosen<'n>(
    choice: Option<&[String]>,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<usize> {
    match choice {
        None => (0..names.count()).collect(),
        Some(choice) => choice
            .iter()
            .filter_map(|c| names.clone().position(|n| n == c))
            .collect(),
    }
}

fn picture(figure: &Figure, column: Option<&Column>, lines: Vec<Line>) -> Picture {
    let axis = |title: &str, unit: super::format::Units, log| Axis {
        title: title.to_owned(),
        unit: unit.of_axis(),
        log,
    };
    let (mut name, mut title) = (figure.name.clone(), figure.title.clone());
    if let Some(column) = column {
        name += &format!("-{}", column.name);
        title += &format!(", {}", column.label.as_ref().unwrap_or(&column.name));
    }
    Picture {
        name,
        title,
        caption: figure.caption.clone(),
        x: axis(&figure.x_title, figure.x_unit, figure.x_log),
        y: axis(&figure.y_title, figure.y_unit, figure.y_log),
        lines,
    }
}

/// The curve beside the lines, over their range; none where it asks for runs that are not there.
fn reference(
    compiled: &Compiled,
    numbers: &Numbers,
    figure: &Figure,
    column: usize,
    lines: &[Line],
) -> Result<Option<Line>, Wrong> {
    let Some(text) = &figure.reference else {
        return Ok(None);
    };
    let mut engine = script::engine();
    numbers.view(compiled, column).register(&mut engine);
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
            let why = format!("a {} is no number", found.type_name());
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
