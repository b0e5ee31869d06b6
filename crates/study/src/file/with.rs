//! Other values than the study's own of what expressions know by name: the study with a change.

use swell_experiment::file;

use super::StudyError;
use super::format::{Scalar, StudyFile};

/// A value that is not the study's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// As it was asked for.
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

/// Sets values of the study's `with`, each written `NAME=VALUE`; those that stand there already change nothing.
pub(super) fn set(
    study: &mut StudyFile,
    assignments: &[String],
) -> Result<Vec<Change>, StudyError> {
    let mut changes: Vec<Change> = Vec::new();
    for assignment in assignments {
        let wrong = |reason: String| StudyError::With {
            assignment: assignment.clone(),
            reason,
        };
        let (name, text) = assignment
            .split_once('=')
            .ok_or_else(|| wrong("write NAME=VALUE".into()))?;
        if changes.iter().any(|c| c.name == name) {
            return Err(wrong(format!("`{name}` is set already")));
        }
        let names: Vec<&str> = study.with.keys().map(String::as_str).collect();
        let none = || {
            let hint = match &names[..] {
                [] => "it has none".to_owned(),
                names => file::suggest(name, names, "it has"),
            };
            wrong(format!("the study has no value `{name}`: {hint}"))
        };
        let Some(own) = study.with.get(name) else {
            return Err(none());
        };
        let to = like(own, text).map_err(|kind| wrong(format!("`{text}` is no {kind}")))?;
        if to == *own {
            continue;
        }
        changes.push(Change {
            assignment: assignment.clone(),
            name: name.to_owned(),
            from: own.clone(),
            to: to.clone(),
        });
        study.with.insert(name.to_owned(), to);
    }
    Ok(changes)
}

/// A value of the same kind; else which that is.
fn like(own: &Scalar, text: &str) -> Result<Scalar, &'static str> {
    match own {
        Scalar::Switch(_) => text
            .parse()
            .map(Scalar::Switch)
            .map_err(|_| "true or false"),
        Scalar::Number(_) => {
            let number: Option<f64> = text.parse().ok().filter(|x: &f64| x.is_finite());
            number.map(Scalar::Number).ok_or("number")
        }
        Scalar::Text(_) => Ok(Scalar::Text(text.to_owned())),
    }
}
