//! Compares the traffic that a model generates with the trace from which it was learnt.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use swell_experiment::fidelity::{Fidelity, Playback, Row};
use swell_experiment::fidelity::{compare, regenerate};
use swell_traffic::Model;

use crate::Error;
use crate::run::parallelism;

/// Generates traffic from a model with seeds 1 to `seeds`, on all processors, learns the result, and compares it with
/// the model's own trace. `played` is called after each seed.
///
/// # Errors
/// If the model was not learnt from packets, or a run fails.
pub fn fidelity(
    model: &Model,
    playback: &Playback,
    seeds: u64,
    played: impl Fn() + Sync,
) -> Result<Fidelity, Error> {
    if model.load.lsd.iter().all(Vec::is_empty) {
        let message = format!("model `{}` was not learnt from packets", model.name);
        let hint = "only a model learnt from a trace can be held against it";
        return Err(Error::usage(message).hint(hint));
    }
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, Result<Model, Error>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallelism())
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i as u64 >= seeds {
                            return done;
                        }
                        let run = regenerate(model, playback, i as u64 + 1);
                        done.push((i, run.map_err(Error::failed)));
                        played();
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            // Without the seeds of a worker that panicked, the comparison would be another one.
            .flat_map(|w| w.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|d| d.0);
    let runs: Vec<Model> = done.into_iter().map(|d| d.1).collect::<Result<_, _>>()?;
    Ok(compare(model, &runs, None))
}
