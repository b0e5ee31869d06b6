//! The network in short texts, and the command that runs the experiment again.

use swell_base::{Bytes, Dur, QueueLimit};
use swell_experiment::Results;
use swell_experiment::file::{Foreground, Link, Loss, NamedLink, Route};

use crate::data::{NetworkData, Rerun};
use crate::human::{Quantity, trimmed};

/// Default one-way access delay, as in the experiment format.
const ACCESS_DELAY: Dur = Dur::from_millis(5);

pub(super) fn network(results: &Results) -> NetworkData {
    let file = &results.experiment;
    let rtt = |f: &Foreground| {
        let own = file.round_trip(&f.route());
        let given = if f.delay().is_some() {
            None
        } else {
            file.network.rtt
        };
        given.unwrap_or(own + f.delay().unwrap_or(ACCESS_DELAY) * 4)
    };
    let there = || file.foreground.iter().filter(|f| !f.is_none());
    let longest = file.network.rtt.or(there().map(rtt).max());
    let longest = longest.unwrap_or_else(|| file.round_trip(&Route::default()));
    let all = file.links();
    let drawn = file.foreground.first();
    let drawn = drawn.and_then(|f| file.narrowest(f));
    let drawn = drawn.map_or(0, |[_, down]| down.queue.link);
    let described = |l: &NamedLink| l.keys.directions().map(|way| link(&way, longest));
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
        Quantity::Rate.tick(link.rate.bps() as f64),
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
    let last = run
        .seed
        .saturating_add(u64::from(run.replications.saturating_sub(1)));
    let mut facts = vec![
        ("Version".to_owned(), manifest.version.clone()),
        ("Backend".to_owned(), manifest.backend.clone()),
        ("Seeds".to_owned(), format!("{} … {last}", run.seed)),
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
    let dir = results.dir.display().to_string();
    let word = |end: &str| shell_word(&format!("{}{end}", dir.trim_end_matches('/')));
    let mut command = format!(
        "swell run {} -o {}",
        word("/experiment.toml"),
        word("-again")
    );
    if manifest.backend == swell_experiment::made_up::MadeUp::NAME {
        command += " --made-up";
    }
    Rerun { command, facts }
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
