//! Fidelity: does a model regenerate the traffic that it was learnt from?
//!
//! The model generates traffic on an otherwise empty link without delay, at the rate of a campus link. The learner that
//! read the trace also reads the packets that cross this link, and the two models are compared quantity by quantity.
//! Both models thus contain the learner's simplifications. Its errors are visible too, because the ground truth of the
//! regenerated traffic is the first model.

mod compare;
mod distance;
mod tap;

use std::sync::{Arc, Mutex};

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_learn::{Learner, Options};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{DrawError, Knobs, Model, Network, Schedule};
use swell_workload::Structural;
use swell_world::World;

pub use compare::{Fidelity, Row, compare};
pub use distance::halves;

/// How a model generates traffic for the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback {
    /// Rate of the link, both directions.
    pub rate: Rate,
    /// Dependencies to drop and other parameters. By default, sessions start at the phase of the trace.
    pub knobs: Knobs,
}

impl Default for Playback {
    fn default() -> Playback {
        Playback {
            rate: Rate::from_bps(100_000_000),
            knobs: Knobs {
                phase: Some(Dur::ZERO),
                ..Knobs::default()
            },
        }
    }
}

/// Generates traffic from a model for the duration of its trace, and learns a model from the packets on the link.
///
/// # Errors
/// If no schedule can be drawn.
pub fn regenerate(model: &Model, playback: &Playback, seed: u64) -> Result<Model, DrawError> {
    let played = Arc::new(model.varied(&playback.knobs, seed));
    let network = Network::default();
    // The trace starts with its first packets, so no earlier transfer is in progress.
    let schedule = Schedule::draw(&played, &playback.knobs, seed, model.duration, &network)?;
    let schedule = schedule.without_entered();
    let link = LinkConfig {
        rate: Some(playback.rate),
        queue: QueueLimit::Packets(u64::MAX),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], seed);
    let learner = Learner::new(Options {
        name: model.name.clone(),
        parameters: model.parameters,
        // Do not thin the model: it is discarded after the comparison.
        budget: usize::MAX,
        ..Options::default()
    });
    let learner = Arc::new(Mutex::new(learner));
    let tcp = Arc::new(Config::linux());
    world.set_tap(Box::new(tap::LearnerTap::new(
        Arc::clone(&learner),
        &played.classes,
        Arc::clone(&tcp),
        seed,
    )));
    let machine = Structural::new(played, &schedule);
    world.add(Box::new(machine), Tag::Background, tcp);
    world.advance(Time::ZERO + model.duration);
    drop(world);
    let learner = Arc::into_inner(learner)
        .expect("the world held the only other handle, and is gone")
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(learner.finish())
}

#[cfg(test)]
mod tests;
