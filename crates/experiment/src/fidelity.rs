//! Fidelity: does a model regenerate the traffic that it was learnt from?
//!
//! The model generates traffic on an otherwise empty link without delay, at the rate of a campus link. The learner that
//! read the trace also reads the packets that cross this link, and the two models are compared quantity by quantity.
//! Both models thus contain the learner's simplifications. Its errors are visible too, because the ground truth of the
//! regenerated traffic is the first model.

mod carried;
mod compare;
mod distance;
mod play;
mod played;
mod row;
mod tap;

use std::sync::{Arc, Mutex};

use swell_learn::{Learner, Options};
use swell_tcp::Config;
use swell_traffic::{DrawError, Model, Network, Schedule};

pub use carried::{Carried, carried};
pub use compare::{Fidelity, compare};
pub use distance::halves;
pub use play::Playback;
use play::play;
pub use played::played;
pub use row::Row;

/// Generates traffic from a model for the duration of its trace, and learns a model from the packets on the link.
///
/// # Errors
/// If no schedule can be drawn.
pub fn regenerate(model: &Model, playback: &Playback, seed: u64) -> Result<Model, DrawError> {
    let played = Arc::new(model.varied(&playback.knobs, seed));
    let network = Network::default();
    // The trace starts with its first packets, so no earlier transfer is in progress. It holds each session once.
    let schedule = Schedule::cold(&played, &playback.knobs, seed, model.duration, &network)?;
    let schedule = Schedule {
        lasting: Vec::new(),
        ..schedule
    };
    let learner = Learner::new(Options {
        name: model.name.clone(),
        parameters: model.parameters,
        // Do not thin the model: it is discarded after the comparison.
        budget: usize::MAX,
        ..Options::default()
    });
    let learner = Arc::new(Mutex::new(learner));
    let tap = tap::LearnerTap::new(
        Arc::clone(&learner),
        &played.classes,
        Arc::new(Config::linux()),
        seed,
    );
    let time = model.duration;
    play(played, time, &schedule, playback.rate, seed, Box::new(tap));
    let learner = Arc::into_inner(learner)
        .expect("the world held the only other handle, and is gone")
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(learner.finish())
}

#[cfg(test)]
mod tests;
