//! A fixed number of users who wait for their answers: a model learnt from a fast link does on a slow one what they do.

use std::collections::BTreeMap;
use std::path::Path;

use swell_base::Direction;
use swell_base::Dur;
use swell_capture::Reader;
use swell_experiment::observe::Observations;
use swell_experiment::{Backend, Plan, Simulator};
use swell_learn::{Learner, Options};

const SECONDS: u64 = 60;

/// The background in `part` alone over a link of this rate; its packets may be written.
fn alone(rate: &str, part: &str, packets: Option<&Path>) -> Observations {
    let text = format!(
        r#"
name = "population"
[network]
rate = "{rate}"
delay = "5ms"
queue = "50kB"
[run]
warmup = "0s"
duration = "{SECONDS}s"
[[foreground]]
name = "nobody"
kind = "none"
[[background]]
name = "users"
{part}
"#
    );
    let plan = Plan::resolve(&text, "population.toml", Path::new(".")).unwrap();
    let mut spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    spec.packets = packets.map(Path::to_owned);
    Simulator.run(&spec, &|_| {}, &|| false).unwrap()
}

/// Bytes down of the background in the last two thirds of a run.
fn down(observed: &Observations) -> f64 {
    let late = observed
        .bins
        .iter()
        .filter(|b| b.time >= SECONDS as f64 / 3.0 && b.direction == Direction::Down);
    late.map(|b| b.departed[1] as f64).sum()
}

#[test]
fn users_who_wait_do_not_pile_up_on_a_slower_link() {
    let dir = tempfile::tempdir().unwrap();
    for (users, connection) in [(7, "new"), (3, "kept")] {
        let truth = format!(
            "kind = \"web\"\nclients = {users}\nobject = \"100kB\"\nthink = \"1s\"\ndelay = \"20ms\"\nconnection = \"{connection}\""
        );
        let file = dir.path().join(format!("{connection}.pcapng"));
        alone("50Mbit", &truth, Some(&file));
        let mut learner = Learner::new(Options {
            name: connection.into(),
            inside: vec!["10.0.0.0/8".parse().unwrap()],
            link_rtt: Dur::from_millis(10),
            length: Dur::from_secs(SECONDS),
            ..Options::default()
        });
        let mut reader = Reader::open(&file).unwrap();
        while let Some(packet) = reader.next_packet().unwrap() {
            learner.push(&packet);
        }
        let model = learner.finish();
        assert_eq!(model.sessions.len(), users, "{connection}");
        let learnt = dir.path().join(format!("{connection}.json"));
        let mut bytes = Vec::new();
        model.write(&mut bytes, false).unwrap();
        std::fs::write(&learnt, bytes).unwrap();
        let learnt = format!(
            "kind = \"learnt\"\nmodel = \"{}\"\nsessions = 1",
            learnt.display()
        );
        for rate in ["20Mbit", "4Mbit", "1500kbit"] {
            let [true_bytes, learnt_bytes] = [&truth, &learnt].map(|part| alone(rate, part, None));
            let ratio = down(&learnt_bytes) / down(&true_bytes);
            assert!((ratio - 1.0).abs() < 0.1, "{connection} {rate}: {ratio}");
        }
    }
}
