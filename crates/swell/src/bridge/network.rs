//! The network of a bridge: one link of the command line, or the links of an experiment.

use std::path::Path;

use groundswell::under::{self, BIN, Background, DAY, Link};
use swell_base::Dur;
use swell_experiment::file::{Hop, Keep, Stack, unknown_name};
use swell_experiment::{Plan, RunSpec};

use crate::fail::Fail;
use crate::learn;

/// A network and the background traffic in it.
pub(super) struct Network {
    pub plan: Plan,
    pub spec: RunSpec,
    /// The paths of all traffic, which tell where links meet.
    pub paths: Vec<Vec<Hop>>,
}

/// The only link, as on the command line. `others` is its background, or else the named one.
pub(super) fn of_link(
    link: &Link,
    others: Option<Background>,
    duration: Option<Dur>,
    scratch: &Path,
) -> Result<Network, Fail> {
    let background = match others {
        Some(background) => background,
        None => learn::with_bar(&[link.background.clone().into()], |progress| {
            under::background(&link.background, scratch, progress)
        })?,
    };
    let text = under::bridge(link, &background, duration)?;
    let here = std::env::current_dir().map_err(Fail::failed)?;
    let plan = Plan::resolve(&text, "swell bridge", &here).map_err(Fail::usage)?;
    let spec = plan
        .cells
        .first()
        .and_then(|cell| plan.spec(cell, &Default::default()));
    Ok(Network {
        spec: spec.ok_or_else(|| Fail::failed("the link has no run"))?,
        paths: plan.file.paths(),
        plan,
    })
}

/// The links of an experiment file, with one of its backgrounds.
pub(super) fn of_file(
    file: &Path,
    background: &str,
    duration: Option<Dur>,
) -> Result<Network, Fail> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| Fail::usage(format!("{name}: {e}")))?;
    let base = file.parent().unwrap_or(Path::new("."));
    let mut plan = Plan::resolve(&text, &name, base).map_err(Fail::problems)?;
    let warmup = plan.file.run.warmup;
    // A bridge stands for a day by default.
    let longest = DAY.saturating_sub(warmup);
    let duration = duration.unwrap_or(longest);
    if duration > longest {
        return Err(Fail::usage(
            "a bridge stands for a day at most, its warm-up included",
        ));
    }
    // Some rates are those of the time that is played.
    plan.file.run.duration = warmup + duration;
    let cell = plan.cells.iter().find(|c| c.background == background);
    let cell = cell.ok_or_else(|| {
        let known: Vec<&str> = plan.file.background.iter().map(|b| b.name()).collect();
        let (message, hint) = unknown_name("background", background, &known);
        Fail::usage(format!("{name}: {message}")).hint(hint)
    })?;
    let offered = plan.spec_as_offered(cell).map_err(|e| {
        Fail::usage(format!("{name}: {e}")).hint("give its `rate`, or name another background")
    })?;
    let spec = offered.ok_or_else(|| Fail::failed("the experiment has no run"))?;
    if spec.background_stack != Stack::default() {
        // Its hosts would need namespaces of their own.
        let message = format!("{name}: a background over kernel sockets cannot be in a bridge");
        return Err(Fail::usage(message).hint("remove `background_stack`"));
    }
    let spec = RunSpec {
        // Nobody reads narrower ones, and a day has many.
        bins: spec.bins.max(BIN),
        // Hosts send real packets instead of foregrounds.
        beside: Vec::new(),
        keep: Keep::NOTHING,
        delays: false,
        ..spec
    };
    Ok(Network {
        paths: plan.file.paths(),
        spec,
        plan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two foregrounds run together, beside packets of a fixed rate.
    const FILE: &str = r#"
name = "lab"
network = { rate = "20Mbit", rtt = "40ms" }
foreground = [
    { name = "page", kind = "web", object = "100kB" },
    { name = "bulk", kind = "greedy" },
]
background = [{ name = "packets", kind = "cbr", rate = "2Mbit" }]
run = { replications = 1, warmup = "2s", duration = "22s", together = true }
"#;

    fn network(text: &str, duration: Option<Dur>) -> Result<Network, Fail> {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("lab.toml");
        std::fs::write(&file, text).unwrap();
        of_file(&file, "packets", duration)
    }

    #[test]
    fn no_foreground_of_a_file_is_played() {
        let spec = network(FILE, None).unwrap().spec;
        assert!(spec.beside.is_empty());
        assert_eq!((spec.background.len(), spec.duration), (1, DAY));
        let hour = network(FILE, Some(Dur::from_secs(3600))).unwrap().spec;
        assert_eq!(hour.duration, Dur::from_secs(3602));
    }

    /// The first minute of this model has less load than the hour.
    #[test]
    fn sessions_are_as_many_as_the_time_of_the_bridge_needs() {
        let users = "kind = \"sessions\", model = \"access-hour\", rate = \"2Mbit\"";
        let text = FILE.replace("kind = \"cbr\", rate = \"2Mbit\"", users);
        let load = |seconds| {
            let spec = network(&text, Some(Dur::from_secs(seconds))).unwrap().spec;
            let traffic: &dyn std::any::Any = &*spec.background[0].traffic;
            let sessions = traffic.downcast_ref::<swell_experiment::kinds::SessionsTraffic>();
            sessions.expect("sessions").playback.load
        };
        let [minute, hour] = [60, 3_600].map(load);
        assert!(minute > 1.05 * hour, "{minute} {hour}");
    }

    #[test]
    fn what_a_bridge_cannot_do_is_refused() {
        assert!(network(FILE, Some(DAY)).is_err());
        let emulated = FILE.replace("name = \"lab\"", "name = \"lab\"\nbackend = \"emulated\"");
        let emulated = emulated.replace("    { name = \"bulk\", kind = \"greedy\" },\n", "");
        let kernel = emulated.replace("together = true", "background_stack = \"kernel\"");
        assert!(network(&kernel, None).is_err());
        let simulated = emulated.replace(", together = true", "");
        assert!(network(&simulated, None).is_ok());
    }
}
