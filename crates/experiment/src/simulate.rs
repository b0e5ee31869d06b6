//! The simulated backend: advances a world from event to event in virtual time.

pub(crate) mod before;
mod build;
mod coherence;
mod observe;
mod round_trips;
pub mod stage;
pub(crate) mod transport;
mod waterfall;

use swell_base::{Dur, Time};
use swell_world::World;

use crate::backend::{Backend, RunError, RunSpec};
use crate::observe::Observations;

use self::stage::RunParts;

/// Number of steps in each phase of a run. After each step it reports progress and may be cancelled.
const STEPS: u64 = 200;

/// Runs experiments in virtual time. A run is a function of its [`RunSpec`] alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Backend for Simulator {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        let (mut world, mut run_parts) = RunParts::new(spec)?;
        let reach = |w: &mut World, noted: &RunParts, from: Dur, to: Dur| {
            for step in 1..=STEPS {
                if cancelled() {
                    return Err(RunError::Cancelled);
                }
                let span = to.saturating_sub(from).as_nanos();
                let part = u128::from(span) * u128::from(step) / u128::from(STEPS);
                let at = from + Dur::from_nanos(part as u64);
                w.advance(Time::ZERO + at);
                progress(at.as_secs_f64() / spec.duration.as_secs_f64());
                if noted.failed() {
                    break;
                }
            }
            Ok(())
        };
        // Bins are half-open intervals: they include their start but not their end. Stop one nanosecond earlier, so
        // that the ledgers count over the same interval.
        let before = |end: Dur| end.saturating_sub(Dur::from_nanos(1));
        let (warm, last) = (before(spec.warmup), before(spec.duration));
        if warm > Dur::ZERO {
            reach(&mut world, &run_parts, Dur::ZERO, warm)?;
        }
        run_parts.warmed_up(&world);
        if !run_parts.failed() {
            reach(&mut world, &run_parts, warm, last)?;
        }
        if run_parts.failed() {
            // Says why, without a run to its end.
            return run_parts.observe(&mut world, spec, &stage::Ledgers::new());
        }
        let at_end = stage::ledgers(&world);
        world.advance(Time::ZERO + spec.duration);
        progress(1.0);
        run_parts.observe(&mut world, spec, &at_end)
    }
}

#[cfg(test)]
mod tests;
