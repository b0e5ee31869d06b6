//! Checks for impossible values in files of the right shape.

mod background;
mod change;
mod links;
mod qdisc;
mod rates;
mod routes;

use std::ops::RangeInclusive;

use swell_base::{Dur, Impossible};

use super::findings::{Findings, LONGEST, Slot};
use super::{BackendKind, File};
use crate::kinds::Foreground;
use crate::role::Role;

/// Allowed number of runs of each foreground beside each background.
const REPLICATIONS: RangeInclusive<u32> = 1..=10_000;
/// Most bytes of the name of an experiment. A file name has at most 255, and options add some to it.
const LONGEST_NAME: usize = 200;
/// Maximum number of bins of a run: each is a row per link and direction, which is kept, written and read again.
const BINS: u64 = 1_000_000;
/// Maximum number of bins of all links together.
const ALL_BINS: u64 = 10_000_000;

/// Every impossible value in `file`.
pub(super) fn check(file: &File) -> Vec<Impossible> {
    let mut found = Findings::default();
    names(file, &mut found);
    links::check(file, &mut found);
    change::changes(file, &mut found);
    routes::check(file, &mut found);
    foregrounds(file, &mut found);
    background::backgrounds(file, &mut found);
    rates::check(file, &mut found);
    run(file, &mut found);
    found.0.into_all()
}

fn names(file: &File, found: &mut Findings) {
    if file.name.trim().is_empty() || file.name.contains(['/', '\\']) || file.name.starts_with('.')
    {
        found.add(
            "name",
            format!("`{}` cannot name a directory", file.name),
            "letters, digits and dashes, without slashes",
        );
    }
    if file.name.len() > LONGEST_NAME {
        found.add(
            "name",
            format!(
                "a name of {} bytes is too long for a directory",
                file.name.len()
            ),
            "write at most 200",
        );
    }
    let foregrounds: Vec<&str> = file.foreground.iter().map(|f| f.name()).collect();
    let backgrounds: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
    for (list, names) in [("foreground", foregrounds), ("background", backgrounds)] {
        if names.is_empty() {
            found.add(list, format!("no {list}: nothing to run"), "");
        }
        for (i, name) in names.iter().enumerate() {
            let key = format!("{list}[{i}].name");
            if name.trim().is_empty() {
                found.add(key, "an empty name", "");
            } else if names[..i].contains(name) {
                found.add(
                    key,
                    format!("there are two {list}s called `{name}`"),
                    "names tell them apart in tables and pictures",
                );
            }
        }
    }
}

/// How long a foreground is measured in one piece: after the warm-up, in the longest of its windows if it has any.
fn watched_for(file: &File, foreground: &Foreground) -> Dur {
    let (from, to) = (file.run.warmup, file.run.duration);
    let Some(active) = foreground.active() else {
        return to.saturating_sub(from);
    };
    let windows = active.windows(to).into_iter();
    let after = windows.map(|(begin, end)| end.saturating_sub(begin.max(from)));
    after.max().unwrap_or_default()
}

fn foregrounds(file: &File, found: &mut Findings) {
    for (i, foreground) in file.foreground.iter().enumerate() {
        let key = |name: &str| format!("foreground[{i}].{name}");
        let at = Slot {
            role: Role::Foreground,
            backend: file.backend,
            stack: file.run.background_stack,
            duration: file.run.duration,
            measured: watched_for(file, foreground),
            key: &key,
        };
        foreground.keys().check(&at, found);
        if let Some(energy) = foreground.energy() {
            energy.check(&at, foreground.active().is_some(), found);
        }
        if let Some(active) = foreground.active() {
            active.check(&at, found);
            let sends = active.from < file.run.duration && active.on != Some(Dur::ZERO);
            if sends && file.run.warmup < file.run.duration && at.measured == Dur::ZERO {
                found.add(
                    key("active"),
                    format!(
                        "every window is over before the end of the warm-up ({})",
                        file.run.warmup
                    ),
                    "let a window reach beyond `run.warmup`",
                );
            }
            at.simulated_only(
                "windows of a foreground are simulated only",
                "write backend = \"simulated\", or leave `active` out",
                found,
            );
        }
        if let (Some(rtt), Some(delay)) = (file.network.rtt, foreground.delay(&file.network)) {
            let own = file.round_trip(&foreground.route());
            if own + delay * 4 != rtt {
                found.add(
                    key("delay"),
                    format!(
                        "the access delay makes a round trip of {}, the network says rtt = {rtt}",
                        own + delay * 4
                    ),
                    "give one of the two",
                );
            }
        }
    }
}

fn run(file: &File, found: &mut Findings) {
    let run = &file.run;
    for (key, kept, what) in [
        ("run.keep.waits", run.keep.waits, "waits are counted"),
        (
            "run.keep.synchrony",
            run.keep.synchrony,
            "losses are told apart",
        ),
        (
            "run.keep.waterfall",
            run.keep.waterfall,
            "packets of requests are followed",
        ),
        (
            "run.keep.rtts",
            run.keep.rtts,
            "round trips of packets are measured",
        ),
        (
            "run.keep.gaps",
            run.keep.gaps,
            "gaps between windows are measured",
        ),
        (
            "run.keep.records",
            run.keep.records.is_some(),
            "flow records are exported",
        ),
    ] {
        if kept && file.backend != BackendKind::Simulated {
            found.add(
                key,
                format!("{what} in simulated runs only"),
                "write backend = \"simulated\", or leave it out",
            );
        }
    }
    if let Some(records) = &run.keep.records {
        records.check(|name| format!("run.keep.records.{name}"), found);
    }
    // A link has a single tap, so only one of these can use it.
    let looks = [
        ("run.keep.packets", run.keep.packets),
        ("run.keep.records", run.keep.records.is_some()),
        ("run.keep.waterfall", run.keep.waterfall),
    ];
    let mut kept = looks.into_iter().filter(|l| l.1);
    if let (Some(_), Some((second, _))) = (kept.next(), kept.next()) {
        found.add(
            second,
            "packets, flow records and a waterfall are not kept of the same runs",
            "leave all but one of them out",
        );
    }
    if run.together && file.backend != BackendKind::Simulated {
        found.add(
            "run.together",
            "foregrounds run at the same time in simulated runs only",
            "write backend = \"simulated\", or leave it out",
        );
    }
    if let Some(target) = &run.suite {
        let named = file.background.iter().find(|b| b.name() == target);
        if named.is_none_or(|b| b.is_none()) {
            found.add(
                "run.suite",
                format!("no background that sends is called `{target}`"),
                "write the name of the background that the others are to stand in for",
            );
        }
    }
    if !REPLICATIONS.contains(&run.replications) {
        found.add(
            "run.replications",
            match run.replications {
                0 => "0 replications run nothing".to_owned(),
                n => format!("{n} replications are out of range"),
            },
            "write 1 to 10000; 10 give intervals",
        );
    }
    if run.duration == Dur::ZERO {
        found.add("run.duration", "a run of no length", "");
    } else if run.duration > LONGEST {
        found.add(
            "run.duration",
            format!("a run of {} is too long to be kept in memory", run.duration),
            "write a day (86400s) or less; more replications say more than longer runs",
        );
    } else if run.warmup >= run.duration {
        found.add(
            "run.warmup",
            format!(
                "the warm-up ({}) leaves nothing of the run ({})",
                run.warmup, run.duration
            ),
            "`duration` is the length of a run, warm-up included",
        );
    } else if run.bins == Dur::ZERO || run.bins > run.duration.saturating_sub(run.warmup) {
        found.add(
            "run.bins",
            format!("bins of {} do not fit into the run", run.bins),
            "for example \"100ms\"",
        );
    } else if let bins = run.duration.as_nanos() / run.bins.as_nanos()
        && let links = file.links().len() as u64
        && (bins > BINS || bins.saturating_mul(links) > ALL_BINS)
    {
        let of = match links {
            1 => String::new(),
            n => format!(" on {n} links"),
        };
        found.add(
            "run.bins",
            format!(
                "bins of {} are too many for a run of {}{of}: each of {bins} is a row of a table",
                run.bins, run.duration
            ),
            "write for example \"100ms\"; a link has at most 1000000 bins, all links together 10000000",
        );
    } else {
        // Totals are sums over bins from the end of the warm-up to the end of the run, so both must be bin boundaries.
        for (name, length) in [("warmup", run.warmup), ("duration", run.duration)] {
            if let Some(hint) = multiples(length, run.bins) {
                found.add(
                    format!("run.{name}"),
                    format!("{length} is no multiple of the bins ({})", run.bins),
                    &hint,
                );
            }
        }
    }
    if run
        .seed
        .checked_add(u64::from(run.replications))
        .is_none_or(|s| s > i64::MAX as u64)
    {
        found.add(
            "run.seed",
            "the seed leaves no room for the replications",
            "write a smaller number",
        );
    }
}

/// The multiples of `bins` closest to `length`; `None` if it is a multiple.
fn multiples(length: Dur, bins: Dur) -> Option<String> {
    let rest = length.as_nanos() % bins.as_nanos();
    let below = Dur::from_nanos(length.as_nanos() - rest);
    let above = below + bins;
    match (rest, below) {
        (0, _) => None,
        (_, Dur::ZERO) => Some(format!("write {above}")),
        _ => Some(format!("write {below} or {above}")),
    }
}
