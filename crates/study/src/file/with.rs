//! Changes to a study: replacements for values under its `with`.

use std::collections::BTreeMap;

use super::error::StudyError;
use super::format::{Quick, Scalar, StudyFile, StudyOption};

/// A changed value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// The assignment as the user wrote it.
    pub assignment: String,
    name: String,
    from: Scalar,
    to: Scalar,
}

impl Change {
    pub(super) fn in_words(&self) -> String {
        let [to, from] = [&self.to, &self.from].map(written);
        format!("{} is {to}, its own is {from}", self.name)
    }

    /// Whether it replaces a value that the quick run would set.
    pub(super) fn instead_of(&self, quick: &Quick) -> bool {
        quick.with.contains_key(&self.name)
    }

    /// The new value in words, without the old one.
    pub(super) fn asked(&self) -> String {
        format!("{} is {}", self.name, written(&self.to))
    }

    pub(super) fn fact(&self) -> (String, String) {
        (format!("{}, changed", self.name), written(&self.to))
    }
}

fn written(value: &Scalar) -> String {
    match value {
        Scalar::Switch(b) => b.to_string(),
        Scalar::Number(x) => x.to_string(),
        Scalar::Text(text) => text.clone(),
    }
}

/// Applies the quick run's values to the study's `with`; otherwise the faulty name and the reason.
pub(super) fn first_look(study: &mut StudyFile, quick: bool) -> Result<(), (String, String)> {
    for (name, value) in &study.quick.with {
        let Some(own) = study.with.get_mut(name) else {
            return Err((
                name.clone(),
                format!("there is no value `{name}` under the study's `with`"),
            ));
        };
        if std::mem::discriminant(own) != std::mem::discriminant(value) {
            let why = format!("`{name}` is {} under the study's `with`", kind(own));
            return Err((name.clone(), why));
        }
        if quick {
            *own = value.clone();
        }
    }
    Ok(())
}

fn kind(value: &Scalar) -> &'static str {
    match value {
        Scalar::Switch(_) => "true or false",
        Scalar::Number(_) => "a number",
        Scalar::Text(_) => "a text",
    }
}

/// Checks that options refer to existing values and accept the study's own; otherwise the faulty key and the reason.
pub(super) fn check(study: &StudyFile) -> Result<(), (String, String)> {
    for (i, option) in study.option.iter().enumerate() {
        let wrong = |key: &str, why: String| Err((format!("option[{i}].{key}"), why));
        let name = &option.name;
        if study.option[..i].iter().any(|o| o.name == *name) {
            return wrong("name", format!("another option is called `{name}`"));
        }
        let Some(own) = study.with.get(name) else {
            return wrong(
                "name",
                format!("there is no value `{name}` under the study's `with`"),
            );
        };
        let bounded = option.from.is_some() || option.to.is_some();
        let quick = study.quick.with.get(name);
        for value in [own].into_iter().chain(quick) {
            match value {
                Scalar::Number(x) if !option.takes(*x) => {
                    let why = format!(
                        "`{name}` is {x} in the study, which is not {}",
                        option.bounds()
                    );
                    return wrong(if option.from.is_some() { "from" } else { "to" }, why);
                }
                Scalar::Switch(_) | Scalar::Text(_) if bounded => {
                    let key = if option.from.is_some() { "from" } else { "to" };
                    return wrong(key, format!("`{name}` is not a number and has no bounds"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Sets values of the study's `with` that are options, each written `NAME=VALUE`. An assignment equal to the current
/// value changes nothing.
pub(super) fn set(
    study: &mut StudyFile,
    assignments: &[String],
) -> Result<Vec<Change>, StudyError> {
    let mut changes: Vec<Change> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for assignment in assignments {
        let wrong = |reason: String| StudyError::With {
            assignment: assignment.clone(),
            reason,
        };
        let (name, text) = assignment
            .split_once('=')
            .map(|(name, text)| (name.trim(), text.trim()))
            .ok_or_else(|| wrong("write NAME=VALUE".into()))?;
        if seen.contains(&name) {
            return Err(wrong(format!("`{name}` is set already")));
        }
        seen.push(name);
        let mut options = study.option.iter();
        let there = options.find(|o| o.name == name);
        let there = there.and_then(|o| study.with.get(name).map(|own| (o, own)));
        let Some((option, own)) = there else {
            let each: Vec<String> = study.option.iter().map(StudyOption::in_words).collect();
            let hint = match &each[..] {
                [] => "it has none".to_owned(),
                each => format!("it has {}", each.join("; ")),
            };
            return Err(wrong(format!("the study has no option `{name}`: {hint}")));
        };
        let other = |with: &BTreeMap<String, Scalar>| with.contains_key(name);
        let nowhere = !study.column.is_empty() && study.column.iter().all(|c| other(&c.with))
            || !study.line.is_empty() && study.line.iter().all(|l| other(&l.with));
        if nowhere {
            let why = format!("each column or each line sets `{name}` itself");
            return Err(wrong(why));
        }
        let to = like(own, text).map_err(|kind| wrong(format!("`{text}` is not {kind}")))?;
        if let Scalar::Number(x) = to
            && !option.takes(x)
        {
            let why = format!("{name} is {}: {}", option.bounds(), option.what);
            return Err(wrong(why));
        }
        if to == *own {
            continue;
        }
        changes.push(Change {
            assignment: format!("{name}={text}"),
            name: name.to_owned(),
            from: own.clone(),
            to: to.clone(),
        });
        study.with.insert(name.to_owned(), to);
    }
    Ok(changes)
}

/// Parses a value of the same kind as `own`; otherwise the name of that kind.
fn like(own: &Scalar, text: &str) -> Result<Scalar, &'static str> {
    match own {
        Scalar::Switch(_) => text
            .parse()
            .map(Scalar::Switch)
            .map_err(|_| "true or false"),
        Scalar::Number(_) => {
            let number: Option<f64> = text.parse().ok().filter(|x: &f64| x.is_finite());
            number.map(Scalar::Number).ok_or("a number")
        }
        Scalar::Text(_) => Ok(Scalar::Text(text.to_owned())),
    }
}
