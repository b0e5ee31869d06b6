//! Impossible backgrounds.

use super::super::File;
use super::super::read::{suggest, unknown_name};
use super::Findings;
use crate::kinds::{Part, Role, Slot};

pub(super) fn backgrounds(file: &File, found: &mut Findings) {
    let names: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
    for (i, background) in file.background.iter().enumerate() {
        let key = |name: &str| format!("background[{i}].{name}");
        let at = Slot {
            role: Role::Background,
            backend: file.backend,
            duration: file.run.duration,
            key: &key,
        };
        let keys = background.as_keys();
        keys.check(&at, found);
        if keys.load().is_some() && keys.rate().is_none() {
            found.add(
                key("load"),
                "`load` says what `rate` is the rate of, and there is no rate",
                "write a rate, or leave `load` out",
            );
        }
        if let Some(target) = background.matches() {
            matching(file, &names, background, target, key("rate"), found);
        }
    }
}

/// Whether `background` can take the measured rates of `target`.
fn matching(
    file: &File,
    names: &[&str],
    background: &Part,
    target: &str,
    key: String,
    found: &mut Findings,
) {
    let others: Vec<&str> = file
        .background
        .iter()
        .filter(|b| b.name() != background.name() && b.has_rate())
        .map(|b| b.name())
        .collect();
    let hint = suggest(target, &others, "backgrounds with a rate of their own");
    let Some(other) = file.background.iter().find(|b| b.name() == target) else {
        let (message, _) = unknown_name("background", target, names);
        return found.add(key, message, &hint);
    };
    if target == background.name() {
        found.add(key, format!("`{target}` matches itself"), &hint);
    } else if let Some(next) = other.matches() {
        found.add(
            key,
            format!("`{target}` itself matches `{next}`"),
            &format!("write match:{next}"),
        );
    } else if let Some(why) = other.as_keys().rateless() {
        found.add(key, format!("`{target}` {why}"), &hint);
    }
}
