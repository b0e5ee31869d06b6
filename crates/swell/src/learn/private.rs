//! `swell learn --private`: models that hide whether a session was in the trace.

use std::io::Read;

use swell_learn::private::{Cost, Private, release as released};

use super::{Any, Learnt};
use crate::fail::Fail;

/// The model with noise, and what it costs.
pub(super) fn release(learnt: Any, epsilon: f64) -> Result<(Any, Option<Cost>), Fail> {
    let Any::Packets(learnt) = learnt else {
        let message = "--private protects models of packets: this is one of flow records";
        return Err(Fail::usage(message));
    };
    let private = Private {
        epsilon,
        seed: entropy()?,
    };
    let model = released(&learnt.model, &private);
    let cost = Cost::of(&learnt.model, &model);
    let traces = learnt.traces;
    let protected = Any::Packets(Box::new(Learnt { model, traces }));
    Ok((protected, Some(cost)))
}

/// From the system, and kept nowhere.
fn entropy() -> Result<[u64; 2], Fail> {
    let mut bytes = [[0; 8]; 2];
    let file = std::fs::File::open("/dev/urandom");
    let read = file.and_then(|mut f| bytes.iter_mut().try_for_each(|half| f.read_exact(half)));
    read.map_err(|e| Fail::failed(format!("/dev/urandom: {e}")))?;
    Ok(bytes.map(u64::from_ne_bytes))
}

pub(super) fn json(cost: &Cost) -> serde_json::Value {
    let octaves = cost.octaves.iter();
    let octaves: serde_json::Map<String, serde_json::Value> = octaves
        .map(|(quantity, octaves)| (quantity.name().into(), (*octaves).into()))
        .collect();
    serde_json::json!({
        "w1_octaves": octaves,
        "energy_db": cost.decibels,
        "sessions_ratio": cost.sessions,
        "bytes_ratio": cost.bytes,
    })
}

pub(super) fn text(cost: &Cost) -> String {
    let octaves: Vec<String> = cost
        .octaves
        .iter()
        .map(|(quantity, octaves)| format!("  {}: {octaves:.2}", quantity.name()))
        .collect();
    format!(
        "what the protection costs, against the model without (for you: these figures are of the trace itself)\n  \
         sessions x{:.3}, bytes x{:.3}, energy of what is offered {:.1} dB off in the mean of the octaves\n  \
         Wasserstein distance, octaves:\n  {}",
        cost.sessions,
        cost.bytes,
        cost.decibels,
        octaves.join("\n  ")
    )
}
