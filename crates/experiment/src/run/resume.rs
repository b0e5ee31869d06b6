//! Differences between the experiment in a run directory and the current one.

use std::fmt;
use std::path::Path;

use crate::plan::Plan;
use crate::store::{Manifest, StoreError};

/// A difference between the directory's experiment and the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs: `version`, `backend`, a key of the experiment, or a model.
    pub what: String,
    /// The value in the directory.
    pub there: String,
    /// The current value.
    pub here: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: there {}, here {}", self.what, self.there, self.here)
    }
}

pub(super) fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

/// The differences between the directory and the current plan.
pub(super) fn differences(
    plan: &Plan,
    here: &Manifest,
    there: Result<Manifest, StoreError>,
    dir: &Path,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |what: &str, before: &str, now: &str| {
        if before != now {
            found.push(Difference {
                what: what.into(),
                there: or_nothing(before),
                here: or_nothing(now),
            });
        }
    };
    let there = match there {
        Ok(there) => there,
        Err(error) => {
            note(Manifest::FILE, &error.to_string(), "a manifest");
            return found;
        }
    };
    note("version", &there.version, &here.version);
    note("backend", &there.backend, &here.backend);
    let old = std::fs::read_to_string(dir.join("experiment.toml")).unwrap_or_default();
    let (old, new) = (keyed(&old), keyed(&plan.toml));
    for (key, value) in &new {
        let before = old.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v);
        note(key, before, value);
    }
    for (key, value) in old.iter().filter(|(k, _)| !new.iter().any(|(n, _)| n == k)) {
        note(key, value, "");
    }
    for (background, model) in &here.models {
        let before = there.models.get(background).map_or("", |m| m.hash.as_str());
        note(&format!("model of {background}"), before, &model.hash);
    }
    found
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() {
        "nothing".into()
    } else {
        text.into()
    }
}

/// The values of a TOML text by dotted key.
fn keyed(text: &str) -> Vec<(String, String)> {
    fn walk(value: &toml::Value, key: String, out: &mut Vec<(String, String)>) {
        match value {
            toml::Value::Table(table) => {
                for (name, sub) in table {
                    let place = if key.is_empty() {
                        name.clone()
                    } else {
                        format!("{key}.{name}")
                    };
                    walk(sub, place, out);
                }
            }
            toml::Value::Array(items) if items.iter().all(toml::Value::is_table) => {
                for (i, sub) in items.iter().enumerate() {
                    walk(sub, format!("{key}[{i}]"), out);
                }
            }
            _ => out.push((key, value.to_string())),
        }
    }
    let mut out = Vec::new();
    if let Ok(table) = toml::from_str::<toml::Table>(text) {
        walk(&toml::Value::Table(table), String::new(), &mut out);
    }
    out
}
