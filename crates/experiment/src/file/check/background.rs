//! Impossible backgrounds.

use swell_base::Rate;

use super::super::read::{suggest, unknown_name};
use super::super::{File, RateSpec, Stack};
use super::Findings;
use crate::kinds::{Part, Role, Slot};

pub(super) fn backgrounds(file: &File, found: &mut Findings) {
    let names: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
    for (i, background) in file.background.iter().enumerate() {
        let key = |name: &str| format!("background[{i}].{name}");
        let at = Slot {
            role: Role::Background,
            backend: file.backend,
            stack: file.run.background_stack,
            duration: file.run.duration,
            measured: file.run.duration,
            key: &key,
        };
        let keys = background.as_keys();
        keys.check(&at, found);
        if let Some(active) = background.active() {
            active.check(&at, found);
        }
        if let Some(energy) = background.energy() {
            energy.check(&at, background.active().is_some(), found);
        }
        if keys.load().is_some() && keys.rate().is_none() {
            found.add(
                key("load"),
                "`load` says what `rate` is the rate of, and there is no rate",
                "write a rate, or leave `load` out",
            );
        }
        if !keys.parts().is_empty() {
            mixed(file, &names, background, &key("of"), found);
            if file.run.background_stack != Stack::Simulated {
                found.add(
                    key("kind"),
                    "a mix runs on simulated TCP only",
                    "leave run.background_stack out",
                );
            }
        }
        if let Some(target) = background.matches() {
            matching(file, &names, background, target, key("rate"), found);
        }
    }
}

/// Checks that the parts of `background` are other backgrounds, each of them once.
fn mixed(file: &File, names: &[&str], background: &Part, key: &str, found: &mut Findings) {
    let mut seen: Vec<&str> = Vec::new();
    // Parts still to visit, with the names of the mixes that contain them.
    let mut left: Vec<(&Part, Vec<&str>)> = vec![(background, Vec::new())];
    while let Some((part, above)) = left.pop() {
        for name in part.parts() {
            let Some(next) = file.background.iter().find(|b| b.name() == name) else {
                // Report this only for the mix that names it directly.
                if part.name() == background.name() {
                    let (message, hint) = unknown_name("background", name, names);
                    found.add(key, message, &hint);
                }
                continue;
            };
            if name == background.name() {
                let way = [&above[..], &[part.name()], &[name]].concat();
                return found.add(
                    key,
                    format!("`{name}` is a part of itself: {}", way.join(", ")),
                    "name other backgrounds",
                );
            }
            if above.contains(&name.as_str()) || part.name() == name {
                continue; // A circle of others, which is said there.
            }
            if next.is_none() {
                found.add(
                    key,
                    format!("`{name}` is no traffic, and adds nothing"),
                    "leave it out",
                );
            } else if next.parts().is_empty() && seen.contains(&name.as_str()) {
                found.add(
                    key,
                    format!("`{name}` is in it more than once"),
                    "a background of its own, with another name, comes on top",
                );
            }
            seen.push(name);
            left.push((next, [&above[..], &[part.name()]].concat()));
        }
    }
}

/// Checks that `background` can take the measured rates of `target`.
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
    } else if other.rate() == Some(&RateSpec::Fixed(Rate::default())) {
        found.add(key, format!("`{target}` sends nothing down"), &hint);
    }
}
