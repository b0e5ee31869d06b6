//! Begins, resumes and clears a run directory. Differences between its experiment and the current one.

use std::fs;
use std::io::ErrorKind;
use std::iter;
use std::path::Path;

use super::directory::Directory;
use super::options::{Difference, Failure, Options};
use super::own::{self, CELLS, EXPERIMENT, MEASURED, MODELS};
use crate::plan::Plan;
use crate::store::{Manifest, StoreError, at, is_temporary, unlike, write_atomically};

/// The differences between the directory and the current plan.
fn differences(plan: &Plan, here: &Manifest, there: &Manifest, dir: &Path) -> Vec<Difference> {
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
    note("version", &there.version, &here.version);
    note("backend", &there.backend, &here.backend);
    for (name, before, now) in unlike(&there.settings, &here.settings) {
        note(name, before, now);
    }
    let old = fs::read_to_string(dir.join(EXPERIMENT)).unwrap_or_default();
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
                        return Ok(());
                    }
                    manifest.started = old.started;
                    manifest.wall_s = old.wall_s;
                    self.set_up(plan)
                }
                Ok(old) => Err(Failure::Other {
                    dir: root.to_owned(),
                    differences: differences(plan, manifest, &old, root),
                }),
                Err(error) => Err(unreadable(root, error)),
            };
        } else {
            free(root, false)?;
        }
        // The manifest comes first: it marks everything else as the program's own, and an interrupted call goes on.
        manifest.save(root)?;
        self.set_up(plan)
    }

    /// Makes what is missing of the directory before the first run.
    fn set_up(&self, plan: &Plan) -> Result<(), Failure> {
        for sub in [CELLS, MEASURED, MODELS] {
            let path = self.root.join(sub);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let inputs = plan.foreground_inputs.values().chain(plan.inputs.values());
        let copies = inputs.filter_map(|input| input.copy.as_ref());
        let copies = copies.map(|(name, bytes)| (&**name, &**bytes));
        // The experiment names the copies, so it comes before them: `clear` finds those of an interrupted call.
        for (name, bytes) in iter::once((EXPERIMENT, plan.toml.as_bytes())).chain(copies) {
            let path = self.root.join(name);
            // A copy that is there may be of an earlier run whose experiment was damaged.
            if !holds(&path, bytes) {
                write_atomically(&path, bytes)?;
            }
        }
        Ok(())
    }

    /// Removes the files that runs write, and nothing else. Without a manifest of a run, nothing says that files of
    /// these names are not the user's, so they are not removed. The manifest stays and matches no experiment: if this
    /// is interrupted, no experiment takes over what is left.
    fn clear(&self) -> Result<(), Failure> {
        let manifest = self.root.join(Manifest::FILE);
        let text = match fs::read(&manifest) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return free(self.root, true),
            Err(e) => return Err(at(&manifest)(e).into()),
        };
        if !is_own(&text) {
            return Err(Failure::Store(StoreError::Content {
                path: manifest,
                reason: "not the manifest of a run, so nothing in this directory is removed".into(),
            }));
        }
        write_atomically(&manifest, CLEARING)?;
        // The experiment names the copies of models, so they go before it.
        let copies = copies(&fs::read_to_string(self.root.join(EXPERIMENT)).unwrap_or_default());
        let remove = |name: &str| {
            let path = self.root.join(name);
            own::gone(fs::remove_file(&path)).map_err(at(&path))
        };
        for name in own::files().filter(|name| name != EXPERIMENT) {
            remove(&name)?;
        }
        own::remove(self.root, is_temporary)?;
        own::remove_all(self.root, &copies)?;
        Ok(remove(EXPERIMENT)?)
    }
}

/// Whether the file has these contents. Only a file of the same size is read.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_size = fs::metadata(path).is_ok_and(|there| there.len() == bytes.len() as u64);
    same_size && fs::read(path).is_ok_and(|there| there == bytes)
}

/// Checks that a directory without a manifest has nothing of the user's under the names of a run's files. With `fresh`,
/// it must not have results of shards either, which are otherwise joined.
pub(super) fn free(root: &Path, fresh: bool) -> Result<(), Failure> {
    match own::taken(root, fresh)? {
        found if found.is_empty() => Ok(()),
        // Another process has begun a run there meanwhile.
        _ if root.join(Manifest::FILE).exists() => Ok(()),
        found => Err(Failure::Unknown {
            dir: root.to_owned(),
            found,
        }),
    }
}

/// The format of a manifest of another version, for a message.
fn format_of(manifest: &[u8]) -> String {
    let read = serde_json::from_slice::<serde_json::Value>(manifest);
    let format = read.ok().and_then(|m| m.get("format").cloned());
    format.map_or_else(|| "another format".to_owned(), |n| format!("format {n}"))
}

/// The failure for a manifest that cannot be read: whether it is one of a run, which may be thrown away.
fn unreadable(root: &Path, error: StoreError) -> Failure {
    let text = fs::read(root.join(Manifest::FILE)).unwrap_or_default();
    let there = match &error {
        _ if text == CLEARING => "a directory that was being cleared".to_owned(),
        StoreError::Content { .. } if is_own(&text) => format_of(&text),
        StoreError::Manifest { source, .. } if is_own(&text) => source.to_string(),
        _ => return error.into(),
    };
    Failure::Other {
        dir: root.to_owned(),
        differences: vec![Difference {
            what: Manifest::FILE.into(),
            there,
            here: format!("format {}", Manifest::FORMAT),
        }],
    }
}

/// Names of the copies of models that this experiment of a run directory reads.
fn copies(toml: &str) -> Vec<String> {
    let models = keyed(toml).into_iter().filter(|(key, _)| {
        let last = key.rsplit('.').next();
        last == Some("model")
    });
    let names = models.filter_map(|(_, value)| {
        let name = value.trim_matches('"').strip_prefix("models/")?;
        own::is_copy(name).then(|| name.to_owned())
    });
    names.collect()
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
