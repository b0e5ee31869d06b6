//! The axis values at which each line is run.

use std::collections::BTreeMap;

use swell_experiment::file;

use super::format::{Axis, Line, Places, StudyFile};

/// The faulty key of the study file, the reason and a hint.
pub(super) struct Wrong {
    pub key: String,
    pub why: String,
    pub hint: String,
}

/// Checks that axis values distinguish runs: no list is empty or repeats a value, and every axis that a line names
/// exists.
pub(super) fn check(study: &StudyFile) -> Result<(), Wrong> {
    for (i, axis) in study.axis.iter().enumerate() {
        if axis.values.is_empty() {
            return Err(Wrong {
                key: format!("axis[{i}].values"),
                why: "an axis has values".into(),
                hint: "write numbers".into(),
            });
        }
        list(&format!("axis[{i}].values"), &axis.values)?;
        list(&format!("axis[{i}].quick"), axis.quick.iter().flatten())?;
    }
    let axes: Vec<&str> = study.axis.iter().map(|a| &*a.name).collect();
    for (i, line) in study.line.iter().enumerate() {
        let at = line.at.all().iter().enumerate().map(|(k, table)| {
            let key = match line.at {
                Places::One(_) => format!("line[{i}].at"),
                Places::Several(_) => format!("line[{i}].at[{k}]"),
            };
            (key, table)
        });
        for (place, table) in at.chain([(format!("line[{i}].quick"), &line.quick)]) {
            for (name, values) in table {
                if !axes.contains(&&**name) {
                    return Err(Wrong {
                        key: place,
                        why: format!("no axis is called `{name}`"),
                        hint: file::suggest(name, &axes, "axes"),
                    });
                }
                list(&format!("{place}.{name}"), values)?;
            }
        }
    }
    Ok(())
}

/// Checks that a list is not empty and has no duplicates. Equal values would be the same runs.
fn list<'v>(key: &str, values: impl IntoIterator<Item = &'v f64>) -> Result<(), Wrong> {
    let mut before: Vec<f64> = Vec::new();
    for (j, value) in values.into_iter().enumerate() {
        let wrong = |why: String, hint: &str| Wrong {
            key: format!("{key}[{j}]"),
            why,
            hint: hint.into(),
        };
        if !value.is_finite() {
            return Err(wrong(
                format!("{value} is not a value of an axis"),
                "write a finite number",
            ));
        }
        if before.contains(value) {
            return Err(wrong(
                format!("{value} is there already"),
                "write each value once",
            ));
        }
        before.push(*value);
    }
    Ok(())
}

/// The combinations of a line without duplicates; the last axis varies fastest. `None` if there are more than
/// `most`.
pub(super) fn combinations(
    axes: &[Axis],
    line: &Line,
    quick: bool,
    most: usize,
) -> Option<Vec<Vec<f64>>> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for table in line.at.all() {
        let values: Vec<&[f64]> = axes.iter().map(|a| values(a, line, table, quick)).collect();
        let count = values
            .iter()
            .try_fold(1_usize, |n, v| n.checked_mul(v.len()));
        let count = count.filter(|n| *n <= most)?;
        for mut i in 0..count {
            let mut combination = vec![0.0; values.len()];
            for (place, list) in combination.iter_mut().zip(&values).rev() {
                *place = list[i % list.len()];
                i /= list.len();
            }
            // One table has no duplicates. Several tables may overlap.
            if line.at.all().len() == 1 || !all.contains(&combination) {
                all.push(combination);
            }
        }
    }
    (all.len() <= most).then_some(all)
}

fn values<'f>(
    axis: &'f Axis,
    line: &'f Line,
    table: &'f BTreeMap<String, Vec<f64>>,
    quick: bool,
) -> &'f [f64] {
    let own = table.get(&axis.name);
    let first = quick.then(|| line.quick.get(&axis.name)).flatten();
    let common = quick.then_some(axis.quick.as_ref()).flatten();
    first.or(own).or(common).unwrap_or(&axis.values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cross_of_two_axes_has_its_middle_once() {
        let axis = |name: &str, values: &[f64]| Axis {
            name: name.into(),
            values: values.to_vec(),
            quick: None,
            set: Vec::new(),
        };
        let axes = [axis("rate", &[3.0, 10.0]), axis("delay", &[20.0, 40.0])];
        let of = |at: &str| -> Line {
            toml::from_str(&format!("name = 'x'\nat = {at}")).expect("a line")
        };
        let found = |line: &Line, quick| combinations(&axes, line, quick, 10).expect("few");
        let cross = of("[{ delay = [20] }, { rate = [10] }]");
        assert_eq!(
            found(&cross, false),
            [[3.0, 20.0], [10.0, 20.0], [10.0, 40.0]]
        );
        assert_eq!(found(&of("{}"), false).len(), 4);
        let mut late = of("{ rate = [10] }");
        late.quick.insert("delay".into(), vec![40.0]);
        assert_eq!(found(&late, true), [[10.0, 40.0]]);
        late.quick.insert("delay".into(), Vec::new());
        assert!(found(&late, true).is_empty());
        assert!(combinations(&axes, &cross, false, 2).is_none());
    }
}
