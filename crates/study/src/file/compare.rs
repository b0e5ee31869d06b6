//! Compares our numbers with those of the reference, one by one.

use std::collections::BTreeMap;

use rhai::{AST, Engine, Scope};
use swell_base::{Code, Warning};

use super::compiled::{self, Compiled};
use super::error::StudyError;
use super::format::{Bar, Cause, Reference, StudyFile, Units};
use super::reference::{self, Key, Numbers, Row};
use super::script::{self, Trouble};
use super::units::written;
use crate::words;
use crate::{Estimate, Section, Table};

/// A number with its value in our runs and in the reference.
pub(super) struct Comparison {
    runs: String,
    measure: usize,
    ours: Estimate,
    theirs: Estimate,
    /// Whether the study file exempts this number from its bar.
    exempt: bool,
    agrees: bool,
    /// Index of the known cause that explains it.
    cause: Option<usize>,
}

impl Comparison {
    /// The difference in its own standard errors.
    fn errors(&self) -> String {
        errors(self.ours, self.theirs).map_or_else(String::new, |e| format!("{e:+.1}"))
    }
}

/// A difference in its own standard errors; `None` if neither side varies.
fn errors(ours: Estimate, theirs: Estimate) -> Option<f64> {
    let variance = ours.variance_of_mean() + theirs.variance_of_mean();
    (variance > 0.0).then(|| (ours.value - theirs.value) / variance.sqrt())
}

fn agrees(bar: Bar, ours: f64, theirs: f64) -> bool {
    let apart = (ours - theirs).abs();
    apart <= bar.relative * theirs.abs() || apart <= bar.absolute
}

/// The compiled expressions that are evaluated for each number.
struct Rules<'a> {
    compiled: &'a Compiled,
    engine: Engine,
    exempt: Option<(AST, &'a str)>,
    causes: Vec<(AST, &'a Cause)>,
}

impl<'a> Rules<'a> {
    /// Compiles the expressions. An error names the key whose expression does not compile.
    fn new(compiled: &'a Compiled, named: &'a Reference) -> Result<Rules<'a>, (String, Trouble)> {
        let engine = script::engine();
        let ast = |key: String, text| script::compile(&engine, text).map_err(|t| (key, t));
        let exempt = named.exempt.as_deref();
        let exempt = exempt.map(|text| Ok((ast("exempt".into(), text)?, text)));
        let causes = named.cause.iter().enumerate();
        let causes = causes.map(|(i, cause)| Ok((ast(key(i), &cause.filter)?, cause)));
        Ok(Rules {
            compiled,
            exempt: exempt.transpose()?,
            causes: causes.collect::<Result<_, _>>()?,
            engine,
        })
    }

    /// Whether a number is exempt from its bar.
    fn exempt(&self, row: &Row, measure: &str) -> Result<bool, (String, Trouble)> {
        let Some((ast, text)) = &self.exempt else {
            return Ok(false);
        };
        let answer = self.ask((ast, text), row, measure, None);
        answer.map_err(|t| ("exempt".into(), t))
    }

    /// The first cause that applies to a number.
    fn cause(
        &self,
        row: &Row,
        measure: &str,
        errors: Option<f64>,
    ) -> Result<Option<usize>, (String, Trouble)> {
        for (i, (ast, cause)) in self.causes.iter().enumerate() {
            let answer = self.ask((ast, &cause.filter), row, measure, errors);
            if answer.map_err(|t| (key(i), t))? {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn ask(
        &self,
        (ast, text): (&AST, &str),
        row: &Row,
        measure: &str,
        errors: Option<f64>,
    ) -> Result<bool, Trouble> {
        let file = &self.compiled.file;
        let mut scope: Scope<'static> = compiled::scope(file, row.place, &row.axes);
        scope.push("measure", measure.to_owned());
        // If neither side varies, any difference is significant.
        scope.push("errors", errors.map_or(f64::INFINITY, f64::abs));
        script::truth(&script::value(&self.engine, ast, &mut scope, text)?)
    }
}

fn key(cause: usize) -> String {
    format!("cause[{cause}].where")
}

/// Compares every number that has a bar and exists on both sides. Expressions were rehearsed: one that fails here
/// exempts nothing and explains nothing.
pub(super) fn compare(
    compiled: &Compiled,
    named: &Reference,
    ours: &Numbers,
    theirs: &Numbers,
) -> Vec<Comparison> {
    let study = &compiled.file;
    let rules = Rules::new(compiled, named).ok();
    let known: BTreeMap<Key, &Row> = (ours.rows.iter())
        .map(|row| (reference::key(row.place, &row.axes), row))
        .collect();
    let mut out = Vec::new();
    for there in &theirs.rows {
        let Some(&here) = known.get(&reference::key(there.place, &there.axes)) else {
            continue;
        };
        for (i, measure) in study.measure.iter().enumerate() {
            let both = here.numbers[i].zip(there.numbers[i]);
            let (Some(bar), Some((own, other))) = (measure.bar, both) else {
                continue;
            };
            let exempt = rules
                .as_ref()
                .and_then(|r| r.exempt(here, &measure.name).ok());
            let apart = errors(own, other);
            let cause = rules
                .as_ref()
                .and_then(|r| r.cause(here, &measure.name, apart).ok());
            out.push(Comparison {
                runs: named_runs(study, here),
                measure: i,
                ours: own,
                theirs: other,
                exempt: exempt.unwrap_or(false),
                agrees: agrees(bar, own.value, other.value),
                cause: cause.flatten(),
            });
        }
    }
    out
}

/// Evaluates the expressions for exemptions and causes once.
pub(super) fn rehearse(
    compiled: &Compiled,
    named: &Reference,
    numbers: &Numbers,
) -> Result<(), StudyError> {
    let wrong = |(key, trouble): (String, Trouble)| {
        let (Trouble::NotThere(why) | Trouble::Wrong(why)) = trouble;
        compiled.place("reference".into()).problem(&key, &why)
    };
    let rules = Rules::new(compiled, named).map_err(wrong)?;
    for row in &numbers.rows {
        for measure in &compiled.file.measure {
            rules.exempt(row, &measure.name).map_err(wrong)?;
            for i in 0..rules.causes.len() {
                let (ast, cause) = &rules.causes[i];
                let answer = rules.ask((ast, &cause.filter), row, &measure.name, Some(1.0));
                answer.map_err(|t| wrong((key(i), t)))?;
            }
        }
    }
    Ok(())
}

fn named_runs(study: &StudyFile, row: &Row) -> String {
    let axes = study.axis.iter().zip(&row.axes);
    let axes = axes.map(|(a, v)| format!("{} = {v}", a.name));
    let mut parts = vec![row.column.clone(), row.line.clone()];
    parts.extend(axes);
    parts.join(", ")
}

fn barred(all: &[Comparison]) -> impl Iterator<Item = &Comparison> {
    all.iter().filter(|c| !c.exempt)
}

/// The fact that says how many numbers agree, of how many.
pub(super) fn fact(named: &Reference, all: &[Comparison]) -> (String, String) {
    let agree = barred(all).filter(|c| c.agrees).count();
    (
        format!("numbers within their bars of {}’s", named.name),
        format!("{agree} of {}", barred(all).count()),
    )
}

/// The warning that some numbers miss their bars; `None` if all agree.
pub(super) fn doubt(named: &Reference, all: &[Comparison]) -> Option<Warning> {
    let misses = barred(all).filter(|c| !c.agrees).count();
    let text = format!(
        "{misses} of {} numbers are not within their bar of {}'s; all are listed",
        barred(all).count(),
        named.name
    );
    (misses > 0).then(|| Warning::note(Code::ReferenceDiffers, text))
}

/// Agreement by measure, and every number that misses its bar.
pub(super) fn section(study: &StudyFile, named: &Reference, all: &[Comparison]) -> Section {
    let texts = |list: &[&str]| list.iter().map(|&t| t.to_owned()).collect();
    let mut summary = Table {
        title: "Agreement".into(),
        head: texts(&["number", "compared", "within the bar", "bar"]),
        rows: Vec::new(),
    };
    let label = |i: usize| {
        let m = &study.measure[i];
        m.label.clone().unwrap_or_else(|| m.name.clone())
    };
    for (i, measure) in study.measure.iter().enumerate() {
        let Some(bar) = measure.bar else { continue };
        let mine = || barred(all).filter(|c| c.measure == i);
        let mut bars = Vec::new();
        if bar.relative > 0.0 {
            bars.push(written(Units::Share, bar.relative));
        }
        if bar.absolute > 0.0 {
            bars.push(match measure.unit {
                Units::Share | Units::Change => format!("{} points", bar.absolute * 100.0),
                unit => written(unit, bar.absolute),
            });
        }
        summary.rows.push(vec![
            label(i),
            mine().count().to_string(),
            mine().filter(|c| c.agrees).count().to_string(),
            bars.join(" or "),
        ]);
    }
    let misses = barred(all).filter(|c| !c.agrees).map(|c| {
        let unit = study.measure[c.measure].unit;
        let apart = match unit {
            Units::Share | Units::Change => {
                format!("{:+.2} points", (c.ours.value - c.theirs.value) * 100.0)
            }
            _ => words::percent(c.ours.value / c.theirs.value - 1.0),
        };
        vec![
            c.runs.clone(),
            label(c.measure),
            written(unit, c.ours.value),
            written(unit, c.theirs.value),
            apart,
            c.errors(),
            match c.cause {
                Some(i) => named.cause[i].name.clone(),
                None => "not known".into(),
            },
        ]
    });
    let misses = Table {
        title: "Numbers that miss their bar".into(),
        head: texts(&[
            "runs",
            "number",
            "ours",
            &named.name,
            "apart",
            "standard errors",
            "cause",
        ]),
        rows: misses.collect(),
    };
    let length = match named.duration {
        Some(_) => " of runs of equal length",
        None => "",
    };
    let mut what = format!("Means over seeds{length}. {}", named.what);
    if let Some(exempt) = &named.exempt {
        what = format!("{} There is no bar where {exempt}.", what.trim_end());
    }
    let mut causes = Table {
        title: "Causes".into(),
        head: texts(&["cause", "misses", "what is known"]),
        rows: Vec::new(),
    };
    for (i, cause) in named.cause.iter().enumerate() {
        let mine = barred(all)
            .filter(|c| !c.agrees && c.cause == Some(i))
            .count();
        if mine > 0 {
            let row = [cause.name.clone(), mine.to_string(), cause.what.clone()];
            causes.rows.push(row.to_vec());
        }
    }
    let mut tables = vec![summary, misses];
    tables.extend((!causes.rows.is_empty()).then_some(causes));
    Section {
        title: format!("Beside {}, number by number", named.name),
        what,
        pictures: Vec::new(),
        tables,
    }
}
