//! Impossible links.

use std::ops::RangeInclusive;

use swell_base::{Bytes, Dur, Rate};

use super::super::preset::MOST_LINKS;
use super::super::{File, LinkKeys, LinkOverrides, Preset};
use super::qdisc;
use crate::file::findings::{Findings, loss};

/// Maximum overhead per packet, limited by 16 bits. It is more than any link layer adds.
const OVERHEAD: Bytes = Bytes(65_535);

/// Allowed number of links of each kind in a preset.
const SIZE: RangeInclusive<u32> = 1..=MOST_LINKS as u32;
/// Maximum length of a link's name, because it is part of file names.
const LONGEST_NAME: usize = 64;

pub(super) fn check(file: &File, found: &mut Findings) {
    let network = &file.network;
    let own_keys = network.link != LinkKeys::default();
    match (&network.preset, file.links.is_empty()) {
        (None, true) => keys(&network.link, "network", true, found),
        (Some(spec), true) => {
            preset(&spec.0, found);
            keys(&network.link, "network", false, found);
        }
        (Some(_), false) => found.add(
            "network.preset",
            "`[[links]]` and a preset both say which links there are",
            "give one of the two; `experiment.toml` in a run's directory has a preset written out as `[[links]]`",
        ),
        (None, false) => {
            if own_keys {
                found.add(
                    "network",
                    "a link under `[network]` beside `[[links]]`",
                    "each of `[[links]]` has its own rate, delay and queue; only `rtt` and `access_delay` are left under [network]",
                );
            }
            named(file, found);
        }
    }
    let end = file.run.duration;
    let key = match (network.rtt, file.links.is_empty()) {
        (Some(_), _) => "network.rtt",
        (None, true) => "network.delay",
        (None, false) => "links",
    };
    // Where nothing waits for answers, a run does not need a whole round trip.
    let waiting = (file.foreground.iter()).filter(|f| !f.is_none() && !f.is_open_loop());
    let longest = waiting.map(|f| file.round_trip(&f.route()));
    let longest = longest
        .max()
        .map(|own| network.rtt.map_or(own, |rtt| rtt.max(own)));
    if let Some(longest) = longest
        && longest >= end
        && end != Dur::ZERO
    {
        return found.add(
            key,
            format!("a round trip of {longest} does not end in a run of {end}"),
            "write a shorter delay, or a longer `run.duration`",
        );
    }
    let Some(rtt) = network.rtt else { return };
    for foreground in &file.foreground {
        let propagation = file.round_trip(&foreground.route());
        if rtt < propagation {
            let whose = match file.links().len() {
                1 => "the bottleneck's own",
                _ => "that of the links of its path,",
            };
            return found.add(
                "network.rtt",
                format!("a round trip of {rtt} is shorter than {whose} {propagation}"),
                "the `delay` of a link is one-way; both directions count",
            );
        }
    }
}

fn preset(preset: &Preset, found: &mut Findings) {
    let mut within = |key: &str, n: u32| {
        found.within(
            format!("network.preset.{key}"),
            SIZE,
            n,
            format!("{n} {key} are out of range"),
            "write 1 to 1000",
        );
    };
    match preset {
        Preset::Residential | Preset::Cable | Preset::Campus => {}
        Preset::ParkingLot { links } => within("links", *links),
        Preset::LeafSpine { leaves, spines } => {
            within("leaves", *leaves);
            within("spines", *spines);
        }
    }
    if preset.count() > MOST_LINKS {
        found.add(
            "network.preset",
            format!("{} links are more than {MOST_LINKS}", preset.count()),
            "",
        );
    }
}

fn named(file: &File, found: &mut Findings) {
    if file.links.len() as u64 > MOST_LINKS {
        found.add(
            "links",
            format!("{} links are more than {MOST_LINKS}", file.links.len()),
            "",
        );
    }
    for (i, link) in file.links.iter().enumerate() {
        let place = format!("links[{i}]");
        let name = &link.name;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !name.chars().all(fits)
            || name.len() > LONGEST_NAME
        {
            found.add(
                format!("{place}.name"),
                format!("`{name}` cannot name a link"),
                "letters, digits, `-`, `_` and `.`, at most 64; a letter or digit first",
            );
        } else if file.links[..i].iter().any(|other| other.name == *name) {
            found.add(
                format!("{place}.name"),
                format!("there are two links called `{name}`"),
                "names tell them apart in paths and tables",
            );
        }
        keys(&link.keys, &place, true, found);
    }
}

/// Checks the keys of a link at `whole`. Those of a preset need not be `complete`.
fn keys(keys: &LinkKeys, whole: &str, complete: bool, found: &mut Findings) {
    for (side, link) in ["up", "down"].into_iter().zip(keys.directions()) {
        let overrides = if side == "up" { &keys.up } else { &keys.down };
        let place = |key: &str, own: bool| match own {
            true => format!("{whole}.{side}.{key}"),
            false => format!("{whole}.{key}"),
        };
        type Has = fn(&LinkOverrides) -> bool;
        let own = |has: Has| overrides.as_ref().is_some_and(has);
        // Report problems of shared keys only once.
        let skip = |has: Has| side == "down" && !own(has) && !keys.up.as_ref().is_some_and(has);

        // A direction's own trace replaces a common rate, so that rate says nothing about it.
        let carries: Has = |o| o.rate.is_some() || o.deliveries.is_some();
        let own_rate = own(|o| o.rate.is_some());
        if own_rate || (keys.rate.is_some() && !own(carries)) {
            if link.rate == Rate::default() && !skip(carries) {
                found.add(
                    place("rate", own_rate),
                    "a link of rate 0 carries nothing",
                    "",
                );
            }
        } else if link.deliveries.is_none() && complete {
            let hint = match whole {
                "network" => {
                    "write for example rate = \"20Mbit\" under [network], or deliveries = a file"
                }
                _ => "write for example rate = \"20Mbit\", or deliveries = a file",
            };
            found.add(
                format!("{whole}.rate"),
                format!("the {side} direction has no rate"),
                hint,
            );
        }
        let own_queue = own(|o| o.queue.is_some());
        if !skip(|o| o.queue.is_some()) {
            found.limit(place("queue", own_queue), link.queue);
        }
        // A trace gives its rate only once it is read.
        let rate = (link.deliveries.is_none() && link.rate != Rate::default()).then_some(link.rate);
        let decides: Has = |o| {
            o.queue.is_some() || o.qdisc.is_some() || o.rate.is_some() || o.deliveries.is_some()
        };
        if !skip(decides) {
            let key = place("queue", own_queue);
            qdisc::room(key, &link.qdisc, link.queue, rate, found);
        }
        let own_qdisc = own(|o| o.qdisc.is_some());
        if !skip(|o| o.qdisc.is_some()) {
            (link.qdisc).check(&place("qdisc", own_qdisc), found);
        }
        let own_overhead = own(|o| o.overhead.is_some());
        if !skip(|o| o.overhead.is_some()) && link.overhead > OVERHEAD {
            found.add(
                place("overhead", own_overhead),
                format!(
                    "an overhead of {} per packet is out of range",
                    link.overhead
                ),
                "write 0B to 65535B; Ethernet adds 18B, or 38B with preamble and gap",
            );
        }
        let own_loss = own(|o| o.loss.is_some());
        if !skip(|o| o.loss.is_some()) {
            let key = |name: &str| format!("{}.{name}", place("loss", own_loss));
            loss(key, link.loss, found);
        }
    }
}
