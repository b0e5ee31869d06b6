//! Known networks that are tapped and learnt.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swell_base::Dur;
use swell_capture::Reader;
use swell_experiment::observe::Observations;
use swell_experiment::{Backend, Plan, Simulator};
use swell_learn::{Learner, Options};
use swell_traffic::Model;

/// A foreground without traffic.
pub const NOBODY: &str = "kind = \"none\"";

/// Runs the last background of the text over these links, beside a foreground, and writes the packets.
pub fn run(
    links: &str,
    foreground: &str,
    backgrounds: &str,
    seconds: u64,
    packets: Option<&Path>,
) -> Observations {
    let text = format!(
        r#"
name = "lines"
[run]
warmup = "0s"
duration = "{seconds}s"
[[foreground]]
name = "fetch"
{foreground}
{backgrounds}
[network]
{links}
"#
    );
    let plan = Plan::resolve(&text, "lines.toml", Path::new(".")).unwrap();
    let cell = plan.cells.last().unwrap();
    let mut spec = plan.spec(cell, &BTreeMap::new()).unwrap();
    spec.packets = packets.map(Path::to_owned);
    Simulator.run(&spec, &|_| {}, &|| false).unwrap()
}

/// Learns the last background of the text from a tap at the link `tapped`, which is open between these seconds.
pub fn learn(
    links: &str,
    backgrounds: &str,
    [from, to]: [u64; 2],
    link_rate: Option<&str>,
) -> Model {
    let dir = tempfile::tempdir().unwrap();
    let all = dir.path().join("all.pcapng");
    run(links, NOBODY, backgrounds, to, Some(&all));
    let own: PathBuf = dir.path().join("all.tapped.pcapng");
    let file = if own.exists() { own } else { all };
    let mut learner = Learner::new(Options {
        inside: vec!["10.0.0.0/8".parse().unwrap()],
        link_rtt: Dur::from_millis(20),
        link_rate: [link_rate.map(|rate| rate.parse().unwrap()); 2],
        length: Dur::from_secs(to - from),
        ..Options::default()
    });
    let mut reader = Reader::open(&file).unwrap();
    while let Some(packet) = reader.next_packet().unwrap() {
        if packet.time >= from as i64 * 1_000_000_000 {
            learner.push(&packet);
        }
    }
    learner.finish()
}

pub fn web(clients: u32, keys: &str) -> String {
    format!("[[background]]\nname = \"users\"\nkind = \"web\"\nclients = {clients}\n{keys}\n")
}

/// Writes a model, and returns the background that plays it, with these keys.
pub fn played(m: &Model, file: &Path, keys: &str) -> String {
    let mut bytes = Vec::new();
    m.write(&mut bytes, false).unwrap();
    std::fs::write(file, bytes).unwrap();
    format!(
        "[[background]]\nname = \"learnt\"\nkind = \"learnt\"\nmodel = \"{}\"\nsessions = 1\n{keys}\n",
        file.display()
    )
}
