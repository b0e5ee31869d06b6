//! The network in short texts, and the command that runs the experiment again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use swell_base::{Bytes, Direction, Dur, QueueLimit};
use swell_experiment::file::{Foreground, Link, Loss, NamedLink, Route};
use swell_experiment::made_up::MadeUp;
use swell_experiment::{Backend, Results, Simulator};

use crate::data::{NetworkData, Rerun};
use crate::human::{Quantity, trimmed};

pub(super) fn network(results: &Results) -> NetworkData {
    let file = &results.experiment;
    let rtt = |f: &Foreground| {
        let own = file.round_trip(&f.route());
        let delay = f.delay(&file.network);
        let given = file.network.rtt.filter(|_| delay.is_none());
        given.unwrap_or(own + delay.unwrap_or(file.network.access_delay()) * 4)
    };
    let there = || file.foreground.iter().filter(|f| !f.is_none());
    let longest = file.network.rtt.or(there().map(rtt).max());
    let longest = longest.unwrap_or_else(|| file.round_trip(&Route::default()));
    let all = file.links();
    let drawn = file.foreground.first();
    let drawn = drawn.and_then(|f| file.narrowest(f));
    let drawn = drawn.map_or(0, |[_, down]| down.queue.link);
    let described = |l: &NamedLink| {
        let ways = l.keys.directions();
        Direction::BOTH.map(|d| {
            let mut parts = link(&ways[d], longest);
            if l.keys.change.iter().any(|c| c.direction.has(d)) {
                parts.push("changes".into());
            }
            parts
        })
    };
    let [up, down] = all.get(drawn).map(described).unwrap_or_default();
    let mut rtts: Vec<Dur> = there().map(rtt).collect();
    rtts.sort_unstable();
    rtts.dedup();
    let rtts: Vec<String> = rtts.into_iter().map(duration).collect();
    NetworkData {
        clients: there()
            .map(|f| format!("{} × {}", f.clients(), f.name()))
            .collect(),
        users: file
            .background
            .iter()
            .filter(|b| !b.is_none())
            .map(|b| b.name().to_owned())
            .collect(),
        up,
        down,
        drawn: match all.len() {
            1 => String::new(),
            _ => all.get(drawn).map(|l| l.name.clone()).unwrap_or_default(),
        },
        links: match all.len() {
            1 => Vec::new(),
            _ => (all.iter())
                .map(|l| {
                    let [rightwards, leftwards] = described(l);
                    (l.name.clone(), rightwards, leftwards)
                })
                .collect(),
        },
        rtt: format!(
            "foreground round trip without queueing: {}",
            rtts.join(", ")
        ),
    }
}

fn link(link: &Link, rtt: Dur) -> Vec<String> {
    let queue = match link.queue {
        QueueLimit::Packets(n) => format!("{n} packets"),
        QueueLimit::Bytes(b) => bytes(&b),
        QueueLimit::Time(t) => duration(t),
        QueueLimit::Bdp(k) => {
            let product = link.rate.carried_in(rtt.scale(k));
            format!("{} BDP = {}", trimmed(k), bytes(&product))
        }
    };
    let mut parts = vec![
        match link.deliveries {
            None => Quantity::Rate.tick(link.rate.bps() as f64),
            Some(_) => format!(
                "trace of {}",
                Quantity::Rate.show(link.rate.bps() as f64, 3)
            ),
        },
        duration(link.delay),
        format!("{} {queue}", link.qdisc.label()),
    ];
    match link.loss {
        Loss::None => {}
        Loss::Independent { p } => parts.push(format!("loss {}", Quantity::Share.tick(p))),
        Loss::GilbertElliott { .. } => parts.push("loss in bursts".into()),
    }
    parts
}

pub(super) fn rerun(results: &Results) -> Rerun {
    let manifest = &results.manifest;
    let run = &results.experiment.run;
    let seeds: BTreeSet<u64> = manifest.cells.iter().map(|cell| cell.seed).collect();
    let mut facts = vec![
        ("Version".to_owned(), manifest.version.clone()),
        ("Backend".to_owned(), manifest.backend.clone()),
        ("Seeds".to_owned(), ranges(&seeds)),
        (
            "Runs".to_owned(),
            format!(
                "{} of {}, the first {} warm-up",
                results.runs.len(),
                duration(run.duration),
                duration(run.warmup)
            ),
        ),
        ("Experiment".to_owned(), manifest.hash.clone()),
    ];
    for (background, model) in &manifest.models {
        let replayed = results
            .experiment
            .background
            .iter()
            .any(|b| b.name() == background && b.reads() == Some("trace"));
        let what = if replayed { "Trace" } else { "Model" };
        facts.push((
            format!("{what} of {background}"),
            format!("{} ({}), {}", model.name, model.source, model.hash),
        ));
        if !model.note.is_empty() {
            facts.push(("Its source".to_owned(), model.note.clone()));
        }
    }
    // Name the resolved file in the run directory, not the original one: it includes the changes of --set and --quick.
    let made_up = manifest.backend == MadeUp::NAME;
    let again = |dir: &PathBuf| {
        let dir = dir.display().to_string();
        let word = |end: &str| shell_word(&format!("{}{end}", dir.trim_end_matches('/')));
        let from = word("/experiment.toml");
        let more = if made_up { " --made-up" } else { "" };
        format!("swell run {from} -o {}{more}", word("-again"))
    };
    let dirs = std::iter::once(&results.dir).chain(&results.joined);
    let commands: Vec<String> = dirs.map(again).collect();
    let what = match made_up || manifest.backend == Simulator.name() {
        true => "Equal experiment, seed and version give equal tables, bit for bit.",
        false => {
            "It ran in real time: the same command sends the same traffic and gives other numbers."
        }
    };
    Rerun {
        command: commands.join("\n"),
        what: what.into(),
        facts,
    }
}

/// Whole numbers, with successive ones as a range: `1 … 3, 7`.
fn ranges(of: &BTreeSet<u64>) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for &n in of {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(n) => *last = n,
            _ => parts.push((n, n)),
        }
    }
    let part = |&(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first} … {last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// `text` as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn duration(d: Dur) -> String {
    Quantity::Duration.tick(d.as_secs_f64())
}

fn bytes(b: &Bytes) -> String {
    Quantity::Bytes.tick(b.0 as f64)
}
