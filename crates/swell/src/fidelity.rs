//! `swell fidelity`: compares the traffic that a model generates with the trace from which it was learnt.

use swell_experiment::fidelity::Playback;
use swell_traffic::Dependency;

use crate::cli::FidelityArgs;
use crate::fail::Fail;
use crate::{interrupt, out, tables};

pub(crate) fn fidelity(args: &FidelityArgs, json: bool) -> Result<(), Fail> {
    let model = groundswell::model::packet_model(&args.model)?;
    let mut playback = Playback::default();
    if let Some(rate) = args.rate {
        playback.rate = rate;
    }
    for name in &args.independent {
        let found = Dependency::ALL.iter().find(|d| d.1 == name);
        let Some((dependency, _)) = found else {
            let known: Vec<&str> = Dependency::ALL.iter().map(|d| d.1).collect();
            let message = format!("no dependency is called `{name}`");
            return Err(Fail::usage(message).hint(format!("one of {}", known.join(", "))));
        };
        playback.knobs.independent.push(*dependency);
    }
    interrupt::ends(
        "interrupted; what was played is not kept",
        "the same command begins anew; fewer --seeds take less time",
    );
    let seeds = args.seeds.into();
    let bar = out::bar(seeds, "playing {bar:30} {pos}/{len} seeds, {eta} left");
    let log = out::Log::new();
    let fidelity = groundswell::fidelity::fidelity(&model, &playback, seeds, || {
        bar.inc(1);
        log.tell(|| format!("played {} of {seeds} seeds", bar.position()));
    })?;
    bar.finish_and_clear();
    if json {
        out::json(&serde_json::to_value(&fidelity).map_err(Fail::failed)?);
    } else {
        out::data(&tables::fidelity(&fidelity, &playback));
    }
    Ok(())
}
