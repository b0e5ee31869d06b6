//! A complete experiment, run by the backend that makes up numbers.

use std::path::Path;

use swell_experiment::made_up::MadeUp;
use swell_experiment::run::{self, Options, RunOutcome};
use swell_experiment::{Plan, Results};

const EXPERIMENT: &str = r#"
name = "made up"
note = "Numbers out of thin air."
[network]
rate = "20Mbit"
rtt = "40ms"
[network.up]
rate = "5Mbit"
queue = "50pkt"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[foreground]]
name = "small </script>"
kind = "web"
object = ["4kB", "8kB"]
clients = 3
think = "100ms"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "cbr"
kind = "cbr"
rate = "6Mbit"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
[run]
replications = 4
warmup = "2s"
duration = "22s"
seed = 7
"#;

/// Runs the experiment in `dir`.
pub fn results(dir: &Path) -> Results {
    results_of(EXPERIMENT, dir)
}

/// Runs the same with other `[network]` and `seed`.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn results_with(network: &str, seed: u64, dir: &Path) -> Results {
    let text = EXPERIMENT
        .replace("[network.up]\n", &format!("{network}\n[network.up]\n"))
        .replace("seed = 7", &format!("seed = {seed}"));
    results_of(&text, dir)
}

/// Runs the same with a further background.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn results_and(background: &str, dir: &Path) -> Results {
    let text = EXPERIMENT.replace("[run]\n", &format!("[[background]]\n{background}\n[run]\n"));
    results_of(&text, dir)
}

fn results_of(text: &str, dir: &Path) -> Results {
    let plan = Plan::resolve(text, "made up.toml", dir).expect("the experiment is valid");
    let options = Options {
        dir: dir.join("run"),
        threads: 1,
        fresh: true,
        shard: None,
    };
    match run::run(&plan, &MadeUp::default(), &options, &|_| {}, &|| false) {
        Ok(RunOutcome::Complete(results)) => *results,
        Ok(_) => panic!("nobody interrupted it"),
        Err(e) => panic!("{e}"),
    }
}
