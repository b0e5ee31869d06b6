//! Paths over links that are not there, or that lead nowhere.

use super::super::names::unknown_name;
use super::super::route::crossed;
use super::super::{Directions, File, NamedLink, Route};
use crate::file::findings::Findings;

pub(super) fn check(file: &File, found: &mut Findings) {
    let links = file.links();
    let before = found.count();
    branched(file, &links, found);
    for (i, foreground) in file.foreground.iter().enumerate() {
        path(
            &foreground.route(),
            &links,
            &format!("foreground[{i}]"),
            found,
        );
    }
    for (i, background) in file.background.iter().enumerate() {
        path(
            &background.route(),
            &links,
            &format!("background[{i}]"),
            found,
        );
    }
    // What follows from a wrong path says nothing new.
    if found.count() == before && links.len() > 1 {
        met(file, found);
        unused(file, &links, found);
    }
}

fn path(route: &Route, links: &[NamedLink], place: &str, found: &mut Findings) {
    if route.reversed && route.direction.is_some() {
        found.add(
            format!("{place}.direction"),
            "`reversed` says already which way it flows",
            "leave one of the two out",
        );
    }
    if route.direction == Some(Directions::Both) {
        found.add(
            format!("{place}.direction"),
            "it flows one way",
            "write a mix of two parts, one of them with direction = \"up\"",
        );
    }
    let Some(path) = &route.path else { return };
    if path.is_empty() {
        found.add(
            format!("{place}.path"),
            "a path of no links leads nowhere",
            "name a link, or leave `path` out for all of them",
        );
    }
    let names: Vec<&str> = path.iter().map(|entry| crossed(entry).0).collect();
    let known: Vec<&str> = links.iter().map(|l| &*l.name).collect();
    for (i, name) in names.iter().enumerate() {
        let key = format!("{place}.path[{i}]");
        if !known.contains(name) {
            let (message, hint) = unknown_name("link", name, &known);
            found.add(key, message, &hint);
        } else if names[..i].contains(name) {
            found.add(
                key,
                format!("the path crosses link `{name}` twice"),
                "every link of a path comes once",
            );
        }
    }
}

/// All links in their order are no path where they do not form a chain.
fn branched(file: &File, links: &[NamedLink], found: &mut Findings) {
    let preset = file
        .network
        .preset
        .as_ref()
        .filter(|_| file.links.is_empty());
    if links.len() < 2 || preset.is_none_or(|preset| preset.0.is_chain()) {
        return;
    }
    let foregrounds = file.foreground.iter().map(|f| &f.0);
    let backgrounds = file.background.iter().map(|b| &b.0);
    for (list, i, part) in (foregrounds.enumerate().map(|(i, f)| ("foreground", i, f)))
        .chain(backgrounds.enumerate().map(|(i, b)| ("background", i, b)))
    {
        let sends = !part.is_none() && part.parts().is_empty();
        if sends && part.route().path.is_none() {
            found.add(
                format!("{list}[{i}].path"),
                format!(
                    "`{}` has no path, and all links in a row are none here",
                    part.name()
                ),
                "write for example path = [\"leaf1-spine1\", \"leaf2-spine1 reversed\"]",
            );
        }
    }
}

/// A background that meets no foreground can only ever not matter.
fn met(file: &File, found: &mut Findings) {
    let foregrounds = file.foreground.iter().filter(|f| !f.is_none());
    let foregrounds: Vec<_> = foregrounds.collect();
    if foregrounds.is_empty() {
        return;
    }
    for (i, background) in file.background.iter().enumerate() {
        // A mix may have parts that only fill links of others.
        if background.is_none() || !background.parts().is_empty() {
            continue;
        }
        if !foregrounds.iter().any(|f| file.meet(f, background)) {
            found.add(
                format!("background[{i}].path"),
                format!(
                    "no foreground crosses a link that background `{}` crosses: it cannot matter",
                    background.name()
                ),
                "name a link of a foreground's path",
            );
        }
    }
}

/// A link that nothing crosses was meant for something.
fn unused(file: &File, links: &[NamedLink], found: &mut Findings) {
    if file.links.is_empty() {
        // Of a preset only those that are crossed are there.
        return;
    }
    let crossed = file.crossed();
    for (i, link) in links.iter().enumerate() {
        if !crossed.contains(&i) {
            found.add(
                format!("links[{i}].name"),
                format!("no path crosses link `{}`", link.name),
                "name it in the `path` of a foreground or background, or leave it out",
            );
        }
    }
}
