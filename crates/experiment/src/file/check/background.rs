//! Impossible backgrounds.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::Rate;

use super::super::names::{suggest, unknown_name};
use super::super::{File, RateSpec, Stack};
use crate::file::findings::Findings;
use crate::kinds::{Part, Role, Slot};

/// The backgrounds by name; of several with a name, the first.
type Named<'f> = BTreeMap<&'f str, &'f Part>;

pub(super) fn backgrounds(file: &File, found: &mut Findings) {
    let mut named = Named::new();
    for background in &file.background {
        named.entry(background.name()).or_insert(background);
    }
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
        let keys = background.keys();
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
            mixed(&named, background, &key("of"), found);
            if file.run.background_stack != Stack::Simulated {
                found.add(
                    key("kind"),
                    "a mix runs on simulated TCP only",
                    "leave run.background_stack out",
                );
            }
        }
        if let Some(target) = background.matches() {
            matching(file, &named, background, target, key("rate"), found);
        }
    }
}

/// Checks that the parts of `background` are other backgrounds, each of them once.
fn mixed(named: &Named<'_>, background: &Part, key: &str, found: &mut Findings) {
    // The mix through which each part was reached first. Every mix is visited once, however many contain it.
    let mut above: BTreeMap<&str, &Part> = BTreeMap::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<&Part> = vec![background];
    while let Some(part) = left.pop() {
        for name in part.parts() {
            let Some(&next) = named.get(name.as_str()) else {
                // Report this only for the mix that names it directly.
                if part.name() == background.name() && told.insert(name) {
                    let known: Vec<&str> = named.keys().copied().collect();
                    let (message, hint) = unknown_name("background", name, &known);
                    found.add(key, message, &hint);
                }
                continue;
            };
            if name == background.name() {
                let mut way = vec![name.as_str()];
                way.extend(upwards(&above, part));
                way.reverse();
                return found.add(
                    key,
                    format!("`{name}` is a part of itself: {}", way.join(", ")),
                    "name other backgrounds",
                );
            }
            if upwards(&above, part).any(|mix| mix == name) {
                continue; // A circle of others, which is said there.
            }
            if above.contains_key(name.as_str()) {
                if !next.is_none() && told.insert(name) {
                    found.add(
                        key,
                        format!("`{name}` is in it more than once"),
                        "a background of its own, with another name, comes on top",
                    );
                }
                continue;
            }
            if next.is_none() {
                found.add(
                    key,
                    format!("`{name}` is no traffic, and adds nothing"),
                    "leave it out",
                );
            }
            above.insert(name, part);
            left.push(next);
        }
    }
}

/// The name of `part`, and of the mixes through which it was reached, outwards.
fn upwards<'p>(
    above: &BTreeMap<&'p str, &'p Part>,
    part: &'p Part,
) -> impl Iterator<Item = &'p str> {
    std::iter::successors(Some(part), |part| above.get(part.name()).copied())
        .map(|part| part.name())
}

/// Checks that `background` can take the measured rates of `target`.
fn matching(
    file: &File,
    named: &Named<'_>,
    background: &Part,
    target: &str,
    key: String,
    found: &mut Findings,
) {
    let hint = || {
        let others: Vec<&str> = file
            .background
            .iter()
            .filter(|b| b.name() != background.name() && b.has_rate())
            .map(|b| b.name())
            .collect();
        match others[..] {
            [] => "no other background has a rate of its own; add one, or write a rate".into(),
            _ => suggest(target, &others, "backgrounds with a rate of their own"),
        }
    };
    let Some(&other) = named.get(target) else {
        return found.add(key, format!("unknown background `{target}`"), &hint());
    };
    if target == background.name() {
        found.add(key, format!("`{target}` matches itself"), &hint());
    } else if let Some(next) = other.matches() {
        found.add(
            key,
            format!("`{target}` itself matches `{next}`"),
            &format!("write match:{next}"),
        );
    } else if needs(named, other).contains(background.name()) {
        found.add(
            key,
            format!(
                "`{target}` contains `{}`, whose rate it would decide",
                background.name()
            ),
            "write a rate, or match a background outside of the mix",
        );
    } else if let Some(why) = other.keys().rateless() {
        found.add(key, format!("`{target}` {why}"), &hint());
    } else if other.rate() == Some(&RateSpec::Fixed(Rate::default())) {
        found.add(key, format!("`{target}` sends nothing down"), &hint());
    }
}

/// The names of all backgrounds that `part` depends on.
fn needs<'f>(named: &Named<'f>, part: &'f Part) -> BTreeSet<&'f str> {
    let mut seen = BTreeSet::new();
    let mut left = vec![part];
    while let Some(next) = left.pop() {
        for name in next.needs() {
            if seen.insert(name.as_str()) {
                left.extend(named.get(name.as_str()));
            }
        }
    }
    seen
}
