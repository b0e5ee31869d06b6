//! Reference numbers: a table of another simulator's results for the same runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::StudyError;
use super::format::{Reference, StudyFile};
use super::group::Group;
use super::script::Seeds;
use super::texts::Texts;
use crate::Estimate;

/// Numbers by combination: ours, or the reference's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Numbers {
    pub rows: Vec<Row>,
}

/// The numbers of a combination.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// Indices of column and line in the file.
    pub place: (usize, usize),
    pub column: String,
    pub line: String,
    pub axes: Vec<f64>,
    /// In the order of the measures.
    pub numbers: Vec<Option<Estimate>>,
    /// The numbers of each seed, if known.
    pub seeds: Seeds,
}

/// Identifies a combination: indices of column and line, and the bits of the axis values.
pub(super) type Key = ((usize, usize), Vec<u64>);

/// The key of a combination.
pub(super) fn key(place: (usize, usize), axes: &[f64]) -> Key {
    // -0 is 0.
    let bits = axes.iter().map(|x| (x + 0.0).to_bits());
    (place, bits.collect())
}

/// Which of the reference's numbers are compared with ours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparable {
    /// `None` if nothing is compared.
    pub numbers: Option<Numbers>,
    /// Why the others are not compared: the text after "not compared".
    pub left_out: Option<String>,
}

/// Selects the numbers to compare. Runs of another length than ours are left out. So is everything in a quick run,
/// unless the reference allows it, and everything if values were `changed`: that is another experiment.
pub(super) fn comparable(
    named: &Reference,
    theirs: &Numbers,
    groups: &[Arc<Group>],
    quick: bool,
    changed: bool,
) -> Comparable {
    if changed {
        return Comparable {
            numbers: None,
            left_out: Some(": values were changed".into()),
        };
    }
    let asked = named.duration.map(|d| d.as_secs_f64());
    // Lengths are whole nanoseconds, so half of one separates them.
    let other = |ours: f64| asked.is_some_and(|s| (ours - s).abs() > 0.5e-9);
    let each = groups.iter();
    let each = each.map(|g| (key((g.column, g.line), &g.axes), g.seconds));
    let known: BTreeMap<Key, f64> = each.collect();
    let length = |row: &Row| known.get(&key(row.place, &row.axes)).copied();
    let mut lengths: Vec<f64> = theirs.rows.iter().filter_map(length).collect();
    let runs = lengths.len();
    if runs == 0 {
        return Comparable {
            numbers: None,
            left_out: Some(format!(": none of {}'s combinations is run", named.name)),
        };
    }
    lengths.retain(|s| other(*s));
    let apart = lengths.len();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let left_out = (apart > 0).then(|| {
        let ours = in_words(&lengths);
        format!(
            ": {}'s runs are of {} s, and ours of {}",
            named.name,
            asked.unwrap_or(f64::NAN),
            ours
        )
    });
    if quick && !named.quick {
        return Comparable {
            numbers: None,
            left_out: left_out.or_else(|| Some(" in a first look".into())),
        };
    }
    if apart == 0 {
        return Comparable {
            numbers: Some(theirs.clone()),
            left_out: None,
        };
    }
    // Rows without a run of ours have nothing to compare with, but rules may still use them.
    let rows = theirs.rows.iter();
    let alike = rows.filter(|row| !length(row).is_some_and(other));
    Comparable {
        numbers: (apart < runs).then(|| Numbers {
            rows: alike.cloned().collect(),
        }),
        left_out,
    }
}

/// Lengths in seconds, ascending; of many, only the first, the last and the count.
fn in_words(lengths: &[f64]) -> String {
    if let [first, _, _, _, .., last] = lengths {
        return format!("{first} to {last} s, {} lengths", lengths.len());
    }
    let each: Vec<String> = lengths.iter().map(|s| format!("{s} s")).collect();
    each.join(", ")
}

/// The meaning of a field of the table.
enum Field {
    Column,
    Line,
    Axis(usize),
    Seeds,
    Mean(usize),
    Deviation(usize),
}

/// Reads the table.
pub(super) fn read(
    study: &StudyFile,
    named: &Reference,
    texts: &Texts,
) -> Result<Numbers, StudyError> {
    let path = texts.path(&named.file);
    let text = texts.read(&named.file)?;
    let wrong = |line: usize, reason: String| StudyError::Reference {
        path: path.clone(),
        line,
        reason,
    };
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, l)| l);
    let fields: Result<Vec<Field>, String> =
        head.split(',').map(|f| field(study, f.trim())).collect();
    let fields = fields.map_err(|e| wrong(1, e))?;
    let mut rows: Vec<Row> = Vec::new();
    let mut there = BTreeSet::new();
    for (i, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        let read = row(study, &fields, line).map_err(|e| wrong(i + 1, e))?;
        if !there.insert(key(read.place, &read.axes)) {
            return Err(wrong(i + 1, "a row for these runs is there already".into()));
        }
        rows.push(read);
    }
    Ok(Numbers { rows })
}

fn field(study: &StudyFile, name: &str) -> Result<Field, String> {
    let axis = study.axis.iter().position(|a| a.name == name);
    let measure = |which: &str| study.measure.iter().position(|m| m.name == which);
    let deviation = || measure(name.strip_suffix("_sd")?);
    Ok(match name {
        "column" => Field::Column,
        "line" => Field::Line,
        "seeds" => Field::Seeds,
        _ => {
            let known = axis.map(Field::Axis).or(measure(name).map(Field::Mean));
            let known = known.or_else(|| deviation().map(Field::Deviation));
            known.ok_or_else(|| format!("`{name}` is not a key, axis or measure of the study"))?
        }
    })
}

fn row(study: &StudyFile, fields: &[Field], line: &str) -> Result<Row, String> {
    let texts: Vec<&str> = line.split(',').map(str::trim).collect();
    if texts.len() != fields.len() {
        return Err(format!(
            "{} fields in {} columns",
            texts.len(),
            fields.len()
        ));
    }
    let (mut column, mut own) = (0, 0);
    let mut axes = vec![f64::NAN; study.axis.len()];
    let mut seeds = 1;
    let n = study.measure.len();
    let (mut means, mut deviations) = (vec![None; n], vec![0.0; n]);
    let place = |name: &str, mut names: Box<dyn Iterator<Item = &String> + '_>, what: &str| {
        let found = names.position(|other| other == name);
        found.ok_or_else(|| format!("no {what} is called `{name}`"))
    };
    for (field, text) in fields.iter().zip(texts) {
        let number = || -> Result<f64, String> {
            let x: Option<f64> = text.parse().ok().filter(|x: &f64| x.is_finite());
            x.ok_or_else(|| format!("`{text}` is not a number"))
        };
        match field {
            Field::Column => {
                let names = study.column.iter().map(|c| &c.name);
                column = place(text, Box::new(names), "column")?;
            }
            Field::Line => {
                own = place(text, Box::new(study.line.iter().map(|l| &l.name)), "line")?;
            }
            Field::Axis(i) => axes[*i] = number()?,
            Field::Seeds => seeds = number()? as usize,
            _ if text.is_empty() => {}
            Field::Mean(i) => means[*i] = Some(number()?),
            Field::Deviation(i) => deviations[*i] = number()?,
        }
    }
    // The table may omit an axis that has a single value.
    for (value, axis) in axes.iter_mut().zip(&study.axis) {
        if value.is_nan() && axis.values.len() == 1 {
            *value = axis.values[0];
        }
    }
    if let Some(i) = axes.iter().position(|a| a.is_nan()) {
        return Err(format!("no value of the axis `{}`", study.axis[i].name));
    }
    let of = &study.line[own];
    let mut given = (study.measure.iter().zip(&means)).filter(|(_, mean)| mean.is_some());
    if let Some((measure, _)) = given.find(|(m, _)| !of.has(&m.name)) {
        let name = &measure.name;
        return Err(format!("`{name}` means nothing of the line `{}`", of.name));
    }
    let numbers = means.into_iter().zip(deviations);
    Ok(Row {
        place: (column, own),
        column: study.column[column].name.clone(),
        line: of.name.clone(),
        axes,
        seeds: Seeds::default(),
        numbers: numbers
            .map(|(mean, sd)| Some(Estimate::known(mean?, sd, seeds)))
            .collect(),
    })
}
