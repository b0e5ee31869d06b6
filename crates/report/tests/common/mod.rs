//! A whole experiment, run by the backend that makes numbers up.

use std::path::PathBuf;

use swell_experiment::made_up::MadeUp;
use swell_experiment::run::{self, Ended, Options};
use swell_experiment::{Plan, Results};

/// A directory that goes away with the value.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("swell-report-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

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

/// Runs it in `dir`.
pub fn results(dir: &Scratch) -> Results {
    let plan = Plan::resolve(EXPERIMENT, "made up.toml", &dir.0).expect("the experiment is valid");
    let options = Options {
        dir: dir.0.join("run"),
        threads: 1,
        fresh: true,
    };
    match run::run(&plan, &MadeUp::default(), &options, &|_| {}, &|| false) {
        Ok(Ended::Complete(results)) => *results,
        Ok(_) => panic!("nobody interrupted it"),
        Err(e) => panic!("{e}"),
    }
}
