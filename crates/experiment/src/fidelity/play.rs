//! A model alone on a link.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{Knobs, Model, Schedule};
use swell_workload::Structural;
use swell_world::{Tap, World};

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

/// Plays the sessions of a schedule of `model` for so long, and shows `tap` the packets that cross the link.
pub(super) fn play(
    model: Arc<Model>,
    time: Dur,
    schedule: &Schedule,
    rate: Rate,
    seed: u64,
    tap: Box<dyn Tap>,
) {
    let link = LinkConfig {
        rate: Some(rate),
        queue: QueueLimit::Packets(u64::MAX),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], seed);
    world.set_tap(tap);
    let end = Time::ZERO + time;
    let machine = Structural::new(model, schedule);
    world.add(
        Box::new(machine),
        Tag::Background,
        Arc::new(Config::linux()),
    );
    world.advance(end);
}
