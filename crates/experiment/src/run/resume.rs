//! Begins, resumes and clears a run directory. Differences between its experiment and the current one.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::directory::{Directory, OUTPUT, PACKETS, RECORDS};
use super::lock::SHARDS;
use super::{Failure, Options};
use crate::plan::Plan;
use crate::store::{KEPT, Manifest, StoreError, TABLES, at, unlike, write_atomically};

/// A difference between the directory's experiment and the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs: `version`, `backend`, a setting of it, a key of the experiment, or a model.
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
fn differences(
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
    for (name, before, now) in unlike(&there.settings, &here.settings) {
        note(name, before, now);
    }
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

impl Directory<'_> {
    /// Resumes from the stored manifest, or creates the directory.
    pub(super) fn begin(
        &self,
        plan: &Plan,
        manifest: &mut Manifest,
        options: &Options,
    ) -> Result<(), Failure> {
        let root = self.root;
        if options.fresh {
            self.clear()?;
        } else if root.join(Manifest::FILE).exists() {
            return match Manifest::load(root) {
                Ok(old)
                    if old.hash == manifest.hash
                        && unlike(&old.settings, &manifest.settings).is_empty() =>
                {
                    if old.complete {
                        *manifest = old;
                    } else {
                        manifest.started = old.started;
                        manifest.wall_s = old.wall_s;
                    }
                    Ok(())
                }
                old => Err(Failure::Other {
                    dir: root.to_owned(),
                    differences: differences(plan, manifest, old, root),
                }),
            };
        } else {
            let found = self.results()?;
            if !found.is_empty() {
                return Err(Failure::Unknown {
                    dir: root.to_owned(),
                    found,
                });
            }
        }
        for sub in ["", "cells", "measured", "models"] {
            let path = root.join(sub);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        for input in plan.foreground_inputs.values().chain(plan.inputs.values()) {
            if let Some((name, bytes)) = &input.copy {
                write_atomically(&root.join(name), bytes)?;
            }
        }
        write_atomically(&root.join("experiment.toml"), plan.toml.as_bytes())?;
        Ok(manifest.save(root)?)
    }

    /// Names of results that do not say themselves of which experiment they are, as those of shards do.
    fn results(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for sub in ["cells", "measured"] {
            let path = self.root.join(sub);
            match fs::read_dir(&path) {
                Ok(mut entries) => found.extend(entries.next().map(|_| sub.to_owned())),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(at(&path)(e)),
            }
        }
        found.extend(table_files().filter(|name| self.root.join(name).exists()));
        Ok(found)
    }

    /// Removes the files that runs write, and nothing else. Without a manifest of a run, nothing says that files of
    /// these names are not the user's, so they are not removed.
    fn clear(&self) -> Result<(), Failure> {
        let gone = |path: PathBuf, result: std::io::Result<()>| match result {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(at(&path)(e)),
            _ => Ok(()),
        };
        let manifest = self.root.join(Manifest::FILE);
        let text = match fs::read(&manifest) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let mut found = self.results()?;
                // Locks are there before anything else is.
                let lock =
                    |entry: &fs::DirEntry| entry.path().extension().is_some_and(|x| x == "lock");
                let shards = fs::read_dir(self.root.join(SHARDS)).into_iter().flatten();
                if shards.flatten().any(|entry| !lock(&entry)) {
                    found.push(SHARDS.to_owned());
                }
                return match found.is_empty() {
                    true => Ok(()),
                    false => Err(Failure::Unknown {
                        dir: self.root.to_owned(),
                        found,
                    }),
                };
            }
            Err(e) => return Err(at(&manifest)(e).into()),
        };
        if !is_own(&text) {
            return Err(Failure::Store(StoreError::Content {
                path: manifest,
                reason: "not the manifest of a run, so nothing in this directory is removed".into(),
            }));
        }
        // Until everything is gone, the manifest is there and matches no experiment. If this is interrupted, no
        // experiment takes over what is left.
        write_atomically(&manifest, CLEARING)?;
        let named = ["experiment.toml", "report.html"].map(String::from);
        for name in table_files().chain(named) {
            let path = self.root.join(name);
            gone(path.clone(), fs::remove_file(&path))?;
        }
        let dirs = ["cells", "measured", SHARDS, "models"];
        for sub in dirs.into_iter().chain([PACKETS, RECORDS, OUTPUT]) {
            let path = self.root.join(sub);
            gone(path.clone(), fs::remove_dir_all(&path))?;
        }
        Ok(gone(manifest.clone(), fs::remove_file(&manifest))?)
    }
}

/// The manifest of a directory that is being cleared.
pub(super) const CLEARING: &[u8] = b"{ \"clearing\": true }\n";

/// Whether this is a manifest of a run, of whatever version, or the one of a directory that was being cleared.
fn is_own(text: &[u8]) -> bool {
    if text == CLEARING {
        return true;
    }
    let keys = ["format", "version", "hash", "backend", "cells"];
    match serde_json::from_slice::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(map)) => keys.iter().all(|key| map.contains_key(*key)),
        _ => false,
    }
}

/// File names of all tables of a run directory.
fn table_files() -> impl Iterator<Item = String> {
    let tables = TABLES.into_iter().chain(KEPT);
    tables.map(|table| format!("{table}.parquet"))
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
