//! Is the traffic that a model brings back the traffic it was learnt from?
//!
//! The model is played over an empty link as fast as a campus's, without delay; the packets that
//! cross the link are shown to the same learner that read the trace; and the two models are held
//! against each other, quantity by quantity. What the learner does to a trace it thus does to the
//! regenerated traffic too, and what it gets wrong shows: the simulated truth is the model played.

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

/// How a model is played to be looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback {
    /// Rate of the link, both directions.
    pub rate: Rate,
    /// Dependencies to drop and other knobs; sessions start where the trace did.
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

/// Plays a model for as long as its trace lasted and learns from what crosses the link.
///
/// # Errors
/// Where no schedule can be drawn.
pub fn regenerate(model: &Model, playback: &Playback, seed: u64) -> Result<Model, DrawError> {
    let played = Arc::new(model.varied(&playback.knobs, seed));
    let network = Network::default();
    // The trace began with what it saw first: nothing of its end was in progress then.
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
        // Nothing is thinned: it is thrown away after the comparison.
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
