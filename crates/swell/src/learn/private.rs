//! The report of `swell learn --private` on its cost.

use swell_base::{Code, Warning};
use swell_learn::private::Cost;

/// Ratios of bytes outside of this range are a warning.
const NEAR: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// A warning to the holder of the trace if the model carries far more or less than the trace. It is not in the model,
/// because it was computed without noise.
pub(super) fn doubt(cost: &Cost) -> Option<Warning> {
    let text = format!(
        "the model carries {:.2} % of the trace's bytes: noise hides most of what was sent; do not use it for loads",
        100.0 * cost.bytes
    );
    let far = !NEAR.contains(&cost.bytes);
    far.then(|| Warning::warning(Code::PrivateLoad, text))
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
