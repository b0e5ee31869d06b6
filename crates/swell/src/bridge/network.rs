//! The network of a bridge: one link of the command line, or the links of an experiment.

use std::path::Path;

use groundswell::under::{self, Background, Link};
use swell_base::Dur;
use swell_experiment::file::{Hop, Stack, unknown_name};
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

/// How long a bridge stands by default, the warm-up included.
const DAY: Dur = Dur::from_secs(86_400);
/// Narrowest bins of the time series: nobody reads them, and a day has many.
const BINS: Dur = Dur::from_millis(100);

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
    let plan = Plan::resolve(&text, &name, base).map_err(Fail::problems)?;
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
    let longest = DAY.saturating_sub(spec.warmup);
    let spec = RunSpec {
        duration: spec.warmup + duration.unwrap_or(longest),
        bins: spec.bins.max(BINS),
        // Hosts of a background over kernel sockets would need namespaces of their own.
        background_stack: Stack::default(),
        flows: false,
        waits: false,
        delays: false,
        synchrony: false,
        waterfall: false,
        records: None,
        ..spec
    };
    Ok(Network {
        paths: plan.file.paths(),
        spec,
        plan,
    })
}
