//! One compared quantity.

use serde::Serialize;

/// One quantity, in the trace and in the regenerated traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The quantity, its class unless it covers all, and its unit.
    pub quantity: String,
    /// Its value in the trace. For a distance, that of the trace from itself; NaN if unknown.
    pub trace: f64,
    /// Mean over the regenerated runs, or the distance of the runs from the trace.
    pub regenerated: f64,
    /// Minimum and maximum over the regenerated runs. For energies over all octaves, of each run's distance from the
    /// mean of the runs: the noise of `regenerated`, which is the distance of that mean from the trace.
    pub spread: [f64; 2],
    /// Largest acceptable distance; `None` for quantities other than distances.
    pub limit: Option<f64>,
    /// The trace's own 95 % bootstrap interval over sessions, at most 20 % to each side. `None` with fewer than ten
    /// sessions.
    pub interval: Option<[f64; 2]>,
    /// Acceptable relative difference of the mean; `None` for energies, where the mean may differ by 1.5 dB.
    pub bar: Option<f64>,
    /// Whether the criterion is met: within the bar or inside the trace's own interval. Seeds enter only through their
    /// mean, so that more seeds do not make it easier to pass.
    pub met: bool,
}

impl Row {
    /// A row that is met if the mean over the runs is within `bar` of the trace, or inside the trace's own interval.
    pub(super) fn mean(
        quantity: String,
        trace: f64,
        runs: &[f64],
        bar: f64,
        own: Option<[f64; 2]>,
    ) -> Row {
        let regenerated = runs.iter().sum::<f64>() / runs.len() as f64;
        let close = (regenerated - trace).abs() <= bar * trace.abs();
        let inside = own.is_some_and(|[low, high]| (low..=high).contains(&regenerated));
        Row {
            quantity,
            trace,
            regenerated,
            spread: spread(runs),
            limit: None,
            interval: own,
            bar: Some(bar),
            met: close || inside,
        }
    }

    /// A row for a distance from the trace; `own` is the distance of the trace from itself.
    pub(super) fn distance(
        quantity: String,
        distance: f64,
        own: f64,
        spread: [f64; 2],
        limit: f64,
    ) -> Row {
        Row {
            quantity,
            trace: own,
            regenerated: distance,
            spread,
            limit: Some(limit),
            interval: None,
            bar: None,
            met: distance <= limit,
        }
    }
}

pub(super) fn spread(runs: &[f64]) -> [f64; 2] {
    runs.iter()
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], &x| {
            [a.min(x), b.max(x)]
        })
}
