//! The simulated backend: a world, driven from deadline to deadline.

mod build;
mod discipline;
mod observe;
mod transport;

use swell_base::{Dur, Tag, Time};
use swell_world::World;

use crate::backend::{Backend, BackgroundSpec, RunError, RunSpec};
use crate::observe::Observations;
use crate::packets::Recorder;

/// Bin width of the counts behind the log-scale diagrams.
const FINE: Dur = Dur::from_millis(1);
/// Steps in which a run reports its progress and may be cancelled.
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
        let seed = spec.cell.seed;
        let mut world = World::new(&spec.links.each_ref().map(build::link), seed);
        world.meter(FINE, spec.bins);
        let background = build::background(&spec.background, spec.duration, seed)?;
        let foreground = spec
            .foreground
            .as_ref()
            .map(|foreground| build::foreground(foreground, spec.warmup));
        let recorder = match &spec.packets {
            None => None,
            Some(path) => {
                let tcp = [&background, &foreground].map(|m| m.as_ref().map(|(_, tcp)| tcp));
                let recorder = Recorder::create(path, build::sources(spec, tcp), seed)
                    .map_err(|e| RunError::Failed(e.into()))?;
                world.set_tap(recorder.tap());
                Some(recorder)
            }
        };
        // In the order of `build::sources`.
        let background = background.map(|(machine, tcp)| world.add(machine, Tag::Background, tcp));
        let foreground = foreground.map(|(machine, tcp)| world.add(machine, Tag::Foreground, tcp));

        let reach = |w: &mut World, from: Dur, to: Dur| {
            for step in 1..=STEPS {
                if cancelled() {
                    return Err(RunError::Cancelled);
                }
                let span = to.saturating_sub(from).as_nanos();
                let part = u128::from(span) * u128::from(step) / u128::from(STEPS);
                let at = from + Dur::from_nanos(part as u64);
                w.advance(Time::ZERO + at);
                progress(at.as_secs_f64() / spec.duration.as_secs_f64());
                // Why is told at the end.
                if recorder.as_ref().is_some_and(Recorder::failed) {
                    break;
                }
            }
            Ok(())
        };
        // A bin holds its beginning and not its end: so do the ledgers between these instants.
        let before = |end: Dur| end.saturating_sub(Dur::from_nanos(1));
        let (warm, last) = (before(spec.warmup), before(spec.duration));
        if warm > Dur::ZERO {
            reach(&mut world, Dur::ZERO, warm)?;
        }
        let at_warmup = observe::ledgers(&world);
        reach(&mut world, warm, last)?;
        let at_end = observe::ledgers(&world);
        world.advance(Time::ZERO + spec.duration);
        progress(1.0);
        if let Some(recorder) = recorder {
            let written = recorder.finish();
            written.map_err(|e| RunError::Failed(e.into()))?;
        }
        world.finish();

        let mut observed = observe::bottleneck(&world, spec, [&at_warmup, &at_end], FINE);
        if let Some(index) = foreground {
            observed.requests = observe::requests(world.take_records(index));
        }
        if let Some(index) = background
            && spec.flows
        {
            let class = |i: u32| match &spec.background {
                BackgroundSpec::Learnt { model, .. } => model
                    .classes
                    .get(i as usize)
                    .map_or("", |c| &c.name)
                    .to_owned(),
                BackgroundSpec::Replay { .. } => "replay".to_owned(),
                BackgroundSpec::Greedy(_) => "greedy".to_owned(),
                BackgroundSpec::Parametric { .. } | BackgroundSpec::None => "parametric".to_owned(),
            };
            observed.flows = observe::flows(world.take_records(index), class);
        }
        observed.warnings.extend(build::doubts(spec));
        Ok(observed)
    }
}

#[cfg(test)]
mod tests;
